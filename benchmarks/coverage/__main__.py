"""How often 95 % intervals contain the true effect: ``python -m benchmarks.coverage``.

Every method gets the same draws. The truth is known, so that bias and standard errors can be
judged one by one: an interval fails because the estimate is biased, or because its standard error
is smaller than the spread of the estimates.
"""

import os
import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from scipy.stats import binomtest

from benchmarks.coverage.expected import expected_coverage
from benchmarks.coverage.grid import grid, quick_grid, tuning_grid
from benchmarks.coverage.methods import ORACLE
from benchmarks.coverage.runs import keep_runs, run_all
from experiments.writing import Writer

RESULTS = Path(__file__).parents[1] / "results"
NOTES = """\
Coverage of 95 % intervals, with a binomial 95 % interval of the coverage itself. "expected" is the
coverage to expect of many replications, from the differences to the true nuisances on the same
draws and 2500 draws with these (`benchmarks/coverage/expected.py`): with few replications it is the
better figure. "bias" is the
mean error of the estimates, "sd" their standard deviation, "mean stderr" the mean of the reported
standard errors: a bias that is not small next to "sd", or a "mean stderr" below "sd", is the reason
of intervals that do not hold. "warned" is the share of fits that gave a `DDMLWarning`. "true
nuisances" is the score with the true nuisance functions. The effect is 1, or −1 in draws with odd
seeds (0.25 more on average if it varies), in the paper's generator 5 or −5. "bias" is therefore
that of confounding; a bias towards zero shows in "sd"."""


def summarise(runs):
    """One line per setting, number of rows and method.

    Parameters
    ----------
    runs : DataFrame
        From :func:`~benchmarks.coverage.runs.run_all`.

    Returns
    -------
    table : DataFrame
    """

    runs = runs.assign(error=(runs["effect"] - runs["truth"]) / (runs["high"] - runs["low"]) * 2)
    controls = {
        key: part.set_index("seed")["error"]
        for key, part in runs[runs["method"] == ORACLE].groupby(["setting", "rows"])
    }

    def expected(part):
        """The expected coverage; unknown without the true nuisances on the same draws."""
        control = controls.get(part.name[:2])
        if control is None or not part["seed"].isin(control.index).all():
            return float("nan")
        return expected_coverage(*map(np.asarray, (part["error"], control[part["seed"]], control)))

    def line(part):
        held = (part["low"] <= part["truth"]) & (part["truth"] <= part["high"])
        error = part["effect"] - part["truth"]
        interval = binomtest(int(held.sum()), len(part)).proportion_ci(0.95, "exact")
        return pd.Series(
            {
                "replications": len(part),
                "coverage": held.mean(),
                "from": interval.low,
                "to": interval.high,
                "expected": expected(part),
                "bias": error.mean(),
                "sd": error.std(ddof=1),
                "mean stderr": part["stderr"].mean(),
                "warned": part["warned"].mean(),
                "seconds": part["seconds"].mean(),
            }
        )

    keys = ["setting", "rows", "method"]
    columns = runs.columns.difference(keys, sort=False)
    table = runs.groupby(keys, sort=False)[list(columns)].apply(line)
    return table.astype({"replications": int})


def main(
    replications: Annotated[
        int, typer.Option(help="Of settings up to 500 rows; fewer with more rows.", min=1)
    ] = 500,
    n_jobs: Annotated[int, typer.Option(help="Processes, of one thread each.")] = 1,
    rows: Annotated[list[int] | None, typer.Option(help="Numbers of rows; by default all.")] = None,
    only: Annotated[str, typer.Option(help="Settings whose names contain this text.")] = "",
    method: Annotated[list[str] | None, typer.Option(help="Methods; by default all.")] = None,
    quick: Annotated[bool, typer.Option(help="Four small settings in about two minutes.")] = False,
    tuning: Annotated[bool, typer.Option(help="The worlds that intervals were tuned on.")] = False,
    only_read: Annotated[bool, typer.Option(help="The table of what is finished.")] = False,
    keep: Annotated[bool, typer.Option(help="Keep all runs in a file, to be resumed.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder of the table.")] = None,
):
    """How often 95 % intervals contain the true effect, beside DoubleML with boosting."""
    settings = [
        setting
        for setting in (quick_grid() if quick else tuning_grid() if tuning else grid())
        if only in setting.name and (not rows or setting.n_samples in rows)
    ]
    if not settings:
        raise typer.BadParameter(f"no setting has {only!r} in its name and {rows} rows.")
    # Threads that libraries start in the workers would take each other's cores.
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))
    runs = run_all(settings, 3 if quick else replications, n_jobs, only_read, method)
    if runs.empty:
        raise typer.BadParameter("nothing is finished yet; leave out --only-read.")
    if keep:
        keep_runs(runs)
    arguments = " ".join(f"'{a}'" if " " in a else a for a in sys.argv[1:])
    command = f"python -m benchmarks.coverage {arguments}".strip()
    folder = out or (Path("results_quick") if quick else RESULTS)
    write = Writer(folder, command)
    name = "coverage_tuning" if tuning else "coverage"
    write(name, "Coverage of 95 % intervals", summarise(runs), NOTES, digits=3)


if __name__ == "__main__":
    typer.run(main)
