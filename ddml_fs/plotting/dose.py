"""The effect of a number as a curve."""

from typing import Any, Self

import numpy as np
import pandas as pd
from scipy import stats
from scipy.special import expit

from ddml_fs.domains import UNSTABLE
from ddml_fs.encoding import read_target
from ddml_fs.engine.additive import ridge_index
from ddml_fs.features import Encoding
from ddml_fs.hinges import bent_columns
from ddml_fs.plotting.base import Display
from ddml_fs.plotting.reading import check_features, selector_of
from ddml_fs.plotting.style import BLUE, GREY, VERMILLION, legend_above, new_axes, shorten, wrapped
from ddml_fs.rows import read_rows
from ddml_fs.score_tests import Robust
from ddml_fs.tables import column_names, read_new_table
from ddml_fs.weights import varies

PENALTY = 1e-3  # on the other features, as a share of their variance
LEVEL = 0.95
STEPS = 101


class DoseDisplay(Display):
    """The effect of a number on the outcome, as a curve with a 95 % band.

    The curve has hinges at the quartiles of the feature. It is estimated together with the other
    features, without those whose effects differ between domains, and with an intercept for each
    domain.

    Parameters
    ----------
    table : DataFrame
        ``value`` of the feature, ``effect`` against its median, ``low`` and ``high``, and ``line``,
        the straight effect that the selector found (missing where it is not one of one unit).
    marks : array
        Deciles of the feature.
    name : str
        Of the feature.
    label : str
        What the effect is an effect on.
    """

    def __init__(self, table: pd.DataFrame, marks: np.ndarray, name: str, label: str) -> None:
        self.table = table
        self.marks = marks
        self.name = name
        self.label = label

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        feature: str,
        X: Any,
        y: Any,
        sample_domain: Any = None,
        ax: Any = None,
        *,
        sample_weight: Any = None,
        cluster: Any = None,
    ) -> Self:
        """Estimate the curve from the rows that the selector was fitted on, and draw it.

        Parameters
        ----------
        estimator : CausalFeatureSelector or ShiftAudit
        feature : str
            A number with more than two values.
        X, y, sample_domain, sample_weight, cluster
            As in ``fit``; with weights or clusters the band is robust.
        ax : matplotlib Axes, optional

        Returns
        -------
        display : DoseDisplay
        """
        selector = selector_of(estimator)
        effects = selector.effects_
        check_features(feature, effects.index)
        rows = read_rows(X, sample_domain, sample_weight, cluster)
        y, table = rows.of(y), read_new_table(estimator, rows.of(X))
        if estimator is not selector:  # an audit's selector has not seen the leaks
            frame = pd.DataFrame(table)
            frame.columns = column_names(estimator)
            table = read_new_table(selector, frame[column_names(selector)])
        encoding = Encoding.of(table, column_names(selector), selector.groups)
        features = encoding.features(table, rows.weight)
        values, basis, rest = columns_of(features, encoding, feature, effects)
        target = read_target(np.asarray(y), selector.task)
        outcome = target.outcomes[0]
        if "class" in effects:
            shown = effects["class"].to_numpy()[encoding.names.index(feature)]
            outcome = target.outcomes[int(np.flatnonzero(target.classes == shown)[0])]
        label = target.classes is not None and selector.scale != "mean"
        curve = fit_curve(values, basis, rest, rows, outcome, label)
        number = encoding.names.index(feature)
        slope = effects["effect"].to_numpy()[number]
        if (encoding.own == number).sum() > 1:
            slope = np.nan  # with an indicator of missing values, the effect is not per unit
        curve["line"] = slope * (curve["value"] - np.median(values))
        on = "log-odds" if label else "mean"
        marks = np.quantile(values, np.linspace(0.1, 0.9, 9))
        reader = encoding.readers[int(np.argmax(encoding.feature == number))]
        name = f"{feature}, in days since 1970" if reader.kind == "date" else feature
        return cls(curve, marks, name, f"effect on the {on}, against the median").plot(ax)

    def draw(self, ax: Any) -> Any:
        """Draw on the axes."""
        ax = new_axes(ax, 3.6)
        x = self.table["value"]
        ax.axhline(0, color=GREY, linewidth=0.8, zorder=0)
        ax.fill_between(x, self.table["low"], self.table["high"], color=BLUE, alpha=0.2, lw=0)
        ax.plot(x, self.table["effect"], color=BLUE, linewidth=1.8, label="curve, with 95 % band")
        if self.table["line"].notna().all():
            line = {"color": VERMILLION, "linewidth": 1.2, "linestyle": "--"}
            ax.plot(x, self.table["line"], label="straight effect", **line)
        # Where the rows are.
        place = {"transform": ax.get_xaxis_transform(), "color": GREY, "linewidth": 1}
        ax.vlines(self.marks, 0, 0.03, label="deciles", **place)
        ax.set_xlabel(shorten(self.name, 48))
        ax.set_ylabel(wrapped(self.label, 30))
        legend_above(ax, 3)
        return ax


def columns_of(features, encoding, feature, effects):
    """The values of a number, the columns that make its curve, and those of the other features.

    Returns
    -------
    values : array of shape (N,)
    basis : function
        From values to the columns of the curve.
    rest : array of shape (N, Q)
        Standardised; a missing-value indicator of the feature is one of them.
    """
    number = encoding.names.index(feature)
    own = features.own == features.group[number]
    hinges, bends = bent_columns(features)
    numbers = np.flatnonzero(own & ~features.binary)
    kinds = {r.kind for r, f in zip(encoding.readers, encoding.feature, strict=True) if f == number}
    if len(numbers) != 1 or "category" in kinds or features.group[number] < 0:
        raise ValueError(
            f"feature must be a number with more than two values, got {feature!r}, which is none."
        )
    at = int(numbers[0])
    values = features.X[:, np.flatnonzero(features.feature == number)[0]]
    z = features.Z[:, at].astype(float)
    step = features.step[at]
    knots = [float(z[h > 0].min() - h[h > 0].min()) * step for h in hinges[:, bends == at].T]

    def basis(x):
        z = x - values.mean()
        return np.column_stack([z, *(np.maximum(z - knot, 0) for knot in knots)])

    unstable = effects["instability"].to_numpy() >= UNSTABLE
    place = features.first[features.own]
    near = features.near[features.own] == features.near[features.group[number]]
    used = (~unstable[place] & ~near) | (own & features.binary)
    rest = features.Z[:, used] / features.unit[used]
    return values, basis, (rest - rest.mean(0)).astype(float)


def fit_curve(values, basis, rest, rows, y, label):
    """Effects against the median over the middle 98 % of the values, with pointwise intervals."""
    curve, w = basis(values), rows.weight
    intercepts = (rows.domain[:, None] == np.unique(rows.domain)).astype(float)
    scale = np.maximum(curve.std(0), 1e-12)
    A = np.column_stack([curve / scale, rest, intercepts])
    penalty = np.zeros(A.shape[1])
    penalty[curve.shape[1] : curve.shape[1] + rest.shape[1]] = PENALTY
    beta = ridge_index(A, y, penalty, label, weight=w)
    index = A @ beta
    if label:
        p = expit(index)
        weight, noise, left = w * p * (1 - p), 1.0, y - p
    else:
        weight, left = w, y - index
        noise = (w * left**2).sum() / max(len(y) - A.shape[1], 1)
    inverse = np.linalg.inv((A * weight[:, None]).T @ A + np.diag((penalty + 1e-9) * len(y)))
    k, covariance, df = curve.shape[1], noise * inverse, np.inf
    if rows.cluster is not None or varies(w):
        robust = Robust(rows.cluster, intercepts.shape[1])
        covariance = inverse @ robust.covariance(A * (w * left)[:, None]) @ inverse
        df = np.inf if rows.cluster is None else rows.cluster.max() - rows.domain.max()
    covariance = covariance[:k, :k]
    grid = np.linspace(np.quantile(values, 0.01), np.quantile(values, 0.99), STEPS)
    difference = (basis(grid) - basis(np.array([np.median(values)]))) / scale
    effect = difference @ beta[:k]
    variance = np.einsum("ij,jk,ik->i", difference, covariance, difference)
    half = stats.t.ppf(0.5 + LEVEL / 2, df) * np.sqrt(np.maximum(variance, 0))
    return pd.DataFrame(
        {"value": grid, "effect": effect, "low": effect - half, "high": effect + half}
    )


def plot_dose(
    selector: Any,
    feature: str,
    X: Any,
    y: Any,
    sample_domain: Any = None,
    ax: Any = None,
    *,
    sample_weight: Any = None,
    cluster: Any = None,
) -> Any:
    """Plot the effect of a number as a curve; see :class:`DoseDisplay`.

    Parameters
    ----------
    selector : CausalFeatureSelector or ShiftAudit
    feature : str
    X, y, sample_domain, sample_weight, cluster
        As in ``fit``.
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    known: dict = {"sample_weight": sample_weight, "cluster": cluster}
    return DoseDisplay.from_estimator(selector, feature, X, y, sample_domain, ax, **known).ax_
