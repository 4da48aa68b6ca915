"""From a plan to predictions: problems are packed into shards and solved by workers."""

import logging

from joblib import delayed, effective_n_jobs
from threadpoolctl import threadpool_limits

from ddml_fs.engine.checkpoint import Checkpoint, fingerprint
from ddml_fs.engine.devices import limit_threads
from ddml_fs.engine.plan import make_shards
from ddml_fs.engine.predictions import Predictions
from ddml_fs.engine.resources import Resources
from ddml_fs.engine.shared import Shared
from ddml_fs.engine.solve import solve
from ddml_fs.engine.stack import Stack, tensor_of
from ddml_fs.engine.trunk import TrunkStack, n_projections
from ddml_fs.workers import parallel

LOGGER = logging.getLogger(__name__)


def run(plan, settings, *, pair=None, arms=False, resources=None):
    """Solve all problems of a plan by networks, in shards.

    The shards depend only on the plan and the memory, so the result depends neither on the number
    of workers nor on the devices.

    Parameters
    ----------
    plan : Plan
    settings : Settings
    pair : callable, optional
        Makes scikit-learn models on the latents. By default, the networks' own heads predict.
    arms : bool
        Whether to fit outcome models per arm.
    resources : Resources, optional

    Returns
    -------
    predictions : Predictions
    """
    resources = resources or Resources()
    progress, devices = resources.progress, resources.devices
    shared = Shared(plan, settings)
    shards = make_shards(
        plan,
        settings.sizes,
        settings.batch_size,
        resources.memory,
        by_fold=settings.shrinkage > 0,
        n_inputs=n_projections(plan) if settings.trunk else None,
    )
    store = Checkpoint(
        resources.checkpoint, lambda: fingerprint(plan, shards, settings, pair, arms)
    )
    predictions = Predictions.empty(plan, arms)
    networks: dict = {}
    solved: set = set()

    def take(s, values, summaries=None):
        """Write the predictions of a shard to those of all rows."""
        solved.add(s)
        for k, i in enumerate(shards[s]):
            n = len(plan.folds[plan.problem(i)[0]].hold)
            predictions.put(plan, i, values[:, k, :n])
            if summaries is not None:
                networks[int(i)] = summaries[k]

    for s, values in store.restore([shape_of(plan, shard, arms) for shard in shards]).items():
        take(s, values)
    missing = [s for s in range(len(shards)) if s not in solved]
    workers = min(max(effective_n_jobs(resources.n_jobs), len(devices)), len(missing))
    LOGGER.info(
        "Networks: %d problems; shards: %d, of which restored from the checkpoint: %d; devices: "
        "%s; workers: %d",
        plan.n_problems,
        len(shards),
        len(solved),
        ", ".join(map(str, devices)),
        max(workers, 1),
    )
    # One worker reports every epoch (and every fit on the latents), several report whole shards.
    epochs = settings.total_epochs(arms and pair is None)
    steps = [epochs + (len(shard) if pair is not None else 0) for shard in shards]
    unit = "epochs of the networks" if pair is None else "epochs and fits on the latents"
    if workers > 1:
        steps, unit = [1] * len(shards), "shards"

    def n_done():
        return sum(steps[s] for s in solved)

    progress.start(sum(steps), unit, done=n_done())

    def task(s):
        return {
            "s": s,
            **shared.of(shards[s]),
            "settings": settings,
            "pair": pair,
            "arms": arms,
            "detail": resources.detail and not settings.trunk,  # a trunk has no roles
            "device": devices[s % len(devices)],
            "n_jobs": resources.n_jobs if workers <= 1 else 1,
        }

    def prepared(s):
        with threadpool_limits(1):  # the other cores are busy with shards
            return task(s)

    if workers <= 1:
        for s in missing:
            _, *result = solve_shard(**task(s), progress=progress)
            take(s, *result)
            store.save(s, result[0])
            progress.reach(n_done())
    else:
        work = (delayed(solve_shard)(**prepared(s)) for s in missing)
        # Shards with a trunk are large operations, for which threads are enough. They share all
        # memory but their inputs, so that no more than one of these waits.
        trunk = {"prefer": "threads", "pre_dispatch": workers + 1}
        options = trunk if settings.trunk else {}
        for s, *result in parallel(work, workers, return_as="generator_unordered", **options):
            take(s, *result)
            store.save(s, result[0])
            progress.reach(n_done())
            LOGGER.debug("Shard %d is done, %d of %d", s, len(solved), len(shards))

    return predictions.with_networks([networks[i] for i in sorted(networks)] or None)


def shape_of(plan, members, arms):
    """Shape of the predictions of a shard: functions, problems, and rows of the largest fold."""
    n = max(len(plan.folds[k].hold) for k in plan.problem(members)[0])
    return (4 if arms else 2, len(members), n)


def solve_shard(
    s,
    plan,
    members,
    X,
    x_offset,
    base,
    trunk,
    settings,
    pair,
    arms,
    detail,
    device,
    n_jobs,
    progress=None,
):
    """Solve the problems of one shard on the given device, in this process.

    ``plan``, ``members``, ``X``, ``x_offset``, ``base`` and ``trunk`` are those of
    :class:`~ddml_fs.engine.shared.Shared`.

    Returns
    -------
    s : int
        The shard's number.
    values : array of shape (2 or 4, P, n)
    summaries : list of NetworkSummary, or None
    """
    where = device, settings.batch_size, settings.dtype
    with limit_threads(1):
        if trunk is None:
            stack = Stack(plan, members, tensor_of(X), *where, x_offset)
        else:
            stack = TrunkStack(plan, members, trunk, *where)
        if base is not None:
            stack.start_from(base)
        options = {"pair": pair, "arms": arms, "detail": detail, "n_jobs": n_jobs}
        return s, *solve(stack, settings, **options, progress=progress)
