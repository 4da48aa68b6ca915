"""A screen: a ridge sweep decides which features are swept by slower nuisances."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from ddml_fs import CausalFeatureSelector
from ddml_fs.datasets import make_domain_data
from ddml_fs.nuisances import shrunken_network

NAMES = ["effect", "stderr", "tau", "effect[1]"]


@pytest.fixture(scope="module")
def rows():
    data = make_domain_data(2, 200, 4, 2, 6, kind="continuous", n_targets=0, random_state=0)
    return data.X, data.y, data.sample_domain


def fit(rows, n_features=3, **options):
    options = {"nuisance": LinearRegression(), "ranking": "tstat", "random_state": 0} | options
    return CausalFeatureSelector(n_features, **options).fit(*rows)


@pytest.mark.parametrize(
    "nuisance",
    [LinearRegression(), shrunken_network().set_params(epochs=3)],
    ids=["estimators", "networks"],
)
def test_swept_features_have_the_effects_of_a_full_sweep(rows, nuisance):
    full, some = (fit(rows, nuisance=nuisance, screen=m).effects_ for m in (None, 5))
    swept = some["df"] > 0
    assert swept.sum() == 5
    np.testing.assert_allclose(some.loc[swept, NAMES], full.loc[swept, NAMES], atol=1e-5)
    np.testing.assert_allclose(some.loc[swept, "pvalue"], full.loc[swept, "pvalue"], atol=1e-5)


def test_the_others_follow_in_the_order_of_the_ridge_sweep(rows):
    some, ridge = fit(rows, screen=5).effects_, fit(rows, nuisance="ridge").effects_
    swept = some["df"] > 0
    assert set(some.index[swept]) == set(ridge.index[ridge["rank"] <= 5])
    assert (some.loc[~swept, "rank"] == ridge.loc[~swept, "rank"]).all()
    np.testing.assert_allclose(some.loc[~swept, NAMES], ridge.loc[~swept, NAMES], atol=1e-6)
    assert (some.loc[~swept, ["pvalue", "qvalue", "holm"]] == 1).all(axis=None)
    assert some.loc[~swept, "score"].max() <= some.loc[swept, "score"].min()


def test_order_of_gains_is_kept(rows):
    """Gains do not depend on the nuisances, so a screen by gains changes no rank."""
    full, some = (fit(rows, ranking="gain", screen=m) for m in (None, 5))
    np.testing.assert_array_equal(some.ranking_, full.ranking_)


def test_a_screen_as_wide_as_the_table_changes_nothing(rows):
    pd.testing.assert_frame_equal(fit(rows, screen=12).effects_, fit(rows).effects_)


def test_rules_for_the_number_work_with_a_screen(rows):
    assert 1 <= fit(rows, "auto", screen=5).n_features_auto_ <= 12
    chosen = fit(rows, "fdr", screen=5)
    assert (chosen.effects_.loc[chosen.effects_["selected"], "df"] > 0).all()
    assert len(chosen.conf_int(joint=True)) == 12


@pytest.mark.parametrize("nuisance", ["ridge", "additive", "auto"])
def test_closed_forms_of_all_features_need_no_screen(rows, nuisance):
    with pytest.raises(ValueError, match="screen is for nuisances that are fitted feature by"):
        fit(rows, nuisance=nuisance, screen=5)
