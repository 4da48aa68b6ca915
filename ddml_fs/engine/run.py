"""From a plan to predictions: problems are packed into shards and solved by workers."""

import logging

import numpy as np

from ddml_fs.engine.checkpoint import Checkpoint, fingerprint
from ddml_fs.engine.dispatch import Job, Workers
from ddml_fs.engine.memory import make_ceiling
from ddml_fs.engine.plan import make_shards
from ddml_fs.engine.predictions import Predictions
from ddml_fs.engine.resources import Resources
from ddml_fs.engine.shared import Shared
from ddml_fs.engine.stack import scales_by_fold
from ddml_fs.engine.trunk import n_projections

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
    detail = resources.detail and not settings.trunk  # a trunk has no roles
    kind = {"shrunken": settings.shrinkage > 0, "detail": detail, "models": pair is not None}
    kind["quadratic"] = settings.quadratic
    if settings.trunk:
        kind["n_inputs"] = n_projections(plan)
    ceiling = make_ceiling(plan, settings, resources.memory, arms=arms, **kind)
    form = settings.sizes, settings.batch_size, ceiling.shard / 1e9
    shards = make_shards(plan, *form, by_fold=settings.shrinkage > 0, **kind)
    store = Checkpoint(
        resources.checkpoint, lambda: fingerprint(plan, shards, settings, pair, arms)
    )
    job = make_job(plan, shards, settings, pair, arms, detail)
    found = store.restore([job.shape(shard) for shard in shards])
    missing = [s for s in range(len(shards)) if s not in found]
    workers = Workers.of(resources, len(missing), ceiling.most_workers(shards))
    LOGGER.info(
        "Networks: %d problems; shards: %d, of which restored from the checkpoint: %d; devices: "
        "%s; workers: %d",
        plan.n_problems,
        len(shards),
        len(found),
        ", ".join(map(str, workers.devices)),
        workers.n,
    )
    # One worker reports every epoch (and every fit on the latents), several report whole shards.
    epochs = settings.total_epochs(arms and pair is None)
    steps = [epochs + (len(shard) if pair is not None else 0) for shard in shards]
    unit = "epochs of the networks" if pair is None else "epochs and fits on the latents"
    if not workers.alone:
        steps, unit = [1] * len(shards), "shards"

    predictions = Predictions.empty(plan, arms)
    networks: dict = {}
    done = 0

    def keep(s, values, summaries=None):
        """Keep the predictions of a shard; count its steps."""
        nonlocal done
        predictions.put(plan, shards[s], values)
        if summaries is not None:
            networks.update(zip(map(int, shards[s]), summaries, strict=True))
        done += steps[s]

    for s in list(found):
        keep(s, found.pop(s))
    progress.start(sum(steps), unit, done=done)
    shared = Shared(plan, settings)
    for s, values, summaries, n_parts in workers.solve(job, shared, missing, progress):
        store.save(s, values)
        keep(s, values, summaries)
        progress.reach(done)
        LOGGER.debug("Shard %d is done, %d of %d steps", s, done, sum(steps))
        if n_parts > 1:
            LOGGER.warning("Shard %d ran out of memory and was solved in %d parts", s, n_parts)
    return predictions.with_networks([networks[i] for i in sorted(networks)] or None)


def make_job(plan, shards, settings, pair, arms, detail):
    """What workers need: the plan and, without a trunk, X in the precision of the networks."""
    if settings.trunk:
        return Job(plan, shards, None, None, None, settings, pair, arms, detail)
    kind = str(settings.dtype).removeprefix("torch.")
    # Centred in double precision: in single precision a large offset would hide the variation.
    x_offset = plan.X.mean(0, dtype=np.float64)
    X = np.empty(plan.X.shape, dtype=kind)
    np.subtract(plan.X, x_offset, out=X, casting="same_kind")
    scale = scales_by_fold(X, plan.folds)
    return Job(plan, shards, X, x_offset, scale, settings, pair, arms, detail)
