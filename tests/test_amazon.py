"""The sweep on real data: Amazon books, 2000 reviews × 400 words."""

import os

import numpy as np
import pytest

from ddml_fs import DDML, CausalFeatureSelector
from ddml_fs.datasets import fetch_amazon_reviews
from ddml_fs.features import read_features
from experiments.amazon.classifiers import scores_of
from experiments.amazon.protocol import by_domain, single_source

pytestmark = pytest.mark.skipif(
    "DDML_FS_DATA" not in os.environ, reason="DDML_FS_DATA names no folder with amazon/*.mat"
)


@pytest.fixture(scope="module")
def data():
    return by_domain(fetch_amazon_reviews())


@pytest.fixture(scope="module")
def columns(data):
    """The books' words that occur, less one that always occurs with another."""
    X = data["books"][0]
    group = read_features(X, np.arange(X.shape[1]), X.shape[1]).group
    return np.array([j for j, g in enumerate(group) if g >= 0 and g not in group[:j]])


@pytest.fixture(scope="module")
def words(data, columns):
    X, y = data["books"]
    return X[:, columns], y


def test_sweep_equals_single_fits(words):
    """Ten random words of a hundred, each alone and in a sweep of networks with the same seeds."""
    X, y = words
    X = X[:, np.argsort(-X.sum(0), kind="stable")[:100]]  # rare ones cannot be fitted alone
    selector = CausalFeatureSelector(100, nuisance="shrunken", random_state=0).fit(X, y)
    for j in np.random.RandomState(1).choice(100, 10, replace=False):
        single = DDML("shrunken", score="logistic", random_state=0).fit(X, y, treatment=int(j))
        assert selector.effects_["effect"].iloc[j] == pytest.approx(single.effect_, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "ranking", "least"),
    [
        ("logistic", "gain", (0.735, 0.75, 0.765)),
        ("logistic", "redundancy", (0.735, 0.75, 0.765)),
        # Naive Bayes wants rare words, which the default order has fewer of (docs/amazon.md).
        ("naive Bayes", "redundancy", (0.745, 0.765, 0.772)),
    ],
)
def test_choice_travels(data, columns, words, name, ranking, least):
    """Mean accuracy on the three other domains; the whole table is a command's, not a test's."""
    selector = CausalFeatureSelector(100, ranking=ranking, random_state=0).fit(*words)
    order = columns[np.argsort(selector.ranking_, kind="stable")]
    task = single_source(data)[0]
    for k, limit in zip((50, 100, 200), least, strict=True):
        accuracies = [
            np.mean((scores_of(name, task.source, order[:k], X) > 0) == y)
            for X, y in task.targets.values()
        ]
        assert np.mean(accuracies) > limit
