"""Outcomes per arm from the outcome of all rows and a stacked effect.

By definition μ_a(X) = g(X) + (a − m(X))·τ(X), where τ(X) is the effect in rows like X. A model per
arm sees the rows of this arm only. On the right, g is learned from all rows, and τ is usually much
simpler than the outcome. So errors of the outcome, and with them the bias of the effect, are
smaller, above all with few rows.
"""

import numpy as np

from ddml_fs.nuisances.held_out_loss import EDGE
from ddml_fs.nuisances.simplex import squared_error_weights
from ddml_fs.weights import weighted_mean, weighted_var

CLEARLY = 2.0  # standard errors by which models per arm must be better to be preferred


def effect_weights(v, e, effects, weight):
    """Weights of a constant effect and of K effects (K, n).

    They minimise the loss of the R-learner (Nie & Wager, 2021): the mean of (e − τv)² over the
    residuals v of the treatment and e of the outcome (n,).

    Returns
    -------
    weights : array of shape (K + 1,)
        With sum one.
    effects : array of shape (K + 1, n)
        With the constant effect as the first.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> v, tau = rng.standard_normal((2, 1000))
    >>> effect_weights(v, tau * v, tau[None], np.ones(1000))[0].round(3).tolist()
    [0.0, 1.0]
    """
    constant = weighted_mean(v * e, weight) / max(weighted_mean(v**2, weight), 1e-12)
    surfaces = np.vstack([np.full(len(v), constant), effects])
    return squared_error_weights(v * surfaces, e, weight), surfaces


def outcomes_by_effect(t, y, m, g, arms, weight, label):
    """Outcomes per arm from g and a stacked effect.

    Parameters
    ----------
    t, y, m, g : arrays of shape (n,)
        Treatment and outcome, and their stacked held-out predictions.
    arms : array of shape (2, K, n)
        Held-out predictions of both arms by K candidates, whose differences are candidates for the
        effect.
    weight : array of shape (n,)
    label : bool
        Whether y is 0/1, so that outcomes are probabilities.

    Returns
    -------
    mu : array of shape (2, n)
    weights : array of shape (K,)
        Of the candidates' effects; the rest is the weight of a constant effect.
    """
    weights, surfaces = effect_weights(t - m, y - g, arms[1] - arms[0], weight)
    mu = g + (np.array([[0.0], [1.0]]) - m) * (weights @ surfaces)
    return np.clip(mu, EDGE, 1 - EDGE) if label else mu, weights[1:]


def arms_are_better(t, y, mu, by_arm, weight):
    """Whether models per arm ``by_arm`` (2, n) have a clearly lower loss than ``mu`` (2, n).

    Examples
    --------
    >>> t, y = np.arange(40) % 2, np.arange(40.0)
    >>> far = y + np.sin(y)
    >>> arms_are_better(t, y, np.stack([far, far]), np.stack([y, y]), np.ones(40))
    True
    """
    first, second = ((y - np.where(t == 1, arms[1], arms[0])) ** 2 for arms in (mu, by_arm))
    gap = first - second
    stderr = np.sqrt(weighted_var(gap, weight) / len(gap))
    return bool(weighted_mean(gap, weight) > CLEARLY * stderr)
