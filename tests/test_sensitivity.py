"""Sensitivity to hidden confounding, against DoubleML on the same folds and models."""

from time import perf_counter
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from doubleml import DoubleMLData, DoubleMLIRM, DoubleMLPLR
from scipy import stats
from sklearn.linear_model import LinearRegression, LogisticRegression

from ddml_fs import DDML, CausalFeatureSelector
from ddml_fs.datasets import make_effect_data
from ddml_fs.effects_table import effects_table
from ddml_fs.inference import robustness_value, strength
from ddml_fs.scores import PartiallyLinear
from ddml_fs.sensitivity import bounds, elements
from ddml_fs.sweep_sensitivity import partial_correlations

MODELS = LogisticRegression(), LinearRegression()


@pytest.fixture(scope="module")
def data():
    return make_effect_data("binary", n_samples=1200, n_features=10, random_state=0)


@pytest.fixture(scope="module", params=["PLR", "ATE", "ATTE"])
def twins(request, data):
    """Ours and DoubleML's."""
    score = "partially_linear" if request.param == "PLR" else "interactive"
    target = "att" if request.param == "ATTE" else "ate"
    ours = DDML(MODELS, score=score, target=target, random_state=0)
    X = pd.DataFrame(data.X).add_prefix("x")
    ours.fit(X, data.y, treatment=data.treatment)
    table = DoubleMLData.from_arrays(data.X, data.y, data.treatment)
    options = {"n_folds": 5, "draw_sample_splitting": False}
    classifier, regressor = MODELS
    if request.param == "PLR":
        peer = DoubleMLPLR(table, regressor, classifier, **options)
    else:
        peer = DoubleMLIRM(table, regressor, classifier, score=request.param, **options)
    peer.set_sample_splitting([ours.folds_])
    return ours, peer.fit(), X


def test_bounds_are_those_of_doubleml(twins):
    ours, peer, _ = twins
    np.testing.assert_allclose(ours.effect_, peer.coef[0], rtol=1e-6)
    peer.sensitivity_analysis(cf_y=0.1, cf_d=0.05, rho=0.8, level=0.9)
    found = ours.sensitivity(0.1, 0.05, 0.8, level=0.9)
    theirs = peer.sensitivity_params
    for name, part, bound in [
        ("low", "theta", "lower"),
        ("high", "theta", "upper"),
        ("ci_low", "ci", "lower"),
        ("ci_high", "ci", "upper"),
    ]:
        # DoubleML adds the influence on the bias with the sign of the other bound, which moves its
        # limits a little; test_limits_have_the_right_error decides between the two.
        rtol = 1e-4 if part == "theta" else 2e-3
        np.testing.assert_allclose(found[name], theirs[part][bound][0], rtol=rtol, err_msg=name)
    # DoubleML finds its robustness values by minimising a square, to about three digits.
    np.testing.assert_allclose(found["robustness"], theirs["rv"][0], atol=2e-3)
    np.testing.assert_allclose(found["robustness_ci"], theirs["rva"][0], atol=2e-3)


def test_benchmark_is_that_of_doubleml(twins, data):
    ours, peer, X = twins
    found = ours.benchmark(X, data.y, treatment=data.treatment, columns=["x0", ["x0", "x1"]])
    assert list(found.index) == ["x0", "x0, x1"]
    short = ours.__class__(**ours.get_params()).fit(
        X.drop(columns="x0"), data.y, treatment=data.treatment
    )
    assert found.loc["x0", "change"] == pytest.approx(short.effect_ - ours.effect_)
    theirs = peer.sensitivity_benchmark(benchmarking_set=["X1"])
    np.testing.assert_allclose(found.loc["x0", "cf_y"], theirs["cf_y"].iloc[0], atol=2e-3)
    np.testing.assert_allclose(found.loc["x0", "cf_d"], theirs["cf_d"].iloc[0], atol=5e-3)


def test_a_confounder_of_the_robustness_value_moves_the_effect_to_zero(twins):
    ours = twins[0]
    r = ours.sensitivity()["robustness"]
    row = ours.sensitivity(r, r)
    assert min(abs(row["low"]), abs(row["high"])) < 1e-8
    r = ours.sensitivity(level=0.9)["robustness_ci"]
    row = ours.sensitivity(r, r, level=0.9)
    assert min(abs(row["ci_low"]), abs(row["ci_high"])) < 1e-6


def test_limits_have_the_right_error():
    """Over 400 draws with true nuisances, bounds vary as their standard errors say.

    Residuals are skewed, so that the effect and the bias are correlated and the sign matters. The
    standard deviation of 400 draws is known to 1/√800 = 3.5 %; three times that is allowed.
    """
    rng = np.random.default_rng(0)
    found = []
    for _ in range(400):
        v = rng.standard_normal(400)
        e = 1.0 * v + (rng.exponential(size=400) - 1) * v
        hat = SimpleNamespace(m=np.zeros(400), g=np.zeros(400))
        moments = PartiallyLinear().moments(v, e, hat)
        given = elements(PartiallyLinear(), v, e, hat, moments.theta)
        found.append(bounds(moments.theta, moments.influence, given, 0.5, 0.975))
    low, high, ci_low, ci_high = np.array(found).T
    z = stats.norm.ppf(0.975)
    np.testing.assert_allclose((low - ci_low).mean() / z, low.std(), rtol=0.105)
    np.testing.assert_allclose((ci_high - high).mean() / z, high.std(), rtol=0.105)
    assert low.std() < 0.9 * high.std()  # the sign matters


def test_no_confounder_no_bias(twins):
    ours = twins[0]
    row = ours.sensitivity(0.0, 0.0)
    assert row["low"] == row["high"] == ours.effect_


def test_a_hidden_confounder_is_within_the_bounds():
    """A confounder that is left out, with its true strengths, explains the whole bias."""
    rng = np.random.default_rng(0)
    n = 20_000
    X, hidden = rng.standard_normal((n, 3)), rng.standard_normal(n)
    T = X[:, 0] + hidden + rng.standard_normal(n)
    y = 1.0 * T + X[:, 1] + hidden + rng.standard_normal(n)
    short = DDML(LinearRegression(), random_state=0).fit(X, y, treatment=T)
    long = DDML(LinearRegression(), random_state=0)
    long.fit(np.column_stack([X, hidden]), y, treatment=T)
    # Given X, T has variance 2, of which hidden explains half. What remains of y without hidden has
    # variance 1.5, and 1 with it: a third.
    row = short.sensitivity(cf_y=1 / 3, cf_d=1 / 2)
    assert short.effect_ == pytest.approx(1.5, abs=0.03)
    assert row["low"] == pytest.approx(1.0, abs=0.05)
    assert long.effect_ == pytest.approx(1.0, abs=0.03)


def test_robustness_value_inverts_the_strength():
    distances = np.array([1e-3, 0.1, 1.0, 10.0])
    r = robustness_value(distances)
    np.testing.assert_allclose(strength(r, r), distances, rtol=1e-6)
    assert (0 < r).all()
    assert (r < 1).all()


def test_bad_input(twins, data):
    ours, _, X = twins
    with pytest.raises(ValueError, match="cf_d must be"):
        ours.sensitivity(cf_d=1.5)
    with pytest.raises(ValueError, match="got 'nobody'"):
        ours.benchmark(X, data.y, treatment=data.treatment, columns=["nobody"])
    with pytest.raises(TypeError, match="as a DataFrame"):
        ours.benchmark(data.X, data.y, treatment=data.treatment, columns=["x0"])
    logistic = DDML("ridge", score="logistic", random_state=0)
    logistic.fit(data.X, (data.y > data.y.mean()).astype(int), treatment=data.treatment)
    with pytest.raises(AttributeError, match="sensitivity needs"):
        logistic.sensitivity()


def test_a_sweep_has_robustness_values_of_all_features():
    """In a linear world they are those of least squares (Cinelli & Hazlett, 2020)."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 4)) @ rng.standard_normal((4, 4))
    y = X @ np.array([1.0, 0.3, 0.0, -0.1]) + rng.standard_normal(2000)
    found = CausalFeatureSelector(1.0, dose="linear", random_state=0).fit(X, y).effects_
    twin = sm.OLS(y, sm.add_constant(X)).fit()
    f2 = (twin.tvalues[1:] / np.sqrt(twin.df_resid)) ** 2
    expected = (np.sqrt(f2**2 + 4 * f2) - f2) / 2
    # The selector's nuisances are shrunken a little.
    np.testing.assert_allclose(found["robustness"], expected, rtol=0.1, atol=0.01)


def test_robustness_values_of_400_features_take_no_time():
    """The whole table of effects, from the evidence of the sweep, within a second."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 400))
    selector = CausalFeatureSelector(1, nuisance="ridge", ranking="tstat", random_state=0)
    result = selector.fit_sweep(X, X[:, 0] + rng.standard_normal(500)).result
    start = perf_counter()
    table, _ = effects_table(result.evidence, result, selector.domains_)
    assert perf_counter() - start < 1.0
    assert table["robustness"].between(0, 1).all()
    assert table["robustness"].idxmax() == 0


@pytest.fixture(scope="module")
def related():
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((2000, 1)) * [1.2, 0.9, 0.5, 0.3, 0.0]
    X = pd.DataFrame(rng.standard_normal((2000, 5)) + shared, columns=list("abcde"))
    y = X @ np.array([1, 0.5, -0.3, 0.1, 0]) + rng.standard_normal(2000)
    return X, y, CausalFeatureSelector(5, dose="linear", random_state=0).fit(X, y)


def test_strongest_columns_of_a_sweep_are_those_of_single_effects(related):
    """Each column left out in turn, with linear models on held-out rows."""
    X, y, selector = related
    table = selector.sensitivity(X)
    for name in X:
        rest = [other for other in X if other != name]
        given = {"treatment": X[name]}
        effect = DDML(LinearRegression(), random_state=0).fit(X[rest], y, **given)
        twin = effect.benchmark(X[rest], y, **given, columns=rest)
        both = twin["cf_y"].clip(upper=1.0), twin["cf_d"].clip(upper=0.999)
        reached = pd.Series(robustness_value(strength(*both)), index=rest)
        assert table.loc[name, "strongest"] == reached.idxmax()
        assert table.loc[name, "benchmark"] == pytest.approx(reached.max(), abs=0.01)
        assert table.loc[name, "robustness"] == selector.effects_.loc[name, "robustness"]
    assert (table["exceeds"] == (table["robustness"] > table["benchmark"])).all()
    assert table["exceeds"].any()
    assert not table["exceeds"].all()


def test_strongest_columns_with_domains_weights_and_categories(related):
    """Means of domains do not relate columns; integer weights are repeated rows."""
    X, y, selector = related
    domain = np.arange(2000) % 2
    moved = X + 5.0 * domain[:, None]
    within = selector.sensitivity(moved, sample_domain=domain)
    np.testing.assert_allclose(within["benchmark"], selector.sensitivity(X)["benchmark"], atol=0.01)
    weight = np.random.default_rng(0).integers(0, 3, 2000)
    weighted = selector.sensitivity(X, sample_weight=weight)
    repeated = selector.sensitivity(X.loc[np.repeat(X.index, weight)])
    pd.testing.assert_frame_equal(weighted, repeated)
    mixed = X.assign(kind=np.digitize(X["a"], [-1, 0, 1]).astype(str), nothing=1.0)
    table = CausalFeatureSelector(5, random_state=0).fit(mixed, y).sensitivity(mixed)
    assert table.loc["a", "strongest"] == "kind" or table.loc["kind", "strongest"] == "a"
    assert table["benchmark"].between(0, 1).all()
    with pytest.raises(ValueError, match="three rows per column, got 12 rows and 5 columns"):
        selector.sensitivity(X[:12])


def test_strongest_columns_of_400_features_take_less_than_a_second():
    X = np.random.default_rng(0).standard_normal((2000, 400))
    start = perf_counter()
    squares = partial_correlations(X, np.zeros(2000, int), np.ones(2000))
    assert perf_counter() - start < 1.0
    twin = np.corrcoef(
        *(X[:, [j]].T[0] - X[:, 2:] @ np.linalg.lstsq(X[:, 2:], X[:, j])[0] for j in (0, 1))
    )
    assert squares[0, 1] == pytest.approx(twin[0, 1] ** 2, abs=1e-3)
