"""Amazon reviews: twelve single-source transfers, the top K words of the source.

The target is used for the accuracy in the table and for nothing else. Leaving one domain out, the
same with three sources and their domains.
"""

import os
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from rich.progress import track
from scipy.io import loadmat
from sklearn.feature_selection import f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB

from ddml_fs import CausalFeatureSelector
from experiments.selection.tables import write

DOMAINS = ("books", "dvd", "elec", "kitchen")
NUMBERS = (50, 100, 200)


def load():
    """Binarised words and labels of each domain."""
    home = os.environ.get("DDML_FS_DATA")
    if home is None:
        raise typer.BadParameter("set DDML_FS_DATA to the folder that holds amazon/*.mat.")
    data = {}
    for name in DOMAINS:
        file = loadmat(Path(home) / "amazon" / f"{name}_400.mat")
        data[name] = ((file["fts"] > 0).astype(float), file["labels"].ravel().astype(int))
    return data


def transfer(source, target, order):
    """Accuracies on the target of both classifiers, by number of features."""
    (X, y), (X_new, y_new) = source, target
    for k in NUMBERS:
        columns = order[:k]
        logistic = LogisticRegression(C=0.1, max_iter=1000).fit(X[:, columns], y)
        bayes = BernoulliNB().fit(X[:, columns], y)
        yield {
            "K": k,
            "logistic": logistic.score(X_new[:, columns], y_new),
            "naive Bayes": bayes.score(X_new[:, columns], y_new),
        }


def orders(X, y, domain, seeds, n_jobs):
    """The features, best first, by each selector."""
    varies = np.flatnonzero(X.std(0) > 0)
    yield "F-test", 0, varies[np.argsort(-f_classif(X[:, varies], y)[0])]
    for estimator in ("mlp", "ridge"):
        for seed in range(seeds):
            selector = CausalFeatureSelector(
                50, estimator=estimator, random_state=seed, n_jobs=n_jobs
            ).fit(X, y, sample_domain=domain)
            yield estimator, seed, np.argsort(selector.ranking_, kind="stable")


def main(
    n_seeds: Annotated[int, typer.Option(help="Seeds of the selector.")] = 2,
    leave_one_out: Annotated[bool, typer.Option(help="Three sources instead of one.")] = False,
    n_jobs: Annotated[int, typer.Option(help="Workers.")] = 2,
):
    """Mean accuracy on other domains with the top K words."""
    data, rows = load(), []
    for name in track(DOMAINS, description="domains"):
        others = [d for d in DOMAINS if d != name]
        if leave_one_out:
            X, y = (np.concatenate([data[d][i] for d in others]) for i in (0, 1))
            domain = np.repeat(others, [len(data[d][1]) for d in others])
            tasks = [name]
        else:
            (X, y), domain, tasks = data[name], None, others
        for method, seed, order in orders(X, y, domain, n_seeds, n_jobs):
            for target in tasks:
                for row in transfer((X, y), data[target], order):
                    rows.append(
                        {"method": method, "seed": seed, "left": name, "target": target, **row}
                    )
    table = pd.DataFrame(rows)
    summary = table.groupby(["method", "seed", "K"], sort=False)[["logistic", "naive Bayes"]].mean()
    summary = summary.unstack("K")
    summary.columns = [f"{model}, {k}" for model, k in summary.columns]
    name = "amazon_leave_one_out" if leave_one_out else "amazon"
    flag = " --leave-one-out" if leave_one_out else ""
    kind = "three sources, one domain left out" if leave_one_out else "12 single-source tasks"
    command = f"python -m experiments.selection amazon --n-seeds {n_seeds}{flag}"
    write(name, f"Amazon reviews, {kind}: mean accuracy", table, summary, command)
