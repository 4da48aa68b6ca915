"""Weights and clusters of the classifier: against repeated rows and logistic regression."""

import numpy as np
import pytest
import sklearn
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ddml_fs import CausalFeatureSelector, EffectClassifier
from ddml_fs.classifier import fit_effects, parts_of
from ddml_fs.effects_path import effects_path, invariance_of, ridge_path
from ddml_fs.encoding import read_target
from ddml_fs.progress import Progress


@pytest.fixture(scope="module")
def rows():
    """Four columns, a label whose slopes differ between two domains, weights and clusters."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4)) @ (np.eye(4) + 0.3)
    domain = np.arange(300) // 2 % 2
    slopes = np.where(domain, 1.5, 0.0)
    y = (X[:, 0] + slopes * X[:, 1] + rng.logistic(size=300) > 0).astype(int)
    return X, y, domain, rng.integers(1, 5, 300), np.arange(300) // 4


def test_equal_weights_change_nothing(rows):
    X, y, domain, _, _ = rows
    for threshold in ("calibrated", "share"):
        plain, equal = (
            EffectClassifier(threshold=threshold).fit(X, y, domain, sample_weight=weight)
            for weight in (None, np.full(300, 5.0))
        )
        np.testing.assert_array_equal(plain.coef_, equal.coef_)
        np.testing.assert_array_equal(plain.intercept_, equal.intercept_)


def test_rows_without_weight_are_left_out(rows):
    X, y, domain, weight, cluster = rows
    weight = np.where(np.arange(300) % 5 == 0, 0, weight)
    used = weight > 0
    whole = EffectClassifier().fit(X, y, domain, weight, cluster)
    short = EffectClassifier().fit(X[used], y[used], domain[used], weight[used], cluster[used])
    np.testing.assert_allclose(whole.coef_, short.coef_)
    assert whole.penalty_ == short.penalty_


def test_weighted_path_is_that_of_logistic_regression(rows):
    """One domain: the mean log-loss plus λ/2 times the squared coefficients."""
    X, y, _, weight, _ = rows
    penalty = 0.05
    coef, _ = next(ridge_path(X, y.astype(float), np.zeros(300, int), [penalty], weight))
    twin = LogisticRegression(C=1 / (penalty * weight.sum()), tol=1e-8)
    twin.fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(coef, twin.coef_[0], atol=1e-3)


@pytest.mark.parametrize("several", [False, True])
def test_integer_weights_are_repeated_rows(rows, several):
    """On the same parts: the path, the chosen penalty, the slope and the intercept."""
    X, y, domain, weight, cluster = rows
    y, domain = y.astype(float), domain if several else np.zeros(300, int)
    source = np.repeat(np.arange(300), weight)
    part = cluster % 3
    w = weight / weight.mean()
    if not several:  # a variance of copies is not robust, so invariances differ
        ours = next(effects_path(X, y, domain, [0.1], w))[0]
        twin = next(effects_path(X[source], y[source], domain[source], [0.1]))[0]
        np.testing.assert_allclose(ours, twin, atol=1e-4)
        ours = fit_effects(X, y, domain, part, w, "calibrated", Progress())
        arrays = (a[source] for a in (X, y, domain, part))
        twin = fit_effects(*arrays, np.ones(len(source)), "calibrated", Progress())
        np.testing.assert_allclose(ours[0], twin[0], atol=1e-3)
        np.testing.assert_allclose(ours[1:3], twin[1:3], atol=1e-3)
    coef, levels = next(ridge_path(X, y, domain, [0.1], w))
    twin, others = next(ridge_path(X[source], y[source], domain[source], [0.1]))
    np.testing.assert_allclose(coef, twin, atol=1e-4)
    np.testing.assert_allclose(levels, others, atol=1e-4)


def test_weights_do_not_make_effects_look_unstable():
    """Equal effects and unequal weights: copies of rows seem to differ between domains."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(20):
        X = rng.standard_normal((400, 3))
        y = (rng.random(400) < expit(X[:, 0])).astype(float)
        domain, weight = np.arange(400) % 4, rng.choice([1, 25], 400, p=[0.8, 0.2])
        source = np.repeat(np.arange(400), weight)
        given = X, y, domain
        found.append(
            [
                invariance_of(*given, weight / weight.mean()).min(),
                invariance_of(*(a[source] for a in given)).min(),
            ]
        )
    ours, copies = np.mean(np.array(found) == 1, 0)
    assert ours > 0.8
    assert copies < 0.2


def test_shares_and_base_rates_are_weighted(rows):
    X, y, _, _, _ = rows
    weight = np.where(y == 1, 4.0, 1.0)
    model = EffectClassifier(threshold="share").fit(X, y, sample_weight=weight)
    share = np.average(model.predict(X) == 1, weights=weight)
    assert share == pytest.approx(np.average(y, weights=weight), abs=0.05)
    model = EffectClassifier().fit(X, y, sample_weight=weight)
    chance = np.average(model.predict_proba(X)[:, 1], weights=weight)
    assert chance == pytest.approx(np.average(y, weights=weight), abs=0.02)


def test_folds_do_not_split_clusters(rows):
    _, y, _, _, cluster = rows
    part = parts_of(read_target(y, "classification"), np.zeros(300, int), cluster)
    assert len(np.unique(part)) == 5
    assert all(len(np.unique(part[cluster == c])) == 1 for c in np.unique(cluster))


def test_the_selector_gets_weights_and_clusters(rows):
    X, y, domain, weight, cluster = rows
    selector = CausalFeatureSelector(2, nuisance="ridge", random_state=0)
    model = EffectClassifier(selector).fit(X, y, domain, weight, cluster)
    alone = selector.fit(X, y, domain, weight, cluster)
    assert model.selector_.effects_.equals(alone.effects_)


def test_weights_travel_through_pipelines(rows):
    X, y, domain, weight, cluster = rows
    alone = EffectClassifier().fit(StandardScaler().fit_transform(X), y, domain, weight, cluster)
    known = {"sample_domain": domain, "sample_weight": weight, "cluster": cluster}
    grid = {"effectclassifier__threshold": ["calibrated"]}
    with sklearn.config_context(enable_metadata_routing=True):
        model = EffectClassifier().set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, model).fit(X, y, **known)
        np.testing.assert_allclose(pipeline[-1].coef_, alone.coef_)
        search = GridSearchCV(pipeline, grid, cv=2).fit(X, y, **known)
        np.testing.assert_allclose(search.best_estimator_[-1].coef_, alone.coef_)
    # Other libraries may have turned routing on.
    with sklearn.config_context(enable_metadata_routing=False):
        pipeline = make_pipeline(StandardScaler(), EffectClassifier())
        pipeline.fit(X, y, **{f"effectclassifier__{name}": value for name, value in known.items()})
        np.testing.assert_allclose(pipeline[-1].coef_, alone.coef_)
