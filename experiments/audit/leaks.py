"""Leaks that are planted in real tables: are all found, and is nothing else called one?"""

from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from ddml_fs.audit.leaks import find_leaks
from ddml_fs.datasets import fetch_shift
from ddml_fs.datasets.shifts import SHIFTS
from ddml_fs.encoding import read_target
from ddml_fs.features import Encoding
from experiments.writing import Writer

RESULTS = Path(__file__).parent / "results"


def plant(frame, y, rng):
    """A table with leaks of five kinds: a dictionary of columns."""
    n, half = len(y), rng.random(len(y)) < 0.5
    value = rng.standard_normal(n)
    return frame.assign(
        copy=np.where(rng.random(n) < 0.02, 1 - y, y),  # with 2 % noise
        filled_for_ones=np.where(y == 1, value, np.nan),
        filled_for_zeros=np.where(y == 0, value, np.nan),
        filled_for_half_of_ones=np.where((y == 1) & half, value, np.nan),
        noisy_number=y + 0.2 * value,
    )


def rows_of(name, n_rows, seed):
    """What is called a leak in one table."""
    rng = np.random.default_rng(seed)
    data = fetch_shift(name, as_frame=True)
    some = rng.permutation(len(data.y))[:n_rows]
    y = data.y[some]
    frame = plant(data.X.iloc[some].reset_index(drop=True), y, rng)
    encoding = Encoding.of(frame, list(frame))
    found = find_leaks(
        encoding.read(frame),
        encoding.own,
        frame.isna().to_numpy(),
        read_target(y, "auto"),
        encoding.names,
        seed,
    )
    planted = ~np.isin(list(frame), list(data.X))
    called = (found["leak"] != "").to_numpy()
    return {
        "table": name,
        "seed": seed,
        "planted": int(planted.sum()),
        "found": int((called & planted).sum()),
        "missed": ", ".join(frame.columns[planted & ~called]),
        "columns": int((~planted).sum()),
        "false alarms": int((called & ~planted).sum()),
        "largest share explained": found["explained"][~planted].max(),
    }


def main(
    n_rows: Annotated[int, typer.Option(help="Rows of a table at most.")] = 3000,
    n_seeds: Annotated[int, typer.Option(help="Draws of the rows.")] = 5,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = RESULTS,
):
    """Plant leaks in all tables of the shift study."""
    rows = [rows_of(name, n_rows, seed) for name in SHIFTS for seed in range(n_seeds)]
    frame = pd.DataFrame(rows).set_index(["table", "seed"])
    write = Writer(out, f"python -m experiments.audit leaks --n-rows {n_rows} --n-seeds {n_seeds}")
    write("leaks", "Planted leaks", frame, digits=3)
    counts = ["planted", "found", "columns", "false alarms"]
    print(frame[counts].sum().to_string())
