"""Every selector of the study, by the name in its tables."""

import numpy as np

from ddml_fs import CausalFeatureSelector
from experiments.baselines import selectors as rivals

OURS = ("DDML", "DDML-MLP", "DDML-RF", "DDML-ridge")
SLOW = ("DDML-RF", "CausalAnalysis", "Boruta")


def by_tstat(nuisance):
    """Features by the t of effects that one kind of nuisance gives."""
    return CausalFeatureSelector(1.0, nuisance=nuisance, ranking="tstat", random_state=0)


SELECTORS = {
    "DDML": CausalFeatureSelector(1.0, random_state=0),  # as it comes
    "DDML-MLP": by_tstat("shrunken"),
    "DDML-RF": by_tstat("shrunken_rf"),
    "DDML-ridge": by_tstat("ridge"),
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
    "CausalAnalysis": rivals.CausalAnalysis(n_treatments=100, random_state=0),
    "random": rivals.Chance(random_state=0),
}


def order_of(selector, source):
    """The features, best first, by a selector that sees the source alone."""
    if isinstance(selector, CausalFeatureSelector):
        selector.fit(source.X, source.y, sample_domain=source.domain)
        return np.argsort(selector.ranking_, kind="stable")
    return selector.fit(source.X, source.y).order()


def orders_of_splits(name, source, order):
    """An order for each split of a source, made without its test rows.

    That would take hours for the slow, and for three sources at a time: these take the order of
    the whole source, and so what is chosen on the source is chosen a little less well.
    """
    if name in ("all features", *SLOW) or source.domain is not None:
        return [order] * len(source.splits())
    return [order_of(SELECTORS[name], source.rows(train)) for train, _ in source.splits()]
