"""Ridge nuisances of wide tables, a few treatments at a time.

The formulas are those of :mod:`ddml_fs.engine.ridge`, where the tests find the same numbers.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from ddml_fs.chunks import chunks
from ddml_fs.engine.devices import in_threads, library_threads
from ddml_fs.engine.wide_rows import Inverse, Standard, sparse_of
from ddml_fs.weights import weighted_mean

# With a larger penalty, single precision is enough: its error is at most 6e-8 · D/λ.
SINGLE = 1.0
TOLERANCE = 1e-6  # of the coefficients of a logistic regression


def logistic_coefficients(A, train, Y, weight, penalty, use):
    """Intercept and coefficients (D,) of ridge-logistic regression, by Newton's method with CG.

    Parameters
    ----------
    A : Standard
    train : int array of shape (n,)
    Y, weight : arrays of shape (n,)
        Labels and weights of the training rows.
    penalty : float
    use : bool array of shape (D,)
        The covariates; other columns have the coefficient 0.
    """
    n, D = len(train), len(use)
    start = np.zeros(D + 1)
    start[D] = logit(np.clip(weighted_mean(Y, weight), 0.5 / n, 1 - 0.5 / n))
    if np.ptp(Y) == 0:
        return start[D], start[:D]  # with one class there is nothing to learn
    every = np.zeros(A.shape[0])

    def sums(values):
        """Sums over the training rows, of the covariates and of the intercept, (D + 1,)."""
        every[train] = values / n
        return np.append(np.where(use, A.cross(every), 0.0), every.sum())

    def index(coefficients):
        return coefficients[D] + A.dot(coefficients[:D])[train]

    def loss(coefficients):
        eta, beta = index(coefficients), coefficients[:D]
        value = weight @ (np.logaddexp(0, eta) - Y * eta) / n + penalty / 2 * beta @ beta
        return value, sums(weight * (expit(eta) - Y)) + penalty * np.append(beta, 0.0)

    def curvature(coefficients, direction):
        p = expit(index(coefficients))
        both = sums(weight * np.maximum(p * (1 - p), 1e-10) * index(direction))
        return both + penalty * np.append(direction[:D], 0.0)

    options = {"xtol": TOLERANCE}
    found = minimize(loss, start, jac=True, hessp=curvature, method="Newton-CG", options=options)
    return found.x[D], found.x[:D]


def bytes_of_ridge(plan, shrinkage):
    """Number of bytes of the regressions of one fold, about."""
    (N, D), size = plan.X.shape, 4 if plan.penalty(shrinkage) >= SINGLE else 8
    inverses = 2 * (1 + plan.Y.shape[1]) * min(N, D) ** 2
    return size * (inverses + 4 * N * min(D, 256))


class Outcome(NamedTuple):
    """A regression of an outcome on all covariates, and the inverse that takes columns out."""

    level: float  # 0 for labels
    line: np.ndarray  # (n_new,), its predictions minus the level
    beta: np.ndarray  # (D,)
    inverse: Inverse


class Nuisances(NamedTuple):
    """Predictions for F treatments, with their levels left out so that single precision is enough.

    ``m`` (n_new, F) plus ``mean`` (F,) are the treatments. ``g``, one (n_new, F) per outcome, plus
    ``level`` (C,) are the outcomes without each treatment's columns: for a label, its log-odds.
    """

    m: np.ndarray
    g: list
    mean: np.ndarray
    level: np.ndarray


class WideFit:
    """Ridge nuisances of one fold of a plan, for a few treatments at a time.

    Parameters
    ----------
    plan : Plan
    k : int
        Number of the fold.
    shrinkage : float
    new : int array of shape (n_new,)
        Rows that are predicted.
    sparse : csr_matrix of shape (N, D), optional
        X without its zeros, see :func:`~ddml_fs.engine.wide_rows.sparse_of`.
    """

    def __init__(self, plan, k, shrinkage, new, sparse=None):
        self.plan, self.new, self.train = plan, new, plan.folds[k].train
        self.penalty = plan.penalty(shrinkage, k)
        weight = plan.weight[self.train]
        self.weight = weight / weight.mean()
        dtype = np.float32 if self.penalty >= SINGLE else np.float64
        self.A = Standard.of(plan.X, self.train, plan.weight, dtype, sparse)
        self.use = np.flatnonzero(plan.covariates)
        self.place = np.full(plan.X.shape[1], -1)
        self.place[self.use] = np.arange(len(self.use))
        # What does not depend on the linear regression is fitted beside it.
        labels = [None, *np.flatnonzero(plan.binary_Y)]
        self.linear, *found = in_threads(self._regression, labels)
        known = dict(zip(labels[1:], found, strict=True))
        self.outcomes = [
            known[c] if c in known else self._number(c) for c in range(plan.Y.shape[1])
        ]

    def _inverse(self, A, weight):
        return Inverse(A, self.train, weight, self.penalty, self.use, self.new)

    def _number(self, c):
        """The regression of outcome c, a number."""
        Y, beta = self.plan.Y[self.train, c].astype(np.float64), np.zeros(self.A.shape[1])
        level = float(weighted_mean(Y, self.weight))
        fits, coefficients = self.linear.fitted((Y - level)[:, None].astype(self.A.dtype))
        beta[self.use] = coefficients(slice(None))[:, 0]
        return Outcome(level, fits[:, 0], beta, self.linear)

    def _regression(self, c):
        """The regression of outcome c, a label; for None, the inverse of all treatments."""
        if c is None:
            return self._inverse(self.A, self.weight)
        Y = self.plan.Y[self.train, c].astype(np.float64)
        options = self.weight, self.penalty, self.plan.covariates
        intercept, beta = logistic_coefficients(self.A, self.train, Y, *options)
        index = intercept + self.A.dot(beta)
        p = expit(index[self.train])
        w = self.weight * p * (1 - p)
        every = np.zeros(len(index))
        every[self.train] = w / w.sum()
        A = self.A.shifted(self.A.cross(every))  # the intercept is not penalised
        return Outcome(0.0, index[self.new], beta, self._inverse(A, w))

    def treatments(self, chosen):
        """Predictions for some treatments.

        Parameters
        ----------
        chosen : int array of shape (F,)
            Numbers of treatments.

        Returns
        -------
        nuisances : Nuisances
        """
        chosen = np.asarray(chosen)
        blocks = self._blocks(chosen)
        size = np.array([len(block) for block in blocks], dtype=int)
        own = self.plan.own[chosen]
        alone = (size == 1) & (own >= 0) & self.plan.covariates[own]
        out = Nuisances(
            np.empty((len(self.new), len(chosen)), self.A.dtype),
            [
                np.repeat(o.line.astype(self.A.dtype)[:, None], len(chosen), 1)
                for o in self.outcomes
            ],
            np.empty(len(chosen)),
            np.array([o.level for o in self.outcomes]),
        )
        at = np.flatnonzero(alone)
        self._write_alone(out, at, own[at])
        aside = np.flatnonzero(~alone & ~self._inside(own))
        self._write_aside(out, aside, chosen[aside], [blocks[i] for i in aside])
        for i in np.flatnonzero(~alone & self._inside(own)):
            self._write_block(out, i, own[i], blocks[i])
        return out

    def _blocks(self, chosen):
        """Places of the covariates that share a block with each treatment, a list of arrays.

        As :meth:`~ddml_fs.engine.plan.Plan.block_of`, which looks at all columns for each of them.
        """
        number, own = self.plan.block[self.use], self.plan.own[chosen]
        order = np.argsort(number, kind="stable")
        first, last = (
            np.searchsorted(number[order], self.plan.block[own], side) for side in ("left", "right")
        )
        last[own < 0] = first[own < 0]
        return [order[i:j] for i, j in zip(first, last, strict=True)]

    def _inside(self, own):
        """Which treatments, given by their columns, are covariates."""
        return (own >= 0) & self.plan.covariates[own]

    def _write_alone(self, out, at, columns):
        """Predictions for covariates as treatments, each alone in its block."""
        left, last = self._left_out(self.linear, columns), self.linear
        A, scale = self.A, self.A.scale[columns].astype(left.dtype)
        out.m[:, at] = (A.part(self.new, columns) - left) * scale
        out.mean[at] = A.mean[columns]
        for g, outcome in zip(out.g, self.outcomes, strict=True):
            if outcome.inverse is not last:
                left, last = self._left_out(outcome.inverse, columns), outcome.inverse
            g[:, at] -= left * outcome.beta[columns].astype(left.dtype)

    def _left_out(self, inverse, columns):
        """Residuals (n_new, d) of covariates after a regression on all other covariates."""
        values, _, diagonal = inverse.raw(self.place[columns])
        values /= diagonal
        return values

    def _write_block(self, out, i, column, block):
        """Predictions for a covariate as the treatment, with others in its block."""
        own = int(np.flatnonzero(self.use[block] == column)[0])
        left, A = self._left_out_block(self.linear, block), self.A
        rest = A.part(self.new, np.array([column]))[:, 0] - left[:, own]
        out.m[:, i], out.mean[i] = rest * A.scale[column], A.mean[column]
        self._take_out(out, i, block)

    def _write_aside(self, out, at, chosen, blocks):
        """Predictions for treatments that are no covariates; some share a block with covariates."""
        if not len(at):
            return
        train = self.plan.T[np.ix_(self.train, chosen)].astype(np.float64)
        out.mean[at] = mean = weighted_mean(train, self.weight)
        fits, gamma = self.linear.fitted((train - mean).astype(self.A.dtype))
        out.m[:, at] = fits
        for i, block in enumerate(blocks):
            if len(block):
                left = self._left_out_block(self.linear, block)
                out.m[:, at[i]] -= left @ gamma(block)[:, i]
                self._take_out(out, at[i], block)

    def _take_out(self, out, i, block):
        """Take a block of covariates out of the outcomes of treatment i."""
        for g, outcome in zip(out.g, self.outcomes, strict=True):
            left = self._left_out_block(outcome.inverse, block)
            g[:, i] -= left @ outcome.beta[self.use[block]].astype(left.dtype)

    def _left_out_block(self, inverse, block):
        """Residuals (n_new, k) of the covariates of a block after a regression on all others."""
        values, omega, _ = inverse.raw(block)
        return np.linalg.solve(omega(np.arange(len(block))), values.T).T.astype(values.dtype)


def wide_ridge_fits(plan, shrinkage):
    """Ridge nuisances as :func:`~ddml_fs.engine.ridge.ridge_fits`, a few treatments at a time.

    Yields
    ------
    k, c : int
        Numbers of a fold and of an outcome.
    at : int array of shape (F,)
        Numbers of some treatments.
    m, g : arrays of shape (n_hold, F)
    """
    sparse = sparse_of(plan.X)
    for k, fold in enumerate(plan.folds):
        with library_threads():
            fit = WideFit(plan, k, shrinkage, fold.hold, sparse)
        parts = chunks(plan.T.shape[1], 8 * max(len(fold.hold), plan.X.shape[1]))
        every = [np.arange(part.start, part.stop) for part in parts]
        for at, found in zip(every, in_threads(fit.treatments, every), strict=True):
            for c, level in enumerate(found.level):
                yield k, c, at, found.m + found.mean, found.g[c] + level
