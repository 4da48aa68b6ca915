"""Every column a treatment: the evidence on all of them, from one cross-fitting."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_random_state

from ddml_fs.domains import across_domains, collect
from ddml_fs.encoding import Columns, Target, strata_of
from ddml_fs.engine.plan import make_plan
from ddml_fs.nuisances import Ridge
from ddml_fs.scores import Logistic, PartiallyLinear, residuals

SCREENS = 2  # the second one is free of most consequences that bias the first


@dataclass(frozen=True, eq=False)
class SweepInput:
    """What a sweep reads.

    Attributes
    ----------
    X : array or sparse matrix of shape (N, D)
        The rows of the sources, as they were given.
    columns : Columns
        Its distinct columns.
    target : Target
    domain : int array of shape (N,)
    """

    X: np.ndarray
    columns: Columns
    target: Target
    domain: np.ndarray


@dataclass(frozen=True, eq=False)
class SweepResult(SweepInput):
    """What a sweep read and found, for those who build on it.

    Attributes
    ----------
    fold : int array of shape (N,)
    evidence : list of Evidence
        One per outcome.
    penalty : float
        λ by which the nuisances were shrunken.
    """

    fold: np.ndarray
    evidence: list
    penalty: float


def score_for(scale, target):
    """The score: on the log-odds of labels, or on the mean.

    Parameters
    ----------
    scale : {"auto", "log_odds", "mean"}
    target : Target
    """
    if scale == "log_odds" and target.classes is None:
        raise ValueError("scale='log_odds' needs labels in y, got numbers.")
    return PartiallyLinear() if scale == "mean" or target.classes is None else Logistic()


def sweep(given, nuisance, score, *, seed, n_folds, stable_only, resources):
    """The evidence on every column.

    Parameters
    ----------
    given : SweepInput
    nuisance : Nuisance
    score : ResidualScore
    seed, n_folds : int
    stable_only : bool
        Whether features whose effects differ between domains, as quick ridge sweeps find them, are
        no covariates.
    resources : Resources

    Returns
    -------
    result : SweepResult
    """
    columns, target, domain = given.columns, given.target, given.domain
    if columns.X.shape[1] == 0:
        raise ValueError("X must have a column that varies, got constant columns alone.")

    def evidence(model, covariates, resources=None):
        plan = make_plan(
            columns.X,
            np.column_stack(target.outcomes),
            check_random_state(seed),
            binary_T=columns.binary,
            label=score.label,
            covariates=covariates,
            n_folds=n_folds,
            strata=strata_of(target, domain, n_folds),
        )
        predictions = model.predict(plan, resources=resources)
        fold = np.empty(len(domain), dtype=int)
        for k, part in enumerate(plan.folds):
            fold[part.hold] = k
        found = []
        for c in range(plan.Y.shape[1]):
            hat = predictions.of(0, c, slice(None))
            y = plan.Y[:, c, None].astype(columns.X.dtype)
            v, e = residuals(columns.X, hat.m, y, hat.g)
            found.append(collect(score, v, e, hat.g, unit=columns.unit, domain=domain, fold=fold))
        return plan, fold, found

    stable = None
    for _ in range(SCREENS if stable_only and domain.max() > 0 else 0):
        parts = [across_domains(*s.by_domain()) for s in evidence(Ridge(), stable)[2]]
        stable = np.all([part.stable for part in parts], 0)
        if stable.sum() < 2:
            stable = None  # with nothing stable to condition on, on all
    plan, fold, found = evidence(nuisance, stable, resources)
    penalty = nuisance.shrinkage_of(plan)
    return SweepResult(**vars(given), fold=fold, evidence=found, penalty=penalty)
