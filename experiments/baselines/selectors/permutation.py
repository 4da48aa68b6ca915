"""Permutation importance of boosted trees, on rows or on domains that they have not seen."""

import numpy as np
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold

from experiments.baselines.selectors.domains import DomainSelector

LEAST = 1e-6  # of a probability


class PermutationImportance(DomainSelector):
    """What boosting loses on held-out rows when a column is shuffled.

    As scikit-learn's ``permutation_importance``, but all shufflings of a column are predicted at
    once, and only the rows that they change: ten times as fast, and more for 0/1 columns.

    Parameters
    ----------
    n_features_to_select : int, default=50
    held_out : {"rows", "domains"}, default="rows"
        Folds of rows, or one domain at a time as far as both labels occur in it. With one domain
        both are folds of rows.
    scoring : {"log-likelihood", "auc"}, default="log-likelihood"
    n_folds : int, default=5
    n_repeats : int, default=5
        Shufflings of a column per fold.
    random_state : int or None, default=None
    """

    def __init__(
        self,
        n_features_to_select=50,
        held_out="rows",
        scoring="log-likelihood",
        n_folds=5,
        n_repeats=5,
        random_state=None,
    ):
        super().__init__(n_features_to_select)
        self.held_out = held_out
        self.scoring = scoring
        self.n_folds = n_folds
        self.n_repeats = n_repeats
        self.random_state = random_state

    def _score(self, X, y):
        return np.mean([self._loss(X, y, *split) for split in self._splits(X, y)], axis=0)

    def _splits(self, X, y):
        """Training and test rows."""
        domains = np.unique(self._domain)
        if self.held_out == "rows" or len(domains) == 1:
            folds = StratifiedKFold(self.n_folds, shuffle=True, random_state=self.random_state)
            return list(folds.split(X, y))
        parts = [(self._domain != d, self._domain == d) for d in domains]
        return [
            (np.flatnonzero(train), np.flatnonzero(test))
            for train, test in parts
            if np.ptp(y[test]) > 0
        ]

    def _loss(self, X, y, train, test):
        """What is lost by column, (D,)."""
        model = HistGradientBoostingClassifier(
            max_leaf_nodes=8, learning_rate=0.05, random_state=self.random_state
        )
        model.fit(X[train], y[train])
        rng = np.random.default_rng(self.random_state)
        shuffled = np.stack([rng.permutation(test) for _ in range(self.n_repeats)])
        rows = np.broadcast_to(test, shuffled.shape)
        before = np.broadcast_to(model.predict_proba(X[test])[:, 1], shuffled.shape)
        quality = SCORINGS[self.scoring]
        lost = np.zeros(X.shape[1])
        for j in range(X.shape[1]):
            changed = X[shuffled, j] != X[rows, j]
            if changed.any():
                part, after = X[rows[changed]], before.copy()
                part[:, j] = X[shuffled[changed], j]
                after[changed] = model.predict_proba(part)[:, 1]
                lost[j] = quality(y[test], before) - quality(y[test], after)
        return lost


def log_likelihood(y, chance):
    """Mean log-likelihood of labels (N,) by chances of label 1, (R, N)."""
    return np.log(np.where(y == 1, chance, 1 - chance).clip(LEAST)).mean()


def area(y, chance):
    """Mean over R of the areas under the ROC curve, of labels (N,) and chances (R, N)."""
    positive = y == 1
    n1, n0 = positive.sum(), (~positive).sum()
    above = rankdata(chance, axis=1)[:, positive].sum(axis=1) - n1 * (n1 + 1) / 2
    return (above / (n1 * n0)).mean()


SCORINGS = {"log-likelihood": log_likelihood, "auc": area}
