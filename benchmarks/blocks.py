"""A ridge sweep of a Parquet file in blocks of rows, against the same sweep in memory.

``python -m benchmarks.blocks``: 250 000 rows × 200 columns both ways, and 1 000 000 × 200
(1.6 GB of numbers) in blocks; three domains, five folds. Each fit is a process of its own.
``--quick`` takes 50 000 rows × 40 columns.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from experiments.writing import Writer

RESULTS = Path(__file__).parent / "results"
MEMORY, FOLDS, DOMAINS = 1.0, 5, 3
ROWS_PER_GROUP = 100_000
WAYS = ("in blocks", "in memory")
SIZES = {(250_000, 200): WAYS, (1_000_000, 200): WAYS[:1]}


def write_file(path, n_rows, n_columns):
    """Correlated columns, a numeric outcome and domains, written group by group."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.RandomState(0)
    names = [f"x{j}" for j in range(n_columns)]
    theta = np.where(np.arange(n_columns) < 20, 0.2, 0.0)
    writer = None
    for start in range(0, n_rows, ROWS_PER_GROUP):
        n = min(ROWS_PER_GROUP, n_rows - start)
        X = rng.standard_normal((n, n_columns))
        X[:, 1:] += 0.5 * X[:, :-1]
        columns = {name: X[:, j] for j, name in enumerate(names)}
        columns["y"] = X @ theta + 2 * rng.standard_normal(n)
        columns["site"] = rng.randint(0, DOMAINS, n)
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def in_blocks(path):
    """The selector on the file."""
    from ddml_fs import CausalFeatureSelector

    selector = CausalFeatureSelector(
        20, nuisance="ridge", n_folds=FOLDS, memory_budget=MEMORY, random_state=0
    )
    selector.fit(path, y="y", sample_domain="site")
    return selector.effects_[["effect", "stderr", "pvalue", "rank"]]


def in_memory(path):
    """The sweep on all rows, with the folds that blocks have."""
    from ddml_fs.effects_table import effects_table
    from ddml_fs.encoding import read_target
    from ddml_fs.engine.folds import RowCounter, folds_from
    from ddml_fs.engine.resources import Resources
    from ddml_fs.features import read_features
    from ddml_fs.nuisances import Ridge
    from ddml_fs.ranking import Ranker
    from ddml_fs.scores import PartiallyLinear
    from ddml_fs.sweep import SweepInput, sweep

    frame = pd.read_parquet(path)
    y, domain = frame.pop("y").to_numpy(), frame.pop("site").to_numpy()
    X = frame.to_numpy()
    del frame
    features = read_features(X, np.arange(X.shape[1]), X.shape[1])
    result = sweep(
        SweepInput(features, read_target(y, "regression"), domain, np.ones(len(y))),
        Ridge(),
        PartiallyLinear(),
        seed=0,
        n_folds=FOLDS,
        covariates="stable",
        resources=Resources(),
        dose="linear",
        folds=folds_from(RowCounter(FOLDS, 0).folds(domain)),
    )
    table, _ = effects_table(result.evidence, result, np.arange(DOMAINS))
    order, _ = Ranker(result, "gain", 2.5, bends=False).order()
    table["rank"] = np.argsort(order) + 1
    return table[["effect", "stderr", "pvalue", "rank"]]


def measure(way, path, out):
    """Fit in this process; the table of effects is written to a file."""
    start = time.perf_counter()
    effects = {"in blocks": in_blocks, "in memory": in_memory}[way](path)
    seconds = time.perf_counter() - start
    effects.to_csv(out, index=False)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {"seconds": seconds, "peak memory, GB": peak}


def main(
    quick: Annotated[bool, typer.Option(help="A small file; nothing is written.")] = False,
    way: Annotated[str, typer.Option(help="Measure one way in this process.")] = "",
    path: Annotated[str, typer.Option(help="Its file.")] = "",
    out: Annotated[str, typer.Option(help="Where its effects go.")] = "",
):
    """Time, memory and largest difference of a sweep in blocks and in memory."""
    if way:
        print(json.dumps(measure(way, path, out)))
        return
    sizes = {(50_000, 40): WAYS} if quick else SIZES
    rows, effects = [], {}
    with tempfile.TemporaryDirectory() as folder:
        path, found = (str(Path(folder) / name) for name in ("rows.parquet", "effects.csv"))
        for shape, ways in sizes.items():
            write_file(path, *shape)
            for name in ways:
                argv = [sys.executable, "-m", "benchmarks.blocks", "--way", name]
                argv += ["--path", path, "--out", found]
                done = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
                size = {"rows": shape[0], "columns": shape[1]}
                rows.append({"way": name} | size | json.loads(done.splitlines()[-1]))
                effects[name, shape] = pd.read_csv(found)
                print(rows[-1], flush=True)
    first = next(iter(sizes))
    difference = (effects[WAYS[0], first] - effects[WAYS[1], first]).abs().max()
    table = pd.DataFrame(rows).set_index("way")
    print(table, difference, sep="\n")
    if not quick:
        notes = (
            f"One Parquet file, three domains, five folds, `memory_budget={MEMORY}`. Memory is the "
            "peak of the whole process, of which libraries are 0.4 GB. Largest differences of the "
            f"two ways: {difference['effect']:.1e} in effects, {difference['stderr']:.1e} in "
            f"standard errors, {difference['pvalue']:.1e} in p-values, {difference['rank']:.0f} in "
            "ranks."
        )
        write = Writer(RESULTS, "python -m benchmarks.blocks")
        write("blocks", "A ridge sweep in blocks of rows, and in memory", table, notes, digits=2)


if __name__ == "__main__":
    typer.run(main)
