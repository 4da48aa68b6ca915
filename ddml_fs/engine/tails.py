"""Columns with long tails, such as incomes, on a scale that suits curves and products."""

import numpy as np
from scipy.stats import norm, rankdata

from ddml_fs.weights import weighted_mean

# The kurtosis of an exponential variable is 9, of a normal one 3, of a log-normal one above 100.
LONG = 9.0


def without_long_tails(X, weight=None):
    """X (N, D) with the normal scores of columns whose kurtosis is above 9.

    On the scale of the data, a few rows would decide all squares and products of such a column, and
    the length scale of a Gaussian process. Normal scores are the quantiles of a normal distribution
    at the ranks of the values. They use no outcome, so that no fold is needed. Columns with two
    values, whose scores would be a line in these values, stay as they are.

    Examples
    --------
    >>> income = np.exp(2 * np.random.default_rng(0).standard_normal(500))
    >>> age = np.linspace(20, 60, 500)
    >>> new = without_long_tails(np.column_stack([income, age]))
    >>> bool(np.abs(new[:, 0]).max() < 3.2), bool((new[:, 1] == age).all())
    (True, True)
    """
    weight = np.ones(len(X)) if weight is None else weight
    away = X - weighted_mean(X, weight)
    square = weighted_mean(away**2, weight)
    fourth = weighted_mean(away**4, weight)
    long = np.flatnonzero(fourth > LONG * np.maximum(square, 1e-150) ** 2)
    long = long[[len(np.unique(X[:, j])) > 2 for j in long]] if len(long) else long
    if not len(long):
        return X
    X = np.array(X, dtype=np.float64)
    X[:, long] = norm.ppf((rankdata(X[:, long], axis=0) - 0.5) / len(X))
    return X
