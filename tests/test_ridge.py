"""Ridge nuisances in closed form, against scikit-learn's models fitted one by one."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, Ridge

from ddml_fs.engine.folds import make_folds
from ddml_fs.engine.plan import make_plan, penalty_for
from ddml_fs.engine.ridge import Gram, logistic_fit, standardised
from ddml_fs.nuisances import Ridge as RidgeNuisance


@pytest.fixture(scope="module")
def table():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((300, 8)) @ rng.standard_normal((8, 8)) + 3
    X[:, 2] = X[:, 2] > 3
    index = X @ rng.standard_normal(8) / 4
    label = rng.binomial(1, expit(index - index.mean())).astype(float)
    return X, index + rng.standard_normal(300), label


def sweep_plan(X, y, label=False, **options):
    """All columns of X as treatments, three folds."""
    options = {"binary_T": [False] * X.shape[1]} | options
    rng = np.random.RandomState(0)
    return make_plan(X, y[:, None], rng, label=label, n_folds=3, **options)


def predictions(plan, shrinkage, k=0):
    """Held-out m and g (n_hold, F) of one fold."""
    hat = RidgeNuisance(shrinkage=shrinkage).predict(plan).of(f=slice(None))
    return hat.m[plan.folds[k].hold], hat.g[plan.folds[k].hold]


def one_by_one(X, y, fold, j, penalty, model):
    """Fit a scikit-learn model on all columns but j, scaled as the fold is."""
    rows = standardised(X, fold.train, fold.hold)
    train, hold = (np.delete(a, j, 1) for a in (rows.train, rows.new))
    return model.fit(train, y[fold.train]), hold


def test_linear_nuisances_equal_ridge_of_scikit_learn(table):
    X, y, _ = table
    plan = sweep_plan(X, y)
    fold = plan.folds[0]
    n = len(fold.train)
    penalty = plan.penalty(10.0)
    assert penalty == penalty_for(10.0, 8, n)
    m, g = predictions(plan, 10.0)
    for j in range(8):
        for target, ours in ((X[:, j], m[:, j]), (y, g[:, j])):
            model, hold = one_by_one(X, target, fold, j, penalty, Ridge(alpha=n * penalty))
            np.testing.assert_allclose(ours, model.predict(hold), atol=1e-9)


def test_columns_that_are_no_covariates(table):
    """As treatments beside the table: an array, or a column that is not conditioned on."""
    X, y, _ = table
    options = {"treatments": X[:, [7]], "binary_T": [False]}
    beside = predictions(sweep_plan(X[:, :7], y, **options), 1.0, k=1)
    plan = sweep_plan(X, y, covariates=np.arange(8) < 7)
    inside, alone = (predictions(p, 1.0, k=1) for p in (plan, sweep_plan(X[:, :7], y)))
    for i in (0, 1):
        np.testing.assert_allclose(inside[i][:, [7]], beside[i], atol=1e-10)
        np.testing.assert_allclose(inside[i][:, :7], alone[i], atol=1e-10)
    fold = plan.folds[1]
    n = len(fold.train)
    rows = standardised(X, fold.train, fold.hold)
    model = Ridge(alpha=n * penalty_for(1.0, 7, n)).fit(rows.train[:, :7], y[fold.train])
    np.testing.assert_allclose(beside[1][:, 0], model.predict(rows.new[:, :7]), atol=1e-9)


def test_logistic_fit_equals_scikit_learn(table):
    X, _, label = table
    fold = make_folds(300, 3, np.random.RandomState(0))[0]
    rows, y = standardised(X, fold.train, fold.hold), label[fold.train]
    intercept, beta = logistic_fit(rows.train, y, 0.05)
    model = LogisticRegression(C=1 / (0.05 * len(y)), tol=1e-10, max_iter=1000)
    model.fit(rows.train, y)
    np.testing.assert_allclose(beta, model.coef_[0], atol=1e-5)
    assert intercept == pytest.approx(model.intercept_[0], abs=1e-5)


def test_logistic_outcome_without_a_column_is_close_to_a_refit(table):
    """One Newton step stands for the refit: far nearer to it than the fit on all columns is."""
    X, _, label = table
    plan = sweep_plan(X, label, label=True)
    fold, penalty = plan.folds[0], plan.penalty(10.0)
    n = len(fold.train)
    rows = standardised(X, fold.train, fold.hold)
    full = LogisticRegression(C=1 / (penalty * n), tol=1e-10).fit(rows.train, label[fold.train])
    p_full = full.predict_proba(rows.new)[:, 1]
    error, distance = [], []
    for j, p in enumerate(predictions(plan, 10.0)[1].T):
        model = LogisticRegression(C=1 / (penalty * n), tol=1e-10)
        model, hold = one_by_one(X, label, fold, j, penalty, model)
        refit = model.predict_proba(hold)[:, 1]
        error.append(np.abs(p - refit).mean())
        distance.append(np.abs(p_full - refit).mean())
    assert max(error) < 0.02
    assert np.sum(error) < 0.25 * np.sum(distance)


def test_constant_columns_are_harmless(table):
    X, y, label = table
    X = np.column_stack([X, np.ones(len(X))])
    for outcome, binary in ((y, False), (label, True)):
        m, g = predictions(sweep_plan(X, outcome, label=binary), 1.0)
        assert np.isfinite(m).all()
        assert np.isfinite(g).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_more_columns_than_rows(weighted):
    """The form in the rows equals a plain inverse."""
    rng = np.random.RandomState(0)
    A, new, targets = rng.randn(20, 50), rng.randn(7, 50), rng.randn(20, 2)
    w = rng.uniform(0.1, 1, 20) if weighted else None
    gram = Gram(A, 0.3, w)
    assert gram.by_rows
    omega = np.linalg.inv((A.T * (1 if w is None else w)) @ A / 20 + 0.3 * np.eye(50))
    np.testing.assert_allclose(gram.coefficients(targets), omega @ A.T @ targets / 20, atol=1e-10)
    np.testing.assert_allclose(
        gram.left_out(new, np.arange(50)), new @ omega / np.diag(omega), atol=1e-10
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_rows", [20, 60])
def test_a_block_is_regressed_on_all_other_blocks(n_rows, weighted):
    """With more columns than rows and with fewer; columns of a block need not be neighbours."""
    rng = np.random.RandomState(0)
    A, new = rng.randn(n_rows, 30), rng.randn(7, 30)
    w = rng.uniform(0.1, 1, n_rows) if weighted else np.ones(n_rows)
    block = rng.randint(0, 12, 30) * 3  # numbers with gaps
    gram = Gram(A, 0.3, w if weighted else None)
    assert gram.by_rows == (n_rows < 30)
    left = gram.left_out(new, block)
    for b in np.unique(block):
        own, others = block == b, block != b
        cross = A[:, others].T * w / n_rows
        beta = np.linalg.solve(cross @ A[:, others] + 0.3 * np.eye(others.sum()), cross @ A[:, own])
        np.testing.assert_allclose(left[:, own], new[:, own] - new[:, others] @ beta, atol=1e-9)


@pytest.mark.parametrize("aside", [[], [2, 5, 7]])
def test_nuisances_of_blocks_equal_ridge_of_scikit_learn(table, aside):
    """Also of columns aside, which are no covariates, such as near copies of one that is."""
    X, y, _ = table
    block, covariates = np.array([0, 1, 0, 2, 3, 3, 3, 4]), ~np.isin(np.arange(8), aside)
    plan = sweep_plan(X, y, block=block, covariates=covariates)
    fold, penalty = plan.folds[0], plan.penalty(10.0)
    m, g = predictions(plan, 10.0)
    for j in range(8):
        left_out = np.flatnonzero((block == block[j]) | ~covariates)
        for target, ours in ((X[:, j], m[:, j]), (y, g[:, j])):
            model = Ridge(alpha=len(fold.train) * penalty)
            model, hold = one_by_one(X, target, fold, left_out, penalty, model)
            np.testing.assert_allclose(ours, model.predict(hold), atol=1e-9)


def test_logistic_fit_with_more_columns_than_rows():
    rng = np.random.RandomState(0)
    A, y = rng.randn(60, 90), rng.binomial(1, 0.5, 60)
    intercept, beta = logistic_fit(A, y, 0.05)
    model = LogisticRegression(C=1 / (60 * 0.05), tol=1e-10, max_iter=5000).fit(A, y)
    np.testing.assert_allclose(beta, model.coef_[0], atol=1e-5)
    assert intercept == pytest.approx(model.intercept_[0], abs=1e-5)


def test_column_that_training_lacks(table):
    """Its prediction is the training mean, not the held-out value itself."""
    X, y, _ = table
    fold = make_folds(300, 3, np.random.RandomState(0))[0]
    rare = np.zeros(300)
    rare[fold.hold[:2]] = 1
    m, _ = predictions(sweep_plan(np.column_stack([X, rare]), y), 10.0)
    np.testing.assert_array_equal(m[:, 8], 0)
