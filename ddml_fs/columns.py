"""Columns of a file, read as what they hold: numbers, dates, text, and missing values."""

from difflib import get_close_matches
from fnmatch import fnmatchcase

import numpy as np
import pandas as pd

MOST_CLASSES = 20  # integers with more values are numbers, not labels
MARKS = {"na", "n/a", "#n/a", "nan", "<na>", "null", "?", "."}  # of a missing value, anywhere
WORDS = {"none", "missing", "unknown", "-", "--", "n.a.", "inf", "-inf"}  # among numbers only
DATE_FORMATS = (
    "ISO8601",
    "%d.%m.%Y",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%m/%d/%Y %H:%M",
    "%d/%m/%Y %H:%M",
    "%d.%m.%Y %H:%M",
    "%d-%m-%Y",
    "%d %b %Y",
    "%d-%b-%Y",
    "%b %d, %Y",
)
DATE = r"^(\d{4}[-/]\d{1,2}[-/]\d{1,2}|\d{1,2}[-./ ]\w{1,9}[-./ ]\d{4}|[A-Za-z]{3} \d{1,2}, \d{4})"
NEARLY_ALL = 0.95
DECIMAL_COMMA = r"[-+]?\d*,?\d+([eE][-+]?\d+)?"
THOUSANDS = r"[-+]?([1-9]\d{0,2}(,\d{3})+|\d+)(\.\d*)?"
NUMBER_LIKE = r"^[$€£]? ?-?\d[\d.,' ]*[%€]?$"


def named(names, most=3):
    """Names of columns in a sentence.

    Examples
    --------
    >>> named(["a", "b", "c", "d", "e"])
    '`a`, `b`, `c` and 2 more'
    """
    shown = ", ".join(f"`{name}`" for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def find_column(name, names):
    """A column by its name, or an error that names the nearest one."""
    if name in names:
        return name
    lower = {other.lower(): other for other in names}
    near = get_close_matches(name.lower(), lower, n=1)
    hint = f"did you mean {lower[near[0]]!r}?" if near else f"the columns are {named(names, 8)}."
    raise ValueError(f"there is no column {name!r}; {hint}")


def pick(patterns, names):
    """Columns by names or patterns such as "lab_*"; several may stand in one text, with commas.

    Examples
    --------
    >>> pick(["lab_*,age"], ["lab_a", "lab_b", "age", "sex"])
    ['lab_a', 'lab_b', 'age']
    """
    found: list = []
    for given in patterns:
        for pattern in [given] if given in names else given.split(","):
            pattern = pattern.strip()
            if any(c in pattern for c in "*?[") and pattern not in names:
                matches = [name for name in names if fnmatchcase(name, pattern)]
                if not matches:
                    raise ValueError(f"no column matches the pattern {pattern!r}.")
            else:
                matches = [find_column(pattern, names)]
            found += [name for name in matches if name not in found]
    return found


def tidy_columns(frame, decimal_commas=False):
    """Read every column as what it holds, and say what was done.

    Parameters
    ----------
    frame : DataFrame
        As a parser returns it, with text where it was in doubt.
    decimal_commas : bool, default=False
        Whether "1,500" is one and a half. Otherwise it is, if other values of the column tell.

    Returns
    -------
    frame : DataFrame
    notes : list of str

    Examples
    --------
    >>> frame, notes = tidy_columns(pd.DataFrame({"day": ["2024-05-01", "2024-06-01"]}))
    >>> frame["day"].dtype.kind, notes
    ('M', ['dates read in `day`'])
    """
    columns: dict = {}
    done: dict = {}
    for name in frame.columns:
        column = frame[name]
        if is_text(column):
            column, topics = read_texts(column, decimal_commas)
        else:
            column, topics = finite(column)
        columns[name] = column
        for topic in topics:
            done.setdefault(topic, []).append(name)
    tidy = pd.DataFrame(columns, index=frame.index)
    tidy, left_out = without_row_numbers(tidy)
    notes = [f"{topic} {named(names)}" for topic, names in done.items()]
    return tidy, notes + left_out + notes_on_empty(tidy)


def is_text(column):
    """Whether a column is neither numbers, truth values, dates nor a category."""
    types = pd.api.types
    return not (
        types.is_numeric_dtype(column)
        or types.is_bool_dtype(column)
        or types.is_datetime64_any_dtype(column)
        or types.is_timedelta64_dtype(column)
        or isinstance(column.dtype, pd.CategoricalDtype)
    )


def finite(column):
    """A typed column without infinities, and what was done."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column, []
    if pd.api.types.is_timedelta64_dtype(column):
        return column / pd.Timedelta(days=1), ["durations turned into days in"]
    if column.dtype.kind == "f" and np.isinf(column).any():
        return column.replace([np.inf, -np.inf], np.nan), ["infinite values read as missing in"]
    return column, []


def read_texts(column, decimal_commas=False):
    """A text column as numbers, dates or clean text, and what was done.

    Examples
    --------
    >>> read_texts(pd.Series([" 1", "2 ", "NA", "none"], name="age"))[0].tolist()
    [1.0, 2.0, nan, nan]
    """
    if column.map(lambda value: isinstance(value, list | dict | set | np.ndarray)).any():
        raise ValueError(f"column {column.name!r} must hold single values, got lists.")
    text = column.astype(str).str.strip().where(column.notna())
    lower = text.str.lower()
    marked = lower.isin(MARKS)
    values = text.mask(marked | (text == ""))
    topics = [f"{mark!r} read as missing in" for mark in sorted(set(text[marked]))]
    if not values.notna().any():
        return values, topics
    words = lower.isin(WORDS)
    numbers, commas = numbers_in(values.mask(words), decimal_commas)
    if numbers is not None:
        topics += [f"{word!r} read as missing in" for word in sorted(set(text[words]))]
        return numbers, commas + topics
    dates, more = dates_in(values)
    if dates is not None:
        return dates, topics + more
    return values, topics + almost_numbers(values)


def numbers_in(values, decimal_commas=False):
    """Text as numbers or None, and what was done.

    A comma between a number below 1000 and three digits is a decimal comma only if that is said, or
    if other values of the column tell.

    Examples
    --------
    >>> [numbers_in(pd.Series(own))[0].tolist() for own in (["1,5", "2,125"], ["1,500", "2,125"])]
    [[1.5, 2.125], [1500, 2125]]
    """
    given = values.dropna()
    if given.empty:
        return None, []
    numbers = pd.to_numeric(values, errors="coerce")
    if numbers.notna().equals(values.notna()):
        return numbers, []
    thousands = given.str.fullmatch(THOUSANDS).all()
    if given.str.fullmatch(DECIMAL_COMMA).all() and (decimal_commas or not thousands):
        return pd.to_numeric(values.str.replace(",", ".", regex=False)), ["decimal commas read in"]
    if thousands:
        numbers = pd.to_numeric(values.str.replace(",", "", regex=False))
        return numbers, ["commas between thousands left out in"]
    return None, []


def dates_in(values):
    """Text as dates or None, and what was done."""
    given = values.dropna()
    if given.str.match(DATE).mean() < NEARLY_ALL:
        return None, []
    fits = {}
    for form in DATE_FORMATS:
        dates = pd.to_datetime(given, format=form, errors="coerce", utc=True)
        if dates.notna().mean() >= NEARLY_ALL:
            fits[form] = dates
    if not fits:
        return None, []
    form = max(fits, key=lambda form: fits[form].notna().sum())  # the first of equals
    dates = fits[form].dt.tz_localize(None).reindex(values.index)
    topics = ["dates read in"]
    if form.startswith("%m/") and form.replace("%m/%d", "%d/%m") in fits:
        topics = ["dates read with the month first in"]
    if dates.notna().sum() < len(given):
        topics += ["values that are no dates read as missing in"]
    return dates, topics


def almost_numbers(values):
    """What to say of text that may have been meant as numbers."""
    given = values.dropna()
    numbers = pd.to_numeric(given, errors="coerce")
    if numbers.notna().mean() >= 0.9:
        wrong = given[numbers.isna()].iloc[0]
        return [f"values such as {wrong!r} make text of the numbers in"]
    if given.str.match(NUMBER_LIKE).mean() >= NEARLY_ALL:
        return [f"values such as {given.iloc[0]!r} are text, not numbers, in"]
    return []


def without_row_numbers(frame):
    """A table without unnamed columns that are empty or count its rows."""
    counted, empty = [], []
    for name in frame.columns:
        if name.startswith("Unnamed: ") or name in ("", "index"):
            column = frame[name]
            if column.isna().all():
                empty.append(name)
            elif counts_rows(column):
                counted.append(name)
    notes = [f"row numbers left out: {named(counted)}"] if counted else []
    notes += [f"empty columns without a name left out: {named(empty)}"] if empty else []
    return frame.drop(columns=counted + empty), notes


def counts_rows(column):
    """Whether a column is 0, 1, 2, ... or 1, 2, 3, ..."""
    if not pd.api.types.is_numeric_dtype(column) or column.isna().any():
        return False
    count = np.arange(len(column))
    return np.array_equal(column, count) or np.array_equal(column, count + 1)


def notes_on_empty(frame):
    """Name columns that say nothing."""
    empty = [name for name in frame.columns if frame[name].isna().all()]
    constant = [n for n in frame.columns if n not in empty and frame[n].nunique(dropna=False) == 1]
    notes = [f"all values missing in {named(empty)}"] if empty else []
    return notes + ([f"the same value in every row of {named(constant)}"] if constant else [])
