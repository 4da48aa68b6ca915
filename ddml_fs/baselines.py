"""What DDML is measured against wherever the package shows itself: naive contrasts, plain DML."""

import numpy as np
from sklearn.base import is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import KFold, cross_val_predict

from ddml_fs.engine.devices import limit_threads
from ddml_fs.scores import Moments, PartiallyLinear, residuals


def naive_difference(y, treatment) -> Moments:
    """The slope of y on the treatment alone; for a 0/1 treatment, the difference of means.

    Examples
    --------
    >>> float(naive_difference(np.array([1.0, 2, 5, 6]), np.array([0.0, 0, 1, 1])).theta)
    4.0
    """
    v, e = residuals(treatment, treatment.mean(), y, y.mean())
    return PartiallyLinear().of_residuals(v, e)


def quick_boosting(binary=True, random_state=None):
    """Small boosting models for (treatment, outcome): a tenth of the time of the defaults."""
    settings: dict = {"max_iter": 40, "max_leaf_nodes": 15, "random_state": random_state}
    kind = HistGradientBoostingClassifier if binary else HistGradientBoostingRegressor
    return kind(**settings), HistGradientBoostingRegressor(**settings)


def plain_dml(X, y, treatment, models=None, n_folds=5, random_state=None) -> Moments:
    """Partially linear DML: cross-fitted nuisances on all covariates, residual on residual.

    Parameters
    ----------
    X, y, treatment : arrays
    models : pair of estimators, optional
        For treatment and outcome; histogram gradient boosting unless given.
    n_folds : int
    random_state : int, optional
        Seed of the split and of the boosting.

    Returns
    -------
    estimate : Moments
    """
    if models is None:
        binary = len(np.unique(treatment)) == 2
        kind = HistGradientBoostingClassifier if binary else HistGradientBoostingRegressor
        models = (
            kind(random_state=random_state),
            HistGradientBoostingRegressor(random_state=random_state),
        )
    folds = KFold(n_folds, shuffle=True, random_state=random_state)

    def held_out(model, target):
        if is_classifier(model):
            return cross_val_predict(model, X, target, cv=folds, method="predict_proba")[:, 1]
        return cross_val_predict(model, X, target, cv=folds)

    with limit_threads(1):  # threads of boosting that wait for one another stall a busy machine
        m, g = held_out(models[0], treatment), held_out(models[1], y)
    return PartiallyLinear().of_residuals(*residuals(treatment, m, y, g))
