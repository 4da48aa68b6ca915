"""Workers of a dask cluster for a command."""

from contextlib import contextmanager
from importlib.util import find_spec

SECONDS = 5  # to wait for the scheduler


def split_cluster(cluster, scheduler):
    """The column of clusters and the address of a scheduler; ``--cluster`` takes either.

    Examples
    --------
    >>> split_cluster("tcp://10.0.0.1:8786", ""), split_cluster("person", "")
    (('', 'tcp://10.0.0.1:8786'), ('person', ''))
    """
    if "://" not in cluster:
        return cluster, scheduler
    if scheduler:
        raise ValueError(
            f"--cluster must be a column if --scheduler is given, got the address {cluster!r}."
        )
    return "", cluster


@contextmanager
def workers_at(address, n_jobs):
    """Let joblib use the workers of a dask scheduler.

    Parameters
    ----------
    address : str
        Such as "tcp://10.0.0.1:8786"; with an empty one, nothing changes.
    n_jobs : int
        The number of workers without a cluster.

    Yields
    ------
    n_jobs : int, or None
        None: all workers of the cluster.
    """
    if not address:
        yield n_jobs
        return
    if n_jobs != 1:
        raise ValueError(
            f"--n-jobs is for workers of this machine, not of a cluster, got {n_jobs}."
        )
    if find_spec("distributed") is None:
        raise ImportError("a cluster needs dask; install it: pip install 'ddml-fs[dask]'.")
    from distributed import Client
    from joblib import parallel_config

    try:
        client = Client(address, timeout=SECONDS, set_as_default=False)
    except (OSError, ValueError):
        raise ValueError(
            f"--cluster must be the address of a dask scheduler such as tcp://10.0.0.1:8786, but "
            f"none answers at {address!r}."
        ) from None
    with client:
        if not client.nthreads():
            raise ValueError(f"the cluster at {address} must have workers, got none; start some.")
        with parallel_config(backend="dask", client=client):
            yield None
