"""From a plan to predictions: problems are packed into shards and solved by workers."""

import logging

import numpy as np

from ddml_fs.engine.checkpoint import Checkpoint, fingerprint
from ddml_fs.engine.dispatch import Job, Workers
from ddml_fs.engine.plan import make_shards
from ddml_fs.engine.predictions import Predictions
from ddml_fs.engine.resources import Resources
from ddml_fs.engine.stack import scales_by_fold

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
    progress = resources.progress
    shards = make_shards(plan, settings.sizes, settings.batch_size, resources.memory)
    store = Checkpoint(
        resources.checkpoint, lambda: fingerprint(plan, shards, settings, pair, arms)
    )
    job = make_job(plan, shards, settings, pair, arms, resources.detail)
    found = store.restore([job.shape(shard) for shard in shards])
    solved = {s: (values, None) for s, values in found.items()}
    missing = [s for s in range(len(shards)) if s not in solved]
    workers = Workers.of(resources, len(missing))
    LOGGER.info(
        "Networks: %d problems; shards: %d, of which restored from the checkpoint: %d; devices: "
        "%s; workers: %d",
        plan.n_problems,
        len(shards),
        len(solved),
        ", ".join(map(str, workers.devices)),
        workers.n,
    )
    # One worker reports every epoch (and every fit on the latents), several report whole shards.
    epochs = settings.total_epochs(arms and pair is None)
    steps = [epochs + (len(shard) if pair is not None else 0) for shard in shards]
    unit = "epochs of the networks" if pair is None else "epochs and fits on the latents"
    if not workers.alone:
        steps, unit = [1] * len(shards), "shards"

    def n_done():
        return sum(steps[s] for s in solved)

    progress.start(sum(steps), unit, done=n_done())
    for s, values, summaries, n_parts in workers.solve(job, missing, progress):
        solved[s] = values, summaries
        store.save(s, values)
        progress.reach(n_done())
        LOGGER.debug("Shard %d is done, %d of %d", s, len(solved), len(shards))
        if n_parts > 1:
            LOGGER.warning("Shard %d ran out of memory and was solved in %d parts", s, n_parts)

    predictions = Predictions.empty(plan, arms)
    networks: dict = {}
    for s, (values, summaries) in solved.items():
        for k, i in enumerate(shards[s]):
            n = len(plan.folds[plan.problem(i)[0]].hold)
            predictions.put(plan, i, values[:, k, :n])
            if summaries is not None:
                networks[int(i)] = summaries[k]
    return predictions.with_networks([networks[i] for i in sorted(networks)] or None)


def make_job(plan, shards, settings, pair, arms, detail):
    """What workers need: the plan, and X in the precision of the networks."""
    kind = str(settings.dtype).removeprefix("torch.")
    # Centred in double precision: in single precision a large offset would hide the variation.
    x_offset = plan.X.mean(0, dtype=np.float64)
    X = np.ascontiguousarray(plan.X - x_offset, dtype=kind)
    scale = scales_by_fold(X, plan.folds)
    return Job(plan, shards, X, x_offset, scale, settings, pair, arms, detail)
