"""What errors of the nuisances add to the standard error."""

import numpy as np
import pytest

from ddml_fs import DDML
from ddml_fs.datasets import make_effect_data
from ddml_fs.inference import stderr_of
from ddml_fs.nuisance_error import share_of
from ddml_fs.nuisances import Stacked


def fit(nuisance, treatment="continuous", **options):
    data = make_effect_data(treatment, n_samples=400, n_features=10, random_state=0)
    model = DDML(nuisance, random_state=0, **options)
    return model.fit(data.X, data.y, treatment=data.treatment), data


def test_candidates_that_disagree_make_it_larger():
    model, data = fit(Stacked(["smooth", "boosting"]))
    weights, v = model.nuisance_weights_, model.residuals_["v"]
    alone = {name: fit(name)[0] for name in ("smooth", "boosting")}
    m = sum(weights.loc[name, "m"] * alone[name].nuisances_["m"] for name in alone)
    np.testing.assert_allclose(model.nuisances_["m"], m, rtol=1e-5)
    away = sum(
        weights.loc[name, "m"] * ((alone[name].nuisances_["m"] - m) ** 2).mean() for name in alone
    )
    noise = float(stderr_of(model.influence_))
    assert model.stderr_ == pytest.approx(np.hypot(noise, model.nuisance_stderr_))
    # That of g is of the outcome without a first effect, so here only its size is known.
    of_g = (model.nuisance_stderr_ * (v**2).mean() / share_of(len(v))) ** 2 / away
    assert 0 < of_g < np.var(data.y)


@pytest.mark.parametrize("nuisance", ["smooth", "sparse"])
def test_single_models_have_none(nuisance):
    model, _ = fit(nuisance)
    assert model.nuisance_stderr_ == 0
    assert model.stderr_ == pytest.approx(float(stderr_of(model.influence_)))


@pytest.mark.parametrize("score", ["interactive", "partially_linear"])
def test_small_where_confounding_is_linear(score):
    """All candidates agree there, and the usual standard error is enough."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 5))
    t = (X[:, 0] + rng.logistic(size=1000) > 0).astype(float)
    y = t + X[:, 0] + rng.standard_normal(1000)
    model = DDML(Stacked(["smooth", "sparse"]), score=score, random_state=0).fit(X, y, treatment=t)
    assert model.nuisance_stderr_ < 0.3 * model.stderr_


def test_groups_and_sensitivity_include_it():
    """One group of all rows, and no hidden confounder: the standard error of the effect itself."""
    model, data = fit(Stacked(["smooth", "boosting"]), "binary")
    assert model.nuisance_stderr_ > 0.05 * model.stderr_
    whole = model.by(np.zeros(len(data.X)))
    assert whole["stderr"].item() == pytest.approx(model.stderr_, rel=1e-6)
    low, high = model.conf_int(0.9)
    found = model.sensitivity(0.0, 0.0, level=0.95)
    np.testing.assert_allclose(found[["ci_low", "ci_high"]], [low, high], rtol=1e-6)


def test_median_over_splits():
    model, _ = fit(Stacked(["smooth", "sparse"]), n_repeats=3)
    assert 0 < model.nuisance_stderr_ < model.stderr_
    assert (model.repeats_["stderr"] > 0).all()
