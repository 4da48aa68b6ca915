"""Reads the covariates and the treatment of an effect, from tables of any kind."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.utils.validation import validate_data

from ddml_fs.cautions import warn_of_unread
from ddml_fs.columns import is_text
from ddml_fs.features import Encoding
from ddml_fs.prepare import COMPLETE, describe_encoding
from ddml_fs.readers import reader_of, typed
from ddml_fs.tables import check_names, column_names, is_mixed
from ddml_fs.validation import check_column, check_covariates, check_known


@dataclass(frozen=True, eq=False)
class EffectTable:
    """Covariates and treatment as numbers.

    Attributes
    ----------
    X : array of shape (N, Q)
        The covariates, and the treatment if it is a column of the table.
    treatment : array of shape (N,)
    column : int or None
        The column of X that is the treatment.
    encoding : Encoding
        How each column of the table was read.
    note : str
        What was encoded or imputed, in sentences; empty if nothing was.
    """

    X: np.ndarray
    treatment: np.ndarray
    column: int | None
    encoding: Encoding
    note: str


def read_effect_table(estimator, X, treatment):
    """Read X and the treatment, and store the names of X's columns on the estimator.

    Missing numbers become the median of all rows, with an indicator if they are many. Categories
    and text become indicators of their levels.

    Parameters
    ----------
    estimator : estimator
    X : array or DataFrame of shape (N, D)
    treatment : array of shape (N,), str or int
        Values, or the name or number of a column of X.

    Returns
    -------
    table : EffectTable
    """
    check_names(X)
    values = X if is_mixed(X) else check_covariates(X)
    validate_data(estimator, X=X, reset=True, skip_check_array=True)
    names = column_names(estimator)
    if isinstance(values, pd.DataFrame):
        values = values.set_axis(names, axis=1)
    named = names if hasattr(estimator, "feature_names_in_") else None
    place = check_column(treatment, values, named)
    if place is not None:
        treatment = values[:, place] if isinstance(values, np.ndarray) else values.iloc[:, place]
    treatment, note = read_treatment(treatment)
    encoding = Encoding.of(values, names)
    warn_of_unread(encoding)
    column = None if place is None else int(encoding.width[:place].sum())
    numbers = encoding.read(values)
    if numbers is not values:
        frame = pd.DataFrame(values, columns=names)
        covariates = frame if place is None else frame.drop(columns=names[place])
        if (how := describe_encoding(covariates)) != COMPLETE:
            note = f"Covariates: {how}. {note}"
    return EffectTable(numbers, treatment, column, encoding, note.strip())


def read_new_rows(estimator, encoding, X):
    """Covariates of new rows as numbers, read as in ``fit``; an array of shape (N, Q)."""
    values = X if is_mixed(X) else check_covariates(X)
    validate_data(estimator, X=X, reset=False, skip_check_array=True)
    return encoding.read(values)


def read_treatment(values):
    """A treatment as numbers, and a note on which level is 1 if it is text.

    Parameters
    ----------
    values : array or Series of shape (N,)
        Numbers, booleans, durations, or text or categories with two levels.

    Returns
    -------
    values : array of shape (N,)
    note : str

    Examples
    --------
    >>> read_treatment(["yes", "no", "yes"])
    (array([1., 0., 1.]), "Treatment: 'yes' is 1, 'no' is 0.")
    """
    check_known(values, "treatment")
    if np.ndim(values) != 1:
        return values, ""
    column = values if isinstance(values, pd.Series) else pd.Series(np.asarray(values))
    column = typed(column.rename("treatment").infer_objects())
    if pd.api.types.is_datetime64_any_dtype(column):
        raise ValueError("treatment must hold numbers or two levels, got dates.")
    if not (is_text(column) or isinstance(column.dtype, pd.CategoricalDtype)):
        return column.to_numpy(dtype=np.float64), ""
    reader, levels = reader_of(column), sorted(column.astype(str).unique())
    if reader.kind == "number":
        return reader.read(column)[:, 0], "Treatment: text read as numbers."
    if len(levels) != 2:
        raise ValueError(
            f"treatment must hold numbers or two levels, got text with {len(levels)} levels."
        )
    note = f"Treatment: {levels[1]!r} is 1, {levels[0]!r} is 0."
    return reader.read(column)[:, 0], note
