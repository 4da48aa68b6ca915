"""Intervals, tests and corrections for multiple testing."""

import numpy as np
from scipy import stats


def median_of(effects, stderrs):
    """Combine repeated splits: the median effect, and a standard error that includes their spread.

    Parameters
    ----------
    effects, stderrs : arrays of shape (R,)

    Returns
    -------
    theta, stderr : float
    """
    theta = np.median(effects)
    return float(theta), float(np.sqrt(np.median(stderrs**2 + (effects - theta) ** 2)))


def normal_interval(theta, stderr, level):
    """The normal confidence interval with coverage ``level``."""
    half = stats.norm.ppf(0.5 + level / 2) * stderr
    return float(theta - half), float(theta + half)


def normal_pvalue(theta, stderr):
    """Two-sided p-value of the test of a zero effect."""
    return float(2 * stats.norm.sf(abs(theta) / stderr)) if stderr > 0 else float(theta == 0)


def holm(pvalues):
    """p-values adjusted by Holm's method, which controls the family-wise error rate.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03])).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(pvalues)
    times = len(pvalues) - np.arange(len(pvalues))
    adjusted = np.empty(len(pvalues))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(times * pvalues[order]))
    return adjusted


def bootstrap_maxima(influence, n_draws, rng):
    """Largest |t| over all features, in each draw of a Gaussian multiplier bootstrap.

    Its 95 % quantile is the half-width of simultaneous 95 % intervals, in standard errors. All
    draws are computed by one matrix product.

    Parameters
    ----------
    influence : array of shape (N, F)
        Influence functions.
    n_draws : int
    rng : RandomState

    Returns
    -------
    maxima : array of shape (n_draws,)
        Sorted.

    Examples
    --------
    >>> rng = np.random.RandomState(0)
    >>> maxima = bootstrap_maxima(rng.standard_normal((500, 1)), 10000, rng)
    >>> bool(abs(np.quantile(maxima, 0.95) - 1.96) < 0.05)  # one feature: the normal quantile
    True
    """
    norm = np.sqrt((influence**2).sum(0))
    scaled = (influence / np.where(norm > 0, norm, 1.0)).astype(np.float32)
    draws = rng.standard_normal((n_draws, len(influence))).astype(np.float32)
    return np.sort(np.abs(draws @ scaled).max(1, initial=0.0))
