"""Sparse X stays sparse in the ridge sweep, and gives what the dense sweep gives."""

import resource
import sys

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from ddml_fs import CausalFeatureSelector
from ddml_fs.engine.product_rows import SparseRows
from ddml_fs.engine.ridge import Gram, logistic_fit, standardised

SMALL = 0.001  # memory budget that a dense table of the rows below exceeds


def ridge(n_features=10, **options):
    options = {"nuisance": "ridge", "dose": "linear"} | options
    return CausalFeatureSelector(n_features, random_state=0, **options)


@pytest.fixture(scope="module")
def rows():
    """Sparse counts with a copy, a near copy and a constant, and three domains."""
    rng = np.random.RandomState(0)
    X = sparse.random(2500, 60, 0.1, random_state=0).toarray()
    X[:, 1] = 3 * X[:, 0]
    X[:, 7] = 1.0
    X[:, 8] = X[:, 9] + 0.001 * (X[:, 3] > 0) * rng.standard_normal(len(X))
    index = 2 * X[:, :10].sum(1)
    return X, index - index.mean(), rng.randint(0, 3, len(X))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("number", {}),
        ("number", {"covariates": "all", "ranking": "tstat"}),
        ("label", {"scale": "mean"}),
        ("label", {"scale": "log_odds"}),
        ("classes", {"scale": "log_odds", "covariates": "all"}),
    ],
)
@pytest.mark.parametrize("several", [False, True])
def test_sparse_equals_dense(rows, kind, options, several):
    X, index, domain = rows
    noise = np.random.RandomState(1).logistic(size=len(X))
    y = {
        "number": index + noise,
        "label": index + noise > 0,
        "classes": np.digitize(index + noise, [-0.5, 0.5]),
    }[kind]
    domain = domain if several else None
    dense = ridge(**options).fit(X, y, domain)
    kept = ridge(memory_budget=SMALL, **options).fit(sparse.csc_array(X), y, domain)
    a, b = kept.effects_, dense.effects_
    if kind == "classes":
        assert (a.pop("class") == b.pop("class")).sum() >= len(a) - 1  # NaN for the constant
    if options.get("scale") == "log_odds":  # gains of a sparse table are those of least squares
        assert set(np.argsort(kept.ranking_)[:4]) == set(np.argsort(dense.ranking_)[:4])
        a, b = (t.drop(columns=["score", "rank", "selected"]) for t in (a, b))
    else:
        np.testing.assert_array_equal(kept.ranking_, dense.ranking_)
    np.testing.assert_allclose(a.astype(float), b.astype(float), atol=2e-6)
    assert kept.scale_ == dense.scale_
    assert sparse.issparse(kept.transform(sparse.csr_matrix(X)))
    with pytest.raises(ValueError, match="joint=True needs all rows"):
        kept.conf_int(joint=True)


def test_small_sparse_tables_have_joint_bands(rows):
    X, index, _ = rows
    assert len(ridge().fit(sparse.csr_matrix(X), index).conf_int(joint=True)) == 60


def test_targets_are_left_out(rows):
    X, index, domain = rows
    plain = ridge(memory_budget=SMALL).fit(sparse.csr_matrix(X), index, domain)
    both = sparse.vstack([sparse.csr_matrix(X), sparse.csr_matrix(7 * X[:100])])
    more = ridge(memory_budget=SMALL).fit(
        both, np.r_[index, index[:100]], np.r_[domain, np.full(100, -1)]
    )
    np.testing.assert_array_equal(more.scores_, plain.scores_)


def test_sparse_rows_are_standardised_rows():
    rng = np.random.RandomState(0)
    X = sparse.random(300, 8, 0.3, random_state=0, format="csr")
    y = rng.binomial(1, expit(X.toarray().sum(1))).astype(float)
    train = np.arange(300)
    dense = standardised(X.toarray(), train, train)
    inverse = 1 / dense.sd
    G = dense.train.T @ dense.train / 300
    rows = SparseRows(X, G, X.toarray().mean(0), inverse)
    w = rng.uniform(size=300)
    shift = rng.standard_normal(8)
    moved = rows - shift
    np.testing.assert_allclose(moved @ shift, (dense.train - shift) @ shift, atol=1e-10)
    np.testing.assert_allclose(w @ moved, w @ (dense.train - shift), atol=1e-10)
    ours, theirs = Gram(moved, 0.1, w), Gram(dense.train - shift, 0.1, w)
    np.testing.assert_allclose(ours.coefficients(y), theirs.coefficients(y), atol=1e-10)
    part = rows[:, np.array([1, 4, 5])]
    np.testing.assert_allclose(part @ np.ones(3), dense.train[:, [1, 4, 5]].sum(1), atol=1e-10)
    intercept, beta = logistic_fit(rows, y, 0.05)
    model = LogisticRegression(C=1 / (0.05 * 300), tol=1e-10, max_iter=1000).fit(dense.train, y)
    np.testing.assert_allclose(
        np.r_[intercept, beta], np.r_[model.intercept_, model.coef_[0]], atol=1e-5
    )


def test_a_screen_as_wide_as_the_table_changes_nothing(rows):
    X, index, domain = rows
    dense = ridge().fit(X, index, domain)
    kept = ridge(screen=60).fit(sparse.csr_matrix(X), index, domain)
    pair = (selector.effects_.astype(float) for selector in (kept, dense))
    np.testing.assert_allclose(*pair, rtol=1e-5, atol=2e-6)


def test_screened_features_follow_untested(rows):
    X, index, domain = rows
    y = index + np.random.RandomState(1).standard_normal(len(X))
    # Without the columns that are screened out, the others give what they give alone.
    kept = ridge(10, screen=20).fit(sparse.csr_matrix(X), y, domain)
    table = kept.effects_
    swept = (table["df"] > 0).to_numpy()
    assert swept.sum() == 20
    alone = ridge(10).fit(X[:, swept], y, domain).effects_
    names = ["effect", "stderr", "pvalue", "tau", "z"]
    np.testing.assert_allclose(table.loc[swept, names], alone[names], atol=2e-6)
    distinct = (alone["rank"] < 20).to_numpy()  # a copy comes after all distinct columns
    assert distinct.sum() == 19
    ranks = table.loc[swept, "rank"].to_numpy()
    np.testing.assert_array_equal(ranks[distinct], alone["rank"][distinct])
    assert (table.loc[~swept, "rank"] > 19).all()
    assert (table.loc[~swept, ["pvalue", "qvalue"]] == 1).all(axis=None)
    # Columns that were screened out have the slope of y on them alone, and follow by their z.
    out = np.flatnonzero(~swept & (np.arange(60) != 7))
    for d in range(3):
        x, e = X[domain == d][:, out], y[domain == d] - y[domain == d].mean()
        x = x - x.mean(0)
        slope = (x * e[:, None]).sum(0) / (x**2).sum(0)
        np.testing.assert_allclose(table[f"effect[{d}]"].iloc[out], slope, atol=1e-9)
    centred, rest = X.copy(), y.copy()
    for d in range(3):
        centred[domain == d] -= centred[domain == d].mean(0)
        rest[domain == d] -= rest[domain == d].mean()
    score = np.abs(rest @ centred[:, out]) / np.sqrt((centred[:, out] ** 2).sum(0))
    np.testing.assert_array_equal(np.argsort(table["rank"].iloc[out]), np.argsort(-score))


def test_products_beyond_the_budget_ask_for_a_screen():
    X = sparse.random(1000, 3000, 0.01, random_state=0, format="csr")
    y = np.random.RandomState(0).standard_normal(1000)
    with pytest.raises(ValueError, match="set screen to at most"):
        ridge(memory_budget=0.02).fit(X, y)
    with pytest.raises(ValueError, match="screen must be an integer"):
        ridge(screen=0).fit(X, y)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured as Linux reports it")
@pytest.mark.parametrize(("scale", "screen"), [("mean", 200), ("log_odds", 20)])
def test_a_matrix_that_could_not_be_dense(scale, screen):
    """200 000 × 20 000 at 0.1 %: 32 GB if it were dense."""
    rng = np.random.RandomState(0)
    N, D = 200_000, 20_000
    at = rng.randint(0, N, N * D // 1000), rng.randint(0, D, N * D // 1000)
    X = sparse.csr_matrix((np.ones(len(at[0])), at), shape=(N, D))
    index = X[:, :15] @ np.linspace(2, 4, 15)
    y = rng.binomial(1, expit(index - 0.1))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    selector = ridge(15, scale=scale, screen=screen).fit(X, y)
    assert selector.get_support()[:15].all()
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e6 < 1.5  # GB
