"""Outcomes simulated on the covariates of IHDP: what the interactive score was tuned on.

Its own replications are for the table alone. Here the outcomes are ours: surfaces of four kinds
(linear, exponential, with products, with waves), effects that vary, and signals that are one to
``strongest`` times as large as the noise.
"""

import numpy as np

from ddml_fs.datasets import fetch_ihdp
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


def load(seeds):
    """A replication on the covariates of IHDP."""
    (seed,) = seeds
    data = fetch_ihdp()
    return simulate(data.X, data.treatment, seed)


def data_set(n_seeds):
    """The simulated replications as a column."""
    return DataSet("simulated", "III", load, tuple(range(n_seeds)))
