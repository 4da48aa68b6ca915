"""Sparse regression on curves and products of columns, for a few hundred rows and more.

A dictionary holds simple terms of the columns. Forward selection takes the term that explains most
of what is left, and an information criterion says when to stop. Products that networks find only
with thousands of rows are found with a few hundred.
"""

import numpy as np
from scipy.special import expit

from ddml_fs.engine.ridge import Gram, logistic_fit
from ddml_fs.weights import weighted_mean, weighted_var

FARTHEST = 3.0  # standard deviations to which columns are clipped, so that squares stay moderate
QUARTILES = (0.25, 0.5, 0.75)  # where hinges and steps have their knots
PER_COLUMN = 2 + 2 * len(QUARTILES)  # terms of one column: itself, its square, hinges and steps
WIDEST = 60  # columns whose terms are in a dictionary
MOST_TERMS = 30
PATIENCE = 3  # terms without improvement after which the selection stops
COLLINEAR = 1e-4  # share of a term's variance that must be left by the terms already selected
PRIOR = 1.0  # rows' worth of the ridge penalty on selected terms


class Dictionary:
    """Terms of standardised columns: x, x², hinges, steps, and products of two columns.

    Parameters
    ----------
    A : array of shape (n, D)
        Standardised rows, which give the knots.
    y : array of shape (n,)
        The target, which says which columns to use if there are more than 60.

    Attributes
    ----------
    n_terms : int
        Number of terms of all D columns, used or not.
    """

    def __init__(self, A, y):
        D = A.shape[1]
        self.n_terms = PER_COLUMN * D + D * (D - 1) // 2
        A = np.clip(A, -FARTHEST, FARTHEST)
        self.columns = strongest_columns(A, y, WIDEST)
        self.knots = np.quantile(A[:, self.columns], QUARTILES, axis=0)

    def __call__(self, A):
        """Terms of rows A (n, D), (n, n_used)."""
        A = np.clip(A[:, self.columns], -FARTHEST, FARTHEST)
        first, second = np.triu_indices(A.shape[1], 1)
        hinges = [np.maximum(A - knot, 0.0) for knot in self.knots]
        steps = [(A > knot).astype(float) for knot in self.knots]
        return np.hstack([A, A**2, *hinges, *steps, A[:, first] * A[:, second]])


def strongest_columns(A, y, most):
    """Columns of A (n, D) that correlate most with y, alone or multiplied with another column.

    Examples
    --------
    >>> A = np.random.default_rng(0).standard_normal((400, 6))
    >>> strongest_columns(A, A[:, 1] * A[:, 4] + A[:, 2], most=3).tolist()
    [1, 2, 4]
    """
    if A.shape[1] <= most:
        return np.arange(A.shape[1])
    y = y - y.mean()
    squares = A**2
    spread = squares.T @ squares / len(A) - (A.T @ A / len(A)) ** 2
    pairs = np.abs((A * y[:, None]).T @ A) / np.sqrt(np.maximum(spread, 1e-6))
    alone = np.abs(y @ A) / np.maximum(A.std(0), 1e-3)
    strength = np.maximum(pairs.max(1), alone)
    return np.sort(np.argsort(-strength, kind="stable")[:most])


def forward_selection(F, y, base, n_terms):
    """Columns of F (n, p) that explain y (n,) beyond the columns of base (n, b), best first.

    Each step takes the term that lowers the sum of squares most. The number of terms minimises the
    extended Bayesian information criterion n·log(RSS/n) + k·(log n + log P) of Chen & Chen (2008),
    which allows for the choice among P terms.

    Parameters
    ----------
    F, y, base : arrays
    n_terms : int
        P.

    Returns
    -------
    chosen : list of int

    Examples
    --------
    >>> F = np.random.default_rng(0).standard_normal((200, 50))
    >>> forward_selection(F, 2 * F[:, 7] + F[:, 3], np.ones((200, 1)), 50)
    [7, 3]
    """
    n, b = base.shape
    Q = np.zeros((n, b + MOST_TERMS))
    Q[:, :b] = np.linalg.qr(base)[0]
    rest = y - Q @ (Q.T @ y)
    least = 1e-12 * max(y @ y, 1e-300)
    size = (F**2).sum(0)
    left = size - ((Q[:, :b].T @ F) ** 2).sum(0)
    floor = np.maximum(COLLINEAR * size, 1e-12)
    price = np.log(n) + np.log(max(n_terms, 1))
    chosen: list[int] = []
    best, n_best = n * np.log(max(rest @ rest, least)), 0
    for k in range(1, min(MOST_TERMS, n // 4) + 1):
        gain = np.where(left > floor, (F.T @ rest) ** 2 / np.maximum(left, floor), 0.0)
        if gain.max(initial=0.0) <= 0:
            break
        j = int(gain.argmax())
        q = F[:, j] - Q @ (Q.T @ F[:, j])
        q -= Q @ (Q.T @ q)  # twice is enough against rounding
        q /= np.sqrt(q @ q)
        Q[:, b + k - 1] = q
        chosen.append(j)
        rest = rest - q * (q @ rest)
        left = left - (F.T @ q) ** 2
        criterion = n * np.log(max(rest @ rest, least)) + k * price
        if criterion < best:
            best, n_best = criterion, k
        elif k >= n_best + PATIENCE:
            break
    return chosen[:n_best]


class SparseTerms:
    """Regression on terms found by forward selection.

    Parameters
    ----------
    A : array of shape (n, D)
        Standardised rows.
    y : array of shape (n,)
    binary : bool
        Whether y is 0/1, predicted as a probability. The terms are those of a linear model.
    t : array of shape (n,), optional
        A 0/1 treatment. It is in the model, and so are its products with terms if they are chosen:
        both arms share the terms whose effects do not differ between them.
    weight : array of shape (n,), optional
        Weights of the rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> A, B = rng.standard_normal((2, 300, 10))
    >>> y = A[:, 0] * A[:, 1] + np.abs(A[:, 2]) + 0.5 * rng.standard_normal(300)
    >>> left = SparseTerms(A, y, binary=False).predict(B) - B[:, 0] * B[:, 1] - np.abs(B[:, 2])
    >>> bool(left.std() < 0.2)
    True
    """

    def __init__(self, A, y, binary, t=None, weight=None):
        weight = np.ones(len(y)) if weight is None else weight / weight.mean()
        self.binary, self.mean_t = binary, None if t is None else weighted_mean(t, weight)
        self.dictionary = Dictionary(A, y)
        F = self.dictionary(A)
        self.centre = weighted_mean(F, weight)
        self.scale = np.maximum(np.sqrt(weighted_var(F, weight)), 1e-9)
        F, base = self._design(F, t)
        n_terms = self.dictionary.n_terms * (1 if t is None else 2)
        # Rows times the roots of their weights have weighted sums of squares.
        root, start = np.sqrt(weight), np.column_stack([np.ones(len(y)), base])
        self.chosen = forward_selection(F * root[:, None], y * root, start * root[:, None], n_terms)
        Z = np.column_stack([base, F[:, self.chosen]])
        penalty = PRIOR / len(y)
        if binary:
            self.intercept, self.weights = logistic_fit(Z, y, penalty, weight)
        else:
            middle, level = weighted_mean(Z, weight), weighted_mean(y, weight)
            gram = Gram(Z - middle, penalty, weight)
            self.weights = gram.coefficients(weight * (y - level))
            self.intercept = level - middle @ self.weights

    def _design(self, F, t):
        """Standardised terms, with their products with t, and the columns that are never chosen."""
        F = (F - self.centre) / self.scale
        if t is None:
            return F, np.empty((len(F), 0))
        t = np.broadcast_to(t - self.mean_t, len(F))[:, None]
        return np.hstack([F, F * t]), t

    def predict(self, A, t=None):
        """Values or probabilities of rows A (n, D), under the treatment t."""
        F, base = self._design(self.dictionary(A), t)
        index = self.intercept + np.column_stack([base, F[:, self.chosen]]) @ self.weights
        return expit(index) if self.binary else index
