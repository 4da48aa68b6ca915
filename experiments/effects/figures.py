"""The paper's figures, from our own runs: each is one command, written as SVG and PNG."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import KFold, cross_val_predict, train_test_split
from sklearn.preprocessing import StandardScaler

from ddml_fs import DDML
from ddml_fs.scores import PartiallyLinear
from experiments.effects.sensitivity import SETTINGS
from experiments.figures import save

ROLES = ("$Z_t$", "$Z_y$", "$Z_c$")
COLOURS = {"DML": "#7f8c8d", "C-DML": "#2471a3", "DDML": "#c0392b"}


def probes(case, seed=0):
    """How well a line through one role's latents predicts T and Y* = Y − θ(T − m).

    The encoder is trained on two thirds of the rows, and probed on the last third.

    Returns
    -------
    table : array of shape (3, 2)
        For Zt, Zy and Zc: of T the area under the curve, or the rank correlation of a continuous
        treatment; of Y* the R². All by five-fold predictions.
    """
    options = {"score": "partially_linear", "random_state": seed}
    model = DDML("mlp", **options).fit(case.X, case.y, treatment=case.treatment)
    rest = case.y - model.effect_ * model.residuals_["v"].to_numpy()
    binary = len(np.unique(case.treatment)) == 2
    strata = case.treatment if binary else None
    fit, left = train_test_split(
        np.arange(len(rest)), test_size=1 / 3, random_state=seed, stratify=strata
    )
    encoder = DDML("mlp", **options).fit(case.X[fit], case.y[fit], treatment=case.treatment[fit])
    latents, T, rest = encoder.represent(case.X[left]), case.treatment[left], rest[left]
    table = np.zeros((3, 2))
    for i, role in enumerate(("Zt", "Zy", "Zc")):
        Z = StandardScaler().fit_transform(latents[role])
        if binary:
            probe = LogisticRegression(max_iter=1000)
            odds = cross_val_predict(probe, Z, T, method="decision_function")
            table[i, 0] = roc_auc_score(T, odds)
        else:
            line = cross_val_predict(LinearRegression(), Z, T)
            table[i, 0] = max(0.0, spearmanr(line, T).statistic)
        table[i, 1] = max(0.0, r2_score(rest, cross_val_predict(LinearRegression(), Z, rest)))
    return table


def dependence(v, e, seed=0, n_folds=5):
    """|corr(v, u)| in folds whose u = e − θv has θ from the other rows, (n_folds,).

    With θ from the same rows the product of v and u is zero whatever the nuisances are.
    """
    values = []
    for others, rows in KFold(n_folds, shuffle=True, random_state=seed).split(v):
        u = e[rows] - PartiallyLinear().of_residuals(v[others], e[others]).theta * v[rows]
        values.append(abs(np.corrcoef(v[rows], u)[0, 1]))
    return np.array(values)


def role_probes(tables, folder):
    """Heat maps of :func:`probes`, one a data set."""
    figure, axes = plt.subplots(1, len(tables), figsize=(3 * len(tables), 2.8))
    for axis, (name, table) in zip(np.atleast_1d(axes), tables.items(), strict=True):
        axis.imshow(table, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        for (i, j), value in np.ndenumerate(table):
            colour = "white" if value > 0.6 else "black"
            axis.text(j, i, f"{value:.2f}", ha="center", va="center", color=colour)
        kind = "rank corr." if name.startswith("continuous") else "AUC"
        axis.set_xticks([0, 1], [f"T ({kind})", "Y* (R²)"])
        axis.set_yticks(range(3), ROLES)
        axis.set_title(name)
    figure.tight_layout()
    save(figure, folder, "role_probes")


def group_of(method):
    """The colour's key of a method."""
    for key in ("DDML", "C-DML", "DML"):
        if method.startswith(key):
            return key
    raise ValueError(f"method must be a DML, got {method!r}.")


def boxes(axis, groups, label):
    """Box plots side by side, coloured by kind of method.

    Parameters
    ----------
    axis : Axes
    groups : dict
        From a method to its values.
    label : str
        Of the vertical axis.
    """
    drawn = axis.boxplot(list(groups.values()), patch_artist=True, widths=0.6, showfliers=True)
    for patch, method in zip(drawn["boxes"], groups, strict=True):
        patch.set_facecolor(COLOURS[group_of(method)])
        patch.set_alpha(0.6)
    for line in drawn["medians"]:
        line.set_color("black")
    axis.set_xticks(range(1, len(groups) + 1), groups, rotation=30, ha="right")
    axis.set_ylabel(label)


def residual_dependence(values, folder):
    """Box plots of |corr(v, u)|, one panel a data set.

    Parameters
    ----------
    values : DataFrame
        ``data``, ``method``, ``seed`` and ``correlation``.
    """
    names = list(dict.fromkeys(values["data"]))
    figure, axes = plt.subplots(1, len(names), figsize=(3.6 * len(names), 3.4))
    for axis, name in zip(np.atleast_1d(axes), names, strict=True):
        part = values[values["data"] == name]
        groups = {m: g["correlation"] for m, g in part.groupby("method", sort=False)}
        boxes(axis, groups, "|corr(v, u)|")
        axis.set_title(name)
    figure.tight_layout()
    save(figure, folder, "residual_dependence")


def bias(runs, methods, folder, data="IHDP"):
    """Box plots of the errors of DML, C-DML and DDML on one data set."""
    part = runs[runs["data"] == data]
    groups = {m: part.loc[part["method"] == m, "error"] for m in methods}
    figure, axis = plt.subplots(figsize=(6.4, 3.6))
    boxes(axis, groups, "estimate − truth")
    axis.axhline(0, color="black", linewidth=0.8)
    axis.set_yscale("symlog", linthresh=0.5)
    axis.set_title(f"{data}, {len(next(iter(groups.values())))} replications")
    save(figure, folder, "bias")


def ablation(table, folder, name):
    """Dots of the MAE, a panel a data set, a line a variant.

    Parameters
    ----------
    table : DataFrame
        Variants × data sets.
    """
    size = 2 * table.shape[1] + 2, 0.28 * len(table) + 1
    figure, axes = plt.subplots(1, table.shape[1], figsize=size, sharex=True, sharey=True)
    rows = np.arange(len(table))
    for axis, column in zip(np.atleast_1d(axes), table, strict=True):
        axis.plot(table[column], rows, "o", color=COLOURS["DDML"])
        axis.axvline(table[column].iloc[0], color="black", linewidth=0.8)
        axis.set_yticks(rows, table.index)
        axis.set_xscale("log")
        axis.grid(axis="y", alpha=0.3)
        axis.set_title(column, fontsize=10)
    np.atleast_1d(axes)[0].invert_yaxis()
    figure.supxlabel("MAE")
    figure.tight_layout()
    save(figure, folder, name)


def sensitivity(table, folder, name):
    """Curves of the MAE over K and the two weights, a line a data set.

    Parameters
    ----------
    table : DataFrame
        "name = value" × data sets.
    """
    figure, axes = plt.subplots(1, len(SETTINGS), figsize=(3.4 * len(SETTINGS), 3), sharey=True)
    for axis, (setting, choices) in zip(axes, SETTINGS.items(), strict=True):
        values = [next(iter(options.values())) for options in choices]
        for column in table:
            line = [table.loc[f"{setting} = {value:g}", column] for value in values]
            axis.plot(values, line, marker="o", label=column)
        axis.set_xlabel(setting)
        axis.set_yscale("log")
        if setting != "K":
            axis.set_xscale("log")
    axes[0].set_ylabel("MAE")
    axes[0].legend(fontsize=8)
    figure.tight_layout()
    save(figure, folder, name)


def wide(summary, columns):
    """A summary's MAE as variants × data sets, in the order of its rows."""
    table = summary.pivot(index="method", columns="data", values="mae")
    return pd.DataFrame(table).loc[list(dict.fromkeys(summary["method"])), list(columns)]
