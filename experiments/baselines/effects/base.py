"""What all effect estimators compared with have in common."""

import numpy as np
from sklearn.base import BaseEstimator

from ddml_fs.inference import normal_interval


def is_binary(t):
    """Whether all treatments are 0 or 1."""
    return bool(np.isin(t, (0, 1)).all())


def require_binary(t, method):
    """Refuse a treatment that is not 0/1."""
    if not is_binary(t):
        raise ValueError(f"{method} needs a treatment of zeros and ones, got {np.unique(t)[:5]}")


class EffectEstimator(BaseEstimator):
    """Estimates the effect of a treatment; a subclass says how.

    Parameters
    ----------
    target : {"ate", "att"}, default="ate"
        Average effect over all rows, or over the treated; the same where the effect is constant.
    random_state : int, default=0

    Attributes
    ----------
    effect_ : float, or array of shape (R,)
        The effect; one for each replication where y had several columns.
    stderr_ : float, array of shape (R,), or None
        Its standard error, by methods that give one.
    """

    stderr_: float | np.ndarray | None = None

    def __init__(self, target="ate", random_state=0):
        self.target = target
        self.random_state = random_state

    def fit(self, X, y, *, treatment):
        """Estimate.

        Parameters
        ----------
        X : array of shape (N, D)
        y : array of shape (N,)
        treatment : array of shape (N,)
        """
        X, y, t = (np.asarray(a, dtype=float) for a in (X, y, treatment))
        self._fit(X, y, t)
        return self

    def _fit(self, X, y, t):
        """Set ``effect_`` and, where the method gives one, ``stderr_``."""
        raise NotImplementedError

    def average(self, effects, t):
        """Average individual effects (N, …) over the rows of the target."""
        rows = t == 1 if self.target == "att" else slice(None)
        mean = effects[rows].mean(0)
        return float(mean) if np.ndim(mean) == 0 else mean

    def conf_int(self, level=0.95):
        """Normal interval; not a number where the method gives no standard error."""
        if self.stderr_ is None:
            return np.nan, np.nan
        half = normal_interval(0.0, 1.0, level)[1] * self.stderr_
        return self.effect_ - half, self.effect_ + half
