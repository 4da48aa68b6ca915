"""One additive model of all columns and of the domains' intercepts, fitted on all rows.

Let A be the columns and the indicators of the domains, β their ridge coefficients, W the weights of
the outcome and Ω = (AᵀWA)⁻¹. The residuals of block B in a weighted regression on all other columns
are V_B = AΩ_B(Ω_BB)⁻¹. The linear predictor without the block is Aβ − V_Bβ_B.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from ddml_fs.engine.devices import in_threads
from ddml_fs.engine.ridge import FLAT
from ddml_fs.weights import weighted_mean

NEWTON_STEPS, TOLERANCE = 25, 1e-6
JITTER = 1e-6  # keeps the inverse finite if columns repeat others
LEAST_WEIGHT = 1e-6
FEW_STEPS = 6  # of Newton's method, if only held-out losses are compared


def design(plan):
    """Columns as (N, P), scaled by their standard deviations, then the domains' indicators.

    Returns
    -------
    A : array of shape (N, P + domains)
    n_columns : int
        P, the number of covariates and of treatments that are not columns of X.
    place : int array of shape (F,)
        The column of every treatment.
    scale : array of shape (P,)
    """
    beside = np.flatnonzero(plan.own < 0)
    table = np.column_stack([plan.X, plan.T[:, beside]]).astype(np.float64)
    table -= weighted_mean(table, plan.weight)
    scale = np.sqrt(weighted_mean(table**2, plan.weight))
    table /= np.where(scale > FLAT, scale, 1.0)
    intercepts = (plan.domain[:, None] == np.unique(plan.domain)).astype(np.float64)
    place = plan.own.copy()
    place[beside] = plan.X.shape[1] + np.arange(len(beside))
    return np.hstack([table, intercepts]), table.shape[1], place, scale


def ridge_index(A, y, penalty, label, steps=NEWTON_STEPS, start=None, weight=None):
    """Coefficients of a (logistic) ridge regression of y on A.

    Parameters
    ----------
    A : array of shape (n, Q)
    y : array of shape (n,)
    penalty : array of shape (Q,)
        In units of rows; 0 for intercepts.
    label : bool
    steps : int
        Largest number of Newton steps.
    start : array of shape (Q,), optional
    weight : array of shape (n,), optional
    """
    weight = np.ones(len(A)) if weight is None else weight
    ridge = (penalty + JITTER) * weight.sum()
    if not label:
        weighted = A * weight[:, None]
        gram = weighted.T @ A
        gram[np.diag_indices_from(gram)] += ridge
        return np.linalg.solve(gram, weighted.T @ y)
    beta = np.zeros(A.shape[1]) if start is None else start
    for _ in range(steps):
        p = expit(A @ beta)
        w = weight * np.maximum(p * (1 - p), LEAST_WEIGHT)
        S = A * np.sqrt(w)[:, None]
        H = S.T @ S  # of one factor, as a symmetric product takes half the time
        H[np.diag_indices_from(H)] += ridge
        factor = cho_factor(H, overwrite_a=True, check_finite=False)
        step = cho_solve(factor, A.T @ (weight * (y - p)) - ridge * beta)
        # A full step from a distant start can overshoot; no linear predictor moves by more than 4.
        step *= min(1.0, 4.0 / max(np.abs(A @ step).max(), 1e-12))
        beta = beta + step
        if np.abs(step).max() < TOLERANCE:
            break
    return beta


def held_out_losses(plan, y, label, strengths):
    """Held-out loss of the additive model by strength of its penalty, (strengths,)."""
    A, P, _, _ = design(plan)
    used = np.r_[np.flatnonzero(plan.covariates), np.arange(P, A.shape[1])]
    A, P = A[:, used], plan.covariates.sum()
    free = np.arange(A.shape[1]) < P

    def losses_of(fold):
        """The losses of the held-out rows of a fold."""
        losses, beta = np.zeros(len(strengths)), None
        for i in np.argsort(strengths)[::-1]:  # from strong to weak, each starts at the last one
            rows, penalty = (A[fold.train], y[fold.train]), strengths[i] * free
            own = plan.weight[fold.train]
            beta = ridge_index(*rows, penalty, label, FEW_STEPS, beta, own)
            index = A[fold.hold] @ beta
            seen = y[fold.hold]
            each = np.logaddexp(0, index) - seen * index if label else (seen - index) ** 2
            losses[i] = plan.weight[fold.hold] @ each
        return losses

    return sum(in_threads(losses_of, plan.folds[: plan.n_folds], held=A.nbytes))


class AdditiveFit:
    """The additive model on all rows of a plan.

    Parameters
    ----------
    plan : Plan
    y : array of shape (N,)
    label : bool
    strength : float
        Penalty on the outcome's coefficients.

    Attributes
    ----------
    dof : float
        Degrees of freedom of the regressions.
    """

    def __init__(self, plan, y, label, strength):
        A, P, place, scale = design(plan)
        block = np.r_[plan.block, np.full(P - len(plan.block), -1)]
        use = np.r_[plan.covariates, np.zeros(P - len(plan.covariates), bool)]
        self.table, self.place, self.scale = A[:, :P], place, scale
        # Covariates in the model, beside the intercepts; the other columns are regressed on them.
        self.inside = np.flatnonzero(use)
        at = np.r_[self.inside, np.arange(P, A.shape[1])]
        self.A, self.block, self.blocks_inside = A[:, at], block, block[self.inside]
        n_in = len(self.inside)
        penalty = strength * (np.arange(len(at)) < n_in)
        self.beta = ridge_index(self.A, y, penalty, label, weight=plan.weight)
        self.index = self.A @ self.beta
        p = expit(self.index)
        self.w = plan.weight * (np.maximum(p * (1 - p), LEAST_WEIGHT) if label else 1.0)
        self.weighted = self.A * self.w[:, None]
        H = self.weighted.T @ self.A
        H[np.diag_indices_from(H)] += JITTER * np.trace(H) / len(H)
        self.omega = np.linalg.inv(H)
        self.dof = float(len(at))
        self.cache: tuple = (None, None)

    def left_out(self, f):
        """Residual of treatment f given all other blocks, and the index without its block.

        Returns
        -------
        v, index : arrays of shape (N,)
        """
        column = self.place[f]
        own = np.flatnonzero(self.blocks_inside == self.block[column])
        if self.block[column] < 0:
            own = own[:0]
        if self.cache[0] != self.block[column] or not len(own):
            self.cache = (self.block[column], self.residuals(own))
        V, index = self.cache[1]
        inside = np.flatnonzero(self.inside[own] == column)
        if len(inside):
            v = V[:, inside[0]]
        else:
            x = self.table[:, column]
            gamma = self.omega @ (self.weighted.T @ x)
            v = x - self.A @ gamma + V @ gamma[own]
        return v * self.scale[column], index

    def residuals(self, own):
        """Residuals (N, k) of a block of covariates given all others, and the index without it."""
        if not len(own):
            return np.zeros((len(self.A), 0)), self.index
        V = self.A @ np.linalg.solve(self.omega[np.ix_(own, own)], self.omega[own]).T
        return V, self.index - V @ self.beta[own]
