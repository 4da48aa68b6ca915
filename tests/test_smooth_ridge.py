"""Smooth ridge regression in closed form, against slow twins."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal
from sklearn.linear_model import BayesianRidge

from ddml_fs.engine.smooth_ridge import SmoothRidge, by_evidence


@pytest.fixture
def features():
    rng = np.random.default_rng(0)
    F = rng.standard_normal((120, 10))
    F -= F.mean(0)
    w = np.r_[rng.standard_normal(4), 0.2 * rng.standard_normal(6)]
    y = F @ w + rng.standard_normal(120)
    return F, y - y.mean()


def test_evidence_is_the_largest_there_is(features):
    """The twin maximises the density of y ~ N(0, σ²I + s₁²F₁F₁ᵀ + s₂²F₂F₂ᵀ) numerically."""
    F, y = features

    def minus_log_density(log_variances):
        noise, first, second = np.exp(log_variances)
        K = noise * np.eye(len(y)) + first * F[:, :4] @ F[:, :4].T + second * F[:, 4:] @ F[:, 4:].T
        return -multivariate_normal.logpdf(y, cov=K)

    best = minimize(minus_log_density, np.zeros(3), method="Nelder-Mead").fun
    _, evidence = by_evidence(F, y, 4)
    assert evidence - 0.5 * len(y) * np.log(2 * np.pi) == pytest.approx(-best, abs=0.02)


def test_one_penalty_is_bayesian_ridge(features):
    F, y = features
    w, _ = by_evidence(F, y, F.shape[1])
    twin = BayesianRidge(max_iter=1000, fit_intercept=False).fit(F, y)
    np.testing.assert_allclose(w, twin.coef_, atol=1e-3)


def test_smooth_beats_a_line_where_the_truth_is_bent_and_equals_it_where_not():
    rng = np.random.default_rng(1)
    A, B = rng.standard_normal((2, 300, 4))
    for truth, least in ((lambda x: np.sin(2 * x[:, 0]) + x[:, 1], 0.5), (lambda x: x[:, 1], None)):
        y = truth(A) + 0.3 * rng.standard_normal(300)
        error = np.mean((SmoothRidge(A, y, 0).predict(B) - truth(B)) ** 2)
        line = np.linalg.lstsq(np.c_[A, np.ones(300)], y, rcond=None)[0]
        linear = np.mean((np.c_[B, np.ones(300)] @ line - truth(B)) ** 2)
        if least is None:
            assert error < linear + 0.3**2 * 20 / 300  # some twenty more weights at most
        else:
            assert error < least * linear


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_arms_that_are_constant_exact_or_tiny(scale):
    rng = np.random.default_rng(5)
    A = rng.standard_normal((40, 6))
    A[:, 5] = A[:, 4]  # a double
    new = rng.standard_normal((10, 6))
    new[:, 5] = new[:, 4]
    np.testing.assert_allclose(SmoothRidge(A, np.full(40, scale), 0).predict(new), scale)
    exact = SmoothRidge(A, scale * A[:, 0], 0).predict(new)
    np.testing.assert_allclose(exact, scale * new[:, 0], atol=0.02 * scale)
    few = SmoothRidge(A[:2], scale * A[:2, 0], 0).predict(new)
    assert np.isfinite(few).all()
