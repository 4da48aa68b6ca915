"""Jobs: known figures, and the published files give what the prepared one does."""

from pathlib import Path

import numpy as np
import pytest
from published_files import DATA, empty_cache, needs, ols_1, ols_2, publish

from ddml_fs.datasets import fetch_jobs, jobs

needs_jobs = needs(jobs.JOBS_PREPARED)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    return empty_cache(tmp_path, monkeypatch)


def small_jobs():
    """9 units, of which 0 and 1 are the same."""
    x = np.random.default_rng(0).normal(size=(9, 17))
    x[1] = x[0]
    t, e = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1]), np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])
    yf = np.array([1, 1, 0, 1, 1, 0, 1, 1, 1])
    return {"x": x, "t": t, "yf": yf, "e": e}, np.array([[1, 3, 5], [8, 0, 2]])


def test_published_jobs(cache, tmp_path):
    truth, test_rows = small_jobs()
    publish(tmp_path, jobs.JOBS, truth, test_rows)
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


def test_columns_instead_of_another_number(cache, tmp_path):
    truth, test_rows = small_jobs()
    publish(tmp_path, jobs.JOBS, truth | {"x": truth["x"][:, 1:]}, test_rows)
    with pytest.raises(ValueError, match="x has 16 columns instead of 17"):
        fetch_jobs(data_home=tmp_path, download=False)


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
    publish(tmp_path, jobs.JOBS, arrays, data.test_rows)
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
