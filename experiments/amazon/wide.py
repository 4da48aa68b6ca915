"""The same reviews with 5000 words: a ridge sweep over all, and DDML over the best of them."""

import time
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from rich.progress import track
from threadpoolctl import threadpool_limits

from ddml_fs import CausalFeatureSelector
from ddml_fs.nuisances import shrunken_network
from experiments.amazon.classifiers import fitted, scores
from experiments.amazon.runs import CACHE, fingerprint
from experiments.baselines import selectors as rivals

N_STRONGEST = 20
OURS = ("DDML-ridge", "DDML-MLP on the best")


def ridge_sweep(source):
    """The sweep over all words: the order, and the effects with their intervals."""
    selector = CausalFeatureSelector(1.0, nuisance="ridge", random_state=0)
    selector.fit(source.X, source.y)
    effects = selector.effects_[["effect", "stderr", "score", "rank"]].join(selector.conf_int())
    return np.argsort(selector.ranking_, kind="stable"), effects


def network_sweep(source, first, n_best, n_jobs):
    """Networks for the best words of the ridge sweep; all other words follow in its order.

    The penalty stays that of all words: the best are few because many were looked at.
    """
    best = first[:n_best]
    network = shrunken_network()
    network.set_params(shrinkage=network.shrinkage * source.X.shape[1] / n_best)
    selector = CausalFeatureSelector(
        1.0, nuisance=network, ranking="tstat", random_state=0, n_jobs=n_jobs
    )
    selector.fit(source.X[:, best], source.y)
    return np.concatenate([best[np.argsort(selector.ranking_, kind="stable")], first[n_best:]])


RIVALS = {
    "mRMR": rivals.MRMR(n_ranked=1000),
    "F-test": rivals.FTest(),
    "mutual information": rivals.MutualInformation(),
    "ridge-logistic": rivals.RidgeLogistic(),
    "random": rivals.Chance(random_state=0),
}


def cached(name, source, mark, function, *arguments):
    """What a function makes of a source, and its seconds; from a file where it was done before."""
    path = CACHE / f"wide-{mark}-{source.name}-{name}.joblib".replace(" ", "_")
    if not path.exists():
        start = time.perf_counter()
        with threadpool_limits(1):
            made = function(source, *arguments)
        path.parent.mkdir(parents=True, exist_ok=True)
        joblib.dump((made, time.perf_counter() - start), path)
    return joblib.load(path)


def all_orders(source, n_best, n_jobs, mark):
    """From a selector's name to its order and seconds; and the effects of the ridge sweep."""
    (order, effects), seconds = cached("DDML-ridge", source, mark, ridge_sweep)
    found = {"DDML-ridge": (order, seconds)}
    order, more = cached("DDML-MLP", source, mark, network_sweep, order, n_best, n_jobs)
    found["DDML-MLP on the best"] = order, seconds + more
    for name, rival in RIVALS.items():
        found[name] = cached(
            name, source, mark, lambda source, rival=rival: rival.fit(source.X, source.y).order()
        )
    return found, effects


def answers(task, columns, classifier):
    """Which reviews of the targets are classified rightly."""
    model = fitted(classifier, task.source, columns)
    for name, (X, y) in task.targets.items():
        yield name, (scores(model, X[:, columns]) > 0) == y


def study(tasks, numbers, n_best, words, n_jobs):
    """All selectors on all sources of the wide data.

    Parameters
    ----------
    tasks : list of Task
    numbers : list of int
    n_best : int
        Words that the networks get.
    words : array of shape (D,)
    n_jobs : int

    Returns
    -------
    rows : DataFrame
        As of :func:`experiments.amazon.runs.run_all`.
    costs : DataFrame
        Seconds a source.
    strongest : DataFrame
        The strongest words of every source, with effect and interval.
    """
    mark = fingerprint(tasks, (numbers, n_best, Path(__file__).read_text()))
    rows, costs, strongest = [], [], []
    for task in track(tasks, description="wide"):
        source = task.source

        def add(selector, classifier, k, columns, task=task):
            for target, right in answers(task, columns, classifier):
                keys = (selector, classifier, str(k), task.source.name, target)
                rows.append((*keys, right.mean(), right))

        orders, effects = all_orders(source, n_best, n_jobs, mark)
        for name, (order, seconds) in orders.items():
            costs.append({"selector": name, "source": source.name, "seconds": seconds})
            for k in numbers:
                for classifier in ("logistic", "naive Bayes"):
                    add(name, classifier, k, order[:k])
        top = effects.set_axis(words).sort_values("rank").head(N_STRONGEST)
        strongest.append(top.rename_axis("word").reset_index().assign(source=source.name))
        for n in sorted({n_best, source.X.shape[1]}):
            for classifier in ("logistic", "naive Bayes", "effects"):
                add("all features", classifier, f"first {n}", np.arange(n))
    columns = ["selector", "classifier", "K", "source", "target", "accuracy", "right"]
    table = pd.DataFrame(rows, columns=columns)
    return (
        table,
        pd.DataFrame(costs),
        pd.concat(strongest)[["source", "word", "effect", "low", "high"]],
    )
