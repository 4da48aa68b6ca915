"""Benchmark data: from a local folder, or downloaded once into the cache."""

import hashlib
import http.client
import os
import shutil
import tarfile
import tempfile
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

TIMEOUT = 30  # seconds that a server may stay silent

# Whatever a network, a full disk, or an archive that is none can raise.
FAILURES = (
    OSError,
    ValueError,
    EOFError,
    http.client.HTTPException,
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
)


class ChecksumError(ValueError):
    """A file that is not the one expected."""


@dataclass(frozen=True)
class Download:
    """An address, and the files that come of it.

    Parameters
    ----------
    url : str
        The address.
    files : dict of str to str or None
        Names below a data folder, each with its SHA256, or None where that is not known.
    unpack : callable or None, default=None
        ``unpack(path, folder)`` makes the files below ``folder`` of what was downloaded to
        ``path``, and raises ValueError where that is not as expected. None: the download is the
        one file.
    """

    url: str
    files: Mapping[str, str | None]
    unpack: Callable[[Path, Path], None] | None = None


def cache_folder():
    """``ddml_fs`` in the user's folder for caches."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "ddml_fs"


def data_folders(data_home=None):
    """The folders to look in, first to last: the argument, DDML_FS_DATA, the cache."""
    named = [folder for folder in (data_home, os.environ.get("DDML_FS_DATA")) if folder]
    return [*(Path(folder).expanduser() for folder in named), cache_folder()]


def fetch(downloads, *, prepared=None, data_home=None, download=True):
    """Paths of a data set's files, in the first folder that holds all of them.

    Where no folder does, the files are downloaded into the cache.

    Parameters
    ----------
    downloads : sequence of Download
        Where the files come from.
    prepared : dict of str to str or None, default=None
        Files with the same content, ready for use, with their SHA256. They are never downloaded,
        and are taken before the others where a folder holds both.
    data_home : path-like or None, default=None
        The folder to look in before all others.
    download : bool, default=True
        Whether to download what is not found.

    Returns
    -------
    paths : dict of str to Path
        The place of each file, by its name: of those in ``prepared`` or of those in ``downloads``.

    Raises
    ------
    FileNotFoundError
        If the files are neither found nor downloaded.
    ValueError
        If a file has not its checksum.
    """
    folders = data_folders(data_home)
    wanted = {name: sha256 for each in downloads for name, sha256 in each.files.items()}
    for folder in folders:
        for files in (prepared, wanted):
            if files and found(folder, files, downloads[0].url):
                return {name: folder / name for name in files}

    names = ", ".join(wanted) + (f" or {', '.join(prepared)}" if prepared else "")
    missing = f"found no {names} in {', '.join(map(str, dict.fromkeys(folders)))}"
    cache = folders[-1]
    for each in downloads:
        if found(cache, each.files, each.url):  # by an earlier call that got no further
            continue
        remedy = (
            f"Download it by hand and put {', '.join(each.files)} into {cache}, or set "
            "DDML_FS_DATA to a folder that holds the data."
        )
        if not download:
            raise FileNotFoundError(f"{missing}, and download=False forbids {each.url}. {remedy}")
        try:
            save(each, cache)
        except ChecksumError:
            raise
        except FAILURES as error:
            reason = str(error) or type(error).__name__
            raise FileNotFoundError(
                f"{missing}, and could not download {each.url} ({reason}). {remedy}"
            ) from None
    return {name: cache / name for name in wanted}


def found(folder, files, url):
    """Whether a folder holds all files; ValueError if one of them is another."""
    if not all((folder / name).is_file() for name in files):
        return False
    for name, sha256 in files.items():
        remedy = f"delete it, and the data are downloaded again from {url}"
        check_sha256(folder / name, sha256, folder / name, remedy)
    return True


def save(source, cache):
    """Download, unpack and check a source's files, and only then move them into the cache."""
    cache.mkdir(parents=True, exist_ok=True)
    # Within the cache, so that the last step is a rename: no one ever sees half a file.
    with tempfile.TemporaryDirectory(dir=cache, prefix=".download-") as scratch:
        raw, folder = Path(scratch) / "raw", Path(scratch) / "files"
        retrieve(source.url, raw)
        for name in source.files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if source.unpack is None:
            (only,) = source.files
            raw.rename(folder / only)
        else:
            source.unpack(raw, folder)
        for name, sha256 in source.files.items():
            remedy = f"try again, or put a right copy into {cache}"
            check_sha256(folder / name, sha256, f"{name} from {source.url}", remedy)
        for name in source.files:
            (cache / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(folder / name, cache / name)


def retrieve(url, path):
    """Write what an address sends to a path; OSError unless all of it came."""
    # Some servers turn away urllib's own name.
    request = urllib.request.Request(url, headers={"User-Agent": "ddml_fs"})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response, open(path, "wb") as file:
        if response.status not in (None, 200):  # None: not by HTTP
            raise OSError(f"the server answered {response.status}")
        shutil.copyfileobj(response, file)
        length = response.headers.get("Content-Length")
    if length is not None and path.stat().st_size != int(length):
        raise OSError(f"{path.stat().st_size} of {length} bytes arrived")


def check_sha256(path, sha256, name, remedy):
    """Refuse a file whose SHA256 is known and another."""
    if sha256 is None:
        return
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != sha256:
        raise ChecksumError(
            f"{name} must have the SHA256 {sha256[:8]}…, got {digest[:8]}…; {remedy}."
        )
