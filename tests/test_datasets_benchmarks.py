"""IHDP, Jobs and Twins: known figures, and the published files give what the prepared ones do."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ddml_fs.datasets import benchmarks, fetch_ihdp, fetch_jobs, fetch_twins

DATA = os.environ.get("DDML_FS_DATA", "")
FETCH = {"IHDP": fetch_ihdp, "JOBS": fetch_jobs, "TWINS": fetch_twins}


def needs(prepared):
    (name,) = prepared
    there = DATA and (Path(DATA) / name).is_file()
    return pytest.mark.skipif(not there, reason=f"DDML_FS_DATA names no folder with {name}")


needs_ihdp = needs(benchmarks.IHDP_PREPARED)
needs_jobs = needs(benchmarks.JOBS_PREPARED)
needs_twins = needs(benchmarks.TWINS_PREPARED)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and no folder named."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("DDML_FS_DATA", raising=False)
    return tmp_path / "cache" / "ddml_fs"


def least_squares(A, y):
    return np.linalg.lstsq(A, y, rcond=None)[0]


def ols_1(X, treatment, y):
    """The treatment's coefficient."""
    return least_squares(np.column_stack([treatment, np.ones(len(X)), X]), y)[0]


def ols_2(X, treatment, y, over=slice(None)):
    """One regression per arm: the mean difference of their predictions over some rows."""
    A = np.column_stack([np.ones(len(X)), X])
    a, b = (least_squares(A[treatment == t], y[treatment == t]) for t in (0, 1))
    return (A[over] @ (b - a)).mean(0)


def publish(folder, downloads, data, test_rows, seed=0):
    """Write train and test files as published: shuffled rows in each replication.

    data : dict of str to array
        ``x`` (units, columns) and others (units,) or (units, replications).
    """
    rng = np.random.default_rng(seed)
    rest = [np.setdiff1d(np.arange(len(data["x"])), rows) for rows in test_rows]
    for download, rows in zip(downloads, (rng.permuted(rest, axis=1), test_rows), strict=True):
        arrays = {}
        for name, values in data.items():
            shared = name == "x" or values.ndim == 1
            parts = [values[i] if shared else values[i, r] for r, i in enumerate(rows)]
            arrays[name] = np.stack(parts, axis=-1)
        (file,) = download.files
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        np.savez(folder / file, **arrays)


def small_ihdp():
    """12 units, of which the first two have the same x and t; 3 replications, 4 test units."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(12, 25))
    x[1] = x[0]
    yf = rng.normal(size=(12, 3))
    data = {"x": x, "t": np.arange(12) // 2 % 2, "yf": yf}
    data |= {"ycf": 2 * yf, "mu0": 3 * yf, "mu1": 5 * yf}  # shows that a row stays together
    return data, np.stack([rng.permutation(12)[:4] for _ in range(3)])


def small_jobs():
    """9 units, of which 0 and 1 are the same."""
    x = np.random.default_rng(0).normal(size=(9, 17))
    x[1] = x[0]
    t, e = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1]), np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])
    yf = np.array([1, 1, 0, 1, 1, 0, 1, 1, 1])
    return {"x": x, "t": t, "yf": yf, "e": e}, np.array([[1, 3, 5], [8, 0, 2]])


def small_twins(folder):
    """Six light pairs among ten, in the form of the three published files."""
    weeks, light = np.arange(1, 11), np.array([0, 1, 1, 0, 1, 1, 1, 0, 1, 0]) == 1
    table = pd.DataFrame(0.0, range(6), ["gestatcat1", *benchmarks.TWINS_FINAL, "yf", "y_cf"])
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


# Without the data: folders, and the published form.


def test_published_ihdp(cache, tmp_path):
    truth, test_rows = small_ihdp()
    publish(tmp_path, benchmarks.IHDP, truth, test_rows)
    data = fetch_ihdp(data_home=tmp_path, download=False)
    assert data.X.shape == (12, 25)
    assert data.test_rows.shape == (3, 4)
    for r in range(3):
        # The order of units is another, so sort them by an outcome.
        found, original = np.argsort(data.y[:, r]), np.argsort(truth["yf"][:, r])
        np.testing.assert_array_equal(data.X[found], truth["x"][original])
        np.testing.assert_array_equal(data.treatment[found], truth["t"][original])
        np.testing.assert_array_equal(data.y[found, r], truth["yf"][original, r])
        np.testing.assert_array_equal(data.y[data.test_rows[r], r], truth["yf"][test_rows[r], r])
    np.testing.assert_array_equal(data.y_other, 2 * data.y)
    np.testing.assert_array_equal(data.mu_0, 3 * data.y)
    np.testing.assert_array_equal(data.mu_1, 5 * data.y)
    np.testing.assert_allclose(data.ate, 2 * truth["yf"].mean(0))
    np.testing.assert_allclose(data.att, 2 * truth["yf"][truth["t"] == 1].mean(0))


def test_published_jobs(cache, tmp_path):
    truth, test_rows = small_jobs()
    publish(tmp_path, benchmarks.JOBS, truth, test_rows)
    data = fetch_jobs(data_home=tmp_path, download=False)
    for found, original in zip(data.test_rows, test_rows, strict=True):
        np.testing.assert_array_equal(data.X[found], truth["x"][original])
        np.testing.assert_array_equal(data.y[found], truth["yf"][original])
        np.testing.assert_array_equal(data.treatment[found], truth["t"][original])
        np.testing.assert_array_equal(data.randomised[found], truth["e"][original] == 1)
    # Each split holds out one of the doubles: by their order it is the second.
    doubles = np.flatnonzero(np.all(truth["x"][0] == data.X, axis=1))
    assert [set(doubles) & set(rows) for rows in data.test_rows] == 2 * [{doubles[1]}]
    assert data.att == 1 - 0.5


def test_published_twins(cache, tmp_path):
    table, weeks = small_twins(tmp_path)
    data = fetch_twins(data_home=tmp_path, download=False)
    assert data.feature_names.tolist() == list(benchmarks.TWINS_NAMES)
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


def test_download(cache, tmp_path, monkeypatch):
    """What is downloaded is read; half of it is no obstacle to the rest."""
    publish(tmp_path, benchmarks.IHDP, *small_ihdp())
    train, test = (
        replace(each, url=(tmp_path / name).as_uri())
        for each in benchmarks.IHDP
        for name in each.files
    )
    monkeypatch.setattr(benchmarks, "IHDP", (train, replace(test, url="http://127.0.0.1:1/a")))
    with pytest.raises(FileNotFoundError, match=r"could not download .* refused"):
        fetch_ihdp()
    assert [path.name for path in (cache / "ihdp").iterdir()] == ["ihdp_npci_1-100.train.npz"]
    monkeypatch.setattr(benchmarks, "IHDP", (replace(train, url="http://127.0.0.1:1/a"), test))
    assert fetch_ihdp().X.shape == (12, 25)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("IHDP", "train.npz is no npz file"),
        ("JOBS", "train.npz is no npz file"),
        ("TWINS", "Final_data_twins.csv lacks the columns eclamp, bord"),
    ],
)
def test_download_of_something_else(cache, tmp_path, monkeypatch, name, reason):
    (tmp_path / "page").write_text("<html>\n")
    url = (tmp_path / "page").as_uri()
    others = [replace(each, url=url) for each in getattr(benchmarks, name)]
    monkeypatch.setattr(benchmarks, name, others)
    with pytest.raises(FileNotFoundError, match=reason):
        FETCH[name]()
    assert not list(cache.iterdir())


@pytest.mark.parametrize("name", FETCH)
def test_neither_found_nor_downloaded(cache, tmp_path, name):
    downloads = getattr(benchmarks, name)
    with pytest.raises(FileNotFoundError) as error:
        FETCH[name](data_home=tmp_path / "given", download=False)
    files = ", ".join(file for each in downloads for file in each.files)
    (prepared,) = getattr(benchmarks, f"{name}_PREPARED")
    (first,) = downloads[0].files
    assert str(error.value) == (
        f"found no {files} or {prepared} in {tmp_path / 'given'}, {cache}, and download=False "
        f"forbids {downloads[0].url}. Download it by hand and put {first} into {cache}, or set "
        "DDML_FS_DATA to a folder that holds the data."
    )


@pytest.mark.parametrize("name", FETCH)
def test_wrong_prepared_file(cache, tmp_path, name):
    (prepared,) = getattr(benchmarks, f"{name}_PREPARED")
    (tmp_path / prepared).parent.mkdir()
    (tmp_path / prepared).write_bytes(b"another")
    with pytest.raises(ValueError, match=r"must have the SHA256 .* delete it"):
        FETCH[name](data_home=tmp_path, download=False)


def test_replications_of_other_units(cache, tmp_path):
    truth, test_rows = small_ihdp()
    publish(tmp_path, benchmarks.IHDP, truth, test_rows)
    path = tmp_path / "ihdp" / "ihdp_npci_1-100.train.npz"
    with np.load(path) as file:
        arrays = dict(file)
    arrays["x"][0, 0, 2] += 1
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=r"replication 3 has other units .* delete them") as error:
        fetch_ihdp(data_home=tmp_path, download=False)
    assert str(path) in str(error.value)
    del arrays["mu1"]
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=r"train.npz lacks the arrays mu1; delete them"):
        fetch_ihdp(data_home=tmp_path, download=False)


def test_columns_instead_of_another_number(cache, tmp_path):
    truth, test_rows = small_jobs()
    publish(tmp_path, benchmarks.JOBS, truth | {"x": truth["x"][:, 1:]}, test_rows)
    with pytest.raises(ValueError, match="x has 16 columns instead of 17"):
        fetch_jobs(data_home=tmp_path, download=False)


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


# With the data: figures known from elsewhere, and the published form of all of it.


@needs_ihdp
def test_ihdp(cache, tmp_path):
    data = fetch_ihdp(data_home=DATA, download=False)
    assert data.X.shape == (747, 25)
    assert data.treatment.sum() == 139
    for name in ("y", "y_other", "mu_0", "mu_1"):
        assert data[name].shape == (747, 100)
    assert data.test_rows.shape == (100, 75)
    with np.load(Path(DATA) / "ihdp/ihdp_npci_1-100.npz") as file:
        np.testing.assert_array_equal(data.feature_names, file["x_names"])
    assert round(data.ate.mean(), 4) == 4.5158
    np.testing.assert_allclose(data.att, 4)  # so the surfaces were made

    arrays = {"x": data.X, "t": data.treatment, "yf": data.y, "ycf": data.y_other}
    arrays |= {"mu0": data.mu_0, "mu1": data.mu_1}
    publish(tmp_path, benchmarks.IHDP, arrays, data.test_rows)
    again = fetch_ihdp(data_home=tmp_path, download=False)
    np.testing.assert_allclose(again.ate, data.ate)
    for found in (data, again):
        arguments = found.X, found.treatment, found.y
        assert round(np.abs(ols_1(*arguments) - found.ate).mean(), 4) == 0.7474
        assert round(np.abs(ols_2(*arguments) - found.ate).mean(), 4) == 0.1340
    for r in (0, 57, 99):
        here, there = data.test_rows[r], again.test_rows[r]
        np.testing.assert_array_equal(data.X[here], again.X[there])
        np.testing.assert_array_equal(data.y[here, r], again.y[there, r])


@needs_jobs
def test_jobs(cache, tmp_path):
    data = fetch_jobs(data_home=DATA, download=False)
    assert data.X.shape == (3212, 17)
    assert data.treatment.sum() == 297
    assert data.randomised.sum() == 722
    assert data.test_rows.shape == (10, 642)
    with np.load(Path(DATA) / "jobs/jobs_DW_bin.npz") as file:
        np.testing.assert_array_equal(data.feature_names, file["x_names"])

    arrays = {"x": data.X, "t": data.treatment, "yf": data.y, "e": data.randomised.astype(float)}
    publish(tmp_path, benchmarks.JOBS, arrays, data.test_rows)
    again = fetch_jobs(data_home=tmp_path, download=False)
    for found in (data, again):
        arguments = found.X, found.treatment, found.y
        assert round(found.att, 5) == 0.07794
        assert round(abs(ols_1(*arguments) - found.att), 4) == 0.0128
        over = found.treatment == 1
        assert round(abs(ols_2(*arguments, over) - found.att), 4) == 0.0108
    for here, there in zip(data.test_rows, again.test_rows, strict=True):
        np.testing.assert_array_equal(data.X[here], again.X[there])
        np.testing.assert_array_equal(data.y[here], again.y[there])


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
