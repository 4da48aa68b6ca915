"""Orders by expected gain: against a twin on the rows, and on tables whose answer is known."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from ddml_fs import forward
from ddml_fs.forward import Products, ResidualProducts, forward_order, products, ridge_of


def columns_on_rows(Z, outcomes, part, own, bent, n_features, label, domains):
    """The columns of every feature, whether they are bent, and the outcomes, row by row."""
    N = len(Z)
    Z, e, w = Z.astype(float).copy(), outcomes.astype(float).copy(), np.ones(N)
    for d in set(part) if domains else {None}:
        rows = [i for i in range(N) if d is None or part[i] == d]
        Z[rows] -= Z[rows].mean(0)
        e[rows] -= e[rows].mean(0)
        if label:
            w[rows] = np.sqrt(np.mean(e[rows] ** 2))
    w /= np.sqrt(np.mean(w**2))
    Z *= w[:, None]
    e = np.array([row / s if s > 0 else 0 * row for row, s in zip(e, w, strict=True)])
    e /= np.sqrt(np.mean(e**2, 0))
    blocks = []
    for f in range(n_features):
        block: list = []
        for j in np.flatnonzero(own == f):
            x = Z[:, j].copy()
            if block:
                before = np.column_stack([c for c, _ in block])
                x -= before @ np.linalg.lstsq(before, x)[0]
            if np.mean(x**2) > 1e-6 * np.mean(Z[:, j] ** 2):
                block.append((x / np.sqrt(np.mean(x**2)), bent[j]))
        blocks.append(block)
    return blocks, e


def gain_on_rows(block, e, part, ridge, aversion):
    """The gain of one block less its risk, the mean over outcomes."""
    B = np.column_stack(block)
    N, k = B.shape
    values = []
    for y in e.T:
        b = np.linalg.solve(B.T @ B + ridge * N * np.eye(k), B.T @ y)
        noise = np.mean(y**2)
        value = (y @ B @ b - 2 * k * noise) / N
        if part is not None:
            curve, m = B @ b, len(set(part))
            U = [sum(curve[i] * y[i] for i in range(N) if part[i] == d) for d in sorted(set(part))]
            I = [sum(curve[i] ** 2 for i in range(N) if part[i] == d) for d in sorted(set(part))]
            theta = sum(U) / sum(I)
            Q = sum(i * (u / i - theta) ** 2 for u, i in zip(U, I, strict=True)) / noise
            excess = Q - (m - 1) if stats.chi2(m - 1).ppf(0.999) < Q else 0.0
            tau2 = excess * noise / (sum(I) - sum(i**2 for i in I) / sum(I))
            value -= sum(U) * theta / N * (tau2 / theta**2 / m + aversion * np.sqrt(tau2) / theta)
        values.append(value)
    return np.mean(values)


def shared(left, right):
    """Mean squared correlation (about 0) of the columns of two blocks."""
    return np.mean([(x @ y) ** 2 / (x @ x) / (y @ y) for x, _ in left for y, _ in right])


def slow_forward(Z, outcomes, part, own, bent, n_features, *, label, domains, aversion):
    """Forward selection on the rows: blocks and outcomes are residualised at every step."""
    blocks, e = columns_on_rows(Z, outcomes, part, own, bent, n_features, label, domains)
    N, F = len(Z), n_features
    ridge = 0.03 + 4 * F / N
    current, left, order, scores = list(blocks), list(range(F)), [], np.zeros(F)
    part = part if domains else None
    while left:
        value = {}
        for f in left:
            straight = [x for x, curved in current[f] if not curved]
            choices = [[x for x, _ in current[f]]] + [straight] * bool(straight)
            value[f] = max(gain_on_rows(c, e, part, ridge, aversion) for c in choices)
        if order:
            like = {f: sum(shared(blocks[f], blocks[g]) for g in order) for f in left}
            mean = np.mean(list(like.values()))
            value = {f: v - 20 * F / N**2 * like[f] / mean for f, v in value.items()}
        best = max(left, key=value.get)
        scores[best] = value[best]
        order.append(best)
        left.remove(best)
        B = np.column_stack([x for x, _ in current[best]])
        inverse = np.linalg.inv(B.T @ B + ridge * N * np.eye(B.shape[1]))
        e = e - B @ inverse @ B.T @ e
        for f in left:
            current[f] = [(x - B @ inverse @ B.T @ x, curved) for x, curved in current[f]]
    return order, scores


def small_table(kind, n_domains, seed):
    """Six features of 1 to 4 columns, two of them with bent ones; one acts on signs that flip."""
    rng = np.random.RandomState(seed)
    N = 240
    part = np.arange(N) % n_domains
    x = rng.standard_normal((N, 7)) @ (np.eye(7) + 0.3 * rng.standard_normal((7, 7)))
    x += part[:, None] * rng.standard_normal(7)
    hinges = [np.maximum(x[:, [j]] - np.quantile(x[:, j], [0.25, 0.5, 0.75]), 0) for j in (0, 6)]
    Z = np.column_stack([x[:, 0], hinges[0], x[:, 1:6], x[:, 6], hinges[1][:, :1]])
    own = np.array([0, 0, 0, 0, 1, 2, 2, 3, 4, 5, 5])
    bent = np.array([0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1], bool)
    flips = np.where(part == 0, -1.0, 1.5)
    index = 1.5 * np.maximum(x[:, 0], 0) + x[:, 1] * flips + 0.5 * x[:, 2] - 0.3 * x[:, 6] + part
    index -= index.mean()
    if kind == "number":
        outcomes = index[:, None] + rng.standard_normal((N, 1))
    elif kind == "label":
        outcomes = rng.binomial(1, expit(index))[:, None].astype(float)
    else:
        noisy = index + rng.standard_normal(N)
        outcomes = np.eye(3)[np.digitize(noisy, np.quantile(noisy, [0.3, 0.7]))]
    return Z, outcomes, part, own, bent, 6


@pytest.mark.parametrize("kind", ["number", "label", "three"])
@pytest.mark.parametrize(("n_domains", "domains"), [(2, True), (3, True), (3, False)])
def test_forward_order_equals_twin(kind, n_domains, domains):
    table = small_table(kind, n_domains, seed=n_domains)
    options = {"label": kind != "number", "domains": domains}
    given = products(*table, **options)
    found = {}
    for aversion in (0.0, 1.5):
        order, scores = forward_order(given, risk_aversion=aversion)
        slow, slow_scores = slow_forward(*table, **options, aversion=aversion)
        assert order.tolist() == slow
        np.testing.assert_allclose(scores, slow_scores, rtol=1e-6, atol=1e-9)
        found[aversion] = scores
    assert np.allclose(found[0.0], found[1.5]) == (not domains)  # risk is there to be compared


def test_take_out_equals_regression_on_rows():
    """Three features of two, one and two columns, and two outcomes."""
    rng = np.random.RandomState(0)
    A = rng.standard_normal((90, 7)) @ rng.standard_normal((7, 7))
    part, own = np.arange(90) % 3, np.array([0, 0, 1, 2, 2])
    S = np.stack([A[part == d].T @ A[part == d] for d in range(3)])
    given = Products(S, np.full(3, 30), own, own < 0, 3, True)
    for taken in ([0], [1], [2, 0], [1, 2], [0, 1, 2]):
        found, left = ResidualProducts(given, 7.0), A.copy()
        for f in taken:
            found.take_out(f)
            B = left[:, :5][:, own == f]
            left = left - B @ np.linalg.solve(B.T @ B + 7.0 * np.eye(B.shape[1]), B.T @ left)
        np.testing.assert_allclose(found.rest, left[:, 5:].T @ left[:, 5:], atol=1e-9)
        for features, at, _, G, U in found.blocks:
            for i, f in enumerate(features):
                for d in range(3) if f not in taken else ():
                    rows = left[part == d]
                    slow = rows[:, at[i]].T @ rows
                    np.testing.assert_allclose(G[d, i], slow[:, at[i]], atol=1e-9)
                    np.testing.assert_allclose(U[d, i], slow[:, 5:], atol=1e-9)


def order_of(X, y, domain=None, *, label=False, aversion=1.5, scores=False):
    """The order of single columns."""
    part = np.arange(len(X)) % 5 if domain is None else domain
    own = np.arange(X.shape[1])
    straight = np.zeros(len(own), bool)
    options = {"label": label, "domains": domain is not None}
    given = products(X, y[:, None], part, own, straight, len(own), **options)
    order, found = forward_order(given, risk_aversion=aversion)
    return found if scores else order.tolist()


def test_near_copy_goes_to_the_end():
    """The best column stays first, on either side of its copy; noise comes before the copy."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((2000, 8))
    y = X[:, 0] + 0.3 * X[:, 1] + 0.2 * X[:, 2] + rng.standard_normal(2000)
    copy = X[:, 0] + 0.05 * rng.standard_normal(2000)
    assert order_of(X, y)[:3] == [0, 1, 2]
    for place in (0, 8):
        order = order_of(np.insert(X, place, copy, 1), y)
        first = int(place == 0)
        assert order[:3] == [first, first + 1, first + 2]
        assert order[-1] == place


def test_sign_that_flips_is_a_risk():
    """Effects 1.5, 1.5 and −0.3 have a large mean, and nobody knows the next domain's."""
    rng = np.random.RandomState(0)
    domain = np.arange(3000) % 3
    X = rng.standard_normal((3000, 4))
    flips = np.array([1.5, 1.5, -0.3])[domain]
    y = flips * X[:, 0] + 0.4 * X[:, 1] - 0.3 * X[:, 2] + rng.standard_normal(3000)
    assert order_of(X, y, domain, aversion=0.0)[:3] == [0, 1, 2]
    assert order_of(X, y, domain, aversion=1.5)[:2] == [1, 2]
    assert order_of(X, y, aversion=1.5)[0] == 0  # without domains there is no such risk


@pytest.mark.parametrize("label", [True, False])
def test_domain_that_says_nothing_does_not_change_the_order(label):
    rng = np.random.RandomState(0)
    domain = np.arange(900) % 3
    X = rng.standard_normal((900, 6)) + 3 * domain[:, None]
    index = (X - 3 * domain[:, None]) @ [1.0, -0.8, 0.6, 0.4, 0.0, 0.0] + domain
    y = rng.binomial(1, expit(index)) if label else index + rng.standard_normal(900)
    order = order_of(X, y, domain, label=label)
    assert order[:4] == [0, 1, 2, 3]
    one_row = np.vstack([X, [9.0, -9, 9, -9, 9, -9]]), np.r_[y, 1], np.r_[domain, 3]
    assert order_of(*one_row, label=label) == order
    if label:
        more = rng.standard_normal((60, 6)) * 2
        one_class = np.vstack([X, more]), np.r_[y, np.ones(60)], np.r_[domain, np.full(60, 3)]
        assert order_of(*one_class, label=True) == order


def test_base_rates_are_not_instability():
    """One effect on the log-odds at 12, 50 and 88 % of ones: risk takes off nothing.

    As numbers, the slopes are as different as the variances of the label.
    """
    rng = np.random.RandomState(0)
    domain = np.repeat([0, 1, 2], 1500)
    X = rng.standard_normal((4500, 3))
    y = rng.binomial(1, expit(0.7 * X[:, 0] + 0.4 * X[:, 1] + 2.2 * (domain - 1.0)))
    for label in (True, False):
        careless, careful = (
            order_of(X, y, domain, label=label, aversion=a, scores=True) for a in (0.0, 1.5)
        )
        assert np.allclose(careless, careful) == label


def test_more_columns_than_compete(monkeypatch):
    """Those that lead stay; the rest follow by their own gains, with scores of at most 0."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((1000, 30))
    X[:, 7] = X[:, 3] + 0.3 * rng.standard_normal(1000)
    y = X[:, :6] @ [1.0, 0.9, 0.8, 0.7, 0.6, 0.5] + rng.standard_normal(1000)
    whole = order_of(X, y)
    assert whole[:6] == [0, 1, 2, 3, 4, 5]
    monkeypatch.setattr(forward, "MOST", 10)
    order = order_of(X, y)
    assert order[:6] == whole[:6]
    assert sorted(order) == list(range(30))
    own = np.arange(30)
    given = products(
        X, y[:, None], own[:20].repeat(50), own, own < 0, 30, label=False, domains=False
    )
    alone = ResidualProducts(given, 0.0).gains(ridge_of(30, 1000), 0.0)
    assert all(alone[a] >= alone[b] for a, b in pairwise(order[10:]))
    monkeypatch.setattr(forward, "MOST", 3)
    scores = order_of(X, y, scores=True)
    assert (scores[order_of(X, y)[:3]] > 0).all()
    assert (scores[order_of(X, y)[3:]] <= 0).all()
    monkeypatch.setattr(forward, "MOST", 0)
    assert order_of(X, y) == np.argsort(-alone, kind="stable").tolist()


def test_columns_that_repeat_or_do_not_vary_within_domains():
    """A block keeps what is new in its columns; a feature without any comes last."""
    rng = np.random.RandomState(0)
    domain = np.arange(200) % 2
    x, z = rng.standard_normal((2, 200))
    Z = np.column_stack([domain, z, x, 2 * x + domain])
    y = x + rng.standard_normal(200)
    own, bent = np.array([0, 1, 2, 2]), np.array([0, 0, 0, 1], bool)
    given = products(Z, y[:, None], domain, own, bent, 3, label=False, domains=True)
    assert given.own.tolist() == [1, 2]
    assert given.bent.tolist() == [False, False]
    order, scores = forward_order(given)
    assert order.tolist() == [2, 1, 0]
    assert scores[0] == -2.0


def test_without_a_part():
    table = small_table("number", 3, 0)
    given = products(*table, label=False, domains=True)
    other = given.without(1)
    assert other.n.tolist() == [80, 80]
    np.testing.assert_array_equal(other.S, given.S[[0, 2]])
