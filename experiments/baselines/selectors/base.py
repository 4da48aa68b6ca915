"""What all selectors compared with have in common."""

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data


class ScoreSelector(SelectorMixin, BaseEstimator):
    """Keeps the K features with the largest scores; a subclass says how to score.

    Parameters
    ----------
    n_features_to_select : int, default=50
        K.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Larger is better; of equal ones, the first feature wins.
    """

    def __init__(self, n_features_to_select=50):
        self.n_features_to_select = n_features_to_select

    def fit(self, X, y):
        """Score the features.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Two labels.
        """
        X, y = validate_data(self, X, y)
        self.scores_ = np.nan_to_num(self._score(X, np.unique(y, return_inverse=True)[1]))
        return self

    def _score(self, X, y):
        """One number a feature, from X (N, D) and y in {0, 1}."""
        raise NotImplementedError

    def order(self):
        """All features, best first."""
        check_is_fitted(self)
        return np.argsort(-self.scores_, kind="stable")

    def _get_support_mask(self):
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.order()[: self.n_features_to_select]] = True
        return mask
