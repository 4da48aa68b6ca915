"""DML-HGB: plain DML with scikit-learn's boosting, today's practical choice."""

import numpy as np
from doubleml import DoubleMLData, DoubleMLPLR
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import KFold

BOOSTING = {"max_iter": 400, "learning_rate": 0.05, "early_stopping": True, "max_leaf_nodes": 15}


def partially_linear_dml(X, y, treatment, model_y, model_t, n_folds=5, random_state=None):
    """A fitted DoubleML partially linear model, with a split that the seed decides."""
    data = DoubleMLData.from_arrays(X, y, treatment)
    model = DoubleMLPLR(data, model_y, model_t, n_folds=n_folds, draw_sample_splitting=False)
    split = KFold(n_folds, shuffle=True, random_state=random_state).split(X)
    model.set_sample_splitting([list(split)])
    return model.fit()


class DMLBoosting(BaseEstimator):
    """Partially linear DML with histogram gradient boosting for both nuisances.

    Parameters
    ----------
    n_folds : int, default=5
        Folds of the cross-fitting.
    random_state : int or None, default=None
        Seed of the split and of the boosting.
    """

    def __init__(self, n_folds=5, random_state=None):
        self.n_folds = n_folds
        self.random_state = random_state

    def fit(self, X, y, *, treatment):
        """Fit."""
        binary = len(np.unique(treatment)) == 2
        kind = HistGradientBoostingClassifier if binary else HistGradientBoostingRegressor
        options = {**BOOSTING, "random_state": self.random_state}
        self.model_ = partially_linear_dml(
            X,
            y,
            treatment,
            HistGradientBoostingRegressor(**options),
            kind(**options),
            self.n_folds,
            self.random_state,
        )
        self.effect_, self.stderr_ = float(self.model_.coef[0]), float(self.model_.se[0])
        return self

    def conf_int(self, level=0.95):
        """Normal interval."""
        low, high = self.model_.confint(level=level).iloc[0]
        return low, high
