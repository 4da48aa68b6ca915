"""Scores, standard errors and intervals."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from ddml_fs.engine.losses import DELTA, residual_on_residual


@dataclass(frozen=True)
class Estimate:
    """An effect with its influence function.

    Attributes
    ----------
    theta : float
        The effect.
    influence : array of shape (N,)
        Each row's influence on ``theta``, with mean 0.
    """

    theta: float
    influence: np.ndarray

    @property
    def stderr(self):
        """Standard error from the influence function."""
        return float(np.sqrt(np.mean(self.influence**2) / len(self.influence)))


def partially_linear(v, e):
    """The partially linear effect, Eq. 23, with the score ψ = (e − θv)·v of Eq. 6.

    Parameters
    ----------
    v, e : arrays of shape (N,)
        Treatment and outcome residuals, Eq. 22.

    Examples
    --------
    >>> estimate = partially_linear(np.array([1.0, -1.0]), np.array([2.0, -2.0]))
    >>> round(estimate.theta, 6), round(estimate.stderr, 6)
    (2.0, 0.0)
    """
    theta = float(residual_on_residual(v, e))
    return Estimate(theta, (e - theta * v) * v / np.mean(v**2))


def logistic(v, e, p):
    """The partially linear logistic effect on the log-odds, by one step from zero.

    The score v·(y − p) is orthogonal at a zero effect; its information is v²·p(1 − p).

    Parameters
    ----------
    v, e, p : arrays of shape (N,)
        Treatment residual, label residual y − p, and the label's probability without the treatment.
    """
    information = np.mean(v**2 * p * (1 - p)) + DELTA
    theta = float(np.mean(v * e) / information)
    return Estimate(theta, v * (e - theta * v * p * (1 - p)) / information)


def interactive(T, Y, m, mu, target="ate"):
    """The augmented inverse-propensity-weighted effect of a binary treatment.

    Parameters
    ----------
    T, Y, m : arrays of shape (N,)
        Treatment, outcome, propensity.
    mu : array of shape (2, N)
        E[Y | X, T = 0] and E[Y | X, T = 1].
    target : {"ate", "att"}
        Average over all rows, or over the treated.
    """
    rest_0, rest_1 = Y - mu[0], Y - mu[1]
    if target == "ate":
        score = mu[1] - mu[0] + T * rest_1 / m - (1 - T) * rest_0 / (1 - m)
        theta = float(score.mean())
        return Estimate(theta, score - theta)
    share = T.mean()
    score = (T * rest_0 - (1 - T) * m / (1 - m) * rest_0) / share
    theta = float(score.mean())
    return Estimate(theta, score - theta * T / share)


def median_of(estimates):
    """Combine repeated splits: the median effect, and a standard error that counts their spread.

    Returns
    -------
    theta, stderr : float
    """
    thetas = np.array([s.theta for s in estimates])
    stderrs = np.array([s.stderr for s in estimates])
    theta = np.median(thetas)
    return float(theta), float(np.sqrt(np.median(stderrs**2 + (thetas - theta) ** 2)))


def normal_interval(theta, stderr, level):
    """The two ends of the normal interval at ``level``."""
    half = stats.norm.ppf(0.5 + level / 2) * stderr
    return float(theta - half), float(theta + half)


def normal_pvalue(theta, stderr):
    """Two-sided p-value of a zero effect."""
    return float(2 * stats.norm.sf(abs(theta) / stderr)) if stderr > 0 else float(theta == 0)


def holm(pvalues):
    """p-values adjusted for the chance of any false discovery, by Holm's method.

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
    """Largest |t| over all features, in draws of a Gaussian multiplier bootstrap.

    The quantile at 95 % is the number of standard errors by which simultaneous intervals reach to
    either side. All draws are one matrix product.

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
