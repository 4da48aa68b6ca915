"""Outcomes simulated on real covariates: what the interactive score and the stack were tuned on.

The real outcomes are for the tables alone. Here they are ours: on IHDP surfaces of four kinds
(linear, exponential, with products, with waves), effects that vary, and signals that are one to
``strongest`` times as large as the noise; on Twins and Jobs bent propensities and 0/1 outcomes; and
small samples of normal covariates.
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit

from ddml_fs.datasets import fetch_ihdp, fetch_jobs, fetch_twins
from experiments.effects.data import Case, DataSet


def simulate(X, treatment, seed, strongest=5.0):
    """One replication.

    Parameters
    ----------
    X : array of shape (N, D)
    treatment : array of shape (N,)
    seed : int
        Its remainder by four says which kind.
    strongest : float

    Returns
    -------
    case : Case
    """
    rng = np.random.default_rng(10_000 + seed)
    S = (X - X.mean(0)) / X.std(0)

    def index(n_columns):
        """A random linear index of about so many columns, standardised."""
        beta = rng.normal(size=S.shape[1]) * (rng.random(S.shape[1]) < n_columns / S.shape[1])
        if not beta.any():
            beta[rng.integers(6)] = 1
        z = S @ beta
        return (z - z.mean()) / z.std()

    scale = np.exp(rng.uniform(0, np.log(strongest)))
    a, b, c = index(8), index(8), index(4)
    f_0, f_1 = (
        (a, 0.7 * a + 0.5 * b),
        (np.exp(0.7 * a) / 1.5, 0.5 * a + 0.5 * b),
        (0.6 * a + 0.5 * b * c, 0.6 * a + 0.25 * b**2),
        (np.sin(1.3 * a) + 0.5 * b, np.tanh(a) + np.cos(c)),
    )[seed % 4]
    mu = np.stack([scale * f_0, scale * f_1 + 4])
    y = np.where(treatment == 1, mu[1], mu[0]) + rng.normal(size=len(treatment))
    return Case(X, treatment, y, float((mu[1] - mu[0]).mean()), mu=mu)


def bent(S, rng, n_columns):
    """A standardised surface of standardised columns (N, D): a line, a sine, a step, a product."""

    def index(n):
        beta = np.zeros(S.shape[1])
        chosen = rng.choice(S.shape[1], min(n, S.shape[1]), replace=False)
        beta[chosen] = rng.normal(size=len(chosen))
        return scaled(S @ beta)

    product = S[:, rng.integers(S.shape[1])] * S[:, rng.integers(S.shape[1])]
    surface = rng.normal() * index(n_columns) + rng.normal() * np.sin(1.5 * index(3))
    surface += rng.normal() * (index(2) > 0.5 * rng.normal()) + 0.7 * rng.normal() * product
    return scaled(surface)


def scaled(z):
    """With mean 0 and standard deviation 1 in each column; constant ones are 0."""
    sd = z.std(0)
    return (z - z.mean(0)) / np.where(sd > 1e-9, sd, 1.0)


def chances(index, share, low=0.0, high=1.0):
    """Probabilities between two limits, logistic in the index, with a given mean."""

    def excess(intercept):
        return np.mean(low + (high - low) * expit(index + intercept)) - share

    return low + (high - low) * expit(index + brentq(excess, -20, 20))


def simulate_labels(X, seed, *, treated, ones, overlap, target, n_rows=None):
    """Treatment and a 0/1 outcome with bent confounding, on given covariates.

    Parameters
    ----------
    X : array of shape (N, D)
    seed : int
    treated, ones : float
        Shares of the treated, and of ones without treatment.
    overlap : pair of float
        Least and largest propensity.
    target : {"ate", "att"}
    n_rows : int, optional
        Rows, drawn at random; all unless given.
    """
    rng = np.random.default_rng(50_000 + seed)
    if n_rows is not None:
        X = X[np.sort(rng.choice(len(X), n_rows, replace=False))]
    S = np.clip(scaled(X), -4, 4)
    both = bent(S, rng, 6)
    m = chances(0.7 * both + 0.7 * bent(S, rng, 4), treated, *overlap)
    T = rng.binomial(1, m).astype(float)
    mu_0 = chances(0.96 * both + 0.72 * bent(S, rng, 4), ones)
    mu_1 = expit(logit(mu_0) + 0.3 * rng.normal() + 0.4 * bent(S, rng, 3))
    y = rng.binomial(1, np.where(T == 1, mu_1, mu_0)).astype(float)
    rows = T == 1 if target == "att" else slice(None)
    truth = float((mu_1 - mu_0)[rows].mean())
    return Case(X, T, y, truth, target=target, m=m, mu=np.stack([mu_0, mu_1]))


def on_ihdp(seeds):
    """Outcomes simulated on the covariates and treatments of IHDP."""
    (seed,) = seeds
    data = fetch_ihdp()
    return simulate(data.X, data.treatment, seed)


def on_twins(seeds):
    """Treatments and outcomes simulated on 4000 rows of Twins."""
    (seed,) = seeds
    options = {"treated": 0.5, "ones": 0.15, "overlap": (0.03, 0.97), "target": "ate"}
    return simulate_labels(fetch_twins().X, seed, n_rows=4000, **options)


def on_jobs(seeds):
    """Treatments and outcomes simulated on the covariates of Jobs; few are treated."""
    (seed,) = seeds
    options = {"treated": 0.1, "overlap": (0.005, 0.8), "target": "att"}
    ones = 0.8 if seed % 2 else 0.3
    return simulate_labels(fetch_jobs().X, 1000 + seed, ones=ones, **options)


def small(seeds):
    """400 rows, eight columns, confounding by a sine, a product or both."""
    (seed,) = seeds
    rng = np.random.default_rng(70_000 + seed)
    X = rng.normal(size=(400, 8))
    strength = rng.uniform(0.5, 1.5)
    both = (
        np.sin(2 * X[:, 0]) + 0.7 * X[:, 1] * X[:, 2],
        np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1],
        0.8 * X[:, 0] * X[:, 1] + 0.5 * X[:, 2],
    )[seed % 3]
    m = np.clip(expit(strength * both + 0.5 * X[:, 3]), 0.03, 0.97)
    T = rng.binomial(1, m).astype(float)
    mu_0 = 1.5 * both + X[:, 4]
    mu_1 = mu_0 + 1 + (0.7 * X[:, 1] if seed % 2 else 0)
    y = np.where(T == 1, mu_1, mu_0) + rng.normal(size=400)
    return Case(X, T, y, float((mu_1 - mu_0).mean()), m=m, mu=np.stack([mu_0, mu_1]))


def columns(n_seeds):
    """The simulated replications as columns of a table."""
    loaders = {"on IHDP": on_ihdp, "on Twins": on_twins, "on Jobs": on_jobs, "400 rows": small}
    seeds = tuple(range(n_seeds))
    return [DataSet(f"simulated, {name}", "III", load, seeds) for name, load in loaders.items()]
