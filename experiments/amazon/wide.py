"""The same reviews with 5000 words: a ridge sweep over all, and DDML over the best of them."""

import time

import joblib
import numpy as np
import pandas as pd
from rich.progress import track
from threadpoolctl import threadpool_limits

from ddml_fs import CausalFeatureSelector
from ddml_fs.selector import sweep_estimator
from experiments.amazon.classifiers import fitted, scores
from experiments.amazon.runs import CACHE, fingerprint
from experiments.baselines import selectors as rivals

N_STRONGEST = 20
OURS = ("DDML-ridge", "DDML-MLP on the best")


def ridge_order(source, n_best, n_jobs):
    """The sweep over all words; its effects come too."""
    selector = CausalFeatureSelector(1.0, estimator="ridge", random_state=0)
    selector.fit(source.X, source.y)
    effects = selector.effects_[["effect", "stderr", "score", "rank"]].join(selector.conf_int())
    return np.argsort(selector.ranking_, kind="stable"), effects


def ddml_order(source, n_best, n_jobs):
    """Networks for the best words of the ridge sweep; all other words follow in its order.

    The penalty stays that of all words: the best are few because many were looked at.
    """
    first, _ = ridge_order(source, n_best, n_jobs)
    best = first[:n_best]
    shrinkage = sweep_estimator("mlp").shrinkage * source.X.shape[1] / n_best
    selector = CausalFeatureSelector(
        1.0, estimator=sweep_estimator("mlp", shrinkage=shrinkage), random_state=0, n_jobs=n_jobs
    )
    selector.fit(source.X[:, best], source.y)
    return np.concatenate([best[np.argsort(selector.ranking_, kind="stable")], first[n_best:]])


def rival(selector):
    """A selector compared with, as a function of the source."""
    return lambda source, n_best, n_jobs: selector.fit(source.X, source.y).order()


SELECTORS = {
    "DDML-ridge": ridge_order,
    "DDML-MLP on the best": ddml_order,
    "mRMR": rival(rivals.MRMR(n_ranked=1000)),
    "F-test": rival(rivals.FTest()),
    "mutual information": rival(rivals.MutualInformation()),
    "ridge-logistic": rival(rivals.RidgeLogistic()),
    "random": rival(rivals.Chance(random_state=0)),
}


def order_and_cost(name, source, n_best, n_jobs, mark):
    """An order of the words with its seconds, and the effects of the ridge sweep; cached."""
    path = CACHE / f"wide-{mark}-{source.name}-{name}.joblib".replace(" ", "_")
    if not path.exists():
        start = time.perf_counter()
        with threadpool_limits(1):
            found = SELECTORS[name](source, n_best, n_jobs)
        order, effects = found if isinstance(found, tuple) else (found, None)
        path.parent.mkdir(parents=True, exist_ok=True)
        joblib.dump((order, effects, time.perf_counter() - start), path)
    return joblib.load(path)


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
    mark = fingerprint(tasks, (numbers, n_best))
    rows, costs, strongest = [], [], []
    for task in track(tasks, description="wide"):
        source = task.source

        def add(selector, classifier, k, columns, task=task):
            for target, right in answers(task, columns, classifier):
                keys = (selector, classifier, str(k), task.source.name, target)
                rows.append((*keys, right.mean(), right))

        for name in SELECTORS:
            order, effects, seconds = order_and_cost(name, source, n_best, n_jobs, mark)
            costs.append({"selector": name, "source": source.name, "seconds": seconds})
            for k in numbers:
                for classifier in ("logistic", "naive Bayes"):
                    add(name, classifier, k, order[:k])
            if effects is not None:
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
