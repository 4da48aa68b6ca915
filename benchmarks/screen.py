"""How many of the best features of a full sweep a screen keeps, and how much time it saves.

``python -m benchmarks.screen``: Amazon books, 2000 reviews × 400 words, features ranked by |t|,
with networks as nuisances ("shrunken"). These start from ridge regressions. For comparison, the
additive nuisances do not; they need no screen, and only the recall of their order is measured.
``--quick`` takes the first 60 words, and nothing is written.
"""

import time
import warnings
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from ddml_fs import CausalFeatureSelector
from ddml_fs.datasets import fetch_amazon_reviews
from experiments.amazon.protocol import by_domain
from experiments.writing import Writer

RESULTS = Path(__file__).parent / "results"
SCREENS, TOPS = (50, 100, 200), (20, 50)


def fit(X, y, nuisance, screen=None):
    """Ranks of the features, and seconds."""
    start = time.perf_counter()
    selector = CausalFeatureSelector(
        TOPS[0], nuisance=nuisance, ranking="tstat", screen=screen, random_state=0
    ).fit(X, y)
    return selector.ranking_, time.perf_counter() - start


def recalls(full, found, most, name=""):
    """Shares of the best features of a full sweep that a screen keeps."""
    return {f"recall of the top {top}{name}": np.mean(found[full <= top] <= most) for top in TOPS}


def main(quick: Annotated[bool, typer.Option(help="60 words.")] = False):
    """Measure recall and time."""
    warnings.simplefilter("ignore")
    X, y = by_domain(fetch_amazon_reviews())["books"]
    X = X[:, X.std(0) > 0]
    screens = SCREENS
    if quick:
        X, screens = X[:, :60], (30, 55)
    full, seconds = fit(X, y, "shrunken")
    other, _ = fit(X, y, "additive")
    rows = [{"screen": "none", "seconds": seconds} | recalls(full, full, len(full))]
    rows[0] |= recalls(other, other, len(full), ", additive")
    for most in screens:
        found, seconds = fit(X, y, "shrunken", most)
        row = {"screen": str(most), "seconds": seconds} | recalls(full, found, most)
        rows.append(row | recalls(other, found, most, ", additive"))
        print(rows[-1], flush=True)
    table = pd.DataFrame(rows).set_index("screen")
    print(table)
    if not quick:
        notes = (
            f"Amazon books, {X.shape[0]} reviews × {X.shape[1]} words, `nuisance='shrunken'`, "
            "`ranking='tstat'`, one core. Recall: the share of the best features of the full sweep "
            "that the screen keeps. Shrunken networks start from ridge regressions; the last two "
            "columns are for the order by additive nuisances, which do not."
        )
        write = Writer(RESULTS, "python -m benchmarks.screen")
        write("screen", "A ridge sweep as a screen for networks", table, notes, digits=2)


if __name__ == "__main__":
    typer.run(main)
