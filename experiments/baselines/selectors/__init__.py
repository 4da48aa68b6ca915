"""Feature selectors to compare with, each with ``fit(X, y)``, ``scores_`` and ``order()``."""

from experiments.baselines.selectors.cifd import CIFD
from experiments.baselines.selectors.cvs import CVS
from experiments.baselines.selectors.dgbr import DGBR
from experiments.baselines.selectors.dml import CausalAnalysis, RidgeDML
from experiments.baselines.selectors.eamb import EAMB
from experiments.baselines.selectors.icp import InvariantPrediction
from experiments.baselines.selectors.information import MixedMutualInformation
from experiments.baselines.selectors.mrmr import MRMR
from experiments.baselines.selectors.pcfs import PCFS
from experiments.baselines.selectors.permutation import PermutationImportance
from experiments.baselines.selectors.resampling import Boruta, StabilitySelection
from experiments.baselines.selectors.scikit import (
    Chance,
    ForestImportance,
    FTest,
    L1Logistic,
    MutualInformation,
    RecursiveElimination,
    RidgeLogistic,
)
from experiments.baselines.selectors.terciles import Terciles

__all__ = [
    "CIFD",
    "CVS",
    "DGBR",
    "EAMB",
    "MRMR",
    "PCFS",
    "Boruta",
    "CausalAnalysis",
    "Chance",
    "FTest",
    "ForestImportance",
    "InvariantPrediction",
    "L1Logistic",
    "MixedMutualInformation",
    "MutualInformation",
    "PermutationImportance",
    "RecursiveElimination",
    "RidgeDML",
    "RidgeLogistic",
    "StabilitySelection",
    "Terciles",
]
