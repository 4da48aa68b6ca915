"""Whatever the table, an estimator ends in finite results or in a sentence that says what is wrong.

The examples are drawn by hypothesis from ``bad_tables.py``, the same ones in every run.
"""

import numpy as np
import pandas as pd
import pytest
from bad_tables import (
    DOMAINS,
    EXPONENTS,
    LABELS,
    OFFSETS,
    OUTCOMES,
    WRONG,
    WRONG_DOMAINS,
    domains,
    must_end_well,
    outcome,
    rows,
    tables,
)
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression, LogisticRegression

from ddml_fs import DDML, CausalFeatureSelector, EffectClassifier, ShiftAudit, classifier
from ddml_fs.nuisances import Network

TINY_NETWORK = Network(epochs=1, gates=False, hidden=2, latent=2)
TREATMENTS = ("binary", "number", "number", "rare", "float32", "integers", "few numbers")
TREATMENTS += ("heavy tails", "constant")
PAIR = (LogisticRegression(), LinearRegression())


@pytest.fixture(autouse=True, scope="module")
def few_penalties():
    """A classifier that tries three penalties, to save time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classifier, "PENALTIES", classifier.PENALTIES[::5])
        yield


def examples(n):
    return settings(
        max_examples=n,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],  # a failing table is small already, and shrinking takes minutes
        suppress_health_check=list(HealthCheck),
    )


@st.composite
def problems(draw, kinds=LABELS + OUTCOMES, mixed=True):
    """X, y, domains, weights and clusters; in one case of eight, y or the domains are wrong."""
    X, rng = draw(tables(mixed=mixed))
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    kind, where = draw(st.sampled_from(kinds)), draw(st.sampled_from(DOMAINS))
    wrong = draw(st.sampled_from(["nothing"] * 14 + ["y", "domain"]))
    if wrong == "y":
        kind = draw(st.sampled_from(WRONG))
    elif wrong == "domain":
        where = draw(st.sampled_from(WRONG_DOMAINS))
    y = outcome(kind, X, rng, draw(EXPONENTS), draw(OFFSETS))
    where = domains(where, y, n, rng)
    return {"X": X, "y": y, "sample_domain": where} | draw(rows(where, n, rng))


@st.composite
def effects(draw, treatments=TREATMENTS, outcomes=OUTCOMES):
    """X, y, treatment, weights and clusters; in one case of six, one of the first is wrong."""
    wrong = draw(st.sampled_from(["nothing"] * 16 + ["X", "y", "treatment", "column"]))
    X, rng = draw(tables(mixed=wrong == "X", holes=wrong == "X", sparse=wrong == "X"))
    kind = draw(st.sampled_from(WRONG if wrong == "y" else outcomes))
    y = outcome(kind, X, rng, draw(EXPONENTS), draw(OFFSETS))
    kind = draw(st.sampled_from(WRONG if wrong == "treatment" else treatments))
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    t = outcome(kind, np.zeros((n, 1)), rng, draw(EXPONENTS), draw(OFFSETS))
    if wrong == "column":
        t = draw(st.sampled_from([0, 1, 9, -1, "c0", "nobody"]))
    return {"X": X, "y": y, "treatment": t} | draw(rows(None, n, rng))


# --- What must hold ---


def check_effect(nuisance, problem, **options):
    """A single effect: finite, with an interval around it."""
    model = must_end_well(lambda: DDML(nuisance, random_state=0, **options).fit(**problem))
    if model is None:
        return "raised"
    low, high = must_end_well(model.conf_int)
    assert np.isfinite([model.effect_, model.stderr_, low, high]).all()
    assert model.stderr_ >= 0
    assert low <= model.effect_ <= high
    assert 0 <= model.pvalue_ <= 1
    assert np.isfinite(model.nuisances_.to_numpy()).all()
    assert np.isfinite(model.residuals_.to_numpy()).all()
    assert np.isfinite(model.influence_).all()
    return "fitted"


def check_selector(number, problem, **options):
    """A sweep: all columns of the table finite, ranks complete, intervals in order."""
    selector = CausalFeatureSelector(number, n_folds=2, random_state=0, **options)
    if must_end_well(lambda: selector.fit(**problem)) is None:
        return "raised"
    check_selection(selector)
    return "fitted"


def check_selection(selector):
    table = selector.effects_
    table = table[table["df"].notna()]  # a constant column has no standard error
    numbers = table.select_dtypes("number")
    assert np.isfinite(numbers.to_numpy()).all(), list(numbers.columns[~np.isfinite(numbers).all()])
    assert (table["stderr"] >= 0).all()
    for name in ("pvalue", "qvalue", "holm", "stability", "sign_agreement", "instability"):
        assert table[name].between(0, 1).all(), name
    interval = must_end_well(selector.conf_int).loc[table.index]
    assert (interval["low"] <= interval["high"]).all()
    assert np.isfinite(selector.scores_).all()
    assert selector.ranking_.min() == 1
    assert selector.support_.any() or selector.n_features_to_select == "fdr"


def check_classifier(problem):
    """Probabilities between 0 and 1 that add up to 1."""
    model = must_end_well(lambda: EffectClassifier().fit(**problem))
    if model is None:
        return "raised"
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    chances = must_end_well(lambda: model.predict_proba(problem["X"]))
    assert np.isfinite(chances).all()
    assert (chances >= 0).all()
    np.testing.assert_allclose(chances.sum(1), 1, atol=1e-9)
    assert set(model.predict(problem["X"])) <= set(model.classes_)
    return "fitted"


def check_audit(problem):
    """Numbers are finite, except where a leak or a constant has none."""
    audit = must_end_well(lambda: ShiftAudit(random_state=0).fit(**problem))
    if audit is None:
        return "raised"
    table = audit.features_
    known = table[~table["verdict"].isin(["leak", "unknown"])]
    ends = known[["effect_low", "effect_high"]]
    side = audit.selector_.effects_["unbounded"].reindex(known.index)
    assert np.isneginf(ends["effect_low"]).equals(side < 0)
    assert np.isposinf(ends["effect_high"]).equals(side > 0)
    numbers = known.select_dtypes("number").drop(columns=["alone", *ends])
    assert np.isfinite(numbers.to_numpy(float)).all(), list(
        numbers.columns[~np.isfinite(numbers).all()]
    )
    assert (known["effect_low"] <= known["effect_high"]).all()
    assert np.isfinite(audit.base_rates_.select_dtypes("number").to_numpy()).all()
    assert not np.isinf(audit.forecast_.select_dtypes("number").to_numpy(float)).any()
    must_end_well(audit.summary)
    return "fitted"


# --- Tables of every kind ---


@given(effects())
@examples(700)
def test_effects_of_ridge(problem):
    check_effect("ridge", problem, n_folds=2)


@given(effects(outcomes=("binary", "rare", "bool")))
@examples(150)
def test_effects_on_log_odds(problem):
    check_effect("ridge", problem, n_folds=2, score="logistic")


@given(effects(treatments=("binary", "rare", "bool")), st.sampled_from(["ate", "att"]))
@examples(150)
def test_effects_of_a_pair_of_models(problem, target):
    check_effect(PAIR, problem, n_folds=2, target=target)


@given(effects())
@examples(50)
def test_effects_of_smooth_models(problem):
    check_effect("smooth", problem, n_folds=2)


@given(effects())
@examples(100)
def test_effects_of_networks(problem):
    check_effect(TINY_NETWORK, problem, n_folds=2)


@given(problems(), st.sampled_from(["gain", "effect", "tstat", "stability"]))
@examples(300)
def test_selection_of_one(problem, ranking):
    check_selector(1, problem, ranking=ranking)


@given(problems(), st.sampled_from(["ridge", "additive"]), st.sampled_from(["auto", "mean"]))
@examples(150)
def test_selection_by_fdr(problem, nuisance, scale):
    check_selector("fdr", problem, nuisance=nuisance, scale=scale)


@given(problems())
@examples(40)
def test_selection_of_a_number(problem):
    check_selector("auto", problem)


@given(problems(kinds=LABELS))
@examples(200)
def test_classifier(problem):
    check_classifier(problem)


@given(problems())
@examples(40)
def test_audit(problem):
    check_audit(problem)


# --- What must not depend on units, order and names ---


@st.composite
def clean(draw):
    """A table of numbers, labels or numbers as outcome, domains or none; nothing is wrong."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    X = rng.standard_normal((60, draw(st.integers(2, 5))))
    signal = X[:, 0] - X[:, 1] + rng.standard_normal(60)
    y = (signal > 0).astype(int) if draw(st.booleans()) else signal
    return X, y, np.arange(60) % 2 if draw(st.booleans()) else None


def swept(X, y, domain, **options):
    selector = CausalFeatureSelector(1, n_folds=2, random_state=0, **options)
    return must_end_well(lambda: selector.fit(X, y, sample_domain=domain)).effects_


def same(found, wanted, columns=("tstat", "pvalue", "instability", "score", "rank"), rtol=1e-3):
    for name in columns:
        np.testing.assert_allclose(
            found[name].to_numpy(), wanted[name].to_numpy(), rtol=rtol, atol=1e-5, err_msg=name
        )


@given(clean(), st.integers(-40, 40), st.sampled_from([0.0, 1.0, -1024.0, 2.0**20]))
@examples(40)
def test_units_of_a_column_do_not_matter(data, power, offset):
    X, y, domain = data
    other = X.copy()
    other[:, 0] = (np.round(X[:, 0] * 2**20) / 2**20 + offset) * 2.0**power
    wanted, found = swept(X, y, domain), swept(other, y, domain)
    same(found, wanted)
    assert found["effect"].iloc[0] * 2.0**power == pytest.approx(wanted["effect"].iloc[0], rel=1e-3)


@given(clean(), st.integers(-40, 40))
@examples(20)
def test_units_of_the_outcome_do_not_matter(data, power):
    X, y, domain = data
    if y.dtype.kind == "i":
        y = X[:, 0] + y
    wanted, found = swept(X, y, domain), swept(X, y * 2.0**power, domain)
    same(found, wanted)
    np.testing.assert_allclose(found["effect"], wanted["effect"] * 2.0**power, rtol=1e-3)


@given(clean(), st.randoms(use_true_random=False))
@examples(20)
def test_order_of_columns_does_not_matter(data, random):
    X, y, domain = data
    order = random.sample(range(X.shape[1]), X.shape[1])
    same(swept(X[:, order], y, domain), swept(X, y, domain).iloc[order])


@given(clean())
@examples(20)
def test_constants_and_copies_change_nothing(data):
    X, y, domain = data
    wanted = swept(X, y, domain)
    found = swept(np.column_stack([X, np.ones(60)]), y, domain)
    same(found.iloc[:-1], wanted)
    found = swept(np.column_stack([X, X[:, 0]]), y, domain)
    assert found["rank"].iloc[-1] == len(found)
    same(found.iloc[:-1], wanted, ["rank"])
    assert found["effect"].iloc[-1] == found["effect"].iloc[0]
    same(found.iloc[:-1], wanted, ["tstat", "pvalue"])


@given(clean())
@examples(20)
def test_names_of_classes_do_not_matter(data):
    X, y, domain = data
    y = y if y.dtype.kind == "i" else (y > 0).astype(int)
    wanted = swept(X, y, domain)
    pd.testing.assert_frame_equal(swept(X, np.array(["no", "yes"])[y], domain), wanted)
    flipped = swept(X, 1 - y, domain)
    same(flipped, wanted, ["pvalue", "instability", "rank"])
    np.testing.assert_allclose(flipped["effect"], -wanted["effect"], rtol=1e-3)
