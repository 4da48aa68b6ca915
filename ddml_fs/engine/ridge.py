"""Ridge nuisances in closed form: every column of X as a treatment, from one inverse per fold.

Let Ω = (XᵀX/n + λI)⁻¹, and β the ridge coefficients of Y on all columns. The regression of column j
on all others has the residual XΩ_j / Ω_jj. The regression of Y on all columns but j is the one on
all columns minus β_j times this residual. Both are exact. A ridge-logistic outcome is treated in
the same way, with the weights p(1 − p) of its last Newton step in Ω. Leaving out a column is then
one Newton step, an approximation.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import expit, logit

from ddml_fs.engine.devices import in_threads
from ddml_fs.engine.product_rows import ProductRows
from ddml_fs.weights import weighted_mean

NEWTON_STEPS, TOLERANCE = 25, 1e-8
FLAT = 1e-12  # a column with a smaller standard deviation is constant


class Rows(NamedTuple):
    """Standardised rows to fit on (n, D) and to predict (n_new, D), and the scale (D,)."""

    train: np.ndarray
    new: np.ndarray
    sd: np.ndarray


def standardised(X, train, new, weight=None):
    """Rows of X (N, D), standardised by the training rows; columns constant there become 0.

    ``weight`` (N,) are the weights of the rows, by default 1.
    """
    own = 1.0 if weight is None else weight[train]
    mean = weighted_mean(X[train], own)
    sd = np.sqrt(weighted_mean((X[train] - mean) ** 2, own))
    inverse = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > FLAT)
    return Rows((X[train] - mean) * inverse, (X[new] - mean) * inverse, sd)


class Gram:
    """G = XᵀWX/n + λI of standardised rows A, factored.

    With more columns than rows, the n × n matrix SSᵀ/n + λI with S = √W·A is factored instead, and
    G⁻¹ = (I − Sᵀ(SSᵀ/n + λI)⁻¹S/n)/λ. So no matrix is larger than A.

    Parameters
    ----------
    A : array or ProductRows of shape (n, D)
    penalty : float
        λ.
    weights : array of shape (n,), optional
        Weights of the rows; by default 1.
    """

    def __init__(self, A, penalty, weights=None):
        (self.n, D), self.A, self.penalty = A.shape, A, penalty
        self.by_rows = isinstance(A, np.ndarray) and self.n < D
        if isinstance(A, ProductRows):
            small = A.gram(weights)
        else:
            self.S = A if weights is None else A * np.sqrt(weights)[:, None]
            small = (self.S @ self.S.T if self.by_rows else self.S.T @ self.S) / self.n
        small[np.diag_indices_from(small)] += penalty
        self.factor = cho_factor(small, lower=True, overwrite_a=True, check_finite=False)

    def coefficients(self, targets):
        """G⁻¹Aᵀt/n: ridge coefficients of centred (and weighted) targets (n, …), (D, …)."""
        if isinstance(self.A, ProductRows):
            return self._solve(self.A.cross(targets) / self.n)
        return self._solve(self.A.T @ targets / self.n)

    def left_out(self, A, block):
        """Residuals of each column of rows A (n_new, D) after a regression on all other blocks.

        ``block`` (D,) is the number of each column's block.
        """
        labels, members = np.unique(block, return_inverse=True)
        if len(labels) < len(block):
            out = np.empty_like(A)
            for b in range(len(labels)):
                own = np.flatnonzero(members == b)
                omega = self._solve(np.eye(len(block))[:, own])
                out[:, own] = A @ np.linalg.solve(omega[own].T, omega.T).T
            return out
        if not self.by_rows:
            eye = np.eye(A.shape[1])
            omega = cho_solve(self.factor, eye, overwrite_b=True, check_finite=False)
            return A @ omega / np.diag(omega)
        half = solve_triangular(self.factor[0], self.S, lower=True, check_finite=False)
        diagonal = (1 - (half**2).sum(0) / self.n) / self.penalty
        return self._solve(A.T).T / diagonal

    def _solve(self, rhs):
        """G⁻¹ of a right-hand side (D, …)."""
        if not self.by_rows:
            return cho_solve(self.factor, rhs, check_finite=False)
        inner = cho_solve(self.factor, self.S @ rhs, check_finite=False)
        return (rhs - self.S.T @ inner / self.n) / self.penalty


def logistic_fit(A, Y, penalty, weight=1.0):
    """Intercept and coefficients of ridge-logistic regression, by Newton's method.

    ``weight`` are the weights of the rows (n,), with mean 1.
    """
    n, D = A.shape
    beta = np.zeros(D)
    intercept = logit(np.clip(weighted_mean(Y, weight), 0.5 / n, 1 - 0.5 / n))
    if np.ptp(Y) == 0:
        return intercept, beta  # with one class there is nothing to learn
    for _ in range(NEWTON_STEPS):
        index = intercept + A @ beta
        p = expit(index)
        w = weight * np.maximum(p * (1 - p), 1e-10)
        # A Newton step is a weighted ridge regression of the index plus (Y − p)/w. Its intercept
        # is not penalised, so columns and response are centred by their weighted means.
        response = w * index + weight * (Y - p)
        centre, level = (w @ A) / w.sum(), response.sum() / w.sum()
        new = Gram(A - centre, penalty, w).coefficients(response - w * level)
        step = np.abs(new - beta).max(initial=0.0)
        beta, intercept = new, level - centre @ new
        if step < TOLERANCE:
            break
    return intercept, beta


class Fit:
    """Nuisances for every column as the treatment, fitted on one set of rows.

    Parameters
    ----------
    rows : Rows
    covariates : bool array of shape (D,)
        The columns that are covariates; a treatment is never its own covariate.
    penalty : float
    block : int array of shape (D,)
        Block of each column.
    weight : array of shape (n,), optional
        Weights of the rows to fit on, by which the rows are standardised. By default 1.
    """

    def __init__(self, rows, covariates, penalty, block, weight=None):
        self.covariates, self.penalty, self.block = covariates, penalty, block
        self.A, self.B = rows.train[:, covariates], rows.new[:, covariates]
        aside = np.flatnonzero(~covariates)
        self.weight, targets = 1.0, rows.train[:, aside]
        if weight is not None:
            self.weight = weight = weight / weight.mean()
            targets = weight[:, None] * targets
        self.gram, own = Gram(self.A, penalty, weight), block[covariates]
        self.residual = np.empty_like(rows.new)
        self.residual[:, covariates] = left = self.gram.left_out(self.B, own)
        # Columns that are not covariates have the residuals of a plain regression.
        gamma = self.gram.coefficients(targets)
        self.residual[:, aside] = rows.new[:, aside] - self.B @ gamma
        for i in np.flatnonzero(np.isin(block[aside], own)):
            same = own == block[aside[i]]  # covariates of its own block are excluded
            self.residual[:, aside[i]] += left[:, same] @ gamma[same, i]

    def linear_outcome(self, Y):
        """E[Y | covariates without column j] of the new rows, (n_new, D)."""
        mean = weighted_mean(Y, self.weight)
        return mean + self.linear_part(self.weight * (Y - mean))

    def linear_part(self, centred):
        """The same for an outcome that is centred, and multiplied by the weights."""
        beta = self.gram.coefficients(centred).ravel()
        return self._without(beta, self.residual[:, self.covariates])

    def logistic_outcome(self, Y):
        """Log-odds of Y = 1 given the covariates without column j of the new rows, (n_new, D)."""
        intercept, beta = logistic_fit(self.A, Y, self.penalty, self.weight)
        p = expit(intercept + self.A @ beta)
        w = self.weight * p * (1 - p)
        centre = (w @ self.A) / w.sum()  # the intercept is not penalised
        gram = Gram(self.A - centre, self.penalty, w)
        return intercept + self._without(
            beta, gram.left_out(self.B - centre, self.block[self.covariates])
        )

    def _without(self, beta, residual):
        """The index of the new rows without the part of each covariate in turn."""
        index = np.repeat((self.B @ beta)[:, None], len(self.covariates), 1)
        part, own = residual * beta, self.block[self.covariates]
        if len(np.unique(self.block)) < len(self.block):  # leave out whole blocks
            index -= part @ (own[:, None] == self.block).astype(part.dtype)
        else:
            index[:, self.covariates] -= part
        return index


def ridge_fits(plan, shrinkage):
    """Ridge nuisances of the held-out rows of all problems, those of a fold from one inverse.

    Parameters
    ----------
    plan : Plan
    shrinkage : float
        See :meth:`~ddml_fs.engine.plan.Plan.penalty`.

    Yields
    ------
    k, c : int
        Numbers of a fold and of an outcome.
    at : int array of shape (F,)
        Numbers of the treatments: all.
    m, g : arrays of shape (n_hold, F)
        Predicted treatments, and outcome predicted without each of them: for a label, its log-odds.
    """
    beside = np.flatnonzero(plan.own < 0)
    table = np.column_stack([plan.X, plan.T[:, beside]]).astype(np.float64, copy=False)
    use = np.r_[plan.covariates, np.zeros(len(beside), bool)]
    block = np.r_[plan.block, np.arange(len(beside)) + plan.block.max(initial=0) + 1]
    place, every = plan.own.copy(), np.arange(len(plan.own))  # of the treatments in the table
    place[beside] = plan.X.shape[1] + np.arange(len(beside))

    def fitted(k):
        """Predictions of fold k: of the treatments, and a list of those of the outcomes."""
        fold = plan.folds[k]
        rows = standardised(table, fold.train, fold.hold, plan.weight)
        fit = Fit(rows, use, plan.penalty(shrinkage, k), block, plan.weight[fold.train])
        sd = rows.sd[place]
        # A column that is constant in training is predicted by its mean.
        m = np.where(
            sd > FLAT,
            table[np.ix_(fold.hold, place)] - fit.residual[:, place] * sd,
            table[fold.train[0], place],
        )
        predict = [fit.logistic_outcome if b else fit.linear_outcome for b in plan.binary_Y]
        return m, [p(y)[:, place] for p, y in zip(predict, plan.Y[fold.train].T, strict=True)]

    numbers = range(len(plan.folds))
    found = in_threads(fitted, numbers, held=table.nbytes)
    for k, (m, outcomes) in zip(numbers, found, strict=True):
        for c, g in enumerate(outcomes):
            yield k, c, every, m, g
