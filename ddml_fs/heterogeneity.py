"""Effects in groups of rows, and how the effect varies with a covariate.

The interactive score gives every row a signal whose mean is the average effect (doubly robust). Its
mean in a group is the group's average effect, and its best linear fit is the best linear predictor
of the effect. A signal is no effect of a single row: it is far too noisy for that.
"""

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.utils.validation import check_is_fitted

from ddml_fs.estimate import FittedEffect
from ddml_fs.inference import stderr_of
from ddml_fs.validation import check_integer, check_number
from ddml_fs.weights import influence_on_mean, weighted_mean

MOST_GROUPS = 12  # a numeric column with more values is cut at its quantiles
FEWEST_ROWS = 10  # of a group


def groups_of(values, n_bins):
    """A group for each row: the values of a column, or the quantile bins of a number.

    Parameters
    ----------
    values : Series
    n_bins : int

    Returns
    -------
    groups : Series of categories

    Examples
    --------
    >>> groups_of(pd.Series(np.arange(100.0)), 2).value_counts().tolist()
    [50, 50]
    """
    if pd.api.types.is_numeric_dtype(values) and values.nunique() > MOST_GROUPS:
        return pd.qcut(values, n_bins, duplicates="drop").cat.remove_unused_categories()
    return values.astype("category")


def group_means(signal, groups, level, clusters=None, weight=None, nuisance_stderr=0.0):
    """Mean signal of every group, with pointwise and joint intervals.

    Parameters
    ----------
    signal : array of shape (N,)
    groups : Series of categories
    level : float
    clusters : int array of shape (N, 1) or (N, 2), optional
    weight : array of shape (N,), optional
    nuisance_stderr : float
        Standard error that comes from errors of the nuisances, added to that of every group.

    Returns
    -------
    table : DataFrame
        One row per group: ``rows`` with weight, ``effect``, ``stderr``, ``pvalue``, ``low``,
        ``high`` and ``joint_low``, ``joint_high``, which hold for all groups at once (groups are
        independent).
    """
    rows = {}
    weight = np.ones(len(signal)) if weight is None else weight
    for name in groups.cat.categories:
        member = (groups == name).to_numpy() & (weight > 0)
        own, w = signal[member], weight[member]
        if len(own) < FEWEST_ROWS:
            raise ValueError(
                f"every group must have at least {FEWEST_ROWS} rows, got {len(own)} of {name!r}."
            )
        own_clusters = None if clusters is None else clusters[member]
        stderr = np.hypot(stderr_of(influence_on_mean(own, w), own_clusters), nuisance_stderr)
        rows[name] = len(own), weighted_mean(own, w), stderr
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["rows", "effect", "stderr"])
    table["pvalue"] = 2 * stats.norm.sf(np.abs(table["effect"] / table["stderr"]))
    single, joint = 0.5 + level / 2, (1 + level ** (1 / len(table))) / 2
    for prefix, quantile in (("", single), ("joint_", joint)):
        half = stats.norm.ppf(quantile) * table["stderr"]
        table[f"{prefix}low"], table[f"{prefix}high"] = (
            table["effect"] - half,
            table["effect"] + half,
        )
    return table


def linear_predictor(signal, X, level, clusters=None, weight=None, df=np.inf):
    """Weighted least squares of the signal on columns, with robust (HC1 or clustered) errors.

    Parameters
    ----------
    signal : array of shape (N,)
    X : DataFrame of numbers
    level : float
    clusters : int array of shape (N, 1) or (N, 2), optional
    weight : array of shape (N,), optional
    df : float
        Degrees of freedom of Student's t; the default is the normal distribution.

    Returns
    -------
    table : DataFrame
        One row per column and one for the intercept: ``slope``, ``stderr``, ``pvalue``, ``low``,
        ``high``.
    """
    A = np.column_stack([np.ones(len(X)), X.to_numpy(dtype=np.float64)])
    w = np.ones(len(A)) if weight is None else weight
    inverse = np.linalg.pinv((A * w[:, None]).T @ A)
    slope = inverse @ A.T @ (w * signal)
    influence = len(A) * A * (w * (signal - A @ slope))[:, None] @ inverse
    n = (w > 0).sum()
    # The factors of statsmodels: N / (N − K), and (N − 1) / (N − K) beside G / (G − 1).
    factor = (n if clusters is None else n - 1) / (n - A.shape[1])
    stderr = stderr_of(influence, clusters) * np.sqrt(factor)
    half = stats.t.ppf(0.5 + level / 2, df) * stderr
    return pd.DataFrame(
        {
            "slope": slope,
            "stderr": stderr,
            "pvalue": 2 * stats.t.sf(np.abs(slope / stderr), df),
            "low": slope - half,
            "high": slope + half,
        },
        index=pd.Index(["intercept", *map(str, X.columns)], name="column"),
    )


class HeterogeneityMixin(FittedEffect):
    """Effects by group, for an effect that was estimated with the interactive score."""

    def signals(self) -> np.ndarray:
        """The doubly robust signal of every row, whose (weighted) mean is the average effect.

        It is not the effect of a single row: only means over many rows say something.
        """
        check_is_fitted(self)
        if self._signal_ is None:
            raise AttributeError(
                "effects by group need score='interactive' and target='ate', got an effect that is "
                f"the {self.estimand_}."
            )
        return self._signal_

    def by(self, column: Any, *, n_bins: int = 4, level: float = 0.95) -> pd.DataFrame:
        """Average effects in groups of rows (GATE), not effects of single rows.

        Parameters
        ----------
        column : array or Series of shape (n_samples,)
            A value for each row that was fitted on, known before the treatment. Numbers with more
            than 12 values are cut at their quantiles.
        n_bins : int, default=4
            Number of quantile bins.
        level : float, default=0.95
            Coverage of the intervals.

        Returns
        -------
        table : DataFrame
            One row per group: ``rows``, ``effect``, ``stderr``, ``pvalue``, ``low``, ``high``, and
            ``joint_low``, ``joint_high``, which cover in all groups at once. Sample weights count
            within groups, but not for the quantiles. Standard errors include
            ``nuisance_stderr_``, that of the whole effect; in a group it may be larger.

        Examples
        --------
        >>> import numpy as np
        >>> from ddml_fs import DDML
        >>> rng = np.random.default_rng(0)
        >>> X, T = rng.standard_normal((2000, 2)), rng.integers(0, 2, 2000)
        >>> y = np.where(X[:, 0] > 0, 3.0, 1.0) * T + rng.standard_normal(2000)
        >>> effect = DDML("smooth", random_state=0).fit(X, y, treatment=T)
        >>> effect.by(X[:, 0] > 0)["effect"].round().tolist()
        [1.0, 3.0]
        """
        signal = self.signals()
        check_integer(n_bins, "n_bins", 2)
        check_number(level, "level", 1e-6, 1 - 1e-6)
        values = column if isinstance(column, pd.Series) else pd.Series(np.asarray(column))
        if len(values) != len(signal):
            raise ValueError(
                f"column must have a value for each of the {len(signal)} rows, got {len(values)}."
            )
        if values.isna().any():
            raise ValueError(
                f"column must have a value in every row, got {int(values.isna().sum())} missing."
            )
        groups = groups_of(values, n_bins)
        known = self._clusters_, self._weight_, self.nuisance_stderr_
        table = group_means(signal, groups, level, *known)
        return table.rename_axis(values.name if values.name is not None else "group")

    def best_linear_predictor(self, X: Any, level: float = 0.95) -> pd.DataFrame:
        """Best linear predictor of the effect from columns, with robust or clustered errors.

        Parameters
        ----------
        X : DataFrame or array of shape (n_samples, n_columns)
            Numbers, known before the treatment, for each row that was fitted on.
        level : float, default=0.95
            Coverage of the intervals.

        Returns
        -------
        table : DataFrame
            ``slope``, ``stderr``, ``pvalue``, ``low`` and ``high`` of every column and of the
            intercept. ``nuisance_stderr_`` is not included: it is known for the mean effect only.
        """
        signal = self.signals()
        check_number(level, "level", 1e-6, 1 - 1e-6)
        frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X)).add_prefix("x")
        if len(frame) != len(signal):
            raise ValueError(f"X must have the {len(signal)} rows of fit, got {len(frame)}.")
        known = self._clusters_, self._weight_, self._df_
        return linear_predictor(signal, frame, level, *known)
