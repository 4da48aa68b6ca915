"""IHDP: known figures, and the published files give what the prepared one does."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from published_files import DATA, empty_cache, needs, ols_1, ols_2, publish

from ddml_fs.datasets import fetch_ihdp, ihdp

needs_ihdp = needs(ihdp.IHDP_PREPARED)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    return empty_cache(tmp_path, monkeypatch)


def small_ihdp():
    """12 units, of which the first two have the same x and t; 3 replications, 4 test units."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(12, 25))
    x[1] = x[0]
    yf = rng.normal(size=(12, 3))
    data = {"x": x, "t": np.arange(12) // 2 % 2, "yf": yf}
    data |= {"ycf": 2 * yf, "mu0": 3 * yf, "mu1": 5 * yf}  # shows that a row stays together
    return data, np.stack([rng.permutation(12)[:4] for _ in range(3)])


def test_published_ihdp(cache, tmp_path):
    truth, test_rows = small_ihdp()
    publish(tmp_path, ihdp.IHDP, truth, test_rows)
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


def test_download(cache, tmp_path, monkeypatch):
    """What is downloaded is read; half of it is no obstacle to the rest."""
    publish(tmp_path, ihdp.IHDP, *small_ihdp())
    train, test = (
        replace(each, url=(tmp_path / name).as_uri()) for each in ihdp.IHDP for name in each.files
    )
    monkeypatch.setattr(ihdp, "IHDP", (train, replace(test, url="http://127.0.0.1:1/a")))
    with pytest.raises(FileNotFoundError, match=r"could not download .* refused"):
        fetch_ihdp()
    assert [path.name for path in (cache / "ihdp").iterdir()] == ["ihdp_npci_1-100.train.npz"]
    monkeypatch.setattr(ihdp, "IHDP", (replace(train, url="http://127.0.0.1:1/a"), test))
    assert fetch_ihdp().X.shape == (12, 25)


def test_replications_of_other_units(cache, tmp_path):
    truth, test_rows = small_ihdp()
    publish(tmp_path, ihdp.IHDP, truth, test_rows)
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
    publish(tmp_path, ihdp.IHDP, arrays, data.test_rows)
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
