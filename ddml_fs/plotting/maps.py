"""Maps of all features: size against spread of the effect, and spread against shift of the mean."""

from typing import Any, Self

import numpy as np
import pandas as pd

from ddml_fs.domains import SMALL, UNSTABLE
from ddml_fs.plotting.base import Display
from ddml_fs.plotting.labels import name_points
from ddml_fs.plotting.reading import (
    effect_label,
    known_effects,
    needs,
    selector_of,
    unit_of,
    units,
)
from ddml_fs.plotting.style import BLUE, GREY, ORANGE, VERMILLION, legend_above, new_axes, wrapped

MANY = 2000  # points from which they are drawn as one picture


def points(ax: Any, x: Any, y: Any, rows: Any, *, label: str, colour: str, marker: str) -> None:
    """One kind of points, with its number in the legend."""
    if rows.any():
        ax.scatter(
            x[rows],
            y[rows],
            s=26,
            color=colour,
            marker=marker,
            alpha=0.85,
            linewidth=0,
            label=f"{label} ({rows.sum()})",
            rasterized=len(x) > MANY,
            zorder=3,
        )


def limits(ax: Any, x: Any, y: Any) -> None:
    """Limits from 0, with room for the marks."""
    ax.set_xlim(-0.03 * max(x.max(), 1e-9), 1.08 * max(x.max(), 1e-9))
    ax.set_ylim(-0.03 * max(y.max(), 1e-9), 1.10 * max(y.max(), 1e-9))


def farthest(x: Any, y: Any) -> np.ndarray:
    """Numbers of the points, those far from the origin first."""
    return np.argsort(-np.hypot(x / max(x.max(), 1e-9), y / max(y.max(), 1e-9)), kind="stable")


class StabilityDisplay(Display):
    """Size of every effect against its standard deviation between domains.

    Parameters
    ----------
    table : DataFrame
        One row per feature: ``size`` and ``tau``, both of one standard deviation of the feature,
        ``instability`` and ``selected``.
    label : str
        What the effects are effects on.
    """

    def __init__(self, table: pd.DataFrame, label: str) -> None:
        self.table = table
        self.label = label

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Read effects and their spread from a fitted selector or audit, and draw them.

        Parameters
        ----------
        estimator : CausalFeatureSelector or ShiftAudit
            Fitted on at least two domains.
        ax : matplotlib Axes, optional

        Returns
        -------
        display : StabilityDisplay
        """
        selector = selector_of(estimator)
        if len(selector.domains_) < 2:
            raise ValueError("A stability map needs at least 2 domains, got 1.")
        effects = known_effects(selector.effects_)
        table = pd.DataFrame(
            {
                "size": effects["std_effect"].abs(),
                "tau": effects["tau"] * np.abs(units(effects)),
                "instability": effects["instability"],
                "selected": effects["selected"],
            }
        )
        return cls(table.dropna(subset=["tau", "instability"]), effect_label(estimator)).plot(ax)

    def draw(self, ax: Any) -> Any:
        """Draw on the axes."""
        ax = new_axes(ax, 4.4)
        x, y = self.table["size"].to_numpy(float), self.table["tau"].to_numpy(float)
        limits(ax, x, y)
        across = np.linspace(0, ax.get_xlim()[1], 200)
        # The spread from which instability = τ / √(τ² + θ² + s²) is called unstable.
        edge = np.sqrt((across**2 + SMALL**2) * UNSTABLE**2 / (1 - UNSTABLE**2))
        above = np.maximum(edge, ax.get_ylim()[1])
        ax.fill_between(across, edge, above, color=VERMILLION, alpha=0.10, linewidth=0, zorder=0)
        ax.plot(across, edge, color=VERMILLION, linewidth=0.9, linestyle="--", zorder=1)
        unstable = self.table["instability"].to_numpy() >= UNSTABLE
        selected = self.table["selected"].to_numpy(bool)
        # "Stable" would contradict an audit, whose test finds small shifts of large effects too.
        high = f"instability ≥ {UNSTABLE:g}"
        kept, rest = ~unstable & selected, ~unstable & ~selected
        points(ax, x, y, unstable, label=high, colour=VERMILLION, marker="^")
        points(ax, x, y, kept, label="below, selected", colour=BLUE, marker="o")
        points(ax, x, y, rest, label="below, not selected", colour=GREY, marker="s")
        ax.set_xlabel(wrapped(f"size of the {self.label}"))
        ax.set_ylabel("spread τ between domains, same unit")
        legend_above(ax, 2)
        name_points(ax, x, y, list(self.table.index), farthest(x, y))
        return ax


class ShiftDisplay(Display):
    """How much every feature's effect moves between domains, against how much its mean moves.

    Parameters
    ----------
    table : DataFrame
        One row per feature: ``mean_shift``, ``tau``, ``effect_moves`` and ``mean_moves``.
    label : str
        What the effects are effects on.
    """

    def __init__(self, table: pd.DataFrame, label: str) -> None:
        self.table = table
        self.label = label

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Read the shifts that a fitted audit found, and draw them.

        Parameters
        ----------
        estimator : ShiftAudit
        ax : matplotlib Axes, optional

        Returns
        -------
        display : ShiftDisplay
        """
        found = needs(estimator, "features_", "a fitted ShiftAudit")
        selector = selector_of(estimator)
        unit = np.abs(unit_of(selector.effects_, found.index, "sd"))
        columns = ["mean_shift", "tau", "effect_moves", "mean_moves"]
        table = found[columns].assign(tau=found["tau"] * unit).dropna()
        return cls(table, effect_label(estimator)).plot(ax)

    def draw(self, ax: Any) -> Any:
        """Draw on the axes."""
        ax = new_axes(ax, 4.4)
        x, y = self.table["mean_shift"].to_numpy(float), self.table["tau"].to_numpy(float)
        limits(ax, x, y)
        effect, mean = (self.table[c].to_numpy(bool) for c in ("effect_moves", "mean_moves"))
        kinds = (
            (effect & mean, "effect and mean move", VERMILLION, "D"),
            (effect & ~mean, "effect moves", VERMILLION, "^"),
            (~effect & mean, "mean moves", ORANGE, "s"),
            (~effect & ~mean, "neither", GREY, "o"),
        )
        for rows, label, colour, marker in kinds:
            points(ax, x, y, rows, label=label, colour=colour, marker=marker)
        ax.set_xlabel(wrapped("shift of the mean between domains, in standard deviations"))
        ax.set_ylabel(wrapped(f"spread τ of the {self.label}", 34))
        legend_above(ax, 2)
        order = farthest(x, y)
        moving = np.r_[order[effect[order]], order[~effect[order] & mean[order]]]
        name_points(ax, x, y, list(self.table.index), moving)
        return ax


def plot_stability(selector: Any, ax: Any = None) -> Any:
    """Plot the size of effects against their spread; see :class:`StabilityDisplay`.

    Parameters
    ----------
    selector : CausalFeatureSelector or ShiftAudit
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    return StabilityDisplay.from_estimator(selector, ax=ax).ax_


def plot_shift(audit: Any, ax: Any = None) -> Any:
    """Plot shifts of effects against shifts of means; see :class:`ShiftDisplay`.

    Parameters
    ----------
    audit : ShiftAudit
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    return ShiftDisplay.from_estimator(audit, ax=ax).ax_
