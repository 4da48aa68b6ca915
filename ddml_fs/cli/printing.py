"""What commands print and write: notes, tables, JSON, files."""

import json
import os
import sys
import warnings
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

WIDTH = 200  # at most, where the output is no terminal
MOST_NAME = 40  # letters of a name in one line of a table
WRITERS = {".csv": None, ".tsv": None, ".parquet": "pyarrow", ".feather": "pyarrow"}
WRITERS |= {".xlsx": "openpyxl"}


class Printer:
    """Where a command prints.

    Parameters
    ----------
    as_json : bool
        Whether standard output is for JSON alone; all else goes to standard error then.
    """

    def __init__(self, as_json=False):
        self.as_json = as_json
        file = sys.stderr if as_json else sys.stdout
        width = None if file.isatty() else WIDTH
        self.console = Console(file=file, width=width, highlight=False, soft_wrap=False)

    @property
    def verbose(self):
        """Whether to show progress."""
        return sys.stderr.isatty()

    def say(self, text=""):
        """Print a line of text as it is."""
        self.console.print(text, markup=False, soft_wrap=True)

    def heading(self, text):
        """Print a line of text with a line below it."""
        self.say(f"\n{text}\n{'─' * len(text)}")

    def notes(self, notes):
        """Print what was assumed."""
        for note in notes:
            self.say(f"- {note}")
        self.say()

    def table(self, frame, title=None, index=""):
        """Print a DataFrame."""
        table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        widest = max((len(str(name)) for name in frame.index), default=0)
        table.add_column(index, overflow="fold", min_width=min(widest, MOST_NAME))
        for name in frame.columns:
            numeric = pd.api.types.is_numeric_dtype(frame[name])
            right = numeric and not pd.api.types.is_bool_dtype(frame[name])
            table.add_column(str(name), justify="right" if right else "left", overflow="fold")
        for name, row in zip(frame.index, frame.itertuples(index=False), strict=True):
            table.add_row(str(name), *(shown(value) for value in row))
        self.console.print(table, markup=False)

    def result(self, result):
        """Print the result as JSON where that is wanted."""
        if self.as_json:
            sys.stdout.write(json.dumps(plain(result), indent=2, allow_nan=False) + "\n")

    @contextmanager
    def working(self, n_jobs=1):
        """Compute with as many threads as workers, and print warnings as one line each.

        Threads that wait for one another take minutes where one alone takes seconds, on a machine
        with other work to do.
        """
        from ddml_fs.engine.devices import limit_threads

        def show(message, category, *_, **__):
            # Those of other packages, on convergence for example, do not help a user of a file.
            if category is UserWarning or category.__module__.startswith("ddml_fs"):
                self.say(f"Warning: {' '.join(str(message).split())}")

        n_threads = n_jobs if n_jobs > 0 else os.cpu_count() or 1
        with warnings.catch_warnings(), limit_threads(n_threads):
            warnings.simplefilter("ignore")
            warnings.filterwarnings("once", category=UserWarning)
            warnings.showwarning = show
            yield


def shown(value):
    """A cell of a table as text.

    Examples
    --------
    >>> shown(0.123456), shown(True), shown(12), shown(None), shown(6003.0)
    ('0.123', 'yes', '12', '', '6003')
    """
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if value is None or value is pd.NA:
        return ""
    if not isinstance(value, float | np.floating):
        return str(value)
    number = float(value)
    if np.isnan(number):
        return ""
    return f"{number:.0f}" if 1000 <= abs(number) < 1e9 else f"{number:.3g}"


def plain(value):
    """A value as JSON can hold it: tables as lists of rows, missing numbers as null.

    Examples
    --------
    >>> plain({"a": np.float64("nan"), "b": pd.DataFrame({"x": [1]}, index=["r"])})
    {'a': None, 'b': [{'name': 'r', 'x': 1}]}
    """
    if isinstance(value, pd.DataFrame):
        index = value.index.name or "name"
        rows = value.to_dict("records")
        named = not isinstance(value.index, pd.RangeIndex)
        keys = [{index: key} if named else {} for key in value.index]
        return [plain(key | row) for key, row in zip(keys, rows, strict=True)]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray | pd.Index):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if isinstance(value, bool | int | str | None) else str(value)


def check_paths(output=None, report=None, plot=None):
    """Refuse files that could not be written, before the work starts."""
    if output is not None:
        check_file(output, WRITERS)
        package = WRITERS[output.suffix.lower()]
        if package and find_spec(package) is None:
            raise ValueError(
                f"writing {output.name} needs {package}; install it with "
                "pip install 'ddml-fs[files]'."
            )
    if report is not None:
        check_file(report, (".html", ".htm"))
        check_extra("report", "jinja2", "matplotlib")
    if plot is not None:
        check_file(plot, (".png", ".svg", ".pdf"))
        check_extra("plot", "matplotlib")


def check_file(path, suffixes):
    """A file that can be written, with one of the suffixes."""
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"{path.name} must end in {', '.join(suffixes)}.")
    folder = path.parent
    if path.is_dir() or not folder.is_dir():
        raise ValueError(f"{path} cannot be written: there is no folder {folder}.")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise ValueError(f"{path} cannot be written: permission denied.")


def check_extra(extra, *packages):
    """Refuse what needs a package that is not installed."""
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise ImportError(
            f"this needs {' and '.join(missing)}; install with pip install 'ddml-fs[{extra}]'."
        )


def write_table(frame, path):
    """Write a DataFrame to a file of the kind that its suffix names."""
    path, suffix = Path(path), Path(path).suffix.lower()
    if suffix in (".csv", ".tsv"):
        frame.to_csv(path, sep="\t" if suffix == ".tsv" else ",")
    elif suffix == ".xlsx":
        frame.to_excel(path)
    elif suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.reset_index().to_feather(path)
