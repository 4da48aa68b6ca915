"""Worlds on which the intervals were tuned, and which are not in the coverage table.

"friedman": the function of Friedman (1991) and a product confound. "trees": steps within steps.
"tails": log-normal columns, whose logarithms and their product confound. "index": a sum of thirty
columns and its square confound.
"""

import numpy as np
from scipy.special import expit

from benchmarks.coverage.worlds import EFFECT, Draw

WORLDS = {"friedman": 10, "trees": 12, "tails": 15, "index": 30}  # with their numbers of columns


def friedman(rng, n, d):
    """Columns (N, D), index of the treatment and outcome without treatment (N,)."""
    X = rng.uniform(size=(n, d))
    both = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    both = (both + 10 * X[:, 3] + 5 * X[:, 4] - 14.4) / 5
    wave = np.sin(2 * np.pi * X[:, 2]) + 2 * X[:, 0] * X[:, 3] - 0.5
    return X, 0.7 * both + 0.5 * wave - 0.2, 1.2 * both + 0.8 * wave


def trees(rng, n, d):
    """The same for trees on numbers and 0/1 columns."""
    X = rng.standard_normal((n, d))
    X[:, 6:] = X[:, 6:] > 0.5
    high, low = np.where(X[:, 1] > 0.5, 1.0, -0.5), np.where(X[:, 6] > 0, 0.8, -0.8)
    first = np.where(X[:, 0] > 0, high, low)
    second = np.where((X[:, 2] > 0) & (X[:, 7] > 0), 1.0, -0.3)
    return X, 0.9 * first + 0.6 * second, 1.2 * first + second + 0.5 * X[:, 3]


def tails(rng, n, d):
    """The same for columns with long tails."""
    X = np.exp(rng.standard_normal((n, d)))
    L, bounded = np.log(X), np.tanh(X[:, 1] - 1)
    product = L[:, 2] * L[:, 3]
    f = L[:, 0] + 0.8 * bounded + 0.6 * product + 0.5 * np.sqrt(X[:, 4])
    return X, 0.6 * L[:, 0] + 0.5 * bounded + 0.4 * product, f


def index(rng, n, d):
    """The same for a sum of all columns, with random coefficients."""
    X = rng.standard_normal((n, d))
    beta, other = rng.standard_normal((2, d)) / np.sqrt(d)
    q = X @ beta
    f = X @ (0.7 * beta + 0.7 * other) + 0.48 * (q**2 - 1)
    return X, 0.8 * q + 0.3 * (q**2 - 1), f


def draw_tuning(world, treatment, n_samples, n_features, seed):
    """One data set; the effect is 1, or −1 if the seed is odd.

    Examples
    --------
    >>> draw_tuning("trees", "binary", 100, 12, seed=1).truth
    -1.0
    """
    kinds = {"friedman": friedman, "trees": trees, "tails": tails, "index": index}
    rng = np.random.default_rng([seed, n_samples, n_features, 1])
    X, middle, f = kinds[world](rng, n_samples, n_features)
    if treatment == "binary":
        m = expit(middle)
        T = rng.binomial(1, m).astype(float)
    else:
        m, T = middle, middle + rng.standard_normal(n_samples)
    truth = EFFECT if seed % 2 == 0 else -EFFECT
    y = f + truth * T + rng.standard_normal(n_samples)
    return Draw(X, T, y, truth, m, f + truth * m, f, f + truth)
