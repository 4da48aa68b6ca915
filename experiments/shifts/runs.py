"""One job per table, target and selector, cached: a study can be resumed.

A job's hash holds the data and the code that it depends on and no more. A change of the package
makes our rows anew, and leaves those of the rivals.
"""

import inspect
import json
import warnings
from pathlib import Path

import pandas as pd
import torch
from threadpoolctl import threadpool_limits

from experiments.jobs import baseline_files, hash_of, python_files, run_jobs
from experiments.shifts.classifiers import CLASSIFIERS, MAIN, measures, score
from experiments.shifts.selectors import (
    ALL,
    ALL_BY_EFFECTS,
    AUTO,
    DEFAULT,
    OURS,
    RIVALS,
    SHARES,
    column_sets,
    make,
)

CACHE = Path(".cache/shifts")
OTHER = ("datasets", "audit", "plotting", "report", "cli", "version.py")  # none selects
PARTS = {
    "all": (ALL, ALL_BY_EFFECTS, *OURS, *AUTO, *RIVALS),
    "ours": (ALL, ALL_BY_EFFECTS, *OURS, *AUTO),
    "rivals": (ALL, *RIVALS),
    # Ours, the rivals that come nearest to it on the other tables, and the most common one.
    "nearest": (
        *(ALL, ALL_BY_EFFECTS, DEFAULT, "DDML, no aversion", *AUTO),
        *("RFE", "permutation importance", "permutation, left-out domains", "L1 path", "EAMB"),
        *("stability selection", "ridge-logistic", "F-test"),
    ),
}


def classifiers_for(name):
    """Names of the classifiers that a selector's columns are tried with.

    ``EffectClassifier`` takes longer: it gets all columns and those of the default. All columns
    have two jobs, as one of their classifiers changes with the package.
    """
    if name == ALL_BY_EFFECTS:
        return ("effects",)
    if name == ALL:
        return (*MAIN, "anchor boosting")
    return (*MAIN, "effects") if name in (DEFAULT, f"{DEFAULT}, auto") else MAIN


def fingerprint(task, name, selector):
    """A hash of a job's data, settings and the code behind its selector and classifiers.

    How orders become sets of columns is left out: remove the cache if that changes.
    """
    source = task.source
    models = [CLASSIFIERS[classifier] for classifier in classifiers_for(name)]
    own = [type(model) for model in models if type(model).__module__ == score.__module__]
    code = [inspect.getsource(part) for part in (score, measures, *own)]
    if name in RIVALS:
        code += baseline_files(selector)
    elif name != ALL:
        code += python_files("ddml_fs", without=OTHER)
    settings = repr((SHARES, models, selector))
    return hash_of(settings, *code, source.X, source.y, source.domain, task.X, task.y)


def run_job(task, name, selector, path):
    """Select columns on the source, score them on the target, and write a file of it.

    Parameters
    ----------
    task : Task
    name : str
    selector : estimator or None
        Of that name.
    path : Path
    """
    torch.set_num_threads(1)
    rows, known = [], {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rivals on rare levels, by the thousand
        sets, seconds = column_sets(selector, task.source)
        for share, columns in sets.items():
            for classifier in classifiers_for(name):
                # With few columns two shares may be the same set.
                key = classifier, tuple(columns)
                if key not in known:
                    known[key] = score(classifier, task, columns)
                rows.append({"classifier": classifier, "share": share, **known[key]})
    found = {
        "seconds": seconds,
        "n_columns": task.source.X.shape[1],
        "columns": {share: columns.tolist() for share, columns in sets.items()},
        "rows": rows,
    }
    part = path.with_suffix(".part")
    part.write_text(json.dumps(found))
    part.rename(path)  # whole or not at all


def run_all(tasks, n_jobs=2, names=PARTS["all"], cheap=False):
    """All selectors on all tasks; what is cached is not done again.

    Parameters
    ----------
    tasks : list of Task
    n_jobs : int
        Processes; each computes with one thread.
    names : sequence of str
        Of the selectors.
    cheap : bool, default=False
        Whether slow rivals get fewer rounds.

    Returns
    -------
    rows : DataFrame
        ``table, target, selector, classifier, share, kept, auc, accuracy, log_loss``.
    costs : DataFrame
        ``table, target, selector, seconds``.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    selectors = {name: make(name, cheap) for name in names}
    work = [
        (task, name, selector, _path(task, name, selector))
        for task in tasks
        for name, selector in selectors.items()
    ]
    missing = [job for job in work if not job[-1].exists()]
    label = f"{len(missing)} of {len(work)} jobs"
    run_jobs(run_job, missing, n_jobs, label, preload=["experiments.shifts.runs"])
    return collect((task, name, path) for task, name, _, path in work)


def _path(task, name, selector):
    stem = f"{task.table}-{task.target}-{name}-{fingerprint(task, name, selector)}"
    return CACHE / f"{stem}.json".replace(" ", "_")


def collect(work):
    """Read finished jobs into the two tables of :func:`run_all`."""
    rows, costs = [], []
    for task, name, path in work:
        found = json.loads(path.read_text())
        selector = ALL if name == ALL_BY_EFFECTS else name
        keys = {"table": task.table, "target": task.target, "selector": selector}
        costs.append({**keys, "seconds": found["seconds"]})
        for row in found["rows"]:
            kept = len(found["columns"][row["share"]]) / found["n_columns"]
            rows.append({**keys, **row, "kept": kept})
    return pd.DataFrame(rows), pd.DataFrame(costs)
