"""Weights of candidates that are not negative and sum to one."""

import numpy as np
from scipy.optimize import nnls

from ddml_fs.nuisances.held_out_loss import EDGE

EM_STEPS = 100  # from equal weights; more do not help (experiments/effects/results/tuned.md)
EXACT = 1e4  # weight of the row that makes squared-error weights sum to one


def squared_error_weights(predicted, target, weight=1.0):
    """Non-negative weights (K,), with sum one, that minimise the squared error.

    Parameters
    ----------
    predicted : array of shape (K, n)
        Held-out predictions of K candidates.
    target : array of shape (n,)
    weight : float or array of shape (n,)
        Weights of the rows.

    Examples
    --------
    >>> y = np.array([0.0, 1.0, 2.0, 3.0])
    >>> squared_error_weights(np.stack([y, 3 - y]), y).round(6).tolist()
    [1.0, 0.0]
    """
    # As the weights sum to one, the error is the weighted sum of gaps.
    gap = np.sqrt(weight) * (predicted - target)
    size = np.sqrt(np.mean(gap**2)) or 1.0
    gram = gap @ gap.T / (gap.shape[1] * size**2)
    # ‖gapᵀw‖² = ‖Lᵀw‖² with L Lᵀ = gram, so the problem has K rows instead of n.
    values, vectors = np.linalg.eigh(gram)
    root = (vectors * np.sqrt(np.maximum(values, 0))).T
    design = np.vstack([root, np.full(len(gap), EXACT)])
    weights, _ = nnls(design, np.r_[np.zeros(len(root)), EXACT])
    return weights / weights.sum()


def log_loss_weights(predicted, target, weight=None):
    """Non-negative weights (K,), with sum one, that minimise the log-loss of a 0/1 target.

    The weighted mean of probabilities is a mixture, so the EM algorithm finds the weights.
    ``weight`` are the weights of the rows (n,), by default 1.

    Examples
    --------
    >>> y = np.array([0.0, 1.0, 1.0, 0.0])
    >>> good, bad = np.where(y == 1, 0.9, 0.1), np.full(4, 0.5)
    >>> log_loss_weights(np.stack([good, bad]), y).round(3).tolist()
    [1.0, 0.0]
    """
    p = np.clip(predicted, EDGE, 1 - EDGE)
    likelihood = np.where(target == 1, p, 1 - p)
    weights = np.full(len(p), 1 / len(p))
    for _ in range(EM_STEPS):
        share = likelihood / (weights @ likelihood)
        weights = weights * np.average(share, axis=1, weights=weight)
    return weights / weights.sum()
