"""The same score with linear nuisances: how far from linear the confounding is."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from ddml_fs.engine.ridge import standardised
from ddml_fs.inference import stderr_of
from ddml_fs.nuisances.closed_form import logistic_predict, ridge_predict
from ddml_fs.weights import weighted_mean

SHRINKAGE = 0.1  # in units of D / n: hardly any, except with more columns than rows


@dataclass(frozen=True)
class LinearGap:
    """Difference between an estimate and the one with linear nuisances.

    Attributes
    ----------
    size : float
        In standard errors of the estimate.
    z : float
        In standard errors of the difference itself (Hausman, 1978).
    """

    size: float
    z: float


def linear_moments(score, X, T, y, weight=None):
    """Moments of a score with linear nuisances that are fitted on all rows.

    Parameters
    ----------
    score : Score
    X : array of shape (N, D)
    T, y : arrays of shape (N,)
    weight : array of shape (N,), optional

    Returns
    -------
    moments : Moments

    Examples
    --------
    >>> from ddml_fs.scores import PartiallyLinear
    >>> X = np.random.default_rng(0).standard_normal((100, 2))
    >>> T = X[:, 0] + np.random.default_rng(1).standard_normal(100)
    >>> round(float(linear_moments(PartiallyLinear(), X, T, 2 * T + X[:, 1]).theta), 2)
    2.0
    """
    rows = np.arange(len(X))
    weight = np.ones(len(X)) if weight is None else weight
    A = standardised(X.astype(float), rows, rows, weight).train

    def fitted(target, part=slice(None)):
        return ridge_predict(A[part], target[part], A, SHRINKAGE, weight[part])

    if score.arms:
        # With a constant propensity this is the regression adjustment of both arms.
        hat = {f"mu_{a}": fitted(y, T == a) for a in (0, 1)} | {
            "m": np.full(len(T), weighted_mean(T, weight))
        }
    else:
        g = logistic_predict(A, y, A, SHRINKAGE, weight) if score.label else fitted(y)
        hat = {"m": fitted(T), "g": g}
    return score.moments(T, y, SimpleNamespace(**hat), weight)


def linear_gap(moments, effect, stderr, influence, clusters=None):
    """How far an estimate is from the one with linear nuisances.

    Parameters
    ----------
    moments : Moments
        From :func:`linear_moments`.
    effect, stderr : float
        The estimate.
    influence : array of shape (N,)
        Its influence function.
    clusters : int array of shape (N, 1) or (N, 2), optional

    Returns
    -------
    gap : LinearGap
    """
    away = abs(float(moments.theta) - effect)
    noise = float(stderr_of(moments.influence - influence, clusters))
    return LinearGap(away / max(stderr, 1e-300), away / max(noise, 1e-300))
