"""Files as their authors published them: which they are, how they are read and put together."""

import shutil
import zipfile
import zlib
from functools import partial

import numpy as np
import pandas as pd

from ddml_fs.datasets.fetch import Download


def published_file(url, folder, read):
    """A file to download, and to keep as it is."""
    name = f"{folder}/{url.rpartition('/')[2]}"
    return Download(url, {name: None}, partial(keep, name, read))


def keep(name, read, path, folder):
    """Keep a file as it came, if it can be read."""
    shutil.move(path, folder / name)
    read(folder / name)


def join_files(downloads, paths, join):
    """What ``join`` makes of the files; its complaint names them."""
    try:
        return join(*paths.values())
    except ValueError as error:
        files, urls = ", ".join(map(str, paths.values())), ", ".join(d.url for d in downloads)
        raise ValueError(
            f"{files} must be the files from {urls}, but {error}; delete them, and they are "
            "downloaded again."
        ) from None


def join_splits(arrays, n_keys, names, train, test):
    """Arrays of train and test files with all units in one order.

    Parameters
    ----------
    arrays : sequence of str
        The arrays' names; ``x`` is first.
    n_keys : int
        How many of the arrays, the first ones, tell which unit a row is: they are the same in all
        replications.
    names : sequence of str
        The columns of ``x``.
    train, test : Path
        npz files with ``x`` (units, columns, replications) and the others (units, replications).

    Returns
    -------
    data : dict of str to array
        The arrays, with the units in the order of the first replication, train before test, and
        without the axis of replications where these are the same; and ``test_idx``
        (replications, test units).
    """
    parts = [read_arrays(arrays, path) for path in (train, test)]
    data = {name: np.concatenate([part[name] for part in parts]) for name in arrays}
    n_units, n_columns, n_replications = data["x"].shape
    if n_columns != len(names):
        raise ValueError(f"x has {n_columns} columns instead of {len(names)}")
    shared, varying = arrays[:n_keys], arrays[n_keys:]

    def keys(r):
        return np.column_stack([data[name][..., r] for name in shared])

    # places[i, r]: the row of unit i in replication r.
    places = np.empty((n_units, n_replications), int)
    for r in range(n_replications):
        try:
            places[:, r] = match_rows(keys(0), keys(r))
        except ValueError:
            raise ValueError(f"replication {r + 1} has other units than the first") from None
    units = np.argsort(places, axis=0)
    return {
        **{name: data[name][..., 0] for name in shared},
        **{name: np.take_along_axis(data[name], places, 0) for name in varying},
        "test_idx": units[len(parts[0]["x"]) :].T,
    }


def match_rows(A, B):
    """Which row of B (N, D) each row of A (N, D) is; equal rows go by their order."""
    a, b = np.lexsort(A.T), np.lexsort(B.T)  # stable
    if not np.array_equal(A[a], B[b]):
        raise ValueError("the rows must be the same")
    places = np.empty(len(A), int)
    places[a] = b
    return places


def read_arrays(names, path):
    """Arrays of an npz file, by name; ValueError unless it has them."""
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path.name} is no npz file")
    try:
        with np.load(path) as file:
            missing = [name for name in names if name not in file]
            if missing:
                raise ValueError(f"{path.name} lacks the arrays {', '.join(missing)}")
            return {name: file[name] for name in names}
    except (zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path.name} is no whole npz file ({error})") from None


def read_columns(names, path):
    """Columns of a CSV file, by name; ValueError unless it has them."""
    header = pd.read_csv(path, nrows=0).columns
    missing = [name for name in names if name not in header]
    if missing:
        raise ValueError(f"{path.name} lacks the columns {', '.join(missing)}")
    return pd.read_csv(path, usecols=list(names))
