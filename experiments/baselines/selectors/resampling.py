"""Boruta and stability selection."""

import numpy as np
from boruta import BorutaPy
from sklearn.ensemble import RandomForestClassifier

from experiments.baselines.selectors.base import ScoreSelector
from experiments.baselines.selectors.scikit import l1_logistic


class Boruta(ScoreSelector):
    """Features whose importance in a forest exceeds that of shuffled copies (``Boruta``).

    Its groups (confirmed, tentative, and rejected by rank) are put in order by the mean importance
    in a forest.

    Parameters
    ----------
    n_features_to_select : int, default=50
    n_rounds : int, default=30
        Forests at most.
    random_state : int or None, default=None
    """

    def __init__(self, n_features_to_select=50, n_rounds=30, random_state=None):
        super().__init__(n_features_to_select)
        self.n_rounds = n_rounds
        self.random_state = random_state

    def _score(self, X, y):
        forest = RandomForestClassifier(200, max_depth=7, random_state=self.random_state)
        search = BorutaPy(
            forest, n_estimators=200, max_iter=self.n_rounds, random_state=self.random_state
        )
        search.fit(X, y)
        importance = forest.set_params(random_state=self.random_state).fit(X, y)
        importance = importance.feature_importances_
        return importance / (1 + importance.max()) - search.ranking_


class StabilitySelection(ScoreSelector):
    """How often L1-logistic regressions take a feature, over halves of the rows and penalties.

    Parameters
    ----------
    n_features_to_select : int, default=50
    n_halves : int, default=50
    C : sequence of float
        Inverse penalties; from some twenty of 400 words to most of them.
    random_state : int or None, default=None
    """

    def __init__(
        self, n_features_to_select=50, n_halves=50, C=(0.03, 0.1, 0.3, 1.0), random_state=None
    ):
        super().__init__(n_features_to_select)
        self.n_halves = n_halves
        self.C = C
        self.random_state = random_state

    def _score(self, X, y):
        rng = np.random.default_rng(self.random_state)
        taken = np.zeros(X.shape[1])
        for _ in range(self.n_halves):
            half = rng.permutation(len(y))[: len(y) // 2]
            for C in self.C:
                taken += l1_logistic(X[half], y[half], C) != 0
        return taken / (self.n_halves * len(self.C))
