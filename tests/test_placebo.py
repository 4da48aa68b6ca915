"""Placebo checks: a sound method passes, a biased one fails."""

import numpy as np
import pytest
from scipy import stats
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression

from ddml_fs import DDML
from ddml_fs.placebo import permute_within, strata_of, verdict_of


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((800, 4))
    T = X[:, 0] + rng.standard_normal(800)
    return X, 2.0 * T + X[:, 0] + X[:, 1] + rng.standard_normal(800), T


def test_a_sound_method_finds_nothing_where_there_is_nothing(data):
    X, y, T = data
    effect = DDML(LinearRegression(), random_state=0).fit(X, y, treatment=T)
    table = effect.placebo(X, y, treatment=T, n=40)
    assert table["passed"].all()
    # A mean of 40 standard normal values is within three standard errors of 0.
    assert (table["mean_z"].abs() < 3 / np.sqrt(40)).all()
    assert "as chance explains" in table.loc["outcome", "verdict"]


def test_a_method_that_adjusts_for_nothing_fails(data):
    """The outcome keeps its confounders, and a model of constants does not adjust for them."""
    X, y, T = data
    sound = DDML(LinearRegression(), random_state=0).fit(X, y, treatment=T)
    blind = DDML(DummyRegressor(), random_state=0).fit(X, y, treatment=T)
    blind.nuisances_, blind.effect_ = sound.nuisances_, sound.effect_
    table = blind.placebo(X, y, treatment=T, n=10, kinds=["outcome"])
    assert not table.loc["outcome", "passed"]
    assert "likely biased" in table.loc["outcome", "verdict"]


def test_an_interactive_effect(data):
    X, y, _ = data
    rng = np.random.default_rng(1)
    T = (rng.random(800) < 0.5).astype(int)
    effect = DDML("ridge", score="interactive", random_state=0).fit(X, y + T, treatment=T)
    table = effect.placebo(X, y + T, treatment=T, n=6, fraction=0.5)
    assert table["passed"].all()


def test_verdicts_reject_by_chance_as_often_as_they_say():
    rng = np.random.default_rng(0)
    failed = [not verdict_of(rng.standard_normal(20), "outcome")["passed"] for _ in range(2000)]
    assert np.mean(failed) < 0.01 + 3 * np.sqrt(0.01 * 0.99 / 2000)
    assert not verdict_of(rng.standard_normal(20) + 1.5, "outcome")["passed"]
    assert not verdict_of(3 * rng.standard_normal(40), "outcome")["passed"]


def test_permutations_stay_within_strata():
    rng = np.random.RandomState(0)
    m = rng.standard_normal(100)
    strata = strata_of(m)
    assert np.bincount(strata).tolist() == [10] * 10
    assert stats.spearmanr(m, strata).statistic > 0.99
    T = rng.standard_normal(100)
    permuted = permute_within(T, strata, rng)
    for k in range(10):
        np.testing.assert_array_equal(np.sort(T[strata == k]), np.sort(permuted[strata == k]))


def test_bad_input(data):
    X, y, T = data
    effect = DDML(LinearRegression(), random_state=0).fit(X, y, treatment=T)
    with pytest.raises(ValueError, match="kinds must be"):
        effect.placebo(X, y, treatment=T, kinds=["dose"])
    with pytest.raises(ValueError, match="rows of fit"):
        effect.placebo(X, y, treatment=T[:5])
