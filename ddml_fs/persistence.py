"""Saved estimators: the version that saved them, and tables as plain arrays.

The state of an estimator has the version of the package, and another version that loads it warns.
Tables are stored as arrays: skops, which loads files of others safely, does not read pandas'
objects, and files then do not depend on the inner layout of a version of pandas.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ddml_fs.cautions import DDMLWarning, caution
from ddml_fs.version import __version__

KEY = "_ddml_fs_version"


class InconsistentVersionWarning(DDMLWarning):
    """An estimator was saved by another version of the package.

    Parameters
    ----------
    estimator_name : str
    current_version, original_version : str
        Of the package that loads the estimator, and of the one that saved it.
    """

    def __init__(self, estimator_name, current_version, original_version):
        self.estimator_name = estimator_name
        self.current_version = current_version
        self.original_version = original_version

    def __str__(self):
        return (
            f"this {self.estimator_name} was saved by ddml_fs {self.original_version} and is "
            f"loaded by {self.current_version}, so its results may differ; fit it again."
        )


@dataclass(frozen=True, eq=False)
class PlainTable:
    """A DataFrame or an index as arrays.

    Attributes
    ----------
    names : list
        Names of the columns, or of the levels of an index.
    columns : list of arrays
        Numbers as arrays, text as lists; start, stop and step of a range.
    dtypes : list of str
        "range" for a range.
    index : PlainTable, or None
        Of a DataFrame; an index has none.
    """

    names: list
    columns: list
    dtypes: list
    index: Any = None

    @classmethod
    def of(cls, table):
        """From a DataFrame or an index; None if it holds other things than numbers and text."""
        if isinstance(table, pd.DataFrame):
            parts = [table.iloc[:, j] for j in range(table.shape[1])]
            names, index = list(table.columns), cls.of(table.index)
            if index is None or not all(isinstance(name, str) for name in names):
                return None
        elif isinstance(table, pd.RangeIndex):
            ends = [table.start, table.stop, table.step]
            return cls([table.name], [ends], ["range"])
        elif isinstance(table, pd.MultiIndex):
            parts = [table.get_level_values(j) for j in range(table.nlevels)]
            names, index = list(table.names), None
        else:
            parts, names, index = [table], [table.name], None
        columns = [plain_values(part) for part in parts]
        if any(column is None for column in columns):
            return None
        return cls(names, columns, [str(part.dtype) for part in parts], index)

    def table(self):
        """The DataFrame or the index."""
        if self.index is not None:
            frame = pd.DataFrame(dict(enumerate(self.series())), index=self.index.table())
            return frame.set_axis(self.names, axis=1)
        if self.dtypes == ["range"]:
            return pd.RangeIndex(*self.columns[0], name=self.names[0])
        levels = [pd.Index(part) for part in self.series()]
        if len(levels) > 1:
            return pd.MultiIndex.from_arrays(levels, names=self.names)
        return levels[0].rename(self.names[0])

    def series(self):
        """Arrays of the columns, in their own types."""
        pairs = zip(self.columns, self.dtypes, strict=True)
        return [pd.Series(values, dtype=dtype).array for values, dtype in pairs]


def plain_values(part):
    """Numbers and dates as an array, text with gaps as a list, and None for all else."""
    if isinstance(part.dtype, np.dtype) and part.dtype.kind in "biufM":
        return part.to_numpy()
    if part.dtype != object and not isinstance(part.dtype, pd.StringDtype):
        return None
    values = part.tolist()
    simple = all(value is None or isinstance(value, str | bool | int | float) for value in values)
    return values if simple else None


def plain(value):
    """A value with its tables as plain arrays, also within dicts, lists and tuples."""
    if isinstance(value, pd.DataFrame | pd.Index):
        packed = PlainTable.of(value)
        return value if packed is None else packed
    return within_containers(value, plain)


def restored(value):
    """The inverse of :func:`plain`."""
    if isinstance(value, PlainTable):
        return value.table()
    return within_containers(value, restored)


def within_containers(value, change):
    """The value with a function applied to the members of dicts, lists and tuples."""
    if type(value) is dict:
        return {key: change(member) for key, member in value.items()}
    if type(value) in (list, tuple):
        return type(value)(change(member) for member in value)
    return value


class Versioned:
    """An estimator that can be saved; comes before ``BaseEstimator`` among the bases.

    Examples
    --------
    >>> import pickle
    >>> from ddml_fs import DDML
    >>> DDML().__getstate__()["_ddml_fs_version"] == __version__
    True
    >>> pickle.loads(pickle.dumps(DDML(n_folds=3))).n_folds
    3
    """

    def __getstate__(self):
        state = dict(super().__getstate__())  # type: ignore[call-overload]
        learned = {name: plain(value) for name, value in state.items() if name.endswith("_")}
        return state | learned | {KEY: __version__}

    def __setstate__(self, state):
        given = dict(state)
        saved_by = given.pop(KEY, "of an unknown version")
        if saved_by != __version__:
            caution(InconsistentVersionWarning(type(self).__name__, __version__, saved_by))
        learned = {name: restored(value) for name, value in given.items() if name.endswith("_")}
        super().__setstate__(given | learned)  # type: ignore[misc]
