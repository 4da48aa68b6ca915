"""How time and memory grow with the numbers of columns and of rows.

``python -m benchmarks.growth``: tables of 0/1 columns as in text (6 % ones), one core, five folds.
Columns grow at 1000 rows, rows at 50 columns. Every fit is a process of its own. The peers estimate
one column at a time, with forests of 100 trees; they are timed on two columns, and their time for
all columns is extrapolated. ``--quick`` takes small tables only.
"""

import json
import os
import resource
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

from benchmarks.memory import PeakMemory
from benchmarks.sweep import doubleml, econml
from experiments.figures import save
from experiments.writing import Writer

RESULTS = Path(__file__).parent / "results"
DENSITY, CAUSES, PEER_COLUMNS = 0.06, 20, 2
FEW_ROWS, FEW_COLUMNS = 1000, 50
NETWORKS, RIDGE, BLOCKS = "networks", "ridge", "ridge, in blocks"
DOUBLEML, ECONML = "DoubleML, forests", "EconML, forests"
COLUMNS = {
    NETWORKS: (100, 200, 400, 1000, 2000, 5000),
    RIDGE: (100, 200, 400, 1000, 2000, 5000, 10_000, 20_000),
    DOUBLEML: (100, 400, 1000),
    ECONML: (100, 400, 1000),
}
ROWS = {
    NETWORKS: (1000, 3000, 10_000, 30_000),
    RIDGE: (1000, 3000, 10_000, 30_000, 100_000),
    BLOCKS: (10_000, 100_000, 1_000_000),
    DOUBLEML: (1000, 10_000),
    ECONML: (1000, 10_000),
}
# Smaller tables mostly measure what every fit costs, so exponents are those of larger ones.
FROM_COLUMNS, FROM_ROWS = 400, 3000


def words(n_rows, n_columns, out=None):
    """0/1 columns, and labels that depend on twenty of them, in blocks of rows.

    Parameters
    ----------
    n_rows, n_columns : int
    out : array of shape (n_rows, n_columns), optional
        Where to write the columns, such as a memory-mapped array.

    Returns
    -------
    X, y : arrays
    """
    rng = np.random.default_rng(0)
    X = np.empty((n_rows, n_columns), np.float32) if out is None else out
    theta = np.where(np.arange(n_columns) < CAUSES, 1.5, 0.0)
    y = np.empty(n_rows, int)
    for start in range(0, n_rows, 10_000):
        rows = slice(start, start + 10_000)
        X[rows] = rng.random(X[rows].shape, np.float32) < DENSITY
        index = X[rows] @ theta
        y[rows] = index + rng.logistic(size=len(index)) > CAUSES * 1.5 * DENSITY
    return X, y


def fit_blocks(n_rows, n_columns):
    """A ridge sweep of a memory-mapped array."""
    from ddml_fs import CausalFeatureSelector, read_blocks

    with tempfile.TemporaryDirectory() as folder:
        shape = {"dtype": np.float32, "shape": (n_rows, n_columns)}
        X, y = words(
            n_rows, n_columns, np.lib.format.open_memmap(f"{folder}/X.npy", mode="w+", **shape)
        )
        X.flush()
        X = np.load(f"{folder}/X.npy", mmap_mode="r")
        options = {"nuisance": "ridge", "scale": "mean", "memory_budget": 1.0, "random_state": 0}
        selector = CausalFeatureSelector(20, **options)
        with Timed() as seen:
            selector.fit(read_blocks(X, y.astype(float)))
    return seen


class Timed:
    """Seconds, CPU seconds and peak memory of a block of code; children included."""

    def __enter__(self):
        self.watch, self.start, self.cpu = PeakMemory(), time.perf_counter(), cpu_seconds()
        self.watch.start()
        return self

    def __exit__(self, *_):
        self.seconds = time.perf_counter() - self.start
        self.cpu = cpu_seconds() - self.cpu
        self.watch.over.set()


def cpu_seconds():
    """Of this process and of its children that have ended."""
    used = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def measure(method, n_rows, n_columns):
    """Seconds for all columns, extrapolated for the peers, and peak memory in MB."""
    from ddml_fs import CausalFeatureSelector

    warnings.simplefilter("ignore")
    times = 1.0
    if method == BLOCKS:
        seen = fit_blocks(n_rows, n_columns)
    else:
        X, y = words(n_rows, n_columns)
        if method in (NETWORKS, RIDGE):
            nuisance = "shrunken" if method == NETWORKS else "ridge"
            options = {"nuisance": nuisance, "dose": "linear", "n_jobs": 1, "random_state": 0}
            with Timed() as seen:
                CausalFeatureSelector(20, **options).fit(X, y)
        else:
            times = n_columns / PEER_COLUMNS
            with Timed() as seen:
                (doubleml if method == DOUBLEML else econml)(X, y, range(PEER_COLUMNS), n_jobs=1)
    found = {"seconds": seen.seconds * times, "CPU seconds": seen.cpu * times}
    return found | {"peak MB": seen.watch.peak}


def way_of(method, n_rows, n_columns):
    """How a sweep is computed at this size; empty for the peers.

    Examples
    --------
    >>> way_of("networks", 1000, 5000), way_of("ridge", 1000, 400)
    ('shared trunk', 'products of columns')
    """
    from ddml_fs.engine.plan import WIDE

    if method == NETWORKS:
        return "shared trunk" if n_columns > WIDE else "separate encoders"
    if method == RIDGE and 0.8 * n_rows < n_columns:
        return "products of rows"
    return "products of columns" if method in (RIDGE, BLOCKS) else ""


def exponent(sizes, seconds, start):
    """Slope of log seconds in log size, from a size on; NaN with fewer than two sizes.

    Examples
    --------
    >>> round(exponent([10, 100, 1000], [9.0, 2.0, 20.0], 100), 6)
    1.0
    """
    sizes, seconds = np.asarray(sizes, float), np.asarray(seconds, float)
    used = sizes >= start
    if used.sum() < 2:
        return float("nan")
    return float(np.polyfit(np.log(sizes[used]), np.log(seconds[used]), 1)[0])


def exponents(table):
    """Exponents of the CPU seconds, one row per method, in columns and in rows."""
    rows = {}
    for (grows, method), part in table.groupby(["grows", "method"], sort=False):
        start = FROM_COLUMNS if grows == "columns" else FROM_ROWS
        rows.setdefault(method, {})[f"in {grows}"] = exponent(
            part[grows], part["CPU seconds"], start
        )
    return pd.DataFrame(rows).T.rename_axis("exponent")


def draw(table):
    """Seconds and memory against columns and rows, on log axes."""
    import matplotlib.pyplot as plt

    from ddml_fs.plotting.style import COLOURS, MARKERS

    methods = list(table["method"].unique())
    figure, axes = plt.subplots(2, 2, figsize=(8.5, 6.2), sharex="col", layout="constrained")
    for j, grows in enumerate(("columns", "rows")):
        for i, value in enumerate(("CPU seconds", "peak MB")):
            ax = axes[i, j]
            for method, part in table[table["grows"] == grows].groupby("method", sort=False):
                k = methods.index(method)
                look = {"color": COLOURS[k], "marker": MARKERS[k], "ms": 4, "label": method}
                ax.plot(part[grows], part[value], **look)
            ax.set(xscale="log", yscale="log")
            ax.spines[["top", "right"]].set_visible(False)
            if j == 0:
                ax.set_ylabel(f"{value}, one core" if i == 0 else "peak memory, MB")
        other = f"{FEW_ROWS} rows" if grows == "columns" else f"{FEW_COLUMNS} columns"
        axes[0, j].set_title(other, fontsize="medium")
        axes[1, j].set_xlabel(f"number of {grows}")
    handles = {}
    for ax in axes.flat:
        handles |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles, loc="outside upper center", ncols=3, frameon=False)
    return figure


def main(
    quick: Annotated[bool, typer.Option(help="Small tables only, a minute.")] = False,
    largest: Annotated[int, typer.Option(help="Largest number of rows or columns.")] = 1_000_000,
    method: Annotated[list[str] | None, typer.Option(help="Methods; by default all.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the results.")] = None,
    only: Annotated[str, typer.Option(help="Measure 'method|rows|columns' here.")] = "",
):
    """Time and memory against the numbers of columns and rows."""
    if only:
        name, n_rows, n_columns = only.split("|")
        print(json.dumps(measure(name, int(n_rows), int(n_columns))))
        return
    largest = 400 if quick else largest
    work = [("columns", m, FEW_ROWS, d) for m, sizes in COLUMNS.items() for d in sizes]
    if not quick:
        work += [("rows", m, n, FEW_COLUMNS) for m, sizes in ROWS.items() for n in sizes]
    rows = []
    for grows, name, n, d in work:
        if (method and name not in method) or (n if grows == "rows" else d) > largest:
            continue
        argv = [sys.executable, "-m", "benchmarks.growth", "--only", f"{name}|{n}|{d}"]
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        done = subprocess.run(
            argv, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | threads
        )
        found = json.loads(done.stdout.splitlines()[-1])
        size = {"grows": grows, "method": name, "rows": n, "columns": d}
        rows.append(size | {"computed by": way_of(name, n, d)} | found)
        print(rows[-1], flush=True)
    table = pd.DataFrame(rows)
    table["CPU ms per column"] = 1000 * table["CPU seconds"] / table["columns"]
    command = "python -m benchmarks.growth" + (" --quick" if quick else "")
    folder = out or (Path("results_quick") if quick else RESULTS)
    notes = (
        "0/1 columns with 6 % ones, one core, five folds; each fit is a process of its own. Memory "
        f"includes libraries. Peers: forests of 100 trees, timed on {PEER_COLUMNS} columns and "
        "extrapolated to all. Exponents are slopes of log CPU seconds in log size, from "
        f"{FROM_COLUMNS} columns and from {FROM_ROWS} rows on. With more columns than training "
        "rows, ridge needs the products of the rows only, and grows more slowly from there on."
    )
    write = Writer(folder, command)
    write("growth", "Time and memory against size", table.set_index("grows"), notes, digits=2)
    write("growth_exponents", "Exponents of growth", exponents(table), notes, digits=2)
    save(draw(table), folder, "growth")


if __name__ == "__main__":
    typer.run(main)
