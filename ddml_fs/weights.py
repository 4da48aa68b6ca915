"""Sample weights: checked, scaled to mean 1, and the means that use them."""

import numpy as np
from sklearn.utils.validation import column_or_1d

NEGLIGIBLE = 1e-12  # of the largest weight; sums of squares with such weights are rounding errors


def check_weights(sample_weight, n_samples):
    """Sample weights (N,), scaled so that the rows with weight have the mean 1.

    Parameters
    ----------
    sample_weight : array of shape (n_samples,), or None
        Non-negative numbers; None: the same weight for all rows. A row with weight 0 has no say,
        nor has one with less than :data:`NEGLIGIBLE` times the largest weight.
    n_samples : int

    Examples
    --------
    >>> check_weights([0, 1, 3], 3).tolist(), check_weights(None, 2).tolist()
    ([0.0, 0.5, 1.5], [1.0, 1.0])
    """
    if sample_weight is None:
        return np.ones(n_samples)
    try:
        weight = column_or_1d(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight must be one number per row: {error}") from None
    if len(weight) != n_samples:
        raise ValueError(
            f"sample_weight must have one number per row of X ({n_samples}), got {len(weight)}."
        )
    bad = int((~np.isfinite(weight)).sum())
    if bad:
        raise ValueError(f"sample_weight must be finite, got {bad} NaN or infinite values.")
    if (weight < 0).any():
        raise ValueError(f"sample_weight must not be negative, got {weight.min():g}.")
    if not weight.any():
        raise ValueError("sample_weight must have a positive value, got zero in every row.")
    weight = weight / weight.max()  # so that neither large nor small weights overflow
    weight = np.where(weight < NEGLIGIBLE, 0.0, weight)
    return weight / weight[weight > 0].mean()


def varies(weight):
    """Whether weights (N,) differ between rows with weight, so that they have to be passed on."""
    own = weight[weight > 0]
    return bool(np.ptp(own) > 0)


def weighted_mean(values, weight=1.0):
    """Weighted mean over the rows, of values (N,) or (N, F); a weight of 1.0 is that of all rows.

    Examples
    --------
    >>> float(weighted_mean(np.array([1.0, 4.0]), np.array([2.0, 1.0])))
    2.0
    """
    if np.ndim(weight) == 0 or (np.ndim(values) == 2 and not np.ptp(weight)):
        return np.mean(values, 0, dtype=np.float64)  # the same, without a table of products
    return np.mean(column(weight, values) * values, 0, dtype=np.float64) / np.mean(weight)


def weighted_var(values, weight=1.0):
    """Weighted variance over the rows, of values (N,) or (N, F)."""
    return weighted_mean((values - weighted_mean(values, weight)) ** 2, weight)


def influence_on_mean(values, weight=1.0):
    """Influence of each row on the weighted mean of values (N,), (N,)."""
    return weight * (values - weighted_mean(values, weight)) / np.mean(weight)


def column(weight, values):
    """Weights (N,) that multiply the rows of values (N,) or (N, F)."""
    return weight[:, None] if np.ndim(weight) == 1 and np.ndim(values) == 2 else weight
