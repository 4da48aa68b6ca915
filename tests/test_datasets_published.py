"""Files as published, of IHDP, Jobs and Twins alike: missing, or others than expected."""

from dataclasses import replace

import pytest
from published_files import empty_cache

from ddml_fs.datasets import fetch_ihdp, fetch_jobs, fetch_twins, ihdp, jobs, twins

FETCH = {"IHDP": fetch_ihdp, "JOBS": fetch_jobs, "TWINS": fetch_twins}
MODULES = {"IHDP": ihdp, "JOBS": jobs, "TWINS": twins}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    return empty_cache(tmp_path, monkeypatch)


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
    others = [replace(each, url=url) for each in getattr(MODULES[name], name)]
    monkeypatch.setattr(MODULES[name], name, others)
    with pytest.raises(FileNotFoundError, match=reason):
        FETCH[name]()
    assert not list(cache.iterdir())


@pytest.mark.parametrize("name", FETCH)
def test_neither_found_nor_downloaded(cache, tmp_path, name):
    downloads = getattr(MODULES[name], name)
    with pytest.raises(FileNotFoundError) as error:
        FETCH[name](data_home=tmp_path / "given", download=False)
    files = ", ".join(file for each in downloads for file in each.files)
    (prepared,) = getattr(MODULES[name], f"{name}_PREPARED")
    (first,) = downloads[0].files
    assert str(error.value) == (
        f"found no {files} or {prepared} in {tmp_path / 'given'}, {cache}, and download=False "
        f"forbids {downloads[0].url}. Download it by hand and put {first} into {cache}, or set "
        "DDML_FS_DATA to a folder that holds the data."
    )


@pytest.mark.parametrize("name", FETCH)
def test_wrong_prepared_file(cache, tmp_path, name):
    (prepared,) = getattr(MODULES[name], f"{name}_PREPARED")
    (tmp_path / prepared).parent.mkdir()
    (tmp_path / prepared).write_bytes(b"another")
    with pytest.raises(ValueError, match=r"must have the SHA256 .* delete it"):
        FETCH[name](data_home=tmp_path, download=False)
