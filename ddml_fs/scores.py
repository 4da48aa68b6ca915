"""Orthogonal scores: what each one needs, ψ for every row, and the results that follow from ψ.

Every score is linear in the effect, ψ = ψ_a·θ + ψ_b. The effect, the influence function, the
information and two kinds of standard error follow from ψ_a and ψ_b, for one treatment or for
several at once.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import expit, logit

from ddml_fs.inference import stderr_of
from ddml_fs.validation import check_number, check_option
from ddml_fs.weights import column, weighted_mean

DELTA = 1e-8  # δ and ε of Eqs. 15, 17 and 23
CLIP = 0.01  # propensities are clipped this far from 0 and 1
LEAST_CHANCE = 1e-6  # probabilities are clipped this far from 0 and 1
# For the logistic score, in log-odds per standard deviation of the treatment's residual:
NEWTON_STEPS, TOLERANCE, LONGEST_STEP, LARGEST = 20, 1e-6, 2.0, 10.0


def at_least_tiny(values):
    """Values that are not 0 in their own precision, so that they can be divided by."""
    return np.maximum(values, np.finfo(values.dtype).tiny)


def log_odds(probability):
    """Log-odds of probabilities, which are clipped away from 0 and 1."""
    return logit(np.clip(probability, LEAST_CHANCE, 1 - LEAST_CHANCE))


def residuals(T, T_hat, Y, Y_hat):
    """Treatment and outcome residuals v and e, Eqs. 14 and 22. Tensors or NumPy arrays."""
    return T - T_hat, Y - Y_hat


def residual_on_residual(v, e):
    """θ = vᵀe / (vᵀv + δ), Eqs. 15 and 23, over the last axis. Tensors or NumPy arrays."""
    return (v * e).sum(-1) / ((v * v).sum(-1) + DELTA)


@dataclass(frozen=True)
class Moments:
    """ψ_a and ψ_b of the rows, and the results that follow from them.

    Attributes
    ----------
    psi_a, psi_b : arrays of shape (N,) or (N, F)
        ψ = ψ_a·θ + ψ_b of every row, for one treatment or for F treatments.
    dispersion : float or array of shape (F,), optional
        Variance of the outcome's residual divided by its variance in the model of the score: 1 for
        a label, σ² for a number. None if the score has no model-based standard error.
    weight : float or array of shape (N,)
        Weights of the rows.
    """

    psi_a: np.ndarray
    psi_b: np.ndarray
    dispersion: float | np.ndarray | None = None
    weight: float | np.ndarray = 1.0

    @cached_property
    def theta(self):
        """The effect: the root of the weighted mean of ψ; a float or an array of shape (F,)."""
        return (self._weight * self.psi_b).mean(0) / self._slope

    @cached_property
    def influence(self):
        """Each row's influence on the effect, with mean 0; same shape as ``psi_a``."""
        return self._weight * (self.psi_a * self.theta + self.psi_b) / self._slope

    @cached_property
    def _slope(self):
        """−mean ψ_a, at least a tiny number: a treatment without residuals has the effect 0."""
        return at_least_tiny(-(self._weight * self.psi_a).mean(0))

    @property
    def _weight(self):
        return column(self.weight, self.psi_a)

    @property
    def stderr(self):
        """Robust (sandwich) standard error, from the influence function."""
        return stderr_of(self.influence)

    @property
    def information(self):
        """Information of every row about the effect; same shape as ``psi_a``."""
        if self.dispersion is None:
            raise ValueError("this score has no model-based standard error; use stderr.")
        return -self._weight * self.psi_a / self.dispersion

    @property
    def model_stderr(self):
        """Model-based standard error, 1 / √information."""
        return 1 / np.sqrt(self.information.sum(0))


class Score:
    """An orthogonal score: what it needs, and what it estimates.

    Attributes
    ----------
    name : str
    arms : bool
        Whether outcome models per arm are needed.
    label : bool
        Whether the outcome must be a 0/1 label.
    binary_treatment : bool
        Whether the treatment must be 0/1.
    """

    name: ClassVar[str]
    arms: ClassVar[bool] = False
    label: ClassVar[bool] = False
    binary_treatment: ClassVar[bool] = False

    @property
    def estimand(self) -> str:
        """Name of the quantity that the effect estimates."""
        raise NotImplementedError

    def moments(self, T, Y, hat, weight=1.0) -> Moments:
        """ψ_a and ψ_b from treatment, outcome and nuisances.

        Parameters
        ----------
        T, Y : arrays of shape (N,) or (N, F)
        hat : object with ``m``, ``g`` and, for scores with arms, ``mu_0`` and ``mu_1``
            Held-out predictions, of the shape of T.
        weight : float or array of shape (N,)
        """
        raise NotImplementedError


class ResidualScore(Score):
    """A score that needs only the residuals v = T − m and e = Y − g."""

    def moments(self, T, Y, hat, weight=1.0):
        """ψ_a and ψ_b from treatment, outcome and nuisances."""
        v, e = residuals(T, hat.m, Y, hat.g)
        return self.of_residuals(v, e, hat.g, self.dispersion(e, weight), weight)

    def of_residuals(self, v, e, g=0.0, dispersion=None, weight=1.0) -> Moments:
        """ψ_a and ψ_b from residuals v and e and the prediction g; all (N,) or (N, F)."""
        return Moments(-(v**2) * self.variance(g), v * e, dispersion, weight)

    def variance(self, g):
        """The outcome's variance given X in the score's model, up to the dispersion."""
        return 1.0

    def dispersion(self, e, weight=1.0):
        """The dispersion, from the outcome's residuals."""
        return weighted_mean(e**2, weight) + DELTA


@dataclass(frozen=True)
class PartiallyLinear(ResidualScore):
    """Y = θT + f(X) + ζ: one constant effect of any treatment, ψ = (e − θv)·v, Eqs. 6 and 23.

    If effects vary between rows, θ is a weighted mean of them. The weights are the variances of the
    treatment given X.

    Examples
    --------
    >>> moments = PartiallyLinear().of_residuals(np.array([1.0, -1]), np.array([2.0, -2]))
    >>> round(float(moments.theta), 6), round(float(moments.stderr), 6)
    (2.0, 0.0)
    """

    name: ClassVar[str] = "partially_linear"
    estimand: ClassVar[str] = "partially linear slope"  # type: ignore[misc]


@dataclass(frozen=True)
class Logistic(ResidualScore):
    """The effect on the log-odds of a 0/1 label: the θ that solves Σ v·(y − p) = 0.

    The log-odds of p are those of g plus θv. The score is orthogonal at a zero effect, and its
    information is v²·p(1 − p).
    """

    name: ClassVar[str] = "logistic"
    estimand: ClassVar[str] = "log-odds slope"  # type: ignore[misc]
    label: ClassVar[bool] = True

    def of_residuals(self, v, e, g=0.0, dispersion=None, weight=1.0):
        """ψ_a and ψ_b at θ, which Newton's method finds, starting at zero."""
        y, start, w = e + g, log_odds(g), column(weight, v)
        spread = at_least_tiny(np.sqrt(weighted_mean(v**2, weight)).astype(v.dtype))
        theta, p = np.zeros_like(spread), expit(start)
        for _ in range(NEWTON_STEPS):
            information = at_least_tiny((w * v**2 * self.variance(p)).sum(0))
            step = (w * v * (y - p)).sum(0) / information
            step = np.clip(step * spread, -LONGEST_STEP, LONGEST_STEP) / spread
            theta = np.clip((theta + step) * spread, -LARGEST, LARGEST) / spread
            p = expit(start + theta * v)
            if np.abs(step * spread).max(initial=0) < TOLERANCE:
                break
        information = v**2 * self.variance(p)
        return Moments(-information, v * (y - p) + information * theta, dispersion, weight)

    def variance(self, g):
        """The variance of a label, g(1 − g)."""
        g = np.clip(g, 0, 1)
        return g * (1 - g)

    def dispersion(self, e, weight=1.0):
        """1: a label has no dispersion beyond its variance g(1 − g)."""
        return 1.0


@dataclass(frozen=True)
class Interactive(Score):
    """Effects of a 0/1 treatment that may vary with X: the augmented inverse-propensity score.

    Parameters
    ----------
    target : {"ate", "att"}
        The average over all rows, or over the treated.
    clip : float
        Propensities are clipped to [clip, 1 - clip].
    """

    target: str = "ate"
    clip: float = CLIP
    name: ClassVar[str] = "interactive"
    arms: ClassVar[bool] = True
    binary_treatment: ClassVar[bool] = True

    @property
    def estimand(self):
        """ATE or ATT."""
        return self.target.upper()

    def moments(self, T, Y, hat, weight=1.0):
        """ψ_a and ψ_b from treatment, outcome and nuisances."""
        m = np.clip(hat.m, self.clip, 1 - self.clip)
        rest_0, rest_1 = Y - hat.mu_0, Y - hat.mu_1
        if self.target == "ate":
            signal = hat.mu_1 - hat.mu_0 + T * rest_1 / m - (1 - T) * rest_0 / (1 - m)
            return Moments(-np.ones_like(signal), signal, weight=weight)
        share = weighted_mean(T, weight)
        psi_b = (T - (1 - T) * m / (1 - m)) * rest_0 / share
        return Moments(-T / share, psi_b, weight=weight)


SCORES = ("auto", "partially_linear", "interactive", "logistic")


def resolve_score(name, binary, target="ate", clip=None) -> Score:
    """The score for a name.

    Parameters
    ----------
    name : str
        One of :data:`SCORES`; "auto" is interactive for a 0/1 treatment, else partially linear.
    binary : bool
        Whether the treatment is 0/1.
    target : {"ate", "att"}
    clip : float, optional
        Only for the interactive score.

    Examples
    --------
    >>> resolve_score("auto", binary=True).estimand, resolve_score("auto", binary=False).estimand
    ('ATE', 'partially linear slope')
    """
    check_option(name, "score", SCORES)
    check_option(target, "target", ("ate", "att"))
    if name == "auto":
        name = "interactive" if binary else "partially_linear"
    if name == "interactive":
        if not binary:
            raise ValueError(
                "score='interactive' needs a 0/1 treatment, got a continuous one; "
                "use score='partially_linear'."
            )
        if clip is not None:
            check_number(clip, "clip", 0, 0.49)
        return Interactive(target, CLIP if clip is None else clip)
    if target == "att":
        raise ValueError(f"target='att' needs score='interactive', got {name!r}.")
    if clip is not None:
        raise ValueError(f"clip needs score='interactive', got {name!r}.")
    return Logistic() if name == "logistic" else PartiallyLinear()
