"""How many of the best features of a full sweep a screen keeps, and how much time it saves.

``python -m benchmarks.screen``: Amazon books, 2000 reviews × 400 words, features ranked by |t|,
with networks that start from ridge regressions ("shrunken") and networks that do not ("mlp").
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
NUISANCES = ("shrunken", "mlp")


def fit(X, y, nuisance, screen=None):
    """Ranks of the features, and seconds."""
    start = time.perf_counter()
    selector = CausalFeatureSelector(
        TOPS[0], nuisance=nuisance, ranking="tstat", screen=screen, random_state=0
    ).fit(X, y)
    return selector.ranking_, time.perf_counter() - start


def main(quick: Annotated[bool, typer.Option(help="60 words.")] = False):
    """Measure recall and time."""
    warnings.simplefilter("ignore")
    X, y = by_domain(fetch_amazon_reviews())["books"]
    X = X[:, X.std(0) > 0]
    screens = SCREENS
    if quick:
        X, screens = X[:, :60], (30, 55)
    rows = []
    for nuisance in NUISANCES:
        full, seconds = fit(X, y, nuisance)
        rows.append({"nuisance": nuisance, "screen": "none", "seconds": seconds})
        rows[-1] |= {f"recall of the top {top}": 1.0 for top in TOPS}
        for most in screens:
            found, seconds = fit(X, y, nuisance, most)
            rows.append({"nuisance": nuisance, "screen": str(most), "seconds": seconds})
            for top in TOPS:
                kept = np.mean(found[full <= top] <= most)
                rows[-1][f"recall of the top {top}"] = kept
            print(rows[-1], flush=True)
    table = pd.DataFrame(rows).set_index(["nuisance", "screen"])
    print(table)
    if not quick:
        notes = (
            f"Amazon books, {X.shape[0]} reviews × {X.shape[1]} words, `ranking='tstat'`, one "
            "core. Recall: the share of the best features of the full sweep that the screen keeps."
        )
        write = Writer(RESULTS, "python -m benchmarks.screen")
        write("screen", "A ridge sweep as a screen for networks", table, notes, digits=2)


if __name__ == "__main__":
    typer.run(main)
