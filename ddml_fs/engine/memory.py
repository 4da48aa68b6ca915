"""The memory of a fit by networks: how large shards may be, and how many workers fit.

Shards depend on the plan and the budget only, so that results and checkpoints do not depend on the
workers. If memory is short, there are fewer workers.
"""

import logging
import math
import sys
from dataclasses import dataclass

from ddml_fs.engine.plan import batch_size_for, bytes_of_problem, group_by_shape
from ddml_fs.engine.wide_ridge import bytes_of_ridge

LOGGER = logging.getLogger(__name__)
WORKERS = 4  # for which the size of shards leaves room
# Tables as large as X in the calling process: beside the shards (from one peak, of 8000 rows and
# 5000 columns), and when features are ranked (measured before sweeps were collected in parts).
TABLES, RANKING_TABLES = 4, 19
UNLIMITED_SHARD = 1e9  # bytes of a shard without a ceiling


@dataclass(frozen=True)
class Ceiling:
    """What a memory budget allows, in bytes.

    Attributes
    ----------
    table : float
        What a worker holds beside the problems of its shard.
    problem : float
        What a problem uses, at most.
    shard : float
        What the problems of one shard may use.
    room : float
        What all workers may use together.
    """

    table: float
    problem: float
    shard: float
    room: float

    def most_workers(self, shards):
        """The number of workers that fit, at least 1."""
        if self.room == math.inf:
            return sys.maxsize
        return max(1, int(self.room // (self.table + max(map(len, shards)) * self.problem)))


def largest_problem(plan, settings, n_inputs=None, **kind):
    """Bytes of the largest problem of a plan."""
    D = plan.X.shape[1] if n_inputs is None else n_inputs
    sizes, batch_size = settings.sizes, settings.batch_size
    return max(
        bytes_of_problem(fold, D, sizes, batch_size_for(len(fold.fit), batch_size), **kind)
        for fold in plan.folds
    )


def make_ceiling(plan, settings, memory, *, arms=False, **kind):
    """Divide a memory budget.

    Parameters
    ----------
    plan : Plan
    settings : Settings
    memory : float, or None
        Gigabytes for the whole fit, libraries not counted; None: no ceiling.
    arms : bool
        Whether there are predictions per arm.
    **kind
        Of the networks, see :func:`~ddml_fs.engine.plan.make_shards`.

    Returns
    -------
    ceiling : Ceiling
    """
    N, D = plan.X.shape
    # With a trunk, workers have a few projections in place of X.
    single = N * kind.get("n_inputs", D) * settings.dtype.itemsize
    # X of the worker, and the scaled rows that it predicts.
    table = 2 * single
    if kind.get("models"):
        table += len(plan.folds) * single
    problem = largest_problem(plan, settings, **kind)
    if memory is None:
        return Ceiling(table, problem, UNLIMITED_SHARD, math.inf)
    budget = memory * 1e9
    predictions = (4 if arms else 2) * plan.n_problems / plan.n_folds * N * plan.X.itemsize
    held = plan.X.nbytes + single + predictions
    ridge = bytes_of_ridge(plan, settings.shrinkage) if settings.shrinkage else 0
    if settings.trunk:
        held += ridge
    else:  # one per thread
        table += ridge
    G = max(map(len, group_by_shape(plan, settings.batch_size)))
    least = G * problem
    need = held + table + least
    if need > budget:
        raise ValueError(
            f"memory_budget must be at least {1.05 * need / 1e9:.2g} (gigabytes) for networks on "
            f"{N} rows and {D} columns, got {memory:g}."
        )
    if RANKING_TABLES * plan.X.nbytes > budget:
        LOGGER.warning(
            "The ranking of features may use %.2g GB, but memory_budget is %g",
            RANKING_TABLES * plan.X.nbytes / 1e9,
            memory,
        )
    room = max(budget - max(held, TABLES * plan.X.nbytes), table + least)
    return Ceiling(table, problem, max(room / WORKERS - table, least), room)
