"""One job a source and selector, each in a process of its own, cached: a study can be resumed."""

import resource
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from threadpoolctl import threadpool_limits

from experiments.amazon.classifiers import choose, right_answers
from experiments.amazon.selectors import SELECTORS, order_of, orders_of_splits
from experiments.jobs import hash_of, python_files, run_jobs

CACHE = Path(".cache/amazon")
UNHASHED = ("tables.py", "figures.py", "__main__.py", "wide.py", "cli.py")


def peak_memory():
    """Most memory that this process has held, in MB (Unix)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_job(task, name, numbers, path):
    """Order the features, choose on the source, then try on the targets; or read it all.

    Parameters
    ----------
    task : Task
    name : str
        Of the selector; "all features" has no order and no choice of K.
    numbers : list of int
    path : Path
        File of the finished job.

    Returns
    -------
    path : Path
    """
    if path.exists():
        return path
    torch.set_num_threads(1)
    source, D = task.source, task.source.X.shape[1]
    with threadpool_limits(1):
        before, start = peak_memory(), time.perf_counter()
        if name == "all features":
            order, numbers = np.arange(D), [D]
        else:
            order = order_of(SELECTORS[name], source)
        cost = time.perf_counter() - start, peak_memory() - before
        orders = orders_of_splits(name, source, order)
        choice = choose(source, orders, sorted({*numbers, D}))
        answers = list(right_answers(task, order, choice, numbers))
    path.parent.mkdir(parents=True, exist_ok=True)
    finished = path.with_suffix(".part.npz")
    np.savez_compressed(
        finished,
        order=order,
        cost=cost,
        keys=np.array([answer[:3] for answer in answers]),
        chosen=np.array([f"{c}, {k}" for c, k in choice.as_good()]),
        **{f"right{i}": np.packbits(answer[3]) for i, answer in enumerate(answers)},
        n_rows=[len(answer[3]) for answer in answers],
    )
    finished.rename(path)  # whole or not at all
    return path


def fingerprint(tasks, numbers):
    """A hash of the code, the data and the numbers: only the same study reads a cached job."""
    folders = ("ddml_fs", "experiments/baselines/selectors", "experiments/amazon")
    code = [file for folder in folders for file in python_files(folder, UNHASHED)]
    data = [array for task in tasks for array in (task.source.X, task.source.y)]
    return hash_of(repr(numbers), *code, *data)


def run_all(protocol, tasks, numbers, n_jobs=2, names=None):
    """All selectors on all tasks of a protocol.

    Parameters
    ----------
    protocol : str
    tasks : list of Task
    numbers : list of int
        Features to keep.
    n_jobs : int
        Processes; each computes with one thread.
    names : sequence of str, optional
        Of the selectors; all unless given.

    Returns
    -------
    rows : DataFrame
        ``selector, classifier, K, source, target, accuracy``, and the rows that were right.
    jobs : DataFrame
        ``selector, source, seconds, MB, order, chosen``.
    """
    mark = fingerprint(tasks, numbers)
    work = [
        (task, name, CACHE / f"{protocol}-{mark}-{task.source.name}-{name}.npz".replace(" ", "_"))
        for task in tasks
        for name in names or [*SELECTORS, "all features"]
    ]
    jobs = [(task, name, numbers, path) for task, name, path in work]
    preload = ["experiments.amazon.runs", "experiments.amazon.figures"]
    run_jobs(run_job, jobs, n_jobs, protocol, preload, fresh=True)
    return collect(work)


def collect(work):
    """Read finished jobs into the two tables of :func:`run_all`."""
    rows, jobs = [], []
    for task, name, path in work:
        with np.load(path) as file:
            seconds, memory = file["cost"]
            jobs.append(
                {
                    "selector": name,
                    "source": task.source.name,
                    "seconds": seconds,
                    "MB": memory,
                    "order": file["order"],
                    "chosen": list(file["chosen"]),
                }
            )
            for i, (classifier, k, target) in enumerate(file["keys"]):
                right = np.unpackbits(file[f"right{i}"], count=file["n_rows"][i]).astype(bool)
                rows.append(
                    {
                        "selector": name,
                        "classifier": str(classifier),
                        "K": "all" if name == "all features" else str(k),
                        "source": task.source.name,
                        "target": str(target),
                        "accuracy": right.mean(),
                        "right": right,
                    }
                )
    table = pd.DataFrame(rows)
    # "all features" has one number, under two names.
    keys = ["selector", "classifier", "K", "source", "target"]
    return table.drop_duplicates(keys).reset_index(drop=True), pd.DataFrame(jobs)
