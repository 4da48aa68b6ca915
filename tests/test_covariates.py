"""Covariates with gaps, categories, text and dates: what a fit by hand on numbers gives."""

import numpy as np
import pandas as pd
import pytest

from ddml_fs import DDML
from ddml_fs.covariates import read_treatment
from ddml_fs.nuisances import Network

N = 400


@pytest.fixture(scope="module")
def mixed():
    rng = np.random.default_rng(0)
    age = rng.normal(50, 10, N)
    shop = rng.choice(["a", "b", "c"], N)
    strength = (age - 50) / 10 + (shop == "a")
    drug = np.where(strength + rng.standard_normal(N) > 0.3, "yes", "no")
    y = (drug == "yes") + 2 * strength + rng.standard_normal(N)
    age[:20] = np.nan
    weight = rng.normal(70, 5, N)
    weight[:3] = np.nan
    X = pd.DataFrame(
        {
            "age": age,
            "weight": weight,
            "shop": pd.Categorical(shop),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, N), "D"),
            "old": rng.uniform(size=N) > 0.5,
        }
    )
    return X, y, drug


def by_hand(X):
    """The same columns as numbers: medians, an indicator of many gaps, one column per level."""
    columns = {"age": X["age"].fillna(X["age"].median()), "age missing": X["age"].isna()}
    columns["weight"] = X["weight"].fillna(X["weight"].median())
    columns |= {f"shop = {level}": X["shop"] == level for level in "abc"}
    columns["day"] = (X["day"] - pd.Timestamp(0)) / pd.Timedelta(days=1)
    return pd.DataFrame(columns | {"old": X["old"]}).astype(float)


@pytest.mark.parametrize("nuisance", ["smooth", Network(epochs=5)], ids=["smooth", "mlp"])
def test_equals_encoding_by_hand(mixed, nuisance):
    X, y, drug = mixed
    model = DDML(nuisance, random_state=0).fit(X, y, treatment=drug)
    numbers = by_hand(X)
    peer = DDML(nuisance, random_state=0).fit(numbers, y, treatment=(drug == "yes") * 1.0)
    assert model.effect_ == peer.effect_
    assert model.stderr_ == peer.stderr_
    assert model.n_features_in_ == 5
    if isinstance(nuisance, Network):
        assert model.roles_.index.tolist() == X.columns.tolist()
        levels = peer.roles_.loc[["shop = a", "shop = b", "shop = c"]]
        both = levels["confounder"] + levels[["treatment", "outcome"]].max(axis=1)
        shop = model.roles_.loc["shop"]
        assert shop["confounder"] + max(shop["treatment"], shop["outcome"]) == both.max()
        np.testing.assert_array_equal(model.represent(X).Zc, peer.represent(numbers).Zc)


def test_fit_says_what_was_done(mixed):
    X, y, drug = mixed
    model = DDML("smooth", random_state=0).fit(X, y, treatment=drug)
    assert model.verdict_.endswith(
        "Covariates: 1 text column one-hot encoded, 1 date turned into days, 23 missing values in "
        "`age`, `weight` imputed. Treatment: 'yes' is 1, 'no' is 0."
    )
    read = model.encoding_["read as"]
    assert read["age"] == "number; 20 missing set to the median, with an indicator"
    assert read["weight"] == "number; 3 missing set to the median"
    assert read["shop"] == "category with 3 levels"
    plain = DDML("smooth", random_state=0).fit(by_hand(X), y, treatment=(drug == "yes") * 1)
    assert "Covariates" not in plain.verdict_
    assert "Treatment:" not in plain.verdict_


def test_gaps_in_an_array(mixed):
    X, y, drug = mixed
    gaps = X[["age", "weight"]].to_numpy()
    model = DDML("smooth", random_state=0).fit(gaps, y, treatment=drug == "yes")
    peer = DDML("smooth", random_state=0).fit(
        by_hand(X)[["age", "age missing", "weight"]], y, treatment=(drug == "yes") * 1.0
    )
    assert model.effect_ == peer.effect_
    assert "23 missing values in `x0`, `x1` imputed" in model.verdict_


@pytest.mark.parametrize("kind", ["text", "bool", "category", "number"])
def test_treatment_is_a_column(mixed, kind):
    X, y, drug = mixed
    column = {
        "text": drug,
        "bool": drug == "yes",
        "category": pd.Categorical(drug),
        "number": (drug == "yes") * 1,
    }[kind]
    inside = X.assign(drug=column)[["age", "drug", "shop"]]
    model = DDML("smooth", random_state=0).fit(inside, y, treatment="drug")
    peer = DDML("smooth", random_state=0).fit(X[["age", "shop"]], y, treatment=drug)
    assert model.effect_ == pytest.approx(peer.effect_, abs=1e-10)
    assert ("Treatment: 'yes' is 1" in model.verdict_) == (kind in ("text", "category"))
    by_number = DDML("smooth", random_state=0).fit(inside, y, treatment=1)
    assert by_number.effect_ == model.effect_


def test_methods_take_the_users_columns(mixed):
    X, y, drug = mixed
    inside = X.assign(drug=drug)
    model = DDML("smooth", random_state=0).fit(inside, y, treatment="drug")
    assert model.by(X["shop"]).index.tolist() == ["a", "b", "c"]
    table = model.benchmark(inside, y, treatment="drug", columns=["age", "shop", "weight"])
    assert table.index.tolist() == ["age", "shop", "weight"]
    assert table.loc["age", "change"] > table.loc["weight", "change"]
    assert len(model.placebo(X, y, treatment=drug, n=2, kinds=["treatment"])) == 1


def test_levels_that_are_new(mixed):
    X, y, drug = mixed
    model = DDML(Network(epochs=3), random_state=0).fit(X, y, treatment=drug)
    new = X.head(5).assign(shop="z", age=np.nan)
    assert np.isfinite(model.represent(new).Zc).all()
    with pytest.raises(ValueError, match="feature names should match"):
        model.represent(X.rename(columns={"age": "years"}))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.resize(["a", "b", "c"], N), "numbers or two levels, got text with 3 levels"),
        (pd.date_range("2024-01-01", periods=N), "numbers or two levels, got dates"),
        (np.resize(["a", "b", None], N), "treatment must be known in every row, got 133 missing"),
    ],
    ids=["levels", "dates", "missing"],
)
def test_treatments_that_are_no_numbers(mixed, values, words):
    X, y, _ = mixed
    with pytest.raises(ValueError, match=words):
        DDML("smooth").fit(X, y, treatment=values)
    with pytest.raises(ValueError, match=words):
        DDML("smooth").fit(X.assign(drug=values), y, treatment="drug")


def test_missing_outcomes_and_infinite_covariates(mixed):
    X, y, drug = mixed
    known = pd.Series(y).astype("Float64")
    known[:3] = pd.NA
    with pytest.raises(ValueError, match=r"^y must be known in every row, got 3 missing; drop"):
        DDML("smooth").fit(X, known, treatment=drug)
    with pytest.raises(ValueError, match="column 'age' must hold finite numbers"):
        DDML("smooth").fit(X.assign(age=np.inf), y, treatment=drug)


def test_booleans_and_objects_are_read_as_numbers():
    assert read_treatment([True, False])[0].tolist() == [1, 0]
    assert read_treatment(np.array([0.5, 2], dtype=object))[0].tolist() == [0.5, 2]
