"""Time and memory of a sweep over all features, against per-feature loops of the peers.

``python -m benchmarks.sweep``: Amazon books, 2000 reviews × 400 words, five folds, all losses on.
The peers estimate one feature at a time, with forests of 100 trees as nuisances; they are timed
on a few features in the same run, and their time for all features is extrapolated from these. Every
method is a process of its own.
"""

import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from benchmarks.memory import PeakMemory
from ddml_fs import CausalFeatureSelector
from ddml_fs.datasets import fetch_amazon_reviews
from experiments.amazon.protocol import by_domain
from experiments.baselines.effects.dml import partially_linear_dml

RESULTS = Path(__file__).parent / "results"
TREES, FOLDS = 100, 5


def ours(nuisance, n_jobs):
    """A sweep over all features, and no further choice."""

    def fit(X, y, columns):
        selector = CausalFeatureSelector(100, nuisance=nuisance, n_jobs=n_jobs, random_state=0)
        return selector.fit(X, y).effects_["effect"].iloc[columns]

    return fit


def forests(n_jobs):
    """Regressor for the label, classifier for a word."""
    options = {"n_estimators": TREES, "n_jobs": n_jobs, "random_state": 0}
    return RandomForestRegressor(**options), RandomForestClassifier(**options)


def doubleml(X, y, columns, n_jobs=-1):
    """DoubleML's partially linear model, feature by feature."""
    effects = []
    for j in columns:
        model = partially_linear_dml(
            np.delete(X, j, 1), y.astype(float), X[:, j], *forests(n_jobs), random_state=0
        )
        effects.append(model.coef[0])
    return effects


def econml(X, y, columns, n_jobs=-1):
    """EconML's linear DML, feature by feature."""
    from econml.dml import LinearDML

    effects = []
    for j in columns:
        model_y, model_t = forests(n_jobs)
        model = LinearDML(
            model_y=model_y, model_t=model_t, discrete_treatment=True, cv=FOLDS, random_state=0
        )
        model.fit(y.astype(float), X[:, j].astype(int), X=None, W=np.delete(X, j, 1))
        effects.append(float(np.ravel(model.ate())[0]))
    return effects


METHODS = {
    "ddml_fs, MLP, all cores": (ours("shrunken", -1), True),
    "ddml_fs, MLP, one core": (ours("shrunken", 1), True),
    "ddml_fs, small forests, all cores": (ours("shrunken_rf", -1), True),
    "ddml_fs, ridge": (ours("ridge", 1), True),
    "DoubleML, forests, all cores": (doubleml, False),
    "EconML, forests, all cores": (econml, False),
    "DoubleML, forests, one core": (lambda X, y, c: doubleml(X, y, c, 1), False),
}


def measure(name, n_features):
    """Seconds for all features, extrapolated for the peers, and peak memory."""
    warnings.simplefilter("ignore")
    X, y = by_domain(fetch_amazon_reviews())["books"]
    X = X[:, X.std(0) > 0]
    columns = np.random.RandomState(0).choice(X.shape[1], n_features, replace=False)
    fit, whole = METHODS[name]
    watch = PeakMemory()
    watch.start()
    start = time.perf_counter()
    fit(X, y, columns)
    seconds = time.perf_counter() - start
    watch.over.set()
    times = 1 if whole else X.shape[1] / n_features
    return {"seconds": seconds, "seconds, all features": seconds * times, "peak MB": watch.peak}


def main(
    n_features: Annotated[int, typer.Option(help="Features on which peers are timed.")] = 8,
    only: Annotated[str, typer.Option(help="Measure one method in this process.")] = "",
):
    """Time and memory of a sweep against the peers' loops, in one run."""
    if only:
        print(json.dumps(measure(only, n_features)))
        return
    rows = {}
    for name in METHODS:
        argv = [sys.executable, "-m", "benchmarks.sweep", "--only", name]
        argv += ["--n-features", str(n_features)]
        out = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
        rows[name] = json.loads(out.splitlines()[-1])
        print(name, rows[name], flush=True)
    table = pd.DataFrame(rows).T
    total = table["seconds, all features"]
    for own in ("MLP, all cores", "MLP, one core", "small forests, all cores"):
        table[f"time / ours, {own}"] = total / total[f"ddml_fs, {own}"]
    text = "\n".join(
        [
            "# A sweep over all features: Amazon books, 2000 × 400, five folds",
            "",
            table.to_markdown(floatfmt=".1f"),
            "",
            "ddml_fs: `nuisance='shrunken'` (MLP), `'shrunken_rf'` (`Forest` on the latents of "
            "such networks, 10 small trees for each residual) and `'ridge'`. "
            f"Peers: forests of {TREES} trees, timed on {n_features} "
            "features and extrapolated to all. Memory is the largest sum over all processes of a "
            "method, libraries included. "
            f"Made by `python -m benchmarks.sweep` on {pd.Timestamp.today().date()}, "
            f"{os.cpu_count()} cores.",
        ]
    )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "sweep.md").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    typer.run(main)
