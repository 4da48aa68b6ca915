"""Columns that repeat others, in other units or nearly."""

import numpy as np
import pandas as pd

from ddml_fs.readers import texts_of

NEAR = 0.99  # correlation, where both are filled in
FEWEST = 20  # rows in which both must be filled in


def correlations(values):
    """Correlations of all pairs of columns over the rows in which both are there.

    Parameters
    ----------
    values : array of shape (N, D)
        NaN where a value is missing.

    Returns
    -------
    r : array of shape (D, D)
        0 where a column does not vary, or too few rows have both.

    Examples
    --------
    >>> x = np.arange(30.0)
    >>> correlations(np.column_stack([x, 5 - 2 * x])).round(6).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    there = (~np.isnan(values)).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        Z = np.where(there > 0, values - np.nansum(values, 0) / there.sum(0), 0.0)
    Z /= np.maximum(np.abs(Z).max(0, initial=0.0), 1e-300)
    n, sums, squares = there.T @ there, Z.T @ there, (Z**2).T @ there
    cross = n * (Z.T @ Z) - sums * sums.T
    spread = np.maximum(n * squares - sums**2, 0.0)
    scale = np.sqrt(spread * spread.T)
    enough = (n >= FEWEST) & (scale > 1e-9 * np.maximum(n, 1) ** 2)
    return np.where(enough, cross / np.where(enough, scale, 1.0), 0.0)


def copies_in(frame):
    """For each column the first earlier one that it nearly repeats, or "".

    Parameters
    ----------
    frame : DataFrame
        Numbers are compared by their correlation, other columns by their values.

    Returns
    -------
    copies : dict
        One entry per column that repeats another.

    Examples
    --------
    >>> years = np.arange(20.0, 60.0)
    >>> copies_in(pd.DataFrame({"years": years, "months": 12 * years, "one": 1.0}))
    {'months': 'years'}
    """
    numeric = [c for c in frame if pd.api.types.is_numeric_dtype(frame[c])]
    found: dict = {}
    if numeric:
        near = np.abs(correlations(frame[numeric].to_numpy(dtype=np.float64, na_value=np.nan)))
        for j, name in enumerate(numeric):
            first = np.flatnonzero(near[j, :j] > NEAR)
            if len(first):
                found[name] = numeric[first[0]]
    seen: dict = {}
    for name in frame.columns.difference(numeric, sort=False):
        codes = pd.factorize(texts_of(frame[name]))[0]
        key = codes.tobytes()
        if key in seen and codes.max(initial=0) > 0:
            found[name] = seen[key]
        seen.setdefault(key, name)
    return found
