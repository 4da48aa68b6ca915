"""Effects by group and their best linear predictor, against DoubleML, statsmodels and the truth."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from doubleml import DoubleMLData, DoubleMLIRM
from scipy import stats
from sklearn.linear_model import LinearRegression, LogisticRegression

from ddml_fs import DDML
from ddml_fs.heterogeneity import group_means

MODELS = LogisticRegression(), LinearRegression()


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((3000, 3)), columns=["age", "income", "noise"])
    T = (rng.random(3000) < 1 / (1 + np.exp(-X["age"]))).astype(int)
    y = (1.0 + 0.5 * X["age"]) * T + X["income"] + rng.standard_normal(3000)
    return X, y, T


@pytest.fixture(scope="module")
def effect(data):
    X, y, T = data
    return DDML(MODELS, random_state=0).fit(X, y, treatment=T)


def test_signals_have_the_effect_as_their_mean(effect):
    np.testing.assert_allclose(effect.signals().mean(), effect.effect_)


def test_groups_are_those_of_doubleml(data, effect):
    X, y, T = data
    table = DoubleMLData.from_arrays(X.to_numpy(), y.to_numpy(), T)
    peer = DoubleMLIRM(table, MODELS[1], MODELS[0], n_folds=5, draw_sample_splitting=False)
    peer.set_sample_splitting([effect.folds_])
    peer.fit()
    old = (X["age"] > 0).rename("old")
    gate = peer.gate(pd.get_dummies(old).add_prefix("old_"))
    theirs = gate.confint(level=0.95)
    ours = effect.by(old)
    np.testing.assert_allclose(ours["effect"], theirs["effect"], rtol=1e-6)
    # DoubleML's errors are of a regression with homoskedastic or HC errors: equal within 2 %.
    width = (theirs["97.5 %"] - theirs["2.5 %"]).to_numpy()
    np.testing.assert_allclose(ours["high"] - ours["low"], width, rtol=0.02)
    assert ours.index.name == "old"


def test_groups_hold_the_truth(data, effect):
    X = data[0]
    table = effect.by(X["age"], n_bins=5)
    assert len(table) == 5
    edges = np.quantile(X["age"], np.linspace(0, 1, 6))
    for k, (_, row) in enumerate(table.iterrows()):
        inside = X["age"].between(edges[k], edges[k + 1])
        truth = 1.0 + 0.5 * X["age"][inside].mean()
        assert row["joint_low"] < truth < row["joint_high"]
    assert (table["joint_low"] < table["low"]).all()


def test_joint_intervals_cover_all_groups():
    """With independent groups the joint quantile is exact: (1 + 0.95^(1/G)) / 2."""
    rng = np.random.default_rng(0)
    groups = pd.Series(np.repeat(np.arange(4), 200)).astype("category")
    held = []
    for _ in range(500):
        table = group_means(rng.standard_normal(800), groups, 0.95)
        held.append(((table["joint_low"] < 0) & (table["joint_high"] > 0)).all())
    # Three standard errors of a share of 500 draws.
    assert abs(np.mean(held) - 0.95) < 3 * np.sqrt(0.95 * 0.05 / 500)


def test_best_linear_predictor_is_least_squares(data, effect):
    X = data[0]
    table = effect.best_linear_predictor(X)
    twin = sm.OLS(effect.signals(), sm.add_constant(X)).fit(cov_type="HC1")
    np.testing.assert_allclose(table["slope"], twin.params, rtol=1e-6)
    np.testing.assert_allclose(table["stderr"], twin.bse, rtol=1e-6)
    low, high = table.loc["age", ["low", "high"]]
    assert low < 0.5 < high
    assert abs(table.loc["noise", "slope"] / table.loc["noise", "stderr"]) < stats.norm.ppf(0.9995)


def test_bad_input(data, effect):
    X, y, T = data
    with pytest.raises(ValueError, match="for each of the 3000 rows, got 10"):
        effect.by(X["age"][:10])
    with pytest.raises(ValueError, match="got 3000 missing"):
        effect.by(np.full(3000, np.nan))
    with pytest.raises(ValueError, match="at least 10 rows"):
        effect.by(np.arange(3000) < 3)
    linear = DDML(MODELS, score="partially_linear", random_state=0).fit(X, y, treatment=T)
    with pytest.raises(AttributeError, match="effects by group need"):
        linear.by(X["age"])
