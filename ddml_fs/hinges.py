"""Hinge functions of columns, for effects that are not linear."""

import numpy as np

KNOTS = (0.25, 0.5, 0.75)  # quantiles at which a nonlinear effect may change its slope


def bent_columns(features, roomy=np.inf, counted=True):
    """Hinge functions of all columns with more than two values, for nonlinear effects.

    Parameters
    ----------
    features : Features
    roomy : float
        Largest number of columns per row, hinge functions included; above it there are none, as
        with few rows curves of all columns would fit noise.
    counted : bool array of shape (P,)
        The columns that count for this; by default all.

    Returns
    -------
    hinges : array of shape (N, H)
    column : int array of shape (H,)
        The column of ``features.Z`` of each hinge function.
    """
    none = np.empty((len(features.Z), 0), np.float32), np.empty(0, int)
    counted = np.ones(features.Z.shape[1], bool) & counted
    if counted.sum() > roomy * len(features.Z):
        return none
    hinges, column = [], []
    for j in np.flatnonzero(~features.binary):
        x = features.Z[:, j]
        low, high = x.min(), x.max()
        for knot in np.unique(np.quantile(x, KNOTS)):
            if low < knot < high:
                hinges.append(np.maximum(x - knot, 0))
                column.append(j)
    if not hinges or counted.sum() + counted[column].sum() > roomy * len(features.Z):
        return none
    return np.column_stack(hinges), np.array(column)
