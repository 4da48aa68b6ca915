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


def basis(D):
    """New rows (D + 1, D) on which an affine function is evaluated: zeros, and unit vectors."""
    return np.vstack([np.zeros(D), np.eye(D)])


def affine(values, mean, inverse):
    """Intercepts (F,) and slopes (D, F) for rows as they are, from values (D + 1, F) on a basis.

    Parameters
    ----------
    values : array of shape (D + 1, F)
        Values of F affine functions of standardised rows on :func:`basis`.
    mean, inverse : arrays of shape (D,)
        Standardised rows are (x − mean)·inverse.
    """
    slopes = (values[1:] - values[0]) * inverse[:, None]
    return values[0] - mean @ slopes, slopes
