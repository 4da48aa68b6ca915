"""Jobs in other processes with a progress bar, and hashes that tell which finished job to read."""

import ast
import hashlib
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from rich.progress import Progress, TimeElapsedColumn

ROOT = Path(__file__).parents[1]


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


def files_behind(*modules):
    """The files of modules of the project, with all that they import, directly or not.

    Parameters
    ----------
    *modules : str
        Such as "ddml_fs.effect".

    Returns
    -------
    files : list of Path

    Examples
    --------
    >>> [file.name for file in files_behind("ddml_fs.warning")]
    ['warning.py']
    """
    found, waiting = {}, list(modules)
    while waiting:
        name = waiting.pop()
        place = ROOT / name.replace(".", "/")
        path = place / "__init__.py" if place.is_dir() else place.with_name(f"{place.name}.py")
        # The file of the whole package imports everything, and no module needs it.
        if name in found or "." not in name or not path.exists():
            continue
        found[name] = path
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                waiting += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                waiting += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return sorted(found.values())


def baseline_files(estimator):
    """The files of the baselines behind an estimator and its parameters, with all they import."""
    parts = (estimator, *estimator.get_params().values())
    files = files_behind(*(type(part).__module__ for part in parts))
    return [file for file in files if ROOT / "experiments/baselines" in file.parents]
