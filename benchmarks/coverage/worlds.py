"""Data with a known effect and known nuisance functions, in four worlds.

"linear": a few columns confound linearly, and overlap is moderate. "bent": confounding by a sine, a
product and a step. "clustered": the linear world with random effects of clusters in the treatment
and in the noise of the outcome. "paper": the generator of the paper, whose confounding is strong
and not linear.

Confounding is positive. Draws with even seeds have a positive effect, and those with odd seeds a
negative one: errors of the nuisances can bias the two in different ways.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from ddml_fs.datasets import make_effect_data

EFFECT = 1.0
CORRELATION = 0.3  # between neighbouring columns
CLUSTER_SIZE, CLUSTER_SD = 20, 0.7  # random effects of clusters, in the treatment and the outcome
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(30)  # integrate over a normal variable


@dataclass(frozen=True, eq=False)
class Draw:
    """One data set.

    Attributes
    ----------
    X : array of shape (N, D)
    treatment, y : arrays of shape (N,)
    truth : float
        The average effect in the population.
    m, g, mu_0, mu_1 : arrays of shape (N,)
        E[T | X], E[Y | X] and, for a 0/1 treatment, E[Y | X, T = 0] and E[Y | X, T = 1]. With a
        continuous treatment the last two are E[Y | X] at T = 0 and T = 1.
    cluster : int array of shape (N,), or None
    """

    X: np.ndarray
    treatment: np.ndarray
    y: np.ndarray
    truth: float
    m: np.ndarray
    g: np.ndarray
    mu_0: np.ndarray
    mu_1: np.ndarray
    cluster: np.ndarray | None = None


def draw(world, treatment, effect, n_samples, n_features, seed):
    """One data set of a world.

    Parameters
    ----------
    world : {"linear", "bent", "clustered", "paper"}
    treatment : {"binary", "continuous"}
    effect : {"constant", "varying"}
        Whether the effect is the same in all rows.
    n_samples, n_features : int
    seed : int
        The effect is negative if it is odd.

    Returns
    -------
    draw : Draw

    Examples
    --------
    >>> found = draw("bent", "binary", "varying", 100, 10, seed=0)
    >>> found.X.shape, found.truth
    ((100, 10), 1.25)
    """
    if world == "paper":
        return from_paper(treatment, n_samples, n_features, seed)
    rng = np.random.default_rng([seed, n_samples, n_features])
    X = correlated_columns(rng, n_samples, n_features)
    index, f = (bent if world == "bent" else linear)(X)
    truth = EFFECT if seed % 2 == 0 else -EFFECT
    tau = np.full(n_samples, truth)
    if effect == "varying":
        # X is symmetric around 0, so that the mean of the first term is 0, of the second 1/4.
        tau += 0.5 * X[:, 1] + 0.5 * (X[:, 0] > 0)
        truth += 0.25
    cluster, in_treatment, in_outcome = None, 0.0, 0.0
    if world == "clustered":
        cluster = np.arange(n_samples) // CLUSTER_SIZE
        effects = CLUSTER_SD * rng.standard_normal((2, cluster[-1] + 1))
        in_treatment, in_outcome = effects[:, cluster]
    if treatment == "binary":
        m = mean_chance(index) if world == "clustered" else expit(index)
        T = rng.binomial(1, expit(index + in_treatment)).astype(float)
    else:
        m = index
        T = index + in_treatment + rng.standard_normal(n_samples)
    y = f + tau * T + in_outcome + rng.standard_normal(n_samples)
    return Draw(X, T, y, truth, m, f + tau * m, f, f + tau, cluster)


def correlated_columns(rng, n_samples, n_features):
    """Standard normal columns (N, D); neighbours are correlated."""
    distance = np.abs(np.subtract.outer(np.arange(n_features), np.arange(n_features)))
    factor = np.linalg.cholesky(CORRELATION**distance)
    return rng.standard_normal((n_samples, n_features)) @ factor.T


def linear(X):
    """Index of the treatment and outcome without treatment, each (N,): sparse and linear."""
    index = 0.6 * X[:, 0] + 0.5 * X[:, 1] - 0.4 * X[:, 2] + 0.3 * X[:, 5]
    return index, X[:, 0] + 0.8 * X[:, 1] - 0.6 * X[:, 2] + 0.5 * X[:, 6]


def bent(X):
    """The same with a sine, a product and a step that act on both."""
    wave, product, step = np.sin(1.5 * X[:, 0]), X[:, 1] * X[:, 2], (X[:, 3] > 0) - 0.5
    index = 0.8 * wave + 0.5 * product + 0.7 * step + 0.3 * X[:, 5]
    return index, 1.2 * wave + 0.8 * product + step + 0.5 * X[:, 6]


def mean_chance(index):
    """Mean of the logistic function of the index (N,) plus a normal effect of the cluster."""
    values = expit(index[:, None] + CLUSTER_SD * NODES)
    return values @ NODE_WEIGHTS / NODE_WEIGHTS.sum()


def from_paper(treatment, n_samples, n_features, seed):
    """A draw of the paper's generator."""
    data = make_effect_data(
        treatment, n_samples=n_samples, n_features=n_features, random_state=seed
    )
    f = data.g - data.theta * data.m
    theta = data.theta if seed % 2 == 0 else -data.theta
    y = data.y + (theta - data.theta) * data.treatment
    return Draw(data.X, data.treatment, y, theta, data.m, f + theta * data.m, f, f + theta)
