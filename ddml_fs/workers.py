"""Work in parallel, by worker processes that never outlive the process that started them."""

import multiprocessing
import os
import signal
import threading
import time

from joblib import Parallel
from joblib.externals.loky.backend.process import LokyProcess

SECONDS_PER_LOOK = 0.5  # between two looks whether the parent still lives


def parallel(work, n_jobs=None, **options):
    """Results of joblib's delayed calls, each as soon as it is there.

    Parameters
    ----------
    work : iterable of delayed calls
    n_jobs : int, optional
    options
        Of :class:`joblib.Parallel`; by default the results are in the order of the calls.

    Returns
    -------
    results : iterable

    Examples
    --------
    >>> from joblib import delayed
    >>> list(parallel(delayed(abs)(x) for x in (-1, 2)))
    [1, 2]
    """
    options |= {"initializer": watch, "initargs": (os.getpid(),)}
    try:
        pool = Parallel(n_jobs, **{"return_as": "generator"} | options)
    except ValueError:  # a backend that returns all results at once
        options.pop("return_as", None)
        pool = Parallel(n_jobs, **options)
    return pool(work)


def watch(parent):
    """End this process, a worker, when its parent has ended.

    A parent that is killed cannot stop its workers, which would wait for more work for minutes. A
    parent that is interrupted stops them itself, so they do not react to the same keys.

    Parameters
    ----------
    parent : int
        Number of the parent process.
    """
    # Workers of other backends may be children of a helper process instead.
    if os.name == "posix" and isinstance(multiprocessing.current_process(), LokyProcess):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent):
    while os.getppid() == parent:
        time.sleep(SECONDS_PER_LOOK)
    os.kill(os.getpid(), signal.SIGKILL)  # there is nobody to whom results could be returned
