"""What is compared: DDML, DoubleML with boosting, and the score with the true nuisances."""

import warnings
from dataclasses import dataclass

import numpy as np

from ddml_fs import DDML
from ddml_fs.cautions import DDMLWarning
from ddml_fs.inference import normal_interval, stderr_of
from ddml_fs.scores import resolve_score
from experiments.baselines.effects.boosting import AIPWBoosting, DMLBoosting


@dataclass(frozen=True)
class Found:
    """An estimate, its standard error, its interval, and whether the fit warned.

    ``nuisance`` is the part of the standard error that allows for errors of the nuisances.
    """

    effect: float
    stderr: float
    low: float
    high: float
    warned: bool = False
    nuisance: float = 0.0


def by_ddml(nuisance, draw, score, seed, cluster=None):
    """The estimate of :class:`~ddml_fs.DDML`."""
    model = DDML(nuisance, score=score, n_jobs=1, random_state=1000 + seed)  # not the data's
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(draw.X, draw.y, treatment=draw.treatment, cluster=cluster)
    warned = any(issubclass(warning.category, DDMLWarning) for warning in said)
    return Found(model.effect_, model.stderr_, *model.conf_int(), warned, model.nuisance_stderr_)


def by_doubleml(draw, score, seed):
    """The estimate of DoubleML with scikit-learn's boosting, five folds."""
    kind = AIPWBoosting if score == "interactive" else DMLBoosting
    model = kind(random_state=seed).fit(draw.X, draw.y, treatment=draw.treatment)
    return Found(model.effect_, model.stderr_, *model.conf_int())


def by_truth(draw, score, seed, cluster=None):
    """The estimate with the true nuisance functions, which no method can be expected to beat."""
    T = draw.treatment
    binary = bool(np.isin(T, (0, 1)).all())
    moments = resolve_score(score, binary).moments(T, draw.y, draw)
    clusters = None if cluster is None else cluster[:, None]
    stderr = float(stderr_of(moments.influence, clusters))
    df = np.inf if cluster is None else len(np.unique(cluster)) - 1
    effect = float(moments.theta)
    return Found(effect, stderr, *normal_interval(effect, stderr, 0.95, df))


DEFAULT, NETWORKS, PEER, ORACLE = "DDML", "DDML, mlp", "DoubleML, boosting", "true nuisances"
WITH_CLUSTERS = {method: f"{method}, cluster=" for method in (DEFAULT, NETWORKS, ORACLE)}
OURS = (DEFAULT, NETWORKS, WITH_CLUSTERS[DEFAULT], WITH_CLUSTERS[NETWORKS])
METHODS = (DEFAULT, NETWORKS, PEER, ORACLE)


def methods_for(setting):
    """Names of the methods that a setting is tried with."""
    if setting.world != "clustered":
        return METHODS
    return (*METHODS, *WITH_CLUSTERS.values())


def estimate(method, draw, score, seed):
    """The estimate of a method.

    Parameters
    ----------
    method : str
        One of those of :func:`methods_for`.
    draw : Draw
    score : str
    seed : int

    Returns
    -------
    found : Found
    """
    plain = method.removesuffix(", cluster=")
    options = {} if plain == method else {"cluster": draw.cluster}
    if plain == PEER:
        return by_doubleml(draw, score, seed)
    if plain == ORACLE:
        return by_truth(draw, score, seed, **options)
    nuisance = {DEFAULT: "stacked", NETWORKS: "mlp"}[plain]
    return by_ddml(nuisance, draw, score, seed, **options)
