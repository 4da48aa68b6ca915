"""Intervals, tests, corrections for multiple testing, and strengths of hidden confounders."""

import numpy as np
from scipy import sparse, stats

from ddml_fs.engine.devices import in_threads

DRAWS_AT_ONCE = 50  # of the bootstrap: more would need memory, and save no time


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


def cluster_sums(labels, values):
    """Sums of values (N,) or (N, F) over the rows of each of G clusters, (G,) or (G, F).

    Parameters
    ----------
    labels : int array of shape (N,)
        From 0 to G − 1.
    values : array of shape (N,) or (N, F)
    """
    rows = np.arange(len(labels))
    member = sparse.csr_array((np.ones(len(labels), values.dtype), (labels, rows)))
    return member @ values


def clustered_stderr(influence, cluster):
    """Standard error that allows for dependence within clusters, in one or two ways.

    Parameters
    ----------
    influence : array of shape (N,) or (N, F)
        Influence functions of one effect or of F effects.
    cluster : int array of shape (N, 1) or (N, 2)
        With two ways of clustering, variances of both are added, and that of their intersection is
        taken off (Cameron, Gelbach & Miller, 2011).

    Examples
    --------
    >>> influence = np.array([1.0, 1.0, -1.0, -1.0])
    >>> float(clustered_stderr(influence, np.array([[0], [0], [1], [1]])).round(3))
    1.0
    >>> float(clustered_stderr(influence, np.arange(4)[:, None]).round(3))  # every row its own
    0.577
    """
    influence = np.asarray(influence)

    def variance(labels):
        sums = cluster_sums(labels, influence).astype(np.float64)
        return (sums**2).sum(0) * len(sums) / (len(sums) - 1) / len(influence) ** 2

    parts = [np.unique(column, return_inverse=True)[1] for column in cluster.T]
    ways = np.array([variance(part) for part in parts])
    total = ways.sum(0)
    if len(parts) == 2:
        both = np.unique(cluster, axis=0, return_inverse=True)[1].ravel()
        # With many cells of few rows the difference may be negative by chance.
        total = np.maximum(total - variance(both), ways.max(0))
    return np.sqrt(total)


def stderr_of(influence, clusters=None):
    """Robust standard error from influence functions (N,) or (N, F)."""
    if clusters is None:
        return np.sqrt((influence**2).mean(0) / len(influence))
    return clustered_stderr(influence, clusters)


def normal_interval(theta, stderr, level, df=np.inf):
    """The confidence interval with coverage ``level``: normal, or Student's with ``df``."""
    half = stats.t.ppf(0.5 + level / 2, df) * stderr
    return float(theta - half), float(theta + half)


def normal_pvalue(theta, stderr, df=np.inf):
    """Two-sided p-value of the test of a zero effect, as in :func:`normal_interval`."""
    return float(2 * stats.t.sf(abs(theta) / stderr, df)) if stderr > 0 else float(theta == 0)


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


def bootstrap_maxima(influence, n_draws, rng, cluster=None):
    """Largest |t| over all features, in each draw of a Gaussian multiplier bootstrap.

    Its 95 % quantile is the half-width of simultaneous 95 % intervals, in standard errors. Draws
    are computed by matrix products, by as many threads as the fit may use.

    Parameters
    ----------
    influence : array of shape (N, F)
        Influence functions.
    n_draws : int
    rng : Generator
    cluster : int array of shape (N,), optional
        Rows of one cluster share their multiplier.

    Returns
    -------
    maxima : array of shape (n_draws,)
        Sorted.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> maxima = bootstrap_maxima(rng.standard_normal((500, 1)), 10000, rng)
    >>> bool(abs(np.quantile(maxima, 0.95) - 1.96) < 0.05)  # one feature: the normal quantile
    True
    """
    if cluster is not None:
        influence = cluster_sums(np.unique(cluster, return_inverse=True)[1], influence)
    norm = np.sqrt((influence**2).sum(0))
    scaled = (influence / np.where(norm > 0, norm, 1.0)).astype(np.float32)

    def some(own):
        """Maxima of the draws of a generator."""
        draws = own.standard_normal((DRAWS_AT_ONCE, len(influence)), np.float32)
        return np.abs(draws @ scaled).max(1, initial=0.0)

    # Each part has a generator of its own, so that the result does not depend on the threads.
    parts = rng.spawn(-(-n_draws // DRAWS_AT_ONCE))
    maxima = in_threads(some, parts, held=4 * DRAWS_AT_ONCE * len(influence))
    return np.sort(np.concatenate(list(maxima))[:n_draws])


def separation(X, y):
    """On which side the rows do not bound the log-odds of columns: 1 above, −1 below, 0 on none.

    If all rows with a 0/1 column have the same label, no effect in that direction is too large for
    the data, whatever the other columns are.

    Parameters
    ----------
    X : array of shape (N, P)
    y : array of shape (N,)
        0/1 labels.

    Returns
    -------
    side : int array of shape (P,)
        0 for columns that are not 0/1.

    Examples
    --------
    >>> X = np.array([[1, 1, 0.5], [1, 0, 2.0], [0, 1, 1.0], [0, 0, 1.0]])
    >>> separation(X, np.array([1, 1, 1, 0])).tolist()
    [1, 1, 0]
    """
    zero_one = ((X == 0) | (X == 1)).all(0)
    n_with, with_label = X.sum(0), y @ X
    n_without, without_label = len(X) - n_with, y.sum() - with_label
    above = (with_label == n_with) | (without_label == 0)
    below = (with_label == 0) | (without_label == n_without)
    return zero_one * (above.astype(int) - below)


def strength(cf_y, cf_d, rho=1.0):
    """|ρ|·√(cf_y·cf_d / (1 − cf_d)): the bias of a confounder, in units of S."""
    return abs(rho) * np.sqrt(cf_y * cf_d / (1 - cf_d))


def robustness_value(distance):
    """The least strength r = cf_y = cf_d whose bias reaches a distance, in units of S.

    Parameters
    ----------
    distance : float or array
        |θ − null| / S. In a partially linear model this is |t| / √N.

    Examples
    --------
    >>> r = robustness_value(0.5)
    >>> round(float(r), 4), round(float(strength(r, r)), 4)
    (0.3904, 0.5)
    """
    f2 = np.asarray(distance, dtype=np.float64) ** 2
    return (np.sqrt(f2**2 + 4 * f2) - f2) / 2
