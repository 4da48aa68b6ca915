"""scikit-learn models on the covariates: those of the user, and boosting."""

from typing import ClassVar

import numpy as np
from joblib import delayed
from sklearn.base import is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from ddml_fs.engine.devices import limit_threads, threadpool_limits
from ddml_fs.engine.models import fit_predict, seeded, weight_parameter
from ddml_fs.engine.predictions import Predictions
from ddml_fs.engine.resources import Resources
from ddml_fs.nuisances.base import Nuisance
from ddml_fs.progress import run_parallel
from ddml_fs.validation import check_integer, check_number


class Estimators(Nuisance):
    """A model for the treatment and one for the outcome, fitted on the covariates.

    The outcome per arm is predicted by the outcome's model, fitted on the rows of the arm. A model
    whose ``random_state`` is None gets the seed of the fold.

    Parameters
    ----------
    treatment, outcome : estimators
        A classifier, for 0/1 targets, predicts by ``predict_proba``.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression, LogisticRegression
    >>> from ddml_fs import DDML
    >>> from ddml_fs.datasets import make_effect_data
    >>> data = make_effect_data("binary", n_samples=500, n_features=10, random_state=0)
    >>> effect = DDML((LogisticRegression(), LinearRegression()), random_state=0)
    >>> effect.fit(data.X, data.y, treatment=data.treatment).estimand_
    'ATE'
    """

    unit: ClassVar[str] = "pairs of models"  # of the progress

    def __init__(self, treatment, outcome):
        self.treatment = treatment
        self.outcome = outcome

    def check(self, score):
        """Raise for objects that are not estimators."""
        for model in (self.treatment, self.outcome):
            if not (hasattr(model, "fit") and hasattr(model, "get_params")):
                raise ValueError(f"nuisance must hold scikit-learn estimators, got {model!r}.")

    def check_weights(self):
        """Raise if a model takes no sample weights."""
        for model in (self.treatment, self.outcome):
            if weight_parameter(model) is None:
                raise ValueError(
                    "sample_weight needs nuisance models whose fit takes sample_weight, got "
                    f"{model!r}."
                )

    def pair(self, binary_T, binary_Y):
        """Unfitted models for the treatment and the outcome."""
        for model, binary, what in (
            (self.treatment, binary_T, "treatment"),
            (self.outcome, binary_Y, "outcome"),
        ):
            if is_classifier(model) and not binary:
                raise ValueError(
                    f"the nuisance model of the {what} must be a regressor, as the {what} is not "
                    f"0/1, got {model!r}."
                )
        return self.treatment, self.outcome

    def predict(self, plan, *, arms=False, resources=None):
        """Cross-fitted predictions, see :meth:`Nuisance.predict`."""
        resources = resources or Resources()

        def solve(i):
            k, c, f = plan.problem(i)
            fold, use = plan.folds[k], plan.inputs(f)
            pair = self.pair(plan.binary_T[f], plan.zero_one_Y[c])
            model_T, model_Y = seeded(pair, int(plan.seeds[k]))
            train = np.sort(fold.train)  # keeps the order of the table, for models that draw rows
            A, B = plan.X[train][:, use], plan.X[fold.hold][:, use]
            t, y = plan.T[train, f], plan.Y[train, c]
            w = plan.weight[train] if plan.weighted else None
            with threadpool_limits(1):  # OpenMP stores its limit per thread
                out = [fit_predict(model_T, A, B, t, w), fit_predict(model_Y, A, B, y, w)]
                for a in (0, 1) if arms else ():
                    own = w if w is None else w[t == a]
                    out.append(fit_predict(model_Y, A[t == a], B, y[t == a], own))
            return out

        predictions = Predictions.empty(plan, arms)
        resources.progress.start(plan.n_problems, self.unit)
        # Threads: forests, boosting and linear algebra release the GIL, and no data are copied.
        work = (delayed(solve)(i) for i in range(plan.n_problems))
        with limit_threads(1):
            solved = run_parallel(work, resources.progress, resources.n_jobs, prefer="threads")
        for i, values in enumerate(solved):
            predictions.put(plan, i, values)
        return predictions


class Boosting(Estimators):
    """scikit-learn's histogram gradient boosting on the covariates, with small trees.

    A 0/1 treatment or outcome is predicted by a classifier. The defaults are fast, and within a
    stack as accurate as larger models (experiments/effects/results/tuned.md).

    Parameters
    ----------
    max_iter : int, default=80
        Number of trees.
    learning_rate : float, default=0.1
    max_leaf_nodes : int, default=8
    l2_regularization : float, default=10.0
    """

    unit = "pairs of boosting models"

    def __init__(self, *, max_iter=80, learning_rate=0.1, max_leaf_nodes=8, l2_regularization=10.0):
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.max_leaf_nodes = max_leaf_nodes
        self.l2_regularization = l2_regularization

    def check(self, score):
        """Raise if settings are wrong."""
        for name, least in (("max_iter", 1), ("max_leaf_nodes", 2)):
            check_integer(getattr(self, name), name, least)
        check_number(self.learning_rate, "learning_rate", 1e-8, 10)
        check_number(self.l2_regularization, "l2_regularization", 0, np.inf)

    def check_weights(self):
        """Boosting takes sample weights."""

    def pair(self, binary_T, binary_Y):
        """Unfitted boosting for the treatment and the outcome."""
        options = self.get_params() | {"max_bins": 64, "early_stopping": False}
        return tuple(
            (HistGradientBoostingClassifier if b else HistGradientBoostingRegressor)(**options)
            for b in (binary_T, binary_Y)
        )
