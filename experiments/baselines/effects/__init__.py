"""Effect estimators to compare with, each with ``fit(X, y, treatment=t)`` and ``effect_``."""

from experiments.baselines.effects.boosting import DMLBoosting
from experiments.baselines.effects.ols import OLS1

__all__ = ["OLS1", "DMLBoosting"]
