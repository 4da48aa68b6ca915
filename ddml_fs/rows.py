"""What users say about the rows of a table: domains, weights and clusters."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from ddml_fs.encoding import read_domains
from ddml_fs.validation import check_clusters
from ddml_fs.warning import caution, joined
from ddml_fs.weights import check_weights

FEWEST_CLUSTERS = 4  # two folds, each with two clusters to fit on


@dataclass(frozen=True, eq=False)
class RowInfo:
    """Domains, weights and clusters of the N rows that are used.

    Attributes
    ----------
    used : bool array of shape (n_samples,)
        Rows of source domains with a positive weight.
    domain : int array of shape (N,)
        Number of the domain, as a position in ``domains``.
    domains : array
        Names of the domains.
    weight : array of shape (N,)
        With mean 1.
    cluster : int array of shape (N,), or None
    """

    used: np.ndarray
    domain: np.ndarray
    domains: np.ndarray
    weight: np.ndarray
    cluster: np.ndarray | None

    def of(self, values: Any) -> Any:
        """The rows of an array or a table that are used."""
        if values is None or self.used.all():
            return values
        return _safe_indexing(values, np.flatnonzero(self.used))

    def labels(self, y: Any) -> Any:
        """The labels of the rows that are used; raises if only these have a single class."""
        own = self.of(y)
        if own is not y and len(pd.unique(np.ravel(own))) == 1 < len(pd.unique(np.ravel(y))):
            raise ValueError(
                "y must have at least 2 classes in source rows with weight, got only one class."
            )
        return own


def warn_of_order(X, **given):
    """Warn of Series whose labels are those of the rows of X in another order.

    Values belong to rows by their position, as everywhere in scikit-learn. Somebody who sorts X,
    and not y, would get a wrong answer.

    Parameters
    ----------
    X : array or DataFrame
    **given
        Values for every row, by the names of arguments; only those with labels are looked at.

    Examples
    --------
    >>> import warnings
    >>> X, y = pd.DataFrame({"x": [1, 2, 3]}), pd.Series([0, 1, 0])
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     warn_of_order(X, y=y)
    ...     warn_of_order(X.sort_values("x", ascending=False), y=y)
    >>> len(said)
    1
    """
    if not isinstance(X, pd.DataFrame) or not X.index.is_unique:
        return
    moved = [
        name
        for name, values in given.items()
        if isinstance(values, pd.Series | pd.DataFrame)
        and len(values) == len(X)
        and not values.index.equals(X.index)
        and values.index.is_unique
        and X.index.isin(values.index).all()
    ]
    if moved:
        caution(
            f"the rows of X and of {joined(moved)} have the same labels in different orders; they "
            "are matched by position, so if the labels are right, pass values.loc[X.index]."
        )


def read_rows(X, sample_domain=None, sample_weight=None, cluster=None):
    """Read domains, weights and clusters. Those of target domains do not matter.

    Parameters
    ----------
    X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
    sample_domain, sample_weight, cluster : arrays of shape (n_samples,), optional

    Returns
    -------
    rows : RowInfo

    Examples
    --------
    >>> X = np.zeros((4, 1))
    >>> rows = read_rows(X, sample_domain=[1, 1, -2, 3], sample_weight=[1, 0, 9, 2])
    >>> rows.used.tolist(), rows.domains.tolist(), rows.weight.round(2).tolist()
    ([True, False, False, True], [1, 3], [0.67, 1.33])
    """
    warn_of_order(X, sample_domain=sample_domain, sample_weight=sample_weight, cluster=cluster)
    source, domain, domains = read_domains(sample_domain, _num_samples(X))
    weight = check_weights(_sources(sample_weight, "sample_weight", source), source.sum())
    own = weight > 0
    if cluster is not None:
        cluster = _sources(cluster, "cluster", source)
        codes = check_clusters(cluster, source.sum(), weight, FEWEST_CLUSTERS, ways=1)
        cluster = codes[own, 0]
    used = source.copy()
    used[source] = own
    kept, domain = np.unique(domain[own], return_inverse=True)
    return RowInfo(used, domain, domains[kept], weight[own], cluster)


def _sources(values, name, source):
    """Values of the rows of source domains."""
    if values is None:
        return None
    values = np.asarray(values)
    if values.shape[:1] != source.shape:
        raise ValueError(
            f"{name} must have one value per row of X ({len(source)}), got an array of shape "
            f"{values.shape}."
        )
    return values[source]
