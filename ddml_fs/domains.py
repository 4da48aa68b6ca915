"""Effects across domains: a random-effects meta-analysis of all features at once.

In domain d, feature j has the score U_dj with information I_dj. Its effect is U_dj / I_dj with
variance 1 / I_dj. All results follow from the tables U and I.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import stats
from scipy.special import expit

from ddml_fs.score_tests import COLLINEAR, Robust, best_sum, design_effects
from ddml_fs.scores import log_odds
from ddml_fs.weights import column, varies, weighted_mean, weighted_var

TINY = 1e-12
INTERCEPT_STEPS = 4
DIFFERENT = 0.01  # p-value of equal effects in all domains, below which they count as different
UNSTABLE = 0.5  # instability from which a feature is called unstable
SMALL = 0.1  # size of a negligible effect, in log-odds per standard deviation


@dataclass(frozen=True)
class Evidence:
    """Scores and information of every feature in cells of rows; a cell is a fold of a domain.

    Attributes
    ----------
    U, I : arrays of shape (cells, F)
        Sums over the rows of a cell, divided by ``design``, so that 1 / I is a variance.
    domain, fold : int arrays of shape (cells,)
        Domain and fold of each cell.
    influence : array of shape (N, F)
        Influence of each row on the pooled effect.
    chi2, df : arrays of shape (F,)
        Statistic of the score test that no column of the feature has an effect, over all rows, and
        its degrees of freedom.
    design : array of shape (F,)
        Robust over model-based variance of the effect; 1 without weights and clusters.
    """

    U: np.ndarray
    I: np.ndarray
    domain: np.ndarray
    fold: np.ndarray
    influence: np.ndarray
    chi2: np.ndarray
    df: np.ndarray
    design: np.ndarray

    def without(self, part, number):
        """The evidence from all other domains (``part="domain"``) or folds (``part="fold"``).

        The test is then the one of the pooled effect.
        """
        other = getattr(self, part) != number
        U, I = self.U[other], self.I[other]
        return replace(
            self,
            U=U,
            I=I,
            domain=self.domain[other],
            fold=self.fold[other],
            chi2=U.sum(0) ** 2 / np.maximum(I.sum(0), TINY),
            df=np.minimum(self.df, 1),
        )

    def by_domain(self):
        """U and I summed over the folds, each (domains, F)."""
        own = self.domain == np.unique(self.domain)[:, None]
        return own @ self.U, own @ self.I


def joined(parts):
    """The evidence on all features of several parts, which have the same cells."""
    if len(parts) == 1:
        return parts[0]
    rows = ("U", "I", "influence", "chi2", "df", "design")
    return replace(
        parts[0], **{name: np.concatenate([getattr(s, name) for s in parts], -1) for name in rows}
    )


def own_intercepts(score, v, e, g, domain, weight):
    """Give every domain its own intercept.

    Otherwise, features whose means differ between domains as those of the label do would seem to
    have an effect.

    Parameters
    ----------
    score : ResidualScore
    v : array of shape (N, P)
        Residuals of the treatments.
    e, g : arrays of shape (N, F)
        Residuals of the outcome, and its predictions.
    domain : int array of shape (N,)
    weight : array of shape (N,)

    Returns
    -------
    v, e, g : arrays
        The log-odds of predicted labels are shifted so that the mean prediction in each domain is
        the mean of the label; v is centred in each domain.
    """
    v, e, g = v.copy(), e.copy(), g.copy()
    for d in np.unique(domain):
        rows = domain == d
        w = weight[rows]
        v[rows] -= weighted_mean(v[rows], w)
        if score.label:
            y, index = e[rows] + g[rows], log_odds(g[rows])
            for _ in range(INTERCEPT_STEPS):
                p = expit(index)
                spread = np.maximum(weighted_mean(p * (1 - p), w), 1e-3)
                step = weighted_mean(y - p, w) / spread
                index += np.clip(step, -2, 2)
            g[rows] = expit(index)
            e[rows] = y - g[rows]
        else:
            shift = weighted_mean(e[rows], w)
            e[rows] -= shift
            g[rows] += shift
    return v, e, g


def collect(
    score, v, e, g, *, Z, own, straight, tested, domain, fold, dof=0.0, weight=None, cluster=None
):
    """Sum the scores and the information of every feature over the folds of the domains.

    Parameters
    ----------
    score : ResidualScore
    v : array of shape (N, P)
        Residuals of every column, given the columns of all other features.
    e, g : arrays of shape (N, F)
        Residuals and predictions of the outcome, from models without the feature.
    Z : array of shape (N, P)
        The columns.
    own : int array of shape (P,)
        The feature of every column.
    straight, tested : bool arrays of shape (P,)
        The columns that define the effect of a feature, and the columns that are tested. Hinge
        functions are only tested, so that the effect of a number is the slope of a line.
    domain, fold : int arrays of shape (N,)
    dof : float
        Degrees of freedom of nuisances that were fitted on the same rows; otherwise 0.
    weight : array of shape (N,), optional
        With mean 1.
    cluster : int array of shape (N,), optional

    Returns
    -------
    evidence : Evidence

    Notes
    -----
    For a feature with several columns, such as the levels of a category, the effect is that of one
    standard deviation of the best-fitting sum of its columns. The test includes all columns.
    Columns of which the others leave less than the share :data:`~ddml_fs.score_tests.COLLINEAR` are
    not used. With weights that differ, or with clusters, variances and tests are robust (sandwich),
    because model-based ones do not hold.
    """
    weight = np.ones(len(v), v.dtype) if weight is None else weight.astype(v.dtype)
    robust = None
    if cluster is not None or varies(weight):
        robust = Robust(cluster, len(np.unique(domain)))
    if domain.max() > 0 and dof == 0:  # nuisances with dof have such intercepts already
        v, e, g = own_intercepts(score, v, e, g, domain, weight)
    N, F = len(v), e.shape[1]
    dispersion = np.broadcast_to(score.dispersion(e, weight), F)
    known = weighted_var(v, weight) > COLLINEAR * weighted_var(Z, weight)
    curve = np.zeros((N, F), dtype=v.dtype)
    chi2, df = np.zeros(F), np.zeros(F, dtype=int)
    variance = score.variance(g) * np.ones_like(e)
    order = np.argsort(own, kind="stable")
    bounds = np.searchsorted(own[order], np.arange(F + 1))
    for f in range(F):
        columns = order[bounds[f] : bounds[f + 1]]
        columns = columns[tested[columns] & known[columns]]
        if not len(columns):
            continue
        given = e[:, f], variance[:, f], dispersion[f], weight, robust
        _, chi2[f], df[f] = best_sum(v[:, columns], *given)
        line = columns[straight[columns]]
        b = np.ones(len(line))  # so that a single column keeps its sign
        if len(line) > 1:
            b = best_sum(v[:, line], *given)[0]
        curve[:, f] = v[:, line] @ (b / (np.sqrt(weighted_var(Z[:, line] @ b, weight)) or 1.0))
    moments = score.of_residuals(curve, e, g, dispersion, weight)
    cells = np.unique(np.column_stack([domain, fold]), axis=0)
    member = (domain == cells[:, :1]) & (fold == cells[:, 1:])  # (cells, N)
    # Residuals are too small because of the degrees of freedom, and so are the weights of labels,
    # which come from the same fit.
    kept = max(1 - dof / N, 0.1) ** (2 if score.label else 1)
    U, I = (
        np.stack([a[rows].sum(0, dtype=np.float64) for rows in member])
        for a in (column(weight, e) * moments.psi_b / dispersion, moments.information)
    )
    in_domain = cells[:, 0] == np.unique(domain)[:, None]
    design = design_effects(moments, in_domain @ U, in_domain @ I, domain, robust)
    U, I = kept / design * U, kept / design * I
    influence = moments.influence.astype(np.float32)
    return Evidence(U, I, cells[:, 0], cells[:, 1], influence, kept * chi2, df, design)


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
    pvalue : array of shape (F,)
        p-value of no effect in a new domain.
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
    )
