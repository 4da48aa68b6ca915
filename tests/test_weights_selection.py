"""Weights and clusters of the selector: against repeated rows, statsmodels and theory."""

import numpy as np
import pandas as pd
import pytest
import sklearn
import statsmodels.api as sm
from scipy import stats
from scipy.special import expit, logit
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline

from ddml_fs import CausalFeatureSelector
from ddml_fs.datasets import make_domain_data
from ddml_fs.evidence import collect
from ddml_fs.inference import bootstrap_maxima, cluster_sums
from ddml_fs.number import area, choose_number, loss_of
from ddml_fs.scores import Logistic, PartiallyLinear


@pytest.fixture(scope="module")
def rows():
    """Five correlated columns, numbers, labels, weights and clusters of five rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 5)) @ (np.eye(5) + 0.3)
    index = X @ [1.0, 0.5, 0.0, 0.0, -0.5]
    y = index + rng.standard_normal(400) * (1 + (X[:, 0] > 0))
    label = (index + rng.logistic(size=400) > 0).astype(int)
    return X, y, label, rng.integers(1, 5, 400), np.arange(400) // 5


def selector(n=3, **options):
    return CausalFeatureSelector(n, random_state=0, **options)


# --- What weights mean ---


@pytest.mark.parametrize(("nuisance", "number"), [("auto", "auto"), ("ridge", 3), ("shrunken", 3)])
def test_equal_weights_change_nothing(rows, nuisance, number):
    X, label = rows[0][:200], rows[2][:200]
    plain, equal = (
        selector(number, nuisance=nuisance).fit(X, label, sample_weight=weight)
        for weight in (None, np.full(200, 3.0))
    )
    pd.testing.assert_frame_equal(plain.effects_, equal.effects_)
    pd.testing.assert_frame_equal(plain.conf_int(joint=True), equal.conf_int(joint=True))


def test_weights_reach_the_effects_and_the_order(rows):
    X, y, label, weight = (a[:200] for a in rows[:4])
    for nuisance in ("auto", "ridge", "shrunken", LinearRegression()):
        given = X, y if isinstance(nuisance, LinearRegression) else label
        plain, other = (
            selector(nuisance=nuisance).fit(*given, sample_weight=w) for w in (None, weight)
        )
        assert (plain.effects_["effect"] != other.effects_["effect"]).all()
        assert (plain.scores_ != other.scores_).all()
        np.testing.assert_allclose(plain.effects_["effect"], other.effects_["effect"], atol=0.4)


@pytest.mark.parametrize("label", [False, True])
def test_integer_weights_are_repeated_rows(rows, label):
    """The additive model; clusters keep copies together. Weights have the mean 1, and the errors'
    correction for degrees of freedom counts rows."""
    X, y, labels, weight, _ = rows
    y = labels if label else y
    source = np.repeat(np.arange(400), weight)
    options = {"nuisance": "additive", "dose": "linear"}
    ours = selector(**options).fit(X, y, sample_weight=weight, cluster=np.arange(400)).effects_
    twin = selector(**options).fit(X[source], y[source], cluster=source).effects_
    for name in ("effect", "std_effect"):
        np.testing.assert_allclose(ours[name], twin[name], rtol=1e-4)
    kept = [(1 - 6 / n) ** (2 if label else 1) for n in (400, len(source))]
    factor = np.sqrt(kept[0] / kept[1])
    np.testing.assert_allclose(ours["stderr"] * factor, twin["stderr"], rtol=1e-4)


def test_rows_without_weight_and_targets_are_left_out():
    data = make_domain_data(3, 150, 3, 3, 4, random_state=0)
    source = data.sample_domain > 0
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, len(data.y)).astype(float)
    cluster = np.arange(len(data.y)) // 4
    weight[~source] = np.nan  # those of targets do not matter
    used = source & (weight > 0)
    whole = selector("auto").fit(
        data.X, data.y, data.sample_domain, sample_weight=weight, cluster=cluster
    )
    short = selector("auto").fit(
        data.X[used],
        data.y[used],
        data.sample_domain[used],
        sample_weight=weight[used],
        cluster=cluster[used],
    )
    pd.testing.assert_frame_equal(whole.effects_, short.effects_)
    pd.testing.assert_frame_equal(whole.curve_, short.curve_)


# --- Errors ---


def evidence(score, v, e, g, **options):
    """One feature per column, of which the others explain nothing."""
    every = np.ones(v.shape[1], bool)
    known = {"own": np.arange(v.shape[1]), "straight": every, "tested": every}
    zeros = np.zeros(len(v), int)
    known |= {"Z": v, "domain": zeros, "fold": zeros} | options
    return collect(score, v, e, g, **known)


@pytest.mark.parametrize(("clustered", "weighted"), [(False, True), (True, False), (True, True)])
@pytest.mark.filterwarnings("ignore:cov_type not fully supported")
def test_errors_are_those_of_statsmodels(rows, clustered, weighted):
    """Numbers: weighted least squares. Labels: a logistic regression with an offset."""
    X, y, label, weight, cluster = rows
    w = weight / weight.mean() if weighted else np.ones(400)
    v = X / np.sqrt(np.average((X - np.average(X, 0, w)) ** 2, 0, w))  # of variance 1
    how = {"cov_type": "HC0"}
    if clustered:
        how = {"cov_type": "cluster", "cov_kwds": {"groups": cluster}}
    options = {"weight": w, "cluster": cluster if clustered else None}
    e = np.repeat(y[:, None], 5, 1) - np.average(y, weights=w)
    found = evidence(PartiallyLinear(), v, e, 0 * e, **options)
    p = np.clip(expit(0.3 * X[:, 1:2] + np.zeros((400, 5))), 0.05, 0.95)
    odds = evidence(Logistic(), v, label[:, None] - p, p, **options)
    for j in range(5):
        twin = sm.WLS(e[:, j], v[:, j], weights=w).fit(**how)
        assert found.U[0, j] / found.I[0, j] == pytest.approx(twin.params[0], rel=1e-6)
        assert 1 / np.sqrt(found.I[0, j]) == pytest.approx(twin.bse[0], rel=1e-6)
        family, offset = sm.families.Binomial(), logit(p[:, j])
        twin = sm.GLM(label, v[:, j], family=family, offset=offset, var_weights=w).fit(**how)
        assert odds.U[0, j] / odds.I[0, j] == pytest.approx(twin.params[0], rel=1e-5)
        assert 1 / np.sqrt(odds.I[0, j]) == pytest.approx(twin.bse[0], rel=1e-5)
    # The test of no effect has the variance of the score under no effect.
    scores, factor = w[:, None] * v * e, 1.0
    if clustered:
        scores, factor = cluster_sums(cluster, scores), 80 / 79
    expected = scores.sum(0) ** 2 / (factor * (scores**2).sum(0))
    np.testing.assert_allclose(found.chi2, expected, rtol=1e-6)


def test_several_columns_are_tested_at_once(rows):
    X, y, _, weight, cluster = rows
    w, e = weight / weight.mean(), (y - np.average(y, weights=weight))[:, None]
    options = {"own": np.zeros(5, int), "weight": w}
    for clusters, factor in ((None, 1.0), (cluster, 80 / 79)):
        found = evidence(PartiallyLinear(), X, e, 0 * e, **options, cluster=clusters)
        scores = w[:, None] * X * e
        parts = scores if clusters is None else cluster_sums(clusters, scores)
        U, M = scores.sum(0), factor * parts.T @ parts
        assert found.df[0] == 5
        assert found.chi2[0] == pytest.approx(U @ np.linalg.solve(M, U), rel=1e-6)


def test_domains_share_one_design_effect(rows):
    """Effects differ between domains; the errors come from the scores at each domain's effect."""
    X, y, _, _, cluster = rows
    domain = (cluster % 2).astype(int)
    y = y + domain * X[:, 0]
    v, e = X.copy(), np.repeat(y[:, None], 5, 1)
    for d in (0, 1):
        v[domain == d] -= v[domain == d].mean(0)
        e[domain == d] -= e[domain == d].mean(0)
    found = evidence(PartiallyLinear(), v, e, 0 * e, domain=domain, cluster=cluster)
    member = np.eye(2)[domain]
    I = member.T @ v**2
    theta = member.T @ (v * e) / I
    sums = cluster_sums(cluster, v * (e - theta[domain] * v))
    robust = (sums**2).sum(0) * 80 / 78 / I.sum(0) ** 2
    sd = v.std(0)
    np.testing.assert_allclose(1 / found.I.sum(0), robust * sd**2, rtol=1e-6)
    np.testing.assert_allclose(found.U / found.I, theta * sd, rtol=1e-6)


def clustered_draw(rng, G, m=20):
    """The first column and half of the noise's variance are shared by clusters of m rows."""
    cluster = np.repeat(np.arange(G), m)
    X = rng.standard_normal((G * m, 4))
    X[:, 0] = rng.standard_normal(G)[cluster]
    noise = rng.standard_normal(G)[cluster] + rng.standard_normal(G * m)
    return X, 0.3 * X[:, 0] + X[:, 1] + noise / np.sqrt(2), cluster


def test_plain_errors_are_too_small_with_clusters():
    """Theory: the variance is larger by 1 + (m − 1)·ρ_x·ρ_e = 1 + 19 · 1 · 0.5 = 10.5."""
    ratio = np.sqrt(10.5)
    rng = np.random.default_rng(0)
    X, y, cluster = clustered_draw(rng, 300)
    options = {"nuisance": "ridge", "dose": "linear"}
    plain = selector(1, **options).fit(X, y).effects_["stderr"]
    robust = selector(1, **options).fit(X, y, cluster=cluster).effects_["stderr"]
    assert robust.iloc[0] / plain.iloc[0] == pytest.approx(ratio, rel=0.12)
    # Plain errors of numbers are those of a zero effect, which columns 2 and 3 have.
    np.testing.assert_allclose(robust[2:] / plain[2:], 1.0, atol=0.2)
    found, errors = [], []
    for _ in range(60):
        X, y, cluster = clustered_draw(rng, 40)
        table = selector(1, **options).fit(X, y, cluster=cluster).effects_
        found.append(table["effect"].iloc[0])
        errors.append(table["stderr"].iloc[0])
    # A standard deviation of 60 draws has an error of 9 %.
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(found), rel=0.27)
    assert abs(np.mean(found) - 0.3) < 4 * np.std(found) / np.sqrt(60)


def test_intervals_and_tests_have_the_degrees_of_freedom_of_the_clusters():
    X, y, cluster = clustered_draw(np.random.default_rng(1), 12)
    fitted = selector(1, nuisance="additive", dose="linear").fit(X, y, cluster=cluster)
    table, interval = fitted.effects_, fitted.conf_int()
    half = (interval["high"] - interval["low"]) / 2
    np.testing.assert_allclose(half / table["stderr"], 2.201, atol=1e-3)  # t with 11
    by_domain = fitted.domain_effects_
    reach = (by_domain["high"] - by_domain["effect"]) / by_domain["stderr"]
    np.testing.assert_allclose(reach, 2.201, atol=1e-3)


def test_joint_bands_draw_one_multiplier_per_cluster():
    rng = np.random.RandomState(0)
    influence, cluster = rng.standard_normal((200, 6)), np.arange(200) // 8
    ours = bootstrap_maxima(influence, 500, np.random.default_rng(1), cluster)
    sums = np.stack([influence[cluster == c].sum(0) for c in range(25)])
    parts = np.random.default_rng(1).spawn(10)  # 50 draws each
    draws = np.concatenate([part.standard_normal((50, 25), np.float32) for part in parts])
    slow = np.sort(np.abs(draws @ (sums / np.sqrt((sums**2).sum(0)))).max(1))
    np.testing.assert_allclose(ours, slow, rtol=1e-5)


def test_robustness_does_not_depend_on_the_errors():
    """It is about the bias of a hidden confounder, not about chance."""
    X, y, cluster = clustered_draw(np.random.default_rng(2), 100)
    options = {"nuisance": "additive", "dose": "linear"}
    plain = selector(1, **options).fit(X, y).effects_["robustness"]
    robust = selector(1, **options).fit(X, y, cluster=cluster).effects_["robustness"]
    np.testing.assert_allclose(plain, robust, rtol=1e-4)


# --- The order and the number of features ---


def test_losses_are_weighted(rows):
    X, y, label, weight, _ = rows
    score = np.round(X[:, 0])  # with ties
    found, influence = area(score, label == 1, weight)
    assert found == pytest.approx(roc_auc_score(label, score, sample_weight=weight))
    assert influence.sum() == pytest.approx(0, abs=1e-12)
    source = np.repeat(np.arange(400), weight)
    twin, repeated = area(score[source], label[source] == 1)
    assert found == pytest.approx(twin)
    np.testing.assert_allclose(influence, np.bincount(source, repeated), atol=1e-12)
    model = Ridge().fit(X, y)
    loss, influence = loss_of(model, X, y, weight)
    rest = y - model.predict(X)
    shifted = y - np.average(rest, weights=weight)
    expected = 1 - r2_score(y, model.predict(X) + y - shifted, sample_weight=weight)
    assert loss == pytest.approx(expected)
    twin, repeated = loss_of(model, X[source], y[source])
    assert loss == pytest.approx(twin)
    np.testing.assert_allclose(influence, np.bincount(source, repeated), atol=1e-12)


def test_downstream_models_get_the_weights_they_take(rows):
    """A model without weights is fitted without them; its losses are weighted all the same."""
    X, _, label, weight, cluster = rows
    order = [np.array([j]) for j in range(5)]
    fold = cluster % 4
    splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k), order) for k in range(4)]
    w = weight / weight.mean()
    for model, takes in ((LogisticRegression(), True), (KNeighborsClassifier(), False)):
        _, numbers, losses = choose_number(X, label, splits, [model], weight=w, cluster=cluster)
        train, test, _ = splits[0]
        own = {"sample_weight": w[train]} if takes else {}
        fitted = model.fit(X[train], label[train], **own)
        chance = fitted.predict_proba(X[test])[:, 1]
        expected = 1 - roc_auc_score(label[test], chance, sample_weight=w[test])
        assert losses[0, numbers.index(5)] == pytest.approx(expected)


def test_folds_do_not_split_clusters(rows):
    X, _, label, _, cluster = rows
    ranker = selector("auto").fit_sweep(X, label, cluster=np.char.add("c", cluster.astype(str)))
    for k in np.unique(ranker.result.fold):
        inside = ranker.result.fold == k
        assert not set(cluster[inside]) & set(cluster[~inside])


# --- scikit-learn's metadata routing ---


def test_weights_and_clusters_travel_through_pipelines(rows):
    X, _, label, weight, cluster = rows
    alone = selector(3).fit(X, label, sample_weight=weight, cluster=cluster)
    grid = {"causalfeatureselector__n_features_to_select": [2, 3]}
    with sklearn.config_context(enable_metadata_routing=True):
        own = selector(3).set_fit_request(sample_weight=True)
        model = LogisticRegression().set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        pipeline = make_pipeline(own, model)
        pipeline.fit(X, label, sample_weight=weight, cluster=cluster)
        pd.testing.assert_frame_equal(pipeline[0].effects_, alone.effects_)
        search = GridSearchCV(pipeline, grid, cv=2)
        search.fit(X, label, sample_weight=weight, cluster=cluster)
        best = search.best_estimator_[0].effects_.drop(columns="selected")
        pd.testing.assert_frame_equal(best, alone.effects_.drop(columns="selected"))
    # Other libraries may have turned routing on.
    with sklearn.config_context(enable_metadata_routing=False):
        pipeline = make_pipeline(selector(3), LogisticRegression())
        step = "causalfeatureselector__"
        known = {f"{step}sample_weight": weight, f"{step}cluster": cluster}
        pipeline.fit(X, label, **known)
        pd.testing.assert_frame_equal(pipeline[0].effects_, alone.effects_)
        search = GridSearchCV(pipeline, grid, cv=2).fit(X, label, **known)
        best = search.best_estimator_[0].effects_.drop(columns="selected")
        pd.testing.assert_frame_equal(best, alone.effects_.drop(columns="selected"))


# --- The curve of a number ---


@pytest.mark.parametrize("label", [False, True])
def test_dose_curve_knows_weights_and_clusters(rows, label):
    """The same curve as with repeated rows, and the band of clusters of copies."""
    plots = pytest.importorskip("ddml_fs.plotting")
    X, y, labels, weight, _ = rows
    X, y = pd.DataFrame(X, columns=list("abcde")), labels if label else y
    fitted = selector(nuisance="ridge").fit(X, y)
    draw = plots.DoseDisplay.from_estimator
    known = {"sample_weight": weight, "cluster": np.arange(400)}
    ours = draw(fitted, "a", X, y, **known).table
    plain = draw(fitted, "a", X, y).table
    assert (ours["effect"].iloc[0] - plain["effect"].iloc[0]) != 0
    single = draw(fitted, "a", X, y, sample_weight=weight).table
    np.testing.assert_allclose(single["effect"], ours["effect"])
    # One cluster per row: G / (G − 1), and Student's t.
    ratio = (ours["high"] - ours["effect"]) / (single["high"] - single["effect"])
    expected = np.sqrt(400 / 399) * stats.t.ppf(0.975, 399) / stats.norm.ppf(0.975)
    np.testing.assert_allclose(ratio[ratio.notna()], expected, rtol=1e-6)
    double = draw(fitted, "a", X, y, cluster=np.arange(400)).table
    twice = pd.concat([X, X]), np.r_[y, y]
    copies = draw(fitted, "a", *twice, cluster=np.r_[np.arange(400), np.arange(400)]).table
    np.testing.assert_allclose(copies, double, rtol=1e-3, atol=1e-2)
    wide, narrow = (
        (table["high"] - table["low"]).mean() for table in (copies, draw(fitted, "a", *twice).table)
    )
    assert wide > 1.2 * narrow


# --- Wrong arguments ---


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"sample_weight": np.ones(7)}, r"one value per row of X \(400\)"),
        ({"sample_weight": -np.ones(400)}, "must not be negative"),
        ({"cluster": np.ones(7)}, r"one value per row of X \(400\)"),
        ({"cluster": np.arange(400) % 3}, "at least 4 clusters, got 3"),
        ({"cluster": np.zeros((400, 2))}, r"must have shape \(400,\), got"),
        (
            {"cluster": np.arange(400) % 5, "sample_domain": np.arange(400) % 5},
            "more clusters than there are domains, got 5",
        ),
    ],
)
def test_bad_arguments(rows, given, words):
    with pytest.raises(ValueError, match=words):
        selector().fit(rows[0], rows[2], **given)


def test_nuisances_that_take_no_weights(rows):
    X, y, _, weight, _ = rows
    with pytest.raises(ValueError, match="takes sample_weight, got KNeighborsRegressor"):
        selector(nuisance=KNeighborsRegressor()).fit(X, y, sample_weight=weight)
