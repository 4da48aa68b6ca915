"""Where joblib's workers are: on this machine, on a dask cluster or on a Ray cluster.

The user chooses by ``joblib.parallel_config``. A backend says how an object reaches all workers
once, and how many workers were lost.
"""

import logging
import sys
from typing import Any, NamedTuple

from joblib import delayed, effective_n_jobs
from joblib.parallel import get_active_backend

from ddml_fs.warning import caution
from ddml_fs.workers import parallel

LOGGER = logging.getLogger(__name__)
MOST_LOSSES = 3  # of workers of one run, as for a task of dask


class Backend:
    """Workers of this machine: threads, or processes that are sent their arguments.

    Attributes
    ----------
    is_cluster : bool
    """

    is_cluster = False

    @property
    def losses(self) -> tuple:
        """What the loss of a worker raises, if the backend does not repeat its tasks by itself."""
        return ()

    def n_workers(self, n_jobs: int | None) -> int:
        """The number of workers that ``n_jobs`` means."""
        return effective_n_jobs(n_jobs)

    def share(self, value: Any) -> Any:
        """What to pass to workers in place of an object that all of them need."""
        return value

    def repeated(self, name: str) -> tuple[int, int]:
        """Numbers of workers that were lost, and of calls of a function that were repeated."""
        return 0, 0


class DaskBackend(Backend):
    """A cluster of dask.distributed, which computes the tasks of a lost worker again.

    Parameters
    ----------
    client : distributed.Client
    """

    is_cluster = True

    def __init__(self, client):
        self.client, self.workers = client, set(client.nthreads())

    def share(self, value):
        """A copy for every worker: what only one worker has would be lost with it."""
        return self.client.scatter(value, broadcast=True, hash=False)

    def repeated(self, name):
        """From the scheduler's events, see :meth:`Backend.repeated`."""
        lost = self.workers - set(self.client.nthreads())
        events = [event for worker in lost for _, event in self.client.get_events(worker)]
        keys = [
            key
            for event in events
            if event.get("action") == "remove-worker"
            for kind in ("processing-tasks", "lost-computed-tasks")
            for key in event.get(kind, ())
        ]
        return len(lost), sum(name in str(key) for key in keys)


class RayBackend(Backend):
    """Ray's workers. A lost one ends a call of joblib, so what is missing is called once more."""

    is_cluster = True

    @property
    def losses(self):
        """The error that the loss of a worker raises."""
        from ray.exceptions import RayActorError

        return (RayActorError,)

    def n_workers(self, n_jobs):
        """All processors of the cluster, unless a number is given."""
        n_jobs = get_active_backend()[1] if n_jobs is None else n_jobs
        return effective_n_jobs(-1 if n_jobs is None else n_jobs)

    def share(self, value):
        """A reference into the object store, which is copied once to each machine."""
        import ray

        return Stored(ray.put(value))


class Stored(NamedTuple):
    """An object in Ray's object store."""

    reference: Any

    def fetch(self):
        """The object itself; its arrays are read-only views of the store."""
        import ray

        return ray.get(self.reference)


def fetched(value):
    """The object that :meth:`Backend.share` shared, in a worker."""
    return value.fetch() if isinstance(value, Stored) else value


def active_backend() -> Backend:
    """The backend that ``joblib.parallel_config`` has chosen.

    Examples
    --------
    >>> active_backend().is_cluster
    False
    """
    backend, _ = get_active_backend()
    package = type(backend).__module__.partition(".")[0]
    if type(backend).__name__ == "DaskDistributedBackend":
        return DaskBackend(backend.client)
    if package == "ray":
        return RayBackend()
    return Backend()


def each_on(backend, function, calls, n_workers, what):
    """Results of calls of a function by workers, each as soon as it is there.

    Calls of lost workers are repeated, and a warning says so.

    Parameters
    ----------
    backend : Backend
    function : callable
        Its results begin with the key of the call. It is pure, as calls may be repeated.
    calls : iterable of pairs
        Keys and keyword arguments. No argument is a large array: dask would store it on a single
        worker, and lose it with this worker. In a tuple, arrays are a part of the call.
    n_workers : int
    what : str
        What one call computes.
    """
    calls, losses, repeated = iter(calls), 0, 0
    begun: dict = {}

    def work():
        for call in list(begun.values()):
            yield delayed(function)(**call)
        for key, call in calls:
            begun[key] = call
            yield delayed(function)(**call)

    while True:
        options = {"return_as": "generator_unordered", "batch_size": 1}
        try:
            for result in parallel(work(), n_workers, **options):
                del begun[result[0]]
                yield result
            break
        except backend.losses:
            losses, repeated = losses + 1, repeated + len(begun)
            if losses > MOST_LOSSES:
                raise
    lost, again = backend.repeated(function.__name__)
    report_losses(losses + lost, repeated + again, what)


def report_losses(workers, repeated, what):
    """Warn if workers were lost: how many, and how many calls were repeated."""
    if workers:
        message = (
            f"{count(workers, 'worker')} of the cluster {were(workers)} lost during the run; "
            f"{count(repeated, what)} {were(repeated)} computed again."
        )
        LOGGER.warning(message)
        caution(message)


def dask_client():
    """The client of dask.distributed that joblib or dask itself would use, or None."""
    backend = active_backend()
    if isinstance(backend, DaskBackend):
        return backend.client
    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        return default_client()
    except ValueError:  # there is none
        return None


def count(n, thing):
    """A number of things in words.

    Examples
    --------
    >>> count(1, "worker"), count(2, "shard")
    ('1 worker', '2 shards')
    """
    return f"{n} {thing}" + ("" if n == 1 else "s")


def were(n):
    """ "was" or "were"."""
    return "was" if n == 1 else "were"
