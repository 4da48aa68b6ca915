"""Amazon reviews of four kinds of goods: the sentiment benchmark of domain adaptation."""

import heapq
import shutil
import tarfile
import zipfile
import zlib
from collections import Counter
from pathlib import PurePosixPath

import numpy as np
from scipy.io import loadmat
from scipy.sparse import csr_matrix
from sklearn.utils import Bunch

from ddml_fs.datasets.fetch import Download, fetch
from ddml_fs.validation import check_integer

DOMAINS = ("books", "dvd", "elec", "kitchen")
MDS_DOMAINS = ("books", "dvd", "electronics", "kitchen")
N_WORDS = 5000
N_REVIEWS = 1000  # of each sentiment in each domain of the Multi-Domain Sentiment data
SENTIMENTS = ("negative", "positive")  # by number, and in the order of the rows


def fetch_amazon_reviews(*, data_home=None, download=True, binary=True):
    """Load the Amazon reviews: four domains, the same 400 words in each.

    7996 reviews of books, DVDs, electronics and kitchenware, about 2000 of each and half of them
    positive, as bags of 400 words and pairs of words [1]_ [2]_.

    Parameters
    ----------
    data_home : path-like or None, default=None
        A folder that holds ``amazon/books_400.mat`` and so on. Then come the folder that the
        environment variable ``DDML_FS_DATA`` names, and the cache ``~/.cache/ddml_fs``.
    download : bool, default=True
        Whether to download the data into the cache (from figshare, file 46003500) where no folder
        holds them.
    binary : bool, default=True
        Whether X tells if a word occurs (0/1), or its share of the review's words.

    Returns
    -------
    data : Bunch
        ``X`` (7996, 400); ``y`` (7996,), 1 for positive and 0 for negative; ``sample_domain``
        (7996,), from 1 to 4; ``domain_names``, the names of domains 1 to 4.

    References
    ----------
    .. [1] Blitzer, Dredze and Pereira (2007). Biographies, Bollywood, boom-boxes and blenders:
       domain adaptation for sentiment classification. ACL.
    .. [2] Chen, Xu, Weinberger and Sha (2012). Marginalized denoising autoencoders for domain
       adaptation. ICML.

    Examples
    --------
    >>> from ddml_fs.datasets import fetch_amazon_reviews
    >>> data = fetch_amazon_reviews()  # doctest: +SKIP
    >>> data.X.shape, data.domain_names  # doctest: +SKIP
    ((7996, 400), ('books', 'dvd', 'elec', 'kitchen'))
    """
    paths = fetch([AMAZON], data_home=data_home, download=download)
    parts = [loadmat(path) for path in paths.values()]
    X = np.vstack([part["fts"] for part in parts])
    return Bunch(
        X=(X > 0).astype(np.float64) if binary else X.astype(np.float64),
        y=np.concatenate([part["labels"].ravel() for part in parts]).astype(int),
        sample_domain=np.repeat([1, 2, 3, 4], [len(part["fts"]) for part in parts]),
        domain_names=DOMAINS,
    )


def fetch_multi_domain_sentiment(*, data_home=None, download=True, binary=True, n_words=5000):
    """Load the Multi-Domain Sentiment data: four domains, up to 5000 words, sparse.

    8000 reviews of books, DVDs, electronics and kitchenware, 1000 positive and 1000 negative of
    each, as bags of words and pairs of words [1]_: the reviews of :func:`fetch_amazon_reviews`
    with twelve times as many columns.

    Parameters
    ----------
    data_home : path-like or None, default=None
        A folder that holds ``mds/mds_top5000.npz`` or ``mds/processed_acl.tar.gz``, the archive as
        published; both give the same. Then come the folder that the environment variable
        ``DDML_FS_DATA`` names, and the cache ``~/.cache/ddml_fs``.
    download : bool, default=True
        Whether to download the archive into the cache where no folder holds the data.
    binary : bool, default=True
        Whether X tells if a word occurs (0/1), or how often.
    n_words : int, default=5000
        The columns: the words found in the most reviews, most frequent first; at most 5000.

    Returns
    -------
    data : Bunch
        ``X``, a CSR matrix (8000, n_words); ``y`` (8000,), 1 for positive and 0 for negative;
        ``sample_domain`` (8000,), from 1 to 4; ``domain_names``, the names of domains 1 to 4;
        ``feature_names`` (n_words,), the words, those of a pair joined by ``_``.

    References
    ----------
    .. [1] Blitzer, Dredze and Pereira (2007). Biographies, Bollywood, boom-boxes and blenders:
       domain adaptation for sentiment classification. ACL.

    Examples
    --------
    >>> from ddml_fs.datasets import fetch_multi_domain_sentiment
    >>> data = fetch_multi_domain_sentiment(n_words=1000)  # doctest: +SKIP
    >>> data.X.shape, data.feature_names[:3].tolist()  # doctest: +SKIP
    ((8000, 1000), ['i', 'not', 'was'])
    """
    check_integer(n_words, "n_words", 1)
    if n_words > N_WORDS:
        raise ValueError(f"n_words must be at most {N_WORDS}, got {n_words}.")
    (path,) = fetch([MDS], prepared=MDS_PREPARED, data_home=data_home, download=download).values()
    if path.suffix == ".npz":
        with np.load(path) as file:
            X = csr_matrix((file["data"], file["indices"], file["indptr"]), file["shape"])
            words = file["vocab"]
    else:
        try:
            X, words = read_archive(path)
        except ValueError as error:
            raise ValueError(
                f"{path} must be the archive from {MDS.url}, but {error}; delete it, and it is "
                "downloaded again."
            ) from None
    X = X[:, :n_words].astype(np.float64)
    if binary:
        X.data[:] = 1
    return Bunch(
        X=X,
        y=np.tile(np.repeat([0, 1], N_REVIEWS), 4),
        sample_domain=np.repeat([1, 2, 3, 4], 2 * N_REVIEWS),
        domain_names=MDS_DOMAINS,
        feature_names=words[:n_words],
    )


def unzip_amazon(path, folder):
    """Put the four files of the zip archive, in whatever folder of it, where they belong."""
    with zipfile.ZipFile(path) as archive:
        for name in AMAZON.files:
            end = PurePosixPath(name).name
            for member in archive.namelist():
                # A Mac adds shadows of files, named "._" and the file's name.
                base = PurePosixPath(member).name.lower()
                if base.endswith(end) and not base.startswith("."):
                    (folder / name).write_bytes(archive.read(member))
                    break
            else:
                raise ValueError(f"the archive has no {end}")


def keep_archive(path, folder):
    """Keep the archive as it is, if it has all reviews."""
    _review_files(path)
    (name,) = MDS.files
    shutil.move(path, folder / name)


def read_archive(path):
    """The counts, a CSR matrix (8000, 5000), and the words, from the archive as published.

    A line is a review, ``word:count word:count … #label#:positive``, in ``books/positive.review``
    and so on. The 5000 words are those in the most reviews; ties go by the alphabet.
    """
    reviews = []
    for lines in _review_files(path):
        for line in lines:
            counts: Counter[bytes] = Counter()
            for item in line.split():
                word, _, count = item.rpartition(b":")
                if word != b"#label#":
                    counts[word] += int(count)
            reviews.append(counts)

    spread = Counter(word for counts in reviews for word in counts)
    words = heapq.nsmallest(N_WORDS, spread, key=lambda word: (-spread[word], word))
    column = {word: j for j, word in enumerate(words)}
    entries = [
        (i, column[word], count)
        for i, counts in enumerate(reviews)
        for word, count in counts.items()
        if word in column
    ]
    rows, columns, values = np.array(entries).T
    X = csr_matrix((values, (rows, columns)), (len(reviews), len(words)))
    return X, np.array([word.decode("utf-8", "replace") for word in words])


def _review_files(path):
    """The lines of the eight files, in the order of the rows."""
    wanted = [(domain, f"{kind}.review") for domain in MDS_DOMAINS for kind in SENTIMENTS]
    found = {}
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                key = PurePosixPath(member.name).parts[-2:]
                if key in wanted and (file := archive.extractfile(member)) is not None:
                    found[key] = [line for line in file if line.strip()]
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise ValueError(f"it is no whole tar archive ({error})") from None
    for key in wanted:
        if len(found.get(key, ())) != N_REVIEWS:
            n = len(found.get(key, ()))
            raise ValueError(f"{'/'.join(key)} must have {N_REVIEWS} reviews, got {n}")
    return [found[key] for key in wanted]


AMAZON = Download(
    url="https://figshare.com/ndownloader/files/46003500",
    files={
        "amazon/books_400.mat": "7a53b54f0c0e81e7ee4774d762a927399cede9a802a2409732ba00cc1c23a17a",
        "amazon/dvd_400.mat": "13a71d399f9c7ae57064952979c830455057ffd0a8da73f2c9075338d64d98ce",
        "amazon/elec_400.mat": "f1dd6e01c1eed956d3abe6493a6bb5efc95e6585b8b9b2d856c0c07e12893a35",
        "amazon/kitchen_400.mat": (
            "b1f4e5ddfbd7b37ad2638fccbf83bd8558abf63b3e8d69a9d5bca77b1a49fed5"
        ),
    },
    unpack=unzip_amazon,
)
MDS = Download(
    url="https://www.cs.jhu.edu/~mdredze/datasets/sentiment/processed_acl.tar.gz",
    files={"mds/processed_acl.tar.gz": None},
    unpack=keep_archive,
)
MDS_PREPARED = {
    "mds/mds_top5000.npz": "208a0332af20bc100d7739794311549f423e7c8b67b14e9f11df30345a100e4a"
}
