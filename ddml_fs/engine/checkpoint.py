"""Finished shards on disk, so that an interrupted sweep can be continued."""

import os
from pathlib import Path

import joblib
import numpy as np

FORMAT = 2  # raise when what is stored, or how it is computed, changes


def fingerprint(*everything):
    """A hash of everything on which the predictions depend."""
    return joblib.hash([FORMAT, *everything])


class Checkpoint:
    """A folder of finished shards, one for each distinct run.

    Parameters
    ----------
    folder : str or Path, or None
        Where runs are stored; with None nothing is stored.
    key : callable
        Makes the fingerprint; it is not called if nothing is stored.
    """

    def __init__(self, folder, key):
        self.folder = None
        if folder is not None:
            self.folder = Path(folder) / key()
            self.folder.mkdir(parents=True, exist_ok=True)

    def load(self, i):
        """The predictions of shard i, or None if it is not finished."""
        file = self._file(i)
        return np.load(file) if file is not None and file.exists() else None

    def save(self, i, values):
        """Store the predictions of shard i. The file appears only when it is complete."""
        file = self._file(i)
        if file is None:
            return
        part = file.with_suffix(f".{os.getpid()}.part")
        with part.open("wb") as stream:
            np.save(stream, values)
        part.replace(file)

    def _file(self, i):
        return None if self.folder is None else self.folder / f"shard-{i:05d}.npy"
