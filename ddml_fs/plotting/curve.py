"""Gain against the number of features, and what to expect in a new domain."""

from typing import Any, Self

import numpy as np
import pandas as pd

from ddml_fs.plotting.base import Display
from ddml_fs.plotting.reading import has_labels, needs, selector_of
from ddml_fs.plotting.style import BLUE, GREY, VERMILLION, legend_above, new_axes

MEASURES = {"auc": "AUC", "accuracy": "accuracy", "r2": "R²"}


def measure_of(estimator: Any) -> str:
    """What 1 − loss is in ``curve_``."""
    models = getattr(estimator, "downstream", None)
    first = models[0] if isinstance(models, list | tuple) else models
    labels = has_labels(estimator)
    if labels is None:
        return "1 − held-out loss"
    if not labels:
        return "held-out R²"
    graded = first is None or any(
        hasattr(first, name) for name in ("predict_proba", "decision_function")
    )
    return "held-out AUC" if graded else "held-out accuracy"


class CurveDisplay(Display):
    """How well models do by number of features, and the number that was chosen.

    Parameters
    ----------
    table : DataFrame
        ``n_features`` and ``gain``: the AUC of labels, R² of numbers.
    chosen : int
        The number of features that was chosen.
    measure : str
        What the gain is.
    """

    def __init__(self, table: pd.DataFrame, chosen: int, measure: str) -> None:
        self.table = table
        self.chosen = chosen
        self.measure = measure

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Read the curve of a fitted selector or audit, and draw it.

        Parameters
        ----------
        estimator : CausalFeatureSelector or ShiftAudit
            With ``n_features_to_select="auto"``.
        ax : matplotlib Axes, optional

        Returns
        -------
        display : CurveDisplay
        """
        selector = selector_of(estimator)
        if not hasattr(selector, "curve_"):
            raise ValueError("curve_ exists only with n_features_to_select='auto'.")
        curve = selector.curve_.dropna()
        if curve.empty:
            raise ValueError("curve_ has no losses: no domain or fold could be left out.")
        gain = 1 - curve["loss"].to_numpy()
        table = pd.DataFrame({"n_features": curve["n_features"].to_numpy(), "gain": gain})
        return cls(table, selector.n_features_auto_, measure_of(estimator)).plot(ax)

    def draw(self, ax: Any) -> Any:
        """Draw on the axes."""
        ax = new_axes(ax, 3.4)
        number, gain = self.table["n_features"].to_numpy(), self.table["gain"].to_numpy()
        ax.plot(number, gain, color=BLUE, marker="o", markersize=3.5, linewidth=1.4)
        ax.axvline(self.chosen, color=VERMILLION, linestyle="--", linewidth=1.2, zorder=0)
        height = np.interp(self.chosen, number, gain)
        name = f"chosen: {self.chosen} features, {self.measure} {height:.3f}"
        mark = {"s": 70, "marker": "D", "color": VERMILLION, "zorder": 4}
        ax.scatter([self.chosen], [height], label=name, **mark)
        if number.max() > 30:
            ax.set_xscale("log")
            ticks = [k for k in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)]
            ticks = [k for k in ticks if number.min() <= k <= number.max()]
            ax.set_xticks(ticks, [str(k) for k in ticks])
            ax.minorticks_off()
        else:
            ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlabel("number of features, best first")
        ax.set_ylabel(self.measure)
        legend_above(ax, 1)
        return ax


class ForecastDisplay(Display):
    """What to expect in a new domain with all, the selected and the stable features.

    Parameters
    ----------
    table : DataFrame
        ``forecast_`` of an audit: one row per set of features.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        self.table = table

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Read the forecast of a fitted audit, and draw it.

        Parameters
        ----------
        estimator : ShiftAudit
        ax : matplotlib Axes, optional

        Returns
        -------
        display : ForecastDisplay
        """
        return cls(needs(estimator, "forecast_", "a fitted ShiftAudit")).plot(ax)

    def draw(self, ax: Any) -> Any:
        """Draw on the axes."""
        ax = new_axes(ax, 2.4)
        shown = [name for name in MEASURES if name in self.table]
        shift = np.linspace(-0.15, 0.15, len(shown)) if len(shown) > 1 else [0.0]
        for name, by, colour, marker in zip(
            shown, shift, (BLUE, VERMILLION), ("o", "s"), strict=False
        ):
            at = np.arange(len(self.table)) + by
            ax.hlines(at, self.table[f"{name}_low"], self.table[f"{name}_high"], color=colour, lw=2)
            mark = {"color": colour, "marker": marker, "s": 36, "zorder": 3}
            ax.scatter(self.table[name], at, label=MEASURES[name], **mark)
        if "auc" in shown and self.table["auc_low"].min() < 0.55:
            ax.axvline(0.5, color=GREY, linewidth=0.8, linestyle=":", zorder=0)
        counts = self.table["n_features"].to_numpy(int)
        names = [f"{name} ({k})" for name, k in zip(self.table.index, counts, strict=True)]
        ax.set_yticks(range(len(names)), names)
        ax.set_ylim(len(names) - 0.5, -0.5)
        ax.tick_params(axis="y", length=0)
        ax.set_ylabel("features")
        ax.set_xlabel(f"expected {' and '.join(MEASURES[n] for n in shown)} in a new domain")
        legend_above(ax)
        return ax


def plot_curve(selector: Any, ax: Any = None) -> Any:
    """Plot the gain against the number of features; see :class:`CurveDisplay`.

    Parameters
    ----------
    selector : CausalFeatureSelector or ShiftAudit
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    return CurveDisplay.from_estimator(selector, ax=ax).ax_


def plot_forecast(audit: Any, ax: Any = None) -> Any:
    """Plot what to expect in a new domain; see :class:`ForecastDisplay`.

    Parameters
    ----------
    audit : ShiftAudit
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    return ForecastDisplay.from_estimator(audit, ax=ax).ax_
