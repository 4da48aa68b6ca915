"""Plots of one effect: overlap, and the roles of the covariates."""

from typing import Any, Self

import numpy as np
import pandas as pd

from ddml_fs.plotting.base import Display
from ddml_fs.plotting.reading import needs
from ddml_fs.plotting.style import (
    BLUE,
    GREEN,
    GREY,
    VERMILLION,
    legend_above,
    name_rows,
    new_axes,
    row_height,
)
from ddml_fs.scores import CLIP
from ddml_fs.validation import check_integer

BINS = 40
ROLES = {"confounder": (VERMILLION, ""), "treatment": (BLUE, "////"), "outcome": (GREEN, "....")}


class OverlapDisplay(Display):
    """Whether there is treatment left to learn from, given the covariates.

    For a 0/1 treatment: propensities of the treated and of the untreated. For a continuous one:
    the treatment, and what the covariates leave of it.

    Parameters
    ----------
    table : DataFrame
        One row per row of the data: ``treatment``, ``predicted`` (the propensity) and ``left``,
        the residual.
    binary : bool
        Whether the treatment is 0/1.
    clip : float or None
        Propensities beyond ``clip`` and ``1 − clip`` are clipped; None where none are.
    """

    def __init__(self, table: pd.DataFrame, binary: bool, clip: float | None = None) -> None:
        self.table = table
        self.binary = binary
        self.clip = clip

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Read treatment and residuals of a fitted DDML, and draw them.

        Parameters
        ----------
        estimator : DDML
        ax : matplotlib Axes, optional

        Returns
        -------
        display : OverlapDisplay
        """
        left = needs(estimator, "residuals_", "a fitted DDML")["v"].to_numpy()
        predicted = estimator.nuisances_["m"].to_numpy()
        table = pd.DataFrame({"treatment": left + predicted, "predicted": predicted, "left": left})
        binary = "propensity_min" in estimator.diagnostics()
        clip = None
        if estimator.score_ == "interactive":
            clip = CLIP if estimator.clip is None else estimator.clip
        return cls(table, binary, clip).plot(ax)

    @property
    def unexplained(self) -> float:
        """Share of the treatment's variance that the covariates leave."""
        return float((self.table["left"] ** 2).mean() / self.table["treatment"].var(ddof=0))

    def draw(self, ax: Any) -> Any:
        """Draw on the axes."""
        ax = new_axes(ax, 3.4)
        if self.binary:
            treated = self.table["treatment"].to_numpy() > 0.5
            p = self.table["predicted"].to_numpy()
            parts = {"untreated": (p[~treated], GREY), "treated": (p[treated], BLUE)}
            bins = np.linspace(min(0.0, p.min()), max(1.0, p.max()), BINS + 1)
            ax.set_xlabel("propensity: chance of treatment given the covariates")
        else:
            parts = {
                "treatment, centred": (centred(self.table["treatment"]), GREY),
                f"left by the covariates ({self.unexplained:.0%} of the variance)": (
                    centred(self.table["left"]),
                    BLUE,
                ),
            }
            both = np.concatenate([values for values, _ in parts.values()])
            bins = np.linspace(np.quantile(both, 0.001), np.quantile(both, 0.999), BINS + 1)
            ax.set_xlabel("treatment, in its own unit")
        for (name, (values, colour)), line in zip(parts.items(), ("--", "-"), strict=True):
            filled = {"bins": bins, "color": colour, "alpha": 0.35, "density": True}
            ax.hist(values, label=f"{name} ({len(values)})" if self.binary else name, **filled)
            edge = {"histtype": "step", "linestyle": line, "linewidth": 1.3}
            ax.hist(values, bins=bins, color=colour, density=True, **edge)
        for at in () if self.clip is None else (self.clip, 1 - self.clip):
            ax.axvline(at, color=VERMILLION, linewidth=0.9, linestyle=":")
        ax.set_ylabel("density")
        legend_above(ax)
        return ax


def centred(values: Any) -> np.ndarray:
    """Values less their mean."""
    values = np.asarray(values, dtype=float)
    return values - values.mean()


class RolesDisplay(Display):
    """How much each covariate acts on the treatment and on the outcome.

    Parameters
    ----------
    table : DataFrame
        One row per covariate that acts: ``treatment`` and ``outcome``, the weights on either,
        from 0 to 1, and ``role``.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        self.table = table

    @classmethod
    def from_estimator(cls, estimator: Any, *, n_features: int = 20, ax: Any = None) -> Self:
        """Read the roles of the covariates from a fitted DDML, and draw them.

        Parameters
        ----------
        estimator : DDML
            With a nuisance that has a network: "stacked", "mlp" or "rf".
        n_features : int, default=20
            How many covariates are shown, those that act most first.
        ax : matplotlib Axes, optional

        Returns
        -------
        display : RolesDisplay
        """
        check_integer(n_features, "n_features", 1)
        roles = needs(estimator, "roles_", "a DDML fitted with a network ('stacked', 'mlp', 'rf')")
        table = pd.DataFrame(
            {
                "treatment": roles["confounder"] + roles["treatment"],
                "outcome": roles["confounder"] + roles["outcome"],
                "role": roles["role"],
            }
        )
        strength = table[["treatment", "outcome"]].sum(axis=1).to_numpy()
        order = np.argsort(-strength, kind="stable")[:n_features]
        return cls(table.iloc[order[strength[order] > 0]]).plot(ax)

    def draw(self, ax: Any) -> Any:
        """Draw on the axes."""
        ax = new_axes(ax, row_height(len(self.table)))
        if self.table.empty:
            middle = {"ha": "center", "va": "center", "transform": ax.transAxes}
            ax.text(0.5, 0.5, "No covariate was found to act.", **middle)
            ax.set_axis_off()
            return ax
        ax.axvline(0, color=GREY, linewidth=0.8)
        for role, (colour, hatch) in (ROLES | {"none": (GREY, "")}).items():
            rows = self.table["role"].to_numpy() == role
            if not rows.any():
                continue
            at = np.flatnonzero(rows)
            bars = {"color": colour, "hatch": hatch, "height": 0.7, "edgecolor": "white", "lw": 0}
            ax.barh(at, -self.table["treatment"].to_numpy()[rows], **bars)
            ax.barh(at, self.table["outcome"].to_numpy()[rows], label=TITLES[role], **bars)
        name_rows(ax, self.table.index)
        ax.set_xlim(-1.05, 1.05)
        ax.set_xticks([-1, -0.5, 0, 0.5, 1], ["1", "0.5", "0", "0.5", "1"])
        ax.set_xlabel("weight on the treatment (left) and on the outcome (right)")
        legend_above(ax, 4)
        return ax


TITLES = {
    "confounder": "confounder",
    "treatment": "treatment only",
    "outcome": "outcome only",
    "none": "neither",
}


def plot_overlap(effect: Any, ax: Any = None) -> Any:
    """Plot how much treatment is left to learn from; see :class:`OverlapDisplay`.

    Parameters
    ----------
    effect : DDML
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    return OverlapDisplay.from_estimator(effect, ax=ax).ax_


def plot_roles(effect: Any, ax: Any = None, n_features: int = 20) -> Any:
    """Plot what each covariate acts on; see :class:`RolesDisplay`.

    Parameters
    ----------
    effect : DDML
    ax : matplotlib Axes, optional
    n_features : int, default=20

    Returns
    -------
    ax : matplotlib Axes
    """
    return RolesDisplay.from_estimator(effect, n_features=n_features, ax=ax).ax_
