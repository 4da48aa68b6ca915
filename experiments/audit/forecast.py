"""Forecasts for domains that the audit has not seen, and what the models then did there."""

import os
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from joblib import Parallel, delayed
from sklearn.base import clone

from ddml_fs import ShiftAudit
from ddml_fs.audit.forecast import quality
from ddml_fs.number import default_downstream
from experiments.shifts.tasks import all_tasks
from experiments.writing import Writer

RESULTS = Path(__file__).parent / "results"
MEASURES = ("auc", "accuracy")


def rows_of(task):
    """Forecast and truth of one unseen domain, one row per set of columns."""
    source = task.source
    audit = ShiftAudit(random_state=0).fit(source.X, source.y, sample_domain=source.domain)
    given = {"no rows": audit.forecast_, "rows without labels": audit.forecast(task.X)}
    selected = audit.selector_.get_support()
    moves = audit.features_["effect_moves"]
    stable = np.array([not moves[f"x{j}"] for j in range(task.X.shape[1])])
    sets = {"all": np.ones(len(stable), bool), "selected": selected, "stable": stable}
    rows = []
    for name, columns in sets.items():
        model = clone(default_downstream(True)).fit(source.X[:, columns], source.y)
        truth = quality(model, task.X[:, columns], task.y, True).values
        for seen, table in given.items():
            for measure in MEASURES:
                low, value, high = (
                    table.loc[name, f"{measure}{end}"] for end in ("_low", "", "_high")
                )
                rows.append(
                    {
                        "table": task.table,
                        "target": task.target,
                        "columns": name,
                        "given": seen,
                        "measure": measure,
                        "forecast": value,
                        "low": low,
                        "high": high,
                        "truth": truth[measure],
                    }
                )
    return rows


def summary(frame):
    """How forecasts and truths agree, over all domains of all tables."""
    rows = {}
    for key, part in frame.groupby(["measure", "columns", "given"], sort=False):
        inside = (part["low"] <= part["truth"]) & (part["truth"] <= part["high"])
        rows[key] = {
            "domains": len(part),
            "correlation": part["forecast"].corr(part["truth"]),
            "mean error": (part["forecast"] - part["truth"]).mean(),
            "mean |error|": (part["forecast"] - part["truth"]).abs().mean(),
            "90 % intervals hold": inside.mean(),
            "their width": (part["high"] - part["low"]).mean(),
        }
    table = pd.DataFrame.from_dict(rows, orient="index")
    table.index.names = ["measure", "columns", "given"]
    return table


def main(
    n_train: Annotated[int, typer.Option(help="Rows of the sources at most.")] = 3000,
    n_jobs: Annotated[int, typer.Option(help="Processes.")] = 2,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = RESULTS,
):
    """Forecast every domain of the seven tables of the shift study from all others."""
    os.environ["OMP_NUM_THREADS"] = "1"
    found = Parallel(n_jobs=n_jobs, verbose=1)(
        delayed(rows_of)(task) for task in all_tasks(n_train=n_train)
    )
    frame = pd.DataFrame([row for rows in found for row in rows])
    write = Writer(out, f"python -m experiments.audit forecast --n-train {n_train}")
    keys = ["table", "target", "columns", "given", "measure"]
    write("forecasts", "Forecast and truth in every unseen domain", frame.set_index(keys))
    write("forecast_summary", "Forecasts for domains that were not seen", summary(frame), digits=3)


if __name__ == "__main__":
    typer.run(main)
