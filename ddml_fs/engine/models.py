"""scikit-learn models as nuisance models."""

import numpy as np
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter


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


def weight_parameter(model):
    """Name by which ``fit`` of a model takes sample weights, or None if it takes none.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> weight_parameter(Ridge()), weight_parameter(make_pipeline(Ridge()))
    ('sample_weight', 'ridge__sample_weight')
    """
    if has_fit_parameter(model, "sample_weight"):
        return "sample_weight"
    if isinstance(model, Pipeline) and model.steps:
        name, last = model.steps[-1]
        inner = weight_parameter(last)
        return None if inner is None else f"{name}__{inner}"
    return None


def fit_weighted(model, X, y, weight=None):
    """Fit a model, with sample weights if they are given."""
    if weight is None:
        return model.fit(X, y)
    # The weights are passed by name, whatever metadata routing the user has enabled.
    with config_context(enable_metadata_routing=False):
        return model.fit(X, y, **{weight_parameter(model): weight})


def fit_predict(model, X, X_new, target, weight=None):
    """Predictions (n_new,) of a model fitted on X and target: probabilities by a classifier."""
    if np.ptp(target) == 0:  # a rare value may be missing in these rows
        return np.full(len(X_new), target[0])
    if is_classifier(model):
        fitted = fit_weighted(clone(model), X, target.astype(int), weight)
        return fitted.predict_proba(X_new)[:, 1]
    return fit_weighted(clone(model), X, target, weight).predict(X_new)
