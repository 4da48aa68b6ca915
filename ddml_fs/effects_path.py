"""Ridge-logistic regressions with an intercept per domain, for a path of penalties."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from ddml_fs.domains import across_domains
from ddml_fs.weights import varies, weighted_mean

START = 0.1  # λ of the fit at which the effects in the domains are compared
FREE = 1e-5  # penalty of the intercepts, which keeps them finite in domains with one class
SOLVER: dict = {"jac": True, "method": "L-BFGS-B", "tol": 1e-7}


def effects_path(A, y, domain, penalties, weight=None):
    """Weights (D,) of columns A (N, D) for each λ, and the columns' invariance (D,)."""
    invariance = invariance_of(A, y, domain, weight) if np.ptp(domain) else np.ones(A.shape[1])
    for coef, _ in ridge_path(A * invariance, y, domain, penalties, weight):
        yield coef * invariance, invariance


def invariance_of(A, y, domain, weight=None):
    """Invariance of the columns (D,), from effects by domain: one Newton step from a pooled fit.

    With weights (N,) that differ, the variance of the scores is robust.
    """
    weight = np.ones(len(A)) if weight is None else weight
    U, I, robust = [], [], []
    coef, levels = next(ridge_path(A, y, domain, [START], weight))
    for level, own in zip(levels, np.unique(domain)[:, None] == domain, strict=True):
        p = expit(level + (A[own] - weighted_mean(A[own], weight[own])) @ coef)
        w = weight[own] * p * (1 - p)
        v = A[own] - w @ A[own] / w.sum()
        rest = weight[own] * (y[own] - p)
        U.append(v.T @ rest)
        I.append(w @ v**2)
        robust.append(rest**2 @ v**2)
    design = np.sum(robust, 0) / np.sum(I, 0) if varies(weight) else 1.0
    return across_domains(np.array(U) / design, np.array(I) / design).invariance


def ridge_path(A, y, domain, penalties, weight=None):
    """Ridge-logistic coefficients (D,), and log-odds of each domain's mean row, for every penalty.

    The problem is solved along the principal axes, scaled to equal curvature, where a few steps of
    L-BFGS suffice. ``weight`` are the weights of the rows (N,), by default 1.
    """
    number = np.unique(domain, return_inverse=True)[1]
    weight = np.ones(len(A)) if weight is None else weight / weight.mean()
    size, n = np.bincount(number, weight), len(A)
    own = [number == d for d in range(len(size))]
    A = A - np.stack([weighted_mean(A[rows], weight[rows]) for rows in own])[number]
    Z = A @ (axes := principal_axes(A))
    mean = np.clip(np.bincount(number, weight * y) / size, 0.5 / n, 1 - 0.5 / n)
    theta = np.r_[logit(mean), np.zeros(Z.shape[1])]
    spread = max(y.var(), 0.02) * np.r_[size / n, (Z**2).mean(0)]
    for penalty in penalties:
        ridge = np.r_[np.full(len(size), FREE), np.full(Z.shape[1], penalty)]
        unit = 1 / np.sqrt(spread + ridge)
        given = (Z, 2 * y - 1, number, ridge, unit, weight)
        theta = unit * minimize(ridge_loss, theta / unit, given, **SOLVER).x
        yield axes @ theta[len(size) :], theta[: len(size)]


def ridge_loss(u, Z, side, number, ridge, unit, weight):
    """Penalised mean log-loss of labels −1 and 1, and its gradient, at theta = u · unit."""
    theta, k = u * unit, len(u) - Z.shape[1]
    margin = side * (theta[:k][number] + Z @ theta[k:])
    g = -side * weight * expit(-margin) / len(Z)
    gradient = np.concatenate([np.bincount(number, g, k), Z.T @ g]) + ridge * theta
    return weight @ np.logaddexp(0, -margin) / len(Z) + ridge @ theta**2 / 2, gradient * unit


def principal_axes(A):
    """Principal axes of centred rows A (n, D), as columns (D, r)."""
    n, D = A.shape
    values, vectors = np.linalg.eigh((A @ A.T if n < D else A.T @ A) / n)
    kept = values > 1e-10 * values.max(initial=0.0)
    values, vectors = values[kept], vectors[:, kept]
    return A.T @ vectors / np.sqrt(n * values) if n < D else vectors
