"""Scores and standard errors against hand computation and against DoubleML."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from doubleml import DoubleMLData, DoubleMLIRM, DoubleMLPLR
from scipy.optimize import brentq
from scipy.special import expit, logit
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

from ddml_fs import DDML
from ddml_fs.scores import (
    Interactive,
    Logistic,
    PartiallyLinear,
    residual_on_residual,
    resolve_score,
)


def test_partially_linear_by_hand():
    v, e = np.array([1.0, -2.0, 0.5]), np.array([2.0, -3.0, 2.0])
    theta = (1 * 2 + 2 * 3 + 0.5 * 2) / (1 + 4 + 0.25)
    psi = v * (e - theta * v)
    stderr = np.sqrt(np.sum(psi**2)) / np.sum(v**2)
    score = PartiallyLinear()
    moments = score.of_residuals(v, e, dispersion=score.dispersion(e))
    assert moments.theta == pytest.approx(theta)
    assert moments.theta == pytest.approx(residual_on_residual(v, e))
    assert moments.stderr == pytest.approx(stderr)
    assert moments.influence.mean() == pytest.approx(0, abs=1e-12)
    # Model-based: σ² / Σv².
    assert moments.model_stderr == pytest.approx(np.sqrt(np.mean(e**2) / np.sum(v**2)))


def test_logistic_by_hand():
    """θ is the root of Σ v·(y − p), where p has the log-odds of g, plus θv."""
    v, g, y = np.array([1.0, -2.0, 0.5]), np.array([0.5, 0.2, 0.9]), np.array([1.0, 1.0, 0.0])

    def rest(theta):
        return y - expit(logit(g) + theta * v)

    theta = brentq(lambda theta: np.sum(v * rest(theta)), -10, 10, xtol=1e-12)
    p = y - rest(theta)
    information = np.sum(v**2 * p * (1 - p))
    moments = Logistic().of_residuals(v, y - g, g, 1.0)
    assert moments.theta == pytest.approx(theta)
    assert moments.model_stderr == pytest.approx(1 / np.sqrt(information))
    np.testing.assert_allclose(moments.influence, 3 * v * rest(theta) / information, atol=1e-6)


def test_logistic_is_a_regression_with_an_offset():
    """Where g is constant, θ and its error are those of a logistic regression on v alone."""
    rng = np.random.default_rng(0)
    v = rng.standard_normal(300)
    y = rng.binomial(1, expit(1.5 * v)).astype(float)  # a large effect
    moments = Logistic().of_residuals(v, y - 0.5, np.full(300, 0.5), 1.0)
    options = {"C": np.inf, "fit_intercept": False, "tol": 1e-10}
    twin = LogisticRegression(**options).fit(v[:, None], y)
    assert moments.theta == pytest.approx(twin.coef_[0, 0], rel=1e-4)


@pytest.mark.parametrize("sign", [1, -1])
def test_logistic_where_a_treatment_tells_the_label(sign):
    """No root: the effect is large, in units of the treatment's residual, and finite."""
    v = np.linspace(-1, 1, 40) * 1e3
    y = (sign * v > 0).astype(float)
    moments = Logistic().of_residuals(v, y - 0.5, np.full(40, 0.5), 1.0)
    assert 5 < sign * moments.theta * v.std() < 20
    assert np.isfinite(moments.influence).all()


def test_interactive_by_hand():
    T = np.array([1.0, 0.0, 1.0, 0.0])
    Y = np.array([3.0, 1.0, 4.0, 0.0])
    hat = SimpleNamespace(
        m=np.array([0.5, 0.25, 0.8, 0.4]),
        mu_0=np.array([1.0, 1.0, 2.0, 0.5]),
        mu_1=np.array([2.5, 2.0, 4.5, 1.0]),
    )
    ate = np.mean(
        [
            1.5 + 0.5 / 0.5,
            1.0 - 0.0 / 0.75,
            2.5 - 0.5 / 0.8,
            0.5 + 0.5 / 0.6,
        ]
    )
    assert Interactive().moments(T, Y, hat).theta == pytest.approx(ate)
    att = (2.0 - 0.25 / 0.75 * 0.0 + 2.0 - 0.4 / 0.6 * -0.5) / 2
    moments = Interactive("att").moments(T, Y, hat)
    assert moments.theta == pytest.approx(att)
    assert moments.influence.mean() == pytest.approx(0, abs=1e-12)
    with pytest.raises(ValueError, match="no model-based standard error"):
        _ = moments.model_stderr


@pytest.mark.parametrize(
    "score", [PartiallyLinear(), Logistic(), Interactive(), Interactive("att")]
)
def test_a_matrix_of_treatments_is_one_treatment_after_another(score):
    rng = np.random.default_rng(0)
    T, Y = rng.binomial(1, 0.5, (50, 3)).astype(float), rng.binomial(1, 0.5, (50, 1)).astype(float)
    hat = SimpleNamespace(
        **{name: rng.uniform(0.1, 0.9, (50, 3)) for name in ("m", "g", "mu_0", "mu_1")}
    )
    together = score.moments(T, Y, hat)
    for f in range(3):
        own = SimpleNamespace(**{name: part[:, f] for name, part in vars(hat).items()})
        alone = score.moments(T[:, f], Y[:, 0], own)
        assert together.theta[f] == pytest.approx(alone.theta)
        assert together.stderr[f] == pytest.approx(alone.stderr)
        np.testing.assert_allclose(together.influence[:, f], alone.influence)


def test_auto_follows_the_treatment():
    assert resolve_score("auto", binary=True) == Interactive()
    assert resolve_score("auto", binary=False) == PartiallyLinear()
    with pytest.raises(ValueError, match="needs score='interactive'"):
        resolve_score("auto", binary=False, target="att")
    with pytest.raises(ValueError, match="clip needs"):
        resolve_score("auto", binary=False, clip=0.1)


def doubleml_twin(data, folds, models, score):
    """DoubleML with the same folds and the same models."""
    classifier, regressor = models
    table = DoubleMLData.from_arrays(data.X, data.y, data.treatment)
    options = {"n_folds": len(folds), "draw_sample_splitting": False}
    if score == "PLR":
        twin = DoubleMLPLR(table, regressor, classifier, **options)
    else:
        twin = DoubleMLIRM(table, regressor, classifier, score=score, **options)
    twin.set_sample_splitting([folds])
    return twin.fit()


@pytest.mark.parametrize("score", ["PLR", "ATE", "ATTE"])
@pytest.mark.parametrize(
    "models",
    [
        (LogisticRegression(), LinearRegression()),
        (
            RandomForestClassifier(30, min_samples_leaf=5, random_state=0),
            RandomForestRegressor(30, min_samples_leaf=5, random_state=0),
        ),
    ],
    ids=["linear", "forests"],
)
@pytest.mark.filterwarnings("ignore:.*propensities were clipped")
def test_a_pair_of_models_equals_doubleml(binary_data, models, score):
    """The same models, fitted on the same rows, and nothing else."""
    d = binary_data
    options = {"PLR": {"score": "partially_linear"}, "ATE": {}, "ATTE": {"target": "att"}}[score]
    ours = DDML(models, n_folds=3, random_state=0, **options)
    ours.fit(d.X, d.y, treatment=d.treatment)
    twin = doubleml_twin(d, ours.folds_, models, score)
    assert ours.effect_ == pytest.approx(twin.coef[0], rel=1e-6)
    assert ours.stderr_ == pytest.approx(twin.se[0], rel=1e-6)


@pytest.mark.parametrize("score", [PartiallyLinear(), Logistic()])
def test_a_treatment_without_residuals_in_single_precision(score):
    """The effect is 0, and nothing is divided by 0."""
    v, e, g = (np.full(20, a, dtype=np.float32) for a in (0, 0.5, 0.5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert score.of_residuals(v, e, g, 1.0).theta == 0
