"""The classifier: scikit-learn's contract, its weights by hand, and what it says of new rows."""

import os
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from ddml_fs import CausalFeatureSelector, EffectClassifier
from ddml_fs.datasets import fetch_amazon_reviews, make_domain_data
from ddml_fs.empirical_bayes import PRIORS, learn_prior

TWO_VALUED = np.arange(12) < 6  # columns of the rows drawn below


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
    """Of the bootstrap for joint intervals, on which no weight depends."""
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


def weights_by_hand(model, X, two_valued):
    """E[θ | θ̂] per unit of a feature, from the table of effects; the classifier's up to a slope."""
    table = model.selector_.effects_
    step = np.where(two_valued, np.ptp(X, axis=0), X.std(0))
    effect, stderr = table["effect"].to_numpy() * step, table["stderr"].to_numpy() * step
    prior = learn_prior(effect, stderr, model.prior)
    if model.prior == "mixture":
        return prior.posterior_mean(effect, stderr) / step
    U, I = effect / stderr**2, 1 / stderr**2
    return U / (I + 1 / prior.tau**2) / step


@parametrize_with_checks([EffectClassifier()])
def test_scikit_learn_contract(estimator, check, monkeypatch):
    monkeypatch.setattr("ddml_fs.empirical_bayes.EM_STEPS", 5)  # hundreds of fits
    check(estimator)


# --- The weights ---


@pytest.mark.parametrize("prior", PRIORS)
def test_weights_are_shrunken_effects(rows, prior):
    """Of a step from 0 to 1 for 0/1 columns, of a standard deviation for others."""
    model = EffectClassifier(prior=prior).fit(*rows)
    slope = model.coef_[0] / weights_by_hand(model, rows[0], TWO_VALUED)
    assert slope[0] > 0
    np.testing.assert_allclose(slope, slope[0], rtol=1e-3)
    assert len(model.priors_) == 1


def test_weights_of_several_domains_are_shrunken_means(domains):
    """The table of effects holds random-effects means, which "random" takes."""
    source = domains.sample_domain > 0
    model = EffectClassifier(prior="normal", pooling="random")
    model.fit(domains.X, domains.y, domains.sample_domain)
    by_hand = weights_by_hand(model, domains.X[source], np.zeros(20, bool))
    np.testing.assert_allclose(
        model.coef_[0] / np.linalg.norm(model.coef_),
        by_hand / np.linalg.norm(by_hand),
        atol=1e-4,
    )
    common = clone(model).set_params(pooling="common")
    common.fit(domains.X, domains.y, domains.sample_domain)
    assert np.corrcoef(common.coef_[0], model.coef_[0])[0, 1] < 0.99  # it does matter here


def test_poolings_are_one_with_one_domain(rows, model):
    assert model.pooling_ == "common"
    random = EffectClassifier(pooling="random").fit(*rows)
    np.testing.assert_allclose(random.coef_, model.coef_, rtol=1e-6)


def test_units_change_weights_but_not_predictions(rows, model):
    X, y = rows
    other = X.copy()
    other[:, 6] *= 1000
    scaled = EffectClassifier().fit(other, y)
    assert scaled.coef_[0, 6] == pytest.approx(model.coef_[0, 6] / 1000, rel=1e-3)
    np.testing.assert_allclose(scaled.coef_[0, 7:], model.coef_[0, 7:], rtol=1e-3)
    np.testing.assert_allclose(scaled.predict_proba(other), model.predict_proba(X), atol=1e-4)


def test_codes_of_two_values_do_not_matter(rows, model):
    X, y = rows
    other = X.copy()
    other[:, 1] = np.where(X[:, 1] > 0, 5.0, -5.0)
    coded = EffectClassifier().fit(other, y)
    assert coded.coef_[0, 1] == pytest.approx(model.coef_[0, 1] / 10, rel=0.01)
    np.testing.assert_allclose(coded.predict_proba(other), model.predict_proba(X), atol=0.01)


@pytest.mark.parametrize("column", [1, 6])
def test_offsets_do_not_matter(rows, model, column):
    X, y = rows
    other = X.copy()
    other[:, column] += 100
    moved = EffectClassifier().fit(other, y)
    np.testing.assert_allclose(moved.coef_, model.coef_, rtol=1e-3)
    np.testing.assert_allclose(moved.predict_proba(other), model.predict_proba(X), atol=1e-3)


def test_copies_share_a_weight(rows, model):
    """Also two-valued ones in other units; predictions are those without the copies."""
    X, y = rows
    wide = np.column_stack([X, X[:, 6], 100 * X[:, 1], X[:, 6]])
    copied = EffectClassifier().fit(wide, y)
    np.testing.assert_allclose(copied.predict_proba(wide), model.predict_proba(X), atol=1e-4)
    np.testing.assert_allclose(copied.coef_[0, [6, 12, 14]], model.coef_[0, 6] / 3, rtol=1e-3)
    np.testing.assert_allclose(
        copied.coef_[0, [1, 13]] * [1, 100], model.coef_[0, 1] / 2, rtol=1e-3
    )


def test_constants_have_no_weight(rows, model):
    X, y = rows
    wide = np.column_stack([np.full(len(X), 3.0), X, np.zeros(len(X))])
    fitted = EffectClassifier().fit(wide, y)
    assert fitted.coef_[0, 0] == fitted.coef_[0, -1] == 0
    np.testing.assert_allclose(fitted.coef_[:, 1:-1], model.coef_, rtol=1e-3)


@pytest.mark.parametrize("nuisance", ["ridge", "shrunken"])
def test_selected_features_alone_have_weights(rows, nuisance):
    X, y = rows
    selector = CausalFeatureSelector(4, nuisance=nuisance, random_state=0)
    model = EffectClassifier(selector).fit(X, y)
    np.testing.assert_array_equal(model.coef_[0] != 0, model.selector_.get_support())
    assert np.count_nonzero(model.coef_) == 4
    assert model.score(X, y) > 0.6
    assert not hasattr(selector, "scores_")  # what was given is left alone
    assert selector.task == "auto"


def test_nothing_selected():
    X = np.random.default_rng(0).standard_normal((200, 5))
    y = np.arange(200) % 4 == 0
    selector = ridge("fdr", fdr_level=1e-9)
    model = EffectClassifier(selector, threshold="calibrated").fit(X, y)
    assert not model.coef_.any()
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 0.25, atol=1e-3)


# --- Labels, containers and domains ---


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
    assert len(model.priors_) == len(model.intercept_) == 3
    np.testing.assert_allclose(chance.sum(1), 1)
    np.testing.assert_array_equal(model.classes_[chance.argmax(1)], model.predict(X[600:]))
    np.testing.assert_array_equal(model.coef_[:, :3].argmax(0), [0, 1, 2])
    assert model.score(X[600:], y[600:]) > 0.7
    assert log_loss(y[600:], chance) < 0.75 * np.log(3)


def test_chances_far_from_all_classes():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    model = EffectClassifier(prior="normal").fit(X, X.argmax(1))
    far = np.linalg.solve(model.coef_, np.full(3, -1000.0))  # where all log-odds are about −1000
    np.testing.assert_allclose(model.predict_proba(far[None]).sum(1), 1)


def test_targets_are_never_looked_at(domains):
    """Rows of targets change nothing, whatever they hold."""
    rng = np.random.default_rng(0)
    X, y, target = domains.X.copy(), domains.y.copy(), domains.sample_domain < 0
    X[target], y[target] = 100 * rng.standard_normal(X[target].shape), 7
    seen, changed, gone = (
        EffectClassifier(prior="normal").fit(*data)
        for data in (
            (domains.X, domains.y, domains.sample_domain),
            (X, y, domains.sample_domain),
            (X[~target], y[~target], domains.sample_domain[~target]),
        )
    )
    for other in (changed, gone):
        assert list(other.classes_) == [0, 1]
        assert other.pooling_ == seen.pooling_
        np.testing.assert_array_equal(other.coef_, seen.coef_)
        np.testing.assert_array_equal(other.intercept_, seen.intercept_)


@pytest.mark.parametrize("label", [np.nan, 0.5])
def test_labels_of_targets_may_be_unknown(domains, label):
    y = np.where(domains.sample_domain < 0, label, domains.y)
    EffectClassifier(prior="normal").fit(domains.X, y, domains.sample_domain)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_unseen_domain(seed):
    """Consequences change their signs there: pooling that knows of it does better."""
    data = make_domain_data(random_state=seed)
    target = data.sample_domain < 0
    auto, common = (
        EffectClassifier(pooling=pooling).fit(data.X, data.y, data.sample_domain)
        for pooling in ("auto", "common")
    )
    assert auto.pooling_ == "random"
    plain = LogisticRegression().fit(data.X[~target], data.y[~target])
    ours, *others = (m.score(data.X[target], data.y[target]) for m in (auto, common, plain))
    assert ours > (0.80, 0.71, 0.73)[seed]
    assert ours > max(others) + 0.02


# --- Chances ---


def calibration_error(chance, y, bins=10):
    """Mean difference of the chances and the shares, in tenths of the rows by their chance."""
    parts = np.array_split(np.argsort(chance), bins)
    return np.mean([abs(chance[part].mean() - y[part].mean()) for part in parts])


@pytest.mark.parametrize(
    ("threshold", "offset"), [("share", 0.0), ("calibrated", 0.0), ("calibrated", -2.0)]
)
def test_chances_of_new_rows(threshold, offset):
    """They beat the constant, and are about the shares.

    A share of a tenth of 8000 rows is off by √(p (1 − p) / 800) < 0.018, of which the mean absolute
    value is 0.8 times; slope and threshold, from 800 rows, have 2/√800 = 0.07 each on the scale of
    the log-odds, so 0.25 · 0.07 ≈ 0.018 on that of chances. With twice both: 0.06.
    """
    X, y = draw(800, 1, offset)
    new, truth = draw(8000, 2, offset)
    model = EffectClassifier(threshold=threshold).fit(X, y)
    chance = model.predict_proba(new)
    np.testing.assert_allclose(chance.sum(1), 1)
    np.testing.assert_array_equal(chance.argmax(1), model.predict(new))
    assert log_loss(truth, chance) < 0.8 * log_loss(truth, np.full(len(truth), y.mean()))
    assert calibration_error(chance[:, 1], truth) < 0.06


def test_chances_of_many_weak_effects():
    """With 200 features in 300 rows, the rows' own scores would make chances too sure.

    Regressed on the log-odds, labels of new rows have slope 1. The slope given is that of a score
    with a log-odds ratio of about 0.5 a standard deviation, known to 2/√300 = 0.12, a quarter of
    it; here twice that for the median of five. Scores with the rows' own evidence give 0.25.
    """
    slopes = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, theta = rng.standard_normal((4300, 200)), 0.1 * rng.standard_normal(200)
        y = rng.binomial(1, expit(X @ theta))
        model = EffectClassifier(prior="normal", threshold="calibrated").fit(X[:300], y[:300])
        odds = model.decision_function(X[300:])[:, None]
        slopes.append(LogisticRegression(C=np.inf).fit(odds, y[300:]).coef_[0, 0])
    assert 0.5 < np.median(slopes) < 1.5


def test_chances_of_a_rare_label_and_a_weak_effect():
    """All chances are below one half; their mean is the share, here ± 4 sd of 800 rows'."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4800, 5))
    y = rng.binomial(1, expit(0.3 * X[:, 0] - 2))
    model = EffectClassifier(threshold="calibrated").fit(X[:800], y[:800])
    chance = model.predict_proba(X[800:])[:, 1]
    assert not model.predict(X[800:]).any()
    assert abs(chance.mean() - 0.12) < 4 * np.sqrt(0.12 * 0.88 / 800)
    assert log_loss(y[800:], chance) < 1.01 * log_loss(y[800:], np.full(4000, y[:800].mean()))


@pytest.mark.parametrize("offset", [-2.0, 0.0, 1.5])
def test_share_of_the_source(offset):
    """As many rows are called positive as are, up to those near the threshold.

    The threshold is a quantile of scores without the row's own fold. With it, weights change by
    θ̂ − θ̂₋ₖ, whose variance is (5/4 − 1) s² with five folds, and a score by δ = ½ √(Σ x² s²) or so;
    no more rows cross the threshold than lie within δ of it, and half of those one way.
    """
    X, y = draw(800, 3, offset)
    model = EffectClassifier(prior="normal", threshold="share").fit(X, y)
    slope = model.coef_[0, 6] / weights_by_hand(model, X, TWO_VALUED)[6]
    stderr = model.selector_.effects_["stderr"].to_numpy()
    change = 0.5 * slope * np.sqrt((X - X.mean(0)) ** 2 @ stderr**2)
    near = np.mean(np.abs(model.decision_function(X)) < change)
    assert near < 0.2
    assert abs(model.predict(X).mean() - y.mean()) < near / 2


def test_permuted_labels_say_nothing():
    """Chances are near one half.

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


# --- The ecosystem ---


def test_domains_travel_through_a_pipeline(domains):
    X, y, domain = domains.X, domains.y, domains.sample_domain
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), EffectClassifier(prior="normal"))
        pipeline.fit(X, y, sample_domain=domain)
    assert list(pipeline[-1].selector_.domains_) == [1, 2, 3]
    alone = EffectClassifier(prior="normal").fit(StandardScaler().fit_transform(X), y, domain)
    np.testing.assert_allclose(pipeline[-1].coef_, alone.coef_)


def test_clone_and_pickle(rows, model):
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(rows[0]), model.predict_proba(rows[0]))
    assert len(pickle.dumps(model)) < 100_000  # no rows of the data are kept
    options = {"prior": "normal", "threshold": "calibrated", "pooling": "common"}
    copy = clone(EffectClassifier(ridge(3), **options).fit(*rows))
    assert not hasattr(copy, "coef_")
    assert {name: getattr(copy, name) for name in options} == options
    assert copy.selector.n_features_to_select == 3


def test_names_of_features(rows):
    X, y = rows
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(12)])
    model = EffectClassifier().fit(frame, y)
    assert list(model.feature_names_in_) == list(frame)
    assert list(model.selector_.effects_.index) == list(frame)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[frame.columns[::-1]])
    model.fit(X, y)
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 12


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"prior": "flat"}, "prior must be one of .* got 'flat'"),
        ({"threshold": 0.5}, "threshold must be one of .* got 0.5"),
        ({"pooling": "fixed"}, "pooling must be one of .* got 'fixed'"),
        ({"selector": LogisticRegression()}, "selector must be a CausalFeatureSelector or None"),
        ({"selector": CausalFeatureSelector}, "selector must be a CausalFeatureSelector or None"),
        ({"selector": ridge(13)}, "at most the number of features .12., got 13"),
    ],
)
def test_bad_options(rows, options, words):
    with pytest.raises(ValueError, match=words):
        EffectClassifier(**options).fit(*rows)


def test_bad_data(rows, model):
    X, y = rows
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        EffectClassifier().fit(X, X[:, 6])
    with pytest.raises(ValueError, match="one class"):
        EffectClassifier().fit(X, np.ones(len(y)))
    with pytest.raises(ValueError, match="targets alone"):
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
    """Mean accuracy in the domain left out; of the cheaper settings, for the time that it takes."""
    selector = CausalFeatureSelector(
        1.0, nuisance="ridge", covariates="all", n_folds=2, random_state=0
    )
    scores = []
    for d in range(1, 5):
        target = reviews.sample_domain == d
        domain = np.where(target, -d, reviews.sample_domain)
        model = EffectClassifier(selector, prior="normal")
        model.fit(reviews.X, reviews.y, sample_domain=domain)
        scores.append(model.score(reviews.X[target], reviews.y[target]))
    assert np.mean(scores) > 0.8150


def test_a_refit_leaves_nothing_of_the_earlier_fit():
    data = make_domain_data(3, 200, 4, 2, 6, n_targets=0, random_state=0)
    frame = pd.DataFrame(data.X, columns=[f"a{j}" for j in range(data.X.shape[1])])
    model = EffectClassifier().fit(frame, data.y, sample_domain=data.sample_domain)
    assert "feature_names_in_" in vars(model)
    model.fit(data.X, data.y)
    fresh = EffectClassifier().fit(data.X, data.y)
    assert vars(model).keys() == vars(fresh).keys()
    np.testing.assert_array_equal(model.coef_, fresh.coef_)
