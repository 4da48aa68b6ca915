"""Sparse regressions on curves and products of columns, against slow twins."""

import numpy as np
import pytest
from scipy.stats import chi2
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from ddml_fs import DDML
from ddml_fs.engine import terms
from ddml_fs.engine.terms import (
    MOST_TERMS,
    PATIENCE,
    Dictionary,
    SparseTerms,
    forward_selection,
    strongest_columns,
)
from ddml_fs.scores import PartiallyLinear


def slow_forward_selection(F, y, base, n_terms, factors=(1.0,), n_single=0):
    """Refit by least squares with every term that is not in the model, in every step."""

    def rss(terms):
        Z = np.column_stack([base, *terms])
        return ((y - LinearRegression(fit_intercept=False).fit(Z, y).predict(Z)) ** 2).sum()

    n, chosen, terms, size, price = len(y), [], [], {}, 0.0
    known = {(-1 - i, j): f * F[:, j] for i, f in enumerate(factors) for j in range(F.shape[1])}
    criteria, n_candidates = [n * np.log(rss([]))], n_terms * len(factors)
    for k in range(MOST_TERMS):
        best = min(known.keys() - set(chosen), key=lambda key: rss([*terms, known[key]]))
        chosen.append(best)
        terms.append(known[best])
        price += np.log(n) + np.log(n_candidates)
        criteria.append(n * np.log(rss(terms)) + price)
        if k + 1 >= np.argmin(criteria) + PATIENCE:
            break
        size[k] = size.get(best[0], 0) + (1 if best[1] < n_single else 2)
        if n_single and size[k] < 3:
            known |= {(k, j): terms[-1] * F[:, j] for j in range(n_single)}
            n_candidates += n_single
    return chosen[: int(np.argmin(criteria))]


@pytest.mark.parametrize("seed", range(4))
def test_forward_selection_is_that_of_refits(seed):
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((80, 25)) @ (np.eye(25) + 0.2 * rng.standard_normal((25, 25)))
    base = np.column_stack([np.ones(80), rng.standard_normal(80)])
    y = F[:, :4] @ [1.0, -0.8, 0.5, 0.3] + base[:, 1] + rng.standard_normal(80)
    found = forward_selection(F, y, base, 25)
    assert found == slow_forward_selection(F, y, base, 25)
    assert 2 <= len(found) <= 8


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_are_terms_of_their_own(dtype):
    """With given factors, such as the treatment, and with terms that were chosen before."""
    rng = np.random.default_rng(5)
    F, t, root = rng.standard_normal((200, 12)), rng.standard_normal(200), rng.uniform(0.5, 2, 200)
    y = (
        2 * F[:, 3]
        - F[:, 5] * t
        + F[:, 3] * F[:, 8]
        + F[:, 11] * F[:, 1]
        + rng.standard_normal(200)
    )
    F[:, 9] = F[:, 11] * F[:, 1]  # after the first nine: a product of two columns
    factors = [root, root * t]
    known = y * root, np.column_stack(factors), 12
    found = forward_selection(F.astype(dtype), *known, factors=factors, n_single=9)
    assert found == slow_forward_selection(F, *known, factors=factors, n_single=9)
    assert {(-1, 3), (-2, 5), (-1, 9), (found.index((-1, 3)), 8)} <= set(found)


def test_products_have_three_columns_at_most():
    rng = np.random.default_rng(6)
    F = rng.choice([1.0, 2.0], (400, 4))
    y = np.prod(F, 1) + 0.1 * rng.standard_normal(400)
    found = forward_selection(F, y, np.ones((400, 1)), 4, n_single=4)
    size = []
    for factor, _ in found:
        size.append(1 + (size[factor] if factor >= 0 else 0))
    assert max(size) == 3


def test_chosen_terms_are_columns_of_all_terms():
    A = np.random.default_rng(6).uniform(-2, 2, (50, 7))
    dictionary = Dictionary(A, A[:, 0])
    everything = dictionary(A)
    some = np.random.default_rng(7).permutation(dictionary.n_used)
    np.testing.assert_array_equal(dictionary(A, some), everything[:, some])
    x, knots = A[:, 2], np.quantile(A[:, 2], np.arange(1, 8) / 8)
    own = everything[:, 2::7][:, :16]
    np.testing.assert_allclose(own[:, :2], np.column_stack([x, x**2]))
    np.testing.assert_allclose(own[:, 2:9], np.maximum(x[:, None] - knots, 0))
    np.testing.assert_allclose(own[:, 9:], x[:, None] > knots)
    np.testing.assert_allclose(everything[:, -1], A[:, 5] * A[:, 6])


def test_noise_is_rarely_chosen():
    """A term of noise is chosen with at most the chance that one of P squared z exceeds its price.

    Bonferroni's bound is 0.35 here, plus two standard errors of 40 draws.
    """
    rng = np.random.default_rng(0)
    found, errors = [], []
    for _ in range(40):
        A, y = rng.standard_normal((200, 20)), rng.standard_normal(200)
        model = SparseTerms(A, y, binary=False)
        found.append(len(model.chosen) > 0)
        errors.append(np.square(model.predict(rng.standard_normal((200, 20)))).mean())
    P = model.dictionary.n_terms
    bound = P * chi2.sf(np.log(200) + np.log(P), 1)
    assert np.mean(found) < bound + 2 * np.sqrt(bound * (1 - bound) / 40)
    assert np.mean(errors) < 0.1  # of a variance of 1


def test_copies_and_constants_do_no_harm():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(150)
    F = np.column_stack([x, 2 * x, np.zeros(150), x + 1e-7 * rng.standard_normal(150)])
    base = np.ones((150, 1))
    assert len(forward_selection(F, x + 0.1 * rng.standard_normal(150), base, 4)) == 1
    assert forward_selection(F, np.zeros(150), base, 4) == []
    assert forward_selection(F[:, :0], x, base, 1) == []
    binary = (rng.random((150, 3)) < 0.2).astype(float)
    values = SparseTerms(binary, binary[:, 0] + 0.1 * x, binary=False).predict(binary)
    assert np.abs(values - binary[:, 0]).mean() < 0.05


def test_models_are_scikit_learns_on_the_chosen_terms():
    rng = np.random.default_rng(1)
    A, B = rng.standard_normal((2, 300, 6))
    index = 1.5 * A[:, 0] * A[:, 1] + np.maximum(A[:, 2], 0)
    y, label = index + rng.standard_normal(300), (index + rng.logistic(size=300) > 0).astype(float)
    for target, binary in ((y, False), (label, True)):
        model = SparseTerms(A, target, binary)
        assert len(model.chosen) > 0
        F, G = ((model.terms(Z) - model.centre) / model.scale for Z in (A, B))
        if binary:
            twin = LogisticRegression(C=1.0, tol=1e-10).fit(F, target).predict_proba(G)[:, 1]
        else:
            twin = Ridge(alpha=1.0).fit(F, target).predict(G)
        np.testing.assert_allclose(model.predict(B), twin, atol=1e-4)


def test_arms_share_terms_and_may_differ():
    rng = np.random.default_rng(2)
    A, B = rng.standard_normal((2, 400, 8))
    t = (rng.random(400) < 0.4).astype(float)

    def surface(X, t):
        return 2 * X[:, 0] * X[:, 1] + t * (1 + np.maximum(X[:, 2], 0))

    model = SparseTerms(A, surface(A, t) + 0.5 * rng.standard_normal(400), False, t)
    for a in (0, 1):
        left = model.predict(B, a) - surface(B, a)
        assert left.std() < 0.25
    assert any(model.treated)
    assert not all(model.treated)


def test_many_columns_are_screened():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((500, 150))
    y = A[:, 100] * A[:, 120] + A[:, 7] + rng.standard_normal(500)
    used = strongest_columns(A, y, 60)
    assert {7, 100, 120} <= set(used)
    assert len(used) == 60
    dictionary = Dictionary(A, y)
    assert dictionary(A[:5]).shape == (5, 16 * 60 + 60 * 59 // 2)
    assert dictionary.n_terms == 16 * 150 + 150 * 149 // 2
    model = SparseTerms(A, y, False)
    assert np.corrcoef(model.predict(A), A[:, 100] * A[:, 120] + A[:, 7])[0, 1] > 0.9


def test_very_many_columns_are_screened_alone_first():
    rng = np.random.default_rng(4)
    A = rng.standard_normal((400, 700))
    y = A[:, 650] + A[:, 650] * A[:, 600] + A[:, 600] ** 2 + 0.5 * rng.standard_normal(400)
    assert {600, 650} <= set(strongest_columns(A, y, 60))
    few = np.delete(np.arange(700), np.arange(100, 400))  # no more than the limit: all pairs
    assert {300, 350} <= set(strongest_columns(A[:, few], y, 60))


def test_terms_are_chosen_by_some_rows_and_fitted_to_all(monkeypatch):
    rng = np.random.default_rng(8)
    A = rng.standard_normal((900, 5))
    y = A[:, 0] * A[:, 1] + np.maximum(A[:, 2], 0) + rng.standard_normal(900)
    monkeypatch.setattr(terms, "ENOUGH", 300)
    model = SparseTerms(A, y, False)
    some = np.linspace(0, 899, 300).astype(int)
    assert model.chosen == SparseTerms(A[some], y[some], False).chosen
    Z = (model.terms(A) - model.centre) / model.scale
    np.testing.assert_allclose(model.predict(A), Ridge(alpha=1.0).fit(Z, y).predict(Z), atol=1e-6)


def test_products_that_confound_are_found_with_300_rows():
    """In standard errors, from the estimate with the true nuisances: what nuisances add."""
    away = {"sparse": [], "smooth": []}
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((300, 20))
        m = X[:, 0] * X[:, 1] + (X[:, 2] > 0)
        f = 2 * X[:, 0] * X[:, 1] + 2 * (X[:, 2] > 0)
        t = m + rng.standard_normal(300)
        y = t + f + rng.standard_normal(300)
        truth = PartiallyLinear().of_residuals(t - m, y - m - f)
        for name, found in away.items():
            model = DDML(name, random_state=0).fit(X, y, treatment=t)
            found.append((model.effect_ - truth.theta) / truth.stderr)
    rms = {name: np.sqrt(np.mean(np.square(z))) for name, z in away.items()}
    assert rms["sparse"] < 1.2 < 4 < rms["smooth"]


def test_labels_are_predicted_as_probabilities():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 5))
    t = (rng.random(400) < 0.5).astype(float)
    y = (X[:, 0] + t + rng.logistic(size=400) > 0).astype(float)
    model = DDML("sparse", random_state=0).fit(X, y, treatment=t)
    assert model.nuisances_.to_numpy().min() > 0
    assert model.nuisances_.to_numpy().max() < 1
    logistic = DDML("sparse", score="logistic", random_state=0).fit(X, y, treatment=t)
    assert abs(logistic.effect_ - 1) < 3 * logistic.stderr_


def test_a_large_offset_of_the_target_changes_nothing():
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((2, 300, 6))
    y = A[:, 0] * A[:, 1] + np.abs(A[:, 2]) + 0.5 * rng.standard_normal(300)
    near, far = (SparseTerms(A, y + offset, binary=False) for offset in (0.0, 1e8))
    assert near.chosen
    assert far.chosen == near.chosen
    np.testing.assert_allclose(far.predict(B) - 1e8, near.predict(B), atol=1e-5)
