"""Standardised training rows that are never made; products or a sparse matrix stand for them.

The classes have those operations of an array (n, D) that ridge and ridge-logistic regressions need.
"""

import numpy as np

FLAT = 1e-8  # in units of all rows: a column with a smaller standard deviation is constant


class ProductRows:
    """Standardised rows of which only the products are known.

    Parameters
    ----------
    n : float
        Rows.
    G : array of shape (D, D)
        Products of the standardised columns, divided by n.
    columns : int array, optional
        The columns of G that are used; by default all.
    """

    def __init__(self, n, G, columns=None):
        self.n, self.G = n, G
        self.columns = np.arange(len(G)) if columns is None else columns

    @property
    def shape(self):
        """Rows and columns."""
        return self.n, len(self.columns)

    def __getitem__(self, key):
        """Some columns, as ``rows[:, columns]``."""
        _, columns = key
        return self.part(self.columns[columns])

    def part(self, columns):
        """The rows with other columns of G."""
        return ProductRows(self.n, self.G, columns)

    def gram(self, weights=None):
        """AᵀA/n, a new array (D, D)."""
        if weights is not None:
            raise ValueError("weights need the rows, got products only.")
        return self.G[np.ix_(self.columns, self.columns)]

    def cross(self, targets):
        """Aᵀt for targets that are columns of the same rows, (D, …)."""
        return self.n * self.G[np.ix_(self.columns, targets.columns)]


class SparseRows(ProductRows):
    """Standardised rows of a sparse matrix, (X − mean)·inverse − shift, which stays sparse.

    Parameters
    ----------
    X : sparse matrix of shape (n, D), in compressed rows
    G : array
        As in :class:`ProductRows`.
    mean, inverse : arrays of shape (D,)
    columns : int array, optional
    shift : array or float
    """

    __array_ufunc__ = None  # so that ``weights @ rows`` is left to this class

    def __init__(self, X, G, mean, inverse, columns=None, shift=0.0):
        super().__init__(X.shape[0], G, columns)
        self.X, self.mean, self.inverse, self.shift = X, mean, inverse, shift

    @property
    def offset(self):
        """What is subtracted from the columns after scaling, (D,)."""
        return self.mean * self.inverse + self.shift

    def part(self, columns):
        """The rows with other columns."""
        at = np.searchsorted(self.columns, columns)
        return SparseRows(self.X[:, at], self.G, self.mean[at], self.inverse[at], columns)

    def __sub__(self, shift):
        """The rows minus a row (D,)."""
        return SparseRows(self.X, self.G, self.mean, self.inverse, self.columns, self.shift + shift)

    def __matmul__(self, beta):
        """The rows times coefficients (D,), an array (n,)."""
        return self.X @ (self.inverse * beta) - self.offset @ beta

    def __rmatmul__(self, weights):
        """Weighted sums of the rows, (D,)."""
        return (self.X.T @ weights) * self.inverse - weights.sum() * self.offset

    def gram(self, weights=None):
        """AᵀWA/n, a new array (D, D)."""
        if weights is None:
            return super().gram()
        sums = (self.X.T @ weights) * self.inverse
        squares = (self.X.T @ self.X.multiply(weights[:, None]).tocsr()).toarray()
        squares *= self.inverse[:, None] * self.inverse
        across = np.outer(sums - 0.5 * weights.sum() * self.offset, self.offset)
        return (squares - across - across.T) / self.n

    def cross(self, targets):
        """Aᵀt for an array t (n,), or for columns of the same rows, (D, …)."""
        if isinstance(targets, ProductRows):
            return super().cross(targets)
        return targets @ self
