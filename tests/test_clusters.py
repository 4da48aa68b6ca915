"""Clusters: folds do not split them, and errors are those of statsmodels and hold."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from doubleml import DoubleMLData, DoubleMLPLR
from doubleml.utils._estimation import _var_est
from sklearn.linear_model import LinearRegression, LogisticRegression

from ddml_fs import DDML
from ddml_fs.inference import clustered_stderr

MODELS = LogisticRegression(), LinearRegression()


def draw(rng, n_clusters=40, size=10):
    """A true effect of 1; treatment, covariate and noise have a part that clusters share."""
    cluster = np.repeat(np.arange(n_clusters), size)
    n = len(cluster)
    shared = rng.standard_normal((n_clusters, 2))[cluster]
    X = rng.standard_normal((n, 2))
    T = X[:, 0] + shared[:, 0] + 0.5 * rng.standard_normal(n)
    y = T + X[:, 0] + shared[:, 1] + 0.5 * rng.standard_normal(n)
    return X, y, T, cluster


def test_folds_do_not_split_clusters():
    X, y, T, cluster = draw(np.random.default_rng(0))
    names = np.array([f"hospital {c}" for c in cluster])
    effect = DDML("mlp", random_state=0).fit(X, y, treatment=T, cluster=names)
    held = []
    for train, hold in effect.folds_:
        assert not set(cluster[train]) & set(cluster[hold])
        held += list(hold)
    assert sorted(held) == list(range(len(y)))
    # With a 0/1 treatment folds are stratified as far as clusters allow.
    effect = DDML("ridge", random_state=0).fit(X, y, treatment=(T > 0).astype(int), cluster=cluster)
    for train, hold in effect.folds_:
        assert not set(cluster[train]) & set(cluster[hold])


def test_errors_are_those_of_statsmodels():
    X, y, T, cluster = draw(np.random.default_rng(1))
    effect = DDML(LinearRegression(), random_state=0).fit(X, y, treatment=T, cluster=cluster)
    v, e = effect.residuals_["v"], effect.residuals_["e"]
    twin = sm.OLS(e, v).fit(cov_type="cluster", cov_kwds={"groups": cluster}, use_t=True)
    np.testing.assert_allclose(effect.effect_, twin.params.iloc[0], rtol=1e-6)
    np.testing.assert_allclose(effect.stderr_, twin.bse.iloc[0], rtol=1e-6)
    np.testing.assert_allclose(effect.conf_int(), twin.conf_int().iloc[0], rtol=1e-6)
    np.testing.assert_allclose(effect.pvalue_, twin.pvalues.iloc[0], rtol=1e-6)


def test_two_ways_of_clustering():
    rng = np.random.default_rng(2)
    influence = rng.standard_normal(600)
    both = np.column_stack([np.repeat(np.arange(30), 20), np.tile(np.arange(20), 30)])
    influence += rng.standard_normal(30)[both[:, 0]] + rng.standard_normal(20)[both[:, 1]]

    def slow(*labels):
        groups = {}
        for i, key in enumerate(zip(*labels, strict=True)):
            groups.setdefault(key, []).append(influence[i])
        total = sum(sum(values) ** 2 for values in groups.values())
        return total * len(groups) / (len(groups) - 1) / 600**2

    expected = slow(both[:, 0]) + slow(both[:, 1]) - slow(both[:, 0], both[:, 1])
    np.testing.assert_allclose(clustered_stderr(influence, both), np.sqrt(expected))
    X, y, T, cluster = draw(rng)
    two = np.column_stack([cluster, np.tile(np.arange(10), 40)])
    effect = DDML(LinearRegression(), random_state=0).fit(X, y, treatment=T, cluster=two)
    assert effect.stderr_ > 0


def test_intervals_hold_with_clusters_and_not_without():
    """150 draws: 95 % up to three standard errors with clusters, far fewer without."""
    rng = np.random.default_rng(0)
    held = {True: 0, False: 0}
    for _ in range(150):
        X, y, T, cluster = draw(rng)
        for known in held:
            effect = DDML(LinearRegression(), random_state=0)
            effect.fit(X, y, treatment=T, cluster=cluster if known else None)
            low, high = effect.conf_int()
            held[known] += low < 1 < high
    assert held[True] / 150 > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 150)
    assert held[False] / 150 < 0.7


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        (np.arange(10), "must have shape"),
        (np.r_[np.nan, np.arange(399.0)], "got 1 missing"),
        (np.arange(400) % 3, "at least n_folds=5 clusters, got 3"),
        (np.zeros((400, 3)), "must have shape"),
        (1, r"must have shape \(400,\) or \(400, 2\), got \(\)"),
    ],
)
def test_bad_clusters(cluster, words):
    X, y, T, _ = draw(np.random.default_rng(0))
    with pytest.raises(ValueError, match=words):
        DDML("ridge", random_state=0).fit(X, y, treatment=T, cluster=cluster)


def test_all_treated_rows_in_one_cluster():
    X, y, _, cluster = draw(np.random.default_rng(0))
    with pytest.raises(ValueError, match="got 1 of 5 folds with one arm to fit on; use smaller"):
        DDML("ridge", random_state=0).fit(X, y, treatment=cluster == 3, cluster=cluster)


def test_everything_after_the_fit_knows_the_clusters():
    """Bounds, groups, benchmarks and placebos; limits are wider than without clusters."""
    X, y, T, cluster = draw(np.random.default_rng(3))
    X, D = pd.DataFrame(X, columns=["a", "b"]), (T > T.mean()).astype(int)
    y = D + y - T
    fits = {}
    for known in (True, False):
        effect = DDML(MODELS, random_state=0)
        fits[known] = effect.fit(X, y, treatment=D, cluster=cluster if known else None)
    clustered = fits[True]
    row = clustered.sensitivity(0.0, 0.0, level=0.975)
    assert row["ci_low"] == pytest.approx(clustered.effect_ - 1.96 * clustered.stderr_, rel=1e-3)
    assert clustered.stderr_ > fits[False].stderr_
    one = clustered.by(np.zeros(len(y)))
    assert one["stderr"].iloc[0] == pytest.approx(clustered.stderr_)
    assert len(clustered.benchmark(X, y, treatment=D, columns=["a"])) == 1
    assert len(clustered.placebo(X, y, treatment=D, n=2)) == 2
    twin = sm.OLS(clustered.signals(), sm.add_constant(X))
    twin = twin.fit(cov_type="cluster", cov_kwds={"groups": cluster}, use_t=True)
    table = clustered.best_linear_predictor(X)
    np.testing.assert_allclose(table["stderr"], twin.bse, rtol=1e-8)
    np.testing.assert_allclose(table["pvalue"], twin.pvalues, rtol=1e-6)


def test_errors_of_many_effects_are_those_of_each():
    rng = np.random.default_rng(0)
    influence = rng.standard_normal((200, 7))
    both = np.column_stack([np.arange(200) // 10, np.arange(200) % 9])
    for cluster in (both[:, :1], both):
        each = [clustered_stderr(column, cluster) for column in influence.T]
        np.testing.assert_allclose(clustered_stderr(influence, cluster), each)


# --- DoubleML, on the same folds and predictions ---


def test_one_way_is_doubleml():
    """DoubleML has no factor G / (G − 1); with it, the errors are the same."""
    X, y, T, cluster = draw(np.random.default_rng(5))
    ours = DDML(LinearRegression(), random_state=0).fit(X, y, treatment=T, cluster=cluster)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=y, d=T, cluster=cluster)
    data = DoubleMLData(frame, "y", "d", x_cols=["a", "b"], cluster_cols="cluster")
    twin = DoubleMLPLR(data, LinearRegression(), LinearRegression(), n_folds=5)
    clusters = [
        ([np.unique(cluster[train])], [np.unique(cluster[hold])]) for train, hold in ours.folds_
    ]
    twin.set_sample_splitting([ours.folds_], [clusters])
    hat = {f"ml_{name}": ours.nuisances_[own].to_numpy()[:, None] for name, own in ("mm", "lg")}
    twin.fit(external_predictions={"d": hat})
    assert ours.effect_ == pytest.approx(twin.coef[0], rel=1e-6)
    assert ours.stderr_ * np.sqrt(39 / 40) == pytest.approx(twin.se[0], rel=1e-6)


def test_two_ways_are_doubleml():
    """DoubleML adds the variances of both ways, without factors, and keeps the intersection."""
    rng = np.random.default_rng(6)
    X, y, T, first = draw(rng)
    both = np.column_stack([first, np.tile(np.arange(10), 40)])
    y += rng.standard_normal(10)[both[:, 1]] * (T - X[:, 0])
    ours = DDML(LinearRegression(), random_state=0).fit(X, y, treatment=T, cluster=both)
    v, u = ours.residuals_["v"].to_numpy(), ours.residuals_["u"].to_numpy()
    rows = np.arange(400)
    whole = [(rows, rows)], both, [(None, [np.arange(40), np.arange(10)])], 1
    theirs, n = _var_est(v * u, -(v**2), whole[0], True, *whole[1:])
    parts = [
        sum((v * u)[column == c].sum() ** 2 for c in np.unique(column)) / np.sum(v**2) ** 2
        for column in (*both.T, rows)  # the intersections are single rows
    ]
    assert theirs == pytest.approx(parts[0] + parts[1], rel=1e-6)
    sizes = np.array([40, 10, 400])
    expected = np.array(parts) * sizes / (sizes - 1) @ [1, 1, -1]
    assert ours.stderr_ == pytest.approx(np.sqrt(expected), rel=1e-6)
    assert n == 10
