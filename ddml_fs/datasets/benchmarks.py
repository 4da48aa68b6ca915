"""Benchmarks of effect estimation: IHDP, Jobs and Twins, with the effect that is true."""

import shutil
import zipfile
import zlib
from functools import partial

import numpy as np
import pandas as pd
from sklearn.utils import Bunch, check_random_state

from ddml_fs.datasets.fetch import Download, fetch

IHDP_NAMES, JOBS_NAMES, TWINS_NAMES = (
    tuple(names.split())
    for names in (
        "bw b.head preterm birth.o nnhealth momage sex twin b.marr mom.lths mom.hs mom.scoll cig "
        "first booze drugs work.dur prenatal ark ein har mia pen tex was",
        "age educ black hisp married nodegr re74 re75 age^2 age^3 educ^2 re74^2 re75^2 u74 u75 "
        "educ*re74 u74*hisp",
        "eclamp bord othermr dmar csex cardiac uterine lung diabetes herpes anemia hydra chyper "
        "phyper incervix pre4000 preterm renal rh hemo tobacco alcohol orfath adequacy drink5 "
        "mpre5 meduc6 mrace ormoth frace birattnd stoccfipb_reg mplbir_reg cigar6 mager8 pldel "
        "brstate_reg feduc6 dfageq nprevistq data_year crace birmon dtotord_min dlivord_min "
        "gestat10",
    )
)
IHDP_ARRAYS = ("x", "t", "yf", "ycf", "mu0", "mu1")
JOBS_ARRAYS = ("x", "t", "yf", "e")
TWINS_COLUMNS = ("T", "y0", "y1")  # next to the covariates and the propensity


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
        data = _as_published(IHDP, paths, partial(join_splits, IHDP_ARRAYS, 2, IHDP_NAMES))
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
        data = _as_published(JOBS, paths, partial(join_splits, JOBS_ARRAYS, 4, JOBS_NAMES))
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


def fetch_twins(*, data_home=None, download=True, random_state=None):
    """Load Twins: 11984 pairs of light twins, of which both outcomes are known.

    Treatment is to be the heavier twin of a pair, the outcome is death within the first year. Both
    twins are known, and one of them is hidden by a draw whose propensity grows with the weeks of
    gestation, so that these confound [1]_.

    Parameters
    ----------
    data_home : path-like or None, default=None
        A folder that holds ``twins/twins_cevae46.csv.gz``, or the files as published in
        ``twins/``: ``Final_data_twins.csv``, ``twin_pairs_X_3years_samesex.csv`` and
        ``twin_pairs_T_3years_samesex.csv``. Then come the folder that the environment variable
        ``DDML_FS_DATA`` names, and the cache ``~/.cache/ddml_fs``.
    download : bool, default=True
        Whether to download the published files into the cache where no folder holds the data.
    random_state : int, RandomState or None, default=None
        None keeps the draw of the data. Else the seed of a new one, T ~ Bernoulli(propensity).

    Returns
    -------
    data : Bunch
        - ``X`` (11984, 46); its column ``bord`` is the birth order of the twin that is seen, and
          so follows the draw;
        - ``treatment`` (11984,), 1 where the heavier twin is seen, and ``y`` (11984,), 1 where
          that twin died;
        - ``y_0``, ``y_1`` (11984,), the outcomes of the lighter and of the heavier twin;
        - ``propensity`` (11984,), the true chance of treatment;
        - ``ate``, the mean of ``y_1 - y_0``;
        - ``feature_names`` (46,).

    Notes
    -----
    ``Final_data_twins.csv`` must have 45 of the 46 covariates and the columns ``T``, ``y0``,
    ``y1`` and ``Propensity``. Of the last covariate, ``gestat10``, the weeks of gestation in ten
    classes, it has but noisy copies. The classes themselves are in
    ``twin_pairs_X_3years_samesex.csv``: the rows where ``dbirwt_1`` in
    ``twin_pairs_T_3years_samesex.csv``, the weight of the heavier twin, is below 2000 g.

    References
    ----------
    .. [1] Louizos, Shalit, Mooij, Sontag, Zemel and Welling (2017). Causal effect inference with
       deep latent-variable models. NeurIPS.

    Examples
    --------
    >>> from ddml_fs.datasets import fetch_twins
    >>> data = fetch_twins(random_state=0)  # doctest: +SKIP
    >>> data.X.shape, round(data.ate, 5)  # doctest: +SKIP
    ((11984, 46), -0.0252)
    """
    paths = fetch(TWINS, prepared=TWINS_PREPARED, data_home=data_home, download=download)
    if paths.keys() == TWINS_PREPARED.keys():
        (path,) = paths.values()
        table = read_columns((*TWINS_NAMES, *TWINS_COLUMNS, "propensity"), path)
    else:
        table = _as_published(TWINS, paths, join_twins)
    X = table[list(TWINS_NAMES)].to_numpy(np.float64)
    treatment, y_0, y_1 = (table[name].to_numpy(np.float64) for name in ("T", "y0", "y1"))
    propensity = table["propensity"].to_numpy(np.float64)
    if random_state is not None:
        drawn = check_random_state(random_state).binomial(1, propensity).astype(np.float64)
        bord = TWINS_NAMES.index("bord")
        # Twins are first and second, so where the other one is seen the order turns round.
        X[:, bord] = np.where(drawn == treatment, X[:, bord], 1 - X[:, bord])
        treatment = drawn
    return Bunch(
        X=X,
        treatment=treatment,
        y=np.where(treatment == 1, y_1, y_0),
        y_0=y_0,
        y_1=y_1,
        propensity=propensity,
        ate=float(np.mean(y_1 - y_0)),
        feature_names=np.array(TWINS_NAMES),
    )


def join_splits(arrays, n_keys, names, train, test):
    """Arrays of train and test files with all units in one order.

    Parameters
    ----------
    arrays : sequence of str
        The arrays' names; ``x`` is first.
    n_keys : int
        How many of the arrays, the first ones, tell which unit a row is: they are the same in all
        replications.
    names : sequence of str
        The columns of ``x``.
    train, test : Path
        npz files with ``x`` (units, columns, replications) and the others (units, replications).

    Returns
    -------
    data : dict of str to array
        The arrays, with the units in the order of the first replication, train before test, and
        without the axis of replications where these are the same; and ``test_idx``
        (replications, test units).
    """
    parts = [read_arrays(arrays, path) for path in (train, test)]
    data = {name: np.concatenate([part[name] for part in parts]) for name in arrays}
    n_units, n_columns, n_replications = data["x"].shape
    if n_columns != len(names):
        raise ValueError(f"x has {n_columns} columns instead of {len(names)}")
    shared, varying = arrays[:n_keys], arrays[n_keys:]

    def keys(r):
        return np.column_stack([data[name][..., r] for name in shared])

    # places[i, r]: the row of unit i in replication r.
    places = np.empty((n_units, n_replications), int)
    for r in range(n_replications):
        try:
            places[:, r] = match_rows(keys(0), keys(r))
        except ValueError:
            raise ValueError(f"replication {r + 1} has other units than the first") from None
    units = np.argsort(places, axis=0)
    return {
        **{name: data[name][..., 0] for name in shared},
        **{name: np.take_along_axis(data[name], places, 0) for name in varying},
        "test_idx": units[len(parts[0]["x"]) :].T,
    }


def match_rows(A, B):
    """Which row of B (N, D) each row of A (N, D) is; equal rows go by their order."""
    a, b = np.lexsort(A.T), np.lexsort(B.T)  # stable
    if not np.array_equal(A[a], B[b]):
        raise ValueError("the rows must be the same")
    places = np.empty(len(A), int)
    places[a] = b
    return places


def join_twins(final, covariates, weights):
    """The table of Twins, from its file and the two that have the weeks of gestation."""
    table = read_columns(TWINS_FINAL, final).rename(columns={"Propensity": "propensity"})
    light = read_columns(["dbirwt_1"], weights)["dbirwt_1"] < 2000
    weeks = read_columns(["gestat10"], covariates)["gestat10"]
    if len(weeks) != len(light) or light.sum() != len(table):
        raise ValueError(
            f"they have {len(table)}, {len(weeks)} and {len(light)} rows, {light.sum()} of the "
            "last below 2000 g"
        )
    table["gestat10"] = weeks[light].to_numpy()
    # The logit was made of the weeks and little else: a check that the rows are the same pairs.
    logit = np.log(table["propensity"] / (1 - table["propensity"]))
    if not np.corrcoef(table["gestat10"], logit)[0, 1] > 0.9:
        raise ValueError("the weeks of gestation do not fit the propensity")
    return table


def read_arrays(names, path):
    """Arrays of an npz file, by name; ValueError unless it has them."""
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path.name} is no npz file")
    try:
        with np.load(path) as file:
            missing = [name for name in names if name not in file]
            if missing:
                raise ValueError(f"{path.name} lacks the arrays {', '.join(missing)}")
            return {name: file[name] for name in names}
    except (zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path.name} is no whole npz file ({error})") from None


def read_columns(names, path):
    """Columns of a CSV file, by name; ValueError unless it has them."""
    header = pd.read_csv(path, nrows=0).columns
    missing = [name for name in names if name not in header]
    if missing:
        raise ValueError(f"{path.name} lacks the columns {', '.join(missing)}")
    return pd.read_csv(path, usecols=list(names))


def keep(name, read, path, folder):
    """Keep a file as it came, if it can be read."""
    shutil.move(path, folder / name)
    read(folder / name)


def _as_published(downloads, paths, join):
    """What ``join`` makes of the files; its complaint names them."""
    try:
        return join(*paths.values())
    except ValueError as error:
        files, urls = ", ".join(map(str, paths.values())), ", ".join(d.url for d in downloads)
        raise ValueError(
            f"{files} must be the files from {urls}, but {error}; delete them, and they are "
            "downloaded again."
        ) from None


def _published(url, folder, read):
    """A file to download, and to keep as it is."""
    name = f"{folder}/{url.rpartition('/')[2]}"
    return Download(url, {name: None}, partial(keep, name, read))


IHDP = tuple(
    _published(
        f"https://www.fredjo.com/files/ihdp_npci_1-100.{part}.npz",
        "ihdp",
        partial(read_arrays, IHDP_ARRAYS),
    )
    for part in ("train", "test")
)
IHDP_PREPARED = {
    "ihdp/ihdp_npci_1-100.npz": "857337fe3aa444199c6acfa4d841f7dbafc61e825b7eae67b03dcd825afa7fa8"
}
JOBS = tuple(
    _published(
        f"https://www.fredjo.com/files/jobs_DW_bin.new.10.{part}.npz",
        "jobs",
        partial(read_arrays, JOBS_ARRAYS),
    )
    for part in ("train", "test")
)
JOBS_PREPARED = {
    "jobs/jobs_DW_bin.npz": "866d682aa98b5e1405bdc7d87dbcfeff9e97c6f4b597cf5005ee45736aec4df8"
}
TWINS_FINAL = (*TWINS_NAMES[:-1], *TWINS_COLUMNS, "Propensity")
CEVAE = "https://raw.githubusercontent.com/AMLab-Amsterdam/CEVAE/master/datasets/TWINS"
TWINS = (
    _published(
        "https://raw.githubusercontent.com/shalit-lab/Benchmarks/master/Twins/Final_data_twins.csv",
        "twins",
        partial(read_columns, TWINS_FINAL),
    ),
    _published(
        f"{CEVAE}/twin_pairs_X_3years_samesex.csv", "twins", partial(read_columns, ["gestat10"])
    ),
    _published(
        f"{CEVAE}/twin_pairs_T_3years_samesex.csv", "twins", partial(read_columns, ["dbirwt_1"])
    ),
)
TWINS_PREPARED = {
    "twins/twins_cevae46.csv.gz": "4e363e28db7280ffb1ccecfe4a4bf354f984ff304f164fd53614c93cbca23195"
}
