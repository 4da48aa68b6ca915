"""Every method of the tables, by its name there."""

from collections.abc import Callable
from dataclasses import dataclass

from ddml_fs import DDML
from experiments.baselines import effects as rivals


@dataclass(frozen=True)
class Method:
    """A row of the tables.

    Attributes
    ----------
    make : callable
        From a target, "ate" or "att", and a seed to an estimator.
    continuous : bool
        Whether it takes continuous treatments.
    stacked : bool
        Whether it takes several outcomes of the same rows at once.
    """

    make: Callable
    continuous: bool = False
    stacked: bool = False


def rival(kind, continuous=False, **options):
    """A baseline; networks are stacked."""
    stacked = issubclass(kind, rivals.NetworkEstimator)
    return Method(
        lambda target, seed: kind(target=target, random_state=seed, **options), continuous, stacked
    )


def partially_linear(nuisance, **options):
    """DDML with one constant effect, and so one effect for all targets."""
    return Method(
        lambda target, seed: DDML(nuisance, score="partially_linear", random_state=seed, **options),
        True,
    )


def interactive(nuisance, **options):
    """DDML with effects that vary."""
    return Method(
        lambda target, seed: DDML(
            nuisance, score="interactive", target=target, random_state=seed, **options
        )
    )


METHODS = {
    "OLS-1": rival(rivals.OLS1, continuous=True),
    "OLS-2": rival(rivals.OLS2),
    "KNN": rival(rivals.KNN),
    "BART": rival(rivals.BART, continuous=True),
    "CFR-wass": rival(rivals.CFR, distance="wasserstein"),
    "CFR-mmd": rival(rivals.CFR, distance="mmd"),
    "SITE": rival(rivals.SITE),
    "DeR-CFR": rival(rivals.DeRCFR),
    "DIGNet": rival(rivals.DIGNet),
    "FCCL": rival(rivals.FCCL),
    "DML-RF": rival(rivals.DMLForest, continuous=True),
    "DML-MLP": rival(rivals.DMLPerceptron, continuous=True),
    "C-DML": rival(rivals.CDML, continuous=True),
    "DML-HGB": rival(rivals.DMLBoosting, continuous=True),
    "AIPW-HGB": rival(rivals.AIPWBoosting),
    "causal forest": rival(rivals.CausalForest, continuous=True),
    "DDML-RF": partially_linear("rf"),
    "DDML-MLP": partially_linear("mlp"),
    "DDML-stacked": partially_linear("stacked"),
    "DDML-RF, interactive": interactive("rf"),
    "DDML-MLP, interactive": interactive("mlp"),
    "DDML-smooth, interactive": interactive("smooth"),
    "DDML-stacked, interactive": interactive("stacked"),
}
