"""Empirical Bayes: what many noisy effects together say about each."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

PRIORS = ("mixture", "normal")
RATIOS = np.geomspace(1 / 16, 8, 8)  # standard deviations of the mixture's parts, over τ
EM_STEPS = 200
GRID = 40


@dataclass(frozen=True)
class Prior:
    """True effects as draws of a mixture of normals around 0.

    Attributes
    ----------
    tau : array of shape (parts,)
        Standard deviations of the parts.
    weight : array of shape (parts,)
        Their shares, which sum to 1.
    """

    tau: np.ndarray
    weight: np.ndarray

    def posterior_mean(self, effect, stderr):
        """The expected true effects of F features.

        Parameters
        ----------
        effect, stderr : arrays of shape (F,)
            Estimates; an infinite standard error stands for no estimate.

        Returns
        -------
        mean : array of shape (F,)
        """
        shrink = self.tau**2 / (self.tau**2 + stderr[:, None] ** 2)
        member = self.weight * likelihood(effect, stderr, self.tau)
        return (member * shrink).sum(1) / member.sum(1) * effect


def likelihood(effect, stderr, tau):
    """Of every estimate under every part, over that of its best part; (F, parts)."""
    variance = tau**2 + stderr[:, None] ** 2
    with np.errstate(invalid="ignore"):  # infinite: no part is more likely than another
        log = -0.5 * (effect[:, None] ** 2 / variance + np.log(variance))
        return np.exp(np.nan_to_num(log - log.max(1, keepdims=True)))


def learn_prior(effect, stderr, kind="mixture"):
    """The prior under which the estimates are most likely.

    Parameters
    ----------
    effect, stderr : arrays of shape (F,)
        Estimates.
    kind : {"mixture", "normal"}, default="mixture"
        "normal": one part, whose τ² has the largest marginal likelihood. "mixture": parts from
        no effect to 8 τ, with shares by the EM algorithm: most effects may be nothing while a few
        are large, and the large ones are then hardly shrunken.

    Returns
    -------
    prior : Prior

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> theta = np.r_[rng.normal(0, 2, 50), np.zeros(450)]
    >>> seen = theta + rng.normal(0, 1, 500)
    >>> prior = learn_prior(seen, np.ones(500))
    >>> bool(np.square(prior.posterior_mean(seen, np.ones(500)) - theta).mean() < 0.3)
    True
    """
    known = np.isfinite(stderr)
    if not known.any():
        return Prior(np.zeros(1), np.ones(1))
    effect, stderr = effect[known], stderr[known]

    def loss(log_tau2):
        variance = np.exp(log_tau2) + stderr**2
        return (np.log(variance) + effect**2 / variance).sum()

    # More than one optimum is possible where standard errors differ much: a grid comes first.
    least, most = (stderr**2).min(), (effect**2).max()
    grid = np.linspace(np.log(1e-4 * least), np.log(max(most, least)), GRID)
    best = np.clip(np.argmin([loss(x) for x in grid]), 1, GRID - 2)
    bounds = grid[best - 1], grid[best + 1]
    tau = np.exp(0.5 * minimize_scalar(loss, bounds=bounds, method="bounded").x)
    if kind == "normal":
        return Prior(np.array([tau]), np.ones(1))
    parts = np.r_[0.0, tau * RATIOS]
    density, weight = likelihood(effect, stderr, parts), np.full(len(parts), 1 / len(parts))
    for _ in range(EM_STEPS):
        weight = weight * (density / (density @ weight)[:, None]).mean(0)
    return Prior(parts, weight)
