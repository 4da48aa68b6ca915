"""Strategies for tables as they should not be, and what every call must end in."""

import re
import traceback
import warnings

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from ddml_fs.cautions import DDMLWarning

# Words of libraries below this package; a user cannot know what they mean.
INTERNAL = re.compile(
    "singular|SVD|LinAlg|RuntimeError|out of range|out of bounds|broadcast|einsum|LAPACK|"
    "object is not|has no attribute|unsupported operand|ufunc|positional argument|"
    "zero-size|Traceback|tensor|matmul|operands|not subscriptable|truth value|"
    "Cannot cast|unhashable|empty sequence|empty range|iteration over|not supported between",
)
OWN = re.compile(r"[/\\](ddml_fs|sklearn)[/\\]")

EXPONENTS = st.sampled_from([0, 0, 0, -12, -6, 6, 12])
OFFSETS = st.sampled_from([0.0, 0.0, 0.0, -1.0, 1e3, -1e6, 1e9])
NUMBERS = ("normal", "normal", "float32", "bool", "int8", "int16", "int32", "int64", "uint8")
NUMBERS += ("rare", "constant", "copy", "nearly a copy", "sum", "heavy tails", "few values")
HOLES = ("NaN", "all NaN", "infinity", "one number")
OTHERS = ("category", "text", "text with None", "text of numbers", "objects", "date", "zoned date")
OTHERS += ("date with NaT", "Int64", "boolean", "Float64", "time span", "complex", "lists")
LABELS = ("binary", "binary", "binary", "text", "bool", "three classes", "rare", "one class")
LABELS += ("one row of a class", "many classes", "copy of a column")
OUTCOMES = ("number", "number", "number", "constant", "float32", "integers", "few numbers")
OUTCOMES += ("heavy tails", "copy of a column")
WRONG = ("NaN", "infinity", "None", "objects", "short", "matrix", "date", "column", "scalar")
DOMAINS = ("none", "none", "two", "three", "text", "with targets", "one class each", "three rows")
DOMAINS += ("one each", "floats", "objects", "bool")
WRONG_DOMAINS = ("only targets", "NaN", "None", "short", "text with negatives", "mixed", "matrix")

WEIGHTS = ("equal", "uneven", "zeros", "zeros", "huge ratios", "huge ratios", "beyond floats")
WEIGHTS += ("one heavy row", "one per domain", "all but one per domain", "one row", "integers")
WEIGHTS += ("bool",)
WRONG_WEIGHTS = ("all zero", "negative", "NaN", "infinity", "short", "text", "matrix", "None")
CLUSTERS = ("of one", "of one", "pairs", "ten", "four", "text", "one large", "floats")
CLUSTERS += ("one in all", "two", "two ways")
WRONG_CLUSTERS = ("three ways", "NaN", "None", "short", "scalar")


def number_column(kind, rng, before, exponent, offset):
    """A column of numbers, (n,); ``before`` are the columns to its left."""
    n = len(before)
    z = rng.standard_normal(n)
    last = np.asarray(before[:, -1]) if before.shape[1] else z
    if kind == "bool":
        return z > 0
    if kind.startswith(("int", "uint")):
        info = np.iinfo(kind)
        return rng.integers(max(info.min, -(10**12)), min(info.max, 10**12), n).astype(kind)
    if kind == "rare":
        return (np.arange(n) == rng.integers(n)).astype(float)
    if kind == "constant":
        return np.full(n, offset)
    if kind == "copy":
        return last.copy()
    if kind == "nearly a copy":
        return last + 1e-7 * (np.std(last) + 1e-300) * z
    if kind == "sum":
        return before.sum(1)
    if kind == "heavy tails":
        z = np.exp(8 * z)
    if kind == "few values":
        z = np.round(z)
    values = z * 10.0**exponent + offset
    if kind == "float32":
        return values.astype(np.float32)
    if kind == "NaN":
        values[rng.random(n) < 0.3] = np.nan
    elif kind == "all NaN":
        values[:] = np.nan
    elif kind == "one number":
        values[1:] = np.nan
    elif kind == "infinity":
        values[rng.integers(n)] = np.inf
    return values


def other_column(kind, rng, n):
    """A column of a DataFrame that is not plain numbers."""
    number = rng.integers(0, 4, n)
    hole = rng.random(n) < 0.3
    text = np.array(["a", "b", "c", "ä b"], dtype=object)[number]
    if kind == "category":
        return pd.Categorical(text)
    if kind == "text":
        return text
    if kind == "text with None":
        return np.where(hole, None, text)
    if kind == "text of numbers":
        return number.astype(str)
    if kind == "objects":
        return np.where(hole, number.astype(object), text)
    if kind == "lists":
        return pd.Series([[int(i)] for i in number])
    if kind == "time span":
        return pd.to_timedelta(number, unit="D")
    if kind == "complex":
        return number + 1j
    if kind in ("Int64", "Float64"):
        return pd.array(np.where(hole, None, number.astype(object)), dtype=kind)
    if kind == "boolean":
        return pd.array(np.where(hole, None, (number > 1).astype(object)), dtype="boolean")
    dates = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1000, n), unit="D")
    if kind == "zoned date":
        return dates.tz_localize("UTC")
    return dates.where(~hole) if kind == "date with NaT" else dates


@st.composite
def tables(draw, mixed=True, holes=True, sparse=True):
    """X as an array, sparse matrix, list or DataFrame, and a random generator for y."""
    n = draw(st.sampled_from([1, 2, 5, 8, 9, 12, 20, 30, 40, 60, 60, 60, 60, 60, 60]))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    frame = mixed and draw(st.integers(0, 2)) == 0
    kinds = [*NUMBERS * 2, *(HOLES if holes else ()), *(OTHERS * 2 if frame else ())]
    numbers, columns = np.empty((n, 0)), []
    for kind in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=8)):
        if kind in OTHERS:
            columns.append(other_column(kind, rng, n))
            continue
        column = number_column(kind, rng, numbers, draw(EXPONENTS), draw(OFFSETS))
        columns.append(column)
        if np.isfinite(column).all():
            numbers = np.column_stack([numbers, column])
    if frame:
        return pd.DataFrame({f"c{j}": column for j, column in enumerate(columns)}), rng
    X = np.column_stack(columns)
    forms = ["array", "array", "array", "list", "read-only", "frame"]
    form = draw(st.sampled_from(forms + ["sparse"] * sparse))
    if form == "sparse":
        return with_explicit_zeros(X.astype(float)), rng
    if form == "list":
        return X.tolist(), rng
    if form == "frame":
        return pd.DataFrame(X, index=rng.permutation(n) * 3), rng
    if form == "read-only":
        X = np.asfortranarray(X)
        X.flags.writeable = False
    return X, rng


def with_explicit_zeros(X):
    """A sparse matrix that stores every value, zeros too."""
    n, d = X.shape
    return csr_matrix((X.ravel(), np.tile(np.arange(d), n), np.arange(n + 1) * d), shape=(n, d))


def first_numbers(X, rng):
    """A numeric column of X, or noise."""
    X = X.toarray() if hasattr(X, "toarray") else X
    column = X.iloc[:, 0] if isinstance(X, pd.DataFrame) else np.asarray(X)[:, 0]
    try:
        values = np.asarray(column, dtype=float)
    except (TypeError, ValueError):
        values = np.full(len(column), np.nan)
    return values if np.isfinite(values).all() else rng.standard_normal(len(values))


def outcome(kind, X, rng, exponent=0, offset=0.0):
    """y of a kind."""
    x = first_numbers(X, rng)
    n = len(x)
    signal = (x - x.mean()) / (x.std() or 1.0) + rng.standard_normal(n)
    label = (signal > np.median(signal)).astype(int)
    number = signal * 10.0**exponent + offset
    made = {
        "binary": label,
        "text": np.array(["no", "yes"])[label],
        "bool": label.astype(bool),
        "three classes": np.digitize(signal, np.quantile(signal, [0.3, 0.6])),
        "rare": (np.arange(n) % max(n // 2, 1) == 1).astype(int),
        "one class": np.zeros(n, int),
        "one row of a class": (np.arange(n) == 0).astype(int),
        "many classes": np.arange(n) % 20,
        "copy of a column": x,
        "number": number,
        "constant": np.full(n, offset),
        "float32": number.astype(np.float32),
        "integers": np.round(1000 * signal).astype(np.int64),
        "few numbers": np.round(signal) / 2,
        "heavy tails": np.exp(8 * signal),
        "NaN": np.where(np.arange(n) == n // 2, np.nan, number),
        "infinity": np.where(np.arange(n) == n // 2, np.inf, number),
        "None": np.where(np.arange(n) == n // 2, None, label.astype(object)),
        "objects": np.where(np.arange(n) % 2 == 0, "a", label.astype(object)),
        "short": label[:-1],
        "matrix": np.column_stack([label, label]),
        "date": np.datetime64("2020-01-01") + np.arange(n),
        "column": label[:, None],
        "scalar": 1,
    }
    return made[kind]


def domains(kind, y, n, rng):
    """Domain labels of a kind, or None."""
    half = np.arange(n) % 2
    label = np.unique(np.asarray(y, dtype=str).ravel()[:n], return_inverse=True)[1]
    label = np.resize(label, n) if len(label) else half
    made = {
        "none": None,
        "two": half,
        "three": rng.integers(0, 3, n),
        "text": np.array(["north", "south"])[half],
        "with targets": np.where(np.arange(n) % 4 == 0, -1, half),
        "one class each": label,
        "three rows": (np.arange(n) >= 3).astype(int),
        "one each": np.arange(n),
        "floats": half + 0.5,
        "objects": half.astype(object),
        "bool": half.astype(bool),
        "only targets": -1 - half,
        "NaN": np.where(np.arange(n) == 0, np.nan, half),
        "None": np.where(np.arange(n) == 0, None, half.astype(object)),
        "short": half[:-1],
        "text with negatives": np.array(["1", "-1"])[half],
        "mixed": np.where(half == 0, "a", half.astype(object)),
        "matrix": np.column_stack([half, half]),
    }
    return made[kind]


def weights(kind, where, n, rng):
    """Weights of the rows of a kind, or None; ``where`` (n,) are domains, or None."""
    where = np.zeros(n) if where is None or np.shape(where) != (n,) else where
    where = np.unique(np.asarray(where, dtype=str), return_inverse=True)[1]
    first = np.zeros(n)
    first[np.unique(where, return_index=True)[1]] = 1.0
    made = {
        "none": None,
        "equal": np.full(n, 3.0),
        "uneven": rng.uniform(0.1, 5, n),
        "zeros": rng.integers(0, 2, n).astype(float),
        "huge ratios": 10.0 ** rng.uniform(-12, 12, n),
        "beyond floats": 10.0 ** rng.uniform(-300, 300, n),
        "one heavy row": np.where(np.arange(n) == 0, 1e9, 1.0),
        "one per domain": first,
        "all but one per domain": 1.0 - first,
        "one row": (np.arange(n) == n // 2).astype(int),
        "integers": rng.integers(0, 4, n),
        "bool": rng.integers(0, 2, n).astype(bool),
        "all zero": np.zeros(n),
        "negative": -np.arange(n, dtype=float),
        "NaN": np.where(np.arange(n) == 0, np.nan, 1.0),
        "infinity": np.where(np.arange(n) == 0, np.inf, 1.0),
        "short": np.ones(max(n - 1, 0)),
        "text": np.full(n, "heavy"),
        "matrix": np.ones((n, 2)),
        "None": np.where(np.arange(n) == 0, None, 1.0),
    }
    return made[kind]


def clusters(kind, n, rng):
    """Clusters of the rows of a kind, or None."""
    made = {
        "none": None,
        "of one": np.arange(n),
        "pairs": np.arange(n) // 2,
        "ten": rng.integers(0, 10, n),
        "four": np.arange(n) % 4,
        "text": np.array([f"ward {i % 8}" for i in range(n)], dtype=object),
        "one large": np.where(np.arange(n) < 0.8 * n, -1, np.arange(n)),
        "floats": np.arange(n) // 3 + 0.5,
        "one in all": np.zeros(n, int),
        "two": np.arange(n) % 2,
        "two ways": np.column_stack([np.arange(n) % 6, np.arange(n) // 6]),
        "three ways": np.zeros((n, 3)),
        "NaN": np.where(np.arange(n) == 0, np.nan, np.arange(n)),
        "None": np.where(np.arange(n) == 0, None, "a"),
        "short": np.arange(max(n - 1, 0)),
        "scalar": 1,
    }
    return made[kind]


@st.composite
def rows(draw, where, n, rng):
    """Weights and clusters, in about half of the cases; in one of ten, one of them is wrong."""
    weight = draw(st.sampled_from(["none"] * 16 + list(WEIGHTS) + ["wrong"]))
    cluster = draw(st.sampled_from(["none"] * 16 + list(CLUSTERS) + ["wrong"]))
    weight = draw(st.sampled_from(WRONG_WEIGHTS)) if weight == "wrong" else weight
    cluster = draw(st.sampled_from(WRONG_CLUSTERS)) if cluster == "wrong" else cluster
    return {"sample_weight": weights(weight, where, n, rng), "cluster": clusters(cluster, n, rng)}


def must_end_well(call):
    """Run a call: it must return, or raise one sentence that a user understands, without noise.

    Returns
    -------
    result : object
        What the call returned; None if it raised.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call()
        except (ValueError, TypeError) as error:
            check_sentence(error)
            result = None
    noise = [w for w in caught if issubclass(w.category, RuntimeWarning)]
    assert not noise, f"{noise[0].filename}:{noise[0].lineno}: {noise[0].message}"
    for w in caught:
        if issubclass(w.category, DDMLWarning):
            assert str(w.message).endswith(".")
    return result


def check_sentence(error):
    """An error must be raised by this package or by scikit-learn, in words of their users."""
    text = str(error)
    last = traceback.extract_tb(error.__traceback__)[-1]
    if not OWN.search(last.filename) or INTERNAL.search(text) or not text:
        raise AssertionError(f"{type(error).__name__}: {text}") from error
