"""Effect estimators to compare with, each with ``fit(X, y, treatment=t)`` and ``effect_``."""

from experiments.baselines.effects.bart import BART
from experiments.baselines.effects.base import EffectEstimator
from experiments.baselines.effects.boosting import AIPWBoosting, DMLBoosting
from experiments.baselines.effects.cdml import CDML
from experiments.baselines.effects.cfr import CFR
from experiments.baselines.effects.dercfr import DeRCFR
from experiments.baselines.effects.dignet import DIGNet
from experiments.baselines.effects.dml import (
    AIPWForest,
    AIPWPerceptron,
    DMLForest,
    DMLPerceptron,
)
from experiments.baselines.effects.fccl import FCCL
from experiments.baselines.effects.forest import CausalForest
from experiments.baselines.effects.neighbours import KNN
from experiments.baselines.effects.network import NetworkEstimator
from experiments.baselines.effects.ols import OLS1, OLS2
from experiments.baselines.effects.site import SITE

__all__ = [
    "BART",
    "CDML",
    "CFR",
    "FCCL",
    "KNN",
    "OLS1",
    "OLS2",
    "SITE",
    "AIPWBoosting",
    "AIPWForest",
    "AIPWPerceptron",
    "CausalForest",
    "DIGNet",
    "DMLBoosting",
    "DMLForest",
    "DMLPerceptron",
    "DeRCFR",
    "EffectEstimator",
    "NetworkEstimator",
]
