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


def left_out(A, weights, penalty, hold):
    """Residuals of the held-out rows of each column on all others, and Ω.

    Parameters
    ----------
    A, hold : arrays of shape (n, D) and (n_hold, D)
        Standardised rows.
    weights : array of shape (n,), or None
        Of the training rows; None is one each.
    penalty : float

    Returns
    -------
    residual : array of shape (n_hold, D)
    factor : tuple
        Cholesky factor of XᵀX/n + λI.
    """
    weighted = A if weights is None else A * weights[:, None]
    gram = weighted.T @ A / len(A)
    gram[np.diag_indices_from(gram)] += penalty
    factor = cho_factor(gram, overwrite_a=True, check_finite=False)
    omega = cho_solve(factor, np.eye(A.shape[1]), overwrite_b=True, check_finite=False)
    return hold @ omega / np.diag(omega), factor


def linear_outcome(rows, Y, residual, factor):
    """E[Y | X without column j] of the held-out rows, (n_hold, D), by ridge regression."""
    beta = cho_solve(factor, rows.train.T @ (Y - Y.mean()) / len(Y), check_finite=False)
    return Y.mean() + (rows.hold @ beta)[:, None] - residual * beta


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


def logistic_outcome(rows, Y, penalty):
    """P(Y = 1 | X without column j) of the held-out rows, (n_hold, D), by ridge-logistic."""
    intercept, beta = logistic_fit(rows.train, Y, penalty)
    p = expit(intercept + rows.train @ beta)
    w = p * (1 - p)
    centre = (w @ rows.train) / w.sum()  # the intercept is not penalised: profile it out
    residual, _ = left_out(rows.train - centre, w, penalty, rows.hold - centre)
    return expit(intercept + (rows.hold @ beta)[:, None] - residual * beta)


def solve_ridge(problems, X, shrinkage):
    """Held-out predictions of all problems.

    Parameters
    ----------
    problems : list of Problem
    X : array of shape (N, D)
    shrinkage : float
        See :func:`penalty_for`.

    Returns
    -------
    predictions : list of pairs of arrays of shape (n_hold,)
        m and g of each problem.
    """
    X = np.asarray(X, dtype=np.float64)
    out: list = [None] * len(problems)
    groups: dict = {}
    for i, problem in enumerate(problems):
        own = problem.treatment
        key = id(own) if isinstance(own, np.ndarray) else None
        groups.setdefault((id(problem.fold), key), []).append(i)
    for members in groups.values():
        first = problems[members[0]]
        table = X
        if isinstance(first.treatment, np.ndarray):
            table = np.column_stack([X, first.treatment])
        solved = _solve_fold(table, [problems[i] for i in members], shrinkage)
        for i, pair in zip(members, solved, strict=True):
            out[i] = pair
    return out


def _solve_fold(table, problems, shrinkage):
    """Solve problems that share a fold and a table of columns."""
    fold = problems[0].fold
    rows = standardised(table, fold)
    penalty = penalty_for(shrinkage, table.shape[1], len(fold.train))
    residual, factor = left_out(rows.train, None, penalty, rows.hold)
    outcomes: dict = {}
    for problem in problems:
        j = table.shape[1] - 1 if isinstance(problem.treatment, np.ndarray) else problem.treatment
        key = id(problem.outcome)
        if key not in outcomes:
            Y = problem.outcome[fold.train]
            if problem.binary_Y:
                outcomes[key] = logistic_outcome(rows, Y, penalty)
            else:
                outcomes[key] = linear_outcome(rows, Y, residual, factor)
        m = table[fold.hold, j] - residual[:, j] * rows.sd[j]
        yield m, outcomes[key][:, j]
