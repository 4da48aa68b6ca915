"""Sweeps of wide data: time and memory, and the effects of a shared trunk and of separate encoders.

``python -m benchmarks.wide``: the product reviews with 8000 rows × 5000 words, sparse, five folds,
two workers. Networks with a shared trunk and ridge regressions sweep all words; networks with
separate encoders sweep 100 random words, and their effects are compared. The time per column is
that of 2000 reviews with 400 and with 5000 words. Each sweep is a process of its own. ``--quick``
takes 600 reviews and 1200 words, and nothing is written.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from joblib.externals.loky import get_reusable_executor

from benchmarks.memory import PeakMemory
from ddml_fs import CausalFeatureSelector
from ddml_fs.datasets import fetch_multi_domain_sentiment
from ddml_fs.domains import across_domains
from ddml_fs.encoding import read_target
from ddml_fs.engine.resources import Resources
from ddml_fs.features import read_features
from ddml_fs.nuisances import shrunken_network
from ddml_fs.scores import Logistic
from ddml_fs.sweep import SweepInput, sweep
from ddml_fs.tables import dense
from experiments.writing import Writer

RESULTS = Path(__file__).parent / "results"
N_COMPARED, N_JOBS, FOLDS = 100, 2, 5
EVERY, FEW = (8000, 5000), ((2000, 400), (2000, 5000))  # rows and columns
QUICK, QUICK_FEW = (600, 1200), ((400, 200), (400, 1200))


def part_of_reviews(n_rows, n_columns):
    """Some rows, drawn at random, and the most frequent words, without words that never occur."""
    data = fetch_multi_domain_sentiment()
    rows = np.random.RandomState(0).permutation(data["X"].shape[0])[:n_rows]
    return data["X"][rows][:, :n_columns], data["y"][rows]


def whole(nuisance):
    """A sweep over all words; standardised effects of the columns."""

    def fit(X, y):
        selector = CausalFeatureSelector(
            min(100, X.shape[1]), nuisance=nuisance, n_jobs=N_JOBS, random_state=0
        )
        return selector.fit(X, y).effects_["std_effect"].to_numpy()

    return fit


def separate(X, y):
    """Networks with separate encoders for some words; effects, with NaN for other columns."""
    table = dense(X)
    ones = np.ones(len(y))
    features = read_features(table, np.arange(X.shape[1]), X.shape[1], ones)
    given = SweepInput(features, read_target(y, "auto"), np.zeros(len(y), int), ones)
    rng = np.random.RandomState(1)
    swept = np.sort(rng.choice(features.n_features, N_COMPARED, replace=False))
    result = sweep(
        given,
        shrunken_network().set_params(trunk=False),
        Logistic(),
        seed=0,
        n_folds=FOLDS,
        covariates="all",
        resources=Resources(n_jobs=N_JOBS, detail=False),
        swept=swept,
    )
    effects = np.full(X.shape[1], np.nan)
    effects[features.first[swept]] = across_domains(*result.evidence[0].by_domain()).effect
    return effects


METHODS = {
    "networks": whole("shrunken"),
    "ridge": whole("ridge"),
    "separate encoders": separate,
}


def measure(name, n_rows, n_columns, out):
    """Seconds, seconds of all processors, and peak memory of one sweep; effects go to a file."""
    warnings.simplefilter("ignore")
    X, y = part_of_reviews(n_rows, n_columns)
    watch = PeakMemory()
    watch.start()
    start, before = time.perf_counter(), os.times()
    effects = METHODS[name](X, y)
    seconds = time.perf_counter() - start
    watch.over.set()
    get_reusable_executor().shutdown(wait=True)  # so that the workers' time is counted
    after = os.times()
    np.save(out, effects)
    used = sum(after[:4]) - sum(before[:4])
    return {"seconds": seconds, "processor seconds": used, "peak MB": watch.peak}


def in_process(name, size, folder):
    """:func:`measure` in a process of its own, and the effects."""
    out = Path(folder) / f"{name}.npy"
    argv = [sys.executable, "-m", "benchmarks.wide", "--only", name, "--out", str(out)]
    argv += ["--n-rows", str(size[0]), "--n-columns", str(size[1])]
    text = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    row = {"sweep": name, "rows": size[0], "columns": size[1]} | json.loads(text.splitlines()[-1])
    swept = N_COMPARED if name == "separate encoders" else size[1]
    row["processor ms per column"] = 1e3 * row["processor seconds"] / swept
    print(row, flush=True)
    return row, np.load(out)


def main(
    quick: Annotated[bool, typer.Option(help="A small part; nothing is written.")] = False,
    only: Annotated[str, typer.Option(help="Measure one sweep in this process.")] = "",
    n_rows: Annotated[int, typer.Option(help="Rows of this sweep.")] = EVERY[0],
    n_columns: Annotated[int, typer.Option(help="Columns of this sweep.")] = EVERY[1],
    out: Annotated[str, typer.Option(help="File for its effects.")] = "",
):
    """Time, memory and agreement."""
    if only:
        print(json.dumps(measure(only, n_rows, n_columns, out)))
        return
    size, few = (QUICK, QUICK_FEW) if quick else (EVERY, FEW)
    with tempfile.TemporaryDirectory() as folder:
        rows, effects = zip(*(in_process(name, size, folder) for name in METHODS), strict=True)
        rows = [*rows, *(in_process("networks", part, folder)[0] for part in few)]
    table = pd.DataFrame(rows).set_index("sweep")
    compared = pd.DataFrame(effects, index=list(METHODS)).T.dropna()
    r = compared.corr("spearman").loc["separate encoders"]
    few_columns, many_columns = table["processor ms per column"].iloc[-2:]
    ratio = many_columns / few_columns
    print(table)
    print(r, ratio)
    if not quick:
        notes = (
            f"Product reviews, sparse, {FOLDS} folds, {N_JOBS} workers, `nuisance='shrunken'` and "
            "`'ridge'`; peak memory is the largest sum over all processes, libraries included. "
            f"Separate encoders sweep {N_COMPARED} random words; the rank correlation of their "
            f"effects with those of the trunk is {r['networks']:.3f}, with those of ridge "
            f"{r['ridge']:.3f}. With 5000 words a column takes {ratio:.2f} times the processor "
            f"time of one of 400 words. {os.cpu_count()} cores, of a machine with other work: load "
            f"{os.getloadavg()[2]:.1f}."
        )
        write = Writer(RESULTS, "python -m benchmarks.wide")
        write("wide", "Sweeps of wide data", table, notes, digits=1)


if __name__ == "__main__":
    typer.run(main)
