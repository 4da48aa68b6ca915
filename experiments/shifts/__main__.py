"""``python -m experiments.shifts``: every table and figure of the study."""

import os
import warnings
from pathlib import Path
from typing import Annotated, Literal

import pandas as pd
import typer

from experiments.shifts import figures, runs, tables
from experiments.shifts.confirmation import TABLES as CONFIRMATION
from experiments.shifts.selectors import DEFAULT, OURS, RIVALS
from experiments.shifts.tasks import N_TEST, N_TRAIN, TABLES, all_tasks
from experiments.shifts.unseen import TABLES as UNSEEN
from experiments.writing import Writer

RESULTS = Path(__file__).parent / "results"
MOST_TARGETS = 5  # domains of a table of the confirmation
QUICK = {"n_train": 500, "n_test": 1000, "n_targets": 1, "n_columns": 16}
PROTOCOL = (
    "Every domain in turn is the target; all others are the source, at most {n_train} rows of them "
    "for learning and {n_test} of the target for the scores. Everything is chosen on the source."
)
SMALL = "A look, not a study: the first {n_columns} columns, and the first domain as the target."
OTHERS = (
    "{n_tables} further tables; where there are more than {n_targets} domains, the first "
    "{n_targets} are the targets."
)
POINTS = "Points of AUC above (or below) the same classifier on all columns."
INTERVALS = "95 % intervals by a bootstrap over the domains of each table."
COST = "One thread. The rows of auto hold the order too."


def write_all(rows, costs, protocol, write):
    """Every table and the figure."""
    for measure, words in tables.MEASURES.items():
        title = f"{words} on the unseen domain: mean over the domains, and the worst"
        write(measure, title, tables.by_table(rows, measure), protocol)
    notes = f"{protocol} {POINTS}"
    write("summary", "Mean over the tables, by selector", tables.summary(rows), notes, digits=2)
    title = "Mean of both classifiers and three shares, by table"
    write("summary_by_table", title, tables.by_table_means(rows), notes, digits=2)
    title = "The number of columns chosen on the source"
    write("auto", title, tables.auto(rows), notes, digits=2)
    there = set(rows["selector"])
    rivals = [name for name in RIVALS if name in there]
    compared = [tables.differences(rows, DEFAULT, rivals)]
    for name in OURS:
        if name != DEFAULT and name in there:
            means = tables.differences(rows, name, rivals)
            compared.append(means.xs("mean", level="column", drop_level=False))
    title = "Ours less each rival, in points of AUC"
    write("differences", title, pd.concat(compared), f"{protocol} {INTERVALS}", digits=2)
    title = "Classifiers on all columns, on the unseen domain"
    write("classifiers", title, tables.classifiers(rows), protocol)
    write("cost", "Seconds of a selection, by table", tables.cost(costs), COST, digits=2)
    figures.curves(rows, write.folder)


def main(
    quick: Annotated[bool, typer.Option(help="A small version of all of it, in minutes.")] = False,
    n_jobs: Annotated[int, typer.Option(help="Processes, of one thread each.")] = 2,
    out: Annotated[Path | None, typer.Option(help="Folder of the results.")] = None,
    part: Annotated[
        Literal["all", "ours", "rivals", "nearest"],
        typer.Option(
            help="Selectors to run. With a part, the summary is printed and no more, but for "
            "--unseen --part nearest."
        ),
    ] = "all",
    confirm: Annotated[
        bool, typer.Option(help="The further tables, not those of the study.")
    ] = False,
    unseen: Annotated[
        bool, typer.Option(help="The tables that were listed last, on which nothing was chosen.")
    ] = False,
):
    """Make every table and figure of the study. Jobs that are done are not done again."""
    warnings.simplefilter("ignore")  # of rivals on rare levels, by the thousand
    os.environ["PYTHONWARNINGS"] = "ignore"
    sizes = QUICK if quick else {"n_train": N_TRAIN, "n_test": N_TEST}
    if confirm and unseen:
        raise typer.BadParameter("--confirm and --unseen name different tables; give one of them.")
    further = confirm or unseen
    names = tuple(CONFIRMATION) if confirm else tuple(UNSEEN) if unseen else TABLES
    if further:
        sizes = {"n_targets": MOST_TARGETS, **sizes}
    rows, costs = runs.run_all(all_tasks(names, **sizes), n_jobs, runs.PARTS[part], quick)
    if part == "all" or (unseen and part == "nearest"):  # the other tables hold all selectors
        folder = RESULTS / ("confirmation" * confirm + "unseen" * unseen)
        flags = " --confirm" * confirm + " --unseen" * unseen + " --quick" * quick
        flags += " --part nearest" * (part == "nearest")
        write = Writer(
            out or (Path("results_quick") if quick else folder),
            f"python -m experiments.shifts{flags}",
        )
        notes = [PROTOCOL, *[OTHERS] * further, *[SMALL] * quick]
        write_all(rows, costs, " ".join(notes).format(**sizes, n_tables=len(names)), write)
    print(tables.summary(rows).round(2).to_string(line_width=200))


if __name__ == "__main__":
    typer.run(main)
