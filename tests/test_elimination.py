"""Backward elimination: its algebra against fits on rows, and what it makes of domains."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from ddml_fs import elimination
from ddml_fs.elimination import Remaining, eliminate, signs_differ
from ddml_fs.gain_models import RowModel, centred_blocks, penalty_of, products


def small_table(kind, n_domains, seed):
    """Six features in eleven columns: two with hinges, one with two columns."""
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


def model_of(Z, outcomes, part, own, bent, n_features, *, label, domains, weight=None):
    """The model of a table, for labels or for numbers."""
    weight = np.ones(len(Z)) if weight is None else weight
    options = {"domains": domains, "weight": weight}
    if not label:
        return products(Z, outcomes, part, own, bent, n_features, **options)
    domain = part if domains else np.zeros(len(part), int)
    Z, own, bent = centred_blocks(Z, own, bent, n_features, domain, weight)
    return RowModel(Z, outcomes, part, domain, weight, own, bent, n_features)


def slow_fit(model, table, columns, label):
    """Coefficients, inverse information, weights and residuals from rows, by plain Newton steps."""
    Z, outcomes, part, own, bent, n_features = table
    A = centred_blocks(Z, own, bent, n_features, part, np.ones(len(Z)))[0][:, columns]
    D = (part[:, None] == np.unique(part)).astype(float)
    y, lam = outcomes[:, 0], penalty_of(len(model.own))
    M, ridge = np.hstack([A, D]), np.r_[np.full(len(columns), lam), np.zeros(D.shape[1])]
    if not label:
        y = y - D @ (D.T @ y / D.sum(0)[:, None].ravel())
        y = y / np.sqrt((y**2).mean())
        dispersion = 1.0
        for _ in range(3):
            b = np.linalg.solve(M.T @ M + np.diag(ridge * dispersion), M.T @ y)
            dispersion = ((y - M @ b) ** 2).mean()
        w, e = np.full(len(y), 1 / dispersion), (y - M @ b) / dispersion
    else:
        b = np.zeros(M.shape[1])
        for _ in range(60):
            p = expit(M @ b)
            H = M.T @ (M * (p * (1 - p))[:, None]) + np.diag(ridge)
            b = b + 0.7 * np.linalg.solve(H, M.T @ (y - p) - ridge * b)
        p = expit(M @ b)
        w, e = p * (1 - p), y - p
    H = M.T @ (M * w[:, None]) + np.diag(ridge)
    return M, b, np.linalg.inv(H), w, e


@pytest.mark.parametrize("label", [True, False])
def test_fits_and_scores_of_domains_equal_those_on_rows(label):
    table = small_table("label" if label else "number", 3, 1)
    model, part = model_of(*table, label=label, domains=True), table[2]
    columns = np.flatnonzero(model.own != 3)
    fit = model.fit(0, columns)
    M, b, omega, w, e = slow_fit(model, table, columns, label)
    k = len(columns)
    np.testing.assert_allclose(fit.beta[:k], b[:k], atol=1e-5)
    np.testing.assert_allclose(fit.omega[:k, :k], omega[:k, :k], rtol=5e-3, atol=1e-7)
    at = np.flatnonzero(model.own[columns] == 2)
    curve = omega[:, at] @ np.linalg.solve(omega[np.ix_(at, at)], b[at])
    given = fit.omega[:, at] @ np.linalg.solve(fit.omega[np.ix_(at, at)], fit.beta[at])
    U, I = fit.by_domain(given[:, None])
    v = M @ curve
    for d in range(3):
        rows = part == d
        information = (w[rows] * v[rows] ** 2).sum()
        assert I[d, 0] == pytest.approx(information, rel=2e-3)
        assert U[d, 0] == pytest.approx(e[rows] @ v[rows] + information, rel=2e-3)


def test_logistic_fit_equals_scikit_learn():
    Z, outcomes, part, own, bent, n_features = small_table("label", 1, 0)
    model = model_of(Z, outcomes, part, own, bent, n_features, label=True, domains=False)
    columns = np.arange(5)
    peer = LogisticRegression(C=1 / model.penalty, tol=1e-10, max_iter=1000)
    peer.fit(model.Z[:, columns], outcomes[:, 0])
    np.testing.assert_allclose(model.fit(0, columns).beta[:5], peer.coef_[0], atol=1e-5)


@pytest.mark.parametrize("label", [True, False])
def test_drop_equals_the_fit_without_the_feature(label):
    """Exact for the quadratic approximation; the gain is the loss of its optimum."""
    *table, bent, n_features = small_table("label" if label else "number", 1, 2)
    model = model_of(*table, bent & False, n_features, label=label, domains=True)
    fit = Remaining(model, 0, 1.0)
    fit.refit(np.arange(len(model.own)), np.arange(6))
    b, H = fit.b.copy(), np.linalg.inv(fit.omega)
    for feature in (0, 4, 2):
        left = np.setdiff1d(np.arange(6), [0, 4, 2][: [0, 4, 2].index(feature) + 1])
        before = (fit.b - b) @ H @ (fit.b - b) / 2
        gain = fit.gains(np.array([feature]))[0] + fit.size[feature]
        fit.drop(feature)
        use = np.isin(model.own, left)
        # The minimum of ½(c − b)ᵀH(c − b) over the coefficients c of the features that are left.
        slow = np.zeros(len(b))
        slow[use] = np.linalg.solve(H[np.ix_(use, use)], (H @ b)[use])
        np.testing.assert_allclose(fit.b, slow, atol=1e-8)
        assert gain == pytest.approx((slow - b) @ H @ (slow - b) / 2 - before, rel=1e-6)


@pytest.mark.parametrize("kind", ["number", "label", "three"])
@pytest.mark.parametrize(("n_domains", "domains"), [(3, True), (3, False)])
@pytest.mark.parametrize("opposite", [True, False])
def test_order_equals_twin_that_fits_after_every_drop(
    monkeypatch, kind, n_domains, domains, opposite
):
    """With at most eight features, the model is fitted after every drop in any case."""
    monkeypatch.setattr(elimination, "signs_differ", lambda U, I: opposite)
    *table, bent, n_features = small_table(kind, n_domains, n_domains)
    straight = np.zeros_like(bent)
    model = model_of(*table, straight, n_features, label=kind != "number", domains=domains)
    for aversion in (0.0, 3.0):
        order, scores, _ = eliminate(model, risk_aversion=aversion)
        alive, slow = list(range(6)), []
        while alive:
            gains = []
            for c in range(model.n_outcomes):
                columns = np.flatnonzero(np.isin(model.own, alive))
                fit, own = model.fit(c, columns), model.own[columns]
                for f in alive:
                    at = np.flatnonzero(own == f)
                    half = np.linalg.solve(fit.omega[np.ix_(at, at)], fit.beta[at])
                    kept = 1.0
                    if domains:
                        pair = fit.by_domain((fit.omega[:, at] @ half)[:, None])
                        kept -= elimination.risk(*pair, aversion if opposite else 0.0)[0]
                    gains.append(fit.beta[at] @ half / 2 * kept - len(at))
            gains = np.reshape(gains, (-1, len(alive))).mean(0) / 240
            worst = int(np.argmin(gains))
            assert scores[alive[worst]] == pytest.approx(gains[worst], rel=1e-4, abs=1e-6)
            slow.append(alive.pop(worst))
        assert order.tolist() == slow[::-1]


def order_of(X, y, domain=None, *, label=False, aversion=2.5, scores=False):
    """The order of single columns."""
    part = np.arange(len(X)) % 5 if domain is None else domain
    own = np.arange(X.shape[1])
    options = {"label": label, "domains": domain is not None}
    given = model_of(X, y[:, None], part, own, own < 0, len(own), **options)
    order, found, _ = eliminate(given, risk_aversion=aversion)
    return found if scores else order.tolist()


@pytest.mark.parametrize("label", [True, False])
def test_fits_between_halves_hardly_change_the_order(monkeypatch, label):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((1500, 40)) @ (np.eye(40) + 0.1 * rng.standard_normal((40, 40)))
    index = X[:, :12] @ np.linspace(1, 0.3, 12)
    y = rng.binomial(1, expit(index)) if label else index + rng.standard_normal(1500)
    order = order_of(X, y, label=label)
    monkeypatch.setattr(elimination, "SINGLE", 40)
    each = order_of(X, y, label=label)
    assert set(order[:12]) == set(each[:12])
    assert order[:6] == each[:6]


@pytest.mark.parametrize("label", [True, False])
def test_bends_count_only_if_they_are_worth_their_columns(label):
    """Column 0 acts as a line and column 1 as a curve; both have three hinges."""
    rng = np.random.RandomState(0)
    x = rng.standard_normal((2000, 2))
    index = 0.5 * x[:, 0] + np.abs(x[:, 1])
    y = rng.binomial(1, expit(index - 0.8)) if label else index + rng.standard_normal(2000)
    hinges = [np.maximum(x[:, [j]] - q, 0) for j in (0, 1) for q in (-0.7, 0.0, 0.7)]
    Z = np.hstack([x[:, :1], *hinges[:3], x[:, 1:], *hinges[3:]])
    own, bent = np.repeat([0, 1], 4), np.tile([False, True, True, True], 2)
    model = model_of(Z, y[:, None], np.arange(2000) % 5, own, bent, 2, label=label, domains=False)
    fit = Remaining(model, 0, 1.0)
    fit.refit(np.arange(8), np.arange(2))
    H = np.linalg.inv(fit.omega)

    def loss(left_out):
        use = np.setdiff1d(np.arange(8), left_out)
        c = np.zeros(8)
        c[use] = np.linalg.solve(H[np.ix_(use, use)], (H @ fit.b)[use])
        return (c - fit.b) @ H @ (c - fit.b) / 2

    line, curve = fit.gains(np.arange(2))
    assert curve == pytest.approx(loss([4, 5, 6, 7]) - 4)
    # Without its bends the line costs one column, and loses what little they gain.
    assert loss([1, 2, 3]) < 3
    assert line == pytest.approx(loss([0, 1, 2, 3]) - loss([1, 2, 3]) - 1)


def test_near_copy_leaves_the_column_its_place():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((2000, 8))
    y = X[:, 0] + 0.3 * X[:, 1] + 0.2 * X[:, 2] + rng.standard_normal(2000)
    copy = X[:, 0] + 0.3 * rng.standard_normal(2000)
    assert order_of(X, y)[:3] == [0, 1, 2]
    for place in (0, 8):
        order = order_of(np.insert(X, place, copy, 1), y)
        first = int(place == 0)
        assert order[:3] == [first, first + 1, first + 2]


@pytest.mark.parametrize("label", [True, False])
def test_effects_that_differ_in_size_alone_are_no_risk(label):
    """Until the effect of another feature has either sign: then nothing that moves is trusted."""
    rng = np.random.RandomState(0)
    domain = np.arange(2400) % 4
    X = rng.standard_normal((2400, 3))
    sizes, either = np.array([0.4, 0.8, 1.6, 3.2])[domain], np.array([2, -1, 2, -1])[domain]

    def order(b):
        index = sizes * X[:, 0] + 0.6 * X[:, 1] + b * either * X[:, 2]
        y = rng.binomial(1, expit(index)) if label else index + rng.standard_normal(2400)
        return order_of(X, y, domain, label=label)

    assert order(0.0) == [0, 1, 2]
    assert order(1.0)[0] == 1


def test_chance_gives_no_opposite_signs():
    """Of 1000 draws without an effect, about 1 % or fewer: 10, plus four standard deviations."""
    rng = np.random.RandomState(0)
    I = np.full((5, 40), 50.0)
    draws = [rng.standard_normal((5, 40)) * np.sqrt(I) for _ in range(1000)]
    assert sum(signs_differ(U, I) for U in draws) <= 10 + 4 * np.sqrt(10)


def test_sign_that_flips_is_a_risk():
    """Effects 1.5, 1.5 and −0.3 have a large mean, and nobody knows the next domain's."""
    rng = np.random.RandomState(0)
    domain = np.arange(3000) % 3
    X = rng.standard_normal((3000, 4))
    flips = np.array([1.5, 1.5, -0.3])[domain]
    y = flips * X[:, 0] + 0.4 * X[:, 1] - 0.3 * X[:, 2] + rng.standard_normal(3000)
    assert order_of(X, y, domain, aversion=0.0)[:3] == [0, 1, 2]
    assert order_of(X, y, domain, aversion=2.5)[:2] == [1, 2]
    assert order_of(X, y, aversion=2.5)[0] == 0  # without domains there is no such risk


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
    assert order_of(*one_row, label=label)[:4] == order[:4]
    if label:
        more = rng.standard_normal((60, 6)) * 2
        one_class = np.vstack([X, more]), np.r_[y, np.ones(60)], np.r_[domain, np.full(60, 3)]
        assert order_of(*one_class, label=True)[:4] == order[:4]


def test_base_rates_are_not_instability(monkeypatch):
    """One effect on the log-odds at 12, 50 and 88 % of ones: risk takes off nothing.

    As numbers, the slopes are as different as the variances of the label.
    """
    monkeypatch.setattr(elimination, "signs_differ", lambda U, I: True)
    rng = np.random.RandomState(0)
    domain = np.repeat([0, 1, 2], 1500)
    X = rng.standard_normal((4500, 3))
    y = rng.binomial(1, expit(0.7 * X[:, 0] + 0.4 * X[:, 1] + 2.2 * (domain - 1.0)))
    for label in (True, False):
        careless, careful = (
            order_of(X, y, domain, label=label, aversion=a, scores=True) for a in (0.0, 2.5)
        )
        assert np.allclose(careless, careful) == label


def test_rare_label_is_ranked_by_likelihood():
    """A rare, strong mark explains more variance of a rare label than a common cause does.

    In log-likelihood, and in the area under the ROC curve, the common cause is worth more.
    """
    rng = np.random.RandomState(0)
    mark, common = rng.binomial(1, [0.008, 0.5], (40_000, 2)).T
    chance = np.where(mark == 1, 0.27, np.where(common == 1, 0.041, 0.009))
    y = rng.binomial(1, chance)
    X = np.column_stack([mark, common]).astype(float)
    assert order_of(X, y, label=False)[0] == 0
    assert order_of(X, y, label=True)[0] == 1


@pytest.mark.parametrize("label", [True, False])
def test_more_columns_than_compete(monkeypatch, label):
    """Those that lead stay; the rest follow by their own gains, with scores of at most 0."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((1000, 30))
    X[:, 7] = X[:, 3] + 0.3 * rng.standard_normal(1000)
    index = X[:, :6] @ [1.0, 0.9, 0.8, 0.7, 0.6, 0.5]
    y = (index + rng.standard_normal(1000) > 0) * 1.0 if label else index
    whole = order_of(X, y, label=label)
    assert sorted(whole[:6]) == [0, 1, 2, 3, 4, 5]
    monkeypatch.setattr(elimination, "MOST", 10)
    order = order_of(X, y, label=label)
    assert sorted(order[:6]) == [0, 1, 2, 3, 4, 5]
    assert sorted(order) == list(range(30))
    own = np.arange(30)
    options = {"label": label, "domains": False}
    alone = model_of(X, y[:, None], own[:20].repeat(50), own, own < 0, 30, **options).gains_alone()
    assert all(alone[a] >= alone[b] for a, b in pairwise(order[10:]))
    monkeypatch.setattr(elimination, "MOST", 3)
    scores = order_of(X, y, label=label, scores=True)
    assert (scores[order_of(X, y, label=label)[3:]] <= 0).all()
    monkeypatch.setattr(elimination, "MOST", 0)
    assert order_of(X, y, label=label) == np.argsort(-alone, kind="stable").tolist()


def test_columns_that_repeat_or_do_not_vary_within_domains():
    """A block keeps what is new in its columns; a feature without any comes last."""
    rng = np.random.RandomState(0)
    domain = np.arange(200) % 2
    x, z = rng.standard_normal((2, 200))
    Z = np.column_stack([domain, z, x, 2 * x + domain])
    y = x + rng.standard_normal(200)
    own, bent = np.array([0, 1, 2, 2]), np.array([0, 0, 0, 1], bool)
    one = np.ones(200)
    given = products(Z, y[:, None], domain, own, bent, 3, domains=True, weight=one)
    assert given.own.tolist() == [1, 2]
    assert given.bent.tolist() == [False, False]
    order, scores, _ = eliminate(given)
    assert order.tolist() == [2, 1, 0]
    assert scores[0] == 0


@pytest.mark.parametrize("label", [True, False])
def test_without_a_part(label):
    """The same as a model of the other rows."""
    table = small_table("label" if label else "number", 3, 0)
    given = model_of(*table, label=label, domains=True)
    other = given.without(1)
    assert other.n_rows == 160
    assert other.n_domains == 2
    columns = np.arange(len(given.own))
    rows = table[2] != 1
    if label:
        np.testing.assert_array_equal(other.Z, given.Z[rows])
    else:
        np.testing.assert_array_equal(other.S, given.S[[0, 2]])
    assert not np.allclose(other.fit(0, columns).beta[:3], given.fit(0, columns).beta[:3])


@pytest.mark.parametrize("label", [True, False])
def test_integer_weights_equal_repeated_rows(label):
    table = small_table("label" if label else "number", 3, 0)
    times = np.random.RandomState(0).randint(1, 4, 240)
    rows = np.repeat(np.arange(240), times)
    more = [a[rows] for a in table[:3]] + list(table[3:])
    options = {"label": label, "domains": True}
    weighted = eliminate(model_of(*table, **options, weight=times.astype(float)))
    repeated = eliminate(model_of(*more, **options))
    assert weighted.order.tolist() == repeated.order.tolist()
    np.testing.assert_allclose(weighted.scores, repeated.scores, rtol=1e-5, atol=1e-8)
