"""Finished shards on disk, so that an interrupted sweep goes on where it stopped."""

import os
from pathlib import Path

import joblib
import numpy as np

from ddml_fs.engine.nuisance import Predictions

FORMAT = 1  # raise when what is stored, or how it is computed, changes


def fingerprint(problems, X, *settings):
    """A hash of everything that the solutions depend on.

    Folds and vectors that many problems share are hashed once.
    """
    shared: dict = {}

    def number(thing):
        return shared.setdefault(id(thing), (len(shared), thing))[0]

    plan = []
    for q in problems:
        own = number(q.treatment) if isinstance(q.treatment, np.ndarray) else -1 - q.treatment
        plan.append((number(q.fold), own, number(q.outcome), q.binary_T, q.binary_Y, q.seed))
    return joblib.hash([FORMAT, X, plan, [thing for _, thing in shared.values()], settings])


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
        if file is None or not file.exists():
            return None
        with np.load(file) as arrays:
            return Predictions(arrays["m"], arrays["g"], arrays.get("mu"))

    def save(self, i, hold):
        """Keep the predictions of shard i; a file is there whole or not at all."""
        file = self._file(i)
        if file is None:
            return
        arrays = {"m": hold.m, "g": hold.g} | ({} if hold.mu is None else {"mu": hold.mu})
        part = file.with_suffix(f".{os.getpid()}.part")
        with part.open("wb") as stream:
            np.savez(stream, **arrays)
        part.replace(file)

    def _file(self, i):
        return None if self.folder is None else self.folder / f"shard-{i:05d}.npz"
