"""Who sees what: every domain of every table is the target once, all others are the source.

A method is handed a :class:`~experiments.amazon.protocol.Source`, which holds no row of the target.
"""

from dataclasses import dataclass

import numpy as np

from ddml_fs.datasets import fetch_amazon_reviews, fetch_shift
from ddml_fs.datasets.shifts import SHIFTS
from experiments.amazon.protocol import Source
from experiments.shifts import confirmation, unseen

TABLES = (*SHIFTS, "amazon")
N_TRAIN, N_TEST = 3000, 5000  # rows at most


@dataclass(frozen=True)
class Task:
    """A source, and the domain on which what was learned is scored.

    Attributes
    ----------
    table, target : str
    source : Source
    X, y : arrays of shape (M, D) and (M,)
        Of the target.
    """

    table: str
    target: str
    source: Source
    X: np.ndarray
    y: np.ndarray


def leave_one_out(table, data, n_train=N_TRAIN, n_test=N_TEST, n_targets=None, n_columns=None):
    """One task per domain.

    Parameters
    ----------
    table : str
        The name of the table.
    data : Bunch
        With ``X, y, sample_domain`` and ``domain_names``; domains are numbered from 1.
    n_train, n_test : int
        Rows at most, drawn with a fixed seed from all sources, and from the target.
    n_targets, n_columns : int, optional
        Only the first ones.

    Returns
    -------
    tasks : list of Task
    """
    tasks = []
    X = np.asarray(data.X, dtype=np.float64)[:, :n_columns]
    for number, name in enumerate(data.domain_names[:n_targets], start=1):
        rng = np.random.default_rng(0)
        target = data.sample_domain == number
        train, test = _some(~target, n_train, rng), _some(target, n_test, rng)
        source = Source(f"without {name}", X[train], data.y[train], data.sample_domain[train])
        tasks.append(Task(table, str(name), source, X[test], data.y[test]))
    return tasks


def _some(mask, n, rng):
    """Numbers of at most n of the rows in a mask, drawn by lot, in their old order."""
    rows = np.flatnonzero(mask)
    return np.sort(rng.permutation(rows)[:n])


def fetch(table):
    """A table by its name, of the study or of those that confirm it."""
    others = confirmation.TABLES | unseen.TABLES
    if table in others:
        return confirmation.fetch(others[table])
    return fetch_amazon_reviews() if table == "amazon" else fetch_shift(table)


def all_tasks(tables=TABLES, **sizes):
    """The tasks of several tables; sizes are those of :func:`leave_one_out`."""
    return [task for table in tables for task in leave_one_out(table, fetch(table), **sizes)]
