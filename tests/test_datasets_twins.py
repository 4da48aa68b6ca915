"""Twins: known figures, and the published files give what the prepared one does."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from published_files import DATA, empty_cache, needs, ols_1, ols_2

from ddml_fs.datasets.twins import TWINS_FINAL, TWINS_NAMES, TWINS_PREPARED, fetch_twins

needs_twins = needs(TWINS_PREPARED)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    return empty_cache(tmp_path, monkeypatch)


def small_twins(folder):
    """Six light pairs among ten, in the form of the three published files."""
    weeks, light = np.arange(1, 11), np.array([0, 1, 1, 0, 1, 1, 1, 0, 1, 0]) == 1
    table = pd.DataFrame(0.0, range(6), ["gestatcat1", *TWINS_FINAL, "yf", "y_cf"])
    table["T"], table["y0"], table["y1"] = [0, 1] * 3, [0, 0, 1] * 2, [1, 0, 0] * 2
    table["bord"] = [1, 0, 0, 1, 1, 1]
    table["Propensity"] = 1 / (1 + np.exp(-5 * (weeks[light] / 10 - 0.1)))
    tables = {
        "Final_data_twins.csv": table,
        "twin_pairs_X_3years_samesex.csv": pd.DataFrame({"gestat10": weeks, "bord_0": 0}),
        "twin_pairs_T_3years_samesex.csv": pd.DataFrame({"dbirwt_1": np.where(light, 1999, 2000)}),
    }
    (folder / "twins").mkdir(parents=True)
    for name, each in tables.items():
        each.to_csv(folder / "twins" / name)
    return table, weeks[light]


def test_published_twins(cache, tmp_path):
    table, weeks = small_twins(tmp_path)
    data = fetch_twins(data_home=tmp_path, download=False)
    assert data.feature_names.tolist() == list(TWINS_NAMES)
    np.testing.assert_array_equal(data.X[:, -1], weeks)
    np.testing.assert_array_equal(data.X[:, 1], table["bord"])
    np.testing.assert_array_equal(data.treatment, table["T"])
    np.testing.assert_array_equal(data.y, [0, 0, 1, 1, 0, 0])
    np.testing.assert_array_equal(data.propensity, table["Propensity"])
    assert data.ate == 0
    draw = fetch_twins(data_home=tmp_path, download=False, random_state=3)
    changed = draw.treatment != data.treatment
    assert changed.any()
    np.testing.assert_array_equal(draw.X[:, 1] != data.X[:, 1], changed)


@pytest.mark.parametrize(
    ("file", "change", "reason"),
    [
        (
            "Final_data_twins.csv",
            lambda d: d.drop(columns=["Propensity", "dmar"]),
            "lacks the columns dmar, Propensity",
        ),
        ("Final_data_twins.csv", lambda d: d[1:], "5, 10 and 10 rows, 6 of the last below 2000 g"),
        ("twin_pairs_X_3years_samesex.csv", lambda d: d[::-1], "do not fit the propensity"),
        ("twin_pairs_T_3years_samesex.csv", lambda d: d[["bord_0"]], "lacks the columns dbirwt_1"),
    ],
)
def test_other_files_of_twins(cache, tmp_path, file, change, reason):
    small_twins(tmp_path)
    path = tmp_path / "twins" / file
    change(pd.read_csv(path).assign(bord_0=0)).to_csv(path, index=False)
    with pytest.raises(ValueError, match=reason):
        fetch_twins(data_home=tmp_path, download=False)


@pytest.fixture(scope="module")
def twins():
    return fetch_twins(data_home=DATA, download=False)


@needs_twins
def test_twins(twins):
    X, t, y = twins.X, twins.treatment, twins.y
    assert X.shape == (11984, 46)
    assert round(twins.ate, 5) == -0.0252
    table = pd.read_csv(Path(DATA) / "twins/twins_cevae46.csv.gz")
    np.testing.assert_array_equal(y, table["yf"])
    assert twins.feature_names.tolist() == table.columns[:46].tolist()
    assert round(abs(y[t == 1].mean() - y[t == 0].mean() - twins.ate), 4) == 0.0869
    assert round(abs(ols_1(X, t, y) - twins.ate), 4) == 0.0298
    assert round(abs(ols_2(X, t, y) - twins.ate), 4) == 0.0243


@needs_twins
def test_fresh_draws_of_twins(twins):
    one, same, other = (
        fetch_twins(data_home=DATA, download=False, random_state=seed) for seed in (1, 1, 2)
    )
    for name in ("X", "treatment", "y"):
        np.testing.assert_array_equal(one[name], same[name])
    assert np.any(one.treatment != other.treatment)
    np.testing.assert_array_equal(one.y, np.where(one.treatment == 1, one.y_1, one.y_0))
    assert one.ate == twins.ate

    # In each tenth by propensity, and in all, the share of treated is a sum of Bernoulli draws.
    p, order = twins.propensity, np.argsort(twins.propensity)
    for rows in [order, *np.array_split(order, 10)]:
        sd = np.sqrt(np.sum(p[rows] * (1 - p[rows])))
        assert abs(np.sum(one.treatment[rows] - p[rows])) < 4 * sd

    # Of the covariates only the birth order follows: it is that of the twin seen.
    bord = twins.feature_names == "bord"
    np.testing.assert_array_equal(one.X[:, ~bord], twins.X[:, ~bord])
    bord_0 = pd.read_csv(Path(DATA) / "twins/twins_cevae46.csv.gz")["bord_0"]
    for data in (twins, one):
        seen = np.where(data.treatment == 1, 1 - bord_0, bord_0)
        np.testing.assert_array_equal(data.X[:, bord].ravel(), seen)


@needs_twins
def test_published_twins_give_the_same(cache, tmp_path, twins):
    """The prepared file, written out as the three published ones."""
    table = pd.read_csv(Path(DATA) / "twins/twins_cevae46.csv.gz")
    (tmp_path / "twins").mkdir()
    n = table["cevae_row"].max() + 2
    every = pd.DataFrame({"gestat10": np.arange(n) % 10 + 1, "dbirwt_1": 2500.0})
    every.loc[table["cevae_row"], ["gestat10", "dbirwt_1"]] = table[["gestat10", "dbirwt_1"]].values
    files = {
        "Final_data_twins": table.drop(columns="gestat10").rename(
            columns={"propensity": "Propensity"}
        ),
        "twin_pairs_X_3years_samesex": every[["gestat10"]],
        "twin_pairs_T_3years_samesex": every[["dbirwt_1"]],
    }
    for name, each in files.items():
        each.to_csv(tmp_path / "twins" / f"{name}.csv")
    again = fetch_twins(data_home=tmp_path, download=False)
    for name, values in twins.items():
        np.testing.assert_array_equal(again[name], values)
