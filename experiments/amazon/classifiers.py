"""The classifiers, and how features, their number and the classifier are chosen on the source."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from joblib import Memory
from scipy.special import logit
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB
from sklearn.svm import SVC

import ddml_fs
from ddml_fs import EffectClassifier

CLASSIFIERS = {
    "logistic": LogisticRegression(C=0.1, max_iter=1000),
    "naive Bayes": BernoulliNB(),
    "SVC": SVC(cache_size=500),
    "forest": RandomForestClassifier(random_state=0),
    "effects": EffectClassifier(),
}
TRIED = ("logistic", "naive Bayes", "effects")  # on the source; the others take too long
MEMORY = Memory(".cache/amazon", verbose=0)
PACKAGE = sorted(Path(ddml_fs.__file__).parent.rglob("*.py"))
CODE = hashlib.sha1(b"".join(file.read_bytes() for file in PACKAGE)).hexdigest()


def scores(model, X):
    """Log-odds, or what stands for them, (N,); positive for the second class."""
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    return logit(model.predict_proba(X)[:, 1].clip(1e-3, 1 - 1e-3))


def fitted(name, source, columns):
    """A classifier on some columns of a source."""
    X = source.X[:, columns]
    if name == "effects" and source.domain is not None:
        return EffectClassifier().fit(X, source.y, sample_domain=source.domain)
    return clone(CLASSIFIERS[name]).fit(X, source.y)


@MEMORY.cache
def scores_with_all(name, source, X, code):
    """Scores of rows X by a classifier on all words: the same for every selector.

    ``code`` is a hash of the package: another package has other scores.
    """
    return scores(fitted(name, source, slice(None)), X)


def scores_of(name, source, columns, X):
    """Scores of rows X (N, D) by a classifier on some columns of a source, (N,)."""
    if len(columns) == X.shape[1]:
        return scores_with_all(name, source, X, CODE)
    return scores(fitted(name, source, columns), X[:, columns])


@dataclass(frozen=True)
class Choice:
    """What cross-validation within the source says.

    Attributes
    ----------
    accuracy : dict
        From (classifier, K) to the mean accuracy over rows left out.
    spread : dict
        From (classifier, K) to the standard deviation of their scores.
    n_rows : int
        Rows that were left out, over all splits.
    """

    accuracy: dict
    spread: dict
    n_rows: int

    def number(self, classifier):
        """The best number of features; of a classifier that was not tried, logistic's."""
        name = classifier if classifier in TRIED else "logistic"
        own = {k: a for (c, k), a in self.accuracy.items() if c == name}
        return max(own, key=lambda k: own[k])

    def best(self):
        """The best pair of classifier and K."""
        return max(self.accuracy, key=lambda pair: self.accuracy[pair])

    def as_good(self):
        """All pairs that are within one standard error of the best."""
        top = self.accuracy[self.best()]
        least = top - np.sqrt(top * (1 - top) / self.n_rows)
        return [pair for pair, accuracy in self.accuracy.items() if accuracy >= least]


def choose(source, orders, numbers):
    """Try classifiers and numbers of features on rows of the source that are left out.

    Parameters
    ----------
    source : Source
    orders : list of arrays
        The features, best first, of each of the source's splits.
    numbers : list of int

    Returns
    -------
    choice : Choice
    """
    right: dict = {}
    values: dict = {}
    for (train, test), order in zip(source.splits(), orders, strict=True):
        part = source.rows(train)
        for pair in ((c, k) for c in TRIED for k in numbers):
            seen = scores_of(pair[0], part, order[: pair[1]], source.X[test])
            right.setdefault(pair, []).append((seen > 0) == source.y[test])
            values.setdefault(pair, []).append(seen)
    return Choice(
        {pair: float(np.concatenate(r).mean()) for pair, r in right.items()},
        {pair: float(np.concatenate(v).std()) for pair, v in values.items()},
        sum(len(test) for _, test in source.splits()),
    )


def right_answers(task, order, choice, numbers):
    """Which rows of the targets are classified rightly, by every classifier and number.

    Parameters
    ----------
    task : Task
    order : int array of shape (D,)
        The features, best first, of the whole source.
    choice : Choice
    numbers : list of int
        Those of the table; "auto" and the two choices of a pair are added.

    Yields
    ------
    classifier : str
    K : str
    target : str
    right : bool array
    """
    cache: dict = {}

    def on_targets(classifier, k):
        if (classifier, k) not in cache:
            X = np.concatenate([X for X, _ in task.targets.values()])
            seen = scores_of(classifier, task.source, order[:k], X)
            ends = np.cumsum([len(y) for _, y in task.targets.values()])
            cache[classifier, k] = dict(zip(task.targets, np.split(seen, ends[:-1]), strict=True))
        return cache[classifier, k]

    for classifier in CLASSIFIERS:
        wanted = {str(k): k for k in numbers} | {"auto": choice.number(classifier)}
        for label, k in wanted.items():
            for name, seen in on_targets(classifier, k).items():
                yield classifier, label, name, (seen > 0) == task.targets[name][1]
    pairs = {"best on source": [choice.best()], "mean of those as good": choice.as_good()}
    for label, chosen in pairs.items():
        for name, (_, y) in task.targets.items():
            total = sum(on_targets(*pair)[name] / choice.spread[pair] for pair in chosen)
            yield label, "source", name, (total > 0) == y
