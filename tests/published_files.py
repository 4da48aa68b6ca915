"""What the tests of the effect benchmarks share: small data in their published form, and OLS."""

import os
from pathlib import Path

import numpy as np
import pytest

DATA = os.environ.get("DDML_FS_DATA", "")


def needs(prepared):
    (name,) = prepared
    there = DATA and (Path(DATA) / name).is_file()
    return pytest.mark.skipif(not there, reason=f"DDML_FS_DATA names no folder with {name}")


def empty_cache(tmp_path, monkeypatch):
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
