"""Effects across domains: a random-effects meta-analysis of every feature at once.

A domain d gives feature j the score U_dj and its information I_dj, and so the effect U_dj / I_dj
with variance 1 / I_dj. Everything else follows from these two tables.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import stats
from scipy.special import expit

from ddml_fs.scores import log_odds

TINY = 1e-12
COLLINEAR = 0.01  # share of a column's variance that others leave, below which nothing is known
INTERCEPT_STEPS = 4
DIFFERENT = 0.01  # p-value of equal effects in all domains, below which they count as different
UNSTABLE = 0.5  # instability from which a feature is called unstable
SMALL = 0.1  # effects, in log-odds for one standard deviation, that make no difference


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
    chi2, df : arrays of shape (F,)
        Score test of no effect in any of a feature's columns, over all rows, and its degrees of
        freedom.
    """

    U: np.ndarray
    I: np.ndarray
    domain: np.ndarray
    fold: np.ndarray
    influence: np.ndarray
    chi2: np.ndarray
    df: np.ndarray

    def without(self, part, number):
        """The evidence from all other domains (``part="domain"``) or folds (``part="fold"``).

        The test is then that of the pooled effect.
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


def own_intercepts(score, v, e, g, domain):
    """Give every domain an intercept of its own.

    With several domains, features whose means move with the label's are not taken for causes.

    Parameters
    ----------
    score : ResidualScore
    v : array of shape (N, P)
        Residuals of the treatments.
    e, g : arrays of shape (N, F)
        Residuals of the outcome, and its predictions.
    domain : int array of shape (N,)

    Returns
    -------
    v, e, g : arrays
        A label's prediction moves on the log-odds, until its mean in a domain is that of the label;
        v is centred by the mean there.
    """
    v, e, g = v.copy(), e.copy(), g.copy()
    for d in np.unique(domain):
        rows = domain == d
        v[rows] -= v[rows].mean(0)
        if score.label:
            y, index = e[rows] + g[rows], log_odds(g[rows])
            for _ in range(INTERCEPT_STEPS):
                p = expit(index)
                step = (y - p).mean(0) / np.maximum((p * (1 - p)).mean(0), 1e-3)
                index += np.clip(step, -2, 2)
            g[rows] = expit(index)
            e[rows] = y - g[rows]
        else:
            shift = e[rows].mean(0)
            e[rows] -= shift
            g[rows] += shift
    return v, e, g


def best_sum(V, e, weight, dispersion):
    """The sum of columns V (N, k) that explains e best, and the score test of none of them.

    Returns
    -------
    b : array of shape (k,)
    chi2 : float
    df : int
        Columns that say something of their own.
    """
    V = V.astype(np.float64)
    M, U = (V * weight[:, None]).T @ V, V.T @ e
    scale = np.sqrt(np.maximum(np.diag(M), TINY))
    values, vectors = np.linalg.eigh(M / scale[:, None] / scale)
    values, vectors = values[values > COLLINEAR], vectors[:, values > COLLINEAR]
    part = vectors.T @ (U / scale)
    b = vectors @ (part / values) / scale
    return b, (part**2 / values).sum() / dispersion, len(values)


def collect(score, v, e, g, *, Z, own, straight, tested, domain, fold, dof=0.0):
    """Sum the scores of every feature and their information over the folds of the domains.

    Parameters
    ----------
    score : ResidualScore
    v : array of shape (N, P)
        Residuals of every column, given the columns of all other features.
    e, g : arrays of shape (N, F)
        Residuals of the outcome without a feature, and its prediction.
    Z : array of shape (N, P)
        The columns.
    own : int array of shape (P,)
        The feature of every column.
    straight, tested : bool arrays of shape (P,)
        The columns that make up a feature's effect, and those that are tested: bent ones are in
        the test alone, so that the effect of a number is the slope of a line.
    domain, fold : int arrays of shape (N,)
    dof : float
        Degrees of freedom of the nuisances, where they have seen the rows.

    Returns
    -------
    evidence : Evidence

    Notes
    -----
    A feature of several columns, such as the levels of a category, is judged along the sum of its
    columns that fits best; its effect is that of one standard deviation of this sum. The test
    counts all columns. Of a column that the others explain all but :data:`COLLINEAR` of, nothing
    is known.
    """
    if domain.max() > 0 and dof == 0:  # nuisances that saw the rows have the intercepts already
        v, e, g = own_intercepts(score, v, e, g, domain)
    N, F = len(v), e.shape[1]
    dispersion = np.broadcast_to(score.dispersion(e), F)
    known = v.var(0, dtype=np.float64) > COLLINEAR * np.maximum(Z.var(0, dtype=np.float64), TINY)
    curve = np.zeros((N, F), dtype=v.dtype)
    chi2, df = np.zeros(F), np.zeros(F, dtype=int)
    weight = score.variance(g) * np.ones_like(e)
    order = np.argsort(own, kind="stable")
    bounds = np.searchsorted(own[order], np.arange(F + 1))
    for f in range(F):
        columns = order[bounds[f] : bounds[f + 1]]
        columns = columns[tested[columns] & known[columns]]
        if not len(columns):
            continue
        _, chi2[f], df[f] = best_sum(v[:, columns], e[:, f], weight[:, f], dispersion[f])
        line = columns[straight[columns]]
        b = np.ones(len(line))  # a single column keeps its sign
        if len(line) > 1:
            b = best_sum(v[:, line], e[:, f], weight[:, f], dispersion[f])[0]
        curve[:, f] = v[:, line] @ (b / (np.std(Z[:, line] @ b) or 1.0))
    moments = score.of_residuals(curve, e, g, dispersion)
    cells = np.unique(np.column_stack([domain, fold]), axis=0)
    member = (domain == cells[:, :1]) & (fold == cells[:, 1:])  # (cells, N)
    # Residuals lose the degrees of freedom once; a label's weights, from the same fit, again.
    kept = max(1 - dof / N, 0.1) ** (2 if score.label else 1)
    U, I = (
        kept * np.stack([a[rows].sum(0, dtype=np.float64) for rows in member])
        for a in (moments.psi_b / dispersion, moments.information)
    )
    influence = moments.influence.astype(np.float32)
    return Evidence(U, I, cells[:, 0], cells[:, 1], influence, kept * chi2, df)


@dataclass(frozen=True)
class Stability:
    """What the domains together say about each of F features.

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
        """How large the spread of an effect is beside the effect, from 0 to 1, (F,).

        τ / √(τ² + θ² + s²), s being an effect that makes no difference: a size, which does not grow
        with the number of rows as a test does.
        """
        return self.tau / np.sqrt(self.tau**2 + self.effect**2 + SMALL**2)

    @property
    def stable(self):
        """Features whose effects differ little beside their size, (F,)."""
        return self.instability < UNSTABLE


def heterogeneity(U, I, known):
    """How effects differ between domains, beside how much they would by chance.

    Parameters
    ----------
    U, I : arrays of shape (domains, ...)
        Scores, and their variances where there is no effect.
    known : bool array of the same shape
        Domains that say something of a feature.

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
    """What Cochran's Q exceeds with a chance of ``level`` under equal effects; ∞ for one domain."""
    return np.where(df > 0, stats.chi2.isf(level, np.maximum(df, 1)), np.inf)


def across_domains(U, I):
    """Combine the domains by the method of DerSimonian and Laird.

    ``tau`` is their moment estimate. In the mean, its error and its p-value, only what exceeds the
    99 % quantile of Cochran's Q under equal effects counts towards the variance between domains,
    where the original takes off the mean of Q: stable features keep their precision. Domains that
    know nothing of a feature are left out. What matters for a domain yet unseen is the effect
    there, with variance τ² + stderr²: ``z`` is the mean effect over its root.
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
    # Of the moment estimate of τ², by the quantiles of Q under equal effects.
    bounds = [stats.chi2.ppf(q, np.maximum(df, 1)) for q in (0.975, 0.025)]
    # With a spread estimated from few domains, the reference is Student's t.
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
