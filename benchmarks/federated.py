"""What differential privacy costs a selection from files of sites.

``python -m benchmarks.federated``: four sites, 20 features of which 10 are causes, labels, five
seeds. ``--quick``: one seed and the smaller sites, nothing is written.
"""

import tempfile
import warnings
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from ddml_fs import CausalFeatureSelector, GaussianNoise, collect_site
from ddml_fs.datasets import make_domain_data
from experiments.writing import Writer

RESULTS = Path(__file__).parent / "results"
SITES, CAUSES, OTHERS = 4, 10, 10
ROWS = (2_000, 20_000, 100_000)  # of a site
EPSILONS = (np.inf, 10.0, 3.0, 1.0)
BOUND = 4.0  # standard normal columns are rarely beyond
DELTA = 1e-6


def selector_of(data, epsilon, seed, folder):
    """A selector from one file per site."""
    noise = None if np.isinf(epsilon) else GaussianNoise(epsilon, DELTA, low=-BOUND, high=BOUND)
    files = []
    for d in np.unique(data.sample_domain):
        rows = data.sample_domain == d
        options = {} if noise is None else {"noise": noise, "random_state": 100 * seed + int(d)}
        path = Path(folder) / f"{d}.npz"
        files.append(
            collect_site(
                data.X[rows], data.y[rows], path, site=f"{d}", task="classification", **options
            )
        )
    return CausalFeatureSelector.from_sites(files, CAUSES, random_state=0)


def measure(n_rows, seed):
    """One row per ε: causes found, and the error that noise adds to the effects."""
    data = make_domain_data(SITES, n_rows, CAUSES, 0, OTHERS, n_targets=0, random_state=seed)
    found: list = []
    exact = np.zeros(CAUSES + OTHERS)
    with tempfile.TemporaryDirectory() as folder:
        for epsilon in EPSILONS:
            selector = selector_of(data, epsilon, seed, folder)
            effects = selector.effects_["std_effect"].to_numpy()
            if np.isinf(epsilon):
                exact = effects
            error = np.sqrt(np.mean((effects - exact) ** 2))
            found.append(
                {
                    "rows per site": n_rows,
                    "epsilon": "no noise" if np.isinf(epsilon) else f"{epsilon:g}",
                    "causes among the top 10": data.causal[selector.get_support()].sum(),
                    "added error / size of effects": error
                    / np.sqrt(np.mean(exact[data.causal] ** 2)),
                }
            )
    return found


def main(quick: Annotated[bool, typer.Option(help="One seed, small sites.")] = False):
    """Measure what noise costs."""
    warnings.simplefilter("ignore")
    seeds, sizes = (1, ROWS[:1]) if quick else (5, ROWS)
    rows = [row for n in sizes for seed in range(seeds) for row in measure(n, seed)]
    keys = ["rows per site", "epsilon"]
    table = pd.DataFrame(rows).groupby(keys, sort=False).mean()
    print(table)
    if not quick:
        notes = (
            f"{SITES} sites, {CAUSES + OTHERS} standard normal features, {CAUSES} causes of a "
            f"label, bounds ±{BOUND:g}, δ = {DELTA:g}; means of {seeds} seeds. The last column is "
            "the root mean squared difference to the effects without noise, beside the root mean "
            "squared effect of the causes."
        )
        write = Writer(RESULTS, "python -m benchmarks.federated")
        write("federated", "What differential privacy costs", table, notes, digits=2)


if __name__ == "__main__":
    typer.run(main)
