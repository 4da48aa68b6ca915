"""What all commands on a file do first: read it, and say what was assumed."""

import shlex
import sys

from ddml_fs.columns import is_text, named
from ddml_fs.files import read_file
from ddml_fs.prepare import Prepared, prepare


def open_file(out, file, label, domain, *, sep, encoding, **columns) -> Prepared:
    """Read a file into features, label and domains, and print what was assumed.

    Parameters
    ----------
    out : Printer
    file : path
    label, domain : str
    sep, encoding : str or None
        As in :func:`~ddml_fs.files.read_file`.
    **columns
        As in :func:`~ddml_fs.prepare.prepare`; None is empty.

    Returns
    -------
    prepared : Prepared
    """
    frame, notes = read_file(file, sep=sep, encoding=encoding)
    given: dict = {name: value or () for name, value in columns.items()}
    prepared = prepare(frame, label, domain, **given)
    out.say(f"{file}: {len(frame)} rows, {frame.shape[1]} columns")
    prepared.notes[:0] = notes
    out.notes(prepared.notes)
    return prepared


def command_line():
    """The command as it was typed."""
    return shlex.join(["ddml-fs", *sys.argv[1:]])


def code_for(call, file, label, domain, *, sep, encoding, **columns):
    """Python code that does the same as a command.

    Examples
    --------
    >>> print(code_for("Model()", "a.csv", "y", "", sep=None, encoding=None, drop=["b"]))
    from ddml_fs import Model
    from ddml_fs.prepare import prepare
    from ddml_fs.files import read_file
    <BLANKLINE>
    frame, notes = read_file('a.csv')
    data = prepare(frame, 'y', '', drop=['b'])
    model = Model().fit(data.X, data.y, sample_domain=data.domain)
    """
    reading = {"sep": sep, "encoding": encoding}
    how = "".join(f", {name}={value!r}" for name, value in reading.items() if value is not None)
    given = {name: value for name, value in columns.items() if value and value != "auto"}
    what = "".join(f", {name}={value!r}" for name, value in given.items())
    return (
        f"from ddml_fs import {call.split('(')[0]}\n"
        "from ddml_fs.prepare import prepare\n"
        "from ddml_fs.files import read_file\n\n"
        f"frame, notes = read_file({str(file)!r}{how})\n"
        f"data = prepare(frame, {label!r}, {domain!r}{what})\n"
        f"model = {call}.fit(data.X, data.y, sample_domain=data.domain{row_arguments(**given)})"
    )


def row_arguments(*, weight="", cluster="", **others):
    """Arguments of ``fit`` in Python code, for the columns that are given.

    Examples
    --------
    >>> row_arguments(weight="w", drop=["b"])
    ', sample_weight=data.weight'
    """
    given = {"sample_weight=data.weight": weight, "cluster=data.cluster": cluster}
    return "".join(f", {argument}" for argument, name in given.items() if name)


def open_new(out, file, X, *, sep, encoding):
    """Rows of a new domain, with the columns of X, checked."""
    frame, _ = read_file(file, sep=sep, encoding=encoding)
    missing = [name for name in X.columns if name not in frame.columns]
    if missing:
        raise ValueError(f"{file} must have all features, but lacks {named(missing)}.")
    frame = frame[list(X.columns)]
    for name in X.columns:
        if is_text(frame[name]) != is_text(X[name]) and frame[name].notna().any():
            raise ValueError(f"column {name!r} must hold the same in both files, text or numbers.")
    out.say(f"{file}: {len(frame)} rows of a new domain\n")
    return frame
