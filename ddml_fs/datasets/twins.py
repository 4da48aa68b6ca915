"""Twins: pairs of light twins, of which both outcomes are known."""

from functools import partial

import numpy as np
from sklearn.utils import Bunch, check_random_state

from ddml_fs.datasets.fetch import fetch
from ddml_fs.datasets.published import join_files, published_file, read_columns

TWINS_NAMES = (
    "eclamp",
    "bord",
    "othermr",
    "dmar",
    "csex",
    "cardiac",
    "uterine",
    "lung",
    "diabetes",
    "herpes",
    "anemia",
    "hydra",
    "chyper",
    "phyper",
    "incervix",
    "pre4000",
    "preterm",
    "renal",
    "rh",
    "hemo",
    "tobacco",
    "alcohol",
    "orfath",
    "adequacy",
    "drink5",
    "mpre5",
    "meduc6",
    "mrace",
    "ormoth",
    "frace",
    "birattnd",
    "stoccfipb_reg",
    "mplbir_reg",
    "cigar6",
    "mager8",
    "pldel",
    "brstate_reg",
    "feduc6",
    "dfageq",
    "nprevistq",
    "data_year",
    "crace",
    "birmon",
    "dtotord_min",
    "dlivord_min",
    "gestat10",
)
TWINS_COLUMNS = ("T", "y0", "y1")  # next to the covariates and the propensity
TWINS_FINAL = (*TWINS_NAMES[:-1], *TWINS_COLUMNS, "Propensity")
CEVAE = "https://raw.githubusercontent.com/AMLab-Amsterdam/CEVAE/master/datasets/TWINS"
TWINS = (
    published_file(
        "https://raw.githubusercontent.com/shalit-lab/Benchmarks/master/Twins/Final_data_twins.csv",
        "twins",
        partial(read_columns, TWINS_FINAL),
    ),
    published_file(
        f"{CEVAE}/twin_pairs_X_3years_samesex.csv", "twins", partial(read_columns, ["gestat10"])
    ),
    published_file(
        f"{CEVAE}/twin_pairs_T_3years_samesex.csv", "twins", partial(read_columns, ["dbirwt_1"])
    ),
)
TWINS_PREPARED = {
    "twins/twins_cevae46.csv.gz": "4e363e28db7280ffb1ccecfe4a4bf354f984ff304f164fd53614c93cbca23195"
}


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
        table = join_files(TWINS, paths, join_twins)
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
