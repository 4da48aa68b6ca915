"""Tables as people have them, read into blocks of columns: a feature is one block."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

KNOTS = (0.25, 0.5, 0.75)  # quantiles where a bent effect may change its slope
RARE = 0.005  # levels with a smaller share of the rows are one, "other"
MISSING = 0.01  # a column with a larger share of missing numbers gets an indicator
NEAR = 0.995  # columns with a larger correlation are one quantity, measured twice
DIGITS = 5  # to which standardised columns are compared
MISSING_LEVEL = "missing"


@dataclass(frozen=True)
class Reader:
    """How one column of a table is read, as its rows at ``fit`` decided.

    Attributes
    ----------
    name : str
    kind : {"number", "date", "category"}
    levels : tuple
        Of a category, those with an indicator.
    fill : float
        Stands for a missing number: the median.
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
    """A column of categories as text, missing values as a level of their own, (N,)."""
    missing = pd.isna(column).to_numpy()
    return np.where(missing, MISSING_LEVEL, column.astype(str).to_numpy(dtype=object))


def numbers_of(column, kind):
    """A column of numbers, truth values or dates as numbers, NaN where they are missing, (N,)."""
    if kind == "date":
        days = (column - pd.Timestamp(0, tz=column.dt.tz)) / pd.Timedelta(days=1)
        return days.to_numpy(dtype=np.float64)
    values = pd.to_numeric(column).to_numpy(dtype=np.float64, na_value=np.nan)
    if np.isinf(values).any():
        raise ValueError(f"column {column.name!r} must hold finite numbers, got infinity.")
    return values


def reader_of(column):
    """How to read a column of a DataFrame.

    Examples
    --------
    >>> reader_of(pd.Series([1.0, None, 3.0, 4.0], name="age")).note
    'number; 1 missing: the median, and an indicator'
    >>> reader_of(pd.Series(["a", "b", None, "b", "a", None], name="shop")).levels
    ('a', 'b', 'missing')
    """
    name = str(column.name)
    if pd.api.types.is_datetime64_any_dtype(column):
        kind, what = "date", "date, in days"
    elif pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        kind, what = "number", "number"
    else:
        counts = pd.Series(texts_of(column)).value_counts().sort_index()
        common = counts >= max(RARE * len(column), 2)
        # Of two levels, the other one is where this is not.
        levels = tuple(counts.index[common] if len(counts) > 2 else counts.index[-1:])
        note = f"category with {len(counts)} levels"
        if (~common).any():
            note += f"; {int((~common).sum())} rare ones are one, 'other'"
        if MISSING_LEVEL in counts:
            note += f"; {counts[MISSING_LEVEL]} missing are a level"
        return Reader(name, "category", levels, note=note)
    values = numbers_of(column, kind)
    missing = int(np.isnan(values).sum())
    fill = float(np.nanmedian(values)) if missing < len(values) else 0.0
    if not missing:
        return Reader(name, kind, fill=fill, note=what)
    indicator = missing > MISSING * len(values)
    note = f"{what}; {missing} missing: the median" + (", and an indicator" if indicator else "")
    return Reader(name, kind, fill=fill, indicator=indicator, note=note)


@dataclass(frozen=True, eq=False)
class Encoding:
    """How a table is read: one reader a column, and the feature of each.

    Attributes
    ----------
    readers : list of Reader
        One per column of the table.
    feature : int array of shape (n_columns,)
        The feature that a column of the table belongs to.
    names : list of str
        Of the features.
    """

    readers: list
    feature: np.ndarray
    names: list

    @classmethod
    def of(cls, X, names, groups=None):
        """From a table: an array (N, D) or a DataFrame, names of its columns, and their groups."""
        if isinstance(X, pd.DataFrame):
            readers = [reader_of(X.iloc[:, j]) for j in range(X.shape[1])]
        else:
            missing = np.isnan(X).sum(0) if np.isnan(X).any() else np.zeros(X.shape[1], int)
            readers = [
                reader_of(pd.Series(X[:, j], name=name))
                if k
                else Reader(name, "number", fill=float(np.median(X[:, j])))
                for j, (name, k) in enumerate(zip(names, missing, strict=True))
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
        """Numbers of columns that the readers make, (n_columns,)."""
        return np.array(
            [len(r.levels) if r.kind == "category" else 1 + r.indicator for r in self.readers]
        )

    @property
    def own(self):
        """The feature of every column of :meth:`read`, an int array (Q,)."""
        return np.repeat(self.feature, self.width)

    @property
    def plain(self):
        """Whether a table of numbers is read as it is."""
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
        Linear columns of the distinct features, those of a feature side by side; in single
        precision, two-valued ones as 0/1, others centred.
    own : int array of shape (P,)
        The distinct feature that a column belongs to, in rising order.
    binary : bool array of shape (P,)
    unit : array of shape (P,)
        Standard deviations of the columns of Z.
    group : int array of shape (F_in,)
        For each feature of the table its distinct one; copies share one, constants have −1.
    scale : array of shape (F_in,)
        Standard deviation of a feature of one column, negative where its sign is turned against
        its copy's; 1 for others.
    near : int array of shape (F,)
        A feature that measures nearly the same and comes before; itself where there is none.
    """

    X: np.ndarray
    feature: np.ndarray
    Z: np.ndarray
    own: np.ndarray
    binary: np.ndarray
    unit: np.ndarray
    group: np.ndarray
    scale: np.ndarray
    near: np.ndarray

    @property
    def n_features(self):
        """F, distinct ones."""
        return len(self.near)

    @property
    def size(self):
        """Columns of each distinct feature, (F,)."""
        return np.bincount(self.own, minlength=self.n_features)

    @property
    def first(self):
        """A feature of the table for each distinct one, (F,)."""
        varies = np.flatnonzero(self.group >= 0)
        return varies[np.unique(self.group[varies], return_index=True)[1]]

    def columns_of(self, features):
        """Columns of X that hold distinct features, in their order."""
        return np.concatenate(
            [np.flatnonzero(self.feature == self.first[f]) for f in features] or [np.empty(0, int)]
        )


def read_features(X, feature, n_features):
    """Read a table of numbers.

    Parameters
    ----------
    X : array of shape (N, Q)
    feature : int array of shape (Q,)
        The feature of each column.
    n_features : int

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
    low, high = X.min(0), X.max(0)
    varies = low < high
    binary = ((low == X) | (high == X)).all(0) & varies
    # Centred before it is rounded, so that no large offset drowns a column; no negative zeros.
    values = np.where(binary, high == X, X - X.mean(0)) + 0.0
    sd = values.std(0)
    group, scale = np.full(n_features, -1), np.ones(n_features)
    place = np.argsort(feature, kind="stable")
    bounds = np.searchsorted(feature[place], np.arange(n_features + 1))
    first: dict = {}
    kept: list = []
    owners: list = []
    for f in range(n_features):
        columns = [j for j in place[bounds[f] : bounds[f + 1]] if varies[j]]
        if not columns:
            continue
        key, sign = b"", 1.0
        for j in columns:
            standard = np.round((values[:, j] - values[:, j].mean()) / sd[j], DIGITS)
            turned = np.sign(standard[np.argmax(np.abs(standard) > 0.1)])
            sign = turned if len(columns) == 1 else 1.0
            key += (standard * sign + 0.0).astype(np.float32).tobytes()
        if len(columns) == 1:
            scale[f] = X[:, columns[0]].std() * sign
        if key not in first:
            first[key] = len(first)
            kept += columns
            owners += [first[key]] * len(columns)
        group[f] = first[key]
    Z = np.ascontiguousarray(values[:, kept], dtype=np.float32)
    own = np.array(owners, dtype=int)
    return Features(
        X=X,
        feature=feature,
        Z=Z,
        own=own,
        binary=binary[kept],
        unit=sd[kept],
        group=group,
        scale=scale,
        near=near_copies(Z, own, sd[kept]),
    )


def near_copies(Z, own, unit):
    """For each feature the first that measures nearly the same, or itself, (F,)."""
    n_features = own.max(initial=-1) + 1
    near = np.arange(n_features)
    alone = np.flatnonzero(np.bincount(own, minlength=n_features)[own] == 1)
    if len(alone) < 2:
        return near
    standard = (Z[:, alone] - Z[:, alone].mean(0)) / unit[alone].astype(Z.dtype)
    alike = np.abs(standard.T @ standard) > NEAR * len(Z)
    for i, f in enumerate(own[alone]):
        near[f] = near[own[alone[np.argmax(alike[i])]]]
    return near


def bent_columns(features):
    """Hinges of the columns that take more than two values, for effects that are not linear.

    Returns
    -------
    hinges : array of shape (N, H)
    column : int array of shape (H,)
        The column of ``features.Z`` that a hinge bends.
    """
    hinges, column = [], []
    for j in np.flatnonzero(~features.binary):
        x = features.Z[:, j]
        low, high = x.min(), x.max()
        for knot in np.unique(np.quantile(x, KNOTS)):
            if low < knot < high:
                hinges.append(np.maximum(x - knot, 0))
                column.append(j)
    if not hinges:
        return np.empty((len(features.Z), 0), np.float32), np.empty(0, int)
    return np.column_stack(hinges), np.array(column)
