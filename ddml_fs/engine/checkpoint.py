"""Finished shards on disk, so that an interrupted sweep can be continued."""

import hashlib
import io
import json
import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from ddml_fs.warning import caution, joined

FORMAT = 4  # raise when what is stored, or how it is computed, changes
MARK = b"\n#ddml-fs "  # between the array of a file and its seal
STALE = 3600  # seconds after which an unfinished file belongs to a run that was killed


def fingerprint(*everything):
    """A hash of everything on which the predictions depend."""
    return joblib.hash([FORMAT, *everything])


class Refused(Exception):
    """A file does not hold the shard that its name says; the message says why."""


class Checkpoint:
    """A folder of finished shards, one for each distinct run.

    A file is an array in NumPy's format, followed by a seal: the format, the run, the number and
    the shape of the shard, and a checksum. Files whose seal is wrong are not used. If a file cannot
    be written, the run continues without storing anything more.

    Parameters
    ----------
    folder : str or Path, or None
        Where runs are stored; with None nothing is stored.
    key : callable
        Makes the fingerprint; it is not called if nothing is stored.
    """

    def __init__(self, folder, key):
        self.folder: Any = None
        self.run = ""
        if folder is None:
            return
        self.run = key()
        self.folder = Path(folder) / self.run
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._remove_stale()
        except OSError as error:
            self._give_up(error)

    def restore(self, shapes):
        """The predictions of all shards that are there, and sound.

        Parameters
        ----------
        shapes : list of tuples of int
            Shape of the predictions of every shard.

        Returns
        -------
        found : dict of arrays
            By the number of the shard. A warning names the files that were refused.
        """
        found, refused = {}, []
        for i, shape in enumerate(shapes if self.folder is not None else ()):
            try:
                found[i] = self._load(i, shape)
            except FileNotFoundError:
                continue
            except (Refused, OSError) as error:
                refused.append(f"{self._file(i).name} ({reason_of(error)})")
        if refused:
            caution(
                f"Files in the checkpoint {str(self.folder)!r} are not used, and their shards are "
                f"computed again: {joined(refused)}."
            )
        return found

    def save(self, i, values):
        """Store the predictions of shard i. The file appears only when it is complete."""
        if self.folder is None:
            return
        file = self._file(i)
        part = file.with_suffix(f".{os.getpid()}.part")
        try:
            try:
                write(part, sealed(values, self.run, i))
                part.replace(file)
            finally:
                part.unlink(missing_ok=True)
        except OSError as error:
            self._give_up(error)

    def _load(self, i, shape):
        body, mark, seal = self._file(i).read_bytes().rpartition(MARK)
        if not mark:
            raise Refused("it is truncated, or not a file of this format")
        wanted = seal_of(body, self.run, i, shape)
        try:
            got = json.loads(seal)
        except ValueError:
            raise Refused("it is damaged") from None
        for name, text in (
            ("format", "it has another format"),
            ("run", "it belongs to another run"),
            ("shard", "it is another shard"),
            ("shape", "it has another shape"),
        ):
            if not isinstance(got, dict) or got.get(name) != wanted[name]:
                raise Refused(text)
        if got != wanted:
            raise Refused("it is damaged")
        return np.load(io.BytesIO(body), allow_pickle=False)

    def _give_up(self, error):
        """Warn, and store nothing from now on: a full disk must not cost the fit."""
        caution(
            f"The checkpoint {str(self.folder)!r} cannot be written ({reason_of(error)}); the fit "
            "continues without storing further shards."
        )
        self.folder = None

    def _remove_stale(self):
        for part in self.folder.glob("*.part"):
            if time.time() - part.stat().st_mtime > STALE:
                part.unlink(missing_ok=True)

    def _file(self, i):
        return self.folder / f"shard-{i:05d}.npy"


def seal_of(body, run, i, shape):
    """What the end of a file says about its array, in NumPy's format."""
    digest = hashlib.sha256(body).hexdigest()
    return {"format": FORMAT, "run": run, "shard": i, "shape": list(shape), "sha256": digest}


def sealed(values, run, i):
    """The bytes of a file: the array and its seal."""
    stream = io.BytesIO()
    np.save(stream, values, allow_pickle=False)
    body = stream.getvalue()
    return body + MARK + json.dumps(seal_of(body, run, i, values.shape)).encode()


def write(path, data):
    """Write bytes to a file."""
    path.write_bytes(data)


def reason_of(error):
    """Why a file was refused or could not be used, in a few words."""
    return getattr(error, "strerror", None) or str(error)


@contextmanager
def resumable(folder):
    """If the work is interrupted, add a note to the interruption that says how to continue.

    Parameters
    ----------
    folder : str or Path, or None
        The checkpoint; without one there is nothing to continue.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        if folder is not None:
            error.add_note(
                f"Finished shards are kept in {str(folder)!r}; repeat the same command to continue."
            )
        raise
