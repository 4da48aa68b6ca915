"""Tables of a report: texts to show, and values to sort by."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import pandas as pd

from ddml_fs.version import __version__

MOST_ROWS = 5000  # of the table of features; more would make the file slow to open
PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "torch", "matplotlib")
LONGEST = 300  # characters of a setting
SMALLEST = 1e-4  # p- and q-values below are shown as such

# Column of the table of features: title, and what it means.
TITLES = {
    "rank": ("rank", "1 is the best"),
    "feature": ("feature", ""),
    "selected": ("selected", "whether a model should use the feature"),
    "verdict": ("verdict", "what the audit says"),
    "class": ("class", "the class on which the feature acts most clearly"),
    "effect": ("effect", "of one unit, the mean over the domains"),
    "low": ("low", "lower end of the 95 % interval"),
    "high": ("high", "upper end of the 95 % interval"),
    "std_effect": ("effect per sd", "of one standard deviation of the feature"),
    "qvalue": ("q-value", "of no effect; small values speak for an effect"),
    "sign_agreement": ("same sign", "share of the domains whose effect has the sign of the mean"),
    "instability": ("instability", "spread of the effect between domains beside its size, 0 to 1"),
    "mean_shift": ("mean shift", "between domains, in standard deviations"),
    "alone": ("alone", "held-out AUC (R² for numbers) of the feature alone"),
    "missing": ("missing", "share of missing values"),
}
# Of other tables.
NAMES = {
    "auc": "AUC",
    "auc_low": "AUC, low",
    "auc_high": "AUC, high",
    "accuracy_low": "accuracy, low",
    "accuracy_high": "accuracy, high",
    "r2": "R²",
    "r2_low": "R², low",
    "r2_high": "R², high",
    "n_features": "number",
    "stderr": "standard error",
    "pvalue": "p-value",
    "m": "treatment",
    "g": "outcome",
    "mu_0": "outcome, untreated",
    "mu_1": "outcome, treated",
}


@dataclass(frozen=True)
class Cell:
    """A text, and what it is sorted by: a number, or None for the text itself."""

    text: str
    value: float | None = None


@dataclass(frozen=True)
class Table:
    """A table to be shown.

    Attributes
    ----------
    columns : list of triples
        Name, title and meaning.
    rows : list of lists of Cell
    numeric : list of bool
        Columns that hold numbers.
    left_out : int
        Rows that are not shown.
    """

    columns: list
    rows: list
    numeric: list = field(default_factory=list)
    left_out: int = 0

    @property
    def names(self) -> list:
        """Names of the columns."""
        return [name for name, _, _ in self.columns]


def cell(value: Any, name: str = "") -> Cell:
    """A value as it is shown.

    Examples
    --------
    >>> cell(0.123456), cell(1e-9, "qvalue").text, cell(True).text, cell(float("nan")).text
    (Cell(text='0.123', value=0.123456), '<0.0001', 'yes', '')
    """
    if isinstance(value, bool | np.bool_):
        return Cell("yes" if value else "", float(value))
    if isinstance(value, int | np.integer):
        return Cell(str(value), float(value))
    if isinstance(value, float | np.floating):
        value = float(value)
        if np.isnan(value):
            return Cell("", None)
        if name in ("qvalue", "pvalue") and value < SMALLEST:
            return Cell(f"<{SMALLEST:g}", value)
        if name in ("base_rate", "missing", "share"):
            return Cell(f"{value:.1%}", value)
        large = abs(value) >= 1000 and np.isfinite(value)
        return Cell(f"{value:.0f}" if large else f"{value:.3g}", value)
    return Cell("" if value is None or value is pd.NaT else str(value))


def table_of(frame: pd.DataFrame, titles: Any = None, index: str | None = "") -> Table:
    """A DataFrame as a table; its index is the first column unless None is given for it."""
    if index is not None:
        frame = frame.copy()
        frame.insert(0, index, [str(name) for name in frame.index], allow_duplicates=True)
    titles = {c: (NAMES.get(c, str(c).replace("_", " ")), "") for c in frame} | (titles or {})
    columns = [(str(c), *titles[c]) for c in frame]
    rates = "base_rate" if "base_rate" in frame else None  # its interval is a share too
    kinds = ["base_rate" if rates and c in ("low", "high") else str(c) for c in frame]
    values = [frame.iloc[:, j].tolist() for j in range(frame.shape[1])]
    rows = [
        [cell(v, kind) for v, kind in zip(row, kinds, strict=True)]
        for row in zip(*values, strict=True)
    ]
    numeric = [any(row[j].value is not None for row in rows) for j in range(len(columns))]
    return Table(columns, rows, numeric)


def feature_table(selector: Any, audit: Any = None) -> Table:
    """All features with their effects, best first, and what an audit says of them.

    Parameters
    ----------
    selector : CausalFeatureSelector
    audit : ShiftAudit, optional
        Leaks have a row, without an effect.

    Returns
    -------
    table : Table
    """
    effects = selector.effects_
    interval = selector.conf_int()
    frame = effects.assign(
        feature=[str(name) for name in effects.index],
        low=interval["low"].to_numpy(),
        high=interval["high"].to_numpy(),
    )
    if len(selector.domains_) < 2:
        frame = frame.drop(columns=["sign_agreement", "instability"])
    unknown = frame["df"] == 0
    frame.loc[unknown, ["effect", "low", "high", "std_effect"]] = np.nan
    if audit is not None:
        said = audit.features_
        said = said[~said.index.duplicated()]
        leaks = said.index[said["verdict"] == "leak"].difference(effects.index)
        frame = pd.concat([frame, pd.DataFrame({"feature": leaks.astype(str)}, index=leaks)])
        names = ["verdict", "mean_shift", "alone", "missing"]
        frame[names] = said.reindex(frame.index)[names].to_numpy()
        frame["selected"] = frame["selected"].fillna(False).astype(bool)
        if not said["missing"].any():
            frame = frame.drop(columns="missing")
        frame = frame.infer_objects()
    frame = frame.sort_values("rank", kind="stable", na_position="last")
    left_out = max(len(frame) - MOST_ROWS, 0)
    shown = frame[[name for name in TITLES if name in frame]].head(MOST_ROWS)
    if "rank" in shown:
        shown = shown.assign(rank=[None if np.isnan(r) else int(r) for r in shown["rank"]])
    found = table_of(shown, TITLES, index=None)
    return Table(found.columns, found.rows, found.numeric, left_out)


def facts_of(data: Any) -> tuple[list, list]:
    """What is told of the data: pairs of texts, and pairs of a title and a table.

    Parameters
    ----------
    data : DataFrame, mapping or None
        A DataFrame is counted. Of a mapping, values that are DataFrames become tables.
    """
    if data is None:
        return [], []
    if isinstance(data, pd.DataFrame):
        missing = int(data.isna().to_numpy().sum())
        kinds = data.dtypes.map(kind_of).value_counts()
        named = [f"{n} {kind}" for kind, n in kinds.items()]
        return [
            ("rows", f"{len(data):,}"),
            ("columns", f"{data.shape[1]:,} ({', '.join(named)})"),
            ("missing values", f"{missing:,}"),
        ], []
    if not isinstance(data, Mapping):
        raise TypeError(
            f"data must be a DataFrame or a mapping of names to values, got {type(data).__name__}."
        )
    facts = [(str(k), str(v)) for k, v in data.items() if not isinstance(v, pd.DataFrame)]
    return facts, [(str(k), table_of(v)) for k, v in data.items() if isinstance(v, pd.DataFrame)]


def kind_of(dtype: Any) -> str:
    """A type of column in a word."""
    if pd.api.types.is_bool_dtype(dtype):
        return "boolean"
    if pd.api.types.is_numeric_dtype(dtype):
        return "numeric"
    return "date" if pd.api.types.is_datetime64_any_dtype(dtype) else "text or category"


def settings_of(estimator: Any) -> list:
    """Parameters of an estimator as pairs of texts."""
    values = estimator.get_params(deep=False)
    shown = {name: " ".join(repr(value).split()) for name, value in values.items()}
    return [(n, t if len(t) <= LONGEST else t[: LONGEST - 1] + "…") for n, t in shown.items()]


def versions() -> list:
    """Versions of Python, of this package and of those it computes with, as pairs of texts."""
    out = [("ddml-fs", __version__), ("Python", platform.python_version())]
    for name in PACKAGES:
        try:
            out.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return [*out, ("platform", platform.platform(terse=True))]
