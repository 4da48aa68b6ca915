"""A first estimate of the effect is taken out of the outcome, and added again."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from ddml_fs import DDML
from ddml_fs.engine.plan import make_plan
from ddml_fs.nuisances import Ridge, Smooth, Stacked
from ddml_fs.nuisances.first_effect import first_effect, with_effect, without_effect
from ddml_fs.nuisances.held_out_loss import losses_of
from ddml_fs.nuisances.stacked import stack


def draw(effect, n=800, seed=0, binary=False):
    """Confounding by a sine and a product."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6))
    both = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    t = both + rng.standard_normal(n)
    t = (t > 0).astype(float) if binary else t
    return X, t, effect * t + both + rng.standard_normal(n)


def plan_of(X, t, y, **options):
    given = {"treatments": t[:, None], "own": [-1], "binary_T": [bool(np.isin(t, (0, 1)).all())]}
    return make_plan(X, y[:, None], np.random.RandomState(0), **(given | options))


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("effect", [-20.0, 0.0, 20.0])
def test_first_effect_is_near_the_effect(binary, effect):
    X, t, y = draw(effect, binary=binary)
    assert abs(first_effect(plan_of(X, t, y)) - effect) < 0.6
    units = first_effect(plan_of(X, 1000 * t + 7, y)) if not binary else effect / 1000
    assert abs(1000 * units - effect) < 0.6


def test_none_for_labels_and_several_treatments():
    X, t, y = draw(1.0)
    assert first_effect(plan_of(X, t, (y > 0).astype(float))) == 0
    sweep = make_plan(X, y[:, None], np.random.RandomState(0), binary_T=np.zeros(6, bool))
    assert first_effect(sweep) == 0
    plan = plan_of(X, t, y)
    assert without_effect(plan, 0.0) is plan


def test_predictions_and_losses_are_those_of_the_outcome():
    X, t, y = draw(3.0, binary=True)
    plan = plan_of(X, t, y)
    rest = without_effect(plan, 3.0)
    np.testing.assert_allclose(rest.Y[:, 0], y - 3 * t)
    parts = {"smooth": Smooth().predict(rest, arms=True), "ridge": Ridge().predict(rest, arms=True)}
    inner = stack(rest, parts)
    m, mu_1 = inner.m.copy(), inner.mu_1.copy()
    outer = with_effect(plan, 3.0, parts, inner)
    np.testing.assert_allclose(outer.g, inner.g + 3 * m)
    np.testing.assert_allclose(outer.mu_1, mu_1 + 3)
    np.testing.assert_allclose(outer.mu_0, inner.mu_0)
    by_hand = [np.mean((y - part.g[0, 0, 0] - 3 * m[0, 0, 0]) ** 2) for part in parts.values()]
    np.testing.assert_allclose(outer.stacking.losses["g"][0, 0, 0], by_hand)
    before, after = losses_of(rest, inner), losses_of(plan, outer)
    assert after["mu_1"] == pytest.approx(before["mu_1"])  # the same residuals in each arm
    assert after["g"] > before["g"]  # the noise of the treatment is back


def test_a_large_effect_is_not_pulled_towards_zero():
    """Boosting errs in m and in g, and the error of m pulls a large effect towards zero."""
    model = HistGradientBoostingRegressor(max_iter=60, random_state=0)
    pair = Stacked([(model, model), Ridge()])
    sizes = {"alone": [], "both": []}
    for effect in (-20.0, 20.0):  # confounding is the same for both, so that it cancels
        X, t, y = draw(effect)
        for name, nuisance in (("alone", (model, model)), ("both", pair)):
            found = DDML(nuisance, random_state=0).fit(X, y, treatment=t)
            sizes[name].append(abs(found.effect_))
    assert np.mean(sizes["alone"]) < 19.7
    assert np.mean(sizes["both"]) == pytest.approx(20, abs=0.2)
