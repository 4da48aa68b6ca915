"""Sums of squares and products of a sparse matrix."""

import numpy as np
from scipy import sparse

from ddml_fs.engine.moments import CellTable

FLAT = 1e-13  # share of the mean square: a column with a smaller variance is constant


def sums_of(X, rows):
    """Number of rows, means (D,) and centred sums of squares and products (D, D) of some rows."""
    part = X[rows]
    mean = np.asarray(part.mean(0)).ravel()
    S = np.asarray((part.T @ part).todense())
    squares = np.diag(S).copy()
    S -= part.shape[0] * np.outer(mean, mean)
    at = np.diag_indices_from(S)
    S[at] = np.where(S[at] > FLAT * squares, S[at], 0.0)  # no rounding errors of constants
    return part.shape[0], mean, S


def cells_of(X, outcomes, domain, fold):
    """Sums over the folds of the domains.

    Parameters
    ----------
    X : sparse matrix of shape (N, P)
    outcomes : array of shape (N, C)
    domain, fold : int arrays of shape (N,)

    Returns
    -------
    cells : CellTable
        Centred over all rows.
    """
    both = sparse.csr_matrix(sparse.hstack([X, sparse.csr_matrix(outcomes - outcomes.mean(0))]))
    number = np.unique(np.column_stack([domain, fold]), axis=0)
    parts = [np.flatnonzero((domain == d) & (fold == k)) for d, k in number]
    n, mean, S = zip(*(sums_of(both, rows) for rows in parts), strict=True)
    return CellTable(
        n=np.array(n, dtype=float),
        mean=np.stack(mean) - np.asarray(both.mean(0)).ravel(),
        S=np.stack(S),
        domain=number[:, 0],
        fold=number[:, 1],
        n_outcomes=outcomes.shape[1],
        domains=np.unique(domain),
        classes=None,
    )
