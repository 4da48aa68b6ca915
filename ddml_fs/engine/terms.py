"""Sparse regression on curves and products of columns, for a few hundred rows and more.

A dictionary holds simple terms of the columns. Forward selection takes the term that explains most
of what is left, or a product of a chosen term with another, and an information criterion says when
to stop. Products that networks find only with thousands of rows are found with a few hundred.
"""

import numpy as np
from scipy.special import expit

from ddml_fs.engine.ridge import Gram, logistic_fit
from ddml_fs.weights import weighted_mean, weighted_var

FARTHEST = 3.0  # standard deviations to which columns are clipped, so that squares stay moderate
KNOTS = tuple(k / 8 for k in range(1, 8))  # quantiles where hinges and steps have their knots
PER_COLUMN = 2 + 2 * len(KNOTS)  # terms of one column: itself, its square, hinges and steps
WIDEST = 60  # columns whose terms are in a dictionary
PAIRED = 500  # columns among which pairs are compared, when there are more than that
# Rows by which terms are chosen, and these times the columns; the model is fitted to all rows. With
# 100 columns and 6000 rows, 3000 rows take half of the time of all.
ENOUGH, ENOUGH_VALUES = 10_000, 180_000
MOST_TERMS = 30
MOST_COLUMNS = 3  # in a product
PATIENCE = 5  # terms without improvement after which the selection stops
COLLINEAR = 1e-4  # share of a term's size that must be left by the terms already selected
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
    n_used : int
        Number of terms of the columns that are used.
    """

    def __init__(self, A, y):
        D = A.shape[1]
        self.n_terms = PER_COLUMN * D + D * (D - 1) // 2
        A = np.clip(A, -FARTHEST, FARTHEST)
        self.columns = strongest_columns(A, y, WIDEST)
        self.knots = np.quantile(A[:, self.columns], KNOTS, axis=0)
        self.first, self.second = np.triu_indices(len(self.columns), 1)
        self.n_used = PER_COLUMN * len(self.columns) + len(self.first)

    def __call__(self, A, chosen=None, dtype=np.float64):
        """Chosen terms, by default all, of rows A (n, D), (n, n_chosen)."""
        # Column by column in memory, as terms are columns.
        A = np.clip(A[:, self.columns], -FARTHEST, FARTHEST).astype(dtype, order="F", copy=False)
        chosen, D = np.arange(self.n_used) if chosen is None else chosen, A.shape[1]
        F = np.empty((len(A), len(chosen)), dtype, order="F")
        kind, column = np.divmod(chosen, max(D, 1))
        for k in range(PER_COLUMN):
            at = np.flatnonzero(kind == k)
            if len(at):
                F[:, at] = self._curve(k, A[:, column[at]], column[at])
        at = np.flatnonzero(kind >= PER_COLUMN)
        pair = chosen[at] - PER_COLUMN * D
        F[:, at] = A[:, self.first[pair]] * A[:, self.second[pair]]
        return F

    def _curve(self, kind, x, column):
        """One of the terms of single columns: of values x (n, k) of columns (k,)."""
        if kind < 2:
            return x if kind == 0 else x * x
        knot = self.knots[(kind - 2) % len(KNOTS), column].astype(x.dtype)
        return np.maximum(x - knot, 0) if kind < 2 + len(KNOTS) else x > knot


def strongest_columns(A, y, most):
    """Columns of A (n, D) that correlate most with y, alone or multiplied with another column.

    Only the 500 columns that correlate most alone, or by their squares, are multiplied: the time
    grows with the square of their number.

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
    strength = np.abs(y @ A) / np.maximum(A.std(0), 1e-3)
    some = np.arange(A.shape[1])
    if len(some) > PAIRED:
        alone = np.maximum(strength, np.abs(y @ squares) / np.maximum(squares.std(0), 1e-3))
        some = np.sort(np.argsort(-alone, kind="stable")[:PAIRED])
    A, squares = A[:, some], squares[:, some]
    spread = squares.T @ squares / len(A) - (A.T @ A / len(A)) ** 2
    pairs = np.abs((A * y[:, None]).T @ A) / np.sqrt(np.maximum(spread, 1e-6))
    strength[some] = np.maximum(pairs.max(1), strength[some])
    return np.sort(np.argsort(-strength, kind="stable")[:most])


class Candidates:
    """The columns of F (n, p) times a factor (n,), as terms that may join a model.

    Parameters
    ----------
    F, factor : arrays
        The products are not formed. In single precision the time is half as long.
    Q : array of shape (n, k)
        Orthonormal columns, which span the terms of the model.
    rest : array of shape (n,)
        What the model leaves of the target.
    """

    def __init__(self, F, factor, Q, rest):
        self.F, self.factor = F, factor.astype(F.dtype)
        size = (np.square(F).T @ np.square(self.factor)).astype(float)
        self.floor = np.maximum(COLLINEAR * size, 1e-12)
        self.inner = self._products(rest)
        self.left = size - np.square(self._products(Q)).sum(1)

    def _products(self, q):
        """Products of all terms with columns q, (n,) or (n, k)."""
        return (self.F.T @ (self.factor * q.T.astype(self.F.dtype)).T).astype(float)

    def best(self):
        """The largest gain in the sum of squares, and the column of its term."""
        gain = np.where(
            self.left > self.floor, self.inner**2 / np.maximum(self.left, self.floor), 0
        )
        j = int(gain.argmax()) if len(gain) else 0
        return (gain[j], j) if len(gain) else (0.0, 0)

    def term(self, j):
        """Values (n,) of a term."""
        return (self.factor * self.F[:, j]).astype(float)

    def account_for(self, q, step):
        """Update gains when the model takes a column q (n,), with the coefficient ``step``."""
        shared = self._products(q)
        self.inner -= step * shared
        self.left -= shared**2


def forward_selection(F, y, base, n_terms, *, factors=None, n_single=0, n_more=None):
    """Terms that explain y (n,) beyond the columns of base (n, b), best first.

    Each step takes the term that lowers the sum of squares most. A term is a column of F, times a
    factor. A chosen term is a factor itself: its products with single columns become candidates, as
    in Friedman's multivariate adaptive regression splines (1991). The number of terms minimises the
    extended Bayesian information criterion n·log(RSS/n) + k·(log n + log P) of Chen & Chen (2008,
    with γ = ½), which allows for the choice among P candidates.

    Parameters
    ----------
    F : array of shape (n, p)
    y, base : arrays
    n_terms : int
        Number of candidates per factor, before any term is chosen.
    factors : list of arrays of shape (n,), optional
        By default a single factor of 1.
    n_single : int, default=0
        The first columns of F depend on one column of the data and multiply chosen terms. The
        others are products of two. No term has more than three columns.
    n_more : int, optional
        Number of candidates that a chosen term adds; by default ``n_single``.

    Returns
    -------
    chosen : list of (int, int)
        Factor and column of each term. Factors from 0 on are the terms chosen before, and −1, −2, …
        those given.

    Examples
    --------
    >>> F = np.random.default_rng(0).standard_normal((200, 50))
    >>> y = 2 * F[:, 7] + F[:, 3] + F[:, 3] * F[:, 9]
    >>> forward_selection(F, y, np.ones((200, 1)), 50, n_single=50)
    [(-1, 7), (-1, 3), (1, 9)]
    """
    n, b = base.shape
    Q = np.zeros((n, b + MOST_TERMS))
    Q[:, :b] = np.linalg.qr(base)[0]
    rest = y - Q @ (Q.T @ y)
    least = 1e-12 * max(y @ y, 1e-300)
    factors = [np.ones(n)] if factors is None else factors
    candidates = {-1 - i: Candidates(F, f, Q[:, :b], rest) for i, f in enumerate(factors)}
    n_candidates = max(n_terms, 1) * len(factors)
    chosen: list[tuple[int, int]] = []
    n_columns = dict.fromkeys(candidates, 0)  # in the product, by factor
    best, n_best, price = n * np.log(max(rest @ rest, least)), 0, 0.0
    for k in range(min(MOST_TERMS, n // 4)):
        gains = {at: own.best() for at, own in candidates.items()}
        at = max(gains, key=lambda key: gains[key][0])
        gain, j = gains[at]
        if gain <= 0:
            break
        term = candidates[at].term(j)
        q = term - Q @ (Q.T @ term)
        q -= Q @ (Q.T @ q)  # twice is enough against rounding
        q /= np.sqrt(q @ q)
        Q[:, b + k] = q
        step = q @ rest
        rest = rest - q * step
        for own in candidates.values():
            own.account_for(q, step)
        chosen.append((at, j))
        price += np.log(n) + np.log(n_candidates)
        criterion = n * np.log(max(rest @ rest, least)) + price
        if criterion < best:
            best, n_best = criterion, k + 1
        elif k + 1 >= n_best + PATIENCE:
            break
        n_columns[k] = n_columns[at] + (1 if j < n_single else 2)
        if n_single and n_columns[k] < MOST_COLUMNS:
            candidates[k] = Candidates(F[:, :n_single], term, Q[:, : b + k + 1], rest)
            n_candidates += n_more or n_single
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
        base = np.empty((len(y), 0)) if t is None else (t - self.mean_t)[:, None]
        most = min(len(y), ENOUGH, ENOUGH_VALUES // max(min(A.shape[1], WIDEST), 1))
        some = np.linspace(0, len(y) - 1, most).astype(int)
        centred = y - weighted_mean(y, weight)  # a large offset would hide what terms explain
        self.dictionary = Dictionary(A[some], centred[some])
        self.chosen = self._choose(A[some], centred[some], base[some], weight[some])
        self.treated: list[bool] = []  # whether a term is multiplied by the treatment
        for factor, _ in self.chosen:
            self.treated.append(factor == -2 or (factor >= 0 and self.treated[factor]))
        own = self.terms(A)
        self.centre = weighted_mean(own, weight)
        self.scale = np.maximum(np.sqrt(weighted_var(own, weight)), 1e-9)
        Z = self._design(own, t)
        penalty = PRIOR / len(y)
        if binary:
            self.intercept, self.weights = logistic_fit(Z, y, penalty, weight)
        else:
            middle, level = weighted_mean(Z, weight), weighted_mean(y, weight)
            gram = Gram(Z - middle, penalty, weight)
            self.weights = gram.coefficients(weight * (y - level))
            self.intercept = level - middle @ self.weights

    def _choose(self, A, y, base, weight):
        """Factors and columns of the terms; the second given factor is the treatment."""
        F = self.dictionary(A, dtype=np.float32)
        # Rows times the roots of their weights have weighted sums of squares.
        root = np.sqrt(weight)
        start = np.column_stack([root, root[:, None] * base])
        return forward_selection(
            F,
            y * root,
            start,
            self.dictionary.n_terms,
            factors=list(start.T),
            n_single=PER_COLUMN * len(self.dictionary.columns),
            n_more=PER_COLUMN * A.shape[1],
        )

    def terms(self, A):
        """Values (n, k) of the chosen terms, without the treatment as a factor."""
        values = self.dictionary(A, np.array([j for _, j in self.chosen], int))
        for k, (factor, _) in enumerate(self.chosen):
            if factor >= 0:
                values[:, k] *= values[:, factor]
        return values

    def _design(self, own, t):
        """Columns of the model: the treatment, and the chosen terms (n, k) with their factors."""
        F = (own - self.centre) / self.scale
        if t is None:
            return F
        t = np.broadcast_to(t - self.mean_t, len(F))[:, None]
        return np.hstack([t, np.where(np.array(self.treated, bool), F * t, F)])

    def predict(self, A, t=None):
        """Values or probabilities of rows A (n, D), under the treatment t."""
        index = self.intercept + self._design(self.terms(A), t) @ self.weights
        return expit(index) if self.binary else index
