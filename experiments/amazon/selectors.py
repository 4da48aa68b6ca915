"""Every selector of the study, by the name in its tables."""

import numpy as np

from ddml_fs import CausalFeatureSelector
from experiments.baselines import selectors as rivals

OURS = ("DDML-MLP", "DDML-RF", "DDML-ridge")
PAPER = ("DGBR", "EAMB", "CVS", "PCFS", "CIFD")


def ours(nuisance):
    """The package's selector, as it comes."""
    return CausalFeatureSelector(1.0, estimator=nuisance, random_state=0)


SELECTORS = {
    "DDML-MLP": ours("mlp"),
    "DDML-RF": ours("rf"),
    "DDML-ridge": ours("ridge"),
    "DGBR": rivals.DGBR(random_state=0),
    "EAMB": rivals.EAMB(),
    "CVS": rivals.CVS(),
    "PCFS": rivals.PCFS(),
    "CIFD": rivals.CIFD(),
    "F-test": rivals.FTest(),
    "mutual information": rivals.MutualInformation(),
    "L1-logistic": rivals.L1Logistic(),
    "ridge-logistic": rivals.RidgeLogistic(),
    "RFE": rivals.RecursiveElimination(),
    "forest importance": rivals.ForestImportance(random_state=0),
    "mRMR": rivals.MRMR(),
    "Boruta": rivals.Boruta(random_state=0),
    "stability selection": rivals.StabilitySelection(random_state=0),
    "ridge-DML": rivals.RidgeDML(random_state=0),
    "random": rivals.Chance(random_state=0),
}
# Too slow for an order of their own in each split of a source: theirs is that of the whole source,
# so that what they choose on the source is chosen less well.
SLOW = {"single source": ("DDML-RF",), "leave one domain out": ("DDML-RF", "CIFD", "Boruta")}


def order_of(selector, source):
    """The features, best first, by a selector that sees the source alone."""
    if isinstance(selector, CausalFeatureSelector):
        selector.fit(source.X, source.y, sample_domain=source.domain)
        return np.argsort(selector.ranking_, kind="stable")
    return selector.fit(source.X, source.y).order()
