"""Effects by domain: one row per feature, one mark per domain."""

from typing import Any, Self

import numpy as np
import pandas as pd

from ddml_fs.plotting.base import Display
from ddml_fs.plotting.reading import (
    check_features,
    effect_label,
    known_effects,
    selector_of,
    unit_of,
)
from ddml_fs.plotting.style import (
    COLOURS,
    GREY,
    MARKERS,
    PAPER,
    legend_above,
    name_rows,
    new_axes,
    row_height,
    shorten,
    wrapped,
    zero_line,
)

MOST_ROWS = 10
WIDEST = 2.5  # times the 90 % quantile of effects and ends of intervals, that axes show at most
SPREAD = 0.36  # of a row's height to either side, over which the marks of the domains are laid


def long_effects(effects: pd.DataFrame, domains: Any) -> pd.DataFrame:
    """Columns ``effect[d]`` of ``effects_`` as a long table, without intervals."""
    parts = [
        pd.DataFrame(
            {"feature": effects.index, "domain": d, "effect": effects[f"effect[{d}]"].to_numpy()}
        )
        for d in domains
    ]
    return pd.concat(parts, ignore_index=True).assign(low=np.nan, high=np.nan)


class DomainEffectsDisplay(Display):
    """Effects in every domain, and their mean.

    Parameters
    ----------
    table : DataFrame
        One row per feature and domain: ``feature``, ``domain``, ``effect``, ``low`` and ``high``.
    mean : Series
        Mean effect, one per feature, in the order of the rows of the plot.
    label : str
        What the effects are effects on.
    """

    def __init__(self, table: pd.DataFrame, mean: pd.Series, label: str) -> None:
        self.table = table
        self.mean = mean
        self.label = label

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, features: Any = None, per: str = "sd", ax: Any = None
    ) -> Self:
        """Read the effects by domain of a fitted selector or audit, and draw them.

        Parameters
        ----------
        estimator : CausalFeatureSelector or ShiftAudit
        features : list of str, optional
            Which features are shown. Unless given: the ten best of a selector; of an audit ten,
            those whose effect moves first.
        per : {"sd", "unit"}, default="sd"
            Effects of one standard deviation of a feature, which can be compared, or of one unit.
        ax : matplotlib Axes, optional

        Returns
        -------
        display : DomainEffectsDisplay
        """
        selector = selector_of(estimator)
        effects = selector.effects_
        domains = list(selector.domains_)
        if len(domains) < 2:
            raise ValueError("Effects by domain need at least 2 domains, got 1.")
        if hasattr(estimator, "features_"):
            found = estimator.features_.dropna(subset=["effect"])
            moves = found["effect_moves"].to_numpy(bool)
            order = list(found.index[moves]) + list(found.index[~moves])
            mean = found["effect"]
        else:
            found = known_effects(effects).sort_values("rank", kind="stable")
            order, mean = list(found.index), found["effect"]
        rows = order[:MOST_ROWS] if features is None else check_features(features, order)
        table = getattr(estimator, "domain_effects_", None)
        if table is None:
            table = long_effects(effects, domains)
        table = table[table["feature"].isin(rows)].reset_index(drop=True)
        columns = ["effect", "low", "high"]
        table[columns] = table[columns].mul(unit_of(effects, table["feature"], per), axis=0)
        mean = mean[~mean.index.duplicated()].reindex(rows) * unit_of(effects, rows, per)
        return cls(table, mean, effect_label(estimator, per)).plot(ax)

    def draw(self, ax: Any) -> Any:
        """Draw on the axes."""
        domains = list(dict.fromkeys(self.table["domain"]))
        place = {name: i for i, name in enumerate(self.mean.index)}
        few = len(domains) <= len(COLOURS)  # beyond that, colours would not tell domains apart
        ax = new_axes(ax, row_height(len(place), 0.26 + 0.04 * min(len(domains), 8)))
        zero_line(ax)
        for line in np.arange(1, len(place)) - 0.5:
            ax.axhline(line, color=GREY, linewidth=0.4, alpha=0.5, zorder=0)
        shift = np.linspace(-SPREAD, SPREAD, len(domains))
        low, high = show_most(ax, self.table, self.mean)
        for i, domain in enumerate(domains):
            part = self.table[self.table["domain"] == domain]
            at = part["feature"].map(place).to_numpy(float) + shift[i]
            colour, marker = (COLOURS[i], MARKERS[i]) if few else (GREY, "o")
            named = shorten(domain, 16) if few else f"{len(domains)} domains" if i == 0 else None
            ax.hlines(at, part["low"], part["high"], color=colour, lw=1.1, alpha=0.8)
            ax.scatter(part["effect"], at, s=16, color=colour, marker=marker, label=named, zorder=3)
            for end, arrow, outside in (
                (low, "<", part["effect"] < low),
                (high, ">", part["effect"] > high),
            ):
                edge = {"marker": arrow, "color": colour, "s": 30, "zorder": 3}
                ax.scatter([end] * outside.sum(), at[outside], **edge)
        mean = {"s": 46, "marker": "D", "color": PAPER, "edgecolor": ax.xaxis.label.get_color()}
        ax.scatter(self.mean, range(len(place)), label="mean", linewidth=1.4, zorder=4, **mean)
        name_rows(ax, self.mean.index)
        ax.set_xlabel(wrapped(self.label, 32))
        legend_above(ax, 4)
        return ax


def show_most(ax: Any, table: pd.DataFrame, mean: pd.Series) -> tuple[float, float]:
    """Let a few wide intervals run out of the axes, where they would squeeze all others.

    Returns the ends of what is shown, where arrows stand for effects that lie beyond.
    """
    ends = table[["low", "effect", "high"]].to_numpy(float).ravel()
    ends = np.concatenate([ends[np.isfinite(ends)], mean.dropna(), [0.0]])
    near = WIDEST * np.quantile(np.abs(ends), 0.9)
    low, high = max(ends.min(), -near), min(ends.max(), near)
    low, high = min(low, mean.min()), max(high, mean.max())
    room = 0.05 * (high - low) or 1.0
    ax.set_xlim(low - room, high + room)
    return float(low), float(high)


def plot_effects_by_domain(
    estimator: Any, features: Any = None, ax: Any = None, per: str = "sd"
) -> Any:
    """Plot effects in every domain; see :class:`DomainEffectsDisplay`.

    Parameters
    ----------
    estimator : CausalFeatureSelector or ShiftAudit
    features : list of str, optional
    ax : matplotlib Axes, optional
    per : {"sd", "unit"}, default="sd"

    Returns
    -------
    ax : matplotlib Axes
    """
    return DomainEffectsDisplay.from_estimator(estimator, features=features, per=per, ax=ax).ax_
