"""Backward elimination by the gain that a feature is expected to have in a new domain.

A feature is a block of columns: the column itself, its hinge functions, the levels of a category.
A ridge regression starts with all features. Again and again the feature is dropped whose gain,
given those that remain, is the smallest. The order is that of the drops, last first.
"""

from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.linalg.blas import dgemm

from ddml_fs.domains import heterogeneity, quantile_of_chance
from ddml_fs.engine.devices import library_threads
from ddml_fs.progress import Progress

REFIT = 0.5  # share of the features that is dropped before the model is fitted again
SINGLE = 8  # with so many features or fewer, the model is fitted again after every drop
UNSTABLE = 0.001  # p-value of equal effects in all domains, above which they count as equal
MANY = 0.01  # p-value of the number of risky features, below which effects count as moving
OPPOSITE = 0.01  # p-value over all features and domains, below which some effect has either sign
MOST = 1500  # columns in the elimination; the rest follow, ordered by their own gains
THREADED = 500  # columns above which threads save time in a fit
TINY = 1e-9


class Elimination(NamedTuple):
    """Result of an elimination.

    Attributes
    ----------
    order : int array of shape (F,)
        The features, best first.
    scores : array of shape (F,)
        The gain in a new domain that was expected when a feature was dropped: log-likelihood per
        row (with several classes, averaged over them), minus the penalty for risk.
    risky : bool array of shape (F,)
        Features whose risk exceeds their gain.
    """

    order: np.ndarray
    scores: np.ndarray
    risky: np.ndarray

    @property
    def moving(self):
        """Whether more features are risky than chance explains if all effects are stable."""
        return bool(stats.binom.sf(self.risky.sum() - 1, len(self.risky), UNSTABLE) < MANY)


def mean_order(orders):
    """The order of the mean logarithm of the ranks in several orders (m, F).

    Examples
    --------
    >>> mean_order([[0, 1, 2, 3], [1, 0, 3, 2], [1, 0, 2, 3]]).tolist()
    [1, 0, 2, 3]
    """
    ranks = np.argsort(orders, axis=1)  # the inverse of a permutation
    return np.argsort(np.log(ranks + 1).mean(0), kind="stable")


def eliminate(model, *, risk_aversion=2.5, progress=None):
    """Order the features by backward elimination.

    Parameters
    ----------
    model : Products or RowModel
    risk_aversion : float
        The gain is lowered by ``risk_aversion`` · (τ/θ)² of itself, see Notes. It counts as 0
        unless some effect has opposite signs in two domains.
    progress : Progress, optional
        Told of every feature.

    Returns
    -------
    elimination : Elimination

    Notes
    -----
    Let b be the coefficients of a block, and Ω the inverse of the penalised information. Without
    the block the log-likelihood of all rows is lower by ½ bᵀ(Ω_bb)⁻¹b, to second order. On new rows
    the gain is smaller, by 1 for each column (as in Akaike's criterion). The variation between
    domains is measured along the fitted curve: its coefficient in domain d is θ_d, with mean θ and
    variance τ² between domains. In a new domain the variance of the gain is 4(τ/θ)² times the
    squared gain, so aversion to variance costs a multiple of (τ/θ)² of the gain. The mean over m
    domains is itself an estimate, which costs τ²/(mθ²) of the gain.

    Between two fits, coefficients follow from the quadratic approximation, which is exact for
    numbers and their least squares.
    """
    F, progress = model.n_features, progress or Progress()
    size = np.bincount(model.own, minlength=F)
    scores, risky = np.zeros(F), np.zeros(F, bool)
    alive, rest = np.flatnonzero(size > 0), np.empty(0, int)
    if size.sum() > MOST:
        alone = model.gains_alone()
        ranked = alive[np.argsort(-alone[alive], kind="stable")]
        room = np.cumsum(size[ranked]) <= MOST
        alive, rest = np.sort(ranked[room]), ranked[~room]
    dropped: list = []  # worst first
    fits = [Remaining(model, c, risk_aversion) for c in range(model.n_outcomes)]
    columns = np.flatnonzero(np.isin(model.own, alive))
    while len(alive):
        with library_threads(len(columns) > THREADED):
            for fit in fits:
                fit.refit(columns, alive)
        n_drops = max(1, int(REFIT * len(alive))) if len(alive) > SINGLE else 1
        for _ in range(n_drops):
            gains = sum(fit.gains(alive) for fit in fits) / len(fits)
            worst = int(np.argmin(gains))
            f, alive = alive[worst], np.delete(alive, worst)
            dropped.append(f)
            scores[f] = gains[worst] / model.n_rows
            risky[f] = sum(fit.kept[f] for fit in fits) < 0
            for fit in fits:
                fit.drop(f)
            progress.advance()
        columns = columns[np.isin(model.own[columns], alive)]
    if len(rest):
        best = min(scores[dropped].min(initial=0.0), 0.0)
        scores[rest] = np.minimum(alone[rest] / model.n_rows, best)
    order = np.r_[dropped[::-1], rest, np.flatnonzero(size == 0)].astype(np.intp)
    return Elimination(order, scores, risky)


class Remaining:
    """The model of one outcome while features are dropped.

    Parameters
    ----------
    model : Products or RowModel
    outcome : int
    risk_aversion : float
        As in :func:`eliminate`.
    """

    def __init__(self, model, outcome, risk_aversion):
        self.model, self.outcome, self.risk_aversion = model, outcome, risk_aversion
        self.start: np.ndarray | None = None
        self.b = self.columns = np.empty(0)

    def refit(self, columns, alive):
        """Fit the model to the columns of the features that remain."""
        first = self.start is None
        if self.start is not None:  # intercepts stay as they were
            self.start = np.r_[self.b[np.isin(self.columns, columns)], self.start[len(self.b) :]]
        fit = self.model.fit(self.outcome, columns, self.start)
        k, own = len(columns), self.model.own[columns]
        self.start, self.b, self.omega = fit.beta, fit.beta[:k].copy(), fit.omega[:k, :k].copy()
        self.columns = columns
        self.n_features_left = len(alive)  # when the model was fitted
        self.first = np.searchsorted(own, np.arange(self.model.n_features))
        self.size = np.bincount(own, minlength=self.model.n_features)
        straight = own[~self.model.bent[columns]]
        self.n_straight = np.bincount(straight, minlength=self.model.n_features)
        self.kept = np.ones(self.model.n_features)  # share of a gain that risk leaves
        if self.model.n_domains > 1:
            curves = np.zeros((len(fit.beta), len(alive)))
            for i, f in enumerate(alive):
                at = self.columns_of(f)
                curves[:, i] = fit.omega[:, at] @ np.linalg.solve(self.omega[at, at], self.b[at])
            U, I = fit.by_domain(curves)
            if first and not signs_differ(U, I):
                self.risk_aversion = 0.0
            self.kept[alive] = 1 - risk(U, I, self.risk_aversion)

    def columns_of(self, feature):
        """The columns of a feature, as a slice."""
        return slice(self.first[feature], self.first[feature] + self.size[feature])

    def gains(self, alive):
        """Expected gain of every feature in a new domain, in log-likelihood of all rows.

        Nonlinear columns cost no more than they gain: without them, the feature would be a line.
        """
        if len(self.columns) == self.n_features_left:  # one column each
            return self._losses(self.first[alive][:, None]) * self.kept[alive] - 1
        out = np.empty(len(alive))
        kinds = np.column_stack([self.size, self.n_straight])[alive]
        for k, s in np.unique(kinds, axis=0):
            same = np.flatnonzero((kinds == (k, s)).all(1))
            at = self.first[alive[same]][:, None] + np.arange(k)
            cost = s + np.minimum(self._losses(at[:, s:]), k - s) if 0 < s < k else k
            out[same] = self._losses(at) * self.kept[alive[same]] - cost
        return out

    def _losses(self, at):
        """Loss of log-likelihood without columns (f, k), for each of f sets of them."""
        if at.shape[1] == 1:
            own = at[:, 0]
            return self.b[own] ** 2 / self.omega[own, own] / 2
        b, omega = self.b[at], self.omega[at[:, :, None], at[:, None]]
        return (b * np.linalg.solve(omega, b[..., None])[..., 0]).sum(1) / 2

    def drop(self, feature):
        """Set the coefficients of a feature to zero; the others follow."""
        at = self.columns_of(feature)
        if self.size[feature] == 1:
            share = (self.omega[at] / self.omega[at, at]).T  # (P, k)
        else:
            share = np.linalg.solve(self.omega[at, at], self.omega[at]).T
        self.b = self.b - share @ self.b[at]
        # In place, as the time is that of reading and writing Ω; it is symmetric.
        dgemm(-1, self.omega[at].T.copy(), share.T, 1, self.omega.T, overwrite_c=True)


def signs_differ(U, I):
    """Whether the effect of some feature has the opposite sign in some domain, beyond chance.

    An effect that only differs in size helps in a new domain too. One that has either sign may do
    harm there, and where some effects do, others may follow.

    Parameters
    ----------
    U, I : arrays of shape (domains, F)
        As in :func:`risk`.

    Examples
    --------
    >>> I = np.full((2, 1), 100.0)
    >>> signs_differ(np.array([[190.0], [10.0]]), I), signs_differ(np.array([[250.0], [-50.0]]), I)
    (False, True)
    """
    z = U / np.sqrt(np.maximum(I, TINY))  # U is positive if the sign is that of the mean
    return bool(z.size * stats.norm.cdf(z.min(initial=0.0)) < OPPOSITE)


def risk(U, I, aversion):
    """The share of a gain that the variation of an effect between domains takes, (F,).

    Parameters
    ----------
    U, I : arrays of shape (domains, F)
        Scores of a feature's fitted curve, and their variances under no effect.
    aversion : float

    Examples
    --------
    >>> I = np.full((2, 1), 100.0)
    >>> same, differs = np.array([[100.0], [100.0]]), np.array([[150.0], [50.0]])
    >>> risk(same, I, 1.0).tolist(), risk(differs, I, 1.0).round(2).tolist()
    ([0.0], [0.74])
    """
    total = np.maximum(I.sum(0), TINY)
    _, Q, df, spread = heterogeneity(U, I, 1e-6 * total / len(I) < I)
    tau2 = np.where(quantile_of_chance(UNSTABLE, df) < Q, (Q - df) / spread, 0.0)
    relative = tau2 / np.maximum((U.sum(0) / total) ** 2, TINY)
    return relative * (1 / len(I) + aversion)
