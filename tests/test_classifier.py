"""The classifier: its fit against slow twins, what it says of new rows, scikit-learn's contract."""

import os
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from ddml_fs import CausalFeatureSelector, EffectClassifier
from ddml_fs.classifier import PENALTIES, shift, units
from ddml_fs.datasets import fetch_amazon_reviews, make_domain_data
from ddml_fs.effects_path import effects_path, invariance_of, ridge_path
from ddml_fs.engine.ridge import logistic_fit


def ridge(n_features=1.0, **options):
    return CausalFeatureSelector(n_features, nuisance="ridge", random_state=0, **options)


def draw(n_samples, seed, offset=0.0):
    """Six 0/1 columns, of which one is rare, and six continuous ones in units of their own."""
    rng = np.random.default_rng(seed)
    X = np.sqrt(0.3) * rng.standard_normal((n_samples, 1)) + rng.standard_normal((n_samples, 12))
    X[:, :6] = X[:, :6] > 0
    X[:, 0] = rng.uniform(size=n_samples) < 0.05
    theta = np.array([2.0, 1, -1, 0.5, 0, 0, 1, -1, 0.5, 0.2, 0, 0])
    y = rng.binomial(1, expit(X @ theta - 0.35 + offset))
    X[:, 6:] *= [1, 0.1, 10, 1, 100, 1]
    return X, y


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    """Of the selector's bootstrap for joint intervals, on which no weight depends."""
    monkeypatch.setattr("ddml_fs.selector.N_DRAWS", 10)


@pytest.fixture(scope="module")
def rows():
    return draw(800, 0)


@pytest.fixture(scope="module")
def model(rows):
    return EffectClassifier().fit(*rows)


@pytest.fixture(scope="module")
def domains():
    """Three sources and a target."""
    return make_domain_data(3, 200, 5, 5, 10, random_state=0)


NOT_FOR_US = dict.fromkeys(
    [
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ],
    "folds are random, copies of a row fall into several of them, and one class has a single row",
)


@parametrize_with_checks([EffectClassifier()], expected_failed_checks=lambda estimator: NOT_FOR_US)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


# --- The fit ---


def one_fit(A, y, penalty, domain=None):
    domain = np.zeros(len(y), int) if domain is None else domain
    return next(ridge_path(A, y.astype(float), domain, [penalty]))


def test_no_penalty_is_logistic_regression(rows):
    X, y = rows
    A = StandardScaler().fit_transform(X)
    coef, (level,) = one_fit(A, y, 1e-9)
    plain = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000).fit(A, y)
    np.testing.assert_allclose(coef, plain.coef_[0], atol=2e-3)
    assert level == pytest.approx(plain.intercept_[0], abs=2e-3)


def test_large_penalty_gives_marginal_effects(rows):
    """Each coefficient is the covariance of its own column with the label, over λ."""
    X, y = rows
    A = (X - X.mean(0)) / units(X)
    coef, _ = one_fit(A, y, 1e3)
    np.testing.assert_allclose(coef, A.T @ (y - y.mean()) / len(y) / 1e3, rtol=0.02, atol=1e-7)


@pytest.mark.parametrize("penalty", [1.0, 0.1, 0.001])
def test_path_equals_newton(rows, penalty):
    """With one domain, against the closed-form steps of the ridge nuisances."""
    X, y = rows
    A = StandardScaler().fit_transform(X)
    path = [*PENALTIES[PENALTIES > penalty], penalty]
    *_, (coef, (level,)) = ridge_path(A, y.astype(float), np.zeros(len(y), int), path)
    intercept, beta = logistic_fit(A, y, penalty)
    np.testing.assert_allclose(coef, beta, atol=2e-3)
    assert level == pytest.approx(intercept, abs=2e-3)


def test_intercepts_of_domains(rows):
    """Against logistic regression on indicators of the domains."""
    X, y = rows
    A, domain = StandardScaler().fit_transform(X), np.arange(len(y)) % 3
    y = np.where((domain == 1) & (np.arange(len(y)) % 4 > 0), 1, y)  # a base rate of its own
    coef, _ = one_fit(A, y, 1e-9, domain)
    plain = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000, fit_intercept=False)
    plain.fit(np.column_stack([A, np.eye(3)[domain]]), y)
    np.testing.assert_allclose(coef, plain.coef_[0, :12], atol=2e-3)


def test_rows_solve_equals_columns_solve():
    """Rows that come four times weigh alike, but are then more than the columns."""
    rng = np.random.default_rng(0)
    A, domain = rng.standard_normal((60, 200)), np.arange(60) % 2
    y = (A[:, 0] + rng.standard_normal(60) > 0).astype(int)
    for penalty in (1.0, 0.01):
        wide = one_fit(A, y, penalty, domain)
        tall = one_fit(np.tile(A, (4, 1)), np.tile(y, 4), penalty, np.tile(domain, 4))
        np.testing.assert_allclose(wide[0], tall[0], atol=1e-3)
        np.testing.assert_allclose(wide[1], tall[1], atol=1e-3)


def test_flipping_effects_shrink():
    """A column whose effect changes sign between domains is hardly used, in contrast to ridge."""
    rng = np.random.default_rng(0)
    X, domain = rng.standard_normal((1500, 3)), np.arange(1500) % 3
    sign = np.where(domain == 0, -0.5, 1.5)
    y = rng.binomial(1, expit(X[:, 0] + sign * X[:, 1])).astype(float)
    invariance = invariance_of(X, y, domain)
    assert invariance[0] == invariance[2] == 1
    assert invariance[1] < 0.2
    weights, _ = next(effects_path(X, y, domain, [0.1]))
    plain, _ = one_fit(X, y, 0.1, domain)
    assert weights[1] < 0.1 * weights[0]
    assert plain[1] > 0.5 * plain[0]
    model = EffectClassifier().fit(X, y, domain)
    np.testing.assert_allclose(model.invariance_[0], invariance, atol=0.01)


def test_unit_of_the_penalty():
    """sd² + 0.01 step²: a column of 1 % ones has half its penalty from the step."""
    X = np.column_stack(
        [np.arange(100) == 0, np.arange(100.0), np.where(np.arange(100) < 50, 3, 1)]
    )
    sd = X.std(0)
    np.testing.assert_allclose(
        units(X) ** 2, [sd[0] ** 2 + 0.01, 1.01 * sd[1] ** 2, sd[2] ** 2 + 0.04]
    )


# --- The weights ---


def test_fitted_attributes(rows, model):
    assert model.coef_.shape == model.invariance_.shape == (1, 12)
    assert model.intercept_.shape == model.penalty_.shape == (1,)
    assert model.penalty_[0] in PENALTIES
    assert (model.invariance_ == 1).all()  # one domain
    assert not hasattr(model, "selector_")
    X = rows[0]
    odds = X @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), odds)


@pytest.mark.parametrize(("factor", "offset"), [(1000, 0), (1, 100), (-10, 5)])
@pytest.mark.parametrize("column", [1, 6])
def test_units_do_not_matter(rows, model, column, factor, offset):
    X, y = rows
    other = X.copy()
    other[:, column] = factor * other[:, column] + offset
    scaled = EffectClassifier().fit(other, y)
    change = np.where(np.arange(12) == column, factor, 1)
    np.testing.assert_allclose(
        scaled.coef_[0] * change * X.std(0), model.coef_[0] * X.std(0), atol=0.01
    )
    np.testing.assert_allclose(scaled.predict_proba(other), model.predict_proba(X), atol=0.01)


def test_copies_share_a_weight(rows, model):
    X, y = rows
    wide = np.column_stack([X, X[:, 6], 100 * X[:, 1], X[:, 6]])
    copied = EffectClassifier().fit(wide, y)
    np.testing.assert_allclose(copied.coef_[0, [12, 14]], copied.coef_[0, 6], rtol=1e-6)
    assert copied.coef_[0, 13] * 100 == pytest.approx(copied.coef_[0, 1], rel=1e-6)
    np.testing.assert_allclose(copied.predict_proba(wide), model.predict_proba(X), atol=0.05)


def test_constants_have_no_weight(rows, model):
    X, y = rows
    wide = np.column_stack([np.full(len(X), 0.1), X, np.zeros(len(X))])
    fitted = EffectClassifier().fit(wide, y)
    assert fitted.coef_[0, 0] == fitted.coef_[0, -1] == 0
    np.testing.assert_allclose(fitted.coef_[:, 1:-1], model.coef_, rtol=1e-6)


@pytest.mark.parametrize("nuisance", ["ridge", "auto"])
def test_selected_features_alone_have_weights(rows, nuisance):
    X, y = rows
    selector = CausalFeatureSelector(4, nuisance=nuisance, random_state=0)
    model = EffectClassifier(selector).fit(X, y)
    np.testing.assert_array_equal(model.coef_[0] != 0, model.selector_.get_support())
    assert np.count_nonzero(model.coef_) == 4
    assert model.score(X, y) > 0.6
    assert not hasattr(selector, "scores_")  # what was given is left alone
    assert selector.task == "auto"
    chosen = model.selector_.get_support()
    alone = EffectClassifier().fit(X[:, chosen], y)
    np.testing.assert_allclose(model.coef_[:, chosen], alone.coef_)


def test_nothing_selected():
    X = np.random.default_rng(0).standard_normal((200, 5))
    y = np.arange(200) % 4 == 0
    model = EffectClassifier(ridge("fdr", fdr_level=1e-9)).fit(X, y)
    assert not model.coef_.any()
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 0.25, atol=1e-3)


# --- Labels, containers and domains ---


@pytest.fixture(scope="module")
def mixed():
    """A DataFrame with text, a category, truth values and missing values, and its labels."""
    rng = np.random.default_rng(0)
    shop, number = rng.choice(["a", "b", "c"], 600), rng.standard_normal(600)
    y = rng.binomial(1, expit(4.0 * (shop == "b") + 2.0 * number - 1.0))
    frame = pd.DataFrame(
        {
            "number": np.where(rng.uniform(size=600) < 0.1, np.nan, number),
            "shop": np.where(rng.uniform(size=600) < 0.05, None, shop),
            "size": pd.Categorical(rng.choice(["small", "large"], 600)),
            "open": rng.uniform(size=600) < 0.5,
        },
        index=rng.permutation(600),
    )
    return frame, y


def test_text_and_missing_values(mixed):
    frame, y = mixed
    model = EffectClassifier().fit(frame[:400], y[:400])
    assert list(model.feature_names_in_) == list(frame)
    assert model.coef_.shape == (1, 2 + 4 + 1 + 1)  # with indicators of what is missing
    assert model.score(frame[400:], y[400:]) > 0.7
    new = frame[400:].copy()
    new.iloc[0, :2] = [np.nan, "unheard of"]
    assert np.isfinite(model.predict_proba(new)).all()


def test_a_selector_of_text_and_missing_values(mixed):
    frame, y = mixed
    model = EffectClassifier(ridge(2)).fit(frame, y)
    assert list(frame.columns[model.selector_.get_support()]) == ["number", "shop"]
    assert (model.coef_[0, 6:] == 0).all()
    assert (model.coef_[0, 2:6] != 0).any()


def test_missing_numbers_of_an_array(rows):
    X, y = rows
    holes = np.where(np.random.default_rng(0).uniform(size=X.shape) < 0.05, np.nan, X)
    model = EffectClassifier().fit(holes, y)
    assert model.n_features_in_ == 12
    assert model.coef_.shape == (1, 24)
    assert np.isfinite(model.predict_proba(holes)).all()


def test_sparse_equals_dense(rows):
    X, y = rows
    X = np.where(np.random.default_rng(0).uniform(size=X.shape) < 0.6, 0, X)
    dense, csr = EffectClassifier().fit(X, y), EffectClassifier().fit(sparse.csr_matrix(X), y)
    for other in (X, sparse.csr_matrix(X), sparse.csc_array(X)):
        np.testing.assert_allclose(csr.predict_proba(other), dense.predict_proba(X), atol=1e-6)


def test_labels_of_any_name(rows, model):
    X, y = rows
    words = np.array(["bad", "good"])[y]
    named = EffectClassifier().fit(X, words)
    assert list(named.classes_) == ["bad", "good"]
    np.testing.assert_array_equal(named.coef_, model.coef_)
    np.testing.assert_array_equal(named.predict(X), named.classes_[model.predict(X)])
    np.testing.assert_array_equal(named.predict(X) == "good", named.decision_function(X) > 0)


def test_three_classes():
    """Each cause has a class of its own; noise makes the best accuracy less than 1."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1200, 6))
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3] + 0.5 * rng.standard_normal((1200, 3)), 1)]
    model = EffectClassifier().fit(X[:600], y[:600])
    chance = model.predict_proba(X[600:])
    assert model.coef_.shape == (3, 6)
    assert model.decision_function(X[600:]).shape == chance.shape == (600, 3)
    assert len(model.penalty_) == len(model.intercept_) == 3
    np.testing.assert_allclose(chance.sum(1), 1)
    np.testing.assert_array_equal(model.classes_[chance.argmax(1)], model.predict(X[600:]))
    np.testing.assert_array_equal(model.coef_[:, :3].argmax(0), [0, 1, 2])
    assert model.score(X[600:], y[600:]) > 0.7
    assert log_loss(y[600:], chance) < 0.75 * np.log(3)


def test_chances_far_from_all_classes():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    model = EffectClassifier().fit(X, X.argmax(1))
    far = np.linalg.solve(model.coef_, np.full(3, -1000.0))  # where all log-odds are about −1000
    np.testing.assert_allclose(model.predict_proba(far[None]).sum(1), 1)


def test_targets_are_never_looked_at(domains):
    """Rows of targets change nothing, whatever they hold."""
    rng = np.random.default_rng(0)
    X, y, target = domains.X.copy(), domains.y.copy(), domains.sample_domain < 0
    X[target], y[target] = 100 * rng.standard_normal(X[target].shape), 7
    seen, changed, gone = (
        EffectClassifier().fit(*data)
        for data in (
            (domains.X, domains.y, domains.sample_domain),
            (X, y, domains.sample_domain),
            (X[~target], y[~target], domains.sample_domain[~target]),
        )
    )
    for other in (changed, gone):
        assert list(other.classes_) == [0, 1]
        np.testing.assert_array_equal(other.coef_, seen.coef_)
        np.testing.assert_array_equal(other.intercept_, seen.intercept_)


@pytest.mark.parametrize("label", [np.nan, 0.5])
def test_labels_of_targets_may_be_unknown(domains, label):
    y = np.where(domains.sample_domain < 0, label, domains.y)
    EffectClassifier().fit(domains.X, y, domains.sample_domain)


def test_unseen_domain():
    """Consequences change their signs there: shrinking unstable effects does better."""
    ours, others = [], []
    for seed in range(3):
        data = make_domain_data(random_state=seed)
        target = data.sample_domain < 0
        model = EffectClassifier().fit(data.X, data.y, data.sample_domain)
        plain = LogisticRegression().fit(data.X[~target], data.y[~target])
        ours.append(model.score(data.X[target], data.y[target]))
        others.append(plain.score(data.X[target], data.y[target]))
    assert np.mean(ours) > np.mean(others) + 0.05


def test_a_class_of_one_domain_alone(domains):
    """No domain can be left out then: folds choose the penalty."""
    X, domain = domains.X, np.abs(domains.sample_domain)
    y = np.where(domain == 1, 2 * domains.y, domains.y)
    model = EffectClassifier().fit(X, y, domain)
    assert model.coef_.shape == (3, 20)
    assert model.score(X, y) > 0.5


def test_many_domains(rows):
    X, y = rows
    model = EffectClassifier().fit(X, y, np.arange(800) % 25)
    assert model.score(X, y) > 0.7


# --- Probabilities ---


def calibration_error(chance, y, bins=10):
    """Mean difference of probabilities and shares, in tenths of the rows by their probability."""
    parts = np.array_split(np.argsort(chance), bins)
    return np.mean([abs(chance[part].mean() - y[part].mean()) for part in parts])


@pytest.mark.parametrize(
    ("threshold", "offset"), [("share", 0.0), ("calibrated", 0.0), ("calibrated", -2.0)]
)
def test_probabilities_of_new_rows(threshold, offset):
    """They beat the constant, and are about the shares.

    A share of a tenth of 8000 rows is off by √(p (1 − p) / 800) < 0.018, of which the mean absolute
    value is 0.8 times; slope and threshold, from 800 rows, have 2/√800 = 0.07 each on the scale of
    the log-odds, so 0.25 · 0.07 ≈ 0.018 on that of probabilities. With twice both: 0.06.
    """
    X, y = draw(800, 1, offset)
    new, truth = draw(8000, 2, offset)
    model = EffectClassifier(threshold=threshold).fit(X, y)
    chance = model.predict_proba(new)
    np.testing.assert_allclose(chance.sum(1), 1)
    np.testing.assert_array_equal(chance.argmax(1), model.predict(new))
    assert log_loss(truth, chance) < 0.8 * log_loss(truth, np.full(len(truth), y.mean()))
    assert calibration_error(chance[:, 1], truth) < 0.06


def test_many_weak_effects():
    """With 200 features in 300 rows, the rows' own scores would make probabilities too sure.

    Regressed on the log-odds, labels of new rows have slope 1. The slope given is that of a score
    with a log-odds ratio of about 0.5 a standard deviation, known to 2/√300 = 0.12, a quarter of
    it; here twice that for the median of five.
    """
    slopes = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, theta = rng.standard_normal((4300, 200)), 0.1 * rng.standard_normal(200)
        y = rng.binomial(1, expit(X @ theta))
        odds = EffectClassifier().fit(X[:300], y[:300]).decision_function(X[300:])[:, None]
        slopes.append(LogisticRegression(C=np.inf).fit(odds, y[300:]).coef_[0, 0])
    assert 0.5 < np.median(slopes) < 1.5


def rare(threshold):
    """Accuracies with 5 % ones: of the model, and of the constant answer; the probabilities."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 5))
    y = rng.binomial(1, expit(0.5 * X[:, 0] - 3.05))
    model = EffectClassifier(threshold=threshold).fit(X[:1000], y[:1000])
    chance = model.predict_proba(X[1000:])[:, 1]
    return model.score(X[1000:], y[1000:]), 1 - y[1000:].mean(), chance


def test_base_rate():
    """A rare class costs no accuracy; the mean probability is its share, ± 4 sd of 1000 rows'."""
    accuracy, constant, chance = rare("calibrated")
    assert accuracy >= constant
    assert abs(chance.mean() - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 1000)


def test_share_of_a_rare_class():
    """It is predicted as often as it occurs, and accuracy is less than that of the constant."""
    accuracy, constant, chance = rare("share")
    assert accuracy < constant - 0.02
    assert 0.02 < (chance > 0.5).mean() < 0.08


@pytest.mark.parametrize("offset", [-2.0, 0.0, 1.5])
def test_share_of_the_source(offset):
    """The threshold comes from held-out scores; the fitted ones are a little wider."""
    X, y = draw(800, 3, offset)
    model = EffectClassifier(threshold="share").fit(X, y)
    assert abs(model.predict(X).mean() - y.mean()) < 0.03


def test_permuted_labels_say_nothing():
    """Probabilities are near one half.

    The slope of a standardised score that says nothing has a standard deviation of 2/√n: log-odds
    of fresh rows spread by less than 4 of these.
    """
    X, _ = draw(600, 4)
    new, _ = draw(1000, 5)
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 300)
    for _ in range(5):
        model = EffectClassifier().fit(X, rng.permutation(y))
        assert model.decision_function(new).std() < 4 * 2 / np.sqrt(600)
        assert abs(model.predict_proba(new)[:, 1].mean() - 0.5) < 0.03


@pytest.mark.parametrize("rate", [0.01, 0.3, 0.9])
def test_target_rate(rows, model, rate):
    """The mean probability is the rate, by a change of the intercept alone."""
    X, y = rows
    known = EffectClassifier(target_rate=rate).fit(X, y)
    assert known.predict_proba(X)[:, 1].mean() == pytest.approx(rate, abs=1e-6)
    np.testing.assert_array_equal(known.coef_, model.coef_)
    moved = known.decision_function(X) - model.decision_function(X)
    np.testing.assert_allclose(moved, moved[0])
    np.testing.assert_array_equal(known.predict(X), known.predict_proba(X).argmax(1))
    later = clone(model).fit(X, y).set_params(target_rate=rate)
    np.testing.assert_array_equal(later.predict_proba(X), known.predict_proba(X))


def test_target_rate_helps_where_the_base_rate_differs(rows):
    new, truth = draw(4000, 7, offset=-2.5)
    plain, known = (
        EffectClassifier(target_rate=rate).fit(*rows).score(new, truth)
        for rate in (None, truth.mean())
    )
    assert known > plain + 0.05


def test_shift_of_large_log_odds():
    odds = np.array([-1000.0, 1000.0, 0.0])
    assert expit(odds + shift(odds, 0.5)).mean() == pytest.approx(0.5)
    assert shift(np.zeros(3), 0.2) == pytest.approx(logit(0.2))


# --- The ecosystem ---


def test_domains_travel_through_a_pipeline(domains):
    X, y, domain = domains.X, domains.y, domains.sample_domain
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), EffectClassifier(ridge()))
        pipeline.fit(X, y, sample_domain=domain)
    assert list(pipeline[-1].selector_.domains_) == [1, 2, 3]
    alone = EffectClassifier().fit(StandardScaler().fit_transform(X), y, domain)
    np.testing.assert_allclose(pipeline[-1].coef_, alone.coef_)


def test_clone_and_pickle(rows, model):
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(rows[0]), model.predict_proba(rows[0]))
    assert len(pickle.dumps(model)) < 10_000  # no rows of the data are kept
    options = {"threshold": "share", "target_rate": 0.3}
    copy = clone(EffectClassifier(ridge(3), **options).fit(*rows))
    assert not hasattr(copy, "coef_")
    assert {name: getattr(copy, name) for name in options} == options
    assert copy.selector.n_features_to_select == 3


def test_names_of_features(rows):
    X, y = rows
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(12)])
    model = EffectClassifier().fit(frame, y)
    assert list(model.feature_names_in_) == list(frame)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[frame.columns[::-1]])


def test_a_refit_leaves_nothing_of_the_earlier_fit(domains):
    X, y = domains.X, domains.y
    frame = pd.DataFrame(X, columns=[f"a{j}" for j in range(20)])
    model = EffectClassifier(ridge(3)).fit(frame, y, sample_domain=domains.sample_domain)
    assert {"feature_names_in_", "selector_"} < vars(model).keys()
    model.set_params(selector=None).fit(X, y)
    fresh = EffectClassifier().fit(X, y)
    assert vars(model).keys() == vars(fresh).keys()
    np.testing.assert_array_equal(model.coef_, fresh.coef_)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"threshold": 0.5}, "threshold must be one of .* got 0.5"),
        ({"target_rate": 1}, "target_rate must be a number from .* got 1"),
        ({"target_rate": "half"}, "target_rate must be a number from .* got 'half'"),
        ({"selector": LogisticRegression()}, "selector must be a CausalFeatureSelector or None"),
        ({"selector": CausalFeatureSelector}, "selector must be a CausalFeatureSelector or None"),
        ({"selector": ridge(13)}, "at most the number of features .12., got 13"),
    ],
)
def test_bad_options(rows, options, words):
    with pytest.raises(ValueError, match=words):
        EffectClassifier(**options).fit(*rows)


def test_target_rate_needs_two_classes(rows):
    X = rows[0]
    with pytest.raises(ValueError, match="target_rate needs two classes in y, got 3"):
        EffectClassifier(target_rate=0.5).fit(X, np.arange(len(X)) % 3)


def test_bad_data(rows, model):
    X, y = rows
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        EffectClassifier().fit(X, X[:, 6])
    with pytest.raises(ValueError, match="one class"):
        EffectClassifier().fit(X, np.ones(len(y)))
    with pytest.raises(ValueError, match="got only targets"):
        EffectClassifier().fit(X, y, np.full(len(y), -1))
    for method in (model.predict, model.predict_proba, model.decision_function):
        with pytest.raises(ValueError, match="X has 11 features, but EffectClassifier is expect"):
            method(X[:, :11])


# --- Amazon reviews ---


@pytest.fixture(scope="module")
def reviews():
    if "DDML_FS_DATA" not in os.environ:
        pytest.skip("DDML_FS_DATA names no folder with amazon/*.mat")
    return fetch_amazon_reviews(download=False)


def test_reviews_of_one_domain(reviews):
    """Mean accuracy over the twelve pairs of a source and a target."""
    X, y, domain = reviews.X, reviews.y, reviews.sample_domain
    ours, plain = [], []
    for d in range(1, 5):
        for model, scores in ((EffectClassifier(), ours), (LogisticRegression(C=0.1), plain)):
            model.fit(X[domain == d], y[domain == d])
            others = [domain == other for other in range(1, 5) if other != d]
            scores += [model.score(X[rows], y[rows]) for rows in others]
    assert len(ours) == 12
    assert np.mean(plain) == pytest.approx(0.7697, abs=0.002)
    assert np.mean(ours) > 0.785
    assert np.mean(ours) > np.mean(plain) + 0.01


def test_reviews_of_three_domains(reviews):
    """Mean accuracy in the domain left out."""
    scores = []
    for d in range(1, 5):
        target = reviews.sample_domain == d
        domain = np.where(target, -d, reviews.sample_domain)
        model = EffectClassifier().fit(reviews.X, reviews.y, sample_domain=domain)
        scores.append(model.score(reviews.X[target], reviews.y[target]))
    assert np.mean(scores) > 0.8150
