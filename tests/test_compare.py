"""Comparison with other selections on left-out domains."""

import numpy as np
import pandas as pd
import pytest
from mrmr import mrmr_classif
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ddml_fs.compare import compare_selectors, plot_comparison, summarise
from ddml_fs.datasets import make_domain_data
from ddml_fs.rivals import RIVALS, by_mrmr, standardised

METHODS = ["all features", "ddml_fs", "F-test", "mRMR", "L1 path", "RFE"]


@pytest.fixture(scope="module")
def data():
    data = make_domain_data(
        n_samples=300, n_causal=4, n_spurious=4, n_noise=6, n_domains=4, random_state=0
    )
    source = data.sample_domain > 0
    return data.X[source], data.y[source], data.sample_domain[source], data.roles


@pytest.fixture(scope="module")
def results(data):
    return compare_selectors(*data[:3], n_features_to_select=4, random_state=0)


def test_rows(results, data):
    n_domains = len(np.unique(data[2]))
    assert list(dict.fromkeys(results["method"])) == METHODS
    assert len(results) == n_domains * len(METHODS) * 2
    numbers = results.groupby("method")["n_features"].unique().str[0]
    assert numbers["all features"] == 14
    assert set(numbers.drop("all features")) == {4}


def test_all_features_by_hand(results, data):
    X, y, domain, _ = data
    for d in np.unique(domain):
        train = domain != d
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        chances = model.fit(X[train], y[train]).predict_proba(X[~train])[:, 1]
        row = results.query("method == 'all features' and model == 'logistic' and domain == @d")
        assert row["auc"].item() == pytest.approx(roc_auc_score(y[~train], chances))
        assert row["accuracy"].item() == pytest.approx(np.mean((chances > 0.5) == y[~train]))


def test_summary(results):
    summary = summarise(results)
    assert summary.index.tolist() == METHODS
    own = results.query("method == 'RFE' and model == 'boosting'")
    assert summary.loc["RFE", "boosting AUC"] == pytest.approx(own["auc"].mean())
    assert summary.loc["RFE", "boosting worst"] == own["auc"].min()


@pytest.mark.xfail(
    strict=True,
    reason="Three domains of 300 rows do not show that signs differ, so risk does not count:"
    " 0.795, RFE 0.796. When it always counted, ours had 0.811.",
)
def test_of_as_many_features_ours_serve_best(results):
    """Over both models. All features may do better."""
    areas = summarise(results)[["logistic AUC", "boosting AUC"]].mean(axis=1)
    assert areas.drop("all features").idxmax() == "ddml_fs"


def test_nothing_of_the_left_out_domain_is_used(data):
    """Labels of a domain change its scores, not what is chosen for it."""
    X, y, domain, _ = data
    rng = np.random.default_rng(0)
    wrong = np.where(domain == 1, rng.permutation(y), y)
    one, other = (
        compare_selectors(X[:, :6], labels, domain, max_domains=1, random_state=0)
        for labels in (y, wrong)
    )
    assert set(one["domain"]) == {1}
    np.testing.assert_array_equal(one["n_features"], other["n_features"])
    assert (one["auc"].to_numpy() != other["auc"].to_numpy()).any()


def test_without_domains_with_text():
    """Folds in the place of domains; a category is chosen as a whole."""
    rng = np.random.default_rng(0)
    trade = rng.choice(["baker", "cook", "nurse"], 400)
    frame = pd.DataFrame({"trade": trade, "age": rng.standard_normal(400), "b": rng.random(400)})
    frame.loc[:40, "age"] = np.nan
    y = np.where((trade == "cook") + 0.3 * rng.standard_normal(400) > 0.5, "yes", "no")
    results = compare_selectors(frame, y, n_features_to_select=1, random_state=0)
    assert results["domain"].unique().tolist() == [f"fold {i}" for i in range(1, 6)]
    assert (results.query("method != 'all features'")["auc"] > 0.8).all()


def test_numbers(data):
    X, _, domain, _ = data
    rng = np.random.default_rng(0)
    y = 2 * X[:, 0] - X[:, 1] + rng.standard_normal(len(X))
    results = compare_selectors(
        X[:, :6], y, domain, n_features_to_select=2, max_domains=2, random_state=0
    )
    assert set(results["model"]) == {"ridge", "boosting"}
    assert (summarise(results)["ridge R2"] > 0.7).all()


def test_three_classes(data):
    X, _, domain, _ = data
    y = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.5])
    results = compare_selectors(
        X[:, :4], y, domain, n_features_to_select=2, max_domains=1, random_state=0
    )
    assert (summarise(results)["boosting AUC"] > 0.8).all()


def test_largest_domains(data):
    X, y, domain, _ = data
    results = compare_selectors(
        X[10:, :4], y[10:], domain[10:], n_features_to_select=1, max_domains=2, random_state=0
    )
    assert results["domain"].nunique() == 2
    with pytest.raises(ValueError, match="must be a number, a share or 'auto', got 'fdr'"):
        compare_selectors(X, y, domain, n_features_to_select="fdr")


def test_mrmr_is_that_of_the_package(data):
    X, y, _, _ = data
    Z = standardised(X)
    frame = pd.DataFrame(Z, columns=range(Z.shape[1]))
    expected = mrmr_classif(frame, pd.Series(y), K=14, show_progress=False, n_jobs=1)
    assert by_mrmr(Z, y, True).tolist() == expected


@pytest.mark.parametrize("name", RIVALS)
def test_rivals_order_all_columns_and_find_the_strong_one(name):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6))
    X[:, 5] = 1.0  # a constant comes to no harm
    Z = standardised(X)
    for y, label in (
        ((2 * X[:, 2] + X[:, 0] > 0).astype(int), True),
        (X[:, 2] + X[:, 0] / 2, False),
    ):
        order = RIVALS[name](Z, y, label)
        assert sorted(order) == list(range(6))
        assert order[:2].tolist() == [2, 0]


def test_plot(results):
    ax = plot_comparison(results)
    assert [text.get_text() for text in ax.get_yticklabels()] == METHODS
    points = ax.collections[0].get_offsets()
    assert len(points) == len(results) / 2
    assert {text.get_text() for text in ax.get_legend().get_texts()} == {"logistic", "boosting"}
