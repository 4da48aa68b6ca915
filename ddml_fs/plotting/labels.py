"""Names of points, placed so that none hides another."""

from itertools import product
from typing import Any

import numpy as np

from ddml_fs.plotting.style import GREY, shorten_all

NEAR = 5.0  # points between a point and its name
SIDES = tuple((dx, dy) for dy in (0, 1, -1) for dx in (1, -1, 0) if dx or dy)
HORIZONTAL = {1: "left", -1: "right", 0: "center"}
VERTICAL = {1: "bottom", -1: "top", 0: "center"}
LINE = {"arrowstyle": "-", "color": GREY, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3}


def name_points(
    ax: Any,
    x: Any,
    y: Any,
    names: Any,
    first: Any,
    most: int = 8,
    *,
    rings: int = 1,
    avoid: Any = (),
) -> list:
    """Write names beside points; a name that fits on no side of its point is left out.

    Parameters
    ----------
    ax : matplotlib Axes
        With its final limits.
    x, y : arrays of shape (n,)
    names : sequence of n str
    first : int array
        Numbers of the points to be named, the most important first.
    most : int, default=8
        Names at most.
    rings : int, default=1
        Number of distances that are tried. A name that is away from its point is tied to it by a
        line.
    avoid : sequence of matplotlib Text
        Other texts that must not be hidden.

    Returns
    -------
    texts : list of matplotlib Text
    """
    figure = ax.get_figure(root=True)
    figure.draw_without_rendering()  # the layout decides where points are
    reach = 3.0 * figure.dpi / 72
    at = ax.transData.transform(np.column_stack([x, y]))
    taken = [at[:, 0] - reach, at[:, 1] - reach, at[:, 0] + reach, at[:, 1] + reach]
    boxes = np.vstack([np.column_stack(taken), *(t.get_window_extent().extents for t in avoid)])
    frame = ax.get_window_extent()
    shown = shorten_all(names)
    texts: list = []
    for i in first:
        if len(texts) == most:
            break
        text = ax.annotate(
            shown[i],
            (x[i], y[i]),
            xytext=(0, 0),
            textcoords="offset points",
            fontsize="small",
        )
        text.set_in_layout(False)
        for ring, (dx, dy) in product(range(rings), SIDES):
            away = NEAR * (1 + 2 * ring)
            text.set(ha=HORIZONTAL[dx], va=VERTICAL[dy], position=(away * dx, away * dy))
            box = np.array(text.get_window_extent().extents)
            inside = (box[:2] >= frame.min).all() and (box[2:] <= frame.max).all()
            apart = (boxes[:, :2] >= box[2:]).any(1) | (boxes[:, 2:] <= box[:2]).any(1)
            if inside and apart.all():
                boxes = np.vstack([boxes, box])
                texts.append(text)
                if ring:
                    tie = {"xytext": text.get_position(), "textcoords": "offset points"}
                    ax.annotate("", (x[i], y[i]), arrowprops=LINE, **tie).set_in_layout(False)
                break
        else:
            text.remove()
    return texts
