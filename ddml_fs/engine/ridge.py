"""Ridge nuisances in closed form: every column of X as a treatment, from one inverse a fold.

With Ω = (XᵀX/n + λI)⁻¹ and β the ridge coefficients of Y on all columns, the regression of column j
on all others leaves the residual XΩ_j / Ω_jj, and the regression of Y on all columns but j is that
on all columns less β_j times this residual. Both are exact. A ridge-logistic outcome is treated
alike, with the weights p(1 − p) of its last Newton step in Ω: there leaving out a column is one
Newton step, an approximation.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

NEWTON_STEPS, TOLERANCE = 25, 1e-8


class Rows(NamedTuple):
    """Standardised rows of one fold: ``train`` (n, D), ``hold`` (n_hold, D), and the scale (D,)."""

    train: np.ndarray
    hold: np.ndarray
    sd: np.ndarray


def penalty_for(shrinkage, D, n):
    """λ = shrinkage · D/n: the best ridge penalty where signal / noise is 1 / shrinkage.

    Examples
    --------
    >>> penalty_for(10.0, 400, 1600)
    2.5
    """
    return max(shrinkage * D / n, 1e-6)


def standardised(X, fold):
    """The fold's rows, scaled by its training rows; columns that do not vary there become 0."""
    train, hold = X[fold.train], X[fold.hold]
    mean, sd = train.mean(0), train.std(0)
    inverse = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > 1e-12)
    return Rows((train - mean) * inverse, (hold - mean) * inverse, sd)


class Gram:
    """The weighted cross-products of standardised rows A, XᵀWX/n + λI, factored.

    Parameters
    ----------
    A : array of shape (n, D)
    penalty : float
        λ.
    weights : array of shape (n,), optional
        Of the rows; one each unless given.
    """

    def __init__(self, A, penalty, weights=None):
        self.n, self.weighted = len(A), A if weights is None else A * weights[:, None]
        gram = self.weighted.T @ A / self.n
        gram[np.diag_indices_from(gram)] += penalty
        self.factor = cho_factor(gram, overwrite_a=True, check_finite=False)

    def coefficients(self, targets):
        """Ridge coefficients of centred targets (n, …), (D, …)."""
        return cho_solve(self.factor, self.weighted.T @ targets / self.n, check_finite=False)

    def left_out(self, A):
        """What each column of rows A (n, D) leaves after a regression on all others, (n, D)."""
        eye = np.eye(A.shape[1])
        omega = cho_solve(self.factor, eye, overwrite_b=True, check_finite=False)
        return A @ omega / np.diag(omega)


def logistic_fit(A, Y, penalty):
    """Intercept and coefficients of ridge-logistic regression, by Newton's method."""
    n, D = A.shape
    design = np.hstack([np.ones((n, 1)), A])
    ridge = np.r_[1e-8, np.full(D, penalty)]
    beta = np.zeros(D + 1)
    beta[0] = np.log(Y.mean() / (1 - Y.mean()))
    for _ in range(NEWTON_STEPS):
        p = expit(design @ beta)
        gradient = design.T @ (Y - p) / n - ridge * beta
        hessian = (design * (p * (1 - p))[:, None]).T @ design / n
        hessian[np.diag_indices_from(hessian)] += ridge
        step = cho_solve(cho_factor(hessian, overwrite_a=True, check_finite=False), gradient)
        beta += step
        if np.abs(step).max() < TOLERANCE:
            break
    return beta[0], beta[1:]


class Fit:
    """Nuisances of one fold, for every column as the treatment.

    Parameters
    ----------
    rows : Rows
    covariates : bool array of shape (D,)
        The columns that are conditioned on; a treatment never is on itself.
    penalty : float
    """

    def __init__(self, rows, covariates, penalty):
        self.covariates, self.penalty = covariates, penalty
        self.A, self.B = rows.train[:, covariates], rows.hold[:, covariates]
        self.gram = Gram(self.A, penalty)
        # Columns that are no covariates leave what a plain regression leaves.
        self.residual = rows.hold - self.B @ self.gram.coefficients(rows.train)
        self.residual[:, covariates] = self.gram.left_out(self.B)

    def linear_outcome(self, Y):
        """E[Y | covariates without column j] of the held-out rows, (n_hold, D)."""
        beta = self.gram.coefficients(Y - Y.mean())
        return Y.mean() + self._without(beta, self.residual[:, self.covariates])

    def logistic_outcome(self, Y):
        """P(Y = 1 | covariates without column j) of the held-out rows, (n_hold, D)."""
        intercept, beta = logistic_fit(self.A, Y, self.penalty)
        p = expit(intercept + self.A @ beta)
        w = p * (1 - p)
        centre = (w @ self.A) / w.sum()  # the intercept is not penalised: profile it out
        gram = Gram(self.A - centre, self.penalty, w)
        return expit(intercept + self._without(beta, gram.left_out(self.B - centre)))

    def _without(self, beta, residual):
        """The index of the held-out rows, less the part of each covariate in turn."""
        index = np.repeat((self.B @ beta)[:, None], len(self.covariates), 1)
        index[:, self.covariates] -= residual * beta
        return index


def solve_ridge(problems, X, shrinkage, covariates=None):
    """Held-out predictions of all problems.

    Parameters
    ----------
    problems : list of Problem
    X : array of shape (N, D)
    shrinkage : float
        See :func:`penalty_for`.
    covariates : bool array of shape (D,), optional
        The columns that may be covariates; all unless given.

    Returns
    -------
    predictions : list of pairs of arrays of shape (n_hold,)
        m and g of each problem.
    """
    X = np.asarray(X, dtype=np.float64)
    covariates = np.ones(X.shape[1], bool) if covariates is None else np.asarray(covariates)
    out: list = [None] * len(problems)
    groups: dict = {}
    for i, problem in enumerate(problems):
        own = problem.treatment
        key = id(own) if isinstance(own, np.ndarray) else None
        groups.setdefault((id(problem.fold), key), []).append(i)
    for members in groups.values():
        own = problems[members[0]].treatment
        table, use = X, covariates
        if isinstance(own, np.ndarray):
            table, use = np.column_stack([X, own]), np.r_[covariates, False]
        solved = _solve_fold(table, use, [problems[i] for i in members], shrinkage)
        for i, pair in zip(members, solved, strict=True):
            out[i] = pair
    return out


def _solve_fold(table, covariates, problems, shrinkage):
    """Solve problems that share a fold and a table of columns."""
    fold = problems[0].fold
    rows = standardised(table, fold)
    fit = Fit(rows, covariates, penalty_for(shrinkage, covariates.sum(), len(fold.train)))
    outcomes: dict = {}
    for problem in problems:
        j = table.shape[1] - 1 if isinstance(problem.treatment, np.ndarray) else problem.treatment
        key = id(problem.outcome)
        if key not in outcomes:
            predict = fit.logistic_outcome if problem.binary_Y else fit.linear_outcome
            outcomes[key] = predict(problem.outcome[fold.train])
        m = table[fold.hold, j] - fit.residual[:, j] * rows.sd[j]
        yield m, outcomes[key][:, j]
