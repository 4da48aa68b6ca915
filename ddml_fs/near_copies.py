"""Features that repeat others, exactly or nearly."""

from hashlib import blake2b

import numpy as np

from ddml_fs.chunks import chunks
from ddml_fs.weights import column, weighted_mean

DIGITS = 5  # number of digits by which standardised columns are compared
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
    standard = Z[:, alone]
    standard -= weighted_mean(standard, weight).astype(Z.dtype)
    standard /= unit[alone].astype(Z.dtype)
    standard *= column(np.sqrt(weight).astype(Z.dtype), standard)
    first = np.empty(len(alone), dtype=int)
    for at in chunks(len(alone), standard.itemsize * len(alone)):
        # A column is its own copy, so that columns after it do not matter.
        R = standard[:, at].T @ standard[:, : at.stop] / len(Z)
        first[at] = np.argmax(np.abs(R) > NEAR, 1)
    near[own[alone]] = own[alone][chained(first)]
    return near


def near_of(R):
    """For each column the first one that nearly repeats it, from correlations (F, F)."""
    return chained(np.argmax(np.abs(R) > NEAR, 1))


def chained(first):
    """For each column the end of the chain of columns that each repeat an earlier one, (F,)."""
    near = np.arange(len(first))
    for i, j in enumerate(first):
        near[i] = near[j]
    return near


def key_of(values, sd):
    """What copies of a column have in common.

    Returns
    -------
    sign : float
        That of the first value which is not near the mean.
    key, turned : bytes
        The same for columns that are the same up to their mean and scale, and up to the sign, too.
    """
    standard = np.round((values - values.mean()) / sd, DIGITS)
    sign = np.sign(standard[np.argmax(np.abs(standard) > 0.1)])
    key = digest(standard)
    return sign, key, key if sign == 1 else digest(standard * sign)


def digest(values):
    """A short name of values; 0.0 removes negative zeros."""
    return blake2b((values + 0.0).astype(np.float32).tobytes()).digest()
