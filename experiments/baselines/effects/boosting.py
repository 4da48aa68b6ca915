"""DML-HGB and AIPW-HGB: DoubleML with scikit-learn's boosting, today's practical choice."""

from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from experiments.baselines.effects.dml import InteractiveDML, PartiallyLinearDML

BOOSTING = {"max_iter": 400, "learning_rate": 0.05, "early_stopping": True, "max_leaf_nodes": 15}


def boosters(random_state):
    """A regressor and a classifier."""
    options = {**BOOSTING, "random_state": random_state}
    return HistGradientBoostingRegressor(**options), HistGradientBoostingClassifier(**options)


class DMLBoosting(PartiallyLinearDML):
    """Partially linear DML with histogram gradient boosting for both nuisances."""

    def _models(self):
        return boosters(self.random_state)


class AIPWBoosting(InteractiveDML):
    """AIPW with histogram gradient boosting for the propensity and for each arm."""

    def _models(self):
        return boosters(self.random_state)
