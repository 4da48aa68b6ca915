"""One additive model for all columns, against plain regressions, one column at a time."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LinearRegression, LogisticRegression

from ddml_fs import DDML, CausalFeatureSelector
from ddml_fs.engine.additive import AdditiveFit, held_out_losses
from ddml_fs.engine.plan import make_plan
from ddml_fs.nuisances import Additive
from ddml_fs.nuisances.additive import STRENGTHS
from ddml_fs.scores import Interactive


def table(n_samples=300, seed=0):
    """Five columns that go together, in other units, and two treatments beside them."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n_samples, 5)) @ (np.eye(5) + 0.4 * rng.standard_normal((5, 5)))
    X = X * [1, 10, 0.1, 3, 1] + [0, 5, 0, -2, 1]
    T = np.column_stack([X[:, 0] + rng.standard_normal(n_samples), X[:, 3] > 0]).astype(float)
    domain = np.arange(n_samples) % 3
    index = X @ [0.5, -0.05, 3.0, 0.2, 0.0] + 0.5 * T[:, 0] + 0.7 * domain - 1
    return X, T, domain, index, rng


def plan_of(label, *, beside=False, domains=False, block=None, covariates=None):
    X, T, domain, index, rng = table()
    y = rng.binomial(1, expit(index)) if label else index + rng.standard_normal(len(X))
    options = {"treatments": T} if beside else {}
    return make_plan(
        X,
        y[:, None].astype(float),
        rng,
        binary_T=[False] * (2 if beside else 5),
        label=label,
        domain=domain if domains else None,
        block=block,
        covariates=covariates,
        **options,
    )


def slow_model(A, y, label, strength, n_free):
    """Ridge regression (by Newton's method for labels) with columns, then free intercepts."""
    penalty = strength * len(A) * np.diag(np.arange(A.shape[1]) < n_free)
    beta = np.zeros(A.shape[1])
    for _ in range(50):
        p = expit(A @ beta) if label else A @ beta
        w = p * (1 - p) if label else np.ones(len(A))
        H = A.T @ (A * w[:, None]) + penalty
        beta = beta + np.linalg.solve(H, A.T @ (y - p) - penalty @ beta)
    return beta, w if label else np.ones(len(A))


def slow_left_out(plan, f, label, strength):
    """The model of all covariates; then the treatment's block out of it, by least squares.

    Of covariates of the block the model keeps what the others predict of them, with its weights.
    """
    X, y = plan.X, plan.Y[:, 0]
    intercepts = np.column_stack([plan.domain == d for d in sorted(set(plan.domain))])
    inside = np.flatnonzero(plan.covariates)
    scaled = (X - X.mean(0)) / X.std(0)
    A = np.column_stack([scaled[:, inside], intercepts])
    beta, w = slow_model(A, y, label, strength, len(inside))
    own = np.zeros(A.shape[1], bool)
    if plan.own[f] >= 0:
        own[: len(inside)] = plan.block[inside] == plan.block[plan.own[f]]
    others, root = A[:, ~own], np.sqrt(w)[:, None]

    def predicted(x):
        return others @ np.linalg.lstsq(root * others, root[:, 0] * x)[0]

    index = others @ beta[~own]
    for j in np.flatnonzero(own):
        index = index + beta[j] * predicted(A[:, j])
    t = plan.T[:, f] - plan.T[:, f].mean()
    return t - predicted(t), index


@pytest.mark.parametrize("label", [False, True])
@pytest.mark.parametrize("domains", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"block": [0, 0, 1, 2, 1]},
        {"covariates": [True, True, False, True, False]},
        {"block": [0, 0, 1, 1, 1], "covariates": [True, False, False, True, True]},
        {"beside": True},
    ],
    ids=["columns", "blocks", "some covariates", "blocks of some", "beside"],
)
def test_left_out_equals_regressions(label, domains, options):
    """For columns in the model, outside of it, and beside X; with an intercept for each domain."""
    plan = plan_of(label, domains=domains, **options)
    for strength in (1e-3, 0.3):
        fit = AdditiveFit(plan, plan.Y[:, 0], label, strength)
        assert fit.dof == plan.covariates.sum() + (3 if domains else 1)
        for f in range(plan.T.shape[1]):
            v, index = fit.left_out(f)
            slow_v, slow_index = slow_left_out(plan, f, label, strength)
            # A jitter of 1e-6 of the columns' variance is all that differs.
            np.testing.assert_allclose(v / v.std(), slow_v / v.std(), atol=3e-4)
            np.testing.assert_allclose(index, slow_index, atol=3e-4)


def test_index_without_a_column_is_least_squares():
    """Without a penalty, what is left of the model is the regression on all other columns."""
    plan = plan_of(False)
    fit = AdditiveFit(plan, plan.Y[:, 0], False, 0.0)
    for f in range(5):
        others = np.delete(plan.X, f, 1)
        ols = LinearRegression().fit(others, plan.Y[:, 0])
        np.testing.assert_allclose(fit.left_out(f)[1], ols.predict(others), atol=1e-4)
        treatment = LinearRegression().fit(others, plan.X[:, f])
        v = plan.X[:, f] - treatment.predict(others)
        np.testing.assert_allclose(fit.left_out(f)[0] / v.std(), v / v.std(), atol=1e-4)


@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_effect_of_numbers_is_that_of_least_squares(offset):
    """Also its robust error, whatever the mean of the outcome."""
    X, T, _, index, rng = table()
    y = offset + index + rng.standard_normal(len(X))
    for strength in (None, 1.0):  # the penalty has no part in the effect
        nuisance = Additive(strength=strength)
        ddml = DDML(nuisance, score="partially_linear", random_state=0)
        ddml.fit(X, y, treatment=T[:, 0])
        both = LinearRegression().fit(np.column_stack([T[:, 0], X]), y)
        assert ddml.effect_ == pytest.approx(both.coef_[0], rel=1e-4)
    named = DDML("additive", score="partially_linear", random_state=0)
    named.fit(X, y, treatment=T[:, 0])
    v = T[:, 0] - LinearRegression().fit(X, T[:, 0]).predict(X)
    left = y - both.predict(np.column_stack([T[:, 0], X]))
    robust = np.sqrt(np.sum(v**2 * left**2)) / np.sum(v**2)
    assert named.stderr_ == pytest.approx(robust, rel=0.02)  # the chosen penalty is small


def test_column_of_X_as_treatment():
    X, _, _, index, rng = table()
    y = index + rng.standard_normal(len(X))
    ddml = DDML("additive", score="partially_linear", random_state=0).fit(X, y, treatment=2)
    assert ddml.effect_ == pytest.approx(LinearRegression().fit(X, y).coef_[2], rel=1e-4)


def wide_apart(label, n_samples=600):
    """Columns that go together, one of them two-valued, in other units."""
    rng = np.random.RandomState(1)
    X = rng.standard_normal((n_samples, 6)) @ (np.eye(6) + 0.3 * rng.standard_normal((6, 6)))
    X[:, 5] = X[:, 5] > 0.3
    X[:, 1] *= 20
    index = X @ [1.0, -0.02, 0.5, 0.3, 0.2, 0.8] - 0.5
    y = rng.binomial(1, expit(index)) if label else index + rng.standard_normal(n_samples)
    return X, y


@pytest.mark.parametrize("label", [True, False])
def test_sweep_equals_unpenalised_regression(label):
    X, y = wide_apart(label)
    selector = CausalFeatureSelector(
        1.0, nuisance=Additive(strength=1e-8), dose="linear", covariates="all", random_state=0
    ).fit(X, y)
    model = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000) if label else LinearRegression()
    coef = model.fit(X, y).coef_.ravel()
    effects = selector.effects_
    np.testing.assert_allclose(effects["effect"], coef, rtol=0.01)
    np.testing.assert_allclose(effects["std_effect"], coef * X.std(0), rtol=0.01)
    # The textbook's errors; a label's are made larger for the degrees of freedom, twice.
    A = np.column_stack([X, np.ones(len(X))])
    if label:
        p = model.predict_proba(X)[:, 1]
        weight = p * (1 - p) * (1 - 7 / 600) ** 2
    else:
        weight = np.full(600, 593 / np.sum((y - model.predict(X)) ** 2))
    textbook = np.sqrt(np.diag(np.linalg.inv(A.T @ (A * weight[:, None]))))[:6]
    if label:
        np.testing.assert_allclose(effects["stderr"], textbook, rtol=0.01)
    else:  # of the outcome without the feature, so that errors are larger
        assert (effects["stderr"] >= 0.99 * textbook).all()


def test_sweep_with_domains_equals_regression_with_intercepts():
    X, _ = wide_apart(True)
    rng = np.random.RandomState(2)
    domain = np.arange(600) % 2
    X[:, 0] += 2 * domain
    index = X @ [0.5, -0.02, 0.5, 0.3, 0.2, 0.8] - 3.0 * domain
    y = rng.binomial(1, expit(index))
    selector = CausalFeatureSelector(
        1.0, nuisance=Additive(strength=1e-8), dose="linear", covariates="all", random_state=0
    ).fit(X, y, sample_domain=domain)
    model = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000)
    coef = model.fit(np.column_stack([X, domain]), y).coef_[0, :6]
    table = selector.effects_
    np.testing.assert_allclose(table["effect"], coef, rtol=0.01)


@pytest.mark.parametrize("label", [True, False])
def test_penalty_is_strong_for_noise_and_weak_for_signal(label):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((200, 30))
    strength = {}
    for name, index in (("noise", np.zeros(200)), ("signal", X[:, :15].sum(1))):
        y = rng.binomial(1, expit(index)) if label else index + rng.standard_normal(200)
        plan = make_plan(X, y[:, None].astype(float), rng, binary_T=[False] * 30, label=label)
        losses = held_out_losses(plan, plan.Y[:, 0], label, STRENGTHS)
        strength[name] = STRENGTHS[int(np.argmin(losses))]
        if name == "noise":
            assert (np.diff(losses) < 0).all()
    assert strength["signal"] < strength["noise"] == max(STRENGTHS)


@pytest.mark.parametrize("label", [True, False])
def test_held_out_losses_equal_loops(label):
    plan = plan_of(label, domains=True, covariates=[True, True, False, True, True])
    y, inside = plan.Y[:, 0], np.flatnonzero(plan.covariates)
    scaled = (plan.X - plan.X.mean(0)) / plan.X.std(0)
    A = np.column_stack([scaled[:, inside], plan.domain[:, None] == np.arange(3)])
    strengths = (0.3, 1e-2, 1.0)
    slow = np.zeros(3)
    for i, strength in enumerate(strengths):
        for fold in plan.folds:
            beta, _ = slow_model(A[fold.train], y[fold.train], label, strength, len(inside))
            for index, seen in zip(A[fold.hold] @ beta, y[fold.hold], strict=True):
                slow[i] += (
                    -np.log(expit(index if seen else -index)) if label else (seen - index) ** 2
                )
    # Of a label, a few steps of Newton's method have to do.
    np.testing.assert_allclose(held_out_losses(plan, y, label, strengths), slow, rtol=1e-3)


def test_columns_that_repeat_others_break_nothing():
    """Nothing is left of them; the others are as they were."""
    plan = plan_of(False)
    X = np.column_stack([plan.X, plan.X[:, 0] + plan.X[:, 3], np.ones(300)])
    more = make_plan(X, plan.Y, np.random.RandomState(0), binary_T=[False] * 7)
    fit, plain = (AdditiveFit(p, plan.Y[:, 0], False, 0.01) for p in (more, plan))
    for f in (0, 3, 5, 6):
        v, index = fit.left_out(f)
        assert np.isfinite(index).all()
        assert v.std() < 0.01 * max(X[:, f].std(), 0.1)
    np.testing.assert_allclose(fit.left_out(1)[0], plain.left_out(1)[0], atol=1e-3)


def test_additive_refuses():
    with pytest.raises(ValueError, match="interactive"):
        Additive().check(Interactive())
    with pytest.raises(ValueError, match="strength"):
        Additive(strength=-1.0).check(Interactive())
