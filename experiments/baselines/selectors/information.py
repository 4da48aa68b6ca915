"""Mutual information where columns are of several kinds."""

import numpy as np
from sklearn.feature_selection import mutual_info_classif

from experiments.baselines.selectors.base import ScoreSelector


class MixedMutualInformation(ScoreSelector):
    """Mutual information with the label: by counts for two values, else by nearest neighbours.

    Parameters
    ----------
    n_features_to_select : int, default=50
    random_state : int or None, default=None
        Seed of the noise that parts equal values among the neighbours.
    """

    def __init__(self, n_features_to_select=50, random_state=None):
        super().__init__(n_features_to_select)
        self.random_state = random_state

    def _score(self, X, y):
        two_valued = np.array([len(np.unique(column)) <= 2 for column in X.T])
        return mutual_info_classif(
            X, y, discrete_features=two_valued, random_state=self.random_state
        )
