"""Files of many kinds, and what the package makes of their columns."""

import gzip

import numpy as np
import pandas as pd
import pytest

from ddml_fs import encoding
from ddml_fs.columns import MOST_CLASSES, read_texts
from ddml_fs.files import find_separator, read_file
from ddml_fs.prepare import describe_encoding, prepare, read_treatment


def read(tmp_path, text, name="data.csv", **options):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_file(path, **options)


@pytest.mark.parametrize(
    ("text", "sep"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1,5;2,5\n", ";"),
        ("a\tb\n1\t2\n", "\t"),
        ("a|b\n1|2\n", "|"),
        ("a b\n1 2\n", r"\s+"),
        ("a   b\n1  2\n", r"\s+"),
        ("name;place, county;x\nA;B, C;1\nD;E, F;2\n", ";"),
        ('"a;b",c\n"1;2",3\n', ","),
        ("who\nJohn Smith\nMary Jones\n", None),
        ("a\n1\n2\n", None),
    ],
)
def test_separators(text, sep):
    assert find_separator(text) == sep


@pytest.mark.parametrize("sep", ["tab", "\\t", "\t"])
def test_separators_by_name(tmp_path, sep):
    assert read(tmp_path, "a\tb\n1\t2\n", sep=sep)[0].to_dict("list") == {"a": [1], "b": [2]}


@pytest.mark.parametrize(
    ("encoding", "note"),
    [
        ("utf-8", []),
        ("utf-8-sig", []),
        ("utf-16", ["encoding utf-16"]),
        ("utf-16-le", ["encoding utf-16-le"]),
        ("utf-16-be", ["encoding utf-16-be"]),
        ("cp1252", ["encoding cp1252"]),
    ],
)
def test_encodings(tmp_path, encoding, note):
    frame, notes = read(tmp_path, "stadt,n\nKöln,1\nLyon,2\n".encode(encoding))
    assert frame["stadt"].tolist() == ["Köln", "Lyon"]
    assert notes == note
    if not encoding.endswith("sig"):
        frame, notes = read(tmp_path, "stadt,n\nKöln,1\nx,2".encode(encoding), encoding=encoding)
        assert frame["stadt"].tolist() == ["Köln", "x"]
        assert notes == []


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "a,b\n1,22\n"])
def test_wrong_encoding(tmp_path, text):
    with pytest.raises(ValueError, match=r"data\.csv is not utf-16 text; leave the encoding out"):
        read(tmp_path, text, encoding="utf-16")
    with pytest.raises(ValueError, match=r"data\.csv is not utf-8 text"):
        read(tmp_path, "a,b\nKöln,2\n".encode("cp1252"), encoding="utf-8")


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        ([" 1", "2 ", "3.5"], [1, 2, 3.5]),
        (["1", "NA", "null", "?", ".", "n/a", "4"], [1, None, None, None, None, None, 4]),
        (["1", "unknown", "None", "-"], [1, None, None, None]),
        (["1e3", "-2", "+3"], [1000, -2, 3]),
        (["1,5", "2"], [1.5, 2]),
        (["a ", " b", "None"], ["a", "b", "None"]),
        (["a", "?"], ["a", None]),
    ],
)
def test_numbers_and_text(texts, values):
    found = read_texts(pd.Series(texts, name="x"))[0]
    assert [None if pd.isna(value) else value for value in found] == values


def test_decimal_commas():
    found, topics = read_texts(pd.Series(["1,5", "2", "-0,25"]), decimal_commas=True)
    assert found.tolist() == [1.5, 2, -0.25]
    assert topics == ["decimal commas read in"]
    mixed = pd.Series(["1,5", "2.5"])
    assert read_texts(mixed, decimal_commas=True)[0].tolist() == ["1,5", "2.5"]


@pytest.mark.parametrize(
    ("texts", "values", "topics"),
    [
        (["22,3", "7", "1,500"], [22.3, 7, 1.5], ["decimal commas read in"]),
        (["0,500", "0,125"], [0.5, 0.125], ["decimal commas read in"]),
        (
            ["1,500", "12", "-2,000,125"],
            [1500, 12, -2000125],
            ["commas between thousands left out in"],
        ),
        (["1,500.25", "2.5"], [1500.25, 2.5], ["commas between thousands left out in"]),
        (
            ["1,500.25", "2,5"],
            ["1,500.25", "2,5"],
            ["values such as '1,500.25' are text, not numbers, in"],
        ),
        (
            ["1.500,25", "2,5"],
            ["1.500,25", "2,5"],
            ["values such as '1.500,25' are text, not numbers, in"],
        ),
    ],
)
def test_commas_in_any_file(texts, values, topics):
    """As Excel's cells or quoted fields have them: the column tells what a comma means, or not."""
    found, said = read_texts(pd.Series(texts))
    assert found.tolist() == values
    assert said == topics


@pytest.mark.parametrize(
    ("texts", "first"),
    [
        (["2024-05-01", "2024-12-31"], "2024-05-01"),
        (["2024-05-01 10:30:00", "2024-05-02 00:00:00"], "2024-05-01 10:30"),
        (["2024-05-01T10:30:00Z", "2024-05-02T00:00:00Z"], "2024-05-01 10:30"),
        (["31.12.2023", "1.2.2024"], "2023-12-31"),
        (["12/31/2023", "2/1/2024"], "2023-12-31"),
        (["31/12/2023", "1/2/2024"], "2023-12-31"),
        (["2/1/2024", "31/12/2023", "30/11/2023"], "2024-01-02"),
        (["3 Jan 2024", "12 Feb 2024"], "2024-01-03"),
    ],
)
def test_dates(texts, first):
    found = read_texts(pd.Series(texts))[0]
    assert found.iloc[0] == pd.Timestamp(first)
    assert found.dt.tz is None


def test_dates_with_errors():
    texts = ["2024-05-01"] * 99 + ["2024-02-30"]
    found, topics = read_texts(pd.Series(texts))
    assert found.isna().sum() == 1
    assert "values that are no dates read as missing in" in topics
    assert read_texts(pd.Series(["2024-05-01", "soon"]))[0].tolist() == ["2024-05-01", "soon"]


def test_text_that_may_be_numbers(tmp_path):
    rows = "\n".join(str(i) for i in range(30))
    notes = read(tmp_path, f"n,m\n{rows.replace(chr(10), ',1' + chr(10))},1\nx,2\n")[1]
    assert "values such as 'x' make text of the numbers in `n`" in notes


def test_infinity_is_missing(tmp_path):
    frame, notes = read(tmp_path, "a,b\n1,inf\n2,3\n")
    assert np.isnan(frame.loc[0, "b"])
    assert "infinite values read as missing in `b`" in notes


def test_booleans_with_gaps_are_a_category(tmp_path):
    frame, _ = read(tmp_path, "a,b\n" + "True,1\n,2\nFalse,3\n" * 9)
    assert describe_encoding(frame) == (
        "1 text column one-hot encoded, 9 missing values in `a` as a level of their own"
    )
    assert read(tmp_path, "a,b\nTrue,1\nFalse,3\n")[0]["a"].dtype == bool


def test_names_of_columns(tmp_path):
    frame, notes = read(tmp_path, " a ,a,b,b,b\n1,2,3,4,5\n6,7,8,9,0\n")
    assert list(frame) == ["a", "a.1", "b", "b.1", "b.2"]
    assert notes == ["repeated column names are now `a.1`, `b.1`, `b.2`"]
    assert "numbers only" in read(tmp_path, "1,2\n3,4\n")[1][0]


def test_quotes(tmp_path):
    text = 'a,b\n"x, ""y""\nz",1\n"5"" pipe",2\n'
    assert read(tmp_path, text)[0]["a"].tolist() == ['x, "y"\nz', '5" pipe']


def test_line_of_a_ragged_record_after_a_quoted_line_break(tmp_path):
    with pytest.raises(ValueError, match=r"line 5 of data\.csv has 3 values, but .* 2 columns"):
        read(tmp_path, 'a,b\n"x\ny",1\n2,3\n4,5,6\n')


def test_blank_lines_are_skipped(tmp_path):
    assert read(tmp_path, "\n\na,b\n\n1,2\n\n3,4\n\n")[0]["b"].tolist() == [2, 4]


def test_typed_files(tmp_path):
    """Categories, durations, dates and an index come through."""
    frame = pd.DataFrame(
        {
            "kind": pd.Categorical(["a", "b"]),
            "took": pd.to_timedelta(["36h", "12h"]),
            "seen": pd.to_datetime(["2024-01-01", None]),
            "n": pd.array([1, None], dtype="Int64"),
        },
        index=pd.Index(["p", "q"], name="patient"),
    )
    frame.to_parquet(tmp_path / "a.parquet")
    found, notes = read_file(tmp_path / "a.parquet")
    assert list(found) == ["patient", "kind", "took", "seen", "n"]
    assert found["took"].tolist() == [1.5, 0.5]
    assert isinstance(found["kind"].dtype, pd.CategoricalDtype)
    assert found["seen"].dtype.kind == "M"
    assert "durations turned into days in `took`" in notes
    with pytest.raises(ValueError, match=r"is for text, but a\.parquet is parquet"):
        read_file(tmp_path / "a.parquet", sep=",")


def test_kind_is_found_from_the_bytes_not_the_name(tmp_path):
    assert len(read(tmp_path, gzip.compress(b"a,b\n1,2\n"), "data.xlsx")[0]) == 1


def people(n=60, **columns):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.random(n), "site": rng.choice(["a", "b", "c"], n)})
    return frame.assign(y=rng.choice([0, 1], n), **columns)


def test_two_classes_are_0_and_1():
    for values in (["no", "yes"], [1, 2], [False, True], [0.0, 1.0]):
        y = np.resize(values, 60)
        data = prepare(people().assign(y=y), "y")
        assert data.task == "classification"
        np.testing.assert_array_equal(data.y, y == values[1])


@pytest.mark.parametrize(
    ("values", "task", "found"),
    [
        (np.arange(60) % 5, "auto", "classification"),
        (np.arange(60) % 5, "regression", "regression"),
        (np.arange(60), "auto", "regression"),
        (np.arange(60) % 30 / 7, "auto", "regression"),
        (np.resize(["a", "b", "c"], 60), "auto", "classification"),
        (np.arange(60) % 5, "number", "regression"),
        (np.arange(60) % 2, "number", "classification"),
    ],
)
def test_tasks(values, task, found):
    assert prepare(people().assign(y=values), "y", task=task).task == found


def test_rule_for_labels_is_the_selector_s():
    assert encoding.MOST_CLASSES == MOST_CLASSES
    for values in (np.arange(60) % 20, np.arange(60) % 21, np.arange(60) % 3 + 0.5):
        target = encoding.read_target(values, "auto")
        task = "regression" if target.classes is None else "classification"
        assert prepare(people().assign(y=values), "y").task == task


def test_domains():
    data = prepare(people(), "y", "site")
    assert sorted(set(data.domain)) == ["a", "b", "c"]
    assert list(data.X) == ["age"]
    years = prepare(people(year=np.resize([2001.0, 2002.0], 60)), "y", "year")
    assert set(years.domain) == {2001, 2002}
    assert "'2001' (30 rows)" in " ".join(years.notes)
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        prepare(people(year=np.resize([-1, 2], 60)), "y", "year")
    with pytest.raises(ValueError, match="must be two columns, got 'y' for both"):
        prepare(people(), "y", "y")
    # A number has no classes that a domain could lack.
    numbers = people(year=np.resize([1, 2], 60)).assign(y=np.resize([1.5, 2.5], 60))
    assert len(prepare(numbers, "y", "year").X) == 60


def test_rows_keep_together():
    frame = people().assign(row=np.arange(60) * 7 % 60)
    frame.loc[3:8, "y"] = np.nan
    frame.loc[20:22, "site"] = None
    data = prepare(frame, "y", "site")
    left = frame.dropna()
    np.testing.assert_array_equal(data.X["row"], left["row"])
    np.testing.assert_array_equal(data.y, left["y"])
    np.testing.assert_array_equal(data.domain, left["site"])
    assert "6 rows without `y` left out" in data.notes
    assert "3 rows without `site` left out" in data.notes


def test_columns_that_name_rows():
    frame = people(name=[f"n{i}" for i in range(60)], number=range(60))
    data = prepare(frame, "y", "site")
    assert list(data.X) == ["age", "number"]
    assert any("looks like a row number: `number`" in note for note in data.notes)
    assert "name" in prepare(frame, "y", "site", keep=["name"]).X
    assert list(prepare(frame, "y", "site", ids=["n*"]).X) == ["age"]


def test_few_rows():
    with pytest.raises(ValueError, match="at least 20 rows with a label, got 15"):
        prepare(people(15), "y")


def test_encoding_in_words():
    frame = pd.DataFrame(
        {
            "age": [1.0, np.nan, 3.0, 4.0],
            "sex": ["f", "m", None, "f"],
            "seen": pd.date_range("2024-01-01", periods=4),
            "town": ["a", "b", "c", "a"],
        }
    )
    assert describe_encoding(frame) == (
        "2 text columns one-hot encoded, 1 date turned into days, 1 missing value in `age` "
        "imputed, 1 missing value in `sex` as a level of their own"
    )
    assert describe_encoding(frame[["seen"]]) == "1 date turned into days"
    assert describe_encoding(pd.DataFrame({"a": [1, 2]})) == "numbers without gaps"


def test_treatments():
    X = people(drug=np.resize(["off", "on"], 60), arm=np.resize([1, 2, 3], 60))
    covariates, t, note = read_treatment(X, "drug", "arm")
    assert t.tolist() == [0, 1] * 30
    assert note == "treatment `drug`: 'on' is 1 (50.0 %), 'off' is 0"
    assert covariates["arm"].unique().tolist() == ["1", "2", "3"]
    with pytest.raises(ValueError, match="must be known in every row, got 30 missing"):
        read_treatment(X.assign(drug=np.resize([1, np.nan], 60)), "drug")


def test_which_class_is_one():
    frame = people(died=np.resize(["ja", "nein", "nein"], 60), old=np.resize([0, 1], 60))
    assert prepare(frame, "died").y.tolist() == [0, 1, 1] * 20
    chosen = prepare(frame, "died", positive="ja")
    assert chosen.y.tolist() == [1, 0, 0] * 20
    assert chosen.notes[0] == "label `died`: 'ja' is 1 (33.3 %), 'nein' is 0; classification"
    assert prepare(frame, "old", positive="0").y.tolist() == [1, 0] * 30
    _, t, note = read_treatment(frame, "died", treated="ja")
    assert t.tolist() == [1, 0, 0] * 20
    assert note == "treatment `died`: 'ja' is 1 (33.3 %), 'nein' is 0"


def test_a_class_that_is_not_there():
    frame = people(died=np.resize(["ja", "nein"], 60), site=np.resize(["a", "b", "c"], 60))
    wrong = "must be one of two classes, got 'yes' for {} 'died' with 'ja', 'nein'"
    with pytest.raises(ValueError, match="^positive " + wrong.format("label")):
        prepare(frame, "died", positive="yes")
    with pytest.raises(ValueError, match="^treated " + wrong.format("treatment")):
        read_treatment(frame, "died", treated="yes")
    with pytest.raises(ValueError, match=r"^positive must be one of two classes, got 'a' for"):
        prepare(frame, "site", positive="a")
    numbers = people(cost=np.arange(60) / 7)
    with pytest.raises(ValueError, match="positive is for two classes, but label 'cost' holds"):
        prepare(numbers, "cost", positive="1")
