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

from benchmarks.coverage import methods, tuning_worlds, worlds
from benchmarks.coverage.methods import ORACLE, OURS, PEER, estimate, methods_for
from benchmarks.coverage.tuning_worlds import WORLDS, draw_tuning
from benchmarks.coverage.worlds import draw
from experiments.jobs import ROOT, files_behind, hash_of, run_jobs

CACHE = Path(".cache/coverage")
KEPT = Path(__file__).parents[1] / "results" / "coverage_runs.csv.gz"  # of earlier sessions
CHUNK = 10  # replications in one file
CONTROLS = 2500  # replications with the true nuisances, which take little time
OTHER = ("audit", "plotting", "report", "cli", "version.py")  # without influence on an estimate


def code_of(method):
    """Files and texts on which the results of a method depend."""
    code = [inspect.getsource(module) for module in (worlds, tuning_worlds, methods)]
    if method in OURS:
        files = files_behind("ddml_fs.effect")
        return code + [f for f in files if not set(f.relative_to(ROOT).parts) & set(OTHER)]
    if method == PEER:
        folder = ROOT / "experiments/baselines/effects"
        return code + [folder / f"{name}.py" for name in ("boosting", "dml", "base")]
    return code


def draw_of(setting, seed):
    """One data set of a setting."""
    size = setting.n_samples, setting.n_features, seed
    if setting.world in WORLDS:
        return draw_tuning(setting.world, setting.treatment, *size)
    return draw(setting.world, setting.treatment, setting.effect, *size)


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
        data = draw_of(setting, seed)
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
        Of cheap settings, see :meth:`Setting.n_replications`; the truth has at least 2500.
    n_jobs : int
        Processes; each computes with one thread.
    only_read : bool, default=False
        Whether to leave out what is not cached.
    chosen : sequence of str, optional
        Methods; by default all.

    Returns
    -------
    rows : DataFrame
        ``setting, rows, method, code, seed, truth, effect, stderr, low, high, warned, nuisance,
        seconds``.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    names = {method for setting in settings for method in methods_for(setting)}
    hashes = {method: hash_of(*code_of(method)) for method in names}
    kept, work = kept_runs(hashes), []
    for setting in settings:
        for method in methods_for(setting):
            if chosen and method not in chosen and not method.startswith(ORACLE):
                continue
            n = setting.n_replications(replications)
            if method.startswith(ORACLE):
                n = max(replications, CONTROLS)
            for start in range(0, n, CHUNK):
                seeds = range(start, min(start + CHUNK, n))
                stem = f"{setting.name}, {setting.n_samples}, {method}, {seeds.start}-{seeds.stop}"
                path = CACHE / f"{stem}-{hashes[method]}.json".replace(" ", "_")
                own = kept.get((setting.name, setting.n_samples, method), {})
                if not path.exists() and own.keys() >= set(seeds):
                    path.write_text(json.dumps([own[seed] for seed in seeds]))
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
            keys["code"] = hashes[method]
            rows += [{**keys, **row} for row in json.loads(path.read_text())]
    return pd.DataFrame(rows)


def kept_runs(hashes):
    """Replications in the file of earlier sessions that were made with the present code.

    Parameters
    ----------
    hashes : dict
        From methods to the hashes of their code.

    Returns
    -------
    kept : dict
        From (setting, number of rows, method) to a dict from seeds to rows of results.
    """
    if not KEPT.exists():
        return {}
    table = pd.read_csv(KEPT, dtype={"code": str})
    table = table[table["code"] == table["method"].map(hashes)].drop(columns="code")
    return {
        key: {row["seed"]: row for row in part.iloc[:, 3:].to_dict("records")}
        for key, part in table.groupby(["setting", "rows", "method"], sort=False)
    }


def keep_runs(runs, path=KEPT):
    """Write replications, without those of the true nuisances, to the file that is committed."""
    table = runs[~runs["method"].str.startswith(ORACLE)].drop(columns="seconds").round(6)
    table.assign(seconds=runs["seconds"].round(2)).to_csv(path, index=False)
