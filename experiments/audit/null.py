"""Labels with the same effects in every domain: how many columns are said to move?"""

from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from scipy.special import expit

from ddml_fs import ShiftAudit
from ddml_fs.datasets import fetch_shift
from ddml_fs.datasets.shifts import SHIFTS
from experiments.writing import Writer

RESULTS = Path(__file__).parent / "results"


def draw(X, domain, rng, moving):
    """Labels from ten columns of X; ``moving`` of them have another effect in each domain.

    Returns
    -------
    y : int array of shape (N,)
    moves : int array
        Columns whose effects move.
    """
    Z = (X - X.mean(0)) / np.where(X.std(0) > 0, X.std(0), 1.0)
    chosen = rng.choice(np.flatnonzero(X.std(0) > 0), min(10, X.shape[1]), replace=False)
    beta = rng.uniform(0.3, 0.6, len(chosen)) * rng.choice([-1, 1], len(chosen))
    n_domains = domain.max() + 1
    each = np.tile(beta, (n_domains, 1))
    each[:, :moving] += 0.6 * rng.standard_normal((n_domains, moving))
    index = (Z[:, chosen] * each[domain]).sum(1) + 0.5 * rng.standard_normal(n_domains)[domain]
    y = (rng.random(len(X)) < expit(index - np.median(index))).astype(int)
    return y, chosen[:moving]


def row_of(name, seed, n_rows, moving):
    """One draw: discoveries, and how many of them are false."""
    rng = np.random.default_rng(seed)
    data = fetch_shift(name)
    rows = rng.permutation(len(data.y))[:n_rows]
    X = data.X[rows]
    domain = np.unique(data.sample_domain[rows], return_inverse=True)[1]
    y, moves = draw(X, domain, rng, moving)
    audit = ShiftAudit(random_state=0).fit(X, y, sample_domain=domain + 1)
    table = audit.features_
    called = {int(name[1:]) for name in table.index[table["effect_moves"]]}
    copies = {j for j in called for k in moves if abs(np.corrcoef(X[:, j], X[:, k])[0, 1]) > 0.5}
    return {
        "table": name,
        "seed": seed,
        "moving": moving,
        "called": len(called),
        "right": len(called & set(moves.tolist())),
        "false": len(called - set(moves.tolist()) - copies) / max(len(called), 1),
    }


def main(
    n_seeds: Annotated[int, typer.Option(help="Draws a table.")] = 5,
    n_rows: Annotated[int, typer.Option(help="Rows of a table at most.")] = 3000,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = RESULTS,
):
    """Simulate labels on the covariates of the six tables, with no and with three moving effects.

    A column that correlates by more than 0.5 with one whose effect moves is no false discovery.
    """
    rows = [
        row_of(name, seed, n_rows, moving)
        for moving in (0, 3)
        for name in SHIFTS
        for seed in range(n_seeds)
    ]
    frame = pd.DataFrame(rows)
    table = frame.groupby(["moving", "table"], sort=False)[["called", "right", "false"]].mean()
    write = Writer(out, f"python -m experiments.audit null --n-seeds {n_seeds} --n-rows {n_rows}")
    write("null", "Simulated labels: columns whose effects are said to move", table, digits=3)
