"""Columns whose type hides what they hold: numbers and dates stored as something else."""

import warnings
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from ddml_fs import DDML, CausalFeatureSelector, DDMLWarning, EffectClassifier, ShiftAudit
from ddml_fs.encoding import read_target
from ddml_fs.readers import reader_of

N = 400
DAYS = np.random.default_rng(0).permutation(N) + 0.5

STORED = {
    "objects": pd.Series(DAYS).astype(object),
    "objects of int": pd.Series([int(d) for d in DAYS], dtype=object) + 0.5,
    "decimals": pd.Series([Decimal(str(d)) for d in DAYS]),
    "text": pd.Series(DAYS).astype(str),
    "strings": pd.Series(DAYS).astype("string"),
    "durations": pd.Series(pd.to_timedelta(DAYS, unit="D")),
}


@pytest.mark.parametrize("kind", STORED)
def test_numbers_under_another_type(kind):
    """The same numbers as from a column of floats, in new rows too."""
    column = STORED[kind].rename("x")
    reader = reader_of(column)
    assert reader.kind == "number"
    assert reader.note == ("number, from text" if kind in ("text", "strings") else "number")
    assert reader.read(column)[:, 0].tolist() == DAYS.tolist()
    assert reader.read(column[:3])[:, 0].tolist() == DAYS[:3].tolist()


@pytest.mark.parametrize("kind", STORED)
def test_missing_among_them(kind):
    """The median and an indicator, as in any column of numbers."""
    column = STORED[kind].where(np.arange(N) >= 40)
    values = reader_of(column).read(column)
    assert values[:40].tolist() == [[np.median(DAYS[40:]), 1.0]] * 40
    assert values[40:, 0].tolist() == DAYS[40:].tolist()


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(pd.period_range("1970-01-02", periods=9, freq="D")),
        pd.Series([date(1970, 1, 2 + i) for i in range(9)]),
        pd.Series(pd.date_range("1970-01-02", periods=9)).astype(object),
    ],
)
def test_dates_under_another_type(column):
    reader = reader_of(column)
    assert reader.note == "date, in days"
    assert reader.read(column)[:, 0].tolist() == list(range(1, 10))


def test_codes_stay_categories():
    """Text with few values, all of them frequent, names levels even if it looks like numbers."""
    few = pd.Series(np.tile(["10", "20", "30"], 20))
    assert reader_of(few).levels == ("10", "20", "30")
    assert reader_of(pd.Series(["0", "1"] * 20)).levels == ("1",)
    declared = pd.Series(DAYS).astype(str).astype("category")
    assert reader_of(declared).kind == "category"
    assert reader_of(pd.Series([True, False, None] * 9, dtype=object)).kind == "category"
    assert reader_of(pd.Series([*"abc"] * 3 + [1, 2])).kind == "category"


def test_new_rows_must_hold_numbers_too():
    reader = reader_of(STORED["text"].rename("price"))
    with pytest.raises(ValueError, match="column 'price' must hold numbers, as in fit, got 'dear'"):
        reader.read(pd.Series(["1.5", "dear"], name="price"))


def world(column):
    """A label that depends on the column of numbers, which has the given type; two domains."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"x": column, "noise": rng.normal(size=N)})
    y = rng.random(N) < 1 / (1 + np.exp(-(DAYS - 200) / 40))
    return X, y.astype(int), np.where(np.arange(N) % 2, "a", "b")


@pytest.mark.parametrize("kind", STORED)
def test_all_estimators_read_them(kind):
    """The results are those of a column of floats (rounding may differ by processor)."""
    X, y, domain = world(STORED[kind])
    plain, *_ = world(pd.Series(DAYS))
    found = [
        CausalFeatureSelector(1, random_state=0).fit(table, y, sample_domain=domain)
        for table in (X, plain)
    ]
    pd.testing.assert_frame_equal(found[0].effects_, found[1].effects_)
    assert list(found[0].transform(X)) == ["x"]
    found = [EffectClassifier().fit(table, y).predict_proba(table) for table in (X, plain)]
    np.testing.assert_allclose(*found, rtol=1e-9)
    found = [DDML("ridge", random_state=0).fit(t, y, treatment="x").effect_ for t in (X, plain)]
    assert found[0] == pytest.approx(found[1], rel=1e-9)


def test_text_that_no_value_of_which_is_frequent():
    """It is named; the other columns are used as if it were not there."""
    X, y, domain = world(pd.Series([f"note {i}" for i in range(N)]))
    X["z"] = DAYS
    said = "No value of 'x' is in 0.5% of the rows, so nothing of it is used"
    with pytest.warns(DDMLWarning, match=said):
        selector = CausalFeatureSelector(1, random_state=0).fit(X, y, sample_domain=domain)
    assert list(selector.transform(X)) == ["z"]
    with pytest.warns(DDMLWarning, match=said):
        EffectClassifier().fit(X, y)
    with pytest.warns(DDMLWarning, match=said):
        DDML("ridge", random_state=0).fit(X, y, treatment="z")
    with pytest.warns(DDMLWarning, match=said):
        audit = ShiftAudit(random_state=0).fit(X, y, sample_domain=domain)
    assert list(audit.features_.index) == ["z", "noise", "x"]
    assert audit.features_.loc["x", "verdict"] == "unknown"


def test_frequent_values_are_enough():
    """One frequent level is an indicator: nothing is said."""
    X, y, domain = world(pd.Series([f"note {i}" if i > 50 else "none" for i in range(N)]))
    with warnings.catch_warnings():
        warnings.simplefilter("error", DDMLWarning)
        CausalFeatureSelector(1, random_state=0).fit(X, y, sample_domain=domain)


def test_outcomes_under_another_type():
    """Objects that are numbers are judged as numbers."""
    assert read_target(DAYS.astype(object), "auto").classes is None
    assert read_target(np.array([0, 1, 1, 0], dtype=object), "auto").classes.tolist() == [0, 1]
    assert read_target(np.array([*"abba"], dtype=object), "auto").classes.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (pd.Series(pd.to_timedelta(DAYS, unit="D")), "y must hold labels or numbers, got duration"),
        (pd.Series(pd.date_range("2020", periods=N)), "y must hold labels or numbers, got dates"),
        (pd.Series(["ill", None] * 200), "y must be known in every row, got 200 missing"),
        (pd.Series([1.0, np.nan] * 200), "y must be known in every row, got 200 missing"),
    ],
)
@pytest.mark.parametrize("estimator", [CausalFeatureSelector(1), ShiftAudit(), EffectClassifier()])
def test_outcomes_that_are_none(y, message, estimator):
    X, _, domain = world(pd.Series(DAYS))
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, y, sample_domain=domain)


def test_no_columns():
    with pytest.raises(ValueError, match="X must have at least one column, got none"):
        DDML("ridge").fit(pd.DataFrame(index=range(N)), DAYS, treatment=DAYS > 100)
