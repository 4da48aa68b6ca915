"""DML-RF and DML-MLP, and AIPW with the same: plain DML, by DoubleML."""

import warnings

import pandas as pd
from doubleml import DoubleMLData, DoubleMLIRM, DoubleMLPLR
from doubleml.utils import PSProcessorConfig
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ddml_fs.scores import residuals
from experiments.baselines.effects.base import EffectEstimator, is_binary, require_binary


def partially_linear_dml(X, y, treatment, model_y, model_t, n_folds=5, random_state=None):
    """A fitted DoubleML partially linear model, with a split that the seed decides."""
    data = DoubleMLData.from_arrays(X, y, treatment)
    model = DoubleMLPLR(data, model_y, model_t, n_folds=n_folds, draw_sample_splitting=False)
    split = KFold(n_folds, shuffle=True, random_state=random_state).split(X)
    model.set_sample_splitting([list(split)])
    return model.fit()


class CrossFittedDML(EffectEstimator):
    """DML by DoubleML, cross-fitted; a subclass gives the score, its own the models.

    Parameters
    ----------
    target : {"ate", "att"}, default="ate"
    random_state : int, default=0
        Seed of the split and of the models.
    n_folds : int, default=5
        Folds of the cross-fitting.
    """

    def __init__(self, target="ate", random_state=0, n_folds=5):
        super().__init__(target, random_state)
        self.n_folds = n_folds

    def _models(self):
        """A regressor and a classifier."""
        raise NotImplementedError

    def _solve(self, X, y, t):
        """A fitted model of DoubleML."""
        raise NotImplementedError

    def _fit(self, X, y, t):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = self._solve(X, y, t)
        self.effect_, self.stderr_ = float(model.coef[0]), float(model.se[0])


class PartiallyLinearDML(CrossFittedDML):
    """Residual on residual; the effect is taken to be constant, the same for both targets.

    Attributes
    ----------
    residuals_ : DataFrame
        Held-out residuals ``v`` of the treatment and ``e`` of the outcome.
    """

    def _solve(self, X, y, t):
        regressor, classifier = self._models()
        model_t = classifier if is_binary(t) else regressor
        model = partially_linear_dml(X, y, t, regressor, model_t, self.n_folds, self.random_state)
        m, g = (model.predictions[name][:, 0, 0] for name in ("ml_m", "ml_l"))
        v, e = residuals(t, m, y, g)
        self.residuals_ = pd.DataFrame({"v": v, "e": e})
        return model


class InteractiveDML(CrossFittedDML):
    """Augmented inverse-propensity weighting.

    One regression for each arm, a classifier for the propensity. The treatment must be binary, and
    each fold has the same share of treated rows.

    Parameters
    ----------
    target, random_state, n_folds
        As in ``CrossFittedDML``.
    clip : float, default=0.01
        Propensities are kept this far from 0 and 1.
    """

    def __init__(self, target="ate", random_state=0, n_folds=5, clip=0.01):
        super().__init__(target, random_state, n_folds)
        self.clip = clip

    def _solve(self, X, y, t):
        require_binary(t, "AIPW")
        model = DoubleMLIRM(
            DoubleMLData.from_arrays(X, y, t),
            *self._models(),
            n_folds=self.n_folds,
            score={"ate": "ATE", "att": "ATTE"}[self.target],
            ps_processor_config=PSProcessorConfig(clipping_threshold=self.clip),
            draw_sample_splitting=False,
        )
        folds = StratifiedKFold(self.n_folds, shuffle=True, random_state=self.random_state)
        model.set_sample_splitting([list(folds.split(X, t))])
        return model.fit()


def forests(random_state):
    """A regressor and a classifier of 100 trees."""
    options = {"min_samples_leaf": 5, "n_jobs": 1, "random_state": random_state}
    return RandomForestRegressor(**options), RandomForestClassifier(**options)


def perceptrons(random_state):
    """A regressor and a classifier of 64 and 32 units."""
    options = {
        "hidden_layer_sizes": (64, 32),
        "batch_size": 64,
        "early_stopping": True,
        "max_iter": 200,
        "random_state": random_state,
    }
    kinds = (MLPRegressor, MLPClassifier)
    return tuple(make_pipeline(StandardScaler(), kind(**options)) for kind in kinds)


class DMLForest(PartiallyLinearDML):
    """Partially linear DML with random forests for both nuisances."""

    def _models(self):
        return forests(self.random_state)


class DMLPerceptron(PartiallyLinearDML):
    """Partially linear DML with scikit-learn's perceptrons for both nuisances."""

    def _models(self):
        return perceptrons(self.random_state)


class AIPWForest(InteractiveDML):
    """AIPW with random forests for the propensity and for each arm."""

    def _models(self):
        return forests(self.random_state)


class AIPWPerceptron(InteractiveDML):
    """AIPW with scikit-learn's perceptrons for the propensity and for each arm."""

    def _models(self):
        return perceptrons(self.random_state)
