"""Diagnostics of an estimated effect, and a verdict in words."""

import numpy as np
import pandas as pd
from scipy import stats

from ddml_fs.chunks import chunks
from ddml_fs.nuisances.held_out_loss import log_loss, losses_of, squared_error, target_of
from ddml_fs.weights import weighted_mean, weighted_var

ROLE_LEVEL = 0.01  # probability that any column of pure noise is given a role
FEW = 3000  # rows below which intervals can be too short, see cautions
WEAK_OVERLAP = 0.01  # share of clipped propensities from which overlap is called weak
TITLES = {"m": "treatment", "g": "outcome", "mu_0": "untreated", "mu_1": "treated"}


def roles_table(networks, n_rows, names, feature):
    """How much each covariate acts as confounder, on the treatment only, on the outcome only.

    A column acts on the treatment (or the outcome) if setting the column to its mean raises the
    held-out error by more than chance explains (Bonferroni over the columns). A column that acts on
    both is a confounder, to the degree that it acts on both. A covariate of several columns, such
    as a category, acts as the strongest of them does.

    Parameters
    ----------
    networks : list of NetworkSummary
        Of all folds.
    n_rows : int
        Number of held-out rows over all folds.
    names : sequence of str
        Names of the covariates.
    feature : int array of shape (D,)
        The covariate that each column belongs to.

    Returns
    -------
    roles : DataFrame
        Columns "confounder", "treatment" and "outcome", from 0 to 1, scaled so that the strongest
        column has 1; and "role": the first of the three that reaches 0.1, or "none".
    """
    rise = sum(n.rise for n in networks) / n_rows  # (D, 2)
    square = sum(n.rise_square for n in networks) / n_rows
    stderr = np.sqrt(np.maximum(square - rise**2, 0) / n_rows)
    certain = rise > stats.norm.isf(ROLE_LEVEL / len(rise)) * stderr
    strength = np.zeros((len(names), 2))
    np.maximum.at(strength, feature, np.sqrt(np.where(certain, rise, 0.0)))
    to_T, to_Y = (strength / np.maximum(strength.max(0), 1e-12)).T
    both = np.minimum(to_T, to_Y)
    table = pd.DataFrame(
        {"confounder": both, "treatment": to_T - both, "outcome": to_Y - both}, index=list(names)
    )
    acts = table >= 0.1
    table["role"] = acts.idxmax(axis=1).where(acts.any(axis=1), "none")
    return table


def nuisance_tables(plan, predictions):
    """Held-out losses of the nuisances of one treatment, and weights of stacked ones.

    Parameters
    ----------
    plan : Plan
    predictions : Predictions

    Returns
    -------
    losses : DataFrame
        One row per candidate model, then "used" and "constant"; one column per nuisance function.
    weights : DataFrame, or None
        The candidates' weights; None if the nuisances are not stacked.
    """
    repeats = range(plan.n_repeats)
    rows = {"used": pd.DataFrame([losses_of(plan, predictions, r) for r in repeats]).mean()}
    weights = None
    if (stacking := predictions.stacking) is not None:
        weights, losses = (
            pd.DataFrame(
                {name: values[:, 0, 0].mean(0) for name, values in part.items()},
                index=stacking.names,
            )
            for part in (stacking.weights, stacking.losses)
        )
        rows = losses.T.to_dict("series") | rows
    rows["constant"] = pd.Series(constant_losses(plan, predictions.functions))
    return pd.DataFrame(rows).T, weights


def constant_losses(plan, functions):
    """Loss of a constant prediction for each nuisance function, a dict."""
    out = {}
    for name in functions:
        rows, target, binary = target_of(plan, name, 0, 0)
        target, weight = target[rows], plan.weight[rows]
        mean = weighted_mean(target, weight)
        loss = log_loss if binary else squared_error
        out[name] = float(loss(mean, target, weight))
    return out


def unexplained_share(v, treatment, weight=1.0):
    """Share of the treatment's variance that X does not explain on held-out rows."""
    return float(weighted_mean(v**2, weight) / weighted_var(treatment, weight))


def overview(effect, binary, clip, weight):
    """The figures of :meth:`ddml_fs.DDML.diagnostics`, a dict; ``weight`` (N,) is that of rows."""
    used = weight > 0
    w = weight[used]
    v, u, m = (
        a.to_numpy()[used]
        for a in (effect.residuals_["v"], effect.residuals_["u"], effect.nuisances_["m"])
    )
    rows = {"n_samples": len(v), "unexplained_share": unexplained_share(v, v + m, w)}
    if binary:
        rows |= {"propensity_min": m.min(), "propensity_max": m.max()}
        beyond, of = (m < clip) | (m > 1 - clip), w
        if effect.estimand_ == "ATT":  # propensities near 0 hardly count, their weight is m/(1 − m)
            beyond, of = m > 1 - clip, w * (v + m)
        rows["share_beyond_clip"] = float(weighted_mean(beyond, of))
    (var_v, both), (_, var_u) = np.cov(v, u, aweights=w)
    rows["abs_corr_v_u"] = float(abs(both) / np.sqrt(var_v * var_u))
    for name, title in TITLES.items():
        if name in effect.nuisance_losses_:
            rows[f"{title}_loss"] = effect.nuisance_losses_.loc["used", name]
            rows[f"{title}_loss_constant"] = effect.nuisance_losses_.loc["constant", name]
    return rows


def copies_of(y, X, share):
    """Columns of X (N, D) that repeat y up to a linear function, a bool array (D,).

    A copy leaves less than ``share`` of the variance of y unexplained.
    """
    y, r = (y - y.mean()) / y.std(), np.zeros(X.shape[1])
    for at in chunks(X.shape[1], 8 * len(y)):
        centred = X[:, at] - X[:, at].mean(0)
        size = np.sqrt((centred**2).sum(0))
        np.divide(centred.T @ y, size * np.sqrt(len(y)), out=r[at], where=size > 0)
    return 1 - r**2 < share


def verdict(table, clip, estimand, few_rows=False):
    """What the diagnostics say, in words.

    Parameters
    ----------
    table : Series
        See :meth:`ddml_fs.DDML.diagnostics`.
    clip : float, or None
        Of the interactive score; None with others.
    estimand : str
    few_rows : bool, default=False
        Whether there are too few rows for the confounding.

    Returns
    -------
    verdict : str
    """
    doubts = []
    if few_rows:
        doubts.append(
            f"with fewer than {FEW} rows and confounding that is not linear, the interval may be "
            "too short"
        )
    if table["unexplained_share"] < 0.05:
        doubts.append(
            f"the covariates explain {1 - table['unexplained_share']:.0%} of the treatment's "
            "variance, so little is left to estimate the effect from"
        )
    if clip is not None and table["share_beyond_clip"] > WEAK_OVERLAP:
        rows = "treated rows" if estimand == "ATT" else "rows"
        doubts.append(
            f"{table['share_beyond_clip']:.0%} of the {rows} have almost no comparable rows in the "
            "other arm (weak overlap)"
        )
    gains = {
        title: 1 - table[f"{title}_loss"] / max(table[f"{title}_loss_constant"], 1e-12)
        for title in ("treatment", "outcome")
    }
    worse = [title for title, gain in gains.items() if gain < -0.01]
    if worse:
        doubts.append(
            f"the nuisance model of the {' and the '.join(worse)} predicts held-out rows worse "
            "than a constant"
        )
    learned = ", ".join(f"{title} {max(gain, 0):.0%}" for title, gain in gains.items())
    text = f"{estimand}. Held-out loss, compared with a constant, is lower by: {learned}. "
    if doubts:
        return text + "Doubtful: " + "; ".join(doubts) + "."
    return text + (
        "Overlap and nuisances give no reason for doubt. These checks cannot detect a confounder "
        "that is missing from X."
    )
