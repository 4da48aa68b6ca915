"""Wide tables: the same numbers as for narrow ones, in little memory."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from ddml_fs import CausalFeatureSelector, chunks
from ddml_fs.engine import wide_ridge, wide_rows
from ddml_fs.engine.devices import limit_threads
from ddml_fs.engine.plan import make_plan
from ddml_fs.engine.ridge import ridge_fits
from ddml_fs.engine.wide_ridge import wide_ridge_fits
from ddml_fs.engine.wide_rows import Standard, inverse_of, sparse_of
from ddml_fs.near_copies import near_copies, near_of
from ddml_fs.nuisances import closed_form


def plan_of(n, D, label, weighted):
    """Blocks, columns that are no covariates, a constant one, and a treatment beside X."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((n, D))
    X[:, 5] = X[:, 4] + 0.1 * X[:, 5]
    X[:, 7], X[:, 8] = X[:, 8] > 0, 3.0
    X[:, 11] += 100
    block, covariates = np.arange(D), np.ones(D, bool)
    block[5], block[12], covariates[[5, 20, 21]] = 4, 11, False
    y = X[:, :3].sum(1) + rng.standard_normal(n)
    own = np.r_[np.arange(D), -1]
    return make_plan(
        X,
        ((y > 0).astype(float) if label else y)[:, None],
        np.random.RandomState(0),
        treatments=np.column_stack([X, rng.standard_normal(n)]),
        own=own,
        binary_T=np.zeros(D + 1, bool),
        label=label,
        covariates=covariates,
        block=block,
        n_folds=3,
        weight=rng.rand(n) + 0.5 if weighted else None,
    )


@pytest.mark.parametrize(("n", "D"), [(200, 40), (90, 120)])
@pytest.mark.parametrize(("label", "weighted"), [(False, False), (True, True)])
@pytest.mark.parametrize("shrinkage", [0.05, 20.0])
def test_fits_equal_those_of_narrow_tables(n, D, label, weighted, shrinkage, monkeypatch):
    """In double precision for small penalties, in single precision for large ones; in chunks."""
    plan = plan_of(n, D, label, weighted)
    m, g = (np.full((D + 1, n), np.nan) for _ in range(2))
    monkeypatch.setattr(chunks, "CHUNK", 1e4)
    for k, _, at, m_k, g_k in wide_ridge_fits(plan, shrinkage):
        m[np.ix_(at, plan.folds[k].hold)], g[np.ix_(at, plan.folds[k].hold)] = m_k.T, g_k.T
    # Newton's steps end at 1e-6; other numbers have the digits of their precision.
    exact = 1e-10 if plan.penalty(shrinkage) < wide_ridge.SINGLE else 1e-5
    for k, _, _, m_k, g_k in ridge_fits(plan, shrinkage):
        hold = plan.folds[k].hold
        np.testing.assert_allclose(m[:, hold].T, m_k, atol=exact)
        np.testing.assert_allclose(g[:, hold].T, g_k, atol=1e-4 if label else exact)


def test_near_copies_in_chunks(monkeypatch):
    rng = np.random.RandomState(0)
    Z = rng.standard_normal((100, 30)).astype(np.float32)
    for j, i in ((4, 20), (9, 4), (25, 1)):
        Z[:, j] = Z[:, i] + 0.01 * rng.standard_normal(100)
    near = near_copies(Z, np.arange(30), Z.std(0))
    assert near[[20, 9, 25, 4, 3]].tolist() == [4, 4, 1, 4, 3]
    np.testing.assert_array_equal(near, near_of(np.corrcoef(Z.T)))
    monkeypatch.setattr(chunks, "CHUNK", 500)
    np.testing.assert_array_equal(near_copies(Z, np.arange(30), Z.std(0)), near)


def test_blocks_of_treatments():
    plan = plan_of(60, 30, label=False, weighted=False)
    fit = wide_ridge.WideFit(plan, 0, 1.0, plan.folds[0].hold)
    for f, block in enumerate(fit._blocks(np.arange(31))):
        assert fit.use[block].tolist() == plan.block_of(f).tolist()


@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_rows_times_slopes(offset, monkeypatch):
    """Means are subtracted last if they are small, and before the product if not."""
    monkeypatch.setattr(chunks, "CHUNK", 1e4)
    rng = np.random.RandomState(0)
    X = (rng.standard_normal((300, 50)) + offset).astype(np.float32)
    A = Standard.of(X, np.arange(200), np.ones(300), np.float32)
    for rows, columns in ((np.arange(300), np.arange(50)), (rng.permutation(300)[:70], [3, 8])):
        slopes = rng.standard_normal((len(columns), 4)).astype(np.float32)
        exact = (X[rows][:, columns] - A.mean[columns]) * A.inverse[columns] @ slopes
        found = A.times(rows, np.asarray(columns), slopes)
        np.testing.assert_allclose(found, exact, atol=1e-4 if offset == 0 else 1e-2)


def test_products_of_sparse_columns(monkeypatch):
    """Zeros are skipped, and the products are those of standardised columns."""
    rng = np.random.RandomState(0)
    X = (rng.random_sample((300, 50)) < 0.03) * rng.standard_normal((300, 50))
    rows, columns, weight = rng.permutation(300)[:200], np.arange(3, 48), rng.rand(200)
    monkeypatch.setattr(chunks, "CHUNK", 1e4)
    shift = rng.standard_normal(50)
    for threads in (1, 2):
        for part in (sparse_of(X), None):
            A = Standard.of(X, rows, np.ones(300), np.float64, part).shifted(shift)
            plain = A.part(rows, columns)
            with limit_threads(threads):
                found = A.products(rows, columns, weight)
            slow = (weight[:, None] * plain).T @ plain
            np.testing.assert_allclose(np.triu(found), np.triu(slow), atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_table_equals_the_dense_one(weighted, monkeypatch):
    """Scales, products with slopes and sums; a column that never varies, and one of zeros."""
    monkeypatch.setattr(chunks, "CHUNK", 1e4)
    rng = np.random.RandomState(0)
    X = (rng.random_sample((300, 50)) < 0.01) * rng.poisson(3, (300, 50)).astype(np.float32)
    X[:, 4], X[:, 5], X[:, 6] = 0.1, 0.0, rng.rand(300) > 0.2
    rows, weight = rng.permutation(300)[:200], rng.rand(300) if weighted else np.ones(300)
    table = sparse_of(X)
    np.testing.assert_array_equal(table.toarray(), X)
    dense, thin = (Standard.of(X, rows, weight, np.float32, part) for part in (None, table))
    np.testing.assert_allclose(thin.mean, dense.mean, rtol=1e-12)
    np.testing.assert_allclose(thin.inverse, dense.inverse, rtol=1e-12)
    assert thin.inverse[4] == thin.inverse[5] == 0
    slopes, values = rng.standard_normal((50, 7)).astype(np.float32), rng.standard_normal(300)
    for columns in (np.arange(50), np.array([3, 6, 40])):
        found, slow = (A.times(rows, columns, slopes[columns]) for A in (thin, dense))
        np.testing.assert_allclose(found, slow, atol=1e-4)
    np.testing.assert_allclose(thin.cross(values), dense.cross(values), atol=1e-3)
    np.testing.assert_allclose(thin.dot(values[:50]), dense.dot(values[:50]), atol=1e-3)
    monkeypatch.setattr(wide_rows, "SPARSE", 0.0)
    assert sparse_of(X) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inverse_in_halves(dtype, monkeypatch):
    """What is below the diagonal is not read."""
    monkeypatch.setattr(wide_rows, "SMALL", 20)
    A = np.random.RandomState(0).standard_normal((200, 90)).astype(dtype)
    G = A.T @ A / 200 + np.eye(90, dtype=dtype)
    upper = np.where(np.tri(90, k=-1, dtype=bool), np.nan, G)
    np.testing.assert_allclose(inverse_of(upper) @ G, np.eye(90), atol=1e-5)
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        inverse_of(-G)


@pytest.mark.parametrize("nuisance", ["ridge", "shrunken"])
def test_chunks_do_not_change_a_sweep(nuisance, monkeypatch):
    """Two domains, near copies and a constant: read, fitted, collected and ranked in chunks."""
    rng = np.random.RandomState(0)
    X = (rng.random_sample((240, 60)) < 0.3) * rng.poisson(2, (240, 60)).astype(float)
    X[:, 7], X[:, 9], X[:, 30] = X[:, 8] + 1e-3 * rng.standard_normal(240), 4.0, -2 * X[:, 31]
    y = rng.binomial(1, expit(X[:, :3].sum(1) - X[:, 3:6].sum(1)))
    domain = np.arange(240) % 2

    def table(X, n_jobs=1):
        selector = CausalFeatureSelector(5, nuisance=nuisance, n_jobs=n_jobs, random_state=0)
        return selector.fit(X, y, sample_domain=domain).effects_.drop(columns="selected")

    with pytest.warns(match="repeats"):
        whole = table(X)
    monkeypatch.setattr(chunks, "CHUNK", 2e4)
    monkeypatch.setattr(closed_form, "WIDE", 10)
    with pytest.warns(match="repeats"):
        parts = table(sparse.csr_matrix(X), n_jobs=2)
    numbers = whole.select_dtypes("number").columns
    np.testing.assert_allclose(parts[numbers], whole[numbers], rtol=1e-3, atol=1e-4)
