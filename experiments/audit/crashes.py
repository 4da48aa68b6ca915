"""The table of fatal crashes: what its columns mean is known, so findings can be checked."""

from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from sklearn.metrics import roc_auc_score

from ddml_fs import ShiftAudit
from ddml_fs.datasets import fetch_shift
from experiments.writing import Writer

RESULTS = Path(__file__).parent / "results"
AFTER = ("ALCOHOL", "DRUG", "HOSPITAL")  # tests and transport, done after the crash


def audit_of(n_rows, seed, leaks):
    """An audit of some rows of the table, and which of its features are from after the crash."""
    data = fetch_shift("fars", as_frame=True, leaks=leaks)
    rows = np.random.default_rng(seed).choice(len(data.y), n_rows, replace=False)
    audit = ShiftAudit(random_state=0)
    audit.fit(data.X.iloc[rows], data.y[rows], sample_domain=data.sample_domain[rows])
    after = np.array([any(word in name for word in AFTER) for name in audit.features_.index])
    return audit, after


def row_of(n_rows, seed):
    """How well the audit's order tells columns from after the crash from others, and its leaks."""
    audit, after = audit_of(n_rows, seed, leaks=True)
    kept = (audit.features_["verdict"] != "leak").to_numpy()
    rank = np.arange(len(after))
    moves = audit.features_["effect_moves"].to_numpy()
    return {
        "rows": n_rows,
        "seed": seed,
        "AUC of the order": roc_auc_score(after[kept], -rank[kept]),
        "effects move": int(moves.sum()),
        "of them after the crash": int((moves & after).sum()),
        "leaks": ", ".join(audit.leaks_.index),
    }


def main(
    n_seeds: Annotated[int, typer.Option(help="Draws of the rows.")] = 2,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = RESULTS,
):
    """Audit the crashes with their leaks left in, at three numbers of rows."""
    rows = [row_of(n, seed) for n in (4000, 12_000, 40_000) for seed in range(n_seeds)]
    write = Writer(out, f"python -m experiments.audit crashes --n-seeds {n_seeds}")
    title = "Crashes: columns from after the crash are ranked first, and leaks are found"
    write("crashes", title, pd.DataFrame(rows).set_index(["rows", "seed"]), digits=3)
    audit, after = audit_of(40_000, 0, leaks=True)
    table = audit.features_.assign(after=after)
    shown = ["verdict", "after", "leak", "tau", "qvalue_shift", "shift_cost", "mean_shift", "alone"]
    write("crashes_features", "Crashes: the audit of 40 000 rows", table[shown], digits=5)
