"""Features that nearly repeat others."""

import numpy as np

from ddml_fs.weights import column, weighted_mean

NEAR = 0.995  # columns with a larger absolute correlation are near copies


def near_copies(Z, own, unit, weight=1.0):
    """For each feature the first one that nearly repeats it, or the feature itself, (F,).

    Parameters
    ----------
    Z : array of shape (N, P)
    own : int array of shape (P,)
        The feature of each column; those with several columns are not compared.
    unit : array of shape (P,)
        Standard deviations of the columns.
    weight : float or array of shape (N,)
    """
    n_features = own.max(initial=-1) + 1
    near = np.arange(n_features)
    alone = np.flatnonzero(np.bincount(own, minlength=n_features)[own] == 1)
    if len(alone) < 2:
        return near
    mean = weighted_mean(Z[:, alone], weight).astype(Z.dtype)
    standard = (Z[:, alone] - mean) / unit[alone].astype(Z.dtype)
    standard *= column(np.sqrt(weight).astype(Z.dtype), standard)
    near[own[alone]] = own[alone][near_of(standard.T @ standard / len(Z))]
    return near


def near_of(R):
    """For each column the first one that nearly repeats it, from correlations (F, F)."""
    near = np.arange(len(R))
    for i, first in enumerate(np.argmax(np.abs(R) > NEAR, 1)):
        near[i] = near[first]
    return near
