"""What people reach for first: scikit-learn's filters, coefficients and importances."""

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import RFE, f_classif, mutual_info_classif
from sklearn.linear_model import LogisticRegression
from sklearn.svm import l1_min_c

from experiments.baselines.selectors.base import ScoreSelector


class FTest(ScoreSelector):
    """F of an analysis of variance, one feature at a time."""

    def _score(self, X, y):
        varies = np.ptp(X, axis=0) > 0
        scores = np.zeros(X.shape[1])
        scores[varies] = f_classif(X[:, varies], y)[0]
        return scores


class MutualInformation(ScoreSelector):
    """Mutual information with the label, of columns taken as discrete."""

    def _score(self, X, y):
        return mutual_info_classif(X, y, discrete_features=True)


class RidgeLogistic(ScoreSelector):
    """Absolute coefficients of a ridge-logistic regression.

    Parameters
    ----------
    n_features_to_select : int, default=50
    C : float, default=0.1
        Inverse penalty; the best of 0.01 to 10 by cross-validation within one domain (books).
    """

    def __init__(self, n_features_to_select=50, C=0.1):
        super().__init__(n_features_to_select)
        self.C = C

    def _score(self, X, y):
        return np.abs(LogisticRegression(C=self.C, max_iter=1000).fit(X, y).coef_[0])


class L1Logistic(ScoreSelector):
    """The order in which an L1-logistic regression takes features up as its penalty falls.

    Parameters
    ----------
    n_features_to_select : int, default=50
    n_penalties : int, default=20
        Steps from the penalty that takes none to one a thousandth as large; features that enter
        in the same step go by their coefficients at its end.
    """

    def __init__(self, n_features_to_select=50, n_penalties=20):
        super().__init__(n_features_to_select)
        self.n_penalties = n_penalties

    def _score(self, X, y):
        scores = np.zeros(X.shape[1])
        least = l1_min_c(X, y, loss="log")
        for C in least * np.geomspace(1, 1000, self.n_penalties):
            size = np.abs(l1_logistic(X, y, C))
            scores += (size > 0) + np.where(scores == 0, size / (1 + size.max()), 0)
        return scores


def l1_logistic(X, y, C):
    """Coefficients (D,) of an L1-logistic regression."""
    model = LogisticRegression(C=C, l1_ratio=1.0, solver="liblinear", random_state=0)
    return model.fit(X, y).coef_[0]


class ForestImportance(ScoreSelector):
    """Mean decrease in impurity over a random forest.

    Parameters
    ----------
    n_features_to_select : int, default=50
    n_trees : int, default=500
    random_state : int or None, default=None
    """

    def __init__(self, n_features_to_select=50, n_trees=500, random_state=None):
        super().__init__(n_features_to_select)
        self.n_trees = n_trees
        self.random_state = random_state

    def _score(self, X, y):
        forest = RandomForestClassifier(self.n_trees, random_state=self.random_state)
        return forest.fit(X, y).feature_importances_


class RecursiveElimination(ScoreSelector):
    """Drops the weakest feature of a ridge-logistic regression, again and again.

    Parameters
    ----------
    n_features_to_select : int, default=50
    C : float, default=0.1
    """

    def __init__(self, n_features_to_select=50, C=0.1):
        super().__init__(n_features_to_select)
        self.C = C

    def _score(self, X, y):
        model = LogisticRegression(C=self.C, max_iter=1000)
        return -RFE(model, n_features_to_select=1).fit(X, y).ranking_.astype(float)


class Chance(ScoreSelector):
    """Features in an order drawn by lot: what any choice is worth.

    Parameters
    ----------
    n_features_to_select : int, default=50
    random_state : int or None, default=None
    """

    def __init__(self, n_features_to_select=50, random_state=None):
        super().__init__(n_features_to_select)
        self.random_state = random_state

    def _score(self, X, y):
        return np.random.default_rng(self.random_state).permutation(X.shape[1]).astype(float)
