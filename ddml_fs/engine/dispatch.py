"""Shards on workers: in this process, in one process per device, or on joblib's workers."""

import logging
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Lock, local
from typing import Any, NamedTuple

import numpy as np
from joblib import parallel_config
from joblib.externals.loky import ProcessPoolExecutor

from ddml_fs.backends import Backend, active_backend, each_on, fetched
from ddml_fs.engine.devices import (
    free_memory,
    limit_threads,
    out_of_memory,
    resolve_device,
    tensor_cores,
    threadpool_limits,
)
from ddml_fs.engine.plan import Plan, batch_size_for
from ddml_fs.engine.solve import Settings, solve
from ddml_fs.engine.stack import Stack, tensor_of
from ddml_fs.engine.threads import Waiting, each_by_threads
from ddml_fs.engine.trunk import TrunkStack
from ddml_fs.workers import watch

LOGGER = logging.getLogger(__name__)
# Weights of the first layers of a shard. With 200 problems × 12 units × 400 words, two threads wait
# for Python's lock 1 to 2 % of the time, and 3 to 6 % with forests (Amazon books, measured once by
# hand).
LARGE_STACK = 500_000
# Up to this number of training steps, processes are not worth their start of 3 s. Once started they
# take a fifth less time than threads (60 words, at most 1760 steps: 1.4 and 1.8 s, once by hand). A
# fit on the latents counts as ten steps.
FEW_STEPS, STEPS_PER_FIT = 10_000, 10
SEAT: dict = {}  # what the process of a device holds; it has one job, and ends with it


@dataclass(frozen=True, eq=False)
class Job:
    """What the shards of a run have in common. It is sent once to each worker.

    Attributes
    ----------
    plan : Plan
    shards : list of int arrays
        Numbers of the problems of each shard.
    X : array of shape (N, D), or None
        All rows minus ``x_offset``, in the precision of the networks; None with a trunk.
    x_offset : array of shape (D,), or None
    x_scale : array of shape (K, 2, D), or None
        Means and standard deviations of the columns of X in the rows to fit on, by fold.
    settings : Settings
    pair : callable, or None
        Makes scikit-learn models on the latents.
    arms, detail : bool
        Whether to fit outcome models per arm, and to return summaries of the networks.
    """

    plan: Plan
    shards: list
    X: np.ndarray | None
    x_offset: np.ndarray | None
    x_scale: np.ndarray | None
    settings: Settings
    pair: Callable | None
    arms: bool
    detail: bool

    def rows(self, device):
        """X on a device; None with a trunk."""
        return None if self.X is None else tensor_of(self.X).to(device)

    @property
    def in_threads(self):
        """Whether threads solve the shards sooner than processes would, which take time to start.

        So it is if operations are large and training is short, as threads then rarely wait for
        Python's lock, or if all is soon done.
        """
        if self.settings.shrinkage == 0 or (self.pair is not None and self.arms):
            return self.settings.trunk
        weights = 3 * self.settings.sizes.H * self.plan.X.shape[1]  # of the first layer
        large = self.settings.trunk or max(map(len, self.shards)) * weights >= LARGE_STACK
        return large or self.n_steps <= FEW_STEPS

    @property
    def n_steps(self):
        """Steps of training of all shards, at most, in which fits on the latents are counted."""
        n = len(self.plan.folds[0].fit)
        batches = n // batch_size_for(n, self.settings.batch_size)
        steps = len(self.shards) * self.settings.total_epochs(self.arms) * batches
        return steps + (STEPS_PER_FIT * self.plan.n_problems if self.pair is not None else 0)

    def shape(self, members):
        """Shape of the predictions of problems: functions, problems, rows of the largest fold."""
        n = max(len(self.plan.folds[k].hold) for k in self.plan.problem(members)[0])
        return (4 if self.arms else 2, len(members), n)


class Solved(NamedTuple):
    """The solution of a shard."""

    s: int
    values: np.ndarray  # (2 or 4, P, n)
    summaries: list | None  # of NetworkSummary
    n_parts: int = 1  # in which it was solved, for want of memory


@dataclass(frozen=True)
class Workers:
    """Who solves the shards.

    Attributes
    ----------
    n : int
    devices : tuple of torch.device
        Or "auto": each worker of a cluster chooses its own.
    backend : Backend
        Of joblib.
    n_jobs : int, optional
        Of scikit-learn models within a shard.
    """

    n: int
    devices: tuple
    backend: Backend
    n_jobs: int | None = None

    @classmethod
    def of(cls, resources, n_shards, most):
        """The workers for a number of shards, of which this machine's memory allows ``most``."""
        devices, backend = resources.devices, active_backend()
        n = backend.n_workers(resources.n_jobs)
        if backend.is_cluster and resources.n_jobs != 1:
            where = ("auto",) if resources.any_device else devices
            return cls(max(min(n, n_shards), 1), where, backend, 1)
        if len(devices) > 1 or devices[0].type != "cpu":
            n = len(devices)
        n = max(min(n, n_shards), 1)
        if n > most:
            LOGGER.warning("memory_budget allows %d of %d workers", most, n)
            n = most
        return cls(n, devices, Backend(), resources.n_jobs if n == 1 else 1)

    @property
    def alone(self):
        """Whether this process solves the shards itself, and reports every epoch."""
        return self.n == 1 and not self.backend.is_cluster

    def solve(self, job, shared, numbers, progress):
        """Yield each :class:`Solved` shard as soon as it is there.

        Parameters
        ----------
        job : Job
        shared : Shared
            Makes the inputs of each shard, here, when a worker is about to need them.
        numbers : list of int
            The shards to solve.
        progress : Progress
            Told of every epoch if this process works alone.
        """
        if self.alone:
            rows = job.rows(self.devices[0]) if numbers else None
            options: dict = {"device": self.devices[0], "rows": rows, "n_jobs": self.n_jobs}
            for s in numbers:
                inputs = shared.of(job.shards[s])
                yield solve_shard(job=job, s=s, inputs=inputs, **options, progress=progress)
            return

        def inputs_of(s):
            with threadpool_limits(1), limit_threads(1):  # the other cores are busy with shards
                return shared.of(job.shards[s])

        if len(self.devices) > 1 and not self.backend.is_cluster:
            yield from solve_by_device(job, inputs_of, numbers, self.devices[: self.n])
            return
        if job.in_threads and not self.backend.is_cluster:
            yield from solve_by_threads(job, shared, numbers, self)
            return
        given, n = self.backend.share(job), len(self.devices)
        calls = (
            (s, {"job": given, "s": s, "inputs": inputs_of(s), "device": self.devices[s % n]})
            for s in numbers
        )
        yield from each_on(self.backend, solve_shard, calls, self.n, "shard")


def solve_by_threads(job, shared, numbers, workers):
    """Solve shards by threads, which make their own inputs and stay with a fold while they can.

    So no more inputs exist than there are threads, and what a fold needs is seldom made twice. If
    only one fold's regressions may exist, all threads work on the same fold, in the given order.
    """
    folds = [job.plan.problem(job.shards[s][0])[0] for s in numbers]
    waiting = Waiting(numbers, [0] * len(numbers) if shared.one_fold else folds)
    seat = local()  # of each thread
    turn = Lock()  # so that no thread asks for a fold after another asked for the next one

    def solve_next(_, stop):
        stop.advance()
        if not hasattr(seat, "shared"):
            seat.shared, seat.fold = shared.for_thread(), None
        with ExitStack() as contexts:
            if shared.one_fold:  # linear algebra has all threads, as the others wait
                contexts.enter_context(turn)
                contexts.enter_context(threadpool_limits(workers.n))
            s, seat.fold = waiting.take(seat.fold)
            inputs = seat.shared.of(job.shards[s])
        given = {"inputs": inputs, "device": workers.devices[0], "progress": stop}
        return solve_shard(job=job, s=s, **given)

    with threadpool_limits(1), limit_threads(1):
        yield from each_by_threads(solve_next, numbers, workers.n)


def solve_by_device(job, inputs_of, numbers, devices):
    """Solve shards by one process per device, which holds X on the device until the end.

    They are processes, because threads that give work to devices would wait for one another.
    """
    pools = []
    waiting, running = deque(numbers), {}

    def submit(pool):
        s = waiting.popleft()
        running[pool.submit(solve_seated, s, inputs_of(s))] = pool

    try:
        for device in devices:
            given = job, device, os.getpid()
            pools.append(ProcessPoolExecutor(1, initializer=take_seat, initargs=given))
            submit(pools[-1])
        while running:
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                pool = running.pop(future)
                if waiting:
                    submit(pool)
                yield future.result()
    finally:
        for pool in pools:
            pool.shutdown(kill_workers=True)


def take_seat(job, device, parent):
    """Begin the work of a device's process."""
    watch(parent)
    SEAT.update(job=job, device=device, rows=job.rows(device))


def solve_seated(s, inputs):
    """Solve a shard in a device's process."""
    return solve_shard(s=s, inputs=inputs, **SEAT)


def solve_shard(job, s, inputs, device, rows=None, n_jobs=1, progress=None):
    """Solve the problems of one shard in this process.

    Parameters
    ----------
    job : Job, or what a backend made of it
    s : int
        The number of the shard.
    inputs : ShardInputs
    device : torch.device or "auto"
    rows : Tensor of shape (N, D), optional
        X on the device; by default it is copied there.
    n_jobs : int, optional
        Of scikit-learn models.
    progress : Progress, optional

    Returns
    -------
    solved : Solved
    """
    job, device = fetched(job), resolve_device(device)
    rows = job.rows(device) if rows is None else rows
    work = job, job.shards[s], inputs, device, rows
    options = {"n_jobs": n_jobs, "progress": progress}
    if n_jobs != 1:
        return Solved(s, *solve_members(*work, **options))
    with parallel_config("sequential", n_jobs=1):  # a worker of a cluster would ask the cluster
        return Solved(s, *solve_members(*work, **options))


def solve_members(job, members, inputs, device, rows, **options):
    """Solve some problems in one stack or, if memory is exhausted, in halves.

    Returns
    -------
    values : array of shape (2 or 4, P, n)
    summaries : list of NetworkSummary, or None
    n_parts : int
    """
    try:
        return *solve_stack(job, members, inputs, device, rows, **options), 1
    except (MemoryError, RuntimeError) as error:
        if len(members) == 1 or not out_of_memory(error):
            raise
        LOGGER.warning("%d problems exhausted the memory of %s; halving", len(members), device)
    # Outside the handler, where nothing holds the tensors of the attempt any more.
    free_memory(device)
    values = np.zeros(job.shape(members))
    summaries: list = [None] * len(members)
    n_parts = 0
    for half, folds in halves(job.plan, members):
        given = members[half], inputs.part(half, folds)
        part, own, n = solve_members(job, *given, device, rows, **options)
        values[:, half, : part.shape[2]] = part
        for i, summary in zip(half, own or (), strict=False):
            summaries[i] = summary
        n_parts += n
    return values, summaries if job.detail else None, n_parts


def halves(plan, members):
    """Places of the problems of both halves of a stack, and of their folds.

    Each half has half of the problems of every fold or, with one problem per fold, half of the
    folds.
    """
    G = len(np.unique(plan.problem(members)[0]))
    grid, folds = np.arange(len(members)).reshape(G, -1), np.arange(G)
    if grid.shape[1] > 1:
        return [(half.ravel(), folds) for half in np.array_split(grid, 2, axis=1)]
    return [(grid[half].ravel(), half) for half in np.array_split(folds, 2)]


def solve_stack(job, members, inputs, device, rows, **options: Any):
    """Solve some problems in one stack."""
    form = device, job.settings.batch_size, job.settings.dtype
    with limit_threads(1), tensor_cores(device):
        if inputs.trunk is not None:
            stack: Stack = TrunkStack(job.plan, members, inputs.trunk, *form)
        else:
            stack = Stack(job.plan, members, rows, *form, job.x_offset, job.x_scale)
        if inputs.base is not None:
            stack.start_from(inputs.base)
        how = {"pair": job.pair, "arms": job.arms, "detail": job.detail}
        return solve(stack, job.settings, **how, **options)
