"""IHDP: infants with drawn outcomes, whose effects are known."""

from functools import partial

import numpy as np
from sklearn.utils import Bunch

from ddml_fs.datasets.fetch import fetch
from ddml_fs.datasets.published import join_files, join_splits, published_file, read_arrays

IHDP_NAMES = (
    "bw",
    "b.head",
    "preterm",
    "birth.o",
    "nnhealth",
    "momage",
    "sex",
    "twin",
    "b.marr",
    "mom.lths",
    "mom.hs",
    "mom.scoll",
    "cig",
    "first",
    "booze",
    "drugs",
    "work.dur",
    "prenatal",
    "ark",
    "ein",
    "har",
    "mia",
    "pen",
    "tex",
    "was",
)
IHDP_ARRAYS = ("x", "t", "yf", "ycf", "mu0", "mu1")
IHDP = tuple(
    published_file(
        f"https://www.fredjo.com/files/ihdp_npci_1-100.{part}.npz",
        "ihdp",
        partial(read_arrays, IHDP_ARRAYS),
    )
    for part in ("train", "test")
)
IHDP_PREPARED = {
    "ihdp/ihdp_npci_1-100.npz": "857337fe3aa444199c6acfa4d841f7dbafc61e825b7eae67b03dcd825afa7fa8"
}


def fetch_ihdp(*, data_home=None, download=True):
    """Load IHDP: 747 infants with 100 draws of outcomes, so that the effects are known.

    Covariates and treatment (home visits by specialists) come from the Infant Health and
    Development Program; a part of the treated is left out, so that the arms differ. The outcomes
    are drawn from response surfaces that are known [1]_; the 100 replications are those of [2]_.

    Parameters
    ----------
    data_home : path-like or None, default=None
        A folder that holds ``ihdp/ihdp_npci_1-100.npz``, or as published
        ``ihdp/ihdp_npci_1-100.train.npz`` and ``ihdp/ihdp_npci_1-100.test.npz``. Then come the
        folder that the environment variable ``DDML_FS_DATA`` names, and the cache
        ``~/.cache/ddml_fs``.
    download : bool, default=True
        Whether to download the published files into the cache where no folder holds the data.

    Returns
    -------
    data : Bunch
        The same units in all replications:

        - ``X`` (747, 25) and ``treatment`` (747,), 0/1;
        - ``y`` (747, 100), the outcome seen, a column for each replication, and ``y_other``
          (747, 100), the one under the other treatment;
        - ``mu_0``, ``mu_1`` (747, 100), the outcomes' means without and with treatment;
        - ``ate`` (100,), the mean of ``mu_1 - mu_0`` over all units, and ``att`` (100,), over the
          treated;
        - ``test_rows`` (100, 75), the rows usually held out;
        - ``feature_names`` (25,).

    Notes
    -----
    The published files list the units in another order in each replication. Here all are in the
    order of the first, train before test; the prepared file has an order of its own, and nothing
    else differs.

    References
    ----------
    .. [1] Hill (2011). Bayesian nonparametric modeling for causal inference. Journal of
       Computational and Graphical Statistics 20(1).
    .. [2] Shalit, Johansson and Sontag (2017). Estimating individual treatment effect:
       generalization bounds and algorithms. ICML.

    Examples
    --------
    >>> from ddml_fs.datasets import fetch_ihdp
    >>> data = fetch_ihdp()  # doctest: +SKIP
    >>> data.y.shape, round(float(data.ate.mean()), 4)  # doctest: +SKIP
    ((747, 100), 4.5158)
    """
    paths = fetch(IHDP, prepared=IHDP_PREPARED, data_home=data_home, download=download)
    if paths.keys() == IHDP_PREPARED.keys():
        (path,) = paths.values()
        data = read_arrays((*IHDP_ARRAYS, "test_idx"), path)
    else:
        data = join_files(IHDP, paths, partial(join_splits, IHDP_ARRAYS, 2, IHDP_NAMES))
    effect, treatment = data["mu1"] - data["mu0"], data["t"].astype(np.float64)
    return Bunch(
        X=data["x"].astype(np.float64),
        treatment=treatment,
        y=data["yf"],
        y_other=data["ycf"],
        mu_0=data["mu0"],
        mu_1=data["mu1"],
        ate=effect.mean(0),
        att=effect[treatment == 1].mean(0),
        test_rows=data["test_idx"].astype(int),
        feature_names=np.array(IHDP_NAMES),
    )
