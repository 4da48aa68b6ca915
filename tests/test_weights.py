"""Sample weights of DDML: against repeated rows, dropped rows, statsmodels and DoubleML."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import torch
from doubleml import DoubleMLData, DoubleMLIRM
from scipy.special import expit
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ddml_fs import DDML
from ddml_fs.engine.network import RoleNetwork, Sizes
from ddml_fs.engine.objective import LossSettings, Objective
from ddml_fs.engine.plan import make_plan
from ddml_fs.engine.smooth_ridge import SmoothRidge
from ddml_fs.engine.stack import Stack
from ddml_fs.engine.train import FlatAdamW, training_step
from ddml_fs.inference import stderr_of
from ddml_fs.nuisances import Additive, Estimators, Forest, Network, Ridge, Stacked
from ddml_fs.nuisances.held_out_loss import losses_of
from ddml_fs.nuisances.simplex import log_loss_weights, squared_error_weights
from ddml_fs.scores import Interactive, Logistic, PartiallyLinear
from ddml_fs.sensitivity import elements

MODELS = LogisticRegression(), LinearRegression()


def draw(n=300, seed=0):
    """Covariates, a binary and a continuous treatment, an outcome, and integer weights."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    D = (X[:, 0] + rng.logistic(size=n) > 0).astype(float)
    T = X[:, 0] + rng.standard_normal(n)
    y = D + T + X @ [1.0, 0.5, 0.0] + rng.standard_normal(n) * (1 + (X[:, 1] > 0))
    return X, D, T, y, rng.integers(1, 5, n)


@pytest.fixture(scope="module")
def table():
    return draw()


# --- What weights mean ---

NUISANCES = {
    "ridge": "ridge",
    "smooth": "smooth",
    "gp": "gp",
    "additive": "additive",
    "boosting": "boosting",
    "stacked": Stacked(["smooth", "ridge"]),
    "models": MODELS[1],
    "mlp": Network(epochs=3),
    "rf": Forest(network=Network(epochs=3)),
}


def effect_of(table, nuisance, weight, *, binary=False, rows=slice(None)):
    X, D, T, y, _ = (a[rows] for a in table)
    model = DDML(nuisance, n_folds=3, random_state=0)
    return model.fit(X, y, treatment=D if binary else T, sample_weight=weight)


@pytest.mark.parametrize("name", NUISANCES)
def test_equal_weights_change_nothing(table, name):
    """Also if they differ by next to nothing, so that the weighted formulas are used.

    Trees are not continuous in the weights.
    """
    plain, equal = (effect_of(table, NUISANCES[name], w) for w in (None, np.full(300, 7.0)))
    assert equal.summary().equals(plain.summary())
    if name in ("boosting", "rf"):
        return
    weight = np.ones(300)
    weight[0] += 1e-9
    nearly = effect_of(table, NUISANCES[name], weight)
    tolerance = 1e-3 if name == "mlp" else 1e-6
    np.testing.assert_allclose(nearly.summary(), plain.summary(), rtol=tolerance, atol=1e-12)
    np.testing.assert_allclose(nearly.nuisances_, plain.nuisances_, atol=tolerance)


@pytest.mark.parametrize("name", NUISANCES)
def test_a_row_without_weight_is_a_dropped_row(table, name):
    """But it is predicted, from models that did not see it."""
    weight = np.where(np.arange(300) % 4 == 0, 0.0, table[4])
    used = weight > 0
    whole = effect_of(table, NUISANCES[name], weight)
    short = effect_of(table, NUISANCES[name], weight[used], rows=used)
    tolerance = {"mlp": 1e-4, "rf": 1e-4}.get(name, 1e-8)
    assert whole.effect_ == pytest.approx(short.effect_, rel=tolerance)
    assert whole.stderr_ == pytest.approx(short.stderr_, rel=tolerance)
    np.testing.assert_allclose(whole.nuisances_[used], short.nuisances_, atol=10 * tolerance)
    assert (whole.influence_[~used] == 0).all()
    assert whole.nuisances_.notna().all().all()
    pd.testing.assert_series_equal(
        whole.diagnostics(), short.diagnostics(), rtol=10 * tolerance, check_exact=False
    )
    held = np.concatenate([hold for _, hold in whole.folds_])
    assert sorted(held) == list(range(300))
    assert not any((weight[train] == 0).any() for train, _ in whole.folds_)


def test_only_the_ratios_of_weights_count(table):
    small, large = (effect_of(table, "smooth", table[4] * c, binary=True) for c in (1e-200, 1e9))
    np.testing.assert_allclose(small.summary(), large.summary(), rtol=1e-9)
    assert small.effect_ != effect_of(table, "smooth", None, binary=True).effect_


def test_negligible_weights_are_zero(table):
    weight = np.r_[np.full(30, 1e-13), np.ones(270)]
    tiny, none = (effect_of(table, "ridge", w) for w in (weight, np.where(weight < 1, 0, 1)))
    assert tiny.effect_ == none.effect_
    assert (tiny.influence_[:30] == 0).all()


# --- Integer weights are repeated rows ---


def plans(table, binary, label=False):
    """The same folds, with weights and with repeated rows."""
    X, D, T, y, weight = table
    y = (y > 1).astype(float) if label else y
    plan = make_plan(
        X,
        y[:, None],
        np.random.RandomState(0),
        treatments=(D if binary else T)[:, None],
        binary_T=[binary],
        label=label,
        n_folds=3,
        weight=weight / weight.mean(),
    )
    source = np.repeat(np.arange(len(X)), weight)

    def repeated(rows):
        return np.concatenate([np.flatnonzero(source == i) for i in rows])

    folds = [
        replace(f, fit=repeated(f.fit), valid=repeated(f.valid), hold=repeated(f.hold))
        for f in plan.folds
    ]
    arrays = {name: getattr(plan, name)[source] for name in ("X", "T", "Y", "domain")}
    twin = replace(plan, **arrays, folds=folds, weight=np.ones(len(source)))
    return plan, twin, source


def scaled(nuisance, factor):
    """Weights have mean 1, so a penalty per row counts less if there are more rows."""
    return Ridge(shrinkage=20.0 * factor) if isinstance(nuisance, Ridge) else nuisance


CASES = [
    (Ridge(), False, False),
    (Ridge(), True, False),
    (Ridge(), False, True),
    (Additive(), False, False),
    (Additive(), False, True),
    (Additive(strength=0.01), True, True),
]


@pytest.mark.parametrize(("nuisance", "binary", "label"), CASES)
def test_integer_weights_are_repeated_rows(table, nuisance, binary, label):
    """Predictions, effects, and errors: those of clusters that are copies of a row."""
    plan, twin, source = plans(table, binary, label)
    score = Logistic() if label else PartiallyLinear()
    factor = len(source) / len(plan.X)
    ours, copies = nuisance.predict(plan).of(), scaled(nuisance, factor).predict(twin).of()
    np.testing.assert_allclose(ours.m[source], copies.m, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(ours.g[source], copies.g, rtol=1e-6, atol=1e-8)
    moments = score.moments(plan.T[:, 0], plan.Y[:, 0], ours, plan.weight)
    repeated = score.moments(twin.T[:, 0], twin.Y[:, 0], copies)
    assert moments.theta == pytest.approx(repeated.theta, rel=1e-6)
    G = len(plan.X)
    clustered = stderr_of(repeated.influence, source[:, None]) * np.sqrt((G - 1) / G)
    assert moments.stderr == pytest.approx(clustered, rel=1e-6)


@pytest.mark.parametrize("target", ["ate", "att"])
def test_integer_weights_with_arms(table, target):
    plan, twin, source = plans(table, True)
    factor = len(source) / len(plan.X)
    ours = Ridge().predict(plan, arms=True).of()
    copies = scaled(Ridge(), factor).predict(twin, arms=True).of()
    for name in ("m", "g", "mu_0", "mu_1"):
        np.testing.assert_allclose(getattr(ours, name)[source], getattr(copies, name), rtol=1e-6)
    score = Interactive(target)
    given, repeated = (plan.T[:, 0], plan.Y[:, 0]), (twin.T[:, 0], twin.Y[:, 0])
    moments, twins = score.moments(*given, ours, plan.weight), score.moments(*repeated, copies)
    assert moments.theta == pytest.approx(twins.theta, rel=1e-8)
    G = len(plan.X)
    clustered = stderr_of(twins.influence, source[:, None]) * np.sqrt((G - 1) / G)
    assert moments.stderr == pytest.approx(clustered, rel=1e-8)
    # What the bias of a hidden confounder depends on, and the losses.
    found = elements(score, *given, ours, moments.theta, plan.weight)
    expected = elements(score, *repeated, copies, twins.theta)
    assert (found.sigma2, found.nu2) == pytest.approx((expected.sigma2, expected.nu2))
    total = np.bincount(source, expected.psi_S) * len(plan.X) / len(source)
    np.testing.assert_allclose(found.psi_S, total, atol=1e-8)
    predictions = Ridge().predict(plan, arms=True), scaled(Ridge(), factor).predict(twin, arms=True)
    losses = [losses_of(p, hat) for p, hat in zip((plan, twin), predictions, strict=True)]
    assert losses[0] == pytest.approx(losses[1])


def test_integer_weights_of_single_parts(table):
    """The smooth ridge regression, stacking weights, and a whole fit with a linear regression."""
    X, _, T, y, weight = table
    source = np.repeat(np.arange(300), weight)
    ours = SmoothRidge(X, y, 0, weight.astype(float)).predict(X)
    np.testing.assert_allclose(ours, SmoothRidge(X[source], y[source], 0).predict(X), atol=1e-6)
    p = expit(np.stack([X[:, 0], X[:, 0] + X[:, 1], -X[:, 2]]))
    label = (y > 1).astype(float)
    for fit, values, target in (
        (squared_error_weights, X[:, :2].T, y),
        (log_loss_weights, p, label),
    ):
        copies = fit(values[:, source], target[source])
        np.testing.assert_allclose(fit(values, target, weight), copies, atol=1e-6)
    rows = np.arange(300)
    options = {"nuisance": LinearRegression(), "n_folds": 3, "random_state": 0}
    weighted = DDML(**options).fit(X, y, treatment=T, cluster=rows, sample_weight=weight)
    repeated = DDML(**options).fit(X[source], y[source], treatment=T[source], cluster=source)
    np.testing.assert_allclose(weighted.summary(), repeated.summary(), rtol=1e-6)
    np.testing.assert_allclose(weighted.conf_int(), repeated.conf_int(), rtol=1e-6)


# --- Peers ---


@pytest.mark.parametrize("clustered", [False, True])
def test_effect_and_error_are_those_of_weighted_least_squares(table, clustered):
    X, _, T, y, weight = table
    groups = np.arange(300) // 5
    effect = DDML("ridge", random_state=0)
    effect.fit(X, y, treatment=T, sample_weight=weight, cluster=groups if clustered else None)
    how = {"cov_type": "HC0"}
    if clustered:
        how = {"cov_type": "cluster", "cov_kwds": {"groups": groups}}
    v, e = effect.residuals_["v"], effect.residuals_["e"]
    twin = sm.WLS(e, v, weights=weight).fit(**how)
    assert effect.effect_ == pytest.approx(twin.params.iloc[0], rel=1e-8)
    assert effect.stderr_ == pytest.approx(twin.bse.iloc[0], rel=1e-8)


@pytest.mark.parametrize("target", ["ate", "att"])
def test_weighted_average_effect_is_that_of_doubleml(table, target):
    """The same folds and predictions; DoubleML's nuisances are not weighted, so ours are given.

    DoubleML has no weights for its score "ATTE". The weights of its score "ATE" may depend on the
    treatment, and then need their expectation given X: those of the treated give the ATT.
    """
    X, D, _, y, weight = table
    ours = DDML(MODELS, target=target, n_folds=3, random_state=0)
    ours.fit(X, y, treatment=D, sample_weight=weight)
    data = DoubleMLData.from_arrays(X, y, D)
    hat = {name: ours.nuisances_[name].to_numpy()[:, None] for name in ("m", "mu_0", "mu_1")}
    weights = weight / weight.mean()
    if target == "att":
        share = np.mean(weight * D)
        m = np.clip(hat["m"], 0.01, 0.99)
        weights = {"weights": weight * D / share, "weights_bar": weight[:, None] * m / share}
    options = {"n_folds": 3, "draw_sample_splitting": False, "weights": weights}
    twin = DoubleMLIRM(data, MODELS[1], MODELS[0], **options)
    twin.set_sample_splitting([ours.folds_])
    given = {"ml_m": hat["m"], "ml_g0": hat["mu_0"], "ml_g1": hat["mu_1"]}
    twin.fit(external_predictions={"d": given})
    assert ours.effect_ == pytest.approx(twin.coef[0], rel=1e-6)
    assert ours.stderr_ == pytest.approx(twin.se[0], rel=1e-6)


@pytest.mark.parametrize("clustered", [False, True])
def test_groups_and_linear_predictors(table, clustered):
    X, D, _, y, weight = table
    groups = np.arange(300) // 5
    effect = DDML(MODELS, random_state=0)
    effect.fit(X, y, treatment=D, sample_weight=weight, cluster=groups if clustered else None)
    kind = {"cov_type": "cluster", "cov_kwds": {"groups": groups}} if clustered else None
    twin = sm.WLS(effect.signals(), sm.add_constant(X), weights=weight)
    twin = twin.fit(**(kind or {"cov_type": "HC1"}), use_t=clustered)
    found = effect.best_linear_predictor(X)
    np.testing.assert_allclose(found["slope"], twin.params, rtol=1e-8)
    np.testing.assert_allclose(found["stderr"], twin.bse, rtol=1e-8)
    np.testing.assert_allclose(found[["low", "high"]], twin.conf_int(), rtol=1e-6)
    first = X[:, 0] > 0
    table_of = effect.by(first)
    for own, name in ((first, True), (~first, False)):
        assert table_of.loc[name, "effect"] == pytest.approx(
            np.average(effect.signals()[own], weights=weight[own])
        )
    whole = effect.by(np.zeros(300))
    assert whole["effect"].iloc[0] == pytest.approx(effect.effect_)
    assert whole["stderr"].iloc[0] == pytest.approx(effect.stderr_)
    row = effect.sensitivity(0.0, 0.0, level=0.975)
    assert row["ci_low"] == pytest.approx(effect.effect_ - 1.959964 * effect.stderr_)


def test_checks_after_the_fit_know_the_weights(table):
    X, _, T, y, weight = table
    X = pd.DataFrame(X, columns=list("abc"))
    effect = DDML("ridge", random_state=0).fit(X, y, treatment=T, sample_weight=weight)
    short = DDML("ridge", random_state=0)
    short.fit(X[["b", "c"]], y, treatment=T, sample_weight=weight)
    row = effect.benchmark(X, y, treatment=T, columns=["a"]).loc["a"]
    assert row["change"] == pytest.approx(short.effect_ - effect.effect_)
    plain = DDML("ridge", random_state=0).fit(X, y, treatment=T)
    placebos = [fit.placebo(X, y, treatment=T, n=2)["mean_z"] for fit in (effect, plain)]
    assert (placebos[0] != placebos[1]).all()


# --- What weights are for ---


def test_weights_undo_a_sample_with_unequal_chances():
    """Effects of 0 and 2; rows with the effect 2 are sampled four times as often."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12_000, 2))
    chance = np.where(X[:, 0] > 0, 0.8, 0.2)
    D = (rng.random(12_000) < expit(X[:, 1])).astype(float)
    y = 2 * (X[:, 0] > 0) * D + X[:, 1] + rng.standard_normal(12_000)
    own = rng.random(12_000) < chance
    X, D, y, weight = X[own], D[own], y[own], 1 / chance[own]
    model = DDML("smooth", random_state=0)
    assert model.fit(X, y, treatment=D).effect_ == pytest.approx(1.6, abs=4 * model.stderr_)
    weighted = model.fit(X, y, treatment=D, sample_weight=weight)
    assert weighted.effect_ == pytest.approx(1.0, abs=4 * model.stderr_)
    assert model.stderr_ < 0.1


@pytest.mark.parametrize("arms", [False, True])
def test_networks_learn_what_has_weight(arms):
    """Two kinds of rows with opposite slopes; the heavy ones decide."""
    rng = np.random.default_rng(0)
    n = 1200
    x, heavy = rng.standard_normal(n), np.arange(n) % 2 == 0
    X = np.column_stack([x, rng.standard_normal(n)])
    side = np.where(heavy, 1.0, -1.0)
    chance = np.full(n, 0.5) if arms else expit(2 * side * x)
    t = rng.binomial(1, chance).astype(float)
    y = 2 * side * x + 0.3 * rng.standard_normal(n)
    weight = np.where(heavy, 1.9, 0.1)
    kinds = {"treatments": t[:, None], "binary_T": [True], "n_folds": 2, "weight": weight}
    plan = make_plan(X, y[:, None], np.random.RandomState(0), **kinds)
    hat = Network(epochs=15).predict(plan, arms=arms).of()
    for name in ("g", "mu_0", "mu_1") if arms else ("m", "g"):
        assert np.corrcoef(getattr(hat, name), x)[0, 1] > 0.8
    plain = Network(epochs=15).predict(replace(plan, weight=np.ones(n)), arms=arms).of()
    assert abs(np.polyfit(x, plain.g, 1)[0]) < 0.5 < np.polyfit(x, hat.g, 1)[0]


@pytest.mark.parametrize("outcome", ["coupled", "direct"])
def test_training_step_with_weights_runs_on_meta(table, outcome):
    X, _, T, y, weight = table
    rng = np.random.RandomState(0)
    kinds = {"treatments": T[:, None], "binary_T": [False], "n_folds": 3}
    plan = make_plan(X, y[:, None], rng, **kinds, weight=weight / weight.mean())
    stack = Stack(plan, np.arange(3), torch.as_tensor(X).float(), device="meta")
    net = RoleNetwork(stack, Sizes())
    objective = Objective(net, stack, Sizes(), LossSettings(outcome, 0.1, 0.1))
    batch = stack.batch(torch.zeros(stack.G, stack.B, dtype=torch.long))
    assert batch.weight.shape == batch.T.shape
    optimizer = FlatAdamW(net, 0.01)
    training_step(net, objective, optimizer, batch, 1e-2)
    assert optimizer.mean[0].shape == net.W_1.shape
    assert optimizer.mean[0].device.type == "meta"


# --- Wrong or impossible weights ---


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (np.ones(10), r"one number per row of X \(300\), got 10"),
        (np.r_[-1.0, np.ones(299)], "must not be negative, got -1"),
        (np.r_[np.nan, np.ones(299)], "must be finite, got 1 NaN"),
        (np.zeros(300), "must have a positive value"),
        (np.array(["a"] * 300), "must be one number per row"),
        (np.ones((300, 2)), "must be one number per row"),
        (np.r_[np.ones(8), np.zeros(292)], "at least 4 rows per fold"),
    ],
)
def test_bad_weights(table, weight, words):
    with pytest.raises(ValueError, match=words):
        effect_of(table, "ridge", weight)


def test_arms_without_weight(table):
    X, D, _, y, _ = table
    with pytest.raises(
        ValueError, match="treatment must vary, got the single value 1 in every row"
    ):
        DDML("ridge").fit(X, y, treatment=D, sample_weight=D)
    few = np.where(D == 1, 1.0, 0.0)
    few[np.flatnonzero(D == 0)[:2]] = 1.0
    with pytest.raises(ValueError, match=r"smallest arm \(2\), got 5"):
        DDML("ridge").fit(X, y, treatment=D, sample_weight=few)


def test_clusters_without_weight_do_not_count(table):
    X, _, T, y, weight = table
    groups = np.arange(300) // 10
    weight = np.where(groups < 15, weight, 0.0)
    used = weight > 0
    options = {"nuisance": "ridge", "n_folds": 3, "random_state": 0}
    whole = DDML(**options).fit(X, y, treatment=T, cluster=groups, sample_weight=weight)
    short = DDML(**options)
    short.fit(X[used], y[used], treatment=T[used], cluster=groups[used], sample_weight=weight[used])
    np.testing.assert_allclose(whole.summary(), short.summary(), rtol=1e-8)
    assert whole.conf_int() == pytest.approx(short.conf_int())


def test_models_that_take_no_weights(table):
    with pytest.raises(ValueError, match=r"whose fit takes sample_weight, got KNeighborsRegressor"):
        effect_of(table, KNeighborsRegressor(), table[4])
    with pytest.raises(ValueError, match=r"whose fit takes sample_weight, got KNeighborsRegressor"):
        effect_of(table, Stacked(["ridge", Estimators(*[KNeighborsRegressor()] * 2)]), table[4])
    # Equal weights have nothing to say.
    effect_of(table, KNeighborsRegressor(), np.full(300, 2.0))
    piped = make_pipeline(StandardScaler(), LinearRegression())
    found = [effect_of(table, m, table[4]).effect_ for m in (piped, LinearRegression())]
    assert found[0] == pytest.approx(found[1])
    forest = RandomForestRegressor(5, min_samples_leaf=20)
    assert effect_of(table, forest, table[4]).effect_ != effect_of(table, forest, None).effect_
