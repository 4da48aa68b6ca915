"""How one column of a table is read: as numbers, as a date, or as the levels of a category."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from numbers import Real

import numpy as np
import pandas as pd

RARE = 0.005  # levels with a smaller share of the rows are merged into "other"
MISSING = 0.01  # a column with a larger share of missing numbers gets an indicator
MISSING_LEVEL = "missing"


@dataclass(frozen=True)
class Reader:
    """How one column of a table is read, as determined from the rows in ``fit``.

    Attributes
    ----------
    name : str
    kind : {"number", "date", "category"}
    levels : tuple
        For a category, the levels that have an indicator.
    fill : float
        Value in place of a missing number: the median.
    indicator : bool
        Whether missing numbers have an indicator.
    note : str
        What was done, in words.
    """

    name: str
    kind: str
    levels: tuple = ()
    fill: float = 0.0
    indicator: bool = False
    note: str = ""

    def read(self, column):
        """The column as numbers, (N, k)."""
        if self.kind == "category":
            text = texts_of(column)
            return (text[:, None] == np.array(self.levels, dtype=object)).astype(np.float64)
        values = numbers_of(column, self.kind)
        missing = np.isnan(values)
        values = np.where(missing, self.fill, values)
        return np.column_stack([values, missing] if self.indicator else [values])


def texts_of(column):
    """A column of categories as text, with missing values as a separate level, (N,)."""
    missing = pd.isna(column).to_numpy()
    return np.where(missing, MISSING_LEVEL, column.astype(str).to_numpy(dtype=object))


def holds_numbers(values):
    """Whether known values (N,) of any type are numbers, which objects may be too.

    Examples
    --------
    >>> holds_numbers([1, 2.5, Decimal("0.1")]), holds_numbers([1, "2"]), holds_numbers([True])
    (True, False, False)
    """
    return all(isinstance(v, Real | Decimal) and not isinstance(v, bool | np.bool_) for v in values)


def typed(column):
    """A column with the type of what it holds: numbers and dates as objects, durations, periods.

    Examples
    --------
    >>> typed(pd.Series([1, None, 2.5], dtype=object)).tolist()
    [1.0, nan, 2.5]
    >>> typed(pd.Series(pd.to_timedelta(["1 day", "12 h"]))).tolist()
    [1.0, 0.5]
    """
    if pd.api.types.is_timedelta64_dtype(column):
        return column / pd.Timedelta(days=1)
    if isinstance(column.dtype, pd.PeriodDtype):
        return column.dt.to_timestamp()
    if column.dtype == object and len(known := column.dropna()):
        if holds_numbers(known):
            return column.astype(np.float64)
        if all(isinstance(v, date) for v in known):
            return pd.to_datetime(column, errors="coerce")
    return column


def numbers_of(column, kind):
    """A column of numbers, booleans or dates as numbers, with NaN for missing values, (N,)."""
    column = typed(column)
    if kind == "date":
        days = (column - pd.Timestamp(0, tz=column.dt.tz)) / pd.Timedelta(days=1)
        return days.to_numpy(dtype=np.float64)
    if pd.api.types.is_complex_dtype(column):
        raise ValueError(f"column {column.name!r} must hold real numbers, got complex ones.")
    try:
        values = pd.to_numeric(column).to_numpy(dtype=np.float64, na_value=np.nan)
    except ValueError:
        wrong = next(v for v in column if np.isnan(pd.to_numeric(v, errors="coerce")))
        raise ValueError(
            f"column {column.name!r} must hold numbers, as in fit, got {wrong!r}."
        ) from None
    if np.isinf(values).any():
        raise ValueError(f"column {column.name!r} must hold finite numbers, got infinity.")
    return values


def fewest_rows(n):
    """The rows that a level must have to be one of its own, in a column of n rows."""
    return max(RARE * n, 2)


def numbers_as_text(column):
    """Whether text holds numbers, and most rows would be lost if each value were a level."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return False
    counts = column.value_counts()
    if counts[counts >= fewest_rows(len(column))].sum() > counts.sum() / 2:
        return False
    return bool(len(counts) > 2 and pd.to_numeric(counts.index, errors="coerce").notna().all())


def reader_of(column):
    """How to read a column of a DataFrame.

    Examples
    --------
    >>> reader_of(pd.Series([1.0, None, 3.0, 4.0], name="age")).note
    'number; 1 missing set to the median, with an indicator'
    >>> reader_of(pd.Series(["a", "b", None, "b", "a", None], name="shop")).levels
    ('a', 'b', 'missing')
    >>> reader_of(pd.Series(["0.7", "1.3", "2.1", "3.4"], name="price")).note
    'number, from text'
    """
    name, column = str(column.name), typed(column)
    if pd.api.types.is_datetime64_any_dtype(column):
        kind, what = "date", "date, in days"
    elif pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        kind, what = "number", "number"
    elif numbers_as_text(column):
        kind, what = "number", "number, from text"
    else:
        counts = pd.Series(texts_of(column)).value_counts().sort_index()
        common = counts >= fewest_rows(len(column))
        # With two levels, one indicator is enough.
        levels = tuple(counts.index[common] if len(counts) > 2 else counts.index[-1:])
        note = f"category with {len(counts)} levels"
        if (~common).any():
            note += f"; {int((~common).sum())} rare levels merged into 'other'"
        if MISSING_LEVEL in counts:
            note += f"; {counts[MISSING_LEVEL]} missing as a level"
        return Reader(name, "category", levels, note=note)
    values = numbers_of(column, kind)
    missing = int(np.isnan(values).sum())
    fill = float(np.nanmedian(values)) if missing < len(values) else 0.0
    if not missing:
        return Reader(name, kind, fill=fill, note=what)
    indicator = missing > MISSING * len(values)
    note = f"{what}; {missing} missing set to the median" + ", with an indicator" * indicator
    return Reader(name, kind, fill=fill, indicator=indicator, note=note)
