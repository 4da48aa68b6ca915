"""Files as people have them, read into a DataFrame: CSV of any kind, Parquet, Feather, Excel."""

import bz2
import codecs
import csv
import gzip
import lzma
import zipfile
from difflib import get_close_matches
from importlib.util import find_spec
from io import BytesIO, StringIO
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd

from ddml_fs.columns import named, tidy_columns

SEPARATORS = (",", ";", "\t", "|")
BLANKS = r"\s+"
NAMED_SEPARATORS = {"tab": "\t", "\\t": "\t", "space": BLANKS, " ": BLANKS, BLANKS: BLANKS}
SHOWN = {"\t": "tab", BLANKS: "blanks"}
SAMPLE_LINES = 100  # that decide on the separator
SAMPLE_BYTES = 65536  # that decide whether a file is text
FIRST_BYTES = {
    b"PAR1": "parquet",
    b"ARROW1": "feather",
    b"FEA1": "feather",
    b"PK\x03\x04": "zip",
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"\xd0\xcf\x11\xe0": "xls",
}
UNPACK = {"gzip": gzip.decompress, "bz2": bz2.decompress, "xz": lzma.decompress}
PACKAGE = {"parquet": "pyarrow", "feather": "pyarrow", "excel": "openpyxl"}


def read_file(path, *, sep=None, encoding=None):
    """Read a table from a file, and say what was assumed.

    The kind of file is found from its first bytes: text with any of the usual separators and
    encodings, also compressed (gzip, zip, bz2, xz), Parquet, Feather or Excel (its first sheet).
    Numbers written as text, decimal commas, dates and marks of missing values are read as what
    they are.

    Parameters
    ----------
    path : str or path
    sep : str, optional
        Separator of a text file: one character, "tab" or "space". Detected unless given.
    encoding : str, optional
        Encoding of a text file, such as "cp1252". Detected unless given.

    Returns
    -------
    frame : DataFrame
    notes : list of str
        What was assumed or changed, one sentence each.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "visits.csv"
    >>> _ = path.write_text("age;weight;died\\n61;70,5;no\\n?;81,0;yes\\n")
    >>> frame, notes = read_file(path)
    >>> frame["weight"].tolist()
    [70.5, 81.0]
    >>> for note in notes:
    ...     print(note)
    separator ';'
    '?' read as missing in `age`
    decimal commas read in `weight`
    """
    path = check_path(path)
    kind = kind_of(path)
    try:
        if kind in PACKAGE:
            if sep is not None or encoding is not None:
                raise ValueError(f"a separator or encoding is for text, but {path.name} is {kind}.")
            frame, notes = read_typed(path, kind)
        else:
            text, notes = read_text(path, kind, encoding)
            frame, sep, more = parse_text(text, path.name, sep)
            notes += more
    except (OSError, EOFError, zipfile.BadZipFile, lzma.LZMAError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{path.name} cannot be read as {kind}: {reason}.") from None
    if not len(frame):
        raise ValueError(f"{path.name} has column names but no rows.")
    frame, more = tidy_columns(frame, decimal_commas=sep not in (None, ","))
    return frame, notes + more


def check_path(path):
    """A path to a file that is there and not empty."""
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file in it.")
    if not path.exists():
        folder = path.parent
        names = [p.name for p in folder.iterdir() if p.is_file()] if folder.is_dir() else []
        near = get_close_matches(path.name, names, n=1)
        hint = f"; did you mean {folder / near[0]}?" if near else "."
        raise FileNotFoundError(f"there is no file {path}{hint}")
    if path.stat().st_size == 0:
        raise ValueError(f"{path.name} is empty.")
    return path


def kind_of(path):
    """What a file is, from its first bytes: "text", "gzip", ..., "parquet", "feather", "excel"."""
    with path.open("rb") as file:
        first = file.read(8)
    kind = next((kind for magic, kind in FIRST_BYTES.items() if first.startswith(magic)), "text")
    if kind == "xls":
        raise ValueError(f"{path.name} is an old Excel file; save it as .xlsx or CSV.")
    if kind == "zip" and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return "excel" if "xl/workbook.xml" in archive.namelist() else "zip"
    return kind


def read_typed(path, kind):
    """A file whose columns have types: Parquet, Feather or Excel."""
    if find_spec(PACKAGE[kind]) is None:
        raise ValueError(
            f"reading {path.name} needs {PACKAGE[kind]}; install it with "
            "pip install 'ddml-fs[files]'."
        )
    notes = [f"read as {kind.capitalize()}"]
    if kind == "excel":
        with pd.ExcelFile(path) as book:
            sheet, *others = book.sheet_names
            frame = pd.read_excel(book, sheet_name=sheet)
        notes = [f"sheet {sheet!r} read" + (f", not {named(others)}" if others else "")]
    else:
        frame = pd.read_parquet(path) if kind == "parquet" else pd.read_feather(path)
    if not isinstance(frame.index, pd.RangeIndex):
        frame = frame.reset_index()
    frame.columns, more = unique_names([str(name).strip() for name in frame.columns])
    return frame, notes + more


def read_text(path, kind, encoding):
    """The text of a file that may be compressed."""
    data = path.read_bytes()
    if kind == "zip":
        with zipfile.ZipFile(BytesIO(data)) as archive:
            inside = [
                n for n in archive.namelist() if not n.startswith("__MACOSX") and n[-1] != "/"
            ]
            if len(inside) != 1:
                raise ValueError(f"{path.name} must hold one file, got {len(inside)}.")
            data = archive.read(inside[0])
    elif kind in UNPACK:
        data = UNPACK[kind](data)
    text, encoding, detected = decode(data, path.name, encoding)
    check_is_text(text, path.name)
    return text, [f"encoding {encoding}"] if detected and encoding != "utf-8" else []


def decode(data, name, encoding):
    """Bytes as text, the encoding, and whether it was detected."""
    if encoding is not None:
        try:
            # Any bytes of an even number pass as UTF-16; its line ends, for one, have zeros.
            wrong = codecs.lookup(encoding).name.startswith("utf-16") and b"\0" not in data
            if not wrong:
                return data.decode(encoding).removeprefix("\ufeff"), encoding, False
        except LookupError:
            raise ValueError(f"there is no encoding {encoding!r}; try utf-8 or cp1252.") from None
        except UnicodeError:
            pass
        raise ValueError(
            f"{name} is not {encoding} text; leave the encoding out, and it is detected."
        )
    for encoding in candidates(data):
        try:
            return data.decode(encoding).removeprefix("\ufeff"), encoding, True
        except UnicodeError:
            continue
    raise ValueError(f"{name} is not text in any usual encoding.")


def candidates(data):
    """Encodings to try, the most likely first."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return ["utf-16"]
    sample = data[:SAMPLE_BYTES]
    zeros = np.frombuffer(sample, np.uint8) == 0
    if zeros.mean() > 0.2:  # every second byte of Latin letters in UTF-16
        return ["utf-16-be" if zeros[::2].sum() > zeros[1::2].sum() else "utf-16-le"]
    return ["utf-8", "cp1252", "latin-1"]


def check_is_text(text, name):
    """Refuse what is not a table: binary files, JSON, web pages, nothing."""
    sample = text[:SAMPLE_BYTES]
    if not sample.strip():
        raise ValueError(f"{name} is empty.")
    odd = sum(ord(c) < 32 and c not in "\t\r\n\f" for c in sample)
    if "\0" in sample or odd > 0.01 * len(sample) or sample.startswith("%PDF"):
        raise ValueError(f"{name} is not a table: it is a binary file.")
    for start, what in {"{": "JSON", "[": "JSON", "<": "a web page or XML"}.items():
        if sample.lstrip().startswith(start):
            raise ValueError(f"{name} is not a table: it looks like {what}.")


def parse_text(text, name, sep=None):
    """The table in a text, its separator, and notes."""
    notes = []
    if sep is None:
        sep = find_separator(text)
        if sep is None:
            sep = ","
            notes += ["one column only; where it holds several, name their separator by --sep"]
        elif sep != ",":
            notes += [f"separator {SHOWN.get(sep, repr(sep))}"]
    else:
        sep = NAMED_SEPARATORS.get(sep, sep)
        if sep != BLANKS and (len(sep) != 1 or sep in "\"\r\n'"):
            raise ValueError(f"sep must be one character, 'tab' or 'space', got {sep!r}.")
    names, more = header_of(text, sep, name)
    frame = pd.read_csv(
        StringIO(text),
        sep=sep,
        names=names,
        header=0,
        skipinitialspace=True,
        keep_default_na=False,
        na_values=[""],
        low_memory=False,
        index_col=False,
    )
    return frame, sep, notes + more


def records(text, sep):
    """Non-empty records of a text with the number of their last line; blanks split as words."""
    if sep == BLANKS:
        lines = enumerate(StringIO(text), 1)
        yield from ((number, line.split()) for number, line in lines if line.strip())
        return
    rows = csv.reader(StringIO(text, newline=""), delimiter=sep, skipinitialspace=True)
    try:
        for row in rows:
            if row:
                yield rows.line_num, row
    except csv.Error as error:
        raise ValueError(f"line {rows.line_num} cannot be read: {error}.") from None


def find_separator(text):
    """The separator that gives most lines as many values as the header, or None.

    Examples
    --------
    >>> find_separator("a;b, net;c\\n1;2,5;3\\n4;5,5;6\\n")
    ';'
    """
    found = []
    for sep in SEPARATORS:
        try:
            widths = [len(row) for _, row in islice(records(text, sep), SAMPLE_LINES)]
        except ValueError:
            continue
        if widths and widths[0] > 1:
            usual = [width in (widths[0], widths[0] + 1) for width in widths]
            found.append((np.mean(usual), widths[0], sep))
    if found:
        return max(found, key=lambda f: f[:2])[2]
    rows = [row for _, row in islice(records(text, BLANKS), SAMPLE_LINES)]
    if len({len(row) for row in rows}) == 1 and len(rows[0]) > 1 and len(rows) > 1:
        numeric = pd.DataFrame(rows[1:]).apply(pd.to_numeric, errors="coerce").notna().mean()
        return BLANKS if (numeric > 0.5).any() else None
    return None


def header_of(text, sep, file):
    """Names of the columns, after a check that every record has as many values."""
    rows = records(text, sep)
    _, names = next(rows)
    line, row = next(rows, (0, names))
    names, notes = [name.strip() for name in names], []
    if len(row) == len(names) + 1:  # row names, as R writes them, or a separator at the line's end
        names = [*names, ""] if row[-1] == "" else ["row names", *names]
    width = len(names)
    while row:
        if len(row) != width:
            raise ValueError(
                f"line {line} of {file} has {len(row)} values, but its header has {width} columns."
            )
        line, row = next(rows, (0, []))
    if all(name.replace(".", "", 1).lstrip("-").isdigit() for name in names):
        notes += ["the first line holds numbers only and was read as column names"]
    names, more = unique_names(names)
    return names, notes + more


def unique_names(names):
    """Names of columns, each once: repeated ones get a number."""
    unique: list = []
    renamed: list = []
    for j, given in enumerate(names):
        name = given or f"Unnamed: {j}"
        base, n = name, 0
        while name in unique:
            n += 1
            name = f"{base}.{n}"
        if n:
            renamed.append(name)
        unique.append(name)
    return unique, [f"repeated column names are now {named(renamed)}"] if renamed else []
