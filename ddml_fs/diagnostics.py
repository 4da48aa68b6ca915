"""What to look at before an effect is believed, and what it says in plain words."""

import warnings

import numpy as np
import pandas as pd
from scipy import stats

from ddml_fs.nuisances.held_out_loss import log_loss, target_of

ROLE_LEVEL = 0.01  # chance of calling any column of pure noise one that matters
FEW = 1000  # rows; see docs/effect_study.md
COPY = 1e-3  # share of the outcome's variance that a near-copy leaves
TITLES = {"m": "treatment", "g": "outcome", "mu_0": "untreated", "mu_1": "treated"}


def roles_table(networks, n_rows, names):
    """How much each covariate acts as confounder, on the treatment only, on the outcome only.

    A column acts on a target when setting it to its mean raises the error on held-out rows, by
    more than chance explains (Bonferroni over the columns). What acts on both is a confounder; what
    is left over acts on one of them only.

    Parameters
    ----------
    networks : list of NetworkSummary
        Of all folds.
    n_rows : int
        Held-out rows of all of them.
    names : sequence of str
        The columns.

    Returns
    -------
    roles : DataFrame
        Columns "confounder", "treatment" and "outcome", from 0 to 1, the strongest on each target
        being 1, and "role": the first of the three that reaches a tenth, or "none".
    """
    rise = sum(n.rise for n in networks) / n_rows  # (D, 2)
    square = sum(n.rise_square for n in networks) / n_rows
    stderr = np.sqrt(np.maximum(square - rise**2, 0) / n_rows)
    certain = rise > stats.norm.isf(ROLE_LEVEL / len(rise)) * stderr
    strength = np.sqrt(np.where(certain, rise, 0.0))
    to_T, to_Y = (strength / np.maximum(strength.max(0), 1e-12)).T
    both = np.minimum(to_T, to_Y)
    table = pd.DataFrame(
        {"confounder": both, "treatment": to_T - both, "outcome": to_Y - both}, index=list(names)
    )
    acts = table >= 0.1
    table["role"] = acts.idxmax(axis=1).where(acts.any(axis=1), "none")
    return table


def constant_losses(plan, functions):
    """Losses that a constant would have in place of each nuisance function, a dict."""
    out = {}
    for name in functions:
        rows, target, binary = target_of(plan, name, 0, 0)
        target = target[rows]
        out[name] = float(log_loss(target.mean(), target) if binary else np.var(target))
    return out


def unexplained_share(v, treatment):
    """Share of the treatment's variance that X does not explain on held-out rows."""
    return float(np.mean(v**2) / np.var(treatment))


def overview(effect, binary, clip):
    """The figures of :meth:`ddml_fs.DDML.diagnostics`, a dict."""
    v, u, m = effect.residuals_["v"], effect.residuals_["u"], effect.nuisances_["m"]
    rows = {"n_samples": len(v), "unexplained_share": unexplained_share(v, v + m)}
    if binary:
        rows |= {"propensity_min": m.min(), "propensity_max": m.max()}
        rows["share_beyond_clip"] = float(((m < clip) | (m > 1 - clip)).mean())
    rows["abs_corr_v_u"] = abs(np.corrcoef(v, u)[0, 1])
    for name, title in TITLES.items():
        if name in effect.nuisance_losses_:
            rows[f"{title}_loss"] = effect.nuisance_losses_.loc["used", name]
            rows[f"{title}_loss_constant"] = effect.nuisance_losses_.loc["constant", name]
    return rows


def copies_of(y, X, share):
    """Columns of X (N, D) that are y again, up to a linear function, a bool array (D,).

    ``share`` is that of the variance of y which a near-copy leaves at most.
    """
    y = (y - y.mean()) / y.std()
    centred = X - X.mean(0)
    size = np.sqrt((centred**2).sum(0))
    r = np.divide(centred.T @ y, size * np.sqrt(len(y)), out=np.zeros(len(size)), where=size > 0)
    return 1 - r**2 < share


def warn_of_copies(X, y, names):
    """Warn of columns that are the outcome again."""
    copies = [str(name) for name in np.asarray(names)[copies_of(y, X, COPY)]]
    if copies:
        warnings.warn(
            f"X holds the outcome itself, or nearly: {', '.join(copies)}. Given a copy of the "
            "outcome every effect is 0; drop it.",
            stacklevel=3,
        )


def warn_of_overlap(table, clip):
    """Warn where little or nothing of the treatment is left to learn from.

    Parameters
    ----------
    table : Series
        Of :meth:`ddml_fs.DDML.diagnostics`.
    clip : float, or None
        Of the interactive score; None with others.
    """
    left = table["unexplained_share"]
    if left < 0.01:
        warnings.warn(
            f"X predicts the treatment almost perfectly ({left:.2%} of its variance is left): "
            "the effect rests on next to nothing; drop columns that only encode the treatment.",
            stacklevel=3,
        )
    if clip is not None and table["share_beyond_clip"] > 0:
        warnings.warn(
            f"{table['share_beyond_clip']:.1%} of the propensities were clipped to [{clip:g}, "
            f"{1 - clip:g}]; overlap is weak there.",
            stacklevel=3,
        )


def verdict(table, clip, estimand):
    """What the diagnostics say, in plain words.

    Parameters
    ----------
    table : Series
        Of :meth:`ddml_fs.DDML.diagnostics`.
    clip : float, or None
        Of the interactive score; None with others.
    estimand : str

    Returns
    -------
    verdict : str
    """
    doubts = []
    if table["unexplained_share"] < 0.05:
        doubts.append(
            f"the covariates explain {1 - table['unexplained_share']:.0%} of the treatment, so "
            "that little is left to learn from"
        )
    if clip is not None and table["share_beyond_clip"] > 0.01:
        doubts.append(
            f"{table['share_beyond_clip']:.0%} of the rows have almost no counterpart in the other "
            "arm (weak overlap)"
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
    text = f"{estimand}. Held-out loss is below a constant's by: {learned}. "
    if table["n_samples"] < FEW:
        text += f"With fewer than {FEW} rows and strong confounding, intervals can be too short. "
    if doubts:
        return text + "Doubtful: " + "; ".join(doubts) + "."
    return text + (
        "Overlap and nuisances give no reason for doubt; a confounder that is not in X would not "
        "show here."
    )
