"""Plots of what may be wrong with one effect, and of how it varies: contours, groups, placebos."""

from typing import Any, Self

import numpy as np
import pandas as pd

from ddml_fs.inference import strength
from ddml_fs.plotting.base import Display
from ddml_fs.plotting.labels import name_points
from ddml_fs.plotting.reading import needs
from ddml_fs.plotting.style import BLUE, GREY, VERMILLION, legend_above, name_rows, new_axes
from ddml_fs.sensitivity import STRONGEST
from ddml_fs.validation import check_number

STEPS = 200  # of the grid of a contour plot
ROOM = 1.5  # the contours reach so far beyond the robustness value
RINGS = 8  # distances that are tried for the names of covariates, which lie close to each other


def reach_of(robustness, strengths):
    """How far an axis of strengths reaches: beyond the robustness value and all benchmarks."""
    reach = max(ROOM * robustness, 1.1 * np.max(strengths, initial=0.0), 0.01)
    return min(reach, STRONGEST)


class SensitivityDisplay(Display):
    """The effect that remains if a confounder was not measured, by its strength.

    Parameters
    ----------
    cf : array of shape (n,)
        Strengths, for both axes.
    bound : array of shape (n, n)
        The bound of the effect on the side of zero; rows are cf_y and columns cf_d.
    effect, robustness : float
    benchmarks : DataFrame or None
        ``cf_y`` and ``cf_d`` of measured covariates, from ``DDML.benchmark``.
    """

    def __init__(self, cf, bound, effect, robustness, benchmarks=None) -> None:
        self.cf = cf
        self.bound = bound
        self.effect = effect
        self.robustness = robustness
        self.benchmarks = benchmarks

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, benchmarks: pd.DataFrame | None = None, ax: Any = None
    ) -> Self:
        """Compute the bounds of a fitted DDML, and draw them.

        Parameters
        ----------
        estimator : DDML
            With the partially linear or the interactive score.
        benchmarks : DataFrame, optional
            From ``DDML.benchmark``; each covariate is drawn as a point.
        ax : matplotlib Axes, optional

        Returns
        -------
        display : SensitivityDisplay
        """
        effect = needs(estimator, "effect_", "a fitted DDML")
        S, robustness = estimator.sensitivity_elements().S, estimator.sensitivity()["robustness"]
        given = [] if benchmarks is None else benchmarks[["cf_y", "cf_d"]].to_numpy()
        cf = np.linspace(0, reach_of(robustness, given), STEPS)
        bias = S * strength(cf[:, None], cf[None])
        return cls(cf, effect - np.sign(effect) * bias, effect, robustness, benchmarks).plot(ax)

    def draw(self, ax: Any) -> Any:
        """Draw on the axes."""
        ax = new_axes(ax, 4.2)
        r, shares = self.robustness, np.sort(self.effect * np.array([0.2, 0.4, 0.6, 0.8]))
        x, y = points = np.empty((2, 0))
        if self.benchmarks is not None:
            x, y = points = self.benchmarks[["cf_d", "cf_y"]].to_numpy().T
        # Covariates often explain much of the outcome and little of the treatment, or vice versa.
        wide, high = (self.cf <= reach_of(r, strengths) + 1e-12 for strengths in points)
        grid = self.cf[wide], self.cf[high], self.bound[high][:, wide]
        lines = ax.contour(*grid, levels=shares, colors=GREY, linewidths=0.8)
        numbers = ax.clabel(lines, fontsize="small", fmt="%.3g")
        ax.plot([], [], color=GREY, linewidth=0.8, label="effect that remains")
        if self.bound.min() < 0 < self.bound.max():
            ax.contour(*grid, levels=[0], colors=VERMILLION, linewidths=1.8)
            ax.plot([], [], color=VERMILLION, linewidth=1.8, label="no effect remains")
        ax.plot([r], [r], "D", color=VERMILLION, label=f"robustness value {r:.1%}")
        ax.set_xlabel("share of the treatment's variation that it explains")
        ax.set_ylabel("share of the outcome's variation\nthat it explains")
        legend_above(ax)
        if len(x):
            ax.plot(x, y, "o", color=BLUE)
            names = [*map(str, self.benchmarks.index), "robustness value"]
            order = np.argsort(-(x + y))  # the strongest first
            places = {"rings": RINGS, "avoid": numbers}
            name_points(ax, np.r_[x, r], np.r_[y, r], names, order, len(x), **places)
        return ax


class GroupsDisplay(Display):
    """Average effects in groups of rows.

    Parameters
    ----------
    table : DataFrame
        From ``DDML.by``.
    effect : float
        The average over all rows.
    """

    def __init__(self, table: pd.DataFrame, effect: float) -> None:
        self.table = table
        self.effect = effect

    @classmethod
    def from_estimator(
        cls, estimator: Any, column: Any, *, n_bins: int = 4, level: float = 0.95, ax: Any = None
    ) -> Self:
        """Compute effects by group of a fitted DDML, and draw them.

        Parameters
        ----------
        estimator : DDML
            With the interactive score.
        column : array or Series of shape (n_samples,)
            As in ``DDML.by``.
        n_bins : int, default=4
        level : float, default=0.95
        ax : matplotlib Axes, optional

        Returns
        -------
        display : GroupsDisplay
        """
        needs(estimator, "effect_", "a fitted DDML")
        return cls(estimator.by(column, n_bins=n_bins, level=level), estimator.effect_).plot(ax)

    def draw(self, ax: Any) -> Any:
        """Draw on the axes: a line along ordered bins, one row per group otherwise."""
        table = self.table
        ordered = isinstance(table.index, pd.CategoricalIndex | pd.IntervalIndex) and all(
            isinstance(name, pd.Interval) for name in table.index
        )
        ax = new_axes(ax, 3.4 if ordered else 1.2 + 0.35 * len(table))
        title = str(table.index.name)
        if ordered:
            x = [(name.left + name.right) / 2 for name in table.index]
            ax.fill_between(x, table["joint_low"], table["joint_high"], color=BLUE, alpha=0.12)
            ax.fill_between(x, table["low"], table["high"], color=BLUE, alpha=0.25)
            ax.plot(x, table["effect"], "o-", color=BLUE, label="effect, with both intervals")
            ax.axhline(self.effect, color=GREY, linestyle="--", label="average effect")
            ax.set_xlabel(title)
            ax.set_ylabel("effect")
        else:
            y = np.arange(len(table))
            reach = np.abs(table[["low", "high"]].to_numpy().T - table["effect"].to_numpy())
            ax.errorbar(table["effect"], y, xerr=reach, fmt="o", color=BLUE, label="effect")
            ax.axvline(self.effect, color=GREY, linestyle="--", label="average effect")
            name_rows(ax, [str(name) for name in table.index])
            ax.set_xlabel(f"effect, by {title}")
        legend_above(ax)
        return ax


class PlaceboDisplay(Display):
    """Effects found in placebo data, in standard errors, beside the effect itself.

    Parameters
    ----------
    z : dict
        Kinds of placebo, and their z-values.
    effect_z : float
        Of the effect itself.
    """

    def __init__(self, z: dict, effect_z: float) -> None:
        self.z = z
        self.effect_z = effect_z

    @classmethod
    def from_estimator(cls, estimator: Any, placebo: pd.DataFrame, *, ax: Any = None) -> Self:
        """Draw the result of ``DDML.placebo``.

        Parameters
        ----------
        estimator : DDML
        placebo : DataFrame
            From ``estimator.placebo(...)``.
        ax : matplotlib Axes, optional

        Returns
        -------
        display : PlaceboDisplay
        """
        effect = needs(estimator, "effect_", "a fitted DDML")
        check_number(estimator.stderr_, "stderr_", 1e-300, np.inf)
        return cls(placebo["z"].to_dict(), effect / estimator.stderr_).plot(ax)

    def draw(self, ax: Any) -> Any:
        """Draw on the axes: one row per kind, one mark per placebo data set."""
        ax = new_axes(ax, 1.4 + 0.5 * len(self.z))
        ax.axvspan(-1.96, 1.96, color=GREY, alpha=0.15, label="95 % of them without a bias")
        for row, z in enumerate(self.z.values()):
            ax.plot(z, np.full(len(z), row), "|", color=BLUE, markersize=14)
        ax.axvline(self.effect_z, color=VERMILLION, linestyle="--", label="the effect itself")
        name_rows(ax, [f"fake {kind}" for kind in self.z])
        ax.set_xlabel("estimate in standard errors")
        legend_above(ax)
        return ax


def plot_sensitivity(estimator: Any, *, benchmarks: Any = None, ax: Any = None) -> Any:
    """Contours of the effect under hidden confounding; see :class:`SensitivityDisplay`."""
    return SensitivityDisplay.from_estimator(estimator, benchmarks=benchmarks, ax=ax).ax_


def plot_groups(estimator: Any, column: Any, *, n_bins: int = 4, ax: Any = None) -> Any:
    """Effects by group, or along a number; see :class:`GroupsDisplay`."""
    return GroupsDisplay.from_estimator(estimator, column, n_bins=n_bins, ax=ax).ax_


def plot_placebo(estimator: Any, placebo: pd.DataFrame, *, ax: Any = None) -> Any:
    """Placebo estimates; see :class:`PlaceboDisplay`."""
    return PlaceboDisplay.from_estimator(estimator, placebo, ax=ax).ax_
