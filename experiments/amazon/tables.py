"""From right and wrong answers to tables."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

RESULTS = Path(__file__).parent / "results"
KEYS = ["selector", "classifier", "K"]
N_DRAWS = 1000  # of the bootstrap

# Table IV of the paper; its tasks go by source and then by target, its means by all twelve.
DOMAINS = ("books", "dvd", "elec", "kitchen")
PAPER = {
    "DGBR": "6693 6582 6473 5975 5856 6108 5875 6253 6908 5775 5918 6752 6264",
    "EAMB": "7469 7252 7539 7250 7472 7492 6810 6968 8090 6850 7190 8028 7368",
    "CVS": "7569 7307 7704 7300 7007 7429 6355 6378 7554 6850 6983 8023 7205",
    "PCFS": "7539 6872 7269 7160 7202 7434 6465 6918 7969 6840 7294 7963 7244",
    "CIFD": "7674 7382 7709 7300 7297 7484 6400 7084 8024 6755 7264 7923 7358",
    "DDML-RF": "7824 7352 7729 7460 7528 7739 6855 7064 8294 6805 7284 8088 7502",
    "DDML-MLP": "7739 7417 7854 7340 7247 7699 6715 7214 8044 6885 7339 8083 7462",
}


def by_task(rows):
    """One line a selector, classifier and K; a column a task, then the mean and the average rank.

    Parameters
    ----------
    rows : DataFrame
        Of :func:`experiments.amazon.runs.run_all`.
    """
    task = rows["source"] + "→" + rows["target"]
    order = list(dict.fromkeys(task))
    table = rows.assign(task=task).pivot(index=KEYS, columns="task", values="accuracy")[order]
    ranks = table.groupby(["classifier", "K"]).rank(ascending=False).mean(axis=1)
    return table.assign(mean=table.mean(axis=1), rank=ranks)


def bootstrap(rows, seed=0):
    """Mean accuracies, drawing the reviews of every target anew; (draws,) for each of KEYS.

    A review counts in all tasks that it is in, so that two methods are compared on the same draw.

    Returns
    -------
    draws : DataFrame
        One column a selector, classifier and K.
    """
    rng = np.random.default_rng(seed)
    targets = list(dict.fromkeys(rows["target"]))
    total = 0.0
    for target in targets:
        part = rows[rows["target"] == target]
        right = part.groupby(KEYS, sort=False)["right"].agg(lambda r: np.mean(list(r), axis=0))
        answers = np.stack(right.tolist(), axis=1)  # (reviews, methods)
        n = len(answers)
        weights = rng.multinomial(n, np.full(n, 1 / n), N_DRAWS) / n
        total = total + pd.DataFrame(weights @ answers, columns=right.index)
    return total / len(targets)


def intervals(rows):
    """Mean accuracy and its 95 % interval for every selector, classifier and K."""
    draws = bootstrap(rows)
    table = by_task(rows)[["mean", "rank"]]
    low, high = draws.quantile([0.025, 0.975]).to_numpy()
    bounds = pd.DataFrame({"low": low, "high": high}, index=draws.columns)
    return table.join(bounds)


def differences(rows, ours, numbers, classifiers=("logistic", "naive Bayes")):
    """Ours less the best rival, at every number of features, with the interval of the difference.

    Parameters
    ----------
    rows : DataFrame
    ours : str
        A selector.
    numbers : list
        Of features.
    """
    draws, table, lines = bootstrap(rows), by_task(rows), []
    for classifier in classifiers:
        for k in map(str, numbers):
            means = table["mean"].xs((classifier, k), level=("classifier", "K"))
            rivals = means[~means.index.str.startswith("DDML")]
            best = rivals.idxmax()
            difference = draws[ours, classifier, k] - draws[best, classifier, k]
            low, high = difference.quantile([0.025, 0.975])
            ranks = table["rank"].xs((classifier, k), level=("classifier", "K"))
            lines.append(
                {
                    "ours": ours,
                    "classifier": classifier,
                    "K": k,
                    "accuracy": means[ours],
                    "best rival": best,
                    "its accuracy": rivals.max(),
                    "difference": means[ours] - rivals.max(),
                    "low": low,
                    "high": high,
                    "average rank": ranks[ours],
                    "best rival's rank": ranks[rivals.index].min(),
                }
            )
    return pd.DataFrame(lines)


def friedman(rows, classifier, k):
    """Friedman's test over the tasks, and the critical difference of average ranks by Nemenyi.

    Returns
    -------
    ranks : Series
        Average rank of every selector, best first.
    pvalue : float
    critical : float
        Selectors whose ranks differ by more are told apart at the level of 5 %.
    accuracy : DataFrame
        Tasks × selectors.
    """
    part = rows[(rows["classifier"] == classifier) & (rows["K"] == str(k))]
    accuracy = part.pivot(index=["source", "target"], columns="selector", values="accuracy")
    pvalue = stats.friedmanchisquare(*accuracy.to_numpy().T).pvalue
    n, m = accuracy.shape
    q = stats.studentized_range.ppf(0.95, m, np.inf) / np.sqrt(2)
    ranks = accuracy.rank(axis=1, ascending=False).mean().sort_values()
    return ranks, float(pvalue), float(q * np.sqrt(m * (m + 1) / (6 * n))), accuracy


def best_on_target(rows, classifier):
    """The best K for each task, chosen on the target's labels, as published tables do."""
    numbered = rows[rows["K"].str.isdigit() & (rows["classifier"] == classifier)]
    best = numbered.groupby(["selector", "source", "target"], sort=False)["accuracy"].max()
    return best.unstack(["source", "target"])


def beside_the_paper(rows):
    """Table IV: the paper's rows, and ours by the same protocol and by an honest one."""
    table, lines = by_task(rows), {}
    tasks = [c for c in table.columns if "→" in c]
    all_tasks = [f"{a}→{b}" for a in DOMAINS for b in DOMAINS if a != b]
    for name, digits in PAPER.items():
        printed = dict(zip([*all_tasks, "mean"], digits.split(), strict=True))
        lines[f"{name}, the paper"] = [float(f"0.{printed[t]}") for t in [*tasks, "mean"]]
    for classifier in ("SVC", "naive Bayes"):
        best = best_on_target(rows, classifier)
        for name in PAPER:
            values = best.loc[name].tolist()
            lines[f"{name}, {classifier}, best K on the target"] = [*values, np.mean(values)]
    for name in PAPER:
        values = table.loc[(name, "mean of those as good", "source"), tasks].tolist()
        lines[f"{name}, all chosen on the source"] = [*values, np.mean(values)]
    return pd.DataFrame.from_dict(lines, orient="index", columns=[*tasks, "mean"])


def agreement(jobs, numbers):
    """Share of the top K words that two sources have in common, mean over pairs of sources."""
    lines = {}
    own = ~jobs["selector"].isin(["random", "all features"])
    for name, part in jobs[own].groupby("selector", sort=False):
        orders = part["order"].tolist()
        lines[name] = {
            str(k): np.mean(
                [len(np.intersect1d(a[:k], b[:k])) / k for a, b in combinations(orders, 2)]
            )
            for k in numbers
        }
    return pd.DataFrame(lines).T
