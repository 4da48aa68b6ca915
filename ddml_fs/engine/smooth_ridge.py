"""Ridge regression on smooth features, with penalties that maximise the evidence.

A network needs thousands of rows to be more accurate than ridge regression. This model in closed
form is designed for a few hundred rows.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import softmax

from ddml_fs.weights import weighted_mean, weighted_var

N_FEATURES = 128  # of the smooth part
WIDTHS = (0.5, 1.0, 3.0)  # of its kernel, in units of √D
N_STEPS = 15  # of the fixed-point iteration


class SmoothRidge:
    """Bayesian ridge regression on the columns and on random Fourier features of them.

    y = c + A·a/√D + φ(A)·b + noise, the sum of a linear function and a draw of a Gaussian process.
    The variances of a, b and the noise maximise the evidence, by MacKay's fixed-point iteration.
    Predictions with kernels of several widths are averaged, weighted by their evidence.

    Parameters
    ----------
    A : array of shape (n, D)
        Standardised rows.
    y : array of shape (n,)
    seed : int
        Of the random features.
    weight : array of shape (n,), optional
        Weights of the rows: the variance of the noise is divided by them. By default 1.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((500, 3))
    >>> model = SmoothRidge(A[:400], np.sin(A[:400, 0]) + A[:400, 1], seed=0)
    >>> left = model.predict(A[400:]) - np.sin(A[400:, 0]) - A[400:, 1]
    >>> bool(np.abs(left).mean() < 0.1)
    True
    """

    def __init__(self, A, y, seed, weight=None):
        rng = np.random.default_rng(seed)
        D, weight = A.shape[1], np.ones(len(A)) if weight is None else weight
        self.mean = weighted_mean(y, weight)
        self.sd, root = max(np.sqrt(weighted_var(y, weight)), 1e-12), np.sqrt(weight)
        self.W = rng.standard_normal((D, N_FEATURES)) / np.sqrt(max(D, 1))
        self.phase = rng.uniform(0, 2 * np.pi, N_FEATURES)
        self.centre, self.weights, evidence = [], [], []
        for width in WIDTHS:
            features = self._features(A, width)
            centre = weighted_mean(features, weight)
            rows = root[:, None] * (features - centre), root * (y - self.mean) / self.sd
            weights, value = by_evidence(*rows, D, weight.sum())
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


def by_evidence(F, y, n_linear, n=None):
    """Ridge coefficients with two penalties that maximise the evidence, and the log evidence.

    Parameters
    ----------
    F : array of shape (n, p)
        Centred features.
    y : array of shape (n,)
        Centred, of variance 1 or less.
    n_linear : int
        Number of features with the first penalty; the others have the second.
    n : float, optional
        Sum of the weights, if F and y are multiplied by the roots of weights.

    Returns
    -------
    w : array of shape (p,)
    evidence : float
        Up to a constant that depends only on n.
    """
    p, n = F.shape[1], len(F) if n is None else n
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
        # Effective number of parameters: how many weights are determined by the data.
        known = [s.stop - s.start - alpha[k] * variance[s].sum() for k, s in enumerate(parts)]
        sizes = [w[s] @ w[s] for s in parts]
        alpha = np.clip(np.divide(known, np.maximum(sizes, 1e-12)), 1e-3, 1e8)
        beta = min(max(n - sum(known), 1.0) / rest, 1e6)
    log_det = 2 * np.log(np.diag(factor[0])).sum()
    evidence = 0.5 * (np.log(precision).sum() + n * np.log(beta) - beta * rest)
    return w, evidence - 0.5 * (precision @ w**2 + log_det)
