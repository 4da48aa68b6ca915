"""Checks of X as users pass it: arrays, sparse matrices and DataFrames of any kind."""

from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_array, check_is_fitted, check_X_y, validate_data

from ddml_fs.engine.plan import WIDE
from ddml_fs.features import Encoding
from ddml_fs.rows import warn_of_order
from ddml_fs.validation import check_known

FEWEST_ROWS = 8


def is_mixed(X):
    """Whether X is a DataFrame with columns that are not plain numbers."""
    if not isinstance(X, pd.DataFrame):
        return False
    return not all(isinstance(t, np.dtype) and t.kind in "biuf" for t in X.dtypes)


def check_names(X):
    """Raise if columns of a DataFrame share a name."""
    if isinstance(X, pd.DataFrame) and not X.columns.is_unique:
        counts = X.columns.value_counts()
        raise ValueError(
            f"X must have columns with different names, got {counts.index[0]!r} {counts.iloc[0]} "
            "times."
        )


def read_table(estimator, X, y):
    """Check X and y, and store the names of X's columns on the estimator.

    Returns
    -------
    X : array of shape (N, D), or DataFrame if it has text, categories or missing values
    y : array of shape (N,)
    """
    options: dict = {
        "dtype": np.float64,
        "ensure_min_samples": FEWEST_ROWS,
        "ensure_all_finite": "allow-nan",
    }
    check_names(X)
    warn_of_order(X, y=y)
    if y is not None:
        check_known(y, "y")
    if not is_mixed(X):
        X, y = validate_data(
            estimator, X, y, multi_output=False, accept_sparse=("csr", "csc"), **options
        )
        return dense(X), y
    validate_data(estimator, X, skip_check_array=True)
    if len(X) < FEWEST_ROWS or not X.shape[1]:
        check_array(np.empty(X.shape), **options)  # raises, and says what is missing
    _, y = check_X_y(np.zeros((len(X), 1)), y, estimator=estimator)
    return X.reset_index(drop=True), y


def dense(X):
    """X as an array; a wide sparse matrix in single precision, as it may be large."""
    if not issparse(X):
        return X
    return X.astype(np.float32).toarray() if X.shape[1] > WIDE else X.toarray()


def read_new_table(estimator, X):
    """X of new rows, checked to have the columns that the estimator was fitted on."""
    check_names(X)
    if is_mixed(X):
        validate_data(estimator, X, reset=False, skip_check_array=True)
        return X.reset_index(drop=True)
    options = {"accept_sparse": ("csr", "csc"), "ensure_all_finite": "allow-nan"}
    X = validate_data(estimator, X, reset=False, dtype=np.float64, **options)
    return dense(X)


def column_names(estimator):
    """Names of the columns of X."""
    return list(
        getattr(estimator, "feature_names_in_", [f"x{j}" for j in range(estimator.n_features_in_)])
    )


class EncodedTable:
    """An estimator whose ``_encoding_`` says how each column of X is read."""

    _encoding_: Encoding

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        return tags

    @property
    def encoding_(self) -> pd.DataFrame:
        """How each column of X was read, in words: one row per column."""
        check_is_fitted(self)
        readers = self._encoding_.readers
        names = np.array(self._encoding_.names)[self._encoding_.feature]
        rows = {"feature": names, "read as": [r.note or r.kind for r in readers]}
        return pd.DataFrame(rows, index=pd.Index([r.name for r in readers], name="column"))


class TableSelector(EncodedTable, SelectorMixin):
    """A selector of columns of a table."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        return tags

    def encode(self, X: Any) -> np.ndarray:
        """Encode a table as numbers, as in ``fit``: categories become indicators, and so on.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        numbers : array of shape (n_samples, n_columns)
        """
        check_is_fitted(self)
        return self._encoding_.read(read_new_table(self, X))

    def transform(self, X: Any) -> Any:
        """Keep the selected columns of X, which may contain text and missing values as in ``fit``.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        X : of the same kind, shape (n_samples, n_selected)
        """
        check_is_fitted(self)
        check_names(X)
        if is_mixed(X):
            validate_data(self, X, reset=False, skip_check_array=True)
            return X.loc[:, self.get_support()]
        return super().transform(X)
