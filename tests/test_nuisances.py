"""Nuisances: each predicts as its slow twin does, alone; stacked ones are weighed rightly."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.linear_model import Ridge as SklearnRidge

from ddml_fs import DDML
from ddml_fs.datasets import make_effect_data
from ddml_fs.engine.plan import make_plan
from ddml_fs.engine.smooth_ridge import SmoothRidge
from ddml_fs.nuisances import (
    NAMES,
    Boosting,
    Estimators,
    Forest,
    GaussianProcess,
    Network,
    OnLatents,
    Ridge,
    Smooth,
    Sparse,
    Stacked,
    resolve_nuisance,
)
from ddml_fs.nuisances.held_out_loss import losses_of
from ddml_fs.nuisances.simplex import log_loss_weights, squared_error_weights
from ddml_fs.nuisances.stacked import stack
from ddml_fs.scores import PartiallyLinear


def plan_of(X, t, y, n_folds=3):
    options = {"treatments": t[:, None], "binary_T": [True], "n_folds": n_folds}
    return make_plan(X, y[:, None], np.random.RandomState(0), strata=t.astype(int), **options)


@pytest.fixture(scope="module")
def plan():
    data = make_effect_data("binary", n_samples=400, n_features=10, random_state=1)
    return plan_of(data.X, data.treatment, data.y)


def bent(seed, n=1000):
    """Arms that bend as no closed form does; the ATE is 1, a line per arm misses it."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    m = np.where(np.abs(X[:, 0]) < 0.7, 0.8, 0.2)
    t = (rng.uniform(size=n) < m).astype(float)
    y = t + 6 * (np.abs(X[:, 0]) < 0.7) + 0.5 * rng.standard_normal(n)
    return X, t, y


# --- Closed forms ---


def arms_of(plan, regress):
    """mu_0 and mu_1 of the first fold's held-out rows, by a plain function per arm."""
    fold = plan.folds[0]
    mean, sd = plan.X[fold.train].mean(0), plan.X[fold.train].std(0)
    A, B = ((plan.X[rows] - mean) / sd for rows in (fold.train, fold.hold))
    t, y = plan.T[fold.train, 0], plan.Y[fold.train, 0]
    return A, B, t, [regress(A[t == a], y[t == a], B) for a in (0, 1)]


def test_ridge_per_arm_is_scikit_learns(plan):
    hat = Ridge(shrinkage=2.0).predict(plan, arms=True).of()
    A, B, t, mu = arms_of(
        plan, lambda A, y, B: SklearnRidge(alpha=2.0 * A.shape[1]).fit(A, y).predict(B)
    )
    rows = plan.folds[0].hold
    np.testing.assert_allclose(hat.mu_0[rows], mu[0], atol=1e-9)
    np.testing.assert_allclose(hat.mu_1[rows], mu[1], atol=1e-9)
    twin = LogisticRegression(C=1 / (2.0 * A.shape[1]), tol=1e-10).fit(A, t)
    np.testing.assert_allclose(hat.m[rows], twin.predict_proba(B)[:, 1], atol=1e-4)
    np.testing.assert_allclose(hat.g, (1 - hat.m) * hat.mu_0 + hat.m * hat.mu_1)


def test_smooth_per_arm(plan):
    hat = Smooth().predict(plan, arms=True).of()
    seed = int(plan.seeds[0])
    A, B, t, mu = arms_of(plan, lambda A, y, B: SmoothRidge(A, y, seed).predict(B))
    rows = plan.folds[0].hold
    np.testing.assert_allclose(np.stack([hat.mu_0, hat.mu_1])[:, rows], mu)
    # λ = 10·D/n per row is C = 1/(10·D) of scikit-learn, on standardised columns.
    twin = LogisticRegression(C=1 / 100, tol=1e-10).fit(A, t)
    np.testing.assert_allclose(hat.m[rows], twin.predict_proba(B)[:, 1], atol=1e-4)
    other = Smooth(shrinkage=100.0).predict(plan, arms=True).of()
    assert other.m.std() < hat.m.std()


def test_own_column_is_no_covariate_of_any_nuisance(plan):
    """A treatment that is a column of X: predicted as if it stood beside the others."""
    inside = make_plan(
        np.column_stack([plan.T, plan.X]),
        plan.Y,
        np.random.RandomState(0),
        treatments=plan.T,
        own=[0],
        binary_T=[True],
        n_folds=3,
        strata=plan.T[:, 0].astype(int),
    )
    pair = Estimators(LogisticRegression(), LinearRegression())
    for nuisance in (pair, Boosting(), Smooth(), Ridge(), GaussianProcess(), Sparse()):
        a, b = (nuisance.predict(p, arms=True).of() for p in (plan, inside))
        np.testing.assert_allclose(a.m, b.m, atol=1e-8)
        np.testing.assert_allclose(a.mu_1, b.mu_1, atol=1e-8)


# --- What a user gives is used as it is, alone ---


def test_forests_alone_serve_the_interactive_score():
    """On bent surfaces: closed forms fail, forests do not, so no closed form has any weight."""
    X, t, y = bent(0, 2000)
    forest = DDML("rf", random_state=0).fit(X, y, treatment=t)
    closed = DDML("smooth", random_state=0).fit(X, y, treatment=t)
    assert abs(forest.effect_ - 1) < 4 * forest.stderr_
    assert abs(closed.effect_ - 1) > 8 * closed.stderr_
    assert not hasattr(forest, "nuisance_weights_")


def test_a_pair_with_the_interactive_score_is_its_models_and_nothing_else():
    X, t, y = bent(1)
    pair = (
        RandomForestClassifier(50, min_samples_leaf=10, random_state=3),
        RandomForestRegressor(50, min_samples_leaf=5, random_state=3),
    )
    model = DDML(pair, random_state=0).fit(X, y, treatment=t)
    assert abs(model.effect_ - 1) < 4 * model.stderr_
    for train, hold in model.folds_:
        found = model.nuisances_.iloc[hold]
        m = clone(pair[0]).fit(X[train], t[train]).predict_proba(X[hold])[:, 1]
        np.testing.assert_allclose(found["m"], m)
        for a in (0, 1):
            own = train[t[train] == a]
            np.testing.assert_allclose(
                found[f"mu_{a}"], clone(pair[1]).fit(X[own], y[own]).predict(X[hold])
            )


def test_open_seeds_are_set_and_given_ones_kept(plan):
    open_seed = Estimators(RandomForestClassifier(5), RandomForestRegressor(5))
    first, again = (open_seed.predict(plan).of().m for _ in range(2))
    np.testing.assert_array_equal(first, again)
    given = Estimators(RandomForestClassifier(5, random_state=1), RandomForestRegressor(5))
    assert not np.array_equal(given.predict(plan).of().m, first)


# --- Stacking ---


def slow_weights(loss, n):
    """The same weights by a general optimiser."""
    start = np.full(n, 1 / n)
    return minimize(
        loss,
        start,
        bounds=[(0, 1)] * n,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 1000},
    ).x


def test_squared_error_weights_are_the_best():
    rng = np.random.default_rng(0)
    truth = rng.standard_normal(200)
    y = 50 + truth + 0.5 * rng.standard_normal(200)
    predicted = 50 + np.stack([truth + rng.standard_normal(200), 0.7 * truth, 0 * truth])
    ours = squared_error_weights(predicted, y)
    slow = slow_weights(lambda w: np.mean((w @ predicted - y) ** 2), 3)
    assert ours.sum() == pytest.approx(1)
    np.testing.assert_allclose(ours, slow, atol=1e-3)


def test_log_loss_weights_are_the_best():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 400)
    y = (rng.uniform(size=400) < p).astype(float)
    predicted = np.stack([np.clip(p + 0.3 * rng.standard_normal(400), 0.02, 0.98), 0.3 + 0.4 * p])

    def loss(w):
        q = w @ predicted
        return -np.mean(y * np.log(q) + (1 - y) * np.log(1 - q))

    ours = log_loss_weights(predicted, y)
    assert ours.sum() == pytest.approx(1)
    assert loss(ours) == pytest.approx(loss(slow_weights(loss, 2)), abs=1e-4)


def test_each_function_has_weights_of_its_own(plan):
    """Candidates of which one knows the propensity and one arm, the other the rest."""
    rng = np.random.default_rng(0)
    parts = {name: Ridge().predict(plan, arms=True) for name in ("first", "second")}
    t, y = plan.T[:, 0], plan.Y[:, 0]
    known = {
        "m": np.clip(t, 0.1, 0.9),
        "g": y + 0.3 * rng.standard_normal(len(y)),
        "mu_0": np.where(t == 0, y, 0),
        "mu_1": np.where(t == 1, y, 0),
    }
    owner = {"m": "first", "g": "second", "mu_0": "second", "mu_1": "first"}
    for function, name in owner.items():
        getattr(parts[name], function)[0, 0, 0] = known[function]
    for part in parts.values():
        part.mu_0[0, 0, 0, t == 1] = 1e6 * rng.standard_normal(int(t.sum()))  # not judged there
    hat = stack(plan, parts)
    weights = {name: w[0, 0, 0] for name, w in hat.stacking.weights.items()}
    assert hat.stacking.names == ["first", "second"]
    for function, name in owner.items():
        assert weights[function][hat.stacking.names.index(name)] > 0.98
    losses = losses_of(plan, hat)
    assert losses["mu_1"] < 0.05 * hat.stacking.losses["mu_1"][0, 0, 0, 1]


def test_stacked_effect_reports_its_candidates():
    rng = np.random.default_rng(0)
    X, t = rng.standard_normal((600, 5)), rng.binomial(1, 0.5, 600)
    y = X[:, 0] + t + rng.standard_normal(600)
    model = DDML(Stacked(["smooth", "boosting", Ridge()]), random_state=0).fit(X, y, treatment=t)
    weights, losses = model.nuisance_weights_, model.nuisance_losses_
    assert list(weights.index) == ["smooth", "boosting", "ridge"]
    assert list(losses.index) == ["smooth", "boosting", "ridge", "used", "constant"]
    assert list(weights.columns) == ["m", "g", "effect"]
    np.testing.assert_allclose(weights[["m", "g"]].sum(), 1)
    assert 0 <= weights["effect"].sum() <= 1
    # In-sample, weights cannot make it worse than the best candidate (EM is a little short of it).
    best = losses.loc[["smooth", "boosting", "ridge"]].min()
    assert (losses.loc["used", ["m", "g"]] <= best[["m", "g"]] * 1.01).all()
    alone = DDML("boosting", random_state=0).fit(X, y, treatment=t)
    assert alone.nuisance_losses_.loc["used", "m"] == pytest.approx(losses.loc["boosting", "m"])


LARGE = ["mlp", "smooth", "boosting", "sparse"]


def test_small_samples_have_more_candidates():
    assert list(Stacked().resolved(2000)) == [*LARGE, "index", "gp"]
    assert list(Stacked().resolved(2001)) == LARGE


def test_small_samples_with_bent_confounding():
    """400 rows: a Gaussian process comes close to the true nuisances, boosting does not."""
    away = {"gp": [], "boosting": []}
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((400, 8))
        f = 2 * np.sin(2 * X[:, 0]) + 1.5 * X[:, 1] * X[:, 2]
        m = 1 / (1 + np.exp(-1.5 * np.sin(2 * X[:, 0]) - X[:, 1] * X[:, 2]))
        t = (rng.uniform(size=400) < m).astype(float)
        y = t + f + rng.standard_normal(400)
        truth = PartiallyLinear().of_residuals(t - m, y - m - f)
        for name in ("gp", "boosting"):
            model = DDML(name, score="partially_linear", random_state=0).fit(X, y, treatment=t)
            away[name].append((model.effect_ - truth.theta) / truth.stderr)
    rms = {name: np.sqrt(np.mean(np.square(z))) for name, z in away.items()}
    # In standard errors, from the estimate with the true nuisances: what nuisances add to chance.
    assert rms["gp"] < 1 < 2 < rms["boosting"]


# --- Names and settings ---


def test_names_stand_for_objects():
    for name in NAMES:
        nuisance = resolve_nuisance(name)
        nuisance.check(PartiallyLinear())
        assert repr(clone(nuisance)) == repr(nuisance)
    with pytest.raises(ValueError, match="nuisance must be one of"):
        resolve_nuisance("tree")


def test_settings_are_reached_through_the_estimator():
    model = DDML(Forest(network=Network(epochs=3)))
    model.set_params(nuisance__network__epochs=5)
    assert model.nuisance.network.epochs == 5
    assert clone(model).get_params()["nuisance__network__epochs"] == 5


def test_models_on_latents_are_not_for_shrunken_networks():
    """Forests learn the residuals of such networks, and the user's models would not be used."""
    models = OnLatents(LinearRegression(), LinearRegression(), network=Network(shrinkage=5.0))
    with pytest.raises(ValueError, match="network must be without shrinkage"):
        models.check(PartiallyLinear())
