"""scikit-learn models as nuisance models."""

import numpy as np
from sklearn.base import clone, is_classifier


def seeded(pair, seed):
    """Clones of the models, with the seed for every ``random_state`` that is None."""
    models = []
    for model in pair:
        model = clone(model)
        seeds = [
            name
            for name, value in model.get_params().items()
            if name.split("__")[-1] == "random_state" and value is None
        ]
        models.append(model.set_params(**dict.fromkeys(seeds, seed)))
    return models


def fit_predict(model, X, X_new, target):
    """Predictions (n_new,) of a model fitted on X and target: probabilities by a classifier."""
    if np.ptp(target) == 0:  # a rare value may be missing in these rows
        return np.full(len(X_new), target[0])
    if is_classifier(model):
        return clone(model).fit(X, target.astype(int)).predict_proba(X_new)[:, 1]
    return clone(model).fit(X, target).predict(X_new)
