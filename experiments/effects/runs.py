"""Runs of methods on replications, cached one file a run, so that a study can be resumed."""

import hashlib
import inspect
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed
from rich.progress import Progress, TimeElapsedColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

import ddml_fs
from experiments import baselines

CACHE = Path(".cache/effects")
BASELINES = Path(baselines.__file__).parent
PACKAGE = Path(ddml_fs.__file__).parent


def fingerprint(method, data, n_rows):
    """A hash of a method's settings, of the code behind it and of the size of the data: a cached
    run is reused only by the same method on the same data."""
    files = set()
    for kind in type(method).__mro__[:-1]:
        file = Path(inspect.getfile(kind))
        if PACKAGE in file.parents:
            files.update(PACKAGE.rglob("*.py"))
        elif BASELINES in file.parents:
            files |= {file, *helpers(inspect.getmodule(kind))}
    digest = hashlib.sha1(repr((sorted(method.get_params().items()), data.name, n_rows)).encode())
    for file in sorted(files):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:10]


def helpers(module):
    """Files of the baselines from which a module takes functions or classes."""
    parts = [value for value in vars(module).values() if hasattr(value, "__code__")]
    parts += [value for value in vars(module).values() if inspect.isclass(value)]
    names = {part.__module__ for part in parts}
    return {Path(sys.modules[n].__file__) for n in names if n.startswith(baselines.__name__)}


def as_row(method, data, seed, effect, truth, interval, seconds=0.0):
    """One line of a study's table of runs; an interval that is no number covers nothing."""
    low, high = map(float, interval)
    known = np.isfinite(low)
    return {
        "method": method,
        "data": data,
        "seed": int(seed),
        "error": float(effect - truth),
        "covered": float(low <= truth <= high) if known else np.nan,
        "half_width": (high - low) / 2,
        "seconds": seconds,
    }


def fit_quietly(method, case):
    """Fit a method on a case in one thread."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rivals that stop early, by the thousand
        torch.set_num_threads(1)
        return method.fit(case.X, case.y, treatment=case.treatment)


def fit(method, data, seeds, paths):
    """Fit a method on one replication or on a stack of them, and write a row for each.

    Parameters
    ----------
    method : estimator
        With ``fit(X, y, treatment=t)``, ``effect_`` and ``conf_int``.
    data : DataSet
    seeds : sequence of int
    paths : list of Path
        Files of the rows.
    """
    case = data.load(seeds)
    start = time.perf_counter()
    fit_quietly(method, case)
    seconds = (time.perf_counter() - start) / len(seeds)
    columns = (method.effect_, case.truth, *method.conf_int())
    values = np.stack(np.broadcast_arrays(*map(np.atleast_1d, columns)), 1)  # (R, 4)
    for seed, path, (effect, truth, *interval) in zip(seeds, paths, values, strict=True):
        row = as_row(type(method).__name__, data.name, seed, effect, truth, interval, seconds)
        path.write_text(json.dumps(row))
    return len(seeds)


def run_all(methods, data_sets, n_jobs=2):
    """All methods on all data sets, as a DataFrame of one row a run.

    Parameters
    ----------
    methods : dict
        From a name to a :class:`~experiments.effects.methods.Method`.
    data_sets : list of DataSet
    n_jobs : int
        Workers; each computes with one thread.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    work, files = {}, []
    for data in data_sets:
        first = data.load(data.seeds[:1])
        for name, method in methods.items():
            if not (data.binary or method.continuous):
                continue
            # Marks are taken before the work begins: the code on disk may change meanwhile.
            made = {s: method.make(first.target, s) for s in data.seeds}
            # A run is kept under its estimator, not its name: studies share what they share.
            kind = type(made[data.seeds[0]]).__name__
            paths = {
                s: CACHE / f"{kind}-{data.name}-{s}-{fingerprint(m, data, len(first.y))}.json"
                for s, m in made.items()
            }
            files += [(name, path) for path in paths.values()]
            left = tuple(s for s in data.seeds if not paths[s].exists())
            if method.stacked and data.stacked and left:
                of_left = [paths[s] for s in left]
                work[of_left[0]] = made[data.seeds[0]], data, left, of_left
            else:
                work |= {paths[s]: (made[s], data, (s,), [paths[s]]) for s in left}
    columns = (*Progress.get_default_columns()[:-1], TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns) as progress:
        bar = progress.add_task("runs", total=len(files))
        progress.advance(bar, len(files) - sum(len(job[2]) for job in work.values()))
        parallel = Parallel(n_jobs, return_as="generator_unordered", batch_size=1)
        for n in parallel(delayed(fit)(*job) for job in work.values()):
            progress.advance(bar, n)
    return pd.DataFrame([json.loads(path.read_text()) | {"method": name} for name, path in files])
