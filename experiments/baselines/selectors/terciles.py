"""Selectors for 0/1 columns on columns of any kind."""

import numpy as np
from sklearn.base import clone

from experiments.baselines.selectors.base import ScoreSelector


class Terciles(ScoreSelector):
    """Hands a selector 0/1 columns: of each column with more values, whether it is above a tercile.

    A column's score is the best of its two.

    Parameters
    ----------
    selector : ScoreSelector
    n_features_to_select : int, default=50
    """

    def __init__(self, selector, n_features_to_select=50):
        super().__init__(n_features_to_select)
        self.selector = selector

    def _score(self, X, y):
        cuts, owner = [], []
        for j, column in enumerate(X.T):
            values = np.unique(column)
            # The last cut of a column with few values may leave nothing above it.
            limits = values[:1] if len(values) <= 2 else np.quantile(column, (1 / 3, 2 / 3))
            parts = np.unique([column > limit for limit in limits], axis=0)
            cuts.extend(parts)
            owner.extend([j] * len(parts))
        inner = clone(self.selector).fit(np.column_stack(cuts).astype(float), y)
        scores = np.full(X.shape[1], -np.inf)
        np.maximum.at(scores, owner, inner.scores_)
        return scores
