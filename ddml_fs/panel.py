"""Fixed effects of units and times, taken out by the within-transformation.

In Y = θT + f(X) + α + ζ, the effect α of a unit (a person, a shop) may confound in any way, as long
as it does not change with time. The means of each unit are subtracted from Y, T and X, which takes
α out. With a second way, such as the year, the means of both ways are subtracted until none is
left. With sample weights the means are weighted. The effect then follows from the partially linear
score on the transformed data.

For a linear f this is exact: f(X) minus its mean over the unit is f of the transformed X. For a
bent f it is an approximation, because that difference depends on all rows of the unit, and a part
of the confounding remains. The unit means of the covariates are therefore covariates, too (the
device of Mundlak, 1978), so that the nuisances see the level of X. In simulated panels of 300 units
with six rows each, confounded by a square, the error of the effect fell from 0.47 to 0.09 with the
means, and from 0.32 to 0.31 where a sine confounded ("smooth" nuisances, a true effect of 1, three
seeds, measured once by hand). With the right bends of the covariates as further columns of X it
was 0.02: if confounding is far from linear, pass such columns.
"""

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ddml_fs.cautions import caution
from ddml_fs.weights import check_weights

TOLERANCE = 1e-11  # of the means that are left, in standard deviations
MOST_ROUNDS = 20000
CONSTANT = 1e-9  # share of the standard deviation below which a column does not vary within units


def means_of(values, codes, weight):
    """Weighted mean of each row's group; values (N, D), codes (N,), weight (N,)."""
    size = np.bincount(codes, weight)
    sums = np.column_stack([np.bincount(codes, weight * column) for column in values.T])
    return (sums / size[:, None])[codes]


def within(values, codes, weight=None):
    """Subtract the means of all groups, in one way or two.

    Parameters
    ----------
    values : array of shape (N,) or (N, D)
    codes : int array of shape (N, 1) or (N, 2)
        Groups, numbered from 0. With two ways, the means of both are subtracted in turn until all
        of them vanish (alternating projections), which also holds for unbalanced panels.
    weight : array of shape (N,), optional
        Positive weights of the rows; by default 1.

    Returns
    -------
    values : array of the same shape

    Examples
    --------
    >>> within(np.array([1.0, 3, 4, 8]), np.array([[0], [0], [1], [1]])).tolist()
    [-1.0, 1.0, -2.0, 2.0]
    """
    weight = np.ones(len(values)) if weight is None else weight
    left = np.array(values, dtype=np.float64).reshape(len(values), -1)
    spread = np.maximum(left.std(0), np.finfo(float).tiny)
    left -= left.mean(0)
    for _ in range(MOST_ROUNDS):
        largest = np.zeros(left.shape[1])
        for way in codes.T:
            means = means_of(left, way, weight)
            left -= means
            largest = np.maximum(largest, np.abs(means).max(0))
        if codes.shape[1] == 1 or (largest <= TOLERANCE * spread).all():
            return left.reshape(np.shape(values))
    raise ValueError(
        f"fixed_effects must be two ways that are connected well enough, got means that do not "
        f"vanish in {MOST_ROUNDS} rounds; use one way."
    )


def rows_with_company(codes, used=True):
    """Rows whose unit, and whose time, has another row that is kept; a bool array (N,).

    Parameters
    ----------
    codes : int array of shape (N, 1) or (N, 2)
    used : bool array of shape (N,)
        Rows that may be kept; by default all.

    Examples
    --------
    >>> rows_with_company(np.array([[0, 0], [0, 1], [1, 1], [2, 0], [2, 1]])).tolist()
    [True, True, False, True, True]
    """
    keep = np.ones(len(codes), dtype=bool) & used
    while True:
        alone = np.zeros(len(codes), dtype=bool)
        for way in codes.T:
            alone |= keep & (np.bincount(way[keep], minlength=way.max() + 1)[way] == 1)
        if not alone.any():
            return keep
        keep &= ~alone


def inflation(codes, clusters, n_slopes=1):
    """Small-sample factor of a clustered standard error, √((N − 1) / (N − K)).

    K counts the slopes, one intercept, and the levels less one of every way of fixed effects that
    is not nested in a way of clustering. Nested effects need no correction, because the clusters
    allow for them. Parameters of the nuisances are not counted.

    Parameters
    ----------
    codes : int array of shape (N, 1) or (N, 2)
        Fixed effects.
    clusters : int array of shape (N, 1) or (N, 2)
    n_slopes : int, default=1

    Examples
    --------
    >>> unit, time = np.repeat(np.arange(5), 4), np.tile(np.arange(4), 5)
    >>> both = np.column_stack([unit, time])
    >>> round(float(inflation(both, unit[:, None]) ** 2 * (20 - (1 + 1 + 3))), 6)  # N − 1
    19.0
    """
    K = n_slopes + 1
    for way in codes.T:
        pairs = [len(np.unique(np.column_stack([way, c]), axis=0)) for c in clusters.T]
        levels = len(np.unique(way))
        if min(pairs) > levels:
            K += levels - 1
    if K >= len(codes):
        raise ValueError(
            f"fixed_effects must have fewer levels than rows, got {K} parameters for "
            f"{len(codes)} rows."
        )
    return float(np.sqrt((len(codes) - 1) / (len(codes) - K)))


@dataclass(frozen=True, eq=False)
class Panel:
    """Fixed effects of the rows.

    Attributes
    ----------
    given : list of str, or int array of shape (N, 1) or (N, 2)
        Names of columns of X, or groups; what a second fit of the same rows needs.
    keep : bool array of shape (N,)
        Rows that carry information: those with weight, and with another such row of their unit and
        time.
    codes : int array of shape (n_kept, 1) or (n_kept, 2)
        Groups of the rows that are kept, numbered from 0.
    weight : array of shape (n_kept,)
        Their weights, with mean 1.
    alone : int
        Number of rows with weight that are not kept.
    """

    given: Any
    keep: np.ndarray
    codes: np.ndarray
    weight: np.ndarray
    alone: int

    @property
    def note(self):
        """What was taken out, in a sentence."""
        units, *times = self.codes.max(0) + 1
        second = f" and of {times[0]} times" if times else ""
        left_out = f"; {self.alone} rows without another row of their unit left out"
        rest = left_out if self.alone else ""
        return f"Fixed effects of {units} units{second} taken out{rest}."

    def take_out(self, values, name):
        """One variable of all rows (N,), as deviations from the means of its groups (n_kept,)."""
        kept = values[self.keep]
        left = within(kept, self.codes, self.weight)
        if left.std() <= CONSTANT * max(kept.std(), np.finfo(float).tiny):
            raise ValueError(
                f"{name} must vary within units, got one that the fixed effects determine."
            )
        return left

    def index(self, given):
        """Index of the rows that are kept; of their numbers if no index is given."""
        return (pd.RangeIndex(len(self.keep)) if given is None else given)[self.keep]

    def clusters(self, given, n_folds):
        """Clusters of the rows that are kept: the given ones, or the units; (n_kept, 1 or 2)."""
        clusters = self.codes[:, :1] if given is None else given[self.keep]
        least = min(len(np.unique(way)) for way in clusters.T)
        if least < n_folds:
            what = "units" if given is None else "clusters with units of two rows or more"
            raise ValueError(
                f"fixed_effects must have at least n_folds={n_folds} {what}, got {least}."
            )
        return clusters

    def covariates(self, X, column):
        """Deviations of the covariates from their means, and the means of the units.

        Parameters
        ----------
        X : array of shape (N, D)
        column : int or None
            The treatment among the columns, whose means are no covariate.

        Returns
        -------
        X : array of shape (n_kept, D + M)
        source : int array of shape (D + M,)
            The column of the given X that each column comes from.
        """
        kept = X[self.keep]
        left = within(kept, self.codes, self.weight)
        # Rounding errors of a column that does not vary are no information.
        left[:, left.std(0) <= CONSTANT * np.maximum(kept.std(0), np.abs(kept).max(0))] = 0.0
        others = np.flatnonzero(np.arange(X.shape[1]) != column)
        means = means_of(kept[:, others], self.codes[:, 0], self.weight)
        return np.hstack([left, means]), np.r_[np.arange(X.shape[1]), others]


def read_panel(fixed_effects, X, treatment, score, sample_weight=None):
    """Read fixed effects, and leave their columns out of X.

    Parameters
    ----------
    fixed_effects : array of shape (N,) or (N, 2), str or list of str
        Unit, or unit and time, of each row; or names of columns of X.
    X : array or DataFrame of shape (N, D)
    treatment : array, str or int
        As in ``DDML.fit``.
    score : str
        Of DDML; only the partially linear score holds within units.
    sample_weight : array of shape (N,), optional
        Rows with weight 0 are left out.

    Returns
    -------
    panel : Panel
    X : array or DataFrame
    treatment : array, str or int
        Its number if columns before it were left out.
    """
    if score not in ("auto", "partially_linear"):
        raise ValueError(f"fixed_effects needs score='partially_linear', got {score!r}.")
    names = names_of(fixed_effects)
    if names is None:
        given = np.asarray(fixed_effects)
        table = pd.DataFrame(given if given.ndim in (1, 2) else given.reshape(1, -1))
    else:
        known = list(X.columns) if isinstance(X, pd.DataFrame) else []
        unknown = [name for name in names if name not in known]
        if unknown:
            raise ValueError(f"fixed_effects must be columns of X, got {unknown[0]!r}.")
        table = X[names]
        if isinstance(treatment, numbers.Integral) and not isinstance(treatment, bool):
            place = int(treatment)
            treatment = place - sum(known.index(name) < place for name in names)
        X = X.drop(columns=names)
    n_samples = np.shape(X)[0]
    if len(table) != n_samples or table.shape[1] not in (1, 2):
        raise ValueError(
            f"fixed_effects must have shape ({n_samples},) or ({n_samples}, 2), got {table.shape}."
        )
    missing = int(table.isna().to_numpy().sum())
    if missing:
        raise ValueError(f"fixed_effects must be known in every row, got {missing} missing.")
    codes = np.column_stack([pd.factorize(table.iloc[:, j])[0] for j in range(table.shape[1])])
    weight = check_weights(sample_weight, n_samples)
    used = weight > 0
    keep = rows_with_company(codes, used)
    if not keep.any():
        raise ValueError("fixed_effects must have units with two rows or more, got none.")
    alone = int((used & ~keep).sum())
    if alone:
        caution(
            f"{alone} rows are the only ones of their unit or time, and are left out, "
            "because fixed effects leave no information in them."
        )
    kept = np.column_stack([np.unique(way, return_inverse=True)[1] for way in codes[keep].T])
    given = codes if names is None else names
    return Panel(given, keep, kept, weight[keep] / weight[keep].mean(), alone), X, treatment


def names_of(fixed_effects):
    """Names of columns as a list, or None if groups are given as an array."""
    if isinstance(fixed_effects, str):
        return [fixed_effects]
    short = isinstance(fixed_effects, list | tuple) and len(fixed_effects) <= 2
    if short and all(isinstance(name, str) for name in fixed_effects):
        return list(fixed_effects)
    return None
