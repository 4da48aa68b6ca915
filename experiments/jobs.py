"""Jobs in other processes with a progress bar, and hashes that tell which finished job to read."""

import hashlib
import re
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from rich.progress import Progress, TimeElapsedColumn

ROOT = Path(__file__).parents[1]
IMPORT = re.compile(r"^\s*(?:from|import) (experiments\.baselines[\w.]*)", re.MULTILINE)


def run_jobs(function, jobs, n_jobs, label, preload=(), fresh=False):
    """Call a function with the arguments of every job.

    Parameters
    ----------
    function : callable
        Of a module's top level.
    jobs : list of tuples
    n_jobs : int
        Processes.
    label : str
        Of the progress bar.
    preload : sequence of str
        Modules that the server of new processes imports once for all.
    fresh : bool, default=False
        Whether every job gets a process of its own, so that its peak of memory is its own.
    """
    if not jobs:
        return
    context = get_context("forkserver")
    context.set_forkserver_preload(list(preload))
    pool = ProcessPoolExecutor(n_jobs, mp_context=context, max_tasks_per_child=1 if fresh else None)
    with pool, Progress(*Progress.get_default_columns(), TimeElapsedColumn()) as progress:
        bar = progress.add_task(label, total=len(jobs))
        for done in as_completed([pool.submit(function, *job) for job in jobs]):
            done.result()
            progress.advance(bar)


def hash_of(*parts):
    """Ten digits that change with any of several texts, arrays and contents of files.

    Parameters
    ----------
    *parts : str, array or Path
    """
    digest = hashlib.sha1()
    for part in parts:
        if isinstance(part, Path):
            digest.update(part.read_bytes())
        elif isinstance(part, np.ndarray):
            digest.update(np.ascontiguousarray(part).tobytes())
        else:
            digest.update(str(part).encode())
    return digest.hexdigest()[:10]


def python_files(folder, without=()):
    """The modules below a folder of the project, but those with (or in folders with) some names."""
    files = sorted((ROOT / folder).rglob("*.py"))
    return [f for f in files if not set(f.relative_to(ROOT).parts) & set(without)]


def baseline_files(estimator):
    """The files of the baselines behind an estimator and its parameters, with all they import."""
    found = {}
    waiting = [type(part).__module__ for part in (estimator, *estimator.get_params().values())]
    while waiting:
        name = waiting.pop()
        path = ROOT / (name.replace(".", "/") + ".py")
        if name not in found and path.exists():
            found[name] = path
            waiting += IMPORT.findall(path.read_text())
    return sorted(found.values())
