"""Domains and tables as people have them."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from ddml_fs import CausalFeatureSelector
from ddml_fs.datasets import make_domain_data


def selector(n_features="auto", **options):
    return CausalFeatureSelector(n_features, random_state=0, **options)


# --- The same thing, measured twice ---


@pytest.fixture(scope="module")
def ages():
    """Months act most, then three numbers; four more do nothing."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((1000, 7)), columns=list("abcdefg"))
    table.insert(3, "months", rng.integers(0, 150, 1000).astype(float))
    index = 0.04 * (table["months"] - 75) + table[["a", "b", "c"]] @ [0.7, -0.5, 0.4]
    return table, rng.binomial(1, expit(index))


@pytest.mark.parametrize("nuisance", ["auto", "ridge"])
@pytest.mark.parametrize("place", [0, 8])
def test_a_near_copy_pushes_nobody(ages, nuisance, place):
    """Months, and the same in years, rounded: r = 0.997."""
    table, y = ages
    both = table.copy()
    both.insert(place, "years", (table["months"] / 12).round())
    plain, more = (selector(nuisance=nuisance).fit(t, y).effects_ for t in (table, both))
    assert more["rank"]["months"] == plain["rank"]["months"] == 1
    assert more["rank"]["years"] > 4
    best = ["months", "a", "b", "c"]
    pd.testing.assert_series_equal(more["rank"][best], plain["rank"][best])
    assert more["selected"][best].all()
    # Neither takes the other's effect away: both are what they are without the other.
    assert more["pvalue"][["months", "years"]].max() < 1e-20
    assert more["effect"]["months"] == pytest.approx(plain["effect"]["months"], rel=0.01)
    assert more["effect"]["years"] == pytest.approx(12 * plain["effect"]["months"], rel=0.05)


def test_a_copy_in_other_units_shares_the_effect_and_comes_last(ages):
    table, y = ages
    both = table.assign(years=table["months"] / 12, left=150 - table["months"])
    plain, more = (selector(6).fit(t, y).effects_ for t in (table, both))
    copies = ["months", "years", "left"]
    distinct = table.columns
    pd.testing.assert_series_equal(more["rank"][distinct], plain["rank"][distinct])
    assert more["rank"][copies].tolist() == [1, len(distinct) + 1, len(distinct) + 2]
    np.testing.assert_allclose(
        more["effect"][copies], plain["effect"]["months"] * np.array([1, 12, -1]), rtol=1e-5
    )
    assert more["selected"][["months", "a", "b", "c"]].all()
    assert not more["selected"][["years", "left"]].any()
    np.testing.assert_allclose(more["pvalue"][list("abc")], plain["pvalue"][list("abc")])


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_copy_of_the_label_is_named(ages, task):
    table, y = ages
    if task == "regression":
        y = table["months"] + table["a"] + np.random.default_rng(1).standard_normal(len(table))
    table = table.assign(outcome=3 - 2 * y)
    with pytest.warns(UserWarning, match=r"'outcome' is the outcome itself, or nearly"):
        found = selector(1, task=task).fit(table, y)
    assert found.get_feature_names_out().tolist() == ["outcome"]


def test_a_strong_column_is_no_copy_of_the_label(ages):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        selector(1).fit(*ages)


# --- Domains ---


@pytest.fixture(scope="module")
def domains():
    return make_domain_data(4, 400, 4, 4, 4, n_targets=0, random_state=3)


@pytest.fixture(scope="module")
def plain_fit(domains):
    return selector().fit(domains.X, domains.y, domains.sample_domain)


@pytest.mark.parametrize("case", ["one row", "three rows", "one class"])
def test_a_poor_domain_changes_little(domains, plain_fit, case):
    """It says next to nothing, and is not taken for a domain in which effects are none."""
    n = {"one row": 1, "three rows": 3, "one class": 60}[case]
    rng = np.random.default_rng(0)
    X = np.vstack([domains.X, 2 + rng.standard_normal((n, domains.X.shape[1]))])
    y = np.r_[domains.y, np.ones(n, int) if case != "three rows" else [0, 1, 1]]
    found = selector().fit(X, y, np.r_[domains.sample_domain, np.full(n, 9)])
    assert found.n_features_auto_ == plain_fit.n_features_auto_ < 12
    best = np.argsort(plain_fit.ranking_)[: plain_fit.n_features_auto_]
    assert set(best) >= set(np.flatnonzero(domains.causal))
    np.testing.assert_array_equal(found.ranking_[best], plain_fit.ranking_[best])
    change = (found.effects_["effect"] - plain_fit.effects_["effect"])[domains.causal]
    assert (change.abs() < plain_fit.effects_["stderr"][domains.causal]).all()
    assert np.isfinite(found.effects_.to_numpy(dtype=float)).all()


def bad_domains(case, n):
    labels = np.array(["York", "Leeds"] * (n // 2), dtype=object)
    return {
        "text and -1": np.where(np.arange(n) < 9, -1, labels),
        "the text -1": np.where(np.arange(n) < 9, "-1", labels),
        "all numbers as text": np.where(np.arange(n) < 9, "-1", "2").astype(str),
        "None": np.where(np.arange(n) < 9, None, labels),
        "NaN": np.where(np.arange(n) < 9, np.nan, 1.0),
        "NA": pd.Series(np.where(np.arange(n) < 9, None, 1)).astype("Int64"),
        "infinity": np.where(np.arange(n) < 9, np.inf, 1.0),
    }[case]


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("text and -1", r"all text or all numbers, got \d+ texts and 9 numbers"),
        ("the text -1", "not mix text with negative numbers, got the text '-1'"),
        ("all numbers as text", "not mix text with negative numbers, got the text '-1'"),
        ("None", "a domain in every row, got 9 missing"),
        ("NaN", "a domain in every row, got 9 missing"),
        ("NA", "a domain in every row, got 9 missing"),
        ("infinity", "a domain in every row, got infinity"),
    ],
)
def test_domains_that_mean_two_things_are_refused(ages, case, words):
    table, y = ages
    with pytest.raises(ValueError, match=f"^sample_domain must .*{words}") as told:
        selector().fit(table, y, bad_domains(case, len(y)))
    assert len(re.findall(r"\.(\s|$)", str(told.value))) == 1  # one sentence


def test_text_domains_are_domains(ages):
    table, y = ages
    towns = np.where(np.arange(len(y)) % 2, "York", "Leeds")
    effects = [selector(3).fit(table, y, d).effects_ for d in (towns, towns.astype(object))]
    assert {"effect[Leeds]", "effect[York]"} <= set(effects[0])
    pd.testing.assert_frame_equal(*effects)


def test_a_checkpoint_without_a_seed(ages, tmp_path):
    """The second fit finds the shards of the first, and other data make new ones."""
    table, y = ages[0].iloc[:200], ages[1][:200]
    options = {"nuisance": "shrunken", "checkpoint": tmp_path}
    first, second = (CausalFeatureSelector(3, **options).fit(table, y) for _ in range(2))
    pd.testing.assert_frame_equal(first.effects_, second.effects_)
    assert len(list(tmp_path.iterdir())) == 1
    CausalFeatureSelector(3, **options).fit(table, 1 - y)
    assert len(list(tmp_path.iterdir())) == 2


# --- Tables ---


@pytest.fixture(scope="module")
def mixed():
    """A table of every kind of column. The trade acts most, then age and whether it is missing."""
    rng = np.random.default_rng(0)
    n = 900
    trade = rng.choice(["baker", "cook", "nurse", "pilot"], n)
    age = rng.normal(40, 10, n)
    untold = rng.uniform(size=n) < 0.2
    day = rng.integers(0, 3000, n)
    index = pd.Series(trade).map({"baker": -1.5, "cook": 1.5, "nurse": 0, "pilot": 0}).to_numpy()
    index = index + 0.05 * (age - 40) * ~untold + 1.0 * untold - 0.3
    table = pd.DataFrame(
        {
            "age": np.where(untold, np.nan, age),
            "trade": pd.Categorical(trade),
            "town": pd.Series(rng.choice(["York", "Leeds", "Hull"], n)).astype("string"),
            "street": rng.choice([*"abc", None], n),
            "smokes": rng.uniform(size=n) < 0.3,
            "children": pd.array(rng.choice([0, 1, 2, None], n), dtype="Int64"),
            "insured": pd.array(rng.choice([True, False, None], n), dtype="boolean"),
            "since": pd.Timestamp("2015-01-01") + pd.to_timedelta(day, "D"),
        },
        index=rng.permutation(n),
    )
    table.loc[table.index[:3], "since"] = pd.NaT
    y = rng.binomial(1, expit(index))
    return table, np.array(["well", "ill"])[y]


@pytest.fixture(scope="module")
def mixed_fit(mixed):
    return selector(2).fit(*mixed)


def test_a_table_of_every_kind(mixed, mixed_fit):
    table, _ = mixed
    effects = mixed_fit.effects_
    assert list(effects.index) == list(table)
    assert effects.loc["trade", ["rank", "df"]].tolist() == [1, 3]
    assert effects.loc["age", "rank"] == 2
    assert effects["pvalue"][["trade", "age"]].max() < 1e-6
    assert (effects["pvalue"].drop(["trade", "age"]) > 0.005).all()
    # What is missing has an indicator or a level of its own, where it is more than a few rows.
    df = effects["df"]
    assert df[["town", "smokes", "since"]].tolist() == [2, 1, 1]
    assert df[["street", "children", "insured"]].tolist() == [3, 2, 2]
    assert np.isfinite(effects.drop(columns="selected").to_numpy(dtype=float)).all()
    assert list(mixed_fit.get_feature_names_out()) == ["age", "trade"]


def test_encoding_says_what_was_done(mixed, mixed_fit):
    table, _ = mixed
    said = mixed_fit.encoding_["read as"]
    assert list(said.index) == list(table)
    missing = {name: int(table[name].isna().sum()) for name in table}
    assert said["age"] == f"number; {missing['age']} missing set to the median, with an indicator"
    assert said["trade"] == "category with 4 levels"
    assert said["town"] == "category with 3 levels"
    assert said["street"] == f"category with 4 levels; {missing['street']} missing as a level"
    assert said["smokes"] == "number"
    assert said["since"] == "date, in days; 3 missing set to the median"
    for name in ("children", "insured"):
        assert f"{missing[name]} missing set to the median, with an indicator" in said[name]


def test_new_rows_of_a_table(mixed, mixed_fit):
    """Levels that were not there, and values that are missing where none were."""
    table, _ = mixed
    new = table.iloc[:6].copy()
    new["trade"] = ["smith", None, "cook", "baker", "nurse", "pilot"]
    new["smokes"] = pd.array([None, True, False, True, True, False], dtype="boolean")
    new.iloc[0, new.columns.get_loc("age")] = np.nan
    out = mixed_fit.transform(new)
    pd.testing.assert_frame_equal(out, new[["age", "trade"]])
    numbers = mixed_fit.encode(new)
    assert numbers.shape == (6, mixed_fit.encode(table).shape[1])
    assert np.isfinite(numbers).all()
    with pytest.raises(ValueError, match="feature names"):
        mixed_fit.transform(new.drop(columns="age"))


def test_a_category_with_hundreds_of_levels(mixed):
    """Rare levels are one; a name of its own for every row says nothing."""
    table, y = mixed
    rng = np.random.default_rng(0)
    table = table.assign(
        code=rng.choice([f"c{i}" for i in range(300)], len(y)),
        name=[f"n{i}" for i in range(len(y))],
    )
    effects = selector(2).fit(table, y).effects_
    assert effects.loc["trade", "rank"] == 1
    assert (effects["pvalue"][["code", "name"]] > 0.001).all()
    assert effects.loc["name", ["effect", "pvalue"]].tolist() == [0, 1]


def test_missing_numbers_in_arrays(mixed):
    """Read as in a DataFrame; what is infinite is refused."""
    table, y = mixed
    numbers = table[["age", "smokes"]].assign(flat=1.0).astype(float)
    frame, array = (selector(1, dose="linear").fit(t, y) for t in (numbers, numbers.to_numpy()))
    np.testing.assert_allclose(array.effects_["pvalue"], frame.effects_["pvalue"])
    assert array.effects_["df"].tolist()[:2] == [2, 1]
    assert array.effects_["pvalue"].iloc[0] < 1e-6
    assert array.transform(numbers.to_numpy()).shape == (len(y), 1)
    few = numbers.to_numpy().copy()
    few[:, 0] = np.where(np.isnan(few[:, 0]), 40.0, few[:, 0])
    few[:4, 0] = np.nan  # too few for an indicator
    assert selector(1, dose="linear").fit(few, y).effects_["df"].iloc[0] == 1
    few[5, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        selector(1).fit(few, y)


def test_groups_are_selected_as_a_whole():
    """Six columns of three quantities; the weak columns of a strong one come with it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((800, 6))
    y = rng.binomial(1, expit(X @ [1.0, 0, 0, 0.5, -0.8, 0]))
    groups = ["blood", "air", "air", "food", "blood", "food"]
    found = selector(1, groups=groups).fit(X, y)
    effects = found.effects_
    assert list(effects.index) == ["blood", "air", "food"]
    assert effects["rank"].tolist() == [1, 3, 2]
    assert (effects["df"] >= 2).all()
    assert effects["pvalue"]["blood"] < effects["pvalue"]["food"] < 1e-6 < effects["pvalue"]["air"]
    assert np.flatnonzero(found.get_support()).tolist() == [0, 4]
    assert found.ranking_.tolist() == [1, 3, 3, 2, 1, 2]
    assert found.transform(X).shape == (800, 2)
    found.set_params(n_features_to_select=2)
    assert np.flatnonzero(found.get_support()).tolist() == [0, 3, 4, 5]
    assert found.encoding_["feature"].tolist() == groups


# --- Curves, and how many ---


def test_a_curve_that_a_line_misses():
    """Both ends are bad: no slope, but an effect."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((800, 6))
    y = rng.binomial(1, expit(0.7 * (X[:, 0] ** 2 - 1) + 0.6 * X[:, 1]))
    curve, line = (selector(2, dose=dose).fit(X, y).effects_ for dose in ("auto", "linear"))
    assert line["pvalue"].iloc[0] > 0.01
    assert curve["pvalue"].iloc[0] < 1e-10
    assert curve["rank"].iloc[0] == 1
    assert curve["df"].tolist() == [4, 1, 1, 1, 1, 1]  # only where a curve is there
    assert (line["df"] == 1).all()
    assert curve["pvalue"].iloc[2:].min() > 0.01


def test_several_models_downstream(plain_fit, domains):
    """The curve is the mean of theirs."""
    models = [LogisticRegression(), GaussianNB(), DecisionTreeClassifier(max_depth=3)]
    curves = {}
    for name, downstream in (("all", models), ("first", models[0]), ("two", tuple(models[:2]))):
        found = selector(nuisance="ridge", downstream=downstream)
        found.fit(domains.X, domains.y, domains.sample_domain)
        curves[name] = found.curve_["loss"].to_numpy()
        assert 4 <= found.n_features_auto_ <= 12
    alone = selector(nuisance="ridge", downstream=models[1])
    alone.fit(domains.X, domains.y, domains.sample_domain)
    np.testing.assert_allclose(curves["two"], (curves["first"] + alone.curve_["loss"]) / 2)
    assert not np.allclose(curves["all"], curves["two"])


@pytest.mark.parametrize("seed", range(3))
def test_auto_keeps_what_may_help(seed):
    """Fifteen weak effects of one size: none is worth leaving out."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((600, 15))
    y = rng.binomial(1, expit(0.15 * X.sum(1)))
    assert selector().fit(X, y).n_features_auto_ >= 10


def test_auto_drops_what_harms(plain_fit, domains):
    """Consequences of the label whose signs change from domain to domain."""
    kept = plain_fit.get_support()
    assert kept[domains.causal].all()
    unstable = (plain_fit.effects_["instability"] > 0.6).to_numpy()
    assert (domains.roles[unstable] == "spurious").all()
    assert unstable.sum() >= 3
    assert not kept[unstable].any()
