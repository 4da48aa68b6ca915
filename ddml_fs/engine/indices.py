"""Linear indices of the columns that predict the treatment and the outcome.

If many columns act together through a sum, and its effect is not linear, then no curve or product
of single columns shows it. A curve of the sum does.
"""

import numpy as np

from ddml_fs.engine.smooth_ridge import by_evidence

PARTS = 5  # of the training rows, each predicted by the others


def ridge_index(A, y, B, weight):
    """Values of rows B (n_new, D), less the mean, by ridge regression on A (n, D), weights (n,).

    The penalty maximises the evidence. The mean would correlate with the noise of rows left out.
    """
    root, total = np.sqrt(weight), weight.sum()
    centre, level = weight @ A / total, weight @ y / total
    sd = np.sqrt(weight @ (y - level) ** 2 / total) or 1.0
    rows = root[:, None] * (A - centre), root * (y - level) / sd
    beta, _ = by_evidence(*rows, A.shape[1], total)
    return sd * ((B - centre) @ beta)


def linear_indices(A, targets, B, weight):
    """Linear indices of the rows, one per target.

    Those of training rows are predicted by models that did not see them, as they otherwise would
    follow the noise of their targets.

    Parameters
    ----------
    A : array of shape (n, D)
        Standardised training rows.
    targets : array of shape (n, K)
    B : array of shape (n_new, D)
    weight : array of shape (n,)

    Returns
    -------
    of_A, of_B : arrays of shape (n, K) and (n_new, K)
        With mean 0 and standard deviation 1 in the training rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> A, B = rng.standard_normal((2, 400, 20))
    >>> y = A.sum(1) / 4 + rng.standard_normal(400)
    >>> _, index = linear_indices(A, y[:, None], B, np.ones(400))
    >>> bool(np.corrcoef(index[:, 0], B.sum(1))[0, 1] > 0.95)
    True
    """
    part, K = np.arange(len(A)) % PARTS, targets.shape[1]
    of_A, of_B = np.empty((len(A), K)), np.empty((len(B), K))
    for j in range(K):
        y = targets[:, j]
        for k in range(PARTS):
            own = part == k
            of_A[own, j] = ridge_index(A[~own], y[~own], A[own], weight[~own])
        of_B[:, j] = ridge_index(A, y, B, weight)
    mean, sd = of_A.mean(0), np.maximum(of_A.std(0), 1e-9)
    return (of_A - mean) / sd, (of_B - mean) / sd
