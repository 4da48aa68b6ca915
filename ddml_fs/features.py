"""Reads tables of any kind into blocks of numeric columns; a feature is one block."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ddml_fs.chunks import chunks
from ddml_fs.near_copies import key_of, near_copies
from ddml_fs.readers import Reader, reader_of
from ddml_fs.weights import weighted_var

ROOMY = 0.25  # columns a row, hinges included, up to which numbers are given hinges
SMALLEST = 1e-150  # standard deviation of a column that varies; squares of less are 0


@dataclass(frozen=True, eq=False)
class Encoding:
    """How a table is read: one reader per column, and the feature of each column.

    Attributes
    ----------
    readers : list of Reader
        One per column of the table.
    feature : int array of shape (n_columns,)
        The feature that a column of the table belongs to.
    names : list of str
        Names of the features.
    """

    readers: list
    feature: np.ndarray
    names: list

    @classmethod
    def of(cls, X, names, groups=None):
        """From an array (N, D) or a DataFrame, the names of its columns, and their groups."""
        if isinstance(X, pd.DataFrame):
            readers = [reader_of(X.iloc[:, j]) for j in range(X.shape[1])]
        else:
            missing, middle = np.empty(X.shape[1], bool), np.empty(X.shape[1])
            for at in chunks(X.shape[1], 8 * len(X)):
                part = np.ascontiguousarray(X[:, at].T)
                missing[at], middle[at] = np.isnan(part).any(1), np.median(part, 1)
            readers = [
                reader_of(pd.Series(X[:, j], name=name))
                if missing[j]
                else Reader(name, "number", fill=float(middle[j]))
                for j, name in enumerate(names)
            ]
        if groups is None:
            return cls(readers, np.arange(len(readers)), list(names))
        groups = np.asarray(groups)
        if groups.shape != (len(readers),):
            raise ValueError(
                f"groups must name a group for each of the {len(readers)} columns, got an array of "
                f"shape {groups.shape}."
            )
        labels, first, feature = np.unique(groups, return_index=True, return_inverse=True)
        place = np.argsort(np.argsort(first))  # in the order of their first columns
        return cls(readers, place[feature], [str(labels[i]) for i in np.argsort(first)])

    @property
    def width(self):
        """Number of numeric columns that each reader makes, (n_columns,)."""
        return np.array(
            [len(r.levels) if r.kind == "category" else 1 + r.indicator for r in self.readers]
        )

    @property
    def columns(self):
        """Names of the columns of :meth:`read`: a category has one per level, as "shop = a"."""
        names = []
        for r in self.readers:
            if r.kind == "category":
                names += [f"{r.name} = {level}" for level in r.levels]
            else:
                names += [r.name, *([f"{r.name} missing"] if r.indicator else [])]
        return names

    @property
    def own(self):
        """The feature of every column of :meth:`read`, an int array (Q,)."""
        return np.repeat(self.feature, self.width)

    @property
    def plain(self):
        """Whether all columns are numbers without indicators, read unchanged."""
        return all(r.kind == "number" and not r.indicator for r in self.readers)

    def read(self, X):
        """A table as numbers, (N, Q)."""
        if isinstance(X, pd.DataFrame):
            columns = [r.read(X.iloc[:, j]) for j, r in enumerate(self.readers)]
            return np.hstack(columns) if columns else np.empty((len(X), 0))
        if self.plain:
            fill = np.array([r.fill for r in self.readers])
            return np.where(np.isnan(X), fill, X) if np.isnan(X).any() else X
        columns = [r.read(pd.Series(X[:, j])) for j, r in enumerate(self.readers)]
        return np.hstack(columns)

    def features(self, X, weight=1.0):
        """The distinct features of a table, whose rows have the given weights."""
        return read_features(self.read(X), self.own, len(self.names), weight)


@dataclass(frozen=True, eq=False)
class Features:
    """The distinct, varying features of a table, as blocks of columns.

    Attributes
    ----------
    X : array of shape (N, Q)
        The table as numbers, in its own units.
    feature : int array of shape (Q,)
        The feature of each of these columns.
    Z : array of shape (N, P)
        Linear columns of the distinct features in single precision, those of one feature next to
        each other; two-valued columns as 0/1, others centred and divided by ``step``.
    own : int array of shape (P,)
        The distinct feature that a column belongs to, in increasing order.
    binary : bool array of shape (P,)
    unit : array of shape (P,)
        Standard deviations of the columns of Z.
    step : array of shape (P,)
        Powers of two by which the columns of Z were divided, so that their units are about 1.
    group : int array of shape (F_in,)
        For each feature of the table the number of its distinct feature. Copies share a number;
        constants have −1.
    scale : array of shape (F_in,)
        Standard deviation of a feature with one column, negative if its sign is opposite to that of
        its copy; 1 for other features.
    near : int array of shape (F,)
        The first feature that nearly repeats this one, or the feature itself.
    """

    X: np.ndarray
    feature: np.ndarray
    Z: np.ndarray
    own: np.ndarray
    binary: np.ndarray
    unit: np.ndarray
    step: np.ndarray
    group: np.ndarray
    scale: np.ndarray
    near: np.ndarray

    @classmethod
    def without_rows(cls, unit, group, scale, near):
        """Features of one column each, of a table whose rows are not at hand."""
        D, F = len(group), len(near)
        return cls(
            X=np.empty((0, D)),
            feature=np.arange(D),
            Z=np.empty((0, F), np.float32),
            own=np.arange(F),
            binary=np.zeros(F, bool),
            unit=unit,
            step=np.ones(F),
            group=group,
            scale=scale,
            near=near,
        )

    @property
    def n_features(self):
        """Number of distinct features, F."""
        return len(self.near)

    @property
    def size(self):
        """Columns of each distinct feature, (F,)."""
        return np.bincount(self.own, minlength=self.n_features)

    @property
    def first(self):
        """For each distinct feature the first feature of the table that it stands for, (F,)."""
        varies = np.flatnonzero(self.group >= 0)
        return varies[np.unique(self.group[varies], return_index=True)[1]]

    def columns_of(self, features):
        """Columns of X that belong to the given distinct features, in their order."""
        parts = [np.flatnonzero(self.feature == self.first[f]) for f in features]
        return np.concatenate([*parts, np.empty(0, int)])


def read_features(X, feature, n_features, weight=1.0):
    """Find the distinct, varying features of a table of numbers.

    Parameters
    ----------
    X : array of shape (N, Q)
    feature : int array of shape (Q,)
        The feature of each column.
    n_features : int
    weight : float or array of shape (N,)
        Weights of the rows, for standard deviations and correlations.

    Returns
    -------
    features : Features

    Examples
    --------
    >>> X = np.array([[1.0, 5, 2, 3], [3, 5, 4, 1], [1, 5, 9, 3], [1, 5, 7, 3]])
    >>> features = read_features(X, np.arange(4), 4)
    >>> features.group.tolist(), features.binary.tolist(), features.Z[:, 0].tolist()
    ([0, -1, 1, 0], [True, False], [0.0, 1.0, 0.0, 0.0])
    """
    low, high = X.min(0).astype(np.float64), X.max(0).astype(np.float64)
    varies, binary, step, sd = (np.empty(X.shape[1], kind) for kind in (bool, bool, float, float))
    Z, keys = np.empty(X.shape, np.float32), []
    for at in chunks(X.shape[1], 8 * len(X)):
        part = X[:, at].astype(np.float64, copy=False)
        varies[at] = (low[at] < high[at]) & (part.std(0) > SMALLEST)
        binary[at] = ((low[at] == part) | (high[at] == part)).all(0) & varies[at]
        # Centred first, as a large offset would hide the variation; 0.0 removes negative zeros.
        values = np.where(binary[at], high[at] == part, part - part.mean(0)) + 0.0
        # Single precision holds no squares of extreme values. A power of two changes no digit.
        step[at] = np.where(varies[at] & ~binary[at], 2.0 ** np.frexp(values.std(0))[1], 1.0)
        values /= step[at]
        sd[at] = np.sqrt(weighted_var(values, weight))
        rows = np.ascontiguousarray(values.T), sd[at], varies[at]
        keys += [key_of(x, s) if varied else None for x, s, varied in zip(*rows, strict=True)]
        Z[:, at] = values
    unit = np.where(binary, high - low, step)  # of the values of Z
    group, scale = np.full(n_features, -1), np.ones(n_features)
    place = np.argsort(feature, kind="stable")
    bounds = np.searchsorted(feature[place], np.arange(n_features + 1))
    first: dict = {}
    kept, owners = [], []  # type: list, list
    for f in range(n_features):
        if not (columns := [j for j in place[bounds[f] : bounds[f + 1]] if varies[j]]):
            continue
        if len(columns) == 1:
            sign, _, key = keys[columns[0]]
            scale[f] = sign * sd[columns[0]] * unit[columns[0]]
        else:
            key = b"".join(keys[j][1] for j in columns)
        if key not in first:
            first[key] = len(first)
            kept += columns
            owners += [first[key]] * len(columns)
        group[f] = first[key]
    Z = Z if kept == list(range(X.shape[1])) else np.ascontiguousarray(Z[:, kept])
    return Features(
        X=X,
        feature=feature,
        Z=Z,
        own=(own := np.array(owners, dtype=int)),
        binary=binary[kept],
        unit=sd[kept],
        step=step[kept],
        group=group,
        scale=scale,
        near=near_copies(Z, own, sd[kept], weight),
    )
