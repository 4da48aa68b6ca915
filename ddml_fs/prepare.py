"""From a file's columns to features, label and domains, with every assumption put into words."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ddml_fs.columns import MOST_CLASSES, find_column, is_text, named, pick
from ddml_fs.features import Encoding

OPTIONS = {"label": "positive", "treatment": "treated"}  # which say what is 1
TASKS = ("auto", "classification", "regression", "number")
FEWEST_ROWS = 20
FEWEST_IN_DOMAIN = 10
COMPLETE = "numbers without gaps"


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a command works with.

    Attributes
    ----------
    X : DataFrame
        The features.
    y : array
        0/1 for a label with two values, names of classes, or numbers.
    domain : array, or None
        Names of the domains.
    task : {"classification", "regression"}
    notes : list of str
        What was assumed, one sentence each.
    weight, cluster : arrays of shape (n_samples,), or None
        Weights of the rows, and clusters of rows that depend on one another.
    """

    X: pd.DataFrame
    y: np.ndarray
    domain: np.ndarray | None
    task: str
    notes: list
    weight: np.ndarray | None = None
    cluster: np.ndarray | None = None


def prepare(
    frame: pd.DataFrame,
    label: str,
    domain: str = "",
    *,
    drop: Sequence[str] = (),
    ids: Sequence[str] = (),
    columns: Sequence[str] = (),
    keep: Sequence[str] = (),
    task: str = "auto",
    weight: str = "",
    cluster: str = "",
    positive: str = "",
) -> Prepared:
    """Take features, label and domains from a table.

    Parameters
    ----------
    frame : DataFrame
    label, domain : str
        Names of columns; an empty domain is none.
    drop, ids, columns, keep : sequences of str
        Names or patterns of columns that are no features, that name rows, that alone are features,
        and that are features although they look like names of rows.
    task : {"auto", "classification", "regression", "number"}
        What the label is; "number": two classes as 0/1, and all else as numbers.
    weight, cluster : str
        Columns of weights and clusters, which are no features; empty for none.
    positive : str
        Which of two classes is 1; by default the last one in alphabetical order.

    Returns
    -------
    prepared : Prepared

    Examples
    --------
    >>> frame = pd.DataFrame({"age": range(30, 60), "died": ["yes", "no", "no"] * 10})
    >>> prepare(frame, "died").notes[0]
    "label `died`: 'yes' is 1 (33.3 %), 'no' is 0; classification"
    """
    if task not in TASKS:
        raise ValueError(f"task must be one of {TASKS}, got {task!r}.")
    names = list(frame.columns)
    label = find_column(label, names)
    domain = find_column(domain, names) if domain else ""
    if label == domain:
        raise ValueError(f"label and domain must be two columns, got {label!r} for both.")
    weight, cluster = (find_column(name, names) if name else "" for name in (weight, cluster))
    roles = list(filter(None, (label, domain, weight, cluster)))
    if len(set(roles)) < len(roles):
        raise ValueError(f"label, domain, weight and cluster must be different, got {roles}.")
    left_out = [*pick(drop, names), *pick(ids, names)]
    for name in filter(None, (label, domain)):
        if name in left_out:
            raise ValueError(f"column {name!r} cannot be left out: it is the label or the domain.")
    features = pick(columns, names) if columns else names
    features = [name for name in features if name not in (*roles, *left_out)]
    frame, notes = without_gaps(frame, roles)
    y, kind, note = read_label(frame[label], task, positive)
    notes = [note, *notes]
    groups = None
    if domain:
        groups, usable, more = read_domains(frame[domain], y, kind)
        frame, y, groups = frame[usable], y[usable], groups[usable]
        notes += more
    X, more = without_names(frame[features], pick(keep, names))
    if not X.shape[1]:
        raise ValueError("there must be a feature beside the label and the domain, got none.")
    if len(X) < FEWEST_ROWS:
        raise ValueError(f"there must be at least {FEWEST_ROWS} rows with a label, got {len(X)}.")
    notes += [*more, f"{len(X)} rows, {X.shape[1]} features: {describe_encoding(X)}"]
    rows, more = read_rows(frame, weight, cluster)
    return Prepared(X.reset_index(drop=True), y, groups, kind, [*notes, *more], **rows)


def read_rows(frame, weight, cluster):
    """Weights and clusters of the rows by name, if there are any, and notes on them."""
    rows, notes = {}, []
    if weight:
        if not pd.api.types.is_numeric_dtype(frame[weight]):
            raise ValueError(f"weight {weight!r} must hold numbers, got {frame[weight].iloc[0]!r}.")
        rows["weight"] = frame[weight].to_numpy(dtype=float)
        notes += [f"rows weighted by `{weight}`"]
    if cluster:
        rows["cluster"] = frame[cluster].to_numpy()
        found = count(frame[cluster].nunique(), "cluster")
        notes += [f"{found} by `{cluster}`, whose rows may depend on one another"]
    return rows, notes


def without_gaps(frame, roles):
    """Rows that have a label, a domain, and all else that is said about rows."""
    notes = []
    for name in roles:
        missing = frame[name].isna()
        if missing.all():
            raise ValueError(f"column {name!r} is missing in every row.")
        if missing.any():
            notes.append(f"{missing.sum()} rows without `{name}` left out")
            frame = frame[~missing]
    return frame, notes


def read_label(column, task, positive="", role="label"):
    """The label as an array, "classification" or "regression", and a note that says so.

    Parameters
    ----------
    column : Series
    task, positive : str
        As in :func:`prepare`.
    role : {"label", "treatment"}
        What the column is called.
    """
    name, levels = column.name, column.unique()
    if pd.api.types.is_datetime64_any_dtype(column):
        raise ValueError(f"{role} {name!r} must hold labels or numbers, got dates.")
    if len(levels) < 2:
        raise ValueError(f"{role} {name!r} must vary, got {levels[0]!s} in every row.")
    text = is_text(column) or isinstance(column.dtype, pd.CategoricalDtype)
    values = column.astype(str).to_numpy(dtype=object) if text else column.to_numpy(dtype=float)
    whole = not text and np.array_equal(values, np.round(values))
    if task == "auto" and text and len(levels) > MOST_CLASSES:
        raise ValueError(
            f"{role} {name!r} must have at most {MOST_CLASSES} classes, got {len(levels)} "
            "different texts; is it the right column?"
        )
    if task in ("regression", "number") and text and (len(levels) > 2 or task == "regression"):
        raise ValueError(f"{role} {name!r} must hold numbers, got text such as {values[0]!r}.")
    label = {
        "auto": text or (whole and len(levels) <= MOST_CLASSES),
        "number": len(levels) == 2,
    }.get(task, task == "classification")
    if not label and positive:
        option = OPTIONS[role]
        raise ValueError(f"{option} is for two classes, but {role} {name!r} holds numbers.")
    if not label:
        note = f"{role} `{name}`: a number from {values.min():g} to {values.max():g}; regression"
        return values, "regression", note
    return read_classes(values if text else as_integers(values), name, positive, role)


def read_treatment(X, treatment, domain="", treated=""):
    """Covariates, the treatment as numbers, and a note on it.

    Parameters
    ----------
    X : DataFrame
        With the treatment among its columns.
    treatment : str
    domain : str
        A column of X that is a category, even if it holds numbers; empty for none.
    treated : str
        Which of two levels is 1; by default the last one in alphabetical order.

    Returns
    -------
    covariates : DataFrame
    values : array of shape (n_samples,)
    note : str
    """
    names = list(X.columns)
    treatment, domain = find_column(treatment, names), domain and find_column(domain, names)
    if X[treatment].isna().any():
        n = int(X[treatment].isna().sum())
        raise ValueError(f"treatment {treatment!r} must be known in every row, got {n} missing.")
    covariates = X.drop(columns=treatment)
    if domain:
        covariates[domain] = covariates[domain].astype(str)
    values, _, note = read_label(X[treatment], "number", treated, "treatment")
    return covariates, values.astype(float), note.split(";")[0]


def as_integers(values):
    """Whole numbers as integers, so that they are shown as such."""
    return values.astype(int) if np.array_equal(values, np.round(values)) else values


def read_classes(values, name, positive="", role="label"):
    """Two classes as 0/1, several by their names; see :func:`read_label`."""
    classes, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    shown = [repr(c.item() if isinstance(c, np.generic) else c) for c in classes]
    if counts.min() < 2:
        rare = shown[counts.argmin()]
        raise ValueError(f"{role} {name!r} must have 2 rows of each class, got 1 of {rare}.")
    if positive and (len(classes) != 2 or positive not in map(str, classes)):
        raise ValueError(
            f"{OPTIONS[role]} must be one of two classes, got {positive!r} for {role} {name!r} "
            f"with {', '.join(shown[:8])}."
        )
    if positive == str(classes[0]):
        classes, codes, shown = classes[::-1], 1 - codes, shown[::-1]
    if len(classes) == 2:
        share = f"({100 * codes.mean():.1f} %)"
        one = (
            f"{shown[1]} is 1 {share}, {shown[0]} is 0"
            if shown != ["0", "1"]
            else f"0 or 1 {share}"
        )
        note = f"{role} `{name}`: {one}; classification"
        return codes, "classification", note
    listed = ", ".join(f"{c} ({n})" for c, n in zip(shown[:8], counts, strict=False))
    note = f"{role} `{name}`: {len(classes)} classes, {listed}; classification"
    return values.astype(str), "classification", note


def read_domains(column, y, task):
    """Names of the domains, which rows are of a usable one, and notes."""
    name = column.name
    groups = column.to_numpy()
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        groups = as_integers(column.to_numpy(dtype=float))
        if (groups < 0).any():
            raise ValueError(f"domain {name!r} must not be negative, got {groups.min():g}.")
    else:
        groups = column.astype(str).to_numpy(dtype=object)
    domains, number = np.unique(groups, return_inverse=True)
    if len(domains) < 2:
        raise ValueError(f"domain {name!r} must have two values or more, got {domains[0]} alone.")
    rows = np.bincount(number)
    few = rows < FEWEST_IN_DOMAIN
    classes = np.array([len(np.unique(y[number == d])) for d in range(len(domains))])
    single = (classes == 1) & ~few if task == "classification" else np.zeros(len(domains), bool)
    usable = ~few & ~single
    reasons = {f"fewer than {FEWEST_IN_DOMAIN} rows": few, "one class only": single}
    found = [f"{why} in {listed(domains[bad])}" for why, bad in reasons.items() if bad.any()]
    if usable.sum() < 2:
        raise ValueError(
            f"domain {name!r} must have two usable values or more, got {' and '.join(found)}."
        )
    notes = [f"{usable.sum()} domains by `{name}`: {listed(domains[usable], rows[usable])}"]
    left_out = rows[~usable].sum()
    if found:
        notes += [f"{left_out} rows left out: {' and '.join(found)} of `{name}`"]
    return groups, usable[number], notes


def listed(domains, rows=None, most=4):
    """Domains in a sentence, with their numbers of rows."""
    shown = [
        f"'{d}'" + ("" if rows is None else f" ({rows[i]} rows)") for i, d in enumerate(domains)
    ]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more


def without_names(X, keep=()):
    """Features without columns whose text names the rows; numbers that do are only noted."""
    texts, numbers = [], []
    for name in X.columns:
        column = X[name]
        if name in keep or not column.is_unique or column.isna().any():
            continue
        if is_text(column):
            texts.append(name)
        elif column.dtype.kind in "iu" and (
            column.is_monotonic_increasing or column[::-1].is_monotonic_increasing
        ):
            numbers.append(name)
    notes = []
    if texts:
        notes += [f"another text in every row, left out: {named(texts)}; --keep makes it a feature"]
    if numbers:
        notes += [f"looks like a row number: {named(numbers)}; --id leaves it out"]
    return X.drop(columns=texts), notes


def describe_encoding(X):
    """What is done with columns that are not complete numbers, in a sentence.

    Examples
    --------
    >>> describe_encoding(pd.DataFrame({"age": [1.0, None, 3.0], "sex": ["f", "m", "f"]}))
    '1 text column one-hot encoded, 1 missing value in `age` imputed'
    """
    kinds = {r.name: r.kind for r in Encoding.of(X, list(X.columns)).readers}
    n_missing = {name: int(n) for name, n in X.isna().sum().items() if n}
    parts = []
    texts = sum(kind == "category" for kind in kinds.values())
    dates = sum(kind == "date" for kind in kinds.values())
    if texts:
        parts += [f"{count(texts, 'text column')} one-hot encoded"]
    if dates:
        parts += [f"{count(dates, 'date')} turned into days"]
    filled = [name for name in n_missing if kinds[name] != "category"]
    levels = [name for name in n_missing if kinds[name] == "category"]
    for names, what in ((filled, "imputed"), (levels, "as a level of their own")):
        if names:
            total = sum(n_missing[name] for name in names)
            parts += [f"{count(total, 'missing value')} in {named(names)} {what}"]
    return ", ".join(parts) or COMPLETE


def count(n, what):
    """A number of things."""
    return f"{n} {what}" + ("s" if n != 1 else "")
