"""The benchmark of growth: every way of measuring runs, and exponents are slopes."""

import numpy as np
import pandas as pd
import pytest

from benchmarks import growth


@pytest.mark.parametrize("method", [growth.NETWORKS, growth.RIDGE, growth.BLOCKS])
def test_every_sweep_is_measured(method):
    found = growth.measure(method, 400, 24)
    assert set(found) == {"seconds", "CPU seconds", "peak MB"}
    assert found["CPU seconds"] > 0


def test_words_are_the_same_in_a_given_array():
    X, y = growth.words(300, 30)
    given, again = growth.words(300, 30, np.empty((300, 30), np.float32))
    np.testing.assert_array_equal(X, given)
    np.testing.assert_array_equal(y, again)
    assert 0.04 < X.mean() < 0.08


def test_exponents_by_method():
    sizes = np.array([100, 400, 3000, 5000])
    rows = [
        {"grows": grows, "method": method, grows: n, "CPU seconds": 1e-4 * n**power}
        for grows in ("columns", "rows")
        for method, power in (("linear", 1.0), ("square", 2.0))
        for n in sizes
    ]
    table = growth.exponents(pd.DataFrame(rows))
    np.testing.assert_allclose(table.loc["linear"], 1.0)
    np.testing.assert_allclose(table.loc["square", "in columns"], 2.0)
