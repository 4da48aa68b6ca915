"""Warnings: one sentence each that says what was found and what to do, and none for clean data."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from ddml_fs import DDML, CausalFeatureSelector, EffectClassifier
from ddml_fs.cautions import DDMLWarning, few_rows
from ddml_fs.datasets import make_domain_data, make_effect_data
from ddml_fs.linear import LinearGap, linear_gap, linear_moments
from ddml_fs.scores import PartiallyLinear


def caught(fit):
    """The warnings of a call, checked to be single sentences that point here."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        fit()
    for warning in found:
        assert warning.category is DDMLWarning
        assert warning.filename == __file__
        text = str(warning.message)
        assert text.endswith(".")
        assert ". " not in text
    return [str(warning.message) for warning in found]


def only(texts):
    (text,) = texts
    return text


@pytest.fixture(scope="module")
def clean():
    data = make_domain_data(4, 300, 3, 3, 4, n_targets=0, random_state=0)
    frame = pd.DataFrame(data.X, columns=list("abcdefghij"))
    return frame, data.y, data.sample_domain


def select(X, y, domain=None):
    return caught(lambda: CausalFeatureSelector(2, random_state=0).fit(X, y, domain))


# --- Rows in another order ---


def test_labels_in_another_order_are_told(clean):
    """Rows are matched by position: whoever sorts X alone would get a wrong answer, silently."""
    X, y, domain = clean
    y, domain = pd.Series(y), pd.Series(domain)
    assert select(X, y, domain) == []
    text = only(caught(lambda: EffectClassifier().fit(X.iloc[::-1], y, domain.iloc[::-1])))
    assert text.startswith("the rows of X and of y have the same labels in different orders")
    with_selector = EffectClassifier(selector=CausalFeatureSelector(2))
    only(caught(lambda: with_selector.fit(X.iloc[::-1], y, domain.iloc[::-1])))  # told once
    told = select(X.iloc[::-1], y, domain)
    assert [text.split(" have ")[0].split(" of ")[-1] for text in told] == ["sample_domain", "y"]
    # Other labels, or none, say nothing about the order.
    assert select(X, y.set_axis(range(5, len(y) + 5)), domain) == []
    assert select(X.iloc[::-1], y.iloc[::-1].to_numpy(), domain.iloc[::-1].to_numpy()) == []


def test_labels_in_another_order_are_told_of_an_effect():
    data = make_effect_data("binary", n_samples=200, n_features=10, random_state=0)
    X, treatment = pd.DataFrame(data.X), pd.Series(data.treatment)
    moved = X.sample(frac=1, random_state=0)
    text = only(caught(lambda: DDML("ridge").fit(moved, data.y, treatment=treatment)))
    assert "X and of treatment have" in text
    assert caught(lambda: DDML("ridge").fit(X, data.y, treatment=treatment)) == []


# --- Clean data ---


def test_clean_domains_give_no_warning(clean):
    assert select(*clean) == []
    assert caught(lambda: EffectClassifier().fit(*clean)) == []


def test_clean_mixed_table_gives_no_warning():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((1000, 3)), columns=["age", "size", "dose"])
    X["town"] = rng.choice(["York", "Ely", "Bath"], 1000)
    X["smokes"] = rng.random(1000) < 0.3
    X.loc[:50, "age"] = np.nan
    y = (X["size"] + rng.logistic(size=1000) > 0).astype(int)
    assert select(X, y) == []
    assert select(X, X["dose"] + rng.standard_normal(1000)) == []


@pytest.mark.parametrize("kind", ["binary", "continuous"])
def test_large_data_give_no_warning(kind):
    data = make_effect_data(kind, n_samples=3000, random_state=0)
    model = DDML("smooth", random_state=0)
    assert caught(lambda: model.fit(data.X, data.y, treatment=data.treatment)) == []


def test_small_experiment_gives_no_warning():
    """Without confounding there is nothing that few rows could miss."""
    rng = np.random.default_rng(0)
    X, t = rng.standard_normal((300, 5)), rng.integers(0, 2, 300)
    y = X[:, 0] + t + rng.standard_normal(300)
    assert caught(lambda: DDML("smooth", random_state=0).fit(X, y, treatment=t)) == []


# --- DDML ---


@pytest.mark.parametrize("kind", ["binary", "continuous"])
def test_few_rows(kind):
    data = make_effect_data(kind, n_samples=400, n_features=10, random_state=0)
    model = DDML("gp", score="partially_linear", random_state=0)
    text = only(caught(lambda: model.fit(data.X, data.y, treatment=data.treatment)))
    assert text.startswith("X has only 400 rows, and its confounding is not linear")
    assert "use at least 3000 rows" in text
    # The gap is that of the coefficient of a linear regression.
    linear = LinearRegression().fit(np.column_stack([data.treatment, data.X]), data.y).coef_[0]
    gap = abs(linear - model.effect_) / model.stderr_
    assert f"the estimate differs by {gap:.1f} standard errors" in text
    # The summary says it again, and so does the verdict.
    assert only(caught(model.summary)) == text
    assert "the interval may be too short" in model.verdict_


@pytest.mark.parametrize("score", ["partially_linear", "interactive", "logistic"])
def test_few_rows_are_enough_for_linear_confounding(score):
    """However strong it is."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3))
    t = 2 * X[:, 0] + rng.standard_normal(400)
    index = 2 * X[:, 0] + rng.logistic(size=400)
    if score == "interactive":
        t = (t > 0).astype(float)
    y = (index > 0).astype(float) if score == "logistic" else index
    model = DDML("smooth", score=score, random_state=0)
    said = caught(lambda: model.fit(X, y, treatment=t))
    assert [text for text in said if "rows" in text and "overlap" not in text] == []
    assert "too short" not in model.verdict_
    assert caught(model.summary) == []


def test_prognostic_curves_without_confounding_give_no_warning():
    """Linear nuisances are then far less precise, but not biased."""
    said = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, t = rng.standard_normal((300, 5)), rng.standard_normal(300)
        y = 4 * X[:, 0] * X[:, 1] + t + rng.standard_normal(300)
        said += len(caught(lambda: DDML("sparse", random_state=0).fit(X, y, treatment=t)))  # noqa: B023
    assert said <= 1


@pytest.mark.parametrize(
    ("n", "size", "z", "warns"),
    [(2999, 2, 3, True), (3000, 2, 3, False), (300, 1, 3, False), (300, 2, 1, False)],
)
def test_rule_for_few_rows(n, size, z, warns):
    assert bool(few_rows(n, LinearGap(size, z))) == warns


def test_linear_gap_is_in_standard_errors():
    """Against the bootstrap of both estimates."""
    rng = np.random.default_rng(0)
    X, T = rng.standard_normal((2000, 2)), rng.standard_normal(2000)
    y = T + 2 * X[:, 0] * X[:, 1] + rng.standard_normal(2000)
    v = T - 0.1 * X[:, 0] * X[:, 1]  # an estimate with nuisances of its own
    score = PartiallyLinear()
    own = score.of_residuals(v, y - 2 * X[:, 0] * X[:, 1])
    linear = linear_moments(score, X, T, y)
    gap = linear_gap(linear, own.theta, own.stderr, own.influence)
    away = []
    for _ in range(300):
        rows = rng.integers(0, 2000, 2000)
        again = score.of_residuals(v[rows], (y - 2 * X[:, 0] * X[:, 1])[rows]).theta
        away.append(linear_moments(score, X[rows], T[rows], y[rows]).theta - again)
    difference = abs(linear.theta - own.theta)
    assert gap.size == pytest.approx(difference / own.stderr)
    assert gap.z == pytest.approx(difference / np.std(away), rel=0.15)


def test_weak_overlap():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 3))
    y = rng.standard_normal(3000)
    for strength, warns in ((8, True), (0.5, False)):
        t = (strength * X[:, 0] + rng.logistic(size=3000) > 0).astype(float)
        texts = caught(lambda t=t: DDML("ridge", random_state=0).fit(X, y, treatment=t))
        assert len(texts) == warns
        assert all("(weak overlap); leave out rows" in text for text in texts)


@pytest.mark.parametrize(("level", "warns"), [(-4, False), (4, True)])
def test_overlap_of_the_treated(level, warns):
    """The ATT needs untreated rows that are like the treated, not the other way round."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 2))
    t = (3 * X[:, 0] + level + rng.logistic(size=4000) > 0).astype(float)
    y = rng.standard_normal(4000)
    effects = {target: DDML("ridge", target=target, random_state=0) for target in ("ate", "att")}
    texts = {
        target: caught(lambda m=model: m.fit(X, y, treatment=t))
        for target, model in effects.items()
    }
    assert "of the propensities were clipped to [0.01, 0.99] (weak overlap)" in only(texts["ate"])
    assert len(texts["att"]) == warns
    assert ("weak overlap" in effects["att"].verdict_) == warns
    m = effects["att"].nuisances_["m"]
    share = effects["att"].diagnostics()["share_beyond_clip"]
    assert share == pytest.approx((m[t == 1] > 0.99).mean())
    if warns:
        assert f"{share:.1%} of the treated rows have a propensity above 0.99" in texts["att"][0]


def test_a_few_clipped_rows_are_no_weak_overlap():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((3000, 2))
    t = (2 * X[:, 0] + rng.logistic(size=3000) > 0).astype(float)
    model = DDML("ridge", random_state=0)
    assert caught(lambda: model.fit(X, X[:, 1] + rng.normal(size=3000), treatment=t)) == []
    assert 0 < model.diagnostics()["share_beyond_clip"] < 0.01


def test_checks_of_an_effect_do_not_repeat_its_warnings():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((3000, 3)), columns=["a", "b", "c"])
    t = (8 * X["a"] + rng.logistic(size=3000) > 0).astype(float)
    y = t + X["b"] + rng.standard_normal(3000)
    effect = DDML("ridge", random_state=0)
    assert len(caught(lambda: effect.fit(X, y, treatment=t))) >= 1
    assert caught(lambda: effect.placebo(X, y, treatment=t, n=2)) == []
    assert caught(lambda: effect.benchmark(X, y, treatment=t, columns=["a", "b"])) == []


# --- CausalFeatureSelector and EffectClassifier ---


def test_repeated_columns_are_named(clean):
    X, y, domain = clean
    rng = np.random.default_rng(0)
    copies = X.assign(months=12 * X["a"] + 3, nearly=X["b"] + 0.01 * rng.standard_normal(len(X)))
    text = only(select(copies, y, domain))
    assert text.startswith("'months' repeats 'a' and 'nearly' repeats 'b', exactly or nearly")
    many = X.assign(**{f"copy{i}": X["a"] for i in range(9)})
    assert "'copy4' repeats 'a' and 4 more, exactly" in only(select(many, y, domain))


def test_collinear_columns_are_named(clean):
    X, y, domain = clean
    text = only(select(X.assign(total=X["a"] + X["b"] + X["c"]), y, domain))
    assert text.startswith("The effect of 'a', 'b', 'c' and 'total' is unknown")
    text = only(select(X.assign(size=1.0 * domain), y, domain))
    assert text.startswith("The effect of 'size' is unknown")


def test_tiny_units_are_not_collinear(clean):
    X, y, domain = clean
    found = [CausalFeatureSelector(2, random_state=0) for _ in range(2)]
    assert caught(lambda: found[0].fit(X, y, domain)) == []
    assert caught(lambda: found[1].fit(1e-9 * X, y, domain)) == []
    for name in ("std_effect", "pvalue"):
        expected = found[0].effects_[name]
        np.testing.assert_allclose(found[1].effects_[name], expected, rtol=1e-3, atol=1e-6)


def test_small_domains_are_named(clean):
    X, y, domain = clean
    names = np.array(["north", "south", "east", "west"])[domain - domain.min()]
    rows = np.r_[np.flatnonzero(names != "east"), np.flatnonzero(names == "east")[:20]]
    for call in (
        lambda: CausalFeatureSelector(2, random_state=0).fit(X.iloc[rows], y[rows], names[rows]),
        lambda: EffectClassifier().fit(X.iloc[rows], y[rows], names[rows]),
        lambda: EffectClassifier(CausalFeatureSelector(2, random_state=0)).fit(
            X.iloc[rows], y[rows], names[rows]
        ),
    ):
        text = only(caught(call))
        assert "domains with fewer than 30 rows, 'east' (20 rows), whose effects" in text
        assert "merge small domains" in text


def test_domains_with_one_class_are_named(clean):
    X, y, domain = clean
    y = np.where(domain == domain.max(), 1, y)
    text = only(select(X, y, domain))
    assert text.startswith(f"y has only one class in the domains '{domain.max()}', which")


def test_copy_of_the_label_is_named(clean):
    X, y, domain = clean
    texts = select(X.assign(answer=1 - y), y, domain)
    assert any(text.startswith("'answer' is the outcome itself") for text in texts)


def test_warnings_can_be_silenced(clean):
    X, y, domain = clean
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DDMLWarning)
        CausalFeatureSelector(2, random_state=0).fit(X.assign(copy=X["a"]), y, domain)


# --- Weights ---


def test_a_few_rows_with_all_the_weight(clean):
    X, y, domain = clean
    weight = np.ones(len(y))
    weight[:3] = 1e6
    words = "1200 rows count like 3.0, because a few are much heavier"
    selector = CausalFeatureSelector(2, random_state=0)
    found = caught(lambda: selector.fit(X, y, domain, sample_weight=weight))
    assert sum(words in text for text in found) == 1
    found = caught(lambda: EffectClassifier().fit(X, y, domain, sample_weight=weight))
    assert words in only(found)
    T = X["a"] + np.random.default_rng(0).standard_normal(len(y))
    effect = DDML("ridge", random_state=0)
    found = caught(lambda: effect.fit(X, y, treatment=T, sample_weight=weight))
    assert sum(words in text for text in found) == 1


def test_uneven_weights_give_no_warning(clean):
    X, y, domain = clean
    weight = np.random.default_rng(0).uniform(0.1, 5, len(y))
    assert caught(lambda: EffectClassifier().fit(X, y, domain, sample_weight=weight)) == []
    small = caught(lambda: EffectClassifier().fit(X[:50], y[:50], sample_weight=weight[:50]))
    assert small == []
