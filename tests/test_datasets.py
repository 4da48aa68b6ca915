"""The generators against the figures they must reproduce."""

import numpy as np
import pytest

from ddml_fs.datasets import make_dense_effect_data, make_effect_data
from ddml_fs.scores import residual_on_residual, residuals
from experiments.baselines.effects import OLS1

# MAE of OLS-1 for α = 4, known from an independent implementation of the generator.
OLS_1 = {
    ("binary", 20): 2.17,
    ("binary", 100): 1.71,
    ("continuous", 20): 1.74,
    ("continuous", 100): 1.51,
}


@pytest.mark.parametrize(("kind", "d"), list(OLS_1))
def test_ols_errs_as_much_as_it_should(kind, d):
    errors = []
    for seed in range(20):
        data = make_effect_data(kind, n_features=d, random_state=seed)
        model = OLS1().fit(data.X, data.y, treatment=data.treatment)
        errors.append(abs(model.effect_ - data.theta))
    # Between-seed spread as in the paper's table (0.41, 0.18, 0.22, 0.11); two means of 20 differ
    # by less than three standard errors.
    spread = np.std(errors)
    assert np.mean(errors) == pytest.approx(OLS_1[kind, d], abs=3 * spread * np.sqrt(2 / 20))


@pytest.mark.parametrize("kind", ["binary", "continuous"])
@pytest.mark.parametrize("make", [make_effect_data, make_dense_effect_data])
def test_nuisances_are_true(kind, make):
    """Residuals from the true nuisances have mean 0 given X, and give the effect back."""
    data = make(kind, n_samples=20000, n_features=20, random_state=0)
    v, e = residuals(data.treatment, data.m, data.y, data.g)
    assert residual_on_residual(v, e) == pytest.approx(data.theta, abs=4 / np.sqrt(np.sum(v**2)))
    for residual in (v, e):
        t = data.X.T @ residual / np.sqrt((data.X**2).T @ residual**2)
        assert np.abs(t).max() < 4.5


def test_roles_drive_what_they_say():
    data = make_effect_data("binary", n_samples=50, n_features=12, random_state=0)
    assert set(data.roles) == {"confounder", "treatment", "outcome"}
    assert max(max(columns) for columns in data.roles.values()) == 9


def test_seed_decides():
    a, b = (make_effect_data(random_state=3, n_samples=20) for _ in range(2))
    np.testing.assert_array_equal(a.X, b.X)
    np.testing.assert_array_equal(a.y, b.y)


@pytest.mark.parametrize("bad", [{"kind": "ternary"}, {"n_features": 9}])
def test_bad_arguments(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        make_effect_data(**bad)
