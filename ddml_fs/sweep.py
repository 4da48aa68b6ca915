"""The sweep: each feature in turn is the treatment, all in one cross-fitting."""

import logging
from dataclasses import dataclass, replace
from functools import partial
from zlib import crc32

import numpy as np
from sklearn.utils import check_random_state

from ddml_fs.chunks import chunks
from ddml_fs.domains import across_domains
from ddml_fs.encoding import Target, strata_of
from ddml_fs.engine.devices import in_threads, n_threads
from ddml_fs.engine.folds import draw_seed
from ddml_fs.engine.plan import make_plan
from ddml_fs.engine.resources import Resources
from ddml_fs.evidence import collect, joined
from ddml_fs.features import ROOMY, Features
from ddml_fs.hinges import bent_columns
from ddml_fs.nuisances import Additive, Ridge
from ddml_fs.nuisances.additive import WIDEST
from ddml_fs.scores import Logistic, PartiallyLinear, residuals
from ddml_fs.weights import weighted_mean

SCREENS = 2  # most consequences that bias the first screen are excluded from the second
DOSES = ("auto", "linear", "spline")
LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class SweepInput:
    """Data of a sweep.

    Attributes
    ----------
    features : Features
    target : Target
    domain : int array of shape (N,)
    weight : array of shape (N,)
        With mean 1.
    cluster : int array of shape (N,), or None
        Rows that depend on one another.
    """

    features: Features
    target: Target
    domain: np.ndarray
    weight: np.ndarray
    cluster: np.ndarray | None = None

    @property
    def error_df(self):
        """Degrees of freedom of standard errors: clusters without domains, or infinite."""
        if self.cluster is None:
            return np.inf
        return int(self.cluster.max() - self.domain.max())


@dataclass(frozen=True, eq=False, kw_only=True)
class SweepResult(SweepInput):
    """Data and results of a sweep.

    Attributes
    ----------
    fold : int array of shape (N,)
    evidence : list of Evidence
        One per outcome.
    bent : bool array of shape (F,)
        Features whose effects are tested as curves.
    stable : bool array of shape (F,), or None
        Features that are covariates; None: all.
    """

    fold: np.ndarray
    evidence: list
    bent: np.ndarray
    stable: np.ndarray | None = None


def score_for(scale, target):
    """The score: effects on the log-odds of labels, or on the mean.

    Parameters
    ----------
    scale : {"auto", "log_odds", "mean"}
    target : Target
    """
    if scale == "log_odds" and target.classes is None:
        raise ValueError("scale='log_odds' needs labels in y, got numbers.")
    return PartiallyLinear() if scale == "mean" or target.classes is None else Logistic()


def seed_for(random_state, checkpoint, given):
    """The seed. With a checkpoint and no seed, it depends on the data only, to be found again."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    if random_state is None and checkpoint is not None:
        return crc32(given.features.Z.tobytes() + np.asarray(given.target.y).tobytes()) >> 1
    return draw_seed(check_random_state(random_state))


def nuisance_for(features, ranking):
    """The nuisance that "auto" stands for: additive, or ridge if there are too many columns.

    Ridge also for the order by redundancy, which accounts for the other columns itself.
    """
    wide = features.Z.shape[1] > WIDEST * len(features.Z)
    return Ridge() if wide or ranking == "redundancy" else Additive()


def bent_features(features, hinges, column, e, part, weight):
    """Features whose hinge functions lower the held-out loss.

    Parameters
    ----------
    features : Features
    hinges : array of shape (N, H)
    column : int array of shape (H,)
        The column of ``features.Z`` of each hinge function.
    e : array of shape (N, C)
        Outcomes, centred.
    part : int array of shape (N,)
        Folds.
    weight : array of shape (N,)

    Returns
    -------
    bent : bool array of shape (F,)
    """
    A = np.sqrt(weight)[:, None] * np.column_stack([np.ones(len(e)), features.Z / features.unit])
    gram = A.T @ A + 1e-3 * len(A) * np.eye(A.shape[1])
    H = hinges / np.maximum(hinges.std(0), 1e-9)
    both = np.sqrt(weight)[:, None] * np.column_stack([H, e])
    both = both - A @ np.linalg.solve(gram, A.T @ both)
    H, e = both[:, : H.shape[1]], both[:, H.shape[1] :]
    owner = features.own[column]
    bent = np.zeros(features.n_features, dtype=bool)
    for f in np.unique(owner):
        B = H[:, owner == f]
        G = np.stack([B[part == k].T @ B[part == k] for k in np.unique(part)])
        U = np.stack([B[part == k].T @ e[part == k] for k in np.unique(part)])
        ridge = 1e-3 * np.trace(G.sum(0)) * np.eye(B.shape[1])
        b = np.linalg.solve(G.sum(0) - G + ridge, U.sum(0) - U)
        gain = (2 * U * b).sum((1, 2)) - np.einsum("fkc,fkl,flc->f", b, G, b)
        bent[f] = gain.mean() > gain.std(ddof=1) / np.sqrt(len(gain))
    return bent


def sweep(
    given,
    nuisance,
    score,
    *,
    seed,
    n_folds,
    covariates,
    resources,
    dose="auto",
    folds=None,
    swept=None,
    n_shadows=0,
    stable=None,
):
    """The evidence on every feature.

    Parameters
    ----------
    given : SweepInput
    nuisance : Nuisance
    score : ResidualScore
    seed, n_folds : int
    covariates : {"all", "stable", "strict"}
        Which features are covariates, see :func:`~ddml_fs.sweep.find_stable`.
    resources : Resources
    dose : {"auto", "linear", "spline"}
        Whether effects of numbers are lines or curves; "auto": curves if they lower the held-out
        loss.
    folds : list of Fold, optional
        By default they are drawn.
    swept : int array, optional
        The features that are treatments; by default all. Evidence is on these features only.
    n_shadows : int
        If positive, that many of the last features are the only treatments, and no covariates.
    stable : bool array of shape (F - n_shadows,), optional
        The stable features, if they are known.

    Returns
    -------
    result : SweepResult
    """
    features, target, domain = given.features, given.target, given.domain
    weight = given.weight
    if not features.n_features:
        raise ValueError("X must have a column that varies, got only constant columns.")
    if given.error_df < 1:
        raise ValueError(
            "cluster must have more clusters than there are domains, got "
            f"{given.cluster.max() + 1} clusters and {domain.max() + 1} domains."
        )
    # In standard deviations: what counts as a negligible effect must not depend on units.
    outcomes = np.column_stack(target.outcomes) / target.unit
    real = np.arange(features.n_features) < features.n_features - n_shadows
    curves = dose != "linear" and isinstance(nuisance, Additive)
    roomy = np.inf if dose == "spline" else ROOMY
    hinges, column = bent_columns(features, roomy if curves else 0.0, real[features.own])

    def evidence(model, stable, bends, resources=None, swept=None):
        """Evidence given the stable features as covariates, with or without hinge functions."""
        at = column if bends else column[:0]
        Z = np.column_stack([features.Z, hinges]) if len(at) else features.Z
        own = np.r_[features.own, features.own[at]]
        straight = np.arange(len(own)) < len(features.own)
        covariates = np.ones(len(own), bool) if stable is None else stable[own]
        binary = np.r_[features.binary, np.zeros(len(at), bool)]
        treated = np.arange(len(own)) if swept is None else np.flatnonzero(np.isin(own, swept))
        plan = make_plan(
            Z,
            outcomes,
            check_random_state(seed),
            treatments=None if swept is None else Z[:, treated],
            own=treated,
            binary_T=binary[treated],
            label=score.label,
            covariates=covariates & (features.near == np.arange(features.n_features))[own],
            block=features.near[own],
            domain=domain,
            n_folds=n_folds,
            strata=strata_of(target, domain, n_folds),
            groups=given.cluster,
            weight=weight,
            folds=folds,
        )
        fold = fold_of(plan)
        bent = np.zeros(features.n_features, bool)
        if bends and dose == "spline":
            bent[own[~straight]] = True
        elif len(at):
            centred = outcomes - weighted_mean(outcomes, weight)
            bent = bent_features(features, hinges, column, centred, fold, weight)
        predictions = model.predict(plan, resources=resources)
        straight, tested = straight[treated], (straight | bent[own])[treated]
        _, first, own = np.unique(own[treated], return_index=True, return_inverse=True)
        rows = {"domain": domain, "fold": fold, "dof": predictions.dof}
        rows |= {"weight": weight, "cluster": given.cluster}

        def part(c, features):
            """Evidence on a slice of the features, about outcome c."""
            at = np.flatnonzero((features.start <= own) & (own < features.stop))
            hat, T = predictions.of(0, c, slice(None)), plan.T[:, at]
            g = hat.g[:, first[features]]
            v, e = residuals(T, hat.m[:, at], plan.Y[:, c, None].astype(T.dtype), g)
            columns = {"own": own[at] - features.start, "Z": T}
            columns |= {"straight": straight[at], "tested": tested[at]}
            return collect(score, v, e, g, **columns, **rows)

        found = [
            in_parts(partial(part, c), len(domain), len(first)) for c in range(plan.Y.shape[1])
        ]
        return SweepResult(**vars(given), fold=fold, evidence=found, bent=bent, stable=stable)

    progress = resources.progress
    if n_shadows:
        swept = np.flatnonzero(~real)
        stable = real if stable is None else np.r_[stable, np.zeros(n_shadows, bool)]
    elif stable is None and covariates != "all" and domain.max() > 0:

        def screen(stable):
            return evidence(Ridge(), stable, bends=False, resources=Resources(progress=progress))

        stable = find_stable(lambda stable: screen(stable).evidence, covariates, progress)
    progress.enter("sweep")
    result = evidence(nuisance, stable, bends=True, resources=resources, swept=swept)
    LOGGER.info("%d features are tested as curves", result.bent.sum())
    return result


def in_parts(part, n_rows, n_features):
    """Evidence on all features, a few at a time: residuals and scores take much memory.

    ``part`` is a function from a slice of the features to the evidence on them.
    """
    influence = np.empty((n_rows, n_features), np.float32)

    def collected(at):
        own = part(at)
        influence[:, at] = own.influence
        return replace(own, influence=influence[:, :0])

    found = list(in_threads(collected, chunks(n_features, 32 * n_rows, n_threads())))
    return replace(joined(found), influence=influence)


def find_stable(evidence, covariates, progress):
    """Features whose effects do not differ much between domains, found by quick sweeps.

    Parameters
    ----------
    evidence : callable
        From the stable features (None: all) to a list of Evidence given them as covariates.
    covariates : {"stable", "strict"}
        "stable": all but those whose effects clearly differ, as leaving out a confounder biases the
        effects of others. "strict": only those whose effects do not seem to differ, as a covariate
        with an effect that differs lets those of others seem to.
    progress : Progress

    Returns
    -------
    stable : bool array of shape (F,), or None
        None without stable features: then all are covariates.
    """
    stable = None
    for _ in range(SCREENS):
        progress.enter("screening for unstable features")
        parts = [across_domains(*s.by_domain()) for s in evidence(stable)]
        strict = covariates == "strict"
        stable = np.all([part.stable if strict else ~part.clearly_unstable for part in parts], 0)
        LOGGER.info("Screening: %d of %d features are stable", stable.sum(), len(stable))
        if stable.sum() < 2:
            stable = None
    return stable


def fold_of(plan):
    """The fold of every row, (N,)."""
    fold = np.empty(len(plan.X), dtype=int)
    for k, part in enumerate(plan.folds):
        fold[part.hold] = k
    return fold
