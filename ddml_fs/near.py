"""Columns that nearly repeat others."""

import numpy as np

NEAR = 0.995  # columns with a larger absolute correlation are near copies


def near_copies(Z, own, unit):
    """For each feature the first one that nearly repeats it, or the feature itself, (F,)."""
    n_features = own.max(initial=-1) + 1
    near = np.arange(n_features)
    alone = np.flatnonzero(np.bincount(own, minlength=n_features)[own] == 1)
    if len(alone) < 2:
        return near
    standard = (Z[:, alone] - Z[:, alone].mean(0)) / unit[alone].astype(Z.dtype)
    near[own[alone]] = own[alone][near_of(standard.T @ standard / len(Z))]
    return near


def near_of(R):
    """For each column the first one that nearly repeats it, from correlations (F, F)."""
    near = np.arange(len(R))
    for i, first in enumerate(np.argmax(np.abs(R) > NEAR, 1)):
        near[i] = near[first]
    return near
