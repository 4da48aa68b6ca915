"""Intervals and tests against hand computation."""

import numpy as np
import pytest

from ddml_fs import inference
from ddml_fs.datasets import make_effect_data
from ddml_fs.scores import PartiallyLinear, residuals


def test_median_counts_the_spread():
    theta, stderr = inference.median_of(np.array([1.0, 2.0, 4.0]), np.full(3, np.sqrt(0.5)))
    assert theta == 2.0
    # Squared: one half from each split, and 1, 0 and 4 from the spread; the median is 1.5.
    assert stderr == pytest.approx(np.sqrt(1.5))


@pytest.mark.parametrize("kind", ["binary", "continuous"])
def test_intervals_cover_with_true_nuisances(kind):
    """200 draws: the number covered is Binomial(200, 0.95), 181 being its 0.5 % quantile."""
    covered = 0
    for seed in range(200):
        d = make_effect_data(kind, n_samples=500, n_features=10, random_state=seed)
        estimate = PartiallyLinear().of_residuals(*residuals(d.treatment, d.m, d.y, d.g))
        low, high = inference.normal_interval(estimate.theta, estimate.stderr, 0.95)
        covered += low <= d.theta <= high
    assert covered >= 181


def test_normal_pvalue():
    assert inference.normal_pvalue(1.959964, 1.0) == pytest.approx(0.05, abs=1e-6)
    assert inference.normal_pvalue(0.0, 1.0) == 1.0
