"""Colours, figures and names that all plots share."""

import textwrap
from itertools import takewhile
from typing import Any

import numpy as np

# The palette of Okabe and Ito, which people with any kind of colour vision can tell apart. Where
# colours carry meaning, shapes carry it too, for print in greyscale.
BLUE, VERMILLION, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
SKY, ORANGE, GREY, PAPER = "#56b4e9", "#e69f00", "#8a8a8a", "#ffffff"
COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, SKY, ORANGE)
MARKERS = ("o", "s", "^", "v", "P", "X")
WIDTH = 6.4  # inches
LONGEST = 28  # characters of a name in a plot


def new_axes(ax: Any, height: float) -> Any:
    """The axes to draw on: those given, or those of a new figure of this height in inches."""
    if ax is None:
        try:
            from matplotlib import pyplot as plt
        except ImportError:
            raise ImportError(
                "Plots need matplotlib, which is not installed; pip install 'ddml-fs[plot]'."
            ) from None
        _, ax = plt.subplots(figsize=(WIDTH, height), layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def row_height(n_rows: int, each: float = 0.26) -> float:
    """Height in inches of a plot with one row per feature."""
    return float(np.clip(1.2 + each * n_rows, 2.2, 40.0))


def shorten(name: Any, longest: int = LONGEST) -> str:
    """A name that fits, cut in the middle, with no character that matplotlib reads as markup.

    Examples
    --------
    >>> shorten("age")
    'age'
    >>> shorten("systolic_blood_pressure_at_admission_mmHg", 20)
    'systolic_b…sion_mmHg'
    """
    text = one_line(name)
    if len(text) > longest:
        tail = (longest - 1) // 2
        text = text[: longest - 1 - tail] + "…" + text[len(text) - tail :]
    return text.replace("$", r"\$")


def one_line(name: Any) -> str:
    """A name without line breaks and other characters that cannot be printed."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(name)).split())


def shorten_all(names: Any, longest: int = LONGEST) -> list:
    """Names that fit; those that would look the same keep the place where they differ.

    Examples
    --------
    >>> shorten_all(["factor_1_of_the_person", "factor_2_of_the_person", "age"], 14)
    ['fact…or_1_of_…', 'fact…or_2_of_…', 'age']
    """
    texts = [one_line(name) for name in names]
    short = [shorten(text, longest) for text in texts]
    alike: dict = {}
    for text, cut in zip(texts, short, strict=True):
        alike.setdefault(cut, set()).add(text)
    head = longest // 3
    for i, (text, cut) in enumerate(zip(texts, short, strict=True)):
        if len(alike[cut]) > 1:
            same = (len(set(letters)) == 1 for letters in zip(*alike[cut], strict=False))
            start = max(sum(takewhile(bool, same)) - 3, head)
            part = text[start : start + longest - head - 2]
            cut = text[:head] + "…" + part + ("…" if start + len(part) < len(text) else "")
            short[i] = cut.replace("$", r"\$")
    return short


def wrapped(text: str, longest: int = 48) -> str:
    """A label of an axis on as few lines as it needs, about equally long.

    Examples
    --------
    >>> wrapped("effect on the log-odds per standard deviation", 40)
    'effect on the log-odds\\nper standard deviation'
    """
    lines = textwrap.wrap(text, longest, break_on_hyphens=False)
    for width in range(len(text) // max(len(lines), 1), longest):
        even = textwrap.wrap(text, max(width, 1), break_on_hyphens=False)
        if len(even) == len(lines):
            return "\n".join(even)
    return "\n".join(lines)


def name_rows(ax: Any, names: Any, longest: int = LONGEST) -> None:
    """One row per name, the first at the top."""
    n = len(names)
    ax.set_yticks(range(n), shorten_all(names, longest))
    ax.set_ylim(n - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)


def zero_line(ax: Any) -> None:
    """A line where there is no effect."""
    ax.axvline(0, color=GREY, linewidth=0.8, zorder=0)


def legend_above(ax: Any, columns: int = 2) -> None:
    """A legend over the axes, where it hides nothing."""
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2}
    ax.legend(**place, ncols=columns, frameon=False, fontsize="small", columnspacing=1.2)
