"""Effects across domains: a random-effects meta-analysis of every feature at once.

A domain d gives feature j the score U_dj and its information I_dj, and so the effect U_dj / I_dj
with variance 1 / I_dj. Everything else follows from these two tables.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

TINY = 1e-12
UNSTABLE = 0.01  # p-value of equal effects in all domains, below which a feature is unstable


@dataclass(frozen=True)
class Evidence:
    """Scores and informations of every feature in cells of rows: a fold of a domain each.

    Attributes
    ----------
    U, I : arrays of shape (cells, F)
        Sums over the rows of a cell.
    domain, fold : int arrays of shape (cells,)
        Where a cell belongs.
    influence : array of shape (N, F)
        Of each row on the pooled effect.
    """

    U: np.ndarray
    I: np.ndarray
    domain: np.ndarray
    fold: np.ndarray
    influence: np.ndarray

    def without(self, part, number):
        """The evidence from all other domains (``part="domain"``) or folds (``part="fold"``)."""
        other = getattr(self, part) != number
        return replace(
            self,
            U=self.U[other],
            I=self.I[other],
            domain=self.domain[other],
            fold=self.fold[other],
        )

    def by_domain(self):
        """U and I summed over the folds, each (domains, F)."""
        own = self.domain == np.unique(self.domain)[:, None]
        return own @ self.U, own @ self.I


def collect(score, v, e, g, *, unit, domain, fold):
    """Sum the scores of every feature and their information over the folds of the domains.

    Parameters
    ----------
    score : ResidualScore
    v, e, g : arrays of shape (N, F)
        Residuals of every feature and of the outcome without it, and the outcome's prediction.
    unit : array of shape (F,)
        What a feature is counted in: its standard deviation.
    domain, fold : int arrays of shape (N,)

    Returns
    -------
    evidence : Evidence

    Notes
    -----
    With several domains the residuals are centred within each: a domain has an intercept of its
    own, so that features whose means move with the label's are not taken for causes.
    """
    dispersion = score.dispersion(e)
    v, e = v / unit.astype(v.dtype), e.copy()
    if domain.max() > 0:
        for d in range(domain.max() + 1):
            rows = domain == d
            v[rows] -= v[rows].mean(0)
            e[rows] -= e[rows].mean(0)
    moments = score.of_residuals(v, e, g, dispersion)
    cells = np.unique(np.column_stack([domain, fold]), axis=0)
    member = (domain == cells[:, :1]) & (fold == cells[:, 1:])  # (cells, N)
    U, I = (
        np.stack([a[rows].sum(0, dtype=np.float64) for rows in member])
        for a in (moments.psi_b / dispersion, moments.information)
    )
    return Evidence(U, I, cells[:, 0], cells[:, 1], moments.influence.astype(np.float32))


@dataclass(frozen=True)
class Stability:
    """What the domains together say about each of F features.

    Attributes
    ----------
    by_domain : array of shape (domains, F)
        Effect in each domain.
    effect, stderr : arrays of shape (F,)
        Random-effects mean and its standard error.
    tau : array of shape (F,)
        Standard deviation of the effect between domains, beyond what chance explains.
    Q, I2 : arrays of shape (F,)
        Cochran's Q, and the share of it that chance does not explain on average.
    agreement : array of shape (F,)
        Share of the domains whose effect has the mean's sign.
    z : array of shape (F,)
        Mean over the standard deviation of the effect in a new domain.
    invariance : array of shape (F,)
        1 where chance explains the spread of the effects, else the share of Q that it explains.
    pvalue : array of shape (F,)
        Of no effect in a new domain.
    """

    by_domain: np.ndarray
    effect: np.ndarray
    stderr: np.ndarray
    tau: np.ndarray
    Q: np.ndarray
    I2: np.ndarray
    agreement: np.ndarray
    z: np.ndarray
    invariance: np.ndarray
    pvalue: np.ndarray

    @property
    def stable(self):
        """Features whose effects differ no more than chance explains, (F,)."""
        return self.invariance == 1


def across_domains(U, I):
    """Combine the domains by the method of DerSimonian and Laird.

    Of Cochran's Q, only what exceeds its 99 % quantile under equal effects counts towards the
    variance between domains, τ², where the original takes off the mean: stable features keep their
    precision. Domains that know nothing of a feature are left out. What matters for a domain yet
    unseen is the effect there, with variance τ² + stderr²: ``z`` is the mean effect over its root.
    With one domain, z is the model-based t, U/√I.

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
    ([2.0, 0.5], [0.0, 1.959])
    """
    known = TINY < I
    I = np.where(known, I, TINY)
    theta = np.where(known, U, 0.0) / I
    df = np.maximum(known.sum(0) - 1, 0)
    total = I.sum(0)
    Q = (I * (theta - (I * theta).sum(0) / total) ** 2).sum(0)
    spread = np.maximum(total - (I**2).sum(0) / total, TINY)
    chance = np.where(df > 0, stats.chi2.isf(UNSTABLE, np.maximum(df, 1)), np.inf)
    tau2 = np.where(chance < Q, (Q - chance) / spread, 0.0)
    weights = 1 / (1 / I + tau2)
    effect = (weights * theta).sum(0) / weights.sum(0)
    stderr = 1 / np.sqrt(weights.sum(0))
    z = np.where(known.any(0), effect / np.sqrt(tau2 + stderr**2), 0.0)
    # With a spread estimated from few domains, the reference is Student's t.
    tails = stats.t.sf(np.abs(z), np.maximum(df, 1)), stats.norm.sf(np.abs(z))
    pvalue = 2 * np.where(tau2 > 0, *tails)
    return Stability(
        by_domain=theta,
        effect=effect,
        stderr=stderr,
        tau=np.sqrt(tau2),
        Q=Q,
        I2=np.where(df > 0, np.maximum(0.0, 1 - df / np.maximum(Q, TINY)), 0.0),
        agreement=(known & (np.sign(theta) == np.sign(effect))).sum(0) / (df + 1),
        z=z,
        invariance=np.minimum(1.0, chance / np.maximum(Q, TINY)),
        pvalue=pvalue,
    )
