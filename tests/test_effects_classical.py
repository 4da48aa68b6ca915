"""The effect baselines that are no networks of ours, on data with a known effect."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn import config_context
from sklearn.model_selection import StratifiedKFold

from ddml_fs.baselines import naive_difference
from ddml_fs.engine.predictions import Predictions
from ddml_fs.scores import Interactive
from experiments.baselines.effects import (
    BART,
    KNN,
    OLS1,
    OLS2,
    AIPWBoosting,
    AIPWForest,
    AIPWPerceptron,
    CausalForest,
    DMLBoosting,
    DMLForest,
    DMLPerceptron,
)
from experiments.baselines.effects.boosting import boosters

N = 800
# With noise of unit variance, the true nuisances give the effect with a standard error of
# 1/√(N·E[v²]): 0.085 for the binary treatment, where E[v²] is 0.17, and 0.035 for the continuous.
TOLERANCE = {"binary": 4 * 0.085, "continuous": 4 * 0.035}


def draw(kind, slope=0.0):
    """X, y, t, each row's effect, and E[T | X]; |x₀| confounds, which no line sees.

    The effect is 2 + slope·x₁; where it varies, the treatment is the likelier the larger it is.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 3))
    c = np.abs(X[:, 0])
    effects = 2 + slope * X[:, 1]
    if kind == "binary":
        m = expit(2.5 * (c - 0.8) + (slope > 0) * X[:, 1])
        t = rng.binomial(1, m).astype(float)
    else:
        m = c
        t = m + rng.standard_normal(N)
    return X, effects * t + 3 * c + rng.standard_normal(N), t, effects, m


def name(value):
    return type(value).__name__ if hasattr(value, "fit") else str(value)


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        (AIPWBoosting(), "binary"),
        (AIPWForest(n_folds=2), "binary"),
        (AIPWPerceptron(), "binary"),
        (BART(n_burn=50, n_draws=50), "binary"),
        (BART(n_burn=50, n_draws=50), "continuous"),
        (CausalForest(n_estimators=100), "binary"),
        (CausalForest(n_estimators=100), "continuous"),
        (DMLBoosting(), "binary"),
        (DMLBoosting(), "continuous"),
        (DMLForest(n_folds=2), "binary"),
        (DMLForest(n_folds=2), "continuous"),
        (DMLPerceptron(), "binary"),
        (DMLPerceptron(), "continuous"),
    ],
    ids=name,
)
def test_effect_is_found_where_lines_fail(method, kind):
    X, y, t, *_ = draw(kind)
    assert naive_difference(y, t).theta - 2 > 3 * TOLERANCE[kind]
    assert OLS1().fit(X, y, treatment=t).effect_ - 2 > 3 * TOLERANCE[kind]
    with config_context(enable_metadata_routing=True):  # as other libraries may leave it
        method.fit(X, y, treatment=t)
    assert abs(method.effect_ - 2) < TOLERANCE[kind]
    low, high = method.conf_int()
    assert low < method.effect_ < high
    assert 0.5 * TOLERANCE[kind] / 4 < method.stderr_ < 1.5 * TOLERANCE[kind]


@pytest.mark.parametrize(
    "method", [BART(n_burn=50, n_draws=50), CausalForest(n_estimators=40)], ids=name
)
def test_targets(method):
    """All rows and the treated, where their mean effects differ."""
    X, y, t, effects, m = draw("binary", slope=3.0)
    rows = {"ate": t >= 0, "att": t == 1}
    # What a unit of noise weighs in the efficient score of either target.
    weights = {"ate": t / m + (1 - t) / (1 - m), "att": (t + (1 - t) * m / (1 - m)) / t.mean()}
    gap = effects[rows["att"]].mean() - effects.mean()
    for target, row in rows.items():
        tolerance = 4 * np.sqrt(np.mean(weights[target] ** 2) / N)
        found = method.set_params(target=target).fit(X, y, treatment=t).effect_
        assert abs(found - effects[row].mean()) < tolerance < gap


def test_neighbours_find_the_effect():
    """In one dimension: the bias of matching would show in more."""
    X, y, t, *_ = draw("binary")
    assert abs(KNN().fit(X[:, :1], y, treatment=t).effect_ - 2) < TOLERANCE["binary"]


@pytest.fixture
def linear_data():
    """Linear in each arm, with effects 1 + 2·x₀ and noise that grows with |x₁|."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 2))
    t = rng.binomial(1, expit(X.sum(1))).astype(float)
    noise = (0.5 + np.abs(X[:, 1])) * rng.standard_normal(400)
    return X, 2 * X[:, 1] + t * (1 + 2 * X[:, 0]) + noise, t, 1 + 2 * X[:, 0]


@pytest.mark.parametrize("target", ["ate", "att"])
def test_ols_2(linear_data, target):
    X, y, t, effects = linear_data
    truth = effects[t == 1].mean() if target == "att" else effects.mean()
    model = OLS2(target).fit(X, y, treatment=t)
    assert abs(model.effect_ - truth) < 3 * model.stderr_
    assert naive_difference(y, t).theta - truth > 3 * model.stderr_
    rng = np.random.default_rng(0)
    draws = [rng.integers(len(y), size=len(y)) for _ in range(400)]
    again = [OLS2(target).fit(X[i], y[i], treatment=t[i]).effect_ for i in draws]
    assert model.stderr_ == pytest.approx(np.std(again), rel=0.15)  # √(1/800) is 0.035


@pytest.mark.parametrize("method", [OLS1(), OLS2()], ids=name)
def test_collinear_columns_change_nothing(linear_data, method):
    X, y, t, _ = linear_data
    alone = method.fit(X, y, treatment=t).effect_, method.stderr_
    method.fit(np.column_stack([X, X.sum(1), np.ones(len(X))]), y, treatment=t)
    assert (method.effect_, method.stderr_) == pytest.approx(alone, rel=1e-8)


@pytest.mark.parametrize("target", ["ate", "att"])
def test_neighbours_one_by_one(linear_data, target):
    X, y, t, _ = linear_data
    z = X / X.std(0)
    effects = []
    for i in range(len(y)):
        other = np.flatnonzero(t != t[i])
        nearest = other[np.argsort(((z[other] - z[i]) ** 2).sum(1))[:3]]
        effects.append((2 * t[i] - 1) * (y[i] - y[nearest].mean()))
    expected = np.mean(effects, where=(t == 1) | (target == "ate"))
    model = KNN(target, n_neighbors=3).fit(X * [1, 100], y, treatment=t)  # units do not matter
    assert model.effect_ == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("target", ["ate", "att"])
def test_aipw_step_by_step(linear_data, target):
    X, y, t, _ = linear_data
    m, mu = np.empty(len(y)), np.empty((2, len(y)))
    for rest, fold in StratifiedKFold(3, shuffle=True, random_state=4).split(X, t):
        regressor, classifier = boosters(4)
        m[fold] = classifier.fit(X[rest], t[rest]).predict_proba(X[fold])[:, 1].clip(0.2, 0.8)
        for a in (0, 1):
            arm = rest[t[rest] == a]
            mu[a, fold] = regressor.fit(X[arm], y[arm]).predict(X[fold])
    assert np.mean((m == 0.2) | (m == 0.8)) > 0.05  # so that the clipping is seen
    expected = Interactive(target).moments(t, y, Predictions(m, mu[0], *mu))
    model = AIPWBoosting(target, random_state=4, n_folds=3, clip=0.2).fit(X, y, treatment=t)
    assert model.effect_ == pytest.approx(expected.theta, rel=1e-6)
    assert model.stderr_ == pytest.approx(expected.stderr, rel=1e-6)


@pytest.mark.parametrize("method", [OLS2(), KNN(), AIPWBoosting()], ids=name)
def test_binary_methods_refuse_other_treatments(method):
    X, y, t, *_ = draw("continuous")
    with pytest.raises(ValueError, match="zeros and ones"):
        method.fit(X, y, treatment=t)


def test_bart_is_seeded():
    X, y, t, *_ = draw("binary")
    a, b, c = (
        BART(random_state=seed, n_burn=0, n_draws=5).fit(X, y, treatment=t).draws_
        for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)
