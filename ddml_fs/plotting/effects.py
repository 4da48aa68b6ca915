"""Effects with intervals: a forest plot of the best features."""

from typing import Any, Self

import numpy as np
import pandas as pd

from ddml_fs.plotting.base import Display
from ddml_fs.plotting.reading import effect_label, known_effects, selector_of, units
from ddml_fs.plotting.style import (
    BLUE,
    GREY,
    PAPER,
    legend_above,
    name_rows,
    new_axes,
    row_height,
    wrapped,
    zero_line,
)
from ddml_fs.validation import check_integer

COLUMNS = ["effect", "low", "high", "joint_low", "joint_high"]


class EffectsDisplay(Display):
    """Effects of the best features with pointwise and joint 95 % intervals.

    Parameters
    ----------
    table : DataFrame
        One row per feature whose effect is known, best first: ``effect``, ``low`` and
        ``high`` of the pointwise interval, ``joint_low`` and ``joint_high`` (NaN if the fit has
        no joint intervals), and ``selected``.
    label : str
        What the effects are effects on.

    Examples
    --------
    >>> from ddml_fs import CausalFeatureSelector
    >>> from ddml_fs.datasets import make_domain_data
    >>> from ddml_fs.plotting import EffectsDisplay
    >>> data = make_domain_data(n_samples=300, n_causal=5, n_spurious=5, n_noise=10, random_state=0)
    >>> selector = CausalFeatureSelector(5, random_state=0)
    >>> _ = selector.fit(data.X, data.y, sample_domain=data.sample_domain)
    >>> display = EffectsDisplay.from_estimator(selector, n_features=10)
    >>> display.table["selected"].sum(), len(display.ax_.get_yticklabels())
    (np.int64(5), 10)
    """

    def __init__(self, table: pd.DataFrame, label: str) -> None:
        self.table = table
        self.label = label

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, n_features: int = 20, per: str = "sd", ax: Any = None
    ) -> Self:
        """Read the effects of a fitted selector or audit, and draw them.

        Parameters
        ----------
        estimator : CausalFeatureSelector or ShiftAudit
        n_features : int, default=20
            How many features are shown, best first.
        per : {"sd", "unit"}, default="sd"
            Effects of one standard deviation of a feature, which can be compared, or of one unit.
        ax : matplotlib Axes, optional

        Returns
        -------
        display : EffectsDisplay
        """
        selector = selector_of(estimator)
        check_integer(n_features, "n_features", 1)
        label = effect_label(estimator, per)
        effects = selector.effects_
        for joint, name in ((False, ""), (True, "joint_")):
            shown = not joint or selector.has_joint_intervals
            interval = selector.conf_int(joint=joint).to_numpy() if shown else np.nan
            effects[[f"{name}low", f"{name}high"]] = interval
        effects = known_effects(effects).sort_values("rank", kind="stable").head(n_features)
        unit = units(effects) if per == "sd" else np.ones(len(effects))
        table = effects[COLUMNS].mul(unit, axis=0).assign(selected=effects["selected"])
        return cls(table, label).plot(ax)

    def draw(self, ax: Any) -> Any:
        """Draw on the axes."""
        at, ax = np.arange(len(self.table)), new_axes(ax, row_height(len(self.table)))
        zero_line(ax)
        # Infinite ends of intervals become arrows beyond all others.
        edge = 1.15 * self.table[COLUMNS].abs().replace(np.inf, np.nan).max(axis=None)
        table = self.table.replace({np.inf: edge, -np.inf: -edge})
        for end, arrow in (("low", "<"), ("high", ">")):
            rows = np.isinf(self.table[end].to_numpy())
            ax.scatter(table[end][rows], at[rows], marker=arrow, color=BLUE, s=32)
        if table["joint_low"].notna().any():
            ends = table["joint_low"], table["joint_high"]
            ax.hlines(at, *ends, color=GREY, lw=1, label="joint 95 %")
        ax.hlines(at, table["low"], table["high"], color=BLUE, lw=2.4, label="95 % interval")
        selected = table["selected"].to_numpy(bool)
        for rows, fill, name in ((selected, BLUE, "selected"), (~selected, PAPER, "not selected")):
            if rows.any():
                marks = {"color": fill, "edgecolor": BLUE, "s": 32, "zorder": 3}
                ax.scatter(table["effect"][rows], at[rows], label=name, **marks)
        name_rows(ax, table.index)
        ax.set_xlabel(wrapped(self.label, 32))
        legend_above(ax)
        return ax


def plot_effects(selector: Any, ax: Any = None, n_features: int = 20, per: str = "sd") -> Any:
    """Plot the effects of the best features with intervals; see :class:`EffectsDisplay`.

    Parameters
    ----------
    selector : CausalFeatureSelector or ShiftAudit
    ax : matplotlib Axes, optional
    n_features : int, default=20
    per : {"sd", "unit"}, default="sd"

    Returns
    -------
    ax : matplotlib Axes
    """
    return EffectsDisplay.from_estimator(selector, n_features=n_features, per=per, ax=ax).ax_
