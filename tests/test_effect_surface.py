"""Outcomes per arm from the outcome of all rows and a stacked effect."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from ddml_fs import DDML
from ddml_fs.nuisances import Stacked
from ddml_fs.nuisances.effect_surface import arms_are_better, effect_weights, outcomes_by_effect


@pytest.fixture
def rows():
    """A 0/1 treatment with a varying effect, and its true nuisances."""
    rng = np.random.default_rng(0)
    n = 2000
    x, weight = rng.standard_normal(n), rng.uniform(0.5, 1.5, n)
    m, tau = expit(x), 1 + x
    t = rng.binomial(1, m).astype(float)
    mu_0 = np.sin(2 * x)
    y = mu_0 + tau * t + rng.standard_normal(n)
    return {"x": x, "m": m, "tau": tau, "t": t, "y": y, "mu_0": mu_0, "weight": weight}


def test_weights_minimise_the_loss_of_the_r_learner(rows):
    v, e = rows["t"] - rows["m"], rows["y"] - rows["mu_0"] - rows["m"] * rows["tau"]
    effects = np.stack([1 + 2 * rows["x"], -rows["x"], rows["x"] ** 2])
    weights, surfaces = effect_weights(v, e, effects, rows["weight"])

    def loss(w):
        return np.average((e - v * (w @ surfaces)) ** 2, weights=rows["weight"])

    slow = minimize(
        loss,
        np.full(4, 0.25),
        bounds=[(0, 1)] * 4,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-12},
    )
    assert weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(weights, slow.x, atol=1e-4)
    constant = np.average(v * e, weights=rows["weight"]) / np.average(v**2, weights=rows["weight"])
    np.testing.assert_allclose(surfaces[0], constant)


def test_true_nuisances_give_the_true_arms(rows):
    arms = np.stack([np.zeros((1, 2000)), rows["tau"][None]])  # their difference is the effect
    g = rows["mu_0"] + rows["m"] * rows["tau"]
    known = rows["t"], rows["y"], rows["m"], g, arms, rows["weight"]
    mu, weights = outcomes_by_effect(*known, label=False)
    assert weights[0] > 0.9
    np.testing.assert_allclose(mu[0], rows["mu_0"], atol=0.3)
    np.testing.assert_allclose(mu[1] - mu[0], weights[0] * rows["tau"] + (1 - weights[0]), atol=0.1)
    clipped, _ = outcomes_by_effect(*known, label=True)
    assert clipped.min() > 0
    assert clipped.max() < 1


def test_arms_are_preferred_only_if_they_are_clearly_better(rows):
    t, y, weight = rows["t"], rows["y"], rows["weight"]
    arms = np.stack([rows["mu_0"], rows["mu_0"] + rows["tau"]])
    noise = np.random.default_rng(1).standard_normal((2, 2000))
    assert arms_are_better(t, y, arms + noise, arms, weight)
    assert not arms_are_better(t, y, arms, arms + noise, weight)
    assert not arms_are_better(t, y, arms + 1e-3 * noise, arms, weight)
    assert not arms_are_better(t, y, arms, arms, weight)


def test_effects_that_vary_a_lot_keep_their_average(rows):
    rng = np.random.default_rng(2)
    X = np.column_stack([rows["x"], rng.standard_normal((2000, 3))])
    tau = 1 + 2 * (X[:, 0] > 0.5)  # treated rows have larger effects
    y = np.sin(2 * X[:, 0]) + tau * rows["t"] + rng.standard_normal(2000)
    model = DDML(Stacked(["smooth", "sparse"]), random_state=0).fit(X, y, treatment=rows["t"])
    assert abs(model.effect_ - tau.mean()) < 3.5 * model.stderr_
    assert model.nuisance_weights_["effect"].sum() > 0.9
