"""DGBR and PCFS: they balance, and find causes behind confounded columns."""

import numpy as np
import pytest
import torch
from sklearn.feature_selection import f_classif
from sklearn.metrics import roc_auc_score

from experiments.baselines.selectors.dgbr import DGBR, imbalance
from experiments.baselines.selectors.pcfs import PCFS, arm_weights

CAUSES = np.arange(5)


@pytest.fixture(scope="module")
def words():
    """Columns: 5 causes, 10 noisy copies of them, 15 of noise, 1 constant."""
    rng = np.random.default_rng(0)
    n = 1200
    causes = rng.random((n, 5)) < 0.4
    flip = rng.random((n, 10)) < 0.15
    copies = np.repeat(causes[:, :2], 5, axis=1) ^ flip
    noise = rng.random((n, 15)) < 0.3
    X = np.column_stack([causes, copies, noise, np.zeros(n)]).astype(float)
    logit = X[:, CAUSES] @ [2.0, -2.0, 1.0, -1.0, 0.9]
    y = rng.random(n) < 1 / (1 + np.exp(-(logit - logit.mean())))
    return X, y.astype(int)


def methods():
    return [DGBR(5, random_state=0), PCFS(5)]


@pytest.mark.parametrize("method", methods(), ids=lambda m: type(m).__name__)
def test_causes_come_first(words, method):
    X, y = words
    is_cause = np.isin(np.arange(X.shape[1]), CAUSES)
    method.fit(X, y)
    assert method.get_support().sum() == 5
    assert method.get_support()[CAUSES].sum() >= 4
    assert method.transform(X).shape == (len(X), 5)
    # The copies of the two strong causes beat the weak causes where nothing is balanced.
    marginal = np.nan_to_num(f_classif(X[:, :-1], y)[0])
    assert np.isin(np.argsort(-marginal)[:5], CAUSES).sum() < 4
    assert roc_auc_score(is_cause, method.scores_) > 0.95


@pytest.mark.parametrize(
    "method", [DGBR(5, n_steps=20, random_state=0), PCFS(5)], ids=lambda m: type(m).__name__
)
def test_scores_repeat_and_constants_have_none(words, method):
    X, y = words
    scores = method.fit(X, y).scores_
    assert scores[-1] == 0
    assert (scores >= 0).all()
    np.testing.assert_array_equal(scores, method.fit(X, y).scores_)
    # Labels of another name change nothing.
    np.testing.assert_array_equal(scores, method.fit(X, np.where(y, "good", "bad")).scores_)


def test_arm_weights_balance_each_arm(words):
    T = words[0][:, :-1] > 0
    C = T - T.mean(axis=0)
    free = 1 - np.eye(T.shape[1])
    ridge = 0.1
    p = arm_weights(C, T, free, ridge, n_iter=40)
    np.testing.assert_allclose(p.sum(axis=0), 1)
    assert (p[~T] == 0).all()
    before = np.abs(free * (C.T @ (T / T.sum(axis=0)))).sum()
    assert np.abs(free * (C.T @ p)).sum() < 0.5 * before
    # At the optimum the weights are exponential in C with the imbalance itself as direction.
    j = 0
    rows = T[:, j]
    logits = -C[rows] @ (free[:, j] * (C.T @ p[:, j])) / ridge
    expected = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(p[rows, j], expected, atol=1e-6)


def arm_distances(X, w, encoder, bias):
    """A slow twin of ``imbalance``: one feature after the other."""
    distances = []
    for j in range(X.shape[1]):
        others = X.copy()
        others[:, j] = 0
        Z = 1 / (1 + np.exp(-(others @ encoder + bias)))
        treated = X[:, j] == 1
        means = [np.average(Z[rows], axis=0, weights=w[rows]) for rows in (treated, ~treated)]
        distances.append(((means[0] - means[1]) ** 2).sum())
    return np.array(distances)


def test_global_weights_balance_every_feature(words):
    X, y = words[0][:, :-1], words[1]
    model = DGBR(5, random_state=0).fit(X, y)
    assert (model.weights_ >= 0).all()
    assert abs(model.weights_.mean() - 1) < 0.1
    learned = arm_distances(X, model.weights_, model.encoder_, model.bias_)
    uniform = arm_distances(X, np.ones(len(X)), model.encoder_, model.bias_)
    assert learned.sum() < 0.5 * uniform.sum()
    tensors = [torch.as_tensor(a, dtype=torch.float32) for a in (X, model.weights_)]
    parts = [torch.as_tensor(a) for a in (model.encoder_, model.bias_)]
    fast = imbalance(*tensors, *parts, torch.arange(X.shape[1]))
    np.testing.assert_allclose(fast, learned, rtol=1e-3, atol=1e-6)


def test_another_seed_is_another_network(words):
    X, y = words
    first, second = (DGBR(5, n_steps=20, random_state=seed).fit(X, y).scores_ for seed in (0, 1))
    assert (first != second).any()
