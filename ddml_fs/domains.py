"""Effects across domains: a random-effects meta-analysis of all features at once.

All results follow from the tables U and I of the :mod:`~ddml_fs.evidence`.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from ddml_fs.evidence import TINY

DIFFERENT = 0.01  # p-value of equal effects in all domains, below which they count as different
UNSTABLE = 0.5  # instability from which a feature is called unstable
SMALL = 0.1  # size of a negligible effect, in log-odds per standard deviation


@dataclass(frozen=True)
class Stability:
    """Results of the meta-analysis over the domains, for each of F features.

    Attributes
    ----------
    by_domain : array of shape (domains, F)
        Effect in each domain.
    effect, stderr : arrays of shape (F,)
        Random-effects mean and its standard error.
    tau, tau_low, tau_high : arrays of shape (F,)
        Standard deviation of the effect between domains, and its 95 % interval.
    differs : bool array of shape (F,)
        Whether effects differ between domains by more than chance explains.
    Q, I2 : arrays of shape (F,)
        Cochran's Q, and the share of it that exceeds its expectation under equal effects.
    agreement : array of shape (F,)
        Share of the domains whose effect has the sign of the mean.
    z : array of shape (F,)
        Mean divided by the standard deviation of the effect in a new domain.
    invariance : array of shape (F,)
        1 if chance explains the spread of the effects, otherwise the share of Q that it explains.
    pvalue, pvalue_equal : arrays of shape (F,)
        p-values of no effect in a new domain, and of equal effects in all domains.
    """

    by_domain: np.ndarray
    effect: np.ndarray
    stderr: np.ndarray
    tau: np.ndarray
    tau_low: np.ndarray
    tau_high: np.ndarray
    differs: np.ndarray
    Q: np.ndarray
    I2: np.ndarray
    agreement: np.ndarray
    z: np.ndarray
    invariance: np.ndarray
    pvalue: np.ndarray
    pvalue_equal: np.ndarray

    @property
    def instability(self):
        """Size of the variation between domains relative to the effect, from 0 to 1, (F,).

        It is τ / √(τ² + θ² + s²), where s is a negligible effect. Unlike a test statistic, it does
        not grow with the number of rows.
        """
        return self.tau / np.sqrt(self.tau**2 + self.effect**2 + SMALL**2)

    @property
    def stable(self):
        """Features whose instability is below :data:`UNSTABLE`, (F,)."""
        return self.instability < UNSTABLE

    @property
    def clearly_unstable(self):
        """Features that are unstable beyond chance, with control of false discoveries, (F,).

        With few rows many features look unstable by chance, above all rare ones.
        """
        return ~self.stable & (stats.false_discovery_control(self.pvalue_equal) <= DIFFERENT)


def heterogeneity(U, I, known):
    """Heterogeneity of effects between domains.

    Parameters
    ----------
    U, I : arrays of shape (domains, ...)
        Scores, and their variances under no effect.
    known : bool array of the same shape
        Which domains have information about a feature.

    Returns
    -------
    theta : array of shape (domains, ...)
        Effects.
    Q, df : arrays of shape (...)
        Cochran's Q, and its degrees of freedom.
    spread : array of shape (...)
        (Q − df) / spread is the moment estimate of τ².
    """
    I = np.where(known, I, TINY)
    theta = np.where(known, U, 0.0) / I
    total = I.sum(0)
    Q = (I * (theta - (I * theta).sum(0) / total) ** 2).sum(0)
    spread = np.maximum(total - (I**2).sum(0) / total, TINY)
    return theta, Q, np.maximum(known.sum(0) - 1, 0), spread


def quantile_of_chance(level, df):
    """The upper ``level`` quantile of Cochran's Q under equal effects; ∞ for one domain."""
    return np.where(df > 0, stats.chi2.isf(level, np.maximum(df, 1)), np.inf)


def across_domains(U, I):
    """Combine the domains by the method of DerSimonian and Laird.

    ``tau`` is their moment estimate. The mean, its standard error and its p-value use a smaller
    variance between domains: only the part of Cochran's Q above its 99 % quantile under equal
    effects counts, where the original method subtracts the expectation of Q. So stable features
    keep their precision. Domains without information about a feature are left out. The effect in a
    new domain has variance τ² + stderr², and ``z`` is the mean effect divided by its root. With one
    domain, z is the model-based t statistic U/√I.

    Parameters
    ----------
    U, I : arrays of shape (domains, F)

    Returns
    -------
    stability : Stability

    Examples
    --------
    >>> same = across_domains(np.array([[20.0, 20.0], [20.0, -10.0]]), np.full((2, 2), 10.0))
    >>> same.effect.round(3).tolist(), same.tau.round(3).tolist()
    ([2.0, 0.5], [0.0, 2.098])
    """
    known = TINY < I
    theta, Q, df, spread = heterogeneity(U, I, known)
    I = np.where(known, I, TINY)
    chance = quantile_of_chance(DIFFERENT, df)
    tau2 = np.where(chance < Q, (Q - chance) / spread, 0.0)
    weights = 1 / (1 / I + tau2)
    effect = (weights * theta).sum(0) / weights.sum(0)
    stderr = 1 / np.sqrt(weights.sum(0))
    z = np.where(known.any(0), effect / np.sqrt(tau2 + stderr**2), 0.0)
    # Interval of the moment estimate of τ², from the quantiles of Q under equal effects.
    bounds = [stats.chi2.ppf(q, np.maximum(df, 1)) for q in (0.975, 0.025)]
    # If the variance between domains is estimated, the reference is Student's t.
    tails = stats.t.sf(np.abs(z), np.maximum(df, 1)), stats.norm.sf(np.abs(z))
    pvalue = 2 * np.where(tau2 > 0, *tails)
    return Stability(
        by_domain=theta,
        effect=effect,
        stderr=stderr,
        tau=np.sqrt(np.where(df > 0, np.maximum(Q - df, 0) / spread, 0.0)),
        tau_low=np.sqrt(np.maximum(Q - bounds[0], 0) / spread),
        tau_high=np.sqrt(np.maximum(Q - bounds[1], 0) / spread),
        differs=tau2 > 0,
        Q=Q,
        I2=np.where(df > 0, np.maximum(0.0, 1 - df / np.maximum(Q, TINY)), 0.0),
        agreement=(known & (np.sign(theta) == np.sign(effect))).sum(0) / (df + 1),
        z=z,
        invariance=np.minimum(1.0, chance / np.maximum(Q, TINY)),
        pvalue=pvalue,
        pvalue_equal=np.where(df > 0, stats.chi2.sf(Q, np.maximum(df, 1)), 1.0),
    )
