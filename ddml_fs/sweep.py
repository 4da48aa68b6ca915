"""Every column a treatment: the residuals of all of them, from one run of the engine."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_random_state

from ddml_fs.engine.losses import DELTA, residuals
from ddml_fs.engine.plan import plan_problems
from ddml_fs.engine.run import run


@dataclass(frozen=True)
class Sweep:
    """Held-out residuals of F treatments with one outcome.

    Attributes
    ----------
    v, e : arrays of shape (N, F)
        Residuals of the treatments, and of the outcome without each; for a continuous outcome
        those of the outcome are in units of their variance, so that v·e is the score.
    information : array of shape (N, F)
        Per unit of v²: p(1 − p) for a label, 1 / σ² for a continuous outcome.
    fold : int array of shape (N,)
        The fold of a row in the first split.
    """

    v: np.ndarray
    e: np.ndarray
    information: np.ndarray
    fold: np.ndarray


def sweep(X, binary, outcomes, estimator, *, strata, seed, **options):
    """Residuals of every column, for every outcome.

    Parameters
    ----------
    X : array of shape (N, F)
    binary : bool array of shape (F,)
        Which columns are 0/1.
    outcomes : list of arrays of shape (N,)
    estimator : DDML
        Its settings; with the logistic score the outcomes are 0/1 labels.
    strata : int array of shape (N,), optional
        Labels that every fold has in the same shares.
    seed : int, RandomState or None
    **options
        Of :func:`ddml_fs.engine.run.run`: covariates, devices, workers, memory, checkpoint and
        progress.

    Returns
    -------
    sweeps : list of Sweep
        One an outcome.
    """
    label = estimator.score == "logistic"
    problems = plan_problems(
        [(j, bool(b)) for j, b in enumerate(binary)],
        [(outcome, label) for outcome in outcomes],
        len(X),
        check_random_state(seed),
        n_folds=estimator.n_folds,
        n_repeats=estimator.n_repeats,
        strata=strata,
        valid_share=estimator.valid_share,
    )
    settings = estimator._settings()
    solutions = run(problems, X, settings, estimator.nuisance, detail=False, **options)

    number = {id(outcome): c for c, outcome in enumerate(outcomes)}
    # Every row is held out once a repeat: the mean over the repeats.
    m, g = np.zeros((2, len(outcomes), *X.shape), dtype=np.float32)
    for q, solution in zip(problems, solutions, strict=True):
        at = number[id(q.outcome)], q.fold.hold, q.treatment
        m[at] += solution.m / estimator.n_repeats
        g[at] += solution.g / estimator.n_repeats
    fold = np.empty(len(X), dtype=int)
    folds = list({id(q.fold): q.fold for q in problems}.values())[: estimator.n_folds]
    for k, part in enumerate(folds):
        fold[part.hold] = k

    sweeps = []
    for c, outcome in enumerate(outcomes):
        v, e = residuals(X, m[c], outcome[:, None].astype(np.float32), g[c])
        if label:
            p = np.clip(g[c], 0, 1)
            information = p * (1 - p)
        else:
            scale = 1 / (np.mean(e**2, 0, dtype=np.float64) + DELTA)
            e, information = e * scale, np.broadcast_to(scale, e.shape)
        sweeps.append(Sweep(v, e, information, fold))
    return sweeps
