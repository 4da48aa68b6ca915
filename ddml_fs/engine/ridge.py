"""Ridge nuisances in closed form: every column of X as a treatment, from one inverse a fold.

With Ω = (XᵀX/n + λI)⁻¹ and β the ridge coefficients of Y on all columns, the regression of column j
on all others leaves the residual XΩ_j / Ω_jj, and the regression of Y on all columns but j is that
on all columns less β_j times this residual. Both are exact. A ridge-logistic outcome is treated
alike, with the weights p(1 − p) of its last Newton step in Ω: there leaving out a column is one
Newton step, an approximation.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import expit, logit

NEWTON_STEPS, TOLERANCE = 25, 1e-8
FLAT = 1e-12  # a standard deviation below this is none


class Rows(NamedTuple):
    """Standardised rows to fit on (n, D) and to predict (n_new, D), and the scale (D,)."""

    train: np.ndarray
    new: np.ndarray
    sd: np.ndarray


def penalty_for(shrinkage, D, n):
    """λ = shrinkage · D/n: the best ridge penalty where signal / noise is 1 / shrinkage.

    Examples
    --------
    >>> penalty_for(20.0, 400, 1600)
    5.0
    """
    return max(shrinkage * D / n, 1e-6)


def standardised(X, train, new):
    """Rows of X (N, D), scaled by those to fit on; columns that do not vary there become 0."""
    mean, sd = X[train].mean(0), X[train].std(0)
    inverse = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > FLAT)
    return Rows((X[train] - mean) * inverse, (X[new] - mean) * inverse, sd)


class Gram:
    """G = XᵀWX/n + λI of standardised rows A, factored; with more columns than rows, in the rows.

    There G⁻¹ = (I − Sᵀ(SSᵀ/n + λI)⁻¹S/n)/λ with S = √W·A, so that nothing is larger than A.

    Parameters
    ----------
    A : array of shape (n, D)
    penalty : float
        λ.
    weights : array of shape (n,), optional
        Of the rows; one each unless given.
    """

    def __init__(self, A, penalty, weights=None):
        (self.n, D), self.A, self.penalty = A.shape, A, penalty
        self.S = A if weights is None else A * np.sqrt(weights)[:, None]
        self.by_rows = self.n < D
        small = (self.S @ self.S.T if self.by_rows else self.S.T @ self.S) / self.n
        small[np.diag_indices_from(small)] += penalty
        self.factor = cho_factor(small, lower=True, overwrite_a=True, check_finite=False)

    def coefficients(self, targets):
        """G⁻¹Aᵀt/n: ridge coefficients of centred (and weighted) targets (n, …), (D, …)."""
        return self._solve(self.A.T @ targets / self.n)

    def left_out(self, A):
        """What each column of rows A (n_new, D) leaves after a regression on all others."""
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


def logistic_fit(A, Y, penalty):
    """Intercept and coefficients of ridge-logistic regression, by Newton's method."""
    n, D = A.shape
    beta = np.zeros(D)
    intercept = logit(np.clip(Y.mean(), 0.5 / n, 1 - 0.5 / n))
    if np.ptp(Y) == 0:
        return intercept, beta  # rows of one class alone: there is nothing to learn
    for _ in range(NEWTON_STEPS):
        index = intercept + A @ beta
        p = expit(index)
        w = np.maximum(p * (1 - p), 1e-10)
        # A Newton step is a weighted ridge regression of the index plus (Y − p)/w; its intercept
        # is not penalised, so columns and response are centred by the weights.
        response = w * index + Y - p
        centre, level = (w @ A) / w.sum(), response.sum() / w.sum()
        new = Gram(A - centre, penalty, w).coefficients(response - w * level)
        step = np.abs(new - beta).max()
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
        The columns that are conditioned on; a treatment never is on itself.
    penalty : float
    """

    def __init__(self, rows, covariates, penalty):
        self.covariates, self.penalty = covariates, penalty
        self.A, self.B = rows.train[:, covariates], rows.new[:, covariates]
        self.gram = Gram(self.A, penalty)
        # Columns that are no covariates leave what a plain regression leaves.
        self.residual = rows.new - self.B @ self.gram.coefficients(rows.train)
        self.residual[:, covariates] = self.gram.left_out(self.B)

    def linear_outcome(self, Y):
        """E[Y | covariates without column j] of the new rows, (n_new, D)."""
        beta = self.gram.coefficients(Y - Y.mean())
        return Y.mean() + self._without(beta, self.residual[:, self.covariates])

    def logistic_outcome(self, Y):
        """Log-odds of Y = 1 given the covariates without column j of the new rows, (n_new, D)."""
        intercept, beta = logistic_fit(self.A, Y, self.penalty)
        p = expit(intercept + self.A @ beta)
        w = p * (1 - p)
        centre = (w @ self.A) / w.sum()  # the intercept is not penalised: profile it out
        gram = Gram(self.A - centre, self.penalty, w)
        return intercept + self._without(beta, gram.left_out(self.B - centre))

    def _without(self, beta, residual):
        """The index of the new rows, less the part of each covariate in turn."""
        index = np.repeat((self.B @ beta)[:, None], len(self.covariates), 1)
        index[:, self.covariates] -= residual * beta
        return index


def ridge_fits(problems, X, shrinkage, covariates, train, new):
    """Ridge nuisances of all problems, those of a fold from one inverse.

    Parameters
    ----------
    problems : list of Problem
    X : array of shape (N, D)
    shrinkage : float
        See :func:`penalty_for`.
    covariates : bool array of shape (D,), or None
        The columns that may be covariates; all unless given.
    train, new : callables
        From a fold to the rows to fit on, and to those to predict.

    Yields
    ------
    i : int
        Number of a problem.
    m, g : arrays of shape (n_new,)
        Predicted treatment, and predicted outcome: its log-odds for a label.
    """
    X = np.asarray(X, dtype=np.float64)
    covariates = np.ones(X.shape[1], bool) if covariates is None else np.asarray(covariates)
    groups: dict = {}
    for i, problem in enumerate(problems):
        own = problem.treatment
        key = id(own) if isinstance(own, np.ndarray) else None
        groups.setdefault((id(problem.fold), key), []).append(i)
    for members in groups.values():
        own, fold = problems[members[0]].treatment, problems[members[0]].fold
        table, use = X, covariates
        if isinstance(own, np.ndarray):
            table, use = np.column_stack([X, own]), np.r_[covariates, False]
        rows = standardised(table, train(fold), new(fold))
        fit = Fit(rows, use, penalty_for(shrinkage, use.sum(), len(rows.train)))
        outcomes: dict = {}
        for i in members:
            q = problems[i]
            j = table.shape[1] - 1 if isinstance(q.treatment, np.ndarray) else q.treatment
            if id(q.outcome) not in outcomes:
                predict = fit.logistic_outcome if q.binary_Y else fit.linear_outcome
                outcomes[id(q.outcome)] = predict(q.outcome[train(fold)])
            # A column that does not vary in training says nothing of itself: its mean is all.
            varies = rows.sd[j] > FLAT
            own = table[new(fold), j] - fit.residual[:, j] * rows.sd[j]
            m = own if varies else np.full_like(own, table[train(fold)[0], j])
            yield i, m, outcomes[id(q.outcome)][:, j]


def solve_ridge(problems, X, shrinkage, covariates=None):
    """Held-out predictions m and g of all problems, a list of pairs of arrays (n_hold,)."""
    out: list = [None] * len(problems)
    fits = ridge_fits(
        problems, X, shrinkage, covariates, lambda fold: fold.train, lambda fold: fold.hold
    )
    for i, m, g in fits:
        out[i] = (m, expit(g) if problems[i].binary_Y else g)
    return out


def ridge_base(problems, X, shrinkage, covariates=None):
    """What a shrunken network starts from: ridge nuisances, fitted on the training rows.

    Validation rows are among these: they choose between epochs, which all start from one base.

    Returns
    -------
    base : array of shape (P, N, 2)
        For T and Y: log-odds of binary targets, values of others.
    """
    everything = np.arange(len(X))
    base = np.empty((len(problems), len(X), 2))
    fits = ridge_fits(
        problems, X, shrinkage, covariates, lambda fold: fold.train, lambda fold: everything
    )
    for i, m, g in fits:
        q = problems[i]
        if q.binary_T:
            own = q.treatment if isinstance(q.treatment, np.ndarray) else X[:, q.treatment]
            # A linear model of a probability leaves [0, 1]; keep it within a fifth of the mean.
            share = np.clip(own[q.fold.train].mean(), 1e-3, 1 - 1e-3)
            m = logit(np.clip(m, share / 5, 1 - (1 - share) / 5))
        base[i, :, 0], base[i, :, 1] = m, g
    return base
