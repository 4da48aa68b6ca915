"""Quadratic functions of the latents, against ridge regressions of one problem after another."""

from itertools import combinations_with_replacement

import numpy as np
import pytest
import torch
from scipy.special import expit

from ddml_fs import DDML
from ddml_fs.engine import quadratic
from ddml_fs.engine.network import RoleNetwork, Sizes
from ddml_fs.engine.objective import LossSettings, Objective
from ddml_fs.engine.plan import make_plan
from ddml_fs.engine.stack import Stack
from ddml_fs.nuisances import Network

READS = {"T": (0, 1, 2, 3), "Y": (0, 1, 4, 5)}  # of six latents: Zc and Zt, Zc and Zy


@pytest.fixture(scope="module", params=["direct", "coupled"])
def problem(request):
    """A stack of three folds with a 0/1 and a continuous treatment, weighted, and an objective."""
    rng = np.random.RandomState(0)
    X, y, weight = rng.standard_normal((90, 4)), rng.standard_normal(90), rng.uniform(0.5, 2, 90)
    T = np.column_stack([rng.rand(90) > 0.4, rng.standard_normal(90)]).astype(float)
    kinds = {"own": [-1, -1], "binary_T": [True, False], "n_folds": 3, "weight": weight}
    plan = make_plan(X, y[:, None], np.random.RandomState(1), treatments=T, **kinds)
    members = np.arange(plan.n_problems)
    stack = Stack(plan, members, torch.as_tensor(plan.X).double(), dtype=torch.float64)
    sizes = Sizes(H=3, Z=2)
    net = RoleNetwork(stack, sizes)
    net.theta_0.fill_(0.7)
    return stack, Objective(net, stack, sizes, LossSettings(request.param))


def terms_of(z):
    """The latents (n, L), their squares and their products, in the order of the pairs."""
    pairs = combinations_with_replacement(range(z.shape[1]), 2)
    return np.column_stack([z, *(z[:, i] * z[:, j] for i, j in pairs)])


def slow(z, z_new, residual, weight, n):
    """Ridge on standardised terms with weights, by its normal equations; values of new rows."""
    A, B = terms_of(z), terms_of(z_new)
    mean = np.average(A, axis=0, weights=weight)
    sd = np.sqrt(np.average((A - mean) ** 2, axis=0, weights=weight))
    A, B = (A - mean) / sd, (B - mean) / sd
    H = (A * weight[:, None]).T @ A / weight.sum() + A.shape[1] / n * np.eye(A.shape[1])
    level = residual.sum() / weight.sum()
    return level + B @ np.linalg.solve(H, A.T @ (residual - weight * level) / weight.sum())


def test_each_problem_is_a_ridge_regression_of_its_residuals(problem, monkeypatch):
    stack, objective = problem
    monkeypatch.setattr(quadratic, "ROWS_AT_ONCE", 7)  # sums over parts of the rows
    monkeypatch.setattr(quadratic, "PROBLEMS_AT_ONCE", 4)
    fitted = quadratic.fit_quadratic(objective, stack)
    rows, weight = stack.rows("train")
    with torch.no_grad():
        batch, new = stack.batch(rows), stack.batch(stack.rows("hold")[0])
        Z, T_raw, T_pre, Y_raw = objective.forward(batch)
        Z_new = objective.forward(new)[0]
        found = fitted(Z_new)
    for i in range(stack.P):
        w, z, z_new = weight[i].numpy(), Z[i].numpy(), Z_new[i].numpy()
        t, y = batch.T[i].numpy(), batch.Y[i].numpy()
        y = y - 0.7 * t if objective.coupled else y
        binary = stack.binary_T[i, 0]
        p = expit(T_raw[i].numpy()) if binary else T_raw[i].numpy()
        np.testing.assert_allclose(p, T_pre[i])
        information = w * np.maximum(p * (1 - p), 1e-3) if binary else w
        of_T, of_Y = list(READS["T"]), list(READS["Y"])
        m = slow(z[:, of_T], z_new[:, of_T], w * (t - p), information, w.sum())
        f = slow(z[:, of_Y], z_new[:, of_Y], w * (y - Y_raw[i].numpy()), w, w.sum())
        np.testing.assert_allclose(found[i], np.column_stack([m, f]), rtol=1e-7, atol=1e-9)


def test_a_latent_that_never_varies_does_no_harm(problem):
    stack, objective = problem
    with torch.no_grad():
        objective.net.W_2[:, :, 0] = 0.0
        objective.net.b_2[:, :, 0] = 1.0
        fitted = quadratic.fit_quadratic(objective, stack)
    assert all(part.isfinite().all() for part in fitted)


def test_a_product_that_a_short_training_misses_is_learned():
    """After three epochs a product of two columns still confounds; half of the bias goes."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((2000, 4))
    T = X[:, 0] * X[:, 1] + rng.standard_normal(2000)
    y = T + 2 * X[:, 0] * X[:, 1] + rng.standard_normal(2000)
    errors = []
    for own in (False, True):
        network = Network(epochs=3, gates=False, quadratic=own)
        effect = DDML(network, score="partially_linear", random_state=0)
        errors.append(abs(effect.fit(X, y, treatment=T).effect_ - 1))
    assert errors[1] < 0.5 * errors[0]


@pytest.mark.parametrize("seed", range(2))
def test_outcomes_per_arm_have_none(seed):
    """Squares of a column with a long tail gave propensities near 1, and weights without bound."""
    rng = np.random.RandomState(seed)
    X = np.column_stack([np.exp(1.5 * rng.standard_normal(600)), rng.standard_normal((600, 3))])
    T = rng.random_sample(600) < 1 / (1 + np.exp(1.5 + 0.2 * X[:, 1]))
    y = T + 0.1 * X[:, 0] + X[:, 1] + rng.standard_normal(600)
    found = []
    for own in (False, True):
        network = Network(epochs=5, gates=False, quadratic=own)
        effect = DDML(network, score="interactive", random_state=0).fit(X, y, treatment=T)
        found.append((effect.effect_, effect.stderr_))
    assert found[0] == found[1]


def test_networks_with_shrinkage_have_none():
    assert Network().settings(label=False).quadratic
    assert not Network(shrinkage=5.0).settings(label=False).quadratic
    assert not Network(quadratic=False).settings(label=False).quadratic
    with pytest.raises(ValueError, match="quadratic must be"):
        DDML(Network(quadratic="yes")).fit(np.eye(30), np.arange(30), treatment=np.arange(30) % 7)
