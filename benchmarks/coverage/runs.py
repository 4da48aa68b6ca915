"""Replications in chunks, one file per chunk, so that a run can be resumed."""

import inspect
import json
import time
import warnings
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import torch
from threadpoolctl import threadpool_limits

from benchmarks.coverage import methods, worlds
from benchmarks.coverage.methods import ORACLE, OURS, PEER, estimate, methods_for
from benchmarks.coverage.worlds import draw
from experiments.jobs import ROOT, hash_of, python_files, run_jobs

CACHE = Path(".cache/coverage")
CHUNK = 10  # replications in one file
OTHER = ("audit", "plotting", "report", "cli", "version.py")  # without influence on an estimate


def code_of(method):
    """Files and texts on which the results of a method depend."""
    code = [inspect.getsource(worlds), inspect.getsource(methods)]
    if method in OURS:
        return code + python_files("ddml_fs", without=OTHER)
    if method == PEER:
        folder = ROOT / "experiments/baselines/effects"
        return code + [folder / f"{name}.py" for name in ("boosting", "dml", "base")]
    return code


def run_chunk(setting, method, seeds, path):
    """Estimate by a method on some draws, and write a file of the results.

    Parameters
    ----------
    setting : Setting
    method : str
    seeds : sequence of int
    path : Path
    """
    torch.set_num_threads(1)
    rows = []
    for seed in seeds:
        data = draw(
            setting.world,
            setting.treatment,
            setting.effect,
            setting.n_samples,
            setting.n_features,
            seed,
        )
        start = time.perf_counter()
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = estimate(method, data, setting.score, seed)
        seconds = time.perf_counter() - start
        rows.append({"seed": seed, "truth": data.truth, **asdict(found), "seconds": seconds})
    part = path.with_suffix(".part")
    part.write_text(json.dumps(rows))
    part.rename(path)  # whole or not at all


def run_all(settings, replications, n_jobs=1, only_read=False, chosen=None):
    """All replications of all settings; what is cached is not done again.

    Parameters
    ----------
    settings : list of Setting
    replications : int
        Of cheap settings, see :meth:`Setting.n_replications`; the truth always has all.
    n_jobs : int
        Processes; each computes with one thread.
    only_read : bool, default=False
        Whether to leave out what is not cached.
    chosen : sequence of str, optional
        Methods; by default all.

    Returns
    -------
    rows : DataFrame
        ``setting, rows, method, seed, truth, effect, stderr, low, high, warned, seconds``.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    hashes = {m: hash_of(*code_of(m)) for s in settings for m in methods_for(s)}
    work = []
    for setting in settings:
        for method in methods_for(setting):
            if chosen and method not in chosen:
                continue
            cheap = method.startswith(ORACLE)
            n = replications if cheap else setting.n_replications(replications)
            for start in range(0, n, CHUNK):
                seeds = range(start, min(start + CHUNK, n))
                stem = f"{setting.name}, {setting.n_samples}, {method}, {seeds.start}-{seeds.stop}"
                path = CACHE / f"{stem}-{hashes[method]}.json".replace(" ", "_")
                work.append((setting, method, seeds, path))
    # The first chunks of all settings come first, so that an early table has all settings.
    missing = sorted((job for job in work if not job[-1].exists()), key=lambda job: job[2].start)
    if not only_read:
        label = f"{len(missing)} of {len(work)} chunks"
        run_jobs(run_chunk, missing, n_jobs, label, preload=["benchmarks.coverage.runs"])
    rows = []
    for setting, method, _, path in work:
        if path.exists():
            keys = {"setting": setting.name, "rows": setting.n_samples, "method": method}
            rows += [{**keys, **row} for row in json.loads(path.read_text())]
    return pd.DataFrame(rows)
