"""The package's own warning, and the wording of lists in it."""

import inspect
import warnings
from contextlib import contextmanager
from pathlib import Path

PACKAGE = str(Path(__file__).parent)
MOST_NAMES = 5  # in one warning


class DDMLWarning(UserWarning):
    """The data make a result less reliable than its numbers say, or a part of a run went wrong."""


def caution(message):
    """Warn with the line of the caller's code, outside this package."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, DDMLWarning, stacklevel=level)


@contextmanager
def said_before():
    """Silence the package's warnings, where an estimator is fitted again on data like the first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DDMLWarning)
        yield


def listed(names):
    """Names in quotes, the first few of many.

    Examples
    --------
    >>> listed(["a", "b"]), listed(list("abcdefgh"))
    ("'a' and 'b'", "'a', 'b', 'c', 'd', 'e' and 3 more")
    """
    return joined([repr(str(name)) for name in names])


def joined(texts):
    """Texts as one list in words, the first few of many."""
    more = len(texts) - MOST_NAMES
    if more > 0:
        return f"{', '.join(texts[:MOST_NAMES])} and {more} more"
    return " and ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))
