"""Nuisances from few rows: a smooth outcome model per arm and a shrunken propensity.

A network needs thousands of rows to beat ridge regression. These models, in closed form, stand
beside it where outcome models per arm are wanted, and the validation rows say how much each
counts.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, softmax

from ddml_fs.engine.ridge import logistic_fit, penalty_for, standardised
from ddml_fs.engine.stack import vector

N_FEATURES = 128  # of the smooth part
WIDTHS = (0.5, 1.0, 3.0)  # of its kernel, in units of √D
N_STEPS = 15  # towards the largest evidence
SHRINKAGE = 10.0  # of the propensity: one that follows chance makes weights that hurt
LEAST, MOST = 1.0, 3.0  # standard errors by which a network must be better to count, and alone


class Smooth:
    """Bayesian ridge regression on the columns themselves and on random Fourier features.

    y = c + A·a/√D + φ(A)·b + noise: a sum of a linear function and of a draw from a Gaussian
    process. The variances of a, of b and of the noise are those of largest evidence, found by
    MacKay's fixed point; predictions with kernels of several widths are averaged by evidence.

    Parameters
    ----------
    A : array of shape (n, D)
        Standardised rows.
    y : array of shape (n,)
    seed : int
        Of the random features.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((500, 3))
    >>> model = Smooth(A[:400], np.sin(A[:400, 0]) + A[:400, 1], seed=0)
    >>> left = model.predict(A[400:]) - np.sin(A[400:, 0]) - A[400:, 1]
    >>> bool(np.abs(left).mean() < 0.1)
    True
    """

    def __init__(self, A, y, seed):
        rng = np.random.default_rng(seed)
        D = A.shape[1]
        self.mean, self.sd = y.mean(), max(y.std(), 1e-12)
        self.W = rng.standard_normal((D, N_FEATURES)) / np.sqrt(max(D, 1))
        self.phase = rng.uniform(0, 2 * np.pi, N_FEATURES)
        self.centre, self.weights, evidence = [], [], []
        for width in WIDTHS:
            features = self._features(A, width)
            centre = features.mean(0)
            weights, value = by_evidence(features - centre, (y - self.mean) / self.sd, D)
            self.centre.append(centre)
            self.weights.append(weights)
            evidence.append(value)
        self.share = softmax(evidence)

    def _features(self, A, width):
        """The linear and the smooth part, (n, D + N_FEATURES)."""
        wave = np.cos(A @ self.W / width + self.phase) * np.sqrt(2 / N_FEATURES)
        return np.hstack([A / np.sqrt(max(A.shape[1], 1)), wave])

    def predict(self, A):
        """Values of rows (n, D), (n,)."""
        parts = [
            share * ((self._features(A, width) - centre) @ weights)
            for share, width, centre, weights in zip(
                self.share, WIDTHS, self.centre, self.weights, strict=True
            )
        ]
        return self.mean + self.sd * np.sum(parts, 0)


def by_evidence(F, y, n_linear):
    """Ridge coefficients with two penalties of largest evidence, and its logarithm.

    Parameters
    ----------
    F : array of shape (n, p)
        Centred features.
    y : array of shape (n,)
        Centred, of variance 1 or less.
    n_linear : int
        So many features have the first penalty, the others the second.

    Returns
    -------
    w : array of shape (p,)
    evidence : float
        Up to a constant that depends on n alone.
    """
    n, p = F.shape
    G, b, square = F.T @ F, F.T @ y, float(y @ y)
    parts = [slice(0, n_linear), slice(n_linear, p)]
    # Precisions of the weights and of the noise, within bounds that keep H regular.
    alpha, beta = np.ones(2), min(2 * n / max(square, 1e-12), 1e6)
    for step in range(N_STEPS + 1):
        precision = np.repeat(alpha, [n_linear, p - n_linear])
        H = beta * G
        H[np.diag_indices(p)] += precision
        factor = cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
        w = beta * cho_solve(factor, b, check_finite=False)
        rest = max(square - 2 * w @ b + w @ G @ w, 1e-12)
        if step == N_STEPS:
            break
        variance = np.diag(cho_solve(factor, np.eye(p), overwrite_b=True, check_finite=False))
        # How many weights the data determine, rather than the prior.
        known = [s.stop - s.start - alpha[k] * variance[s].sum() for k, s in enumerate(parts)]
        sizes = [w[s] @ w[s] for s in parts]
        alpha = np.clip(np.divide(known, np.maximum(sizes, 1e-12)), 1e-3, 1e8)
        beta = min(max(n - sum(known), 1.0) / rest, 1e6)
    log_det = 2 * np.log(np.diag(factor[0])).sum()
    evidence = 0.5 * (np.log(precision).sum() + n * np.log(beta) - beta * rest)
    return w, evidence - 0.5 * (precision @ w**2 + log_det)


def propensity(A, T, B, shrinkage=SHRINKAGE):
    """Ridge-logistic chances of treatment of rows B (n_new, D), fitted on A (n, D) and T (n,)."""
    intercept, beta = logistic_fit(A, T, penalty_for(shrinkage, A.shape[1], len(A)))
    return expit(intercept + B @ beta)


def treatment_losses(T, m):
    """Cross-entropies (n,) of treatments under propensities."""
    m = np.clip(m, 1e-6, 1 - 1e-6)
    return -np.log(np.where(T == 1, m, 1 - m))


def closed_form(X, T, Y, rows, new, seed, shrinkage=SHRINKAGE):
    """Propensity and outcomes per arm of new rows, fitted on others.

    Parameters
    ----------
    X, T, Y : arrays of shape (N, D), (N,), (N,)
    rows, new : int arrays
    seed : int
    shrinkage : float
        Of the propensity.

    Returns
    -------
    m : array of shape (n_new,)
    mu : array of shape (2, n_new)
    """
    A, B, _ = standardised(X, rows, new)
    T, Y = T[rows], Y[rows]
    mu = [Smooth(A[T == a], Y[T == a], seed).predict(B) for a in (0, 1)]
    return propensity(A, T, B, shrinkage), np.stack(mu)


def solve_smooth(problems, X, shrinkage, covariates=None):
    """Held-out predictions in closed form, with no network.

    Parameters
    ----------
    problems : list of Problem
    X : array of shape (N, D)
    shrinkage : float
        Of the propensity.
    covariates : bool array of shape (D,), optional
        The columns that may be covariates; all unless given.

    Yields
    ------
    m, g, mu : arrays of shape (n_hold,), (n_hold,), (2, n_hold)
    """
    X = np.asarray(X, dtype=np.float64)
    for problem in problems:
        use = np.ones(X.shape[1], bool) if covariates is None else np.array(covariates)
        if not isinstance(problem.treatment, np.ndarray):
            use[problem.treatment] = False
        data = X[:, use], vector(problem.treatment, X), problem.outcome
        rows = problem.fold.train, problem.fold.hold
        m, mu = closed_form(*data, *rows, problem.seed, shrinkage)
        yield m, average(m, mu), mu


def average(m, mu):
    """E[Y | X] (n,) from the propensity (n,) and the outcomes per arm (2, n)."""
    return (1 - m) * mu[0] + m * mu[1]


def share_of(first, second):
    """Weight of the first of two models, from their losses (n,) on the same rows.

    0 where its gain is within LEAST standard errors, 1 where it is beyond MOST.
    """
    gain = second - first
    if len(gain) < 2:
        return 0.0  # one row says nothing
    errors = gain.mean() * np.sqrt(len(gain)) / max(gain.std(ddof=1), 1e-300)
    return float(np.clip((errors - LEAST) / (MOST - LEAST), 0, 1))


def weighed(X, T, Y, fold, valid, hold, seed):
    """A network's propensity and outcomes per arm, weighed against those in closed form.

    The network counts where it foretells the validation rows clearly better. Small gains are
    chance, and cost more than they bring: an extreme propensity, or an arm of few rows.

    Parameters
    ----------
    X, T, Y : arrays of shape (N, D), (N,), (N,)
        Covariates, treatment and outcome of a problem.
    fold : Fold
    valid, hold : pairs of arrays (n,) and (2, n)
        The network's m and mu of the validation and the held-out rows.
    seed : int

    Returns
    -------
    m, mu : arrays of shape (n_hold,), (2, n_hold)
    shares : array of shape (3,)
        The network's weights in m, mu_0 and mu_1.
    """
    t, y, losses = T[fold.valid], Y[fold.valid], []
    for m, mu in (valid, closed_form(X, T, Y, fold.fit, fold.valid, seed)):
        arms = [(y[t == a] - mu[a, t == a]) ** 2 for a in (0, 1)]
        losses.append([treatment_losses(t, m), *arms])
    shares = np.array([share_of(net, smooth) for net, smooth in zip(*losses, strict=True)])
    m, mu = closed_form(X, T, Y, fold.train, fold.hold, seed)
    s, s_arms = shares[0], shares[1:, None]
    return s * hold[0] + (1 - s) * m, s_arms * hold[1] + (1 - s_arms) * mu, shares
