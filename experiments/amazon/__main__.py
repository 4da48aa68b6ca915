"""``python -m experiments.amazon``: every table and figure of the study."""

import os
import warnings
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from ddml_fs.datasets import fetch_amazon_reviews, fetch_multi_domain_sentiment
from experiments.amazon import figures, runs, tables, wide
from experiments.amazon.protocol import PROTOCOLS, by_domain, single_source
from experiments.amazon.selectors import OURS
from experiments.writing import Writer

BOTH = ("logistic", "naive Bayes")
COST = """One thread; memory is what the process took beyond what it held before, with the data
read. CausalAnalysis: 100 words of the 400; all of them take four times as long."""


def one_protocol(name, tasks, numbers, n_jobs, write):
    """The tables and figures of a protocol, and its rows and jobs."""
    rows, jobs = runs.run_all(name, tasks, numbers, n_jobs)
    stem, about = name.replace(" ", "_"), f"Amazon reviews, {name}:"
    write(f"{stem}_accuracy", f"{about} accuracy by task", tables.by_task(rows))
    summary = tables.intervals(rows)
    write(f"{stem}_intervals", f"{about} mean, average rank, 95 % interval of the mean", summary)
    for classifier in BOTH:
        part = summary["mean"].xs(classifier, level="classifier").unstack("K")
        part = part[[*map(str, numbers), "auto", "all"]]
        title = f"{about} mean accuracy with {classifier}, by number of words"
        part = part.sort_values(str(numbers[-2]), ascending=False, na_position="last")
        write(f"{stem}_{classifier.replace(' ', '_')}", title, part)
    chosen = summary[summary.index.isin(["source", "all"], level="K")].drop(columns="rank")
    title = f"{about} everything chosen on the source, and all words"
    write(f"{stem}_chosen", title, chosen.sort_values("mean", ascending=False))
    compared = pd.concat(tables.differences(rows, ours, numbers) for ours in OURS)
    title = f"{about} ours less the best rival, with the 95 % interval of the difference"
    write(f"{stem}_differences", title, compared.set_index("ours"))
    if len(tasks) > 1:
        title = f"{about} share of the top K words that two sources have in common"
        write(f"{stem}_agreement", title, tables.agreement(jobs, numbers), digits=2)
    figures.curves(rows, numbers, name, write.folder, f"{stem}_curves")
    return rows, jobs


def statistics(rows, k, write):
    """Friedman's test and Nemenyi's critical differences, as a table and as diagrams."""
    lines, notes = {}, []
    for classifier in BOTH:
        lines[classifier], pvalue, critical, _ = tables.friedman(rows, classifier, k)
        notes.append(f"{classifier}: Friedman p = {pvalue:.1e}, critical difference {critical:.2f}")
        name = f"critical_differences_{classifier.replace(' ', '_')}"
        figures.critical_differences(rows, classifier, k, write.folder, name)
    title = f"Average ranks over the single-source tasks at K = {k}"
    table = pd.DataFrame(lines).sort_values("logistic").rename_axis("selector")
    write("ranks", title, table, "; ".join(notes) + ".", digits=2)


def cost(jobs, write):
    """Seconds and memory of every selector."""
    table = jobs.groupby("selector", sort=False)[["seconds", "MB"]].mean().drop("all features")
    title = "One order of the words from one source: seconds and MB"
    write("cost", title, table.sort_values("seconds"), COST, digits=1)


def wide_study(n_rows, n_words, numbers, n_best, n_jobs, n_tasks, write):
    """The tables of the wide data."""
    bunch = fetch_multi_domain_sentiment(n_words=n_words)
    tasks = single_source(by_domain(bunch, n_rows))[:n_tasks]
    rows, costs, strongest = wide.study(tasks, numbers, n_best, bunch.feature_names, n_jobs)
    about = f"{n_words} words, single source:"
    write("wide", f"{about} mean, average rank, 95 % interval", tables.intervals(rows))
    numbered = rows[rows["K"].str.isdigit()]
    compared = pd.concat(tables.differences(numbered, ours, numbers) for ours in wide.OURS)
    title = f"{about} ours less the best rival, with the 95 % interval of the difference"
    write("wide_differences", title, compared.set_index("ours"))
    seconds = costs.groupby("selector", sort=False)["seconds"].agg(["mean", "max"])
    title = f"{about} seconds a source; networks for the {n_best} best with {n_jobs} workers"
    write("wide_cost", title, seconds, digits=1)
    title = f"{about} the {wide.N_STRONGEST} first words of each source, log-odds and interval"
    write("wide_words", title, strongest.set_index(["source", "word"]), digits=2)


def main(
    quick: Annotated[bool, typer.Option(help="A small version of all of it, in minutes.")] = False,
    n_jobs: Annotated[int, typer.Option(help="Processes, of one thread each.")] = 2,
    out: Annotated[Path | None, typer.Option(help="Folder of the results.")] = None,
):
    """Make every table and figure of the study. Jobs that are done are not done again."""
    warnings.simplefilter("ignore")  # of rivals on rare words, by the thousand
    os.environ["PYTHONWARNINGS"] = "ignore"
    out = out or (Path("results_quick") if quick else tables.RESULTS)
    write = Writer(out, "python -m experiments.amazon" + (" --quick" if quick else ""))
    rows, words = (120, 30) if quick else (None, None)
    numbers = [5, 15] if quick else [20, 50, 100, 200]

    data = by_domain(fetch_amazon_reviews(), rows, words)
    found = {}
    for name, make_tasks in PROTOCOLS.items():
        tasks = make_tasks(data)[: (2 if name == "single source" else 1) if quick else None]
        found[name] = one_protocol(name, tasks, numbers, n_jobs, write)
    single, jobs = found["single source"]
    statistics(single, numbers[-2], write)
    write("paper", "Table IV of the paper, and ours", tables.beside_the_paper(single))
    cost(jobs, write)
    size = (100, [10, 30], 40) if quick else (5000, [100, 500], 1000)
    wide_study(rows, *size, n_jobs, 1 if quick else None, write)


if __name__ == "__main__":
    typer.run(main)
