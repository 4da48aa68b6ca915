"""Columns with long tails, and linear indices, as inputs of sparse regressions."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import BayesianRidge

from ddml_fs import DDML
from ddml_fs.engine.indices import linear_indices, ridge_index
from ddml_fs.engine.tails import without_long_tails
from ddml_fs.nuisances import Sparse


def test_only_long_tails_change():
    rng = np.random.default_rng(0)
    normal, income = rng.standard_normal(800), np.exp(rng.standard_normal(800))
    rare, counts = (rng.uniform(size=800) < 0.02) * 1.0, rng.poisson(2, 800)
    X = np.column_stack([normal, income, rare, counts, np.ones(800)])
    new = without_long_tails(X)
    np.testing.assert_array_equal(new[:, [0, 2, 3, 4]], X[:, [0, 2, 3, 4]])
    order = np.argsort(income)
    np.testing.assert_allclose(new[order, 1], norm.ppf((np.arange(800) + 0.5) / 800))
    np.testing.assert_array_equal(X[:, 1], income)  # the given array is not changed
    short = X[:, [0, 3]]
    assert without_long_tails(short) is short
    many_zeros = np.where(rng.uniform(size=800) < 0.8, 0.0, income)
    assert len(np.unique(without_long_tails(many_zeros[:, None])[many_zeros == 0])) == 1


@pytest.mark.parametrize("treatment", ["binary", "continuous"])
def test_a_long_tail_that_confounds_by_its_logarithm(treatment):
    """Products of logarithms, of columns whose largest values decide all squares and products."""
    rng = np.random.default_rng(1)
    L = rng.standard_normal((1500, 6))
    both = L[:, 0] + L[:, 1] * L[:, 2]
    if treatment == "binary":
        t = (both + rng.logistic(size=1500) > 0).astype(float)
    else:
        t = both + rng.standard_normal(1500)
    y = t + 2 * both + rng.standard_normal(1500)
    model = DDML("sparse", score="partially_linear", random_state=0)
    model.fit(np.exp(L), y, treatment=t)
    assert abs(model.effect_ - 1) < 3.5 * model.stderr_


def test_indices_are_ridge_predictions_of_other_rows():
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((300, 8)), rng.standard_normal((50, 8))
    y = A @ np.arange(8) / 4 + rng.standard_normal(300)
    peer = BayesianRidge(tol=1e-9, max_iter=2000).fit(A, y)
    ours = ridge_index(A, y, B, np.ones(300))
    np.testing.assert_allclose(
        ours - ours.mean(), (B - B.mean(0)) @ peer.coef_, rtol=0.01, atol=0.02
    )
    of_A, of_B = linear_indices(A, np.column_stack([y, rng.standard_normal(300)]), B, np.ones(300))
    assert of_A.shape == (300, 2)
    assert of_B.shape == (50, 2)
    assert np.corrcoef(of_A[:, 0], y)[0, 1] > 0.8
    noise = rng.standard_normal(300)
    wide = rng.standard_normal((300, 60))
    own, _ = linear_indices(wide, noise[:, None], wide, np.ones(300))
    assert abs(np.corrcoef(own[:, 0], noise)[0, 1]) < 0.25  # in-sample it would be about 0.45


def test_integer_weights_are_repeated_rows():
    rng = np.random.default_rng(3)
    A, B, w = rng.standard_normal((60, 4)), rng.standard_normal((9, 4)), rng.integers(1, 4, 60)
    y = A[:, 0] + rng.standard_normal(60)
    twice = ridge_index(np.repeat(A, w, 0), np.repeat(y, w), B, np.ones(w.sum()))
    np.testing.assert_allclose(ridge_index(A, y, B, w.astype(float)), twice, rtol=1e-6)


def test_a_curve_of_a_sum_of_many_columns():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 25))
    index = X @ rng.standard_normal(25) / 5
    t = index + 0.5 * index**2 + rng.standard_normal(1500)
    y = t + index + 0.8 * index**2 + rng.standard_normal(1500)
    without, with_index = (
        DDML(Sparse(index=index), random_state=0).fit(X, y, treatment=t) for index in (False, True)
    )
    assert abs(without.effect_ - 1) > 4.5 * without.stderr_
    assert abs(with_index.effect_ - 1) < 3.5 * with_index.stderr_
    with pytest.raises(ValueError, match="index must be one of"):
        DDML(Sparse(index="yes")).fit(X, y, treatment=t)
