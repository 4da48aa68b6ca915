"""Jobs: a job training, randomised in part, so that the effect on the treated is known."""

from functools import partial

import numpy as np
from sklearn.utils import Bunch

from ddml_fs.datasets.fetch import fetch
from ddml_fs.datasets.published import join_files, join_splits, published_file, read_arrays

JOBS_NAMES = (
    "age",
    "educ",
    "black",
    "hisp",
    "married",
    "nodegr",
    "re74",
    "re75",
    "age^2",
    "age^3",
    "educ^2",
    "re74^2",
    "re75^2",
    "u74",
    "u75",
    "educ*re74",
    "u74*hisp",
)
JOBS_ARRAYS = ("x", "t", "yf", "e")
JOBS = tuple(
    published_file(
        f"https://www.fredjo.com/files/jobs_DW_bin.new.10.{part}.npz",
        "jobs",
        partial(read_arrays, JOBS_ARRAYS),
    )
    for part in ("train", "test")
)
JOBS_PREPARED = {
    "jobs/jobs_DW_bin.npz": "866d682aa98b5e1405bdc7d87dbcfeff9e97c6f4b597cf5005ee45736aec4df8"
}


def fetch_jobs(*, data_home=None, download=True):
    """Load Jobs: a job training, a part of it randomised, so that the treated's effect is known.

    722 people of a randomised study, 297 of them trained [1]_, and 2490 more who were not and who
    differ from them; the outcome is whether someone has work afterwards [2]_. As the trained
    were drawn at random, the effect on them is a difference of means within the study.

    Parameters
    ----------
    data_home : path-like or None, default=None
        A folder that holds ``jobs/jobs_DW_bin.npz``, or as published
        ``jobs/jobs_DW_bin.new.10.train.npz`` and ``jobs/jobs_DW_bin.new.10.test.npz``. Then come
        the folder that the environment variable ``DDML_FS_DATA`` names, and the cache
        ``~/.cache/ddml_fs``.
    download : bool, default=True
        Whether to download the published files into the cache where no folder holds the data.

    Returns
    -------
    data : Bunch
        - ``X`` (3212, 17), ``treatment`` (3212,) and ``y`` (3212,), both 0/1;
        - ``randomised`` (3212,), bool, who is of the randomised study;
        - ``att``, the mean of ``y`` over the treated less that over the study's untreated;
        - ``test_rows`` (10, 642), the rows that each of the 10 usual splits holds out;
        - ``feature_names`` (17,).

    Notes
    -----
    The published files list the units in another order in each split. Here they are in the order
    of the first, train before test. About 200 rows have a double that is the same in every
    column; doubles are told apart by their order within a split, so ``test_rows`` may name one
    where the other was meant, with the same values.

    References
    ----------
    .. [1] LaLonde (1986). Evaluating the econometric evaluations of training programs with
       experimental data. American Economic Review 76(4).
    .. [2] Shalit, Johansson and Sontag (2017). Estimating individual treatment effect:
       generalization bounds and algorithms. ICML.

    Examples
    --------
    >>> from ddml_fs.datasets import fetch_jobs
    >>> data = fetch_jobs()  # doctest: +SKIP
    >>> data.X.shape, round(data.att, 5)  # doctest: +SKIP
    ((3212, 17), 0.07794)
    """
    paths = fetch(JOBS, prepared=JOBS_PREPARED, data_home=data_home, download=download)
    if paths.keys() == JOBS_PREPARED.keys():
        (path,) = paths.values()
        data = read_arrays((*JOBS_ARRAYS, "test_idx"), path)
    else:
        data = join_files(JOBS, paths, partial(join_splits, JOBS_ARRAYS, 4, JOBS_NAMES))
    treatment, y = data["t"].astype(np.float64), data["yf"].astype(np.float64)
    randomised = data["e"] == 1
    return Bunch(
        X=data["x"].astype(np.float64),
        treatment=treatment,
        y=y,
        randomised=randomised,
        att=float(y[treatment == 1].mean() - y[(treatment == 0) & randomised].mean()),
        test_rows=data["test_idx"].astype(int),
        feature_names=np.array(JOBS_NAMES),
    )
