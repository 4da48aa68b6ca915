"""Tables as people have them: how columns are read, and which of them are the same."""

import numpy as np
import pandas as pd
import pytest

from ddml_fs.features import Encoding, read_features
from ddml_fs.hinges import bent_columns
from ddml_fs.readers import reader_of


def read(column):
    """What a column is read as."""
    return reader_of(column).read(column)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([3, 1, 2]),
        pd.Series([3.0, 1, 2], dtype=np.float32),
        pd.Series([3, 1, 2], dtype="Int64"),
        pd.Series([3, 1, 2], dtype="Float64"),
        pd.Series([3, 1, 2], dtype="uint8"),
    ],
)
def test_numbers(column):
    reader = reader_of(column)
    assert reader.kind == "number"
    assert reader.note == "number"
    values = reader.read(column)
    assert values.dtype == np.float64
    assert values.tolist() == [[3.0], [1.0], [2.0]]


@pytest.mark.parametrize("kind", [float, "Int64", "Float64"])
def test_missing_numbers(kind):
    """The median, and an indicator where more than one in a hundred is missing."""
    reader = reader_of(pd.Series([1, None, 3, 9, None], dtype=kind, name="age"))
    assert reader.fill == 3.0
    assert "2 missing set to the median, with an indicator" in reader.note
    values = reader.read(pd.Series([None, 5], dtype=kind))
    assert values.tolist() == [[3.0, 1.0], [5.0, 0.0]]
    few = pd.Series(np.r_[np.nan, np.arange(150.0)])
    assert reader_of(few).note == "number; 1 missing set to the median"
    assert reader_of(few).read(few).shape == (151, 1)
    assert reader_of(few).read(few)[0, 0] == 74.5


def test_numbers_missing_at_read_time_alone():
    """The median stands for them too, in a frame and in an array."""
    X = np.array([[2000.0, 1], [2001, 2], [2009, 3]])
    new = np.array([[np.nan, 1.0]])
    for table, rows in ((X, new), (pd.DataFrame(X), pd.DataFrame(new))):
        encoding = Encoding.of(table, ["year", "x"])
        assert encoding.plain
        assert encoding.read(rows).tolist() == [[2001.0, 1.0]]
    assert reader_of(pd.Series([1, 5, 6])).read(pd.Series([np.nan])).tolist() == [[5.0]]


def test_column_without_any_number():
    column = pd.Series([np.nan] * 4)
    assert reader_of(column).read(column).tolist() == [[0.0, 1.0]] * 4


def test_infinity_is_refused():
    with pytest.raises(ValueError, match="'x' must hold finite numbers"):
        read(pd.Series([1.0, np.inf], name="x"))


@pytest.mark.parametrize("kind", [bool, "boolean"])
def test_truth_values(kind):
    column = pd.Series([True, False, True], dtype=kind)
    assert reader_of(column).kind == "number"
    assert read(column).tolist() == [[1.0], [0.0], [1.0]]


def test_missing_truth_values():
    column = pd.Series([True, None, True, False, True], dtype="boolean")
    assert read(column).tolist() == [[1, 0], [1, 1], [1, 0], [0, 0], [1, 0]]


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_dates_are_days(zone):
    times = ["2020-01-01 00:00", None, "2020-01-02 12:00", "2020-01-11 00:00"]
    column = pd.Series(pd.to_datetime(times)).dt.tz_localize(zone)
    reader = reader_of(column)
    assert reader.kind == "date"
    assert reader.note.startswith("date, in days; 1 missing")
    values = reader.read(column)
    np.testing.assert_allclose(values[:, 0] - values[0, 0], [0, 1.5, 1.5, 10])
    assert values[:, 1].tolist() == [0, 1, 0, 0]
    first = pd.Timestamp("2020-01-01", tz=zone) - pd.Timestamp(0, tz="UTC" if zone else None)
    assert values[0, 0] == pytest.approx(first / pd.Timedelta(days=1))


@pytest.mark.parametrize("kind", ["category", "str", object])
def test_categories(kind):
    column = pd.Series(["b", "a", "c", "b", "a", "c"], dtype=kind)
    reader = reader_of(column)
    assert reader.kind == "category"
    assert reader.levels == ("a", "b", "c")
    assert reader.note == "category with 3 levels"
    assert read(column)[:3].tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]


def test_categories_of_numbers():
    column = pd.Series([3, 1, 2, 3, 1, 2]).astype("category")
    assert reader_of(column).levels == ("1", "2", "3")
    assert read(column)[0].tolist() == [0, 0, 1]


def test_two_levels_are_one_column():
    column = pd.Series(["no", "yes", "yes", "no"])
    assert reader_of(column).levels == ("yes",)
    assert read(column).tolist() == [[0], [1], [1], [0]]
    one = pd.Series(["a"] * 4)
    assert read(one).tolist() == [[1]] * 4  # a constant


def test_missing_levels_and_new_ones():
    """Missing is a level where there was one; what was not seen has no indicator."""
    column = pd.Series(["a", "b", None, "b", "a", np.nan], dtype=object)
    reader = reader_of(column)
    assert reader.levels == ("a", "b", "missing")
    assert reader.note == "category with 3 levels; 2 missing as a level"
    assert reader.read(column)[2].tolist() == [0, 0, 1]
    seen = reader_of(pd.Series(["a", "b", "c"] * 2))
    new = pd.Series(["c", "z", None], dtype=object)
    assert seen.read(new).tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]


def test_rare_levels_are_one():
    """Less than one in 200 rows, or a single one."""
    column = pd.Series(["a"] * 600 + ["b"] * 595 + ["c"] * 5 + ["d", "e"])
    reader = reader_of(column)
    assert reader.levels == ("a", "b")
    assert "3 rare levels merged into 'other'" in reader.note
    assert reader.read(pd.Series(["c", "d", "b"])).tolist() == [[0, 0], [0, 0], [0, 1]]
    assert reader_of(pd.Series(["a", "a", "b", "b", "c"])).levels == ("a", "b")


def test_level_for_every_row_says_nothing():
    """Names or keys: no level is common, and the feature counts as constant."""
    frame = pd.DataFrame({"key": [f"k{i}" for i in range(9)], "x": np.arange(9.0)})
    encoding = Encoding.of(frame, list(frame))
    values = encoding.read(frame)
    assert values.shape == (9, 1)
    assert encoding.own.tolist() == [1]
    assert read_features(values, encoding.own, 2).group.tolist() == [-1, 0]


def mixed_frame():
    """A number with gaps, a category, a truth value and a plain number."""
    return pd.DataFrame(
        {
            "age": [30.0, np.nan, 50, 60, 70, 20],
            "shop": ["a", "b", "c", "a", "b", "c"],
            "member": [True, False, True, True, False, False],
            "price": [1.0, 2, 4, 3, 6, 5],
        }
    )


def test_encoding_of_a_frame():
    frame = mixed_frame()
    encoding = Encoding.of(frame, list(frame))
    assert encoding.names == ["age", "shop", "member", "price"]
    assert encoding.width.tolist() == [2, 3, 1, 1]
    assert encoding.own.tolist() == [0, 0, 1, 1, 1, 2, 3]
    assert not encoding.plain
    X = encoding.read(frame)
    assert X.shape == (6, 7)
    assert X[1].tolist() == [50, 1, 0, 1, 0, 0, 2]
    np.testing.assert_array_equal(encoding.read(frame.iloc[[4, 1]]), X[[4, 1]])


def test_encoding_of_an_array_equals_that_of_a_frame():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((300, 4))
    X[rng.uniform(size=X.shape) < [0, 0.003, 0.2, 0]] = np.nan
    X[7, 1] = np.nan
    names = list("abcd")
    array, frame = Encoding.of(X, names), Encoding.of(pd.DataFrame(X, columns=names), names)
    assert array.own.tolist() == frame.own.tolist() == [0, 1, 2, 2, 3]
    np.testing.assert_array_equal(array.read(X), frame.read(pd.DataFrame(X)))
    assert not np.isnan(array.read(X)).any()
    whole = np.nan_to_num(X)
    assert Encoding.of(whole, names).read(whole) is whole  # nothing to do


def test_groups():
    """Features come in the order of their first columns, which need not stand side by side."""
    frame = mixed_frame()
    encoding = Encoding.of(frame, list(frame), groups=["z", "a", "z", "m"])
    assert encoding.names == ["z", "a", "m"]
    assert encoding.feature.tolist() == [0, 1, 0, 2]
    assert encoding.own.tolist() == [0, 0, 1, 1, 1, 0, 2]
    numbers = Encoding.of(np.ones((3, 4)), list("abcd"), groups=[7, 3, 7, 3])
    assert numbers.names == ["7", "3"]
    features = read_features(encoding.read(frame), encoding.own, 3)
    assert features.size.tolist() == [3, 3, 1]
    assert features.columns_of([1, 0]).tolist() == [2, 3, 4, 0, 1, 5]


@pytest.mark.parametrize("groups", [["a"], ["a"] * 5, [["a"] * 4], "a"])
def test_groups_of_the_wrong_length(groups):
    frame = mixed_frame()
    with pytest.raises(ValueError, match="a group for each of the 4 columns"):
        Encoding.of(frame, list(frame), groups=groups)


def features_of(*columns):
    X = np.column_stack(columns)
    return read_features(X, np.arange(X.shape[1]), X.shape[1])


def test_read_features():
    x = np.array([0.5, 1.5, 2.5, 4.0])
    two = np.array([3.0, 7.0, 7.0, 3.0])
    z = np.array([1.0, 0.0, 2.0, 0.0])
    features = features_of(x, np.full(4, 9.0), two, z)
    assert features.group.tolist() == [0, -1, 1, 2]
    assert features.binary.tolist() == [False, True, False]
    assert features.first.tolist() == [0, 2, 3]
    assert features.n_features == 3
    assert features.Z.dtype == np.float32
    np.testing.assert_array_equal(features.Z[:, 1], [0, 1, 1, 0])
    Z = features.Z * features.step
    np.testing.assert_allclose(Z[:, 0], x - x.mean())
    np.testing.assert_allclose(features.unit * features.step, [x.std(), 0.5, z.std()])
    np.testing.assert_allclose(np.abs(features.scale), [x.std(), 1.0, two.std(), z.std()])
    assert features.columns_of([2, 0]).tolist() == [3, 0]
    assert features.columns_of([]).tolist() == []
    nothing = features_of(np.ones(4), np.ones(4))
    assert nothing.Z.shape == (4, 0)
    assert nothing.group.tolist() == [-1, -1]


def test_copies_in_other_units_and_with_other_signs():
    rng = np.random.RandomState(0)
    x, other = rng.standard_normal((2, 500))
    two = (rng.uniform(size=500) < 0.01).astype(float)  # a rare one
    columns = (x, 1000 * x + 20, -2 * x + 3, two, 1 - two, 5 - 3 * two, other, x**3)
    features = features_of(*columns)
    assert features.group.tolist() == [0, 0, 0, 1, 1, 1, 2, 3]
    assert features.first.tolist() == [0, 3, 6, 7]
    ratio = features.scale[[1, 2]] / features.scale[0]
    np.testing.assert_allclose(ratio, [1000, -2])
    np.testing.assert_allclose(features.scale[[4, 5]] / features.scale[3], [-1, -3])
    assert features.near.tolist() == [0, 1, 2, 3]


def test_large_offset_does_not_drown_a_column():
    rng = np.random.RandomState(0)
    x = rng.standard_normal(100)
    features = features_of(1e9 + x, x)
    Z = features.Z * features.step
    np.testing.assert_allclose(Z[:, 0], x - x.mean(), atol=1e-5)
    assert features.group[0] == features.group[1] or features.near.tolist() == [0, 0]


def test_near_copies():
    """A correlation of 0.999, with either sign; not 0.97. The first of them stands for all."""
    rng = np.random.RandomState(0)
    x, noise, other = rng.standard_normal((3, 2000))
    columns = (other, x, -3 * (x + 0.04 * noise), x + 0.25 * noise, x + 0.03 * other)
    features = features_of(*columns)
    assert features.group.tolist() == [0, 1, 2, 3, 4]
    assert features.near.tolist() == [0, 1, 1, 3, 1]


def test_near_copies_are_single_columns():
    """Blocks of several columns are not compared."""
    x = np.arange(20.0)
    X = np.column_stack([x, x + 0.01 * (x % 2), x % 3])
    assert read_features(X, np.array([0, 1, 1]), 2).near.tolist() == [0, 1]
    assert read_features(X, np.array([0, 1, 2]), 3).near.tolist() == [0, 0, 2]


def test_copies_of_blocks():
    """Copies have the same columns; a constant among them does not count."""
    rng = np.random.RandomState(0)
    a, b, c = rng.standard_normal((3, 50))
    X = np.column_stack([a, b, a, c, b, np.ones(50), a, c])
    features = read_features(X, np.array([0, 0, 1, 2, 1, 1, 2, 2]), 3)
    assert features.group.tolist() == [0, 0, 1]
    assert features.size.tolist() == [2, 3]
    assert features.own.tolist() == [0, 0, 1, 1, 1]
    assert features.scale.tolist() == [1.0, 1.0, 1.0]
    Z = features.Z * features.step
    np.testing.assert_allclose(Z[:, 2:], (X - X.mean(0))[:, [3, 6, 7]], atol=1e-6)


def test_bent_columns():
    """A hinge at each quartile of a number; none for two values; no hinge beyond the range."""
    rng = np.random.RandomState(0)
    x = rng.standard_normal(200)
    two = np.arange(200) % 2
    counts = rng.binomial(3, 0.15, 200)  # most are 0: the quartiles are 0, 0 and 1
    features = features_of(x, two, counts)
    hinges, column = bent_columns(features)
    assert column.tolist() == [0, 0, 0, 2]
    centred = (x - x.mean()) / features.step[0]
    for k, q in enumerate((0.25, 0.5, 0.75)):
        knot = np.quantile(centred, q)
        np.testing.assert_allclose(hinges[:, k], np.maximum(centred - knot, 0), atol=1e-6)
    assert (hinges.std(0) > 0).all()
    lowest = (features.Z[:, column] == features.Z[:, column].min(0)).sum(0)
    assert ((hinges == 0).sum(0) > lowest).all()  # none is a line
    assert len(np.unique(hinges, axis=1).T) == len(column)
    none, where = bent_columns(features_of(two))
    assert none.shape == (200, 0)
    assert len(where) == 0


@pytest.mark.parametrize("size", [1e-40, 1e-12, 1e12, 1e25])
def test_units_beyond_single_precision(size):
    """Columns in any unit are the same columns, which neither vanish nor overflow."""
    rng = np.random.RandomState(0)
    x, other = rng.standard_normal((2, 50))
    wanted, features = features_of(x, other), features_of(size * x, other)
    np.testing.assert_allclose(
        features.Z[:, 0] / features.unit[0], wanted.Z[:, 0] / wanted.unit[0], rtol=1e-5, atol=1e-6
    )
    assert features.scale[0] == pytest.approx(size * wanted.scale[0])
    assert 0.5 <= features.unit[0] < 1


def test_a_column_too_small_to_vary_is_constant():
    assert features_of(1e-300 * np.arange(9.0), np.arange(9.0)).group.tolist() == [-1, 0]


def test_complex_columns_are_refused():
    with pytest.raises(ValueError, match="column 'z' must hold real numbers, got complex"):
        reader_of(pd.Series([1j, 2j], name="z"))
