"""Runs of methods on data sets, cached one file a run, so that a study can be resumed."""

import hashlib
import inspect
import json
import time
from pathlib import Path

import pandas as pd
import torch
from joblib import Parallel, delayed
from rich.progress import track
from threadpoolctl import threadpool_limits

from ddml_fs.datasets import make_effect_data

CACHE = Path(".cache/effects")


def fingerprint(method):
    """A hash of a method's settings and of the code of its package: a cached run is reused only
    by the same method."""
    source = Path(inspect.getfile(type(method)))
    files = [source] if "baselines" in source.parts else sorted(source.parent.rglob("*.py"))
    digest = hashlib.sha1(repr(sorted(method.get_params().items())).encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:10]


def as_row(name, kind, d, seed, data, effect, interval, seconds=0.0):
    """One line of a study's table of runs."""
    return {
        "method": name,
        "kind": kind,
        "d": d,
        "seed": seed,
        "error": effect - data.theta,
        "half_width": (interval[1] - interval[0]) / 2,
        "covered": bool(interval[0] <= data.theta <= interval[1]),
        "seconds": seconds,
    }


def fit_once(name, method, kind, d, seed, path):
    """Fit one method on one data set, or read its cached row.

    Parameters
    ----------
    name : str
        The method's name.
    method : estimator
        With ``fit(X, y, treatment=t)``, ``effect_`` and ``conf_int``.
    kind, d, seed
        Arguments of the paper's generator.
    path : Path
        File of the finished run.

    Returns
    -------
    row : dict
    """
    if path.exists():
        return json.loads(path.read_text())
    data = make_effect_data(kind, n_features=d, random_state=seed)
    start = time.perf_counter()
    with threadpool_limits(1):
        torch.set_num_threads(1)
        method.fit(data.X, data.y, treatment=data.treatment)
    seconds = time.perf_counter() - start
    row = as_row(name, kind, d, seed, data, method.effect_, method.conf_int(), seconds)
    path.write_text(json.dumps(row))
    return row


def run_all(methods, settings, seeds, n_jobs=2):
    """All methods on all data sets, as a DataFrame of one row a run.

    Parameters
    ----------
    methods : dict
        From a name to a function of the seed that makes the estimator.
    settings : list of (kind, d)
    seeds : sequence of int
    n_jobs : int
        Workers; each computes with one thread.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    jobs = []
    for name, make in methods.items():
        for seed in seeds:
            method = make(seed)
            # Taken before the work begins: the code on disk may change while the study runs.
            mark = fingerprint(method)
            for kind, d in settings:
                path = CACHE / f"{name}-{mark}-{kind}-{d}-{seed}.json"
                jobs.append(delayed(fit_once)(name, method, kind, d, seed, path))
    rows = Parallel(n_jobs=n_jobs, return_as="generator", batch_size=1)(jobs)
    return pd.DataFrame(list(track(rows, total=len(jobs), description="runs")))
