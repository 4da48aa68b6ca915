"""The options of a selector, checked."""

import numpy as np

from ddml_fs.number import check_number_to_select
from ddml_fs.ranking import RANKINGS
from ddml_fs.sweep import DOSES
from ddml_fs.validation import check_integer, check_number, check_option


def check_selector(selector):
    """Raise if an option of a CausalFeatureSelector is wrong."""
    check_number_to_select(selector.n_features_to_select)
    if not callable(selector.ranking):
        check_option(selector.ranking, "ranking", RANKINGS)
    check_integer(selector.n_folds, "n_folds", 2)
    if selector.screen is not None:
        check_integer(selector.screen, "screen", 1)
    check_option(selector.covariates, "covariates", ("stable", "strict", "all"))
    check_option(selector.dose, "dose", DOSES)
    check_option(selector.scale, "scale", ("auto", "log_odds", "mean"))
    check_option(selector.task, "task", ("auto", "classification", "regression"))
    check_number(selector.fdr_level, "fdr_level", 0, 1)
    check_number(selector.risk_aversion, "risk_aversion", 0, np.inf)
    check_number(selector.memory_budget, "memory_budget", 1e-3, np.inf)


def check_no_weights(**given):
    """Raise if weights or clusters are given where rows are read in blocks or stay sparse.

    Examples
    --------
    >>> check_no_weights(sample_weight=None, cluster=[1, 2])
    Traceback (most recent call last):
    ...
    ValueError: cluster needs all rows in a dense table, got rows in blocks or a sparse matrix.
    """
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name} needs all rows in a dense table, got rows in blocks or a sparse matrix."
            )
