"""Features that separate the labels have no largest effect, and their intervals say so."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from ddml_fs import CausalFeatureSelector
from ddml_fs.cli.printing import plain
from ddml_fs.inference import separation


@pytest.fixture(scope="module")
def table():
    """Twelve rows have ``rare``, all with the label; ``turned`` is its opposite."""
    rng = np.random.RandomState(0)
    X = pd.DataFrame(rng.standard_normal((300, 3)), columns=list("abc"))
    y = (X["a"] + rng.standard_normal(300) > 0).to_numpy().astype(int)
    rare = np.zeros(300)
    rare[np.flatnonzero(y == 1)[:12]] = 1
    return X.assign(rare=rare, turned=1 - rare), y


@pytest.fixture(scope="module")
def selector(table):
    return CausalFeatureSelector(2, random_state=0).fit(*table)


def test_separation_equals_loops():
    rng = np.random.default_rng(0)
    for _ in range(200):
        X = np.column_stack([rng.integers(0, 2, (6, 3)), rng.standard_normal(6)])
        y = rng.permutation([0, 1, *rng.integers(0, 2, 4)])
        for x, side in zip(X.T, separation(X, y), strict=True):
            labels = [set(y[x == value]) for value in (1, 0)]
            above = labels[0] == {1} or labels[1] == {0}
            below = labels[0] == {0} or labels[1] == {1}
            two_values = set(x) == {0, 1}
            assert side == (two_values and above) - int(two_values and below)


def test_the_likelihood_has_no_maximum_there(table):
    """Without a penalty the coefficient grows as long as the solver runs, whatever the others."""
    X, y = table
    X = X[["a", "b", "c", "rare"]]
    coefficients = [
        LogisticRegression(C=C, max_iter=5000, tol=1e-10).fit(X, y).coef_[0, -1]
        for C in (1e2, 1e4, 1e6)
    ]
    assert np.diff(coefficients).min() > 2


def test_the_end_is_infinite(selector):
    assert selector.effects_["unbounded"].tolist() == [0, 0, 0, 1, -1]
    for joint in (False, True):
        interval = selector.conf_int(joint=joint)
        assert interval.loc["rare", "high"] == -interval.loc["turned", "low"] == np.inf
        assert interval.loc["rare", "low"] == pytest.approx(-interval.loc["turned", "high"])
        assert np.isfinite(interval.loc[["a", "b", "c"]]).all(axis=None)


def test_effects_on_the_mean_are_bounded(table):
    X, y = table
    found = CausalFeatureSelector(2, scale="mean", random_state=0).fit(X, y)
    assert np.isfinite(found.conf_int()).all(axis=None)
    assert not found.effects_["unbounded"].any()


def test_several_classes(table):
    X, y = table
    found = CausalFeatureSelector(2, random_state=0).fit(X, np.where(X["b"] > 0.8, 2, y))
    shown = found.effects_.loc["rare"]
    among = set(np.where(X["b"] > 0.8, 2, y)[X["rare"] == 1] == shown["class"])
    assert shown["unbounded"] == {1: 1, 0: -1}.get(min(among), 0) * (len(among) == 1)


def test_a_category_is_not_affected(table):
    X, y = table
    X = X[["a"]].assign(kind=np.where(X["rare"] == 1, "r", np.where(X["b"] > 0, "s", "t")))
    assert np.isfinite(CausalFeatureSelector(1, random_state=0).fit(X, y).conf_int()).all(axis=None)


def test_it_can_be_shown(selector):
    pytest.importorskip("matplotlib")
    assert "nan" not in selector._repr_html_()
    assert "∞" in selector._repr_html_()
    ax = selector.plot()
    low, high = ax.get_xlim()
    assert low < selector.effects_["std_effect"].min()
    assert np.isfinite([low, high]).all()
    json.dumps(plain(selector.conf_int()), allow_nan=False)
