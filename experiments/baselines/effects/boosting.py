"""DML-HGB and AIPW-HGB: DoubleML with scikit-learn's boosting, today's practical choice."""

from doubleml import DoubleMLData, DoubleMLIRM
from doubleml.utils import PSProcessorConfig
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import StratifiedKFold

from experiments.baselines.effects.base import EffectEstimator, require_binary
from experiments.baselines.effects.dml import PartiallyLinearDML

BOOSTING = {"max_iter": 400, "learning_rate": 0.05, "early_stopping": True, "max_leaf_nodes": 15}


def boosters(random_state):
    """A regressor and a classifier."""
    options = {**BOOSTING, "random_state": random_state}
    return HistGradientBoostingRegressor(**options), HistGradientBoostingClassifier(**options)


class DMLBoosting(PartiallyLinearDML):
    """Partially linear DML with histogram gradient boosting for both nuisances."""

    def _models(self):
        return boosters(self.random_state)


class AIPWBoosting(EffectEstimator):
    """Augmented inverse-propensity weighting with histogram gradient boosting.

    One regression for each arm, a classifier for the propensity. The treatment must be binary.

    Parameters
    ----------
    target : {"ate", "att"}, default="ate"
    random_state : int, default=0
        Seed of the split and of the boosting.
    n_folds : int, default=5
        Folds of the cross-fitting; each has the same share of treated rows.
    clip : float, default=0.01
        Propensities are kept this far from 0 and 1.
    """

    def __init__(self, target="ate", random_state=0, n_folds=5, clip=0.01):
        super().__init__(target, random_state)
        self.n_folds = n_folds
        self.clip = clip

    def _fit(self, X, y, t):
        require_binary(t, "AIPW-HGB")
        model = DoubleMLIRM(
            DoubleMLData.from_arrays(X, y, t),
            *boosters(self.random_state),
            n_folds=self.n_folds,
            score={"ate": "ATE", "att": "ATTE"}[self.target],
            ps_processor_config=PSProcessorConfig(clipping_threshold=self.clip),
            draw_sample_splitting=False,
        )
        folds = StratifiedKFold(self.n_folds, shuffle=True, random_state=self.random_state)
        model.set_sample_splitting([list(folds.split(X, t))])
        model.fit()
        self.effect_, self.stderr_ = float(model.coef[0]), float(model.se[0])
