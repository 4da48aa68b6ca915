"""How much time a second worker saves in a sweep.

``python -m benchmarks.workers``: Amazon books, 2000 reviews × 400 words, five folds, with networks
and with forests on their latents; and the default nuisances on the 8000 reviews of all four
domains. Every setting is timed in a process of its own, in five rounds. One worker and two are
timed one after the other, as a machine that shares its hardware is faster in one minute than in
another, and the median of their ratios counts. The first fit of a process starts the workers, a
second fit finds them running. ``--quick`` takes the first 60 words and one round.
"""

import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from ddml_fs import CausalFeatureSelector
from ddml_fs.datasets import fetch_amazon_reviews
from ddml_fs.plotting.style import COLOURS, legend_above, new_axes
from experiments.amazon.protocol import by_domain
from experiments.figures import save
from experiments.writing import Writer

RESULTS = Path(__file__).parent / "results"
NUISANCES = {"networks": "shrunken", "forests": "shrunken_rf", "default": "auto"}
ALL_DOMAINS = ("default",)  # measured on four domains
WORKERS, ROUNDS, QUICK_WORDS = (1, 2), 5, 60  # 60 words: two shards
FITS = ("first fit, s", "second fit, s")


def measure(nuisance, n_jobs, n_words):
    """Seconds of two fits, one after the other, in this process."""
    warnings.simplefilter("ignore")
    domains = by_domain(fetch_amazon_reviews())
    names = list(domains) if nuisance in ALL_DOMAINS else ["books"]
    X, y = (np.concatenate(parts) for parts in zip(*(domains[d] for d in names), strict=True))
    X = X[:, X.std(0) > 0][:, :n_words]
    domain = np.repeat(names, [len(domains[d][1]) for d in names])
    seconds = {}
    for fit in FITS:
        start = time.perf_counter()
        CausalFeatureSelector(
            min(100, n_words or 100), nuisance=NUISANCES[nuisance], n_jobs=n_jobs, random_state=0
        ).fit(X, y, sample_domain=domain)
        seconds[fit] = time.perf_counter() - start
    return seconds


def measure_all(rounds, n_words):
    """Medians over some rounds, with one row per nuisance and number of workers."""
    rows = []
    for r in range(rounds):  # in turn, so that what else the machine does affects all alike
        for nuisance in NUISANCES:
            for n_jobs in WORKERS:
                argv = [sys.executable, "-m", "benchmarks.workers", "--only", nuisance]
                argv += ["--n-jobs", str(n_jobs), "--n-words", str(n_words or 0)]
                out = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
                rows.append({"nuisances": nuisance, "workers": n_jobs, "round": r})
                rows[-1] |= json.loads(out.splitlines()[-1])
                print(rows[-1], flush=True)
    return ratios(pd.DataFrame(rows))


def ratios(rows):
    """Median seconds, and medians of the ratios to one worker in the same round.

    Examples
    --------
    >>> rows = pd.DataFrame({"nuisances": "ridge", "workers": [1, 2] * 3, "round": list("001122")})
    >>> rows["first fit, s"] = rows["second fit, s"] = [4.0, 2.4, 3.0, 2.1, 5.0, 2.5]
    >>> ratios(rows).loc[("ridge", 2), ["first fit, s", "first fit / one worker's"]].tolist()
    [2.4, 0.6]
    """
    seconds = rows.set_index(["nuisances", "workers", "round"])
    one = seconds.xs(1, level="workers").reindex(seconds.index.droplevel("workers"))
    names = [fit.replace(", s", " / one worker's") for fit in FITS]
    seconds[names] = seconds[list(FITS)].to_numpy() / one[list(FITS)].to_numpy()
    return seconds.groupby(["nuisances", "workers"], sort=False).median()


def draw(table):
    """Bars of seconds, with the ratios to one worker."""
    ax = new_axes(None, 2.8)
    labels = [f"{name},\n{fit.removesuffix(', s')}" for name in NUISANCES for fit in FITS]
    width = 0.8 / len(WORKERS)
    for k, n_jobs in enumerate(WORKERS):
        seconds = table.xs(n_jobs, level="workers").loc[list(NUISANCES), list(FITS)]
        ratio = table.xs(n_jobs, level="workers").loc[list(NUISANCES)].iloc[:, -len(FITS) :]
        places = [i + (k - (len(WORKERS) - 1) / 2) * width for i in range(len(labels))]
        name = "1 worker" if n_jobs == 1 else f"{n_jobs} workers (and ratio to 1)"
        bars = ax.bar(places, seconds.to_numpy().ravel(), width, color=COLOURS[k], label=name)
        if n_jobs > 1:
            ax.bar_label(bars, [f"{r:.2f}" for r in ratio.to_numpy().ravel()], fontsize="small")
    ax.set_xticks(range(len(labels)), labels)
    ax.tick_params(axis="x", length=0)
    ax.set_ylabel("seconds")
    legend_above(ax)
    return ax.figure


def main(
    quick: Annotated[bool, typer.Option(help="60 words, one round.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the results; by default none with --quick.")
    ] = None,
    only: Annotated[str, typer.Option(help="Measure one nuisance in this process.")] = "",
    n_jobs: Annotated[int, typer.Option(help="Its workers.")] = 1,
    n_words: Annotated[int, typer.Option(help="Its words; 0: all.")] = 0,
):
    """Time of a sweep by one worker and by two."""
    if only:
        print(json.dumps(measure(only, n_jobs, n_words or None)))
        return
    table = measure_all(1 if quick else ROUNDS, QUICK_WORDS if quick else None)
    print(table)
    out = RESULTS if out is None and not quick else out
    if out is not None:
        notes = (
            f"Amazon books, 2000 reviews × {QUICK_WORDS if quick else 400} words, five folds, "
            "`nuisance='shrunken'` (networks) and `'shrunken_rf'` (forests); and all four domains, "
            "8000 reviews, with the default nuisances (default). Each row is a process "
            "of its own, in which the first fit starts the workers. Medians "
            f"over {1 if quick else ROUNDS} rounds, also of the ratios within a round; "
            f"{os.cpu_count()} cores."
        )
        command = "python -m benchmarks.workers" + (" --quick" if quick else "")
        Writer(out, command)("workers", "A sweep by one worker and by two", table, notes, digits=2)
        save(draw(table), out, "workers")


if __name__ == "__main__":
    typer.run(main)
