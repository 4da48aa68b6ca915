"""Gaussian processes for many problems at once, against scikit-learn one by one."""

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel
from sklearn.linear_model import LinearRegression

from ddml_fs.engine import gaussian_process
from ddml_fs.engine.gaussian_process import gp_predict


def problem(n, D=4, n_new=30, seed=0):
    """A bent and a linear effect in noise: rows, targets and new rows."""
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((n, D)), rng.standard_normal((n_new, D))
    return A, 3 + 2 * np.sin(2 * A[:, 0]) + A[:, -1] + 0.5 * rng.standard_normal(n), B


def twin(learned, D, **parameters):
    """scikit-learn's Gaussian process with our kernel and hyperparameters."""
    kernel = (
        ConstantKernel(learned.linear / D, (1e-6, 1e4)) * DotProduct(0.0, "fixed")
        + ConstantKernel(learned.smooth, (1e-6, 1e4)) * RBF(learned.lengths, (1e-3, 1e4))
        + WhiteKernel(learned.noise, (1e-6, 1e2))
    )
    return GaussianProcessRegressor(kernel, alpha=0.0, normalize_y=True, **parameters)


def objective(learned, D):
    """Log marginal likelihood plus log prior."""
    g = gaussian_process
    variances = np.array([learned.linear, learned.smooth, learned.noise])
    away = np.log(np.r_[variances / g.VARIANCE, learned.lengths / (g.LENGTH * np.sqrt(D))])
    away /= np.r_[np.full(3, g.VARIANCE_SD), np.full(D, g.LENGTH_SD)]
    return learned.evidence - 0.5 * away @ away


def test_predictions_and_evidence_are_those_of_scikit_learn():
    # The second is padded; the others are in the same batch.
    problems = [problem(90), problem(60, seed=1), problem(90, seed=2)]
    predictions, learned = gp_predict(problems, [0, 1, 2], return_learned=True)
    for (A, y, B), predicted, found in zip(problems, predictions, learned, strict=True):
        slow = twin(found, 4, optimizer=None).fit(A, y)
        np.testing.assert_allclose(predicted, slow.predict(B), atol=1e-6)
        assert found.evidence == pytest.approx(slow.log_marginal_likelihood_value_, abs=1e-6)


def test_predictions_use_all_rows_and_hyperparameters_few():
    A, y, B = problem(120)
    (predicted,), (found,) = gp_predict([(A, y, B)], [5], n_hyper=50, return_learned=True)
    np.testing.assert_allclose(
        predicted, twin(found, 4, optimizer=None).fit(A, y).predict(B), atol=1e-6
    )
    rows = np.random.default_rng(5).permutation(120)[:50]
    z = (y - y.mean()) / y.std()
    K = twin(found, 4).kernel(A[rows])
    value = -0.5 * (z[rows] @ np.linalg.solve(K, z[rows]) + np.linalg.slogdet(2 * np.pi * K)[1])
    assert found.evidence == pytest.approx(value, abs=1e-6)


def test_weights_divide_the_noise():
    """As scikit-learn's noise per row; integer weights are repeated rows, given the start."""
    A, y, B = problem(90)
    weight = np.random.default_rng(0).integers(1, 5, 90).astype(float)
    other = problem(60, seed=1)
    both, learned = gp_predict([(A, y, B, weight), other], [0, 1], return_learned=True)
    mean = np.average(y, weights=weight)
    sd = np.sqrt(np.average((y - mean) ** 2, weights=weight))
    slow = twin(learned[0], 4)
    slow = GaussianProcessRegressor(slow.kernel.k1, alpha=learned[0].noise / weight, optimizer=None)
    slow.fit(A, (y - mean) / sd)
    np.testing.assert_allclose(both[0], mean + sd * slow.predict(B), atol=1e-6)
    evidence = slow.log_marginal_likelihood_value_
    assert learned[0].evidence == pytest.approx(evidence, abs=1e-6)
    np.testing.assert_allclose(both[1], gp_predict([other], [1])[0], atol=1e-8)
    source = np.repeat(np.arange(90), weight.astype(int))
    start = {"seeds": [0], "n_steps": 1}
    (weighted,) = gp_predict([(A, y, B, weight)], **start)
    (repeated,) = gp_predict([(A[source], y[source], B)], **start)
    np.testing.assert_allclose(weighted, repeated, atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_gradient_is_that_of_differences(weighted):
    X, y, _ = problem(40, D=3)
    X, w = gaussian_process._padded([X, X[:25]], "cpu")
    y, _ = gaussian_process._padded([y - 3, y[:25] - 3], "cpu")
    generator = torch.Generator().manual_seed(0)
    theta = 0.3 * torch.randn((2, 6), dtype=torch.float64, generator=generator)
    prior = torch.zeros(6).double(), torch.ones(6).double()
    ratio = w * (torch.rand(w.shape, generator=generator).double() + 0.2) if weighted else w

    def value(theta):
        return gaussian_process._objective(theta, X, y, w, ratio, *prior)[0]

    _, gradient, curvature = gaussian_process._objective(theta, X, y, w, ratio, *prior)
    for j, unit in enumerate(torch.eye(6).double()):
        slope = (value(theta + 1e-5 * unit) - value(theta - 1e-5 * unit)) / 2e-5
        np.testing.assert_allclose(gradient[:, j], slope, atol=1e-6)
    assert (torch.linalg.eigvalsh(curvature) >= 1).all()  # that of the prior is 1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # columns off
@pytest.mark.parametrize("n", [60, 150])
def test_few_steps_reach_the_optimum(n):
    A, y, B = problem(n)
    (found,) = gp_predict([(A, y, B)], [0], return_learned=True)[1]
    (longer,) = gp_predict([(A, y, B)], [0], n_steps=100, return_learned=True)[1]
    assert objective(longer, 4) - 0.5 < objective(found, 4) <= objective(longer, 4) + 1e-6
    # Without our prior, scikit-learn finds more likelihood: at most a little on four columns.
    best = twin(found, 4).fit(A, y).log_marginal_likelihood_value_
    assert best - 4 < found.evidence < best + 1e-6
    again = twin(longer, 4, optimizer=None).fit(A, y)
    assert longer.evidence == pytest.approx(again.log_marginal_likelihood_value_, abs=1e-6)


def test_no_problem_depends_on_the_others(monkeypatch):
    sizes = 40, 100, 7, 100, 350
    problems = [problem(n, n_new=10 + n % 7, seed=n + k) for k, n in enumerate(sizes)]
    seeds = [3, 1, 4, 1, 5]
    parameters = {"n_hyper": 330}
    alone = [gp_predict([p], [s], **parameters)[0] for p, s in zip(problems, seeds, strict=True)]
    chunks = []
    solve = gaussian_process._solve
    monkeypatch.setattr(
        gaussian_process, "_solve", lambda *a: chunks.append(len(a[0])) or solve(*a)
    )
    for memory, expected in ((2**40, [5]), (8 * 6 * 2 * 100**2, [1, 2, 2]), (1, [1] * 5)):
        monkeypatch.setitem(gaussian_process.MEMORY, "cpu", memory)
        chunks.clear()
        for one, other in zip(gp_predict(problems, seeds, **parameters), alone, strict=True):
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, atol=1e-8)
        assert chunks == expected


def test_a_bent_function_of_two_columns_is_found():
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((320, 8)), rng.standard_normal((500, 8))

    def truth(X):
        return np.sin(2 * X[:, 0]) * 2 + X[:, 1] ** 2

    y = truth(A) + 0.5 * rng.standard_normal(320)
    (predicted,), (found,) = gp_predict([(A, y, B)], [0], return_learned=True)
    line = LinearRegression().fit(A, y).predict(B)
    assert np.mean((predicted - truth(B)) ** 2) < 0.1 * np.mean((line - truth(B)) ** 2)
    assert found.lengths[:2].max() < 4 < 15 < found.lengths[2:].min()
    assert found.noise * y.var() == pytest.approx(0.25, rel=0.3)


def test_noise_is_not_followed():
    rng = np.random.default_rng(1)
    A, B = rng.standard_normal((2, 200, 10))
    (predicted,) = gp_predict([(A, rng.standard_normal(200), B)], [0])
    assert predicted.std() < 0.3


@pytest.mark.parametrize(
    "kind", ["constant", "two", "one", "column", "copies", "D=1", "D=60", "0/1"]
)
def test_odd_data(kind):
    A, y, B = problem(80, D={"D=1": 1, "D=60": 60}.get(kind, 3))
    if kind == "constant":
        y = np.full(80, 0.1)
    elif kind in ("one", "two"):
        A, y = A[: 1 + (kind == "two")], y[: 1 + (kind == "two")]
    elif kind == "column":
        A, B = A * [1, 0, 1], B * [1, 0, 1]
    elif kind == "copies":
        A, y = np.repeat(A[:20], 4, axis=0), np.repeat(y[:20], 4)
    elif kind == "0/1":
        y = (y > 3).astype(int)
    (predicted,), (found,) = gp_predict([(A, y, B)], [0], return_learned=True)
    assert predicted.shape == (30,)
    assert np.isfinite(predicted).all()
    assert np.isfinite([found.evidence, found.noise, *found.lengths]).all()
    if kind in ("constant", "one"):
        np.testing.assert_allclose(predicted, y[0], rtol=1e-12)


def test_inputs_that_are_not_standardised_give_numbers():
    A, y, B = problem(80)
    (predicted,) = gp_predict([(1e7 * A, y, 1e7 * B)], [0])
    assert np.isfinite(predicted).all()


def test_seed_and_units_of_the_target():
    A, y, B = problem(120)
    first, again, other = (gp_predict([(A, y, B)], [s], n_hyper=60)[0] for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3
    (moved,) = gp_predict([(A, 1e3 * y - 50, B)], [0], n_hyper=60)
    np.testing.assert_allclose(moved, 1e3 * first - 50, atol=1e-5)
