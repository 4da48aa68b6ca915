"""The data sets of the three tables, each a list of replications with a known effect."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from ddml_fs.datasets import fetch_ihdp, fetch_jobs, fetch_twins, make_effect_data


@dataclass(frozen=True)
class Case:
    """One replication, or several that share X and the treatment.

    Attributes
    ----------
    X : array of shape (N, D)
    treatment : array of shape (N,)
    y : array of shape (N,), or (N, R)
    truth : float, or array of shape (R,)
        The effect that is to be found.
    target : {"ate", "att"}
        What kind of effect that is.
    m : array of shape (N,), optional
        E[T | X], where it is known.
    g : array of shape (N,), optional
        E[Y | X], where it is known.
    mu : array of shape (2, N), or (2, N, R), optional
        E[Y | X, T = 0] and E[Y | X, T = 1], where they are known.
    """

    X: np.ndarray
    treatment: np.ndarray
    y: np.ndarray
    truth: float | np.ndarray
    target: str = "ate"
    m: np.ndarray | None = None
    g: np.ndarray | None = None
    mu: np.ndarray | None = None

    def rows(self, rows):
        """The case with these rows alone, and the same truth."""
        part = {"m": self.m, "g": self.g}
        part = {name: None if value is None else value[rows] for name, value in part.items()}
        mu = None if self.mu is None else self.mu[:, rows]
        return replace(
            self, X=self.X[rows], treatment=self.treatment[rows], y=self.y[rows], mu=mu, **part
        )


@dataclass(frozen=True)
class DataSet:
    """A column of a table.

    Attributes
    ----------
    name : str
    table : {"I", "II", "III"}
        Of the paper.
    load : callable
        From the numbers of replications to a case; several numbers only where ``stacked``.
    seeds : sequence of int
        Numbers of the replications.
    stacked : bool
        Whether replications share X and the treatment, and can be estimated as one stack.
    """

    name: str
    table: str
    load: Callable
    seeds: tuple = (0,)
    stacked: bool = False

    @property
    def binary(self):
        """Whether the treatment is 0 or 1."""
        return self.table != "II"


def synthetic(kind, d, n_samples):
    """The paper's generator, one seed a replication."""

    def load(seeds):
        (seed,) = seeds
        data = make_effect_data(kind, n_features=d, n_samples=n_samples, random_state=seed)
        return Case(data.X, data.treatment, data.y, data.theta, m=data.m, g=data.g)

    return load


@cache
def _ihdp():
    return fetch_ihdp()


@cache
def _jobs():
    return fetch_jobs()


def ihdp(seeds):
    """Replications of IHDP: all units, one outcome each."""
    data, r = _ihdp(), list(seeds) if len(seeds) > 1 else seeds[0]
    mu = np.stack([data.mu_0[:, r], data.mu_1[:, r]])
    return Case(data.X, data.treatment, data.y[:, r], data.ate[r], mu=mu)


def twins(seeds):
    """Twins with the treatments of the file (number 0) or drawn anew from their propensities."""
    (seed,) = seeds
    data = fetch_twins(random_state=seed or None)
    return Case(data.X, data.treatment, data.y, data.ate, m=data.propensity)


def jobs(seeds):
    """All units of Jobs (number 0), or the training rows of one of its ten splits."""
    (seed,) = seeds
    data = _jobs()
    case = Case(data.X, data.treatment, data.y, data.att, target="att")
    if not seed:
        return case
    return case.rows(np.setdiff1d(np.arange(len(data.y)), data.test_rows[seed - 1]))


def thinned(load, n_rows):
    """The same data with fewer rows, drawn once."""

    def load_some(seeds):
        case = load(seeds)
        if len(case.y) <= n_rows:
            return case
        rows = np.random.default_rng(0).choice(len(case.y), n_rows, replace=False)
        return case.rows(np.sort(rows))

    return load_some


def data_sets(n_seeds=10, first_seed=100, dimensions=(20, 50, 100, 200), n_samples=6000):
    """Every column of the three tables.

    Parameters
    ----------
    n_seeds, first_seed : int
        Replications of the synthetic data.
    dimensions : tuple of int
        Columns of the synthetic data.
    n_samples : int
        Their rows.
    """
    seeds = tuple(range(first_seed, first_seed + n_seeds))
    drawn = [
        DataSet(f"{kind} {d}", table, synthetic(kind, d, n_samples), seeds)
        for kind, table in (("binary", "I"), ("continuous", "II"))
        for d in dimensions
    ]
    ten = tuple(range(1, 11))
    return [
        *drawn,
        DataSet("IHDP", "III", ihdp, tuple(range(100)), stacked=True),
        DataSet("Twins", "III", twins),
        DataSet("Twins, drawn", "III", twins, ten),
        DataSet("Jobs", "III", jobs),
        DataSet("Jobs, splits", "III", jobs, ten),
    ]


def small_data_sets(n_rows=300):
    """A little of every kind, for a look in two minutes."""
    chosen = data_sets(1, 0, (20,), n_rows)
    wanted = {"binary 20", "continuous 20", "IHDP", "Twins", "Jobs"}
    return [
        replace(data, load=thinned(data.load, n_rows), seeds=data.seeds[:1])
        for data in chosen
        if data.name in wanted
    ]
