"""Benchmark data: where they are looked for, how they are downloaded, and known figures."""

import hashlib
import io
import os
import tarfile
import threading
import zipfile
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat
from scipy.sparse import issparse
from sklearn.linear_model import LogisticRegression

from ddml_fs.datasets import amazon, fetch_amazon_reviews, fetch_multi_domain_sentiment
from ddml_fs.datasets.fetch import Download, fetch

DATA = os.environ.get("DDML_FS_DATA", "")


def needs(name):
    there = DATA and (Path(DATA) / name).is_file()
    return pytest.mark.skipif(not there, reason=f"DDML_FS_DATA names no folder with {name}")


needs_amazon, needs_mds = needs("amazon/books_400.mat"), needs("mds/mds_top5000.npz")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and no folder named."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("DDML_FS_DATA", raising=False)
    return tmp_path / "cache" / "ddml_fs"


class Server:
    """A server of one folder that notes what it was asked for."""

    def __init__(self, folder):
        self.folder, self.asked = folder, []

        class Handler(SimpleHTTPRequestHandler):
            def log_message(handler, *args):
                self.asked.append(handler.path)

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder))
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def put(self, name, content):
        (self.folder / name).write_bytes(content)
        return f"{self.url}/{name}"


@pytest.fixture
def server(tmp_path):
    (tmp_path / "served").mkdir()
    server = Server(tmp_path / "served")
    thread = threading.Thread(target=server.http.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.http.shutdown()
    thread.join()
    server.http.server_close()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def mat(value):
    file = io.BytesIO()
    fts = np.array([[value, 0.0], [0.0, 1.0], [0.5, 0.5]])
    savemat(file, {"fts": fts, "labels": np.array([[1], [0], [0]], np.uint8)})
    return file.getvalue()


@pytest.fixture
def small_amazon(server, monkeypatch):
    """The server's own zip of four small files stands for figshare's."""
    contents = {name: mat(k + 1) for k, name in enumerate(amazon.AMAZON.files)}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in contents.items():
            base = Path(name).name
            archive.writestr(f"__MACOSX/amazon_review/._{base}", b"a shadow")
            archive.writestr(f"amazon_review/{base.capitalize()}", content)
    url = server.put("46003500", file.getvalue())
    files = {name: sha256(content) for name, content in contents.items()}
    monkeypatch.setattr(amazon, "AMAZON", replace(amazon.AMAZON, url=url, files=files))
    return contents


def tar(files):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz", compresslevel=1) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(f"processed_acl/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


def small_reviews():
    """Reviews with a word of all, one of the positive, one of the domain, and one of each."""
    files = {}
    for domain in amazon.MDS_DOMAINS:
        for kind in amazon.SENTIMENTS:
            lines = (
                f"all:2 {kind}:1 of_{domain}:3 {kind}_{domain}_{i}:1 #label#:{kind}\n"
                for i in range(1000)
            )
            files[f"{domain}/{kind}.review"] = "".join(lines).encode()
        files[f"{domain}/unlabeled.review"] = b"never_read:1 #label#:positive\n"
    return files


# Without the data: folders and downloads.


def test_download_once(cache, server, small_amazon):
    first, second = fetch_amazon_reviews(), fetch_amazon_reviews(binary=False)
    assert server.asked == ["/46003500"]
    assert sorted(path.name for path in cache.iterdir()) == ["amazon"]  # no scratch is left
    assert {f"amazon/{p.name}": p.read_bytes() for p in (cache / "amazon").iterdir()} == (
        small_amazon
    )
    np.testing.assert_array_equal(first.X, np.tile([[1, 0], [0, 1], [1, 1]], (4, 1)))
    np.testing.assert_array_equal(second.X[::3, 0], [1, 2, 3, 4])
    np.testing.assert_array_equal(first.y, np.tile([1, 0, 0], 4))
    np.testing.assert_array_equal(first.sample_domain, np.repeat([1, 2, 3, 4], 3))


@pytest.fixture
def one_file(server):
    """The simplest source: one file, with a checksum."""
    return Download(server.put("a.txt", b"new"), {"a/a.txt": sha256(b"new")})


def place(folder, content):
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "a.txt").write_bytes(content)
    return folder


def test_order_of_folders(cache, server, one_file, tmp_path, monkeypatch):
    fetched = fetch([one_file])
    assert fetched == {"a/a.txt": cache / "a" / "a.txt"}
    assert fetched["a/a.txt"].read_bytes() == b"new"
    named, given = (place(tmp_path / name, b"new") for name in ("named", "given"))
    monkeypatch.setenv("DDML_FS_DATA", str(named))
    assert fetch([one_file]) == {"a/a.txt": named / "a" / "a.txt"}
    assert fetch([one_file], data_home=given) == {"a/a.txt": given / "a" / "a.txt"}
    assert fetch([one_file], data_home=tmp_path) == {"a/a.txt": named / "a" / "a.txt"}
    assert server.asked == ["/a.txt"]


def test_prepared_comes_first(cache, server, one_file, tmp_path):
    (place(tmp_path, b"new") / "a" / "a.npz").write_bytes(b"ready")
    prepared = {"a/a.npz": sha256(b"ready")}
    path = tmp_path / "a" / "a.npz"
    assert fetch([one_file], prepared=prepared, data_home=tmp_path) == {"a/a.npz": path}
    assert not server.asked


def test_several_downloads(cache, server, one_file):
    other = Download(server.put("b.txt", b"other"), {"b.txt": None})
    paths = fetch([one_file, other])
    assert {name: path.read_bytes() for name, path in paths.items()} == {
        "a/a.txt": b"new",
        "b.txt": b"other",
    }


def test_address_of_a_file(cache, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"new")
    source = Download((tmp_path / "a.txt").as_uri(), {"a.txt": None})
    assert fetch([source])["a.txt"].read_bytes() == b"new"


def test_wrong_checksum_of_a_local_file(cache, one_file, tmp_path):
    path = place(tmp_path, b"old") / "a" / "a.txt"
    with pytest.raises(ValueError, match="delete it") as error:
        fetch([one_file], data_home=tmp_path)
    for part in (str(path), sha256(b"new")[:8], sha256(b"old")[:8], one_file.url):
        assert part in str(error.value)


def test_wrong_checksum_of_a_download(cache, server, one_file):
    server.put("a.txt", b"changed")
    with pytest.raises(ValueError, match="try again") as error:
        fetch([one_file])
    for part in ("a/a.txt", sha256(b"new")[:8], sha256(b"changed")[:8], one_file.url, str(cache)):
        assert part in str(error.value)
    assert not list(cache.iterdir())  # neither the file nor scratch


def test_neither_found_nor_downloaded(cache, server, tmp_path, monkeypatch):
    url = f"{server.url}/nothing.zip"
    monkeypatch.setattr(amazon, "AMAZON", replace(amazon.AMAZON, url=url))
    monkeypatch.setenv("DDML_FS_DATA", str(tmp_path / "named"))
    with pytest.raises(FileNotFoundError) as error:
        fetch_amazon_reviews(data_home=tmp_path / "given")
    names = ", ".join(amazon.AMAZON.files)
    folders = f"{tmp_path / 'given'}, {tmp_path / 'named'}, {cache}"
    assert str(error.value) == (
        f"found no {names} in {folders}, and could not download {url} (HTTP Error 404: File not "
        f"found). Download it by hand and put {names} into {cache}, or set DDML_FS_DATA to a "
        "folder that holds the data."
    )


def test_no_download_unless_allowed(cache, server, one_file):
    with pytest.raises(FileNotFoundError, match="download=False forbids http"):
        fetch([one_file], download=False)
    assert not server.asked
    assert not cache.exists()


def test_no_server(cache):
    source = Download("http://127.0.0.1:1/a.txt", {"a.txt": None})
    with pytest.raises(FileNotFoundError, match="refused"):
        fetch([source])


def test_half_a_download(cache, server, one_file, monkeypatch):
    """A connection that ends early leaves nothing behind."""
    monkeypatch.setattr(
        SimpleHTTPRequestHandler, "copyfile", lambda self, source, out: out.write(source.read(1))
    )
    with pytest.raises(FileNotFoundError, match="1 of 3 bytes arrived"):
        fetch([one_file])
    assert not list(cache.iterdir())


@pytest.mark.parametrize(
    ("content", "reason"), [(b"<html>", "not a zip file"), (None, "has no books_400.mat")]
)
def test_not_the_zip(cache, server, small_amazon, content, reason):
    if content is None:
        file = io.BytesIO()
        zipfile.ZipFile(file, "w").close()
        content = file.getvalue()
    server.put("46003500", content)
    with pytest.raises(FileNotFoundError, match=reason):
        fetch_amazon_reviews()


def test_archive_of_reviews(cache, server, monkeypatch):
    """Words by the number of reviews they are in, then by the alphabet."""
    url = server.put("processed_acl.tar.gz", tar(small_reviews()))
    monkeypatch.setattr(amazon, "MDS", replace(amazon.MDS, url=url))
    data = fetch_multi_domain_sentiment(n_words=7, binary=False)
    assert data.feature_names.tolist() == (
        ["all", "negative", "positive"] + [f"of_{domain}" for domain in amazon.MDS_DOMAINS]
    )
    np.testing.assert_array_equal(data.X[:, 0].toarray().ravel(), 2)
    np.testing.assert_array_equal(data.X[:, 2].toarray().ravel(), data.y)
    np.testing.assert_array_equal(data.X[:, 3:].toarray().argmax(1) + 1, data.sample_domain)
    assert fetch_multi_domain_sentiment(n_words=7).X.max() == 1
    assert fetch_multi_domain_sentiment().X.shape == (8000, 5000)
    assert server.asked == ["/processed_acl.tar.gz"]


def test_archive_that_lacks_reviews(cache, server, monkeypatch):
    files = small_reviews()
    files["dvd/positive.review"] = b"all:1 #label#:positive\n"
    url = server.put("processed_acl.tar.gz", tar(files))
    monkeypatch.setattr(amazon, "MDS", replace(amazon.MDS, url=url))
    with pytest.raises(FileNotFoundError, match="must have 1000 reviews, got 1"):
        fetch_multi_domain_sentiment()
    assert not list(cache.iterdir())


def test_broken_archive_in_a_folder(cache, tmp_path):
    (tmp_path / "mds").mkdir()
    path = tmp_path / "mds" / "processed_acl.tar.gz"
    path.write_bytes(tar({"books/negative.review": os.urandom(1000)})[:500])
    with pytest.raises(ValueError, match=r"no whole tar archive .* delete it") as error:
        fetch_multi_domain_sentiment(data_home=tmp_path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("bad", [0, 5001, 10.5])
def test_bad_number_of_words(bad):
    with pytest.raises(ValueError, match="n_words must be"):
        fetch_multi_domain_sentiment(n_words=bad)


# With the data: figures known from elsewhere.


@pytest.fixture(scope="module")
def reviews():
    return fetch_amazon_reviews(data_home=DATA, download=False)


def accuracy(data, train, test):
    model = LogisticRegression(C=0.1, max_iter=1000).fit(data.X[train], data.y[train])
    return model.score(data.X[test], data.y[test])


@needs_amazon
def test_amazon(reviews):
    assert reviews.X.shape == (7996, 400)
    assert set(np.unique(reviews.X)) == {0.0, 1.0}
    assert np.bincount(reviews.sample_domain).tolist() == [0, 2000, 1999, 1998, 1999]
    assert np.bincount(reviews.y).tolist() == [4000, 3996]
    frequencies = fetch_amazon_reviews(data_home=DATA, download=False, binary=False).X
    np.testing.assert_allclose(frequencies.sum(1), 1)
    np.testing.assert_array_equal(frequencies > 0, reviews.X)


@needs_amazon
def test_amazon_transfers(reviews):
    domain = reviews.sample_domain
    pairs = permutations([1, 2, 3, 4], 2)
    mean = np.mean([accuracy(reviews, domain == a, domain == b) for a, b in pairs])
    assert round(mean, 4) == 0.7697
    mean = np.mean([accuracy(reviews, domain != k, domain == k) for k in (1, 2, 3, 4)])
    assert round(mean, 4) == 0.8150


@needs_mds
def test_multi_domain_sentiment():
    data = fetch_multi_domain_sentiment(data_home=DATA, download=False)
    assert issparse(data.X)
    assert data.X.format == "csr"
    assert data.X.shape == (8000, 5000)
    assert set(data.X.data) == {1.0}
    assert np.bincount(2 * data.sample_domain + data.y).tolist() == [0, 0] + 8 * [1000]
    spread = np.asarray(data.X.sum(0)).ravel()
    assert np.all(np.diff(spread) <= 0)
    few = fetch_multi_domain_sentiment(data_home=DATA, download=False, n_words=50)
    np.testing.assert_array_equal(few.feature_names, data.feature_names[:50])
    assert abs(few.X - data.X[:, :50]).sum() == 0


@needs_mds
def test_archive_gives_the_same(cache, tmp_path):
    """The prepared file, written out as an archive with rarer words, and read back."""
    data = fetch_multi_domain_sentiment(data_home=DATA, download=False, binary=False)
    words = data.feature_names[data.X.indices].tolist()
    items = [f"{word}:{n}" for word, n in zip(words, data.X.data.astype(int), strict=True)]
    lines = [
        " ".join([*items[start:stop], f"rare_{i % 500}:9 #label#:any"])
        for i, (start, stop) in enumerate(pairwise(data.X.indptr))
    ]
    (tmp_path / "mds").mkdir()
    files = {}
    for k, domain in enumerate(amazon.MDS_DOMAINS):
        for j, kind in enumerate(amazon.SENTIMENTS):
            start = 2000 * k + 1000 * j
            files[f"{domain}/{kind}.review"] = "\n".join(lines[start : start + 1000]).encode()
    (tmp_path / "mds" / "processed_acl.tar.gz").write_bytes(tar(files))
    again = fetch_multi_domain_sentiment(data_home=tmp_path, download=False, binary=False)
    np.testing.assert_array_equal(again.feature_names, data.feature_names)
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(again.X, part), getattr(data.X, part))
