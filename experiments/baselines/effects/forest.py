"""Causal forest, by EconML."""

import numpy as np
from sklearn import config_context

from experiments.baselines.effects.base import EffectEstimator, is_binary
from experiments.baselines.effects.boosting import boosters


class CausalForest(EffectEstimator):
    """EconML's causal forest on residuals, with boosting for both nuisances.

    The average over all rows is EconML's doubly robust one for a binary treatment; for others,
    and over the treated, the mean of the rows' effects, with an upper bound as standard error.

    Parameters
    ----------
    target : {"ate", "att"}, default="ate"
    random_state : int, default=0
        Seed of the split, the boosting and the forest.
    n_folds : int, default=5
        Folds of the cross-fitting.
    n_estimators : int, default=100
        Trees, a multiple of four; EconML's own default.
    """

    def __init__(self, target="ate", random_state=0, n_folds=5, n_estimators=100):
        super().__init__(target, random_state)
        self.n_folds = n_folds
        self.n_estimators = n_estimators

    def _fit(self, X, y, t):
        # Imported here: EconML takes seconds to import, and nothing else needs it.
        from econml.dml import CausalForestDML

        regressor, classifier = boosters(self.random_state)
        binary = is_binary(t)
        model = CausalForestDML(
            model_y=regressor,
            model_t=classifier if binary else regressor,
            discrete_treatment=binary,
            cv=self.n_folds,
            n_estimators=self.n_estimators,
            n_jobs=1,
            random_state=self.random_state,
        )
        with config_context(enable_metadata_routing=False):  # EconML's parts do not know of it
            model.fit(y, t, X=X)
            if binary and self.target == "ate":
                found = model.ate_, model.ate_stderr_
            else:
                mean = model.ate_inference(X[t == 1] if self.target == "att" else X)
                found = mean.mean_point, mean.stderr_mean
        self.effect_, self.stderr_ = (float(np.ravel(value)[0]) for value in found)
