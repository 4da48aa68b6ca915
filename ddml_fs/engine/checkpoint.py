"""Finished shards on disk, so that an interrupted sweep goes on where it stopped."""

import os
from pathlib import Path

import joblib
import numpy as np

FORMAT = 2  # raise when what is stored, or how it is computed, changes


def fingerprint(*everything):
    """A hash of everything that the predictions depend on."""
    return joblib.hash([FORMAT, *everything])


class Checkpoint:
    """A folder of finished shards, one for each distinct run.

    Parameters
    ----------
    folder : str or Path, or None
        Where runs are kept; None keeps nothing.
    key : callable
        Makes the fingerprint; not called where nothing is kept.
    """

    def __init__(self, folder, key):
        self.folder = None
        if folder is not None:
            self.folder = Path(folder) / key()
            self.folder.mkdir(parents=True, exist_ok=True)

    def load(self, i):
        """The predictions of shard i, or None where it was not finished."""
        file = self._file(i)
        return np.load(file) if file is not None and file.exists() else None

    def save(self, i, values):
        """Keep the predictions of shard i; a file is there whole or not at all."""
        file = self._file(i)
        if file is None:
            return
        part = file.with_suffix(f".{os.getpid()}.part")
        with part.open("wb") as stream:
            np.save(stream, values)
        part.replace(file)

    def _file(self, i):
        return None if self.folder is None else self.folder / f"shard-{i:05d}.npy"
