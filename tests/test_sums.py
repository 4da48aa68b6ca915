"""The ridge sweep from sums over rows equals the one from the rows."""

import warnings

import numpy as np
import pandas as pd
import pytest

from ddml_fs import CausalFeatureSelector
from ddml_fs.blocks import read_blocks
from ddml_fs.cautions import DDMLWarning
from ddml_fs.datasets import make_domain_data
from ddml_fs.engine import plan
from ddml_fs.engine.folds import RowCounter, fold_of_number, folds_from
from ddml_fs.engine.moments import CellProducts, gather
from ddml_fs.nuisances import Ridge


def selector(n_features=5, **options):
    options = {"nuisance": "ridge", "scale": "mean", "dose": "linear"} | options
    return CausalFeatureSelector(n_features, random_state=0, **options)


def table(kind, several=True):
    """Rows with a copy, a near copy, a constant, a large offset and a 0/1 column."""
    numbers = "binary" if kind == "binary" else "continuous"
    data = make_domain_data(3, 300, 5, 5, 8, kind=numbers, n_targets=0, random_state=0)
    X, y, rng = data.X.copy(), data.y, np.random.RandomState(0)
    near = X[:, 1] + 0.01 * rng.standard_normal(len(X))
    X = np.column_stack([X, 5 - 2 * X[:, 0], near, np.ones(len(X))])
    X[:, 3] += 1e6
    X[:, 4] = X[:, 4] > 0
    if kind == "classes":
        y = np.array(["low", "mid", "high"])[np.digitize(y, np.quantile(y, [0.3, 0.6]))]
    return X, y, data.sample_domain if several else np.zeros(len(X), int)


def close(a, b):
    """Two tables of effects are the same, up to single precision of the rows."""
    np.testing.assert_allclose(a.astype(float), b.astype(float), atol=1e-6)


def twin(monkeypatch, X, y, domain, label, **options):
    """The fit on rows, with the folds of the fit on blocks."""
    fold = RowCounter(5, 0).folds(domain, y if label else None)
    with monkeypatch.context() as patch:
        patch.setattr(plan, "make_folds", lambda *args, **given: folds_from(fold))
        return selector(**options).fit(X, y, domain)


@pytest.mark.parametrize("kind", ["continuous", "binary", "classes"])
@pytest.mark.parametrize("several", [True, False])
@pytest.mark.parametrize("options", [{}, {"covariates": "all", "ranking": "tstat"}])
def test_sums_give_what_rows_give(monkeypatch, kind, several, options):
    X, y, domain = table(kind, several)
    rows = twin(monkeypatch, X, y, domain, kind != "continuous", **options)
    sums = selector(**options).fit(read_blocks(X, y, domain, rows_per_block=170))
    a, b = sums.effects_, rows.effects_
    if kind == "classes":
        assert (a.pop("class") == b.pop("class")).sum() >= len(a) - 1  # NaN for the constant
    assert list(a.columns) == list(b.columns)
    close(a, b)
    np.testing.assert_array_equal(sums.ranking_, rows.ranking_)
    np.testing.assert_array_equal(sums.get_support(), rows.get_support())
    np.testing.assert_allclose(
        sums.domain_effects_.iloc[:, 2:], rows.domain_effects_.iloc[:, 2:], atol=1e-6
    )
    np.testing.assert_allclose(sums.conf_int(), rows.conf_int(), atol=1e-6)
    assert (sums.task_, sums.scale_) == (rows.task_, rows.scale_)
    assert len(sums.transform(X)[0]) == 5


def test_shrinkage_is_that_of_the_nuisance(monkeypatch):
    X, y, domain = table("continuous")
    options = {"nuisance": Ridge(shrinkage=200.0)}
    rows = twin(monkeypatch, X, y, domain, False, **options)
    sums = selector(**options).fit(read_blocks(X, y, domain))
    close(sums.effects_, rows.effects_)


def test_a_column_that_is_constant_in_training(monkeypatch):
    """All its ones are in the rows of one fold."""
    X, y, domain = table("continuous")
    fold = RowCounter(5, 0).folds(domain)
    X[:, 5] = 0.0
    X[np.flatnonzero(fold == 2)[:40], 5] = 1.0
    rows = twin(monkeypatch, X, y, domain, False)
    sums = selector().fit(read_blocks(X, y, domain))
    close(sums.effects_, rows.effects_)


def test_blocks_of_any_size_give_the_same_sums():
    X, y, domain = table("classes")

    def cells(*bounds):
        parts = [slice(*pair) for pair in zip((0, *bounds), (*bounds, len(X)), strict=True)]
        blocks = ((X[p], y[p], domain[p]) for p in parts)
        return gather(blocks, names=range(X.shape[1]), label=True, n_folds=5, seed=1).table()

    whole, split = cells(), cells(1, 2, 400, 555)
    for name in ("n", "mean", "domain", "fold"):
        np.testing.assert_allclose(getattr(split, name), getattr(whole, name), rtol=1e-12)
    size = np.sqrt(whole.S.diagonal(0, 1, 2).sum(0)) + 1e-9
    np.testing.assert_allclose(
        split.S / np.outer(size, size), whole.S / np.outer(size, size), atol=1e-13
    )
    direct = np.cov(X[(domain == 2) & (RowCounter(5, 1).folds(domain, y) == 3)].T, ddof=0)
    cell = np.flatnonzero((whole.domain == 1) & (whole.fold == 3))[0]
    np.testing.assert_allclose(whole.S[cell, :21, :21] / whole.n[cell], direct, atol=1e-6)


def test_sums_of_two_halves_add_up():
    X, y, domain = table("binary")
    half = len(X) // 2
    both, parts = CellProducts(list("abc"), True), []
    fold = np.arange(len(X)) % 5
    both.add(X[:, :3], y, domain, fold)
    for rows in (slice(half), slice(half, None)):
        parts.append(CellProducts(list("abc"), True))
        parts[-1].add(X[rows, :3], y[rows], domain[rows], fold[rows])
    np.testing.assert_allclose((parts[0] + parts[1]).table().S, both.table().S, atol=1e-8)
    with pytest.raises(ValueError, match="same columns"):
        both + CellProducts(list("abd"), True)


def test_folds_of_numbers():
    fold = fold_of_number(np.arange(5000), 5, seed=3)
    np.testing.assert_array_equal(fold[1234:1300], fold_of_number(np.arange(1234, 1300), 5, seed=3))
    assert (np.bincount(fold) == 1000).all()
    pairs = np.bincount(fold[:-1] * 5 + fold[1:], minlength=25)  # neighbours are nearly independent
    assert pairs.max() < 300
    assert (fold != fold_of_number(np.arange(5000), 5, seed=4)).mean() > 0.7


def test_folds_are_balanced_within_domains_and_classes():
    rng = np.random.RandomState(0)
    domain, y = rng.choice(["a", "b"], 503), rng.binomial(1, 0.1, 503)
    counter = RowCounter(5, 0)
    parts = [counter.folds(domain[s : s + 50], y[s : s + 50]) for s in range(0, 503, 50)]
    fold = np.concatenate(parts)
    np.testing.assert_array_equal(fold, RowCounter(5, 0).folds(domain, y))
    counts = pd.crosstab([domain, y], fold).to_numpy()
    assert (np.ptp(counts, axis=1) <= 1).all()
    alone = RowCounter(5, 0).folds(domain[domain == "b"], y[domain == "b"])
    np.testing.assert_array_equal(fold[domain == "b"], alone)


def test_what_needs_rows_says_so():
    X, y, domain = table("binary")
    blocks = read_blocks(X, y, domain)
    with pytest.raises(ValueError, match="joint=True needs all rows"):
        selector().fit(blocks).conf_int(joint=True)
    for options, words in (
        ({"n_features": "auto"}, "choose a number, a share or 'fdr'"),
        ({"nuisance": "additive"}, "must be 'ridge'"),
        ({"scale": "auto"}, "scale must be 'mean'"),
        ({"dose": "spline"}, "dose='spline' needs all rows"),
        ({"groups": np.arange(21)}, "groups needs all rows"),
        ({"downstream": object()}, "downstream needs all rows"),
        ({"checkpoint": "here"}, "checkpoint is for networks"),
        ({"screen": 3}, "screen has no use for rows in blocks"),
    ):
        with pytest.raises(ValueError, match=words):
            selector(**options).fit(blocks)
    with pytest.raises(ValueError, match="needs labels in y"):
        selector(scale="log_odds", task="regression").fit(blocks)
    fitted = selector("fdr").fit(blocks)
    assert 0 < fitted.get_support().sum() < 21
    assert selector(0.5).fit(blocks).get_support().sum() == round(0.5 * 21)


def test_a_fit_without_rows_is_shown_as_any_other():
    plt = pytest.importorskip("matplotlib.pyplot")
    X, y, domain = table("binary")
    fitted = selector().fit(read_blocks(X, y, domain))
    for kind in ("effects", "domains", "stability"):
        fitted.plot(kind)
    plt.close("all")
    assert "CausalFeatureSelector" in fitted._repr_html_()
    assert list(fitted.encoding_["read as"].unique()) == ["number"]
    np.testing.assert_array_equal(fitted.encode(X), X)
    fitted.fit(X, y, domain)  # a fit on rows forgets the one on sums
    assert fitted.has_joint_intervals


def test_labels_are_checked():
    X, y, domain = table("continuous")
    few = np.r_[np.ones(200), np.zeros(200), np.arange(len(y) - 400)]
    with pytest.raises(ValueError, match="looks like labels in its first block"):
        selector().fit(read_blocks(X, few, domain, rows_per_block=400))
    assert selector(task="regression").fit(read_blocks(X, few, domain)).task_ == "regression"
    with pytest.raises(ValueError, match="must be numeric"):
        selector(task="regression").fit(read_blocks(X, y.astype(str), domain))
    with pytest.raises(ValueError, match="rarest class"):
        selector().fit(read_blocks(X, (np.arange(len(y)) < 3).astype(int), domain))
    with pytest.raises(ValueError, match="at least 2 classes"):
        selector().fit(read_blocks(X, np.ones(len(y)), domain))
    with pytest.raises(ValueError, match="y must vary"):
        selector(task="regression").fit(read_blocks(X, np.ones(len(y)), domain))
    with pytest.raises(ValueError, match="at least 4 rows per fold"):
        selector().fit(read_blocks(X[:15], y[:15], domain[:15]))


def test_warnings_are_those_of_rows(monkeypatch):
    X, y, domain = table("binary")
    X[:, 6] = y
    domain = np.where(np.arange(len(y)) < 20, 9, domain)
    found = []
    for fit in (
        lambda: selector().fit(read_blocks(X, y, domain)),
        lambda: twin(monkeypatch, X, y, domain, True),
    ):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            fit()
        found.append([str(w.message) for w in seen if w.category is DDMLWarning])
    assert found[0] == found[1]
    assert len(found[0]) >= 3
