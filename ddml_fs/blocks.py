"""Tables that are read in blocks of rows: Parquet, Arrow, dask, memory maps, DataFrames."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ddml_fs.prepare import find_column
from ddml_fs.validation import check_integer

COPIES = 16  # of a block in memory at once, with what readers hold
PAGE = 65536  # bytes that are read of a file at once
PARTS = 8  # in which a block is read
NO_ROWS = "X must have rows of a source domain, got none."
FEWEST_ROWS = 256  # of a block, however small the memory budget


@dataclass(frozen=True, eq=False)
class Blocks:
    """A table whose rows are read block by block, as often as needed.

    Attributes
    ----------
    names : list of str
        Names of the features.
    named : bool
        Whether the table itself has names for them.
    rows_per_block : int, or None
        None: the memory budget decides.
    open : callable
        From a number of rows to an iterator over the blocks: X (n, P), y (n,) and the domains (n,)
        or None.
    partitions : Partitions, or None
        Of a dask table.
    """

    names: list
    named: bool
    rows_per_block: int | None
    open: Callable
    partitions: "Partitions | None" = None

    def read(self, memory):
        """Iterate over blocks (X, y, domain) of finite numbers that fit into a memory budget.

        Rows of targets, whose domain is a negative number, are left out. Without domains, all rows
        are of the domain "all".

        Parameters
        ----------
        memory : float
            Gigabytes.
        """
        room = int(memory * 1e9 / (COPIES * 8 * max(len(self.names), 1)))
        for X, y, domain in self.open(self.rows_per_block or max(room, FEWEST_ROWS)):
            X, y, domain = rows_of_sources(X, y, domain)
            if not len(X):
                continue
            finite = np.isfinite(X.sum(0))
            if not finite.all():
                name = self.names[np.argmin(finite)]
                raise ValueError(
                    f"column {name!r} must hold finite numbers to be read in blocks, got missing "
                    "or infinite values; impute them first."
                )
            yield X, y, domain


class Partitions(NamedTuple):
    """The partitions of a dask table, and what their columns are."""

    of: Callable  # from names of columns to a list of delayed DataFrames
    label: str
    domain: str | None

    @property
    def given(self):
        """Columns of the label and of the domain."""
        return [name for name in (self.label, self.domain) if name]


def rows_of_sources(X, y, domain):
    """X, labels and domains as arrays, without the rows of targets."""
    y = plain(y, "the label")
    domain = np.full(len(y), "all") if domain is None else plain(domain, "the domain")
    if domain.dtype.kind in "if" and (domain < 0).any():
        X, y, domain = (a[domain >= 0] for a in (X, y, domain))
    return X, y, domain


def plain(values, what):
    """Labels or domains as an array of numbers or of text, without missing values."""
    values = np.asarray(values)
    missing = int(pd.isna(values).sum())
    if missing:
        raise ValueError(f"{what} must be known in every row, got {missing} missing.")
    return np.array(values.tolist()) if values.dtype == object else values


def read_blocks(
    source: Any,
    label: Any,
    domain: Any = None,
    *,
    columns: Sequence[str] | None = None,
    rows_per_block: int | None = None,
) -> Blocks:
    """Describe a table that is to be read in blocks of rows.

    Nothing but the names of columns is read before
    :meth:`CausalFeatureSelector.fit <ddml_fs.CausalFeatureSelector.fit>` asks for the rows.

    Parameters
    ----------
    source : path, pyarrow Dataset, ParquetFile or Table, dask or pandas DataFrame, or array
        A path is a Parquet file, or a folder of them. Columns hold numbers or truth values, without
        gaps. Arrays may be memory-mapped (``np.load(path, mmap_mode="r")``).
    label, domain : str, or arrays of shape (n_samples,) if ``source`` is an array
        Names of columns; by default all rows are of one domain. Negative numbers mark rows of
        targets, which are left out.
    columns : sequence of str, optional
        Names of the features. By default all columns but label and domain.
    rows_per_block : int, optional
        By default as many as the selector's ``memory_budget`` allows.

    Returns
    -------
    blocks : Blocks

    Examples
    --------
    >>> from ddml_fs import CausalFeatureSelector
    >>> rng = np.random.RandomState(0)
    >>> frame = pd.DataFrame(rng.standard_normal((500, 3)), columns=["a", "b", "c"])
    >>> frame["y"] = frame["b"] + rng.standard_normal(500)
    >>> selector = CausalFeatureSelector(1, nuisance="ridge", random_state=0)
    >>> selector.fit(read_blocks(frame, "y", rows_per_block=100)).get_feature_names_out().tolist()
    ['b']
    """
    if rows_per_block is not None:
        check_integer(rows_per_block, "rows_per_block", 1)
    if isinstance(source, np.ndarray):
        return array_blocks(source, label, domain, columns, rows_per_block)
    names, frames = open_source(source)
    if not isinstance(label, str) or not (domain is None or isinstance(domain, str)):
        raise TypeError(
            f"label and domain must be names of columns of a table that is read in blocks, got "
            f"{type(label).__name__} and {type(domain).__name__}."
        )
    given = [find_column(name, names) for name in (label, *([domain] if domain else []))]
    if columns is None:
        features = [name for name in names if name not in given]
    else:
        features = [find_column(name, names) for name in columns]
    if not features or set(features) & set(given):
        raise ValueError("columns must name features other than label and domain, got none.")

    def blocks(rows):
        # Readers hold small parts of a block, so that they need little memory beside it.
        held: list = []
        X, n = np.empty((rows, len(features))), 0
        for frame in frames([*features, *given], max(rows // PARTS, min(rows, FEWEST_ROWS))):
            if n + len(frame) > rows:
                yield X[:n], *gathered(held, label, domain)
                X, held, n = np.empty((rows, len(features))), [], 0
            fill_numbers(X[n : n + len(frame)], frame, features)
            held.append(frame[given].copy())
            n += len(frame)
        if n:
            yield X[:n], *gathered(held, label, domain)

    partitions = None
    if is_dask(source):
        partitions = Partitions(lambda own: source[own].to_delayed(), label, domain)
    return Blocks(features, True, rows_per_block, blocks, partitions)


def gathered(frames, label, domain):
    """Labels and domains of several DataFrames."""
    frame = pd.concat(frames, ignore_index=True)
    return frame[label], frame[domain] if domain else None


def array_blocks(X, y, domain, columns, rows_per_block):
    """Blocks of an array with labels and domains beside it."""
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ValueError(f"X must be a numeric array of two dimensions, got {X.dtype} {X.shape}.")
    if columns is not None:
        raise ValueError("columns are names, for tables that have some; choose columns of X.")
    for name, values in (("label", y), ("domain", domain)):
        if values is not None and np.shape(values) != (len(X),):
            raise ValueError(
                f"{name} must have one value per row of X ({len(X)}), got {np.shape(values)}."
            )

    def blocks(rows):
        for start in range(0, len(X), rows):
            part = slice(start, start + rows)
            own = None if domain is None else np.asarray(domain[part])
            yield np.array(X[part], dtype=np.float64), np.asarray(y[part]), own

    return Blocks([f"x{j}" for j in range(X.shape[1])], False, rows_per_block, blocks)


def numbers_of(frame, features):
    """Columns of a DataFrame as numbers, (n, P)."""
    X = np.empty((len(frame), len(features)))
    fill_numbers(X, frame, features)
    return X


def fill_numbers(X, frame, features):
    """Write columns of a DataFrame into an array (n, P)."""
    for j, name in enumerate(features):
        column = frame[name]
        if not pd.api.types.is_numeric_dtype(column):  # which truth values are
            raise ValueError(
                f"column {name!r} must hold numbers or truth values to be read in blocks, got "
                f"{column.dtype}; name other columns, or encode it first."
            )
        X[:, j] = column.to_numpy(dtype=np.float64, na_value=np.nan)


def open_source(source):
    """Names of the columns, and a function from (columns, rows) to an iterator of DataFrames."""
    kind = type(source).__module__.partition(".")[0]
    if isinstance(source, pd.DataFrame):
        return list(source.columns), lambda columns, rows: (
            source[columns].iloc[i : i + rows] for i in range(0, len(source), rows)
        )
    if isinstance(source, str | PathLike):
        return open_parquet(source)
    if kind == "pyarrow" and hasattr(source, "iter_batches"):  # a ParquetFile
        return names_in(source.schema_arrow), lambda columns, rows: parquet_frames(
            source, columns, rows
        )
    if kind == "pyarrow" and hasattr(source, "to_batches"):  # a Table or a Dataset
        if hasattr(source, "scanner"):
            return names_in(source.schema), lambda columns, rows: scan(source, columns, rows)
        return names_in(source.schema), lambda columns, rows: (
            batch.to_pandas(ignore_metadata=True)
            for batch in source.select(columns).to_batches(max_chunksize=rows)
        )
    if is_dask(source):
        return list(source.columns), lambda columns, rows: dask_frames(source, columns, rows)
    raise TypeError(
        "X must be a path to Parquet, a pyarrow Dataset, ParquetFile or Table, a DataFrame of dask "
        f"or pandas, or an array, to be read in blocks, got {type(source).__name__}."
    )


def is_dask(source):
    """Whether a source is a dask DataFrame."""
    return type(source).__module__.startswith("dask") and hasattr(source, "partitions")


def names_in(schema):
    """Names of the columns of an Arrow schema, without the index that pandas writes."""
    return [name for name in schema.names if not name.startswith("__index_level_")]


def open_parquet(path):
    """The same for a Parquet file, or a folder of them, with hive names of folders as columns."""
    if find_spec("pyarrow") is None:
        raise ValueError("reading Parquet needs pyarrow; install it: pip install 'ddml-fs[files]'.")
    import pyarrow.dataset as ds

    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        source = ds.dataset(path, format="parquet", partitioning="hive" if path.is_dir() else None)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path.name} is not Parquet: {str(error).splitlines()[0]}") from None
    return names_in(source.schema), lambda columns, rows: scan(source, columns, rows)


def scan(dataset, columns, rows):
    """DataFrames of a pyarrow Dataset, with as little read ahead as possible."""
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    if not isinstance(getattr(dataset, "format", None), ds.ParquetFileFormat):
        for batch in dataset.to_batches(columns=columns, batch_size=rows, use_threads=False):
            yield batch.to_pandas(ignore_metadata=True)
        return
    for fragment in dataset.get_fragments():
        folder = ds.get_partition_keys(fragment.partition_expression)
        with fragment.open() as file:
            # Streams of pages, so that a large row group is never in memory as a whole.
            stream = pq.ParquetFile(file, pre_buffer=False, buffer_size=PAGE)
            for frame in parquet_frames(stream, [c for c in columns if c not in folder], rows):
                yield frame.assign(**folder)


def parquet_frames(file, columns, rows):
    """DataFrames of a pyarrow ParquetFile."""
    for batch in file.iter_batches(rows, columns=columns, use_threads=False):
        yield batch.to_pandas(ignore_metadata=True)


def dask_frames(source, columns, rows):
    """DataFrames of a dask DataFrame, one partition in memory at a time."""
    for i in range(source.npartitions):
        frame = source[columns].partitions[i].compute(scheduler="synchronous")
        for start in range(0, len(frame), rows):
            yield frame.iloc[start : start + rows]
