"""Checks of arguments. Errors are one sentence: what is wrong, what was got, what is allowed."""

import numbers

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_array, column_or_1d


def check_covariates(X):
    """X as an array of finite numbers and missing values."""
    if np.ndim(X) == 2 and not np.shape(X)[1]:
        raise ValueError("X must have at least one column, got none.")
    try:
        X = check_array(X, dtype=np.float64, ensure_all_finite=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X must be a numeric table of two dimensions: {first(error)}") from None
    _check_finite(X, "X")
    return X


def check_known(values, name):
    """Raise if values are missing."""
    missing = int(np.sum(pd.isna(np.asarray(values))))
    if missing:
        raise ValueError(
            f"{name} must be known in every row, got {missing} missing; drop these rows."
        )


def forget_fit(estimator):
    """Remove the results of an earlier fit: all attributes whose names end in ``_``."""
    for name in [name for name in vars(estimator) if name.endswith("_")]:
        delattr(estimator, name)


def check_vector(values, name, n_samples, weight=None):
    """A numeric vector, finite and not constant in rows with weight, with one value per row."""
    check_known(values, name)
    try:
        vector = column_or_1d(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be one numeric value per row: {first(error)}") from None
    if len(vector) != n_samples:
        raise ValueError(
            f"{name} must have one value per row of X ({n_samples}), got {len(vector)}."
        )
    _check_finite(vector, name)
    own, rows = vector, "every row"
    if weight is not None and not weight.all():
        own, rows = vector[weight > 0], "every row with weight"
    if np.ptp(own) == 0:
        raise ValueError(f"{name} must vary, got the single value {own[0]:g} in {rows}.")
    return vector


def check_label(values, n_samples, weight=None):
    """A 0/1 outcome."""
    label = check_vector(values, "y", n_samples, weight)
    levels = np.unique(label)
    if not np.array_equal(levels, [0, 1]):
        raise ValueError(
            f"y must be coded 0/1 for score='logistic', got {len(levels)} values from "
            f"{levels[0]:g} to {levels[-1]:g}."
        )
    return label


def check_column(treatment, X, names):
    """The number of the treatment's column in X, or None if the treatment is an array."""
    if isinstance(treatment, str):
        if names is None or treatment not in names:
            known = "X has no names" if names is None else f"X has {list(names)}"
            raise ValueError(f"treatment must be a column of X, got {treatment!r}; {known}.")
        return list(names).index(treatment)
    if isinstance(treatment, numbers.Integral):
        column = int(treatment)
        if not 0 <= column < X.shape[1]:
            raise ValueError(
                f"treatment must be a column of X from 0 to {X.shape[1] - 1}, got {treatment}."
            )
        return column
    return None


def check_clusters(cluster, n_samples, weight, fewest, named="", ways=2):
    """Clusters as an int array of shape (n_samples, 1) or (n_samples, 2).

    Clusters whose rows all have weight 0 do not count; their rows have the number 0.

    Parameters
    ----------
    cluster : array of shape (n_samples,) or (n_samples, k)
    n_samples : int
    weight : array of shape (n_samples,)
    fewest : int
        Smallest number of clusters; ``named`` says in errors where it comes from.
    ways : int
        Largest number of ways of clustering, k.
    """
    given = np.asarray(cluster)
    allowed = [(n_samples,), *((n_samples, k + 1) for k in range(ways))]
    if given.shape not in allowed:
        both = f" or ({n_samples}, 2)" if ways == 2 else ""
        raise ValueError(f"cluster must have shape ({n_samples},){both}, got {given.shape}.")
    table = pd.DataFrame(given)
    missing = int(table.isna().to_numpy().sum())
    if missing:
        raise ValueError(f"cluster must name a cluster in every row, got {missing} missing.")
    codes = np.zeros(table.shape, dtype=int)
    for j in table:
        known = pd.Index(table.loc[weight > 0, j].unique())
        codes[:, j] = np.maximum(known.get_indexer(table[j]), 0)
    least = codes.max(0).min() + 1
    if least < fewest:
        raise ValueError(f"cluster must have at least {named}{fewest} clusters, got {least}.")
    return codes


def check_treatment(values, n_samples, weight=None):
    """The treatment, and whether it is binary."""
    treatment = check_vector(values, "treatment", n_samples, weight)
    levels = np.unique(treatment)
    if len(levels) == 2 and not np.array_equal(levels, [0, 1]):
        raise ValueError(
            f"a treatment with two values must be coded 0/1, got {levels[0]:g} and {levels[1]:g}."
        )
    return treatment, len(levels) == 2


def check_identified(X, treatment):
    """Raise if the treatment is a linear function of X, so that its effect is not identified."""
    centred = treatment - treatment.mean()
    # Standardised, so that a large offset, such as that of a date, does not hide the variation.
    design = np.column_stack(
        [np.ones(len(X)), (X - X.mean(0)) / np.where(X.std(0) > 0, X.std(0), 1)]
    )
    if len(X) <= design.shape[1]:
        return  # with fewer rows than columns every fit is perfect
    coefficients, *_ = np.linalg.lstsq(design, treatment, rcond=None)
    if np.sum((treatment - design @ coefficients) ** 2) < 1e-10 * np.sum(centred**2):
        raise ValueError(
            "X must not determine the treatment, but a linear function of X equals it in every "
            "row; is the treatment, or a copy of it, among the columns?"
        )


def check_folds(n_folds, treatment, binary):
    """Raise unless every fold can have rows of both arms, and enough rows for validation.

    ``treatment`` is that of the rows with weight.
    """
    check_integer(n_folds, "n_folds", 2)
    if binary:
        smallest = int(min(treatment.sum(), (1 - treatment).sum()))
        if n_folds > smallest:
            raise ValueError(
                f"n_folds must be at most the size of the smallest arm ({smallest}), got {n_folds}."
            )
    if len(treatment) < 4 * n_folds:
        raise ValueError(
            f"X must have at least 4 rows per fold ({4 * n_folds} for n_folds={n_folds}), "
            f"got {len(treatment)}."
        )


def check_arms(folds, treatment):
    """Raise if clusters leave no row of an arm of a 0/1 treatment (N,) to fit on in some fold."""
    both = sum(np.ptp(treatment[fold.train]) > 0 for fold in folds)
    if both < len(folds):
        raise ValueError(
            "cluster must have rows of each arm in clusters of several folds, got "
            f"{len(folds) - both} of {len(folds)} folds with one arm to fit on; use smaller "
            "clusters, or none."
        )


def check_integer(value, name, least):
    """An integer of at least ``least``."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}.")


def check_number(value, name, low, high):
    """A real number in the closed interval from ``low`` to ``high``."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool) or not low <= value <= high:
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}, got {value!r}.")


def check_option(value, name, options):
    """One of the options."""
    if value not in options:
        raise ValueError(f"{name} must be one of {tuple(options)}, got {value!r}.")


def first(error):
    """The first line of an error; scikit-learn shows the data below it."""
    return str(error).splitlines()[0].rstrip(":.") + "."


def _check_finite(values, name):
    infinite = int(np.isinf(values).sum())
    if infinite:
        raise ValueError(
            f"{name} must be finite, got {infinite} infinite values; impute or drop them."
        )
