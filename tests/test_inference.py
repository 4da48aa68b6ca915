"""Scores and standard errors against hand computation and against DoubleML."""

import numpy as np
import pytest
from doubleml import DoubleMLData, DoubleMLIRM, DoubleMLPLR
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold

from ddml_fs import inference
from ddml_fs.datasets import make_effect_data
from ddml_fs.engine.losses import residuals


def test_partially_linear_by_hand():
    v, e = np.array([1.0, -2.0, 0.5]), np.array([2.0, -3.0, 2.0])
    theta = (1 * 2 + 2 * 3 + 0.5 * 2) / (1 + 4 + 0.25)
    psi = v * (e - theta * v)
    stderr = np.sqrt(np.sum(psi**2)) / np.sum(v**2)
    estimate = inference.partially_linear(v, e)
    assert estimate.theta == pytest.approx(theta)
    assert estimate.stderr == pytest.approx(stderr)
    assert estimate.influence.mean() == pytest.approx(0, abs=1e-7)  # δ


def test_interactive_by_hand():
    T = np.array([1.0, 0.0, 1.0, 0.0])
    Y = np.array([3.0, 1.0, 4.0, 0.0])
    m = np.array([0.5, 0.25, 0.8, 0.4])
    mu = np.array([[1.0, 1.0, 2.0, 0.5], [2.5, 2.0, 4.5, 1.0]])
    ate = np.mean(
        [
            1.5 + 0.5 / 0.5,
            1.0 - 0.0 / 0.75,
            2.5 - 0.5 / 0.8,
            0.5 + 0.5 / 0.6,
        ]
    )
    assert inference.interactive(T, Y, m, mu).theta == pytest.approx(ate)
    att = (2.0 - 0.25 / 0.75 * 0.0 + 2.0 - 0.4 / 0.6 * -0.5) / 2
    estimate = inference.interactive(T, Y, m, mu, "att")
    assert estimate.theta == pytest.approx(att)
    assert estimate.influence.mean() == pytest.approx(0, abs=1e-12)


@pytest.fixture(scope="module")
def fitted_doubleml(binary_data):
    """DoubleML's estimates with simple models, and the held-out predictions they rest on."""
    d = binary_data
    data = DoubleMLData.from_arrays(d.X, d.y, d.treatment)
    split = [list(KFold(3, shuffle=True, random_state=0).split(d.X))]
    models = {
        "plr": DoubleMLPLR(
            data, LinearRegression(), LogisticRegression(), n_folds=3, draw_sample_splitting=False
        )
    }
    for score in ("ATE", "ATTE"):
        models[score] = DoubleMLIRM(
            data,
            LinearRegression(),
            LogisticRegression(),
            n_folds=3,
            score=score,
            draw_sample_splitting=False,
        )
    for model in models.values():
        model.set_sample_splitting(split)
        model.fit(store_predictions=True)
    return models


def test_partially_linear_equals_doubleml(binary_data, fitted_doubleml):
    model = fitted_doubleml["plr"]
    hat = {k: p[:, 0, 0] for k, p in model.predictions.items() if p is not None}
    v, e = residuals(binary_data.treatment, hat["ml_m"], binary_data.y, hat["ml_l"])
    estimate = inference.partially_linear(v, e)
    assert estimate.theta == pytest.approx(model.coef[0], rel=1e-6)
    assert estimate.stderr == pytest.approx(model.se[0], rel=1e-6)


@pytest.mark.parametrize(("target", "score"), [("ate", "ATE"), ("att", "ATTE")])
def test_interactive_equals_doubleml(binary_data, fitted_doubleml, target, score):
    model = fitted_doubleml[score]
    hat = {k: p[:, 0, 0] for k, p in model.predictions.items() if p is not None}
    mu = np.stack([hat["ml_g0"], hat.get("ml_g1", hat["ml_g0"])])
    m = np.clip(hat["ml_m"], 0.01, 0.99)
    estimate = inference.interactive(binary_data.treatment, binary_data.y, m, mu, target)
    assert estimate.theta == pytest.approx(model.coef[0], rel=1e-3)
    assert estimate.stderr == pytest.approx(model.se[0], rel=1e-2)


def test_median_counts_the_spread():
    influence = np.array([1.0, -1.0])
    estimates = [inference.Estimate(theta, influence) for theta in (1.0, 2.0, 4.0)]
    theta, stderr = inference.median_of(estimates)
    assert theta == 2.0
    # Squared: one half from each split, and 1, 0 and 4 from the spread; the median is 1.5.
    assert stderr == pytest.approx(np.sqrt(1.5))


@pytest.mark.parametrize("kind", ["binary", "continuous"])
def test_intervals_cover_with_true_nuisances(kind):
    """200 draws: the number covered is Binomial(200, 0.95), 181 being its 0.5 % quantile."""
    covered = 0
    for seed in range(200):
        d = make_effect_data(kind, n_samples=500, n_features=10, random_state=seed)
        estimate = inference.partially_linear(*residuals(d.treatment, d.m, d.y, d.g))
        low, high = inference.normal_interval(estimate.theta, estimate.stderr, 0.95)
        covered += low <= d.theta <= high
    assert covered >= 181


def test_normal_pvalue():
    assert inference.normal_pvalue(1.959964, 1.0) == pytest.approx(0.05, abs=1e-6)
    assert inference.normal_pvalue(0.0, 1.0) == 1.0
