"""Names of points, placed so that none hides another."""

from typing import Any

import numpy as np

from ddml_fs.plotting.style import shorten_all

NEAR = 5.0  # points between a point and its name
SIDES = tuple((dx, dy) for dy in (0, 1, -1) for dx in (1, -1, 0) if dx or dy)
HORIZONTAL = {1: "left", -1: "right", 0: "center"}
VERTICAL = {1: "bottom", -1: "top", 0: "center"}


def name_points(ax: Any, x: Any, y: Any, names: Any, first: Any, most: int = 8) -> list:
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

    Returns
    -------
    texts : list of matplotlib Text
    """
    figure = ax.get_figure(root=True)
    figure.draw_without_rendering()  # the layout decides where points are
    reach = 3.0 * figure.dpi / 72
    at = ax.transData.transform(np.column_stack([x, y]))
    taken = [at[:, 0] - reach, at[:, 1] - reach, at[:, 0] + reach, at[:, 1] + reach]
    boxes = np.column_stack(taken)
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
        for dx, dy in SIDES:
            text.set(ha=HORIZONTAL[dx], va=VERTICAL[dy], position=(NEAR * dx, NEAR * dy))
            box = np.array(text.get_window_extent().extents)
            inside = (box[:2] >= frame.min).all() and (box[2:] <= frame.max).all()
            apart = (boxes[:, :2] >= box[2:]).any(1) | (boxes[:, 2:] <= box[:2]).any(1)
            if inside and apart.all():
                boxes = np.vstack([boxes, box])
                texts.append(text)
                break
        else:
            text.remove()
    return texts
