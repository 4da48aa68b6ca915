"""G² tests of conditional independence between binary columns, many columns at a time."""

import numpy as np
from scipy.special import gammaincc, gammaln, xlogy


def binarise(X):
    """X as 0/1 columns of type float32, the form the tests take.

    Columns that hold only 0 and 1 stay. Any other is cut at its median (above it is 1; the median
    too, where nothing lies above), or at 0 when more than half of its values are zero: word counts
    become "the word occurs".

    Parameters
    ----------
    X : array of shape (N, D)
    """
    cut = np.median(X, axis=0)
    cut[np.mean(X == 0, axis=0) > 0.5] = 0
    cut[np.isin(X, (0, 1)).all(axis=0)] = 0
    above = np.greater(X, cut)
    return np.where(above.any(axis=0), above, np.equal(X, cut)).astype(np.float32)


def strata(given):
    """Which combination of values each row of `given` has, and how many combinations occur.

    Parameters
    ----------
    given : array of shape (N, S)
        0/1 columns; S may be 0, which gives one stratum.
    """
    size = given.shape[1]
    codes = (given @ 2.0 ** np.arange(size)).astype(int)
    if size > 12:  # too many possible codes to count each
        codes = np.unique(codes, return_inverse=True)[1]
    present = np.bincount(codes) > 0
    return (np.cumsum(present) - 1)[codes], int(present.sum())


def is_testable(given, min_count):
    """Whether the four cells of all non-empty strata hold `min_count` samples on average.

    This is the usual rule for when G² may be read as χ². What to do with a test that fails it is
    the caller's choice.
    """
    return len(given) >= 4 * min_count * strata(given)[1]


def g2_test(X, y, given):
    """G² of every column of X against y, within the strata of `given`, summed.

    Parameters
    ----------
    X : array of shape (N, D)
    y : array of shape (N,)
    given : array of shape (N, S)
        All of them 0/1; see `binarise`.

    Returns
    -------
    g2 : array of shape (D,)
    dof : array of shape (D,)
        Strata in which neither the column nor y is constant; the others say nothing.
    """
    index, n_strata = strata(given)
    rows = np.zeros((2 * n_strata, len(y)), dtype=np.float32)
    rows[2 * index + (y > 0), np.arange(len(y))] = 1  # one row a stratum and a value of y
    n = rows.sum(axis=1, dtype=float).reshape(n_strata, 2, 1)
    # Counts stay exact in float32 up to 2^24 samples.
    ones = (rows @ X.astype(np.float32, copy=False)).astype(float).reshape(n_strata, 2, -1)
    zeros = n - ones

    def entropy_term(counts):
        return xlogy(counts, counts).sum(axis=0)

    # 2 Σ O log(O n / (row column)), with the logarithm taken apart.
    cells = entropy_term(ones).sum(axis=0) + entropy_term(zeros).sum(axis=0)
    of_x = entropy_term(ones.sum(axis=1)) + entropy_term(zeros.sum(axis=1))
    of_y, total = entropy_term(n).sum(), entropy_term(n.sum(axis=1)).sum()
    g2 = 2 * (cells - of_x - of_y + total)
    both_vary = (n.min(axis=1) > 0) & (ones.sum(axis=1) > 0) & (zeros.sum(axis=1) > 0)
    dof = both_vary.sum(axis=0)
    return np.where(dof > 0, np.maximum(g2, 0), 0.0), dof


def surprise(g2, dof):
    """-log p of G² under independence: 0 without degrees of freedom, comparable across them."""
    shape, x = np.maximum(dof, 1) / 2, g2 / 2
    p = gammaincc(shape, x)
    # Where p underflows, the leading term of its tail serves: x^(shape - 1) e^-x / Γ(shape).
    tail = x - (shape - 1) * np.log(np.maximum(x, 1)) + gammaln(shape)
    return np.where(dof > 0, np.where(p > 1e-300, -np.log(np.maximum(p, 1e-300)), tail), 0.0)
