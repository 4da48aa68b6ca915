"""Smooth models in closed form, against slow twins, and when a network is taken instead."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal
from sklearn.linear_model import BayesianRidge, LogisticRegression

from ddml_fs import DDML
from ddml_fs.datasets import make_effect_data
from ddml_fs.engine import smooth
from ddml_fs.engine.plan import Fold


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
    _, evidence = smooth.by_evidence(F, y, 4)
    assert evidence - 0.5 * len(y) * np.log(2 * np.pi) == pytest.approx(-best, abs=0.02)


def test_one_penalty_is_bayesian_ridge(features):
    F, y = features
    w, _ = smooth.by_evidence(F, y, F.shape[1])
    twin = BayesianRidge(max_iter=1000, fit_intercept=False).fit(F, y)
    np.testing.assert_allclose(w, twin.coef_, atol=1e-3)


def test_smooth_beats_a_line_where_the_truth_is_bent_and_equals_it_where_not():
    rng = np.random.default_rng(1)
    A, B = rng.standard_normal((2, 300, 4))
    for truth, least in ((lambda x: np.sin(2 * x[:, 0]) + x[:, 1], 0.5), (lambda x: x[:, 1], None)):
        y = truth(A) + 0.3 * rng.standard_normal(300)
        error = np.mean((smooth.Smooth(A, y, 0).predict(B) - truth(B)) ** 2)
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
    np.testing.assert_allclose(smooth.Smooth(A, np.full(40, scale), 0).predict(new), scale)
    exact = smooth.Smooth(A, scale * A[:, 0], 0).predict(new)
    np.testing.assert_allclose(exact, scale * new[:, 0], atol=0.02 * scale)
    few = smooth.Smooth(A[:2], scale * A[:2, 0], 0).predict(new)
    assert np.isfinite(few).all()


def test_propensity_is_shrunken_logistic_regression():
    """λ = 10·D/n a row is C = 1/(10·D) of scikit-learn, on standardised columns."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((200, 5)) * [1, 2, 3, 4, 5]
    T = (rng.random(200) < 1 / (1 + np.exp(-X[:, 0]))).astype(float)
    rows, new = np.arange(150), np.arange(150, 200)
    m, mu = smooth.closed_form(X, T, X[:, 1] + T, rows, new, 0)
    scaled = (X - X[rows].mean(0)) / X[rows].std(0)
    twin = LogisticRegression(C=1 / 50, tol=1e-8).fit(scaled[rows], T[rows])
    np.testing.assert_allclose(m, twin.predict_proba(scaled[new])[:, 1], atol=1e-4)
    np.testing.assert_allclose(mu[1] - mu[0], 1, atol=0.05)


def test_a_network_counts_only_where_it_is_clearly_better():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 3))
    T = (rng.random(400) < 0.5).astype(float)
    mu = np.stack([np.sign(X[:, 0]) * 5, X[:, 1]])  # a jump, which no smooth model finds
    Y = np.where(T == 1, mu[1], mu[0]) + 0.5 * rng.standard_normal(400)
    fold = Fold(np.arange(200), np.arange(200, 300), np.arange(300, 400), 0)
    network = mu + [[0.0], [1.0]] * rng.standard_normal((2, 400))  # right in one arm
    valid, hold = ((np.full(100, 0.5), network[:, rows]) for rows in (fold.valid, fold.hold))
    m, found, shares = smooth.weighed(X, T, Y, fold, valid, hold, 0)
    assert shares[1:].tolist() == [1, 0]
    np.testing.assert_array_equal(found[0], mu[0, fold.hold])
    own_m, own_mu = smooth.closed_form(X, T, Y, fold.train, fold.hold, 0)
    np.testing.assert_allclose(m, shares[0] * 0.5 + (1 - shares[0]) * own_m)
    np.testing.assert_array_equal(found[1], own_mu[1])


def test_gains_within_chance_do_not_count():
    """Gains with mean g and standard deviation 1, of 100 rows: 10·g standard errors."""
    rng = np.random.default_rng(4)
    noise = rng.standard_normal(100)
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    for gain, share in ((-1, 0), (0.1, 0), (0.2, 0.5), (0.3, 1), (1, 1)):
        assert smooth.share_of(np.zeros(100), gain + noise) == pytest.approx(share)
    assert smooth.share_of(np.zeros(1), np.ones(1)) == 0  # one row says nothing


def test_many_rows_trust_the_network_and_few_do_not():
    data = make_effect_data("binary", random_state=0)
    model = DDML(score="interactive", random_state=0)
    model.fit(data.X, data.y, treatment=data.treatment)
    assert (model.network_share_ > 0.9).all()  # bent surfaces, 6000 rows
    assert model.effect_ == pytest.approx(5, abs=3 * model.stderr_)
    few = np.arange(300)
    model.fit(data.X[few], data.y[few], treatment=data.treatment[few])
    assert model.network_share_["m"] < 0.5


def test_ridge_with_the_interactive_score_is_the_closed_forms_alone():
    data = make_effect_data("binary", n_samples=400, random_state=1)
    table = np.column_stack([data.treatment, data.X])
    model = DDML("ridge", score="interactive", random_state=0).fit(table, data.y, treatment=0)
    alone = DDML("ridge", score="interactive", random_state=0)
    alone.fit(data.X, data.y, treatment=data.treatment)
    pd.testing.assert_frame_equal(model.nuisances_, alone.nuisances_)
    (problem, *_) = alone._plan(data.y, data.treatment, True, data.treatment)
    fold = problem.fold
    m, mu = smooth.closed_form(data.X, data.treatment, data.y, fold.train, fold.hold, problem.seed)
    found = alone.nuisances_.iloc[fold.hold]
    np.testing.assert_allclose(found["m"], m)
    np.testing.assert_allclose(found[["mu_0", "mu_1"]].T, mu)
    np.testing.assert_allclose(found["g"], mu[0] + m * (mu[1] - mu[0]))
    other = DDML("ridge", score="interactive", shrinkage=100.0, random_state=0)
    other.fit(data.X, data.y, treatment=data.treatment)
    assert other.nuisances_["m"].std() < alone.nuisances_["m"].std()


def test_without_blend_the_network_stands_alone():
    data = make_effect_data("binary", n_samples=300, random_state=1)
    options = {"score": "interactive", "epochs": 3, "random_state": 0}
    alone, blended = (
        DDML(blend=blend, **options).fit(data.X, data.y, treatment=data.treatment)
        for blend in (False, True)
    )
    assert (alone.network_share_ == 1).all()
    assert (blended.network_share_ < 1).all()
    network = DDML(epochs=3, random_state=0).fit(data.X, data.y, treatment=data.treatment)
    np.testing.assert_allclose(alone.nuisances_["m"], network.nuisances_["m"])
