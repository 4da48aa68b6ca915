"""Leaks: columns that know the label, because they were filled in after it or because of it."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.metrics import d2_log_loss_score, r2_score
from sklearn.utils import check_random_state

from ddml_fs.engine.models import fit_predict
from ddml_fs.number import area, default_downstream
from ddml_fs.weights import varies, weighted_mean

N_BINS = 20  # of a number
N_FOLDS = 5
# Set after a look at the six tables of `python -m experiments.audit leaks`, of which no column
# explains more than 0.25.
SUSPECT = 0.5  # share of the label's deviance that a column explains alone
FEW = 3  # values of a copy of the label: two, or two and missing
COPY_OF_NUMBER = 0.98  # share of the variance of a number that a copy of it explains
LESS_LEFT = 0.5  # of what all other columns leave unexplained, a leak leaves less than this
ODDS = 10.0  # ratio of the odds of a label, where a column is missing and where it is not
SURE = 2.33  # standard errors by which the ratio must exceed it

COPY, PREDICTIVE, MISSING = "copy of the label", "too predictive", "missing by label"


@dataclass(frozen=True)
class Alone:
    """What one feature alone says about the label.

    Attributes
    ----------
    explained : float
        Share of the deviance of a label, or of the variance of a number, on held-out rows.
    quality : float
        Area under the ROC curve of a label, R² of a number, on held-out rows.
    n_values : int
        Values that the feature takes.
    """

    explained: float
    quality: float
    n_values: int


def cells_of(columns):
    """Rows with alike values of a feature share a cell, an int array (N,).

    Parameters
    ----------
    columns : array of shape (N, k)
        A number with more than :data:`N_BINS` values is cut at its quantiles.
    """
    codes = [np.zeros(len(columns), int)]  # of a feature that has no column: no level is common
    for x in columns.T:
        if len(np.unique(x)) > N_BINS:
            cuts = np.unique(np.quantile(x, np.linspace(0, 1, N_BINS + 1)[1:-1]))
            x = np.searchsorted(cuts, x)
        codes.append(np.unique(x, return_inverse=True)[1])
    return np.unique(np.column_stack(codes), axis=0, return_inverse=True)[1].ravel()


def held_out_means(cell, y, fold, weight):
    """The weighted mean of y in the cell of each row, from the other folds, (N,)."""
    n_cells, out = cell.max() + 1, np.empty(len(y))
    for k in np.unique(fold):
        rest, own = fold != k, fold == k
        count = np.bincount(cell[rest], weight[rest], minlength=n_cells)
        total = np.bincount(cell[rest], (weight * y)[rest], minlength=n_cells)
        mean = weighted_mean(y[rest], weight[rest])
        out[own] = ((total + mean) / (count + 1))[cell[own]]  # as if with one more row
    return out


def explained_by(prediction, y, label, weight=None):
    """Share of the deviance (labels) or of the variance (numbers) that predictions explain.

    Examples
    --------
    >>> float(explained_by(np.array([0.5, 0.5]), np.array([0.0, 1.0]), True))
    0.0
    """
    if not label:
        return r2_score(y, prediction, sample_weight=weight)
    return d2_log_loss_score(y, np.clip(prediction, 1e-6, 1 - 1e-6), sample_weight=weight)


def alone(columns, target, fold, weight):
    """What a feature says alone; of several classes, about the one that it says most about."""
    label = target.classes is not None
    cell, found = cells_of(columns), []
    for y in target.outcomes:
        prediction = held_out_means(cell, y, fold, weight)
        explained = float(explained_by(prediction, y, label, weight))
        if not label:  # cells blur a copy of a number
            explained = max([explained, *(_squared_correlation(x, y, weight) for x in columns.T)])
        quality = float(area(prediction, y > 0.5, weight)[0]) if label else explained
        found.append(Alone(explained, quality, len(np.unique(columns, axis=0))))
    return max(found, key=lambda a: a.explained)


def _squared_correlation(x, y, weight):
    (var_x, both), (_, var_y) = np.cov(x, y, aweights=weight)
    return float(both**2 / (var_x * var_y)) if x.std() > 0 else 0.0


def missing_by_label(missing, y, weight=None):
    """The odds of y = 1 where a column is missing, over those where it is not; a lower bound.

    Parameters
    ----------
    missing : bool array of shape (N,)
    y : array of shape (N,)
        0 or 1.
    weight : array of shape (N,), optional
        Rows count like fewer if weights differ (Kish's effective number).

    Returns
    -------
    bound : float
        Of the ratio or of its inverse, whichever is larger.

    Examples
    --------
    >>> y = np.repeat([0, 1], 500)
    >>> bool(missing_by_label(y == 0, y) > 1000)
    True
    """
    weight = np.ones(len(y)) if weight is None else weight * weight.sum() / (weight**2).sum()
    counts = [weight[(missing == a) & (y == b)].sum() + 0.5 for a in (0, 1) for b in (0, 1)]
    ratio = abs(np.log(counts[0] * counts[3] / (counts[1] * counts[2])))
    return float(np.exp(ratio - SURE * np.sqrt(sum(1 / c for c in counts))))


def find_leaks(X, own, missing, target, names, random_state=None, *, weight=None, cluster=None):
    """Search all features for leaks, one at a time.

    A feature is a *copy of the label* if it takes two values and explains most of the label alone;
    *too predictive* if it explains most of the label and leaves far less unexplained than all
    features that are above suspicion leave together; *missing by label* if its values are there, or
    not there, almost only for one class.

    Parameters
    ----------
    X : array of shape (N, Q)
        The table as numbers.
    own : int array of shape (Q,)
        The feature of each column.
    missing : bool array of shape (N, F)
        Missing values of each feature.
    target : Target
    names : list of str
        Of the features.
    random_state : int or RandomState
    weight : array of shape (N,), optional
    cluster : int array of shape (N,), optional
        Rows that are held out together.

    Returns
    -------
    table : DataFrame
        One row per feature: ``alone``, ``explained``, ``missing``, ``leak`` ("" for none) and
        ``evidence``, a sentence.
    """
    rng = check_random_state(random_state)
    weight = np.ones(len(X)) if weight is None else weight
    unit = np.arange(len(X)) if cluster is None else cluster
    fold = (rng.permutation(unit.max() + 1) % N_FOLDS)[unit]
    label = target.classes is not None
    quality = "AUC" if label else "R²"
    found = [alone(X[:, own == f], target, fold, weight) for f in range(len(names))]
    suspect = np.array([a.explained > SUSPECT for a in found])
    left = 1.0
    if suspect.any():
        left -= explained_together(X[:, ~suspect[own]], target, fold, weight)
    rows = []
    for f, a in enumerate(found):
        leak = evidence = ""
        if label and missing[:, f].any():
            bound = max(missing_by_label(missing[:, f], y, weight) for y in target.outcomes)
            if bound > ODDS:
                leak = MISSING
                evidence = (
                    f"the odds of the label are at least {bound:.0f} times as high on one side of "
                    "being filled in or missing"
                )
        if suspect[f] and not leak:
            few = a.n_values <= FEW if label else a.explained > COPY_OF_NUMBER
            leak = COPY if few else PREDICTIVE if 1 - a.explained < LESS_LEFT * left else ""
            evidence = f"alone it predicts the label with a held-out {quality} of {a.quality:.3f}"
            if leak == PREDICTIVE:
                evidence += (
                    f" and leaves {1 - a.explained:.0%} of it unexplained, where all unsuspected "
                    f"columns together leave {left:.0%}"
                )
        share = weighted_mean(missing[:, f], weight)
        rows.append((a.quality, a.explained, share, leak, evidence if leak else ""))
    columns = ["alone", "explained", "missing", "leak", "evidence"]
    return pd.DataFrame(rows, columns=columns, index=pd.Index(names, name="feature"))


def explained_together(X, target, fold, weight):
    """What a linear model of all given columns explains on held-out rows; the best outcome's."""
    label = target.classes is not None
    if not X.shape[1]:
        return 0.0
    best = 0.0
    for y in target.outcomes:
        p = np.empty(len(y))
        for k in np.unique(fold):
            rest, own = fold != k, fold == k
            model, given = default_downstream(label), weight[rest] if varies(weight) else None
            p[own] = fit_predict(model, X[rest], X[own], y[rest], given)
        best = max(best, float(explained_by(p, y, label, weight)))
    return best
