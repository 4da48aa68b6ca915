"""What a model will do in a domain that is not yet seen: a forecast from leaving domains out."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.base import clone

from ddml_fs.number import fit_where_weighted, loss_of
from ddml_fs.weights import weighted_mean

# Between-domain standard deviation of AUC, accuracy and R², and how many domains it counts for:
# guesses, which `python -m experiments.audit forecast` bears out.
PRIOR_SD, PRIOR_DF = 0.04, 2
# Share of the difference in confidence that is believed: for the AUC a guess, for accuracy none,
# which was best on the domains of that command. Accuracy depends on the base rate, whose shift a
# model's probabilities do not show.
TRUST = {"auc": 0.5}


@dataclass(frozen=True)
class Quality:
    """How good a model is on rows of a domain, and how good it believes to be.

    Attributes
    ----------
    values : dict
        ``auc`` and ``accuracy`` of labels, ``r2`` of numbers. Needs the labels.
    believed : dict
        The same, as the model's own probabilities make one expect; empty for numbers. Needs no
        labels.
    """

    values: dict
    believed: dict


def believed_quality(model, X):
    """AUC and accuracy that a model's probabilities make one expect on rows without labels.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> p = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> model = SimpleNamespace(predict_proba=lambda X: p)
    >>> {name: round(value, 2) for name, value in believed_quality(model, None).items()}
    {'auc': 0.85, 'accuracy': 0.85}
    """
    if not hasattr(model, "predict_proba"):
        return {}
    P = model.predict_proba(X)
    classes = [1] if P.shape[1] == 2 else range(P.shape[1])
    areas = [_believed_area(P[:, c]) for c in classes]
    return {"auc": float(np.mean(areas)), "accuracy": float(P.max(1).mean())}


def _believed_area(p):
    """The chance that of two rows, one of each class, the positive one has the higher p."""
    p = np.sort(p)
    positive, negative = p, 1 - p
    below = np.cumsum(negative) - negative
    ties = positive @ negative  # a row against itself: half right
    return (positive @ below + ties / 2) / (positive.sum() * negative.sum())


def quality(model, X, y, label, weight):
    """The quality of a fitted model on labelled rows of one domain."""
    if not label:
        return Quality({"r2": 1 - float(loss_of(model, X, y, weight)[0])}, {})
    right = float(weighted_mean(model.predict(X) == y, weight))
    values = {"auc": 1 - float(loss_of(model, X, y, weight)[0]), "accuracy": right}
    return Quality(values, believed_quality(model, X))


def left_out_qualities(X, y, splits, model, label, weight):
    """The quality in each left-out domain that has at least two classes.

    Parameters
    ----------
    X : array of shape (N, Q)
    y : array of shape (N,)
    splits : list of triples
        Training rows, test rows, and the columns to use.
    model : estimator
    label : bool
    weight : array of shape (N,)

    Returns
    -------
    qualities : list of Quality
    """
    found = []
    for train, test, columns in splits:
        if not len(columns) or (label and len(np.unique(y[test])) < 2):
            continue
        rows = X[np.ix_(train, columns)], y[train], weight[train]
        fitted = fit_where_weighted(clone(model), *rows)
        found.append(quality(fitted, X[np.ix_(test, columns)], y[test], label, weight[test]))
    return found


def forecast(qualities, level, believed=None, domains=True):
    """Expected quality in a new domain, with a prediction interval.

    Student's prediction interval of the left-out domains' qualities, whose variance is shrunk
    towards :data:`PRIOR_SD`: with few domains, their spread is hardly known. For rows of a given
    domain without labels, half of the difference between the AUC that the model believes in there
    and the one that it believed in in the left-out domains is added.

    Parameters
    ----------
    qualities : list of Quality
        One per left-out domain.
    level : float
        Coverage.
    believed : dict, optional
        :func:`believed_quality` in the new domain.
    domains : bool
        Whether the parts left out are domains. If they are folds of one domain, their spread says
        nothing of new domains, and the prior counts alone.

    Returns
    -------
    row : dict
        ``auc``, ``auc_low``, ``auc_high`` and so on.

    Examples
    --------
    >>> left_out = [Quality({"auc": a}, {"auc": 0.8}) for a in (0.78, 0.8, 0.82)]
    >>> {k: round(v, 2) for k, v in forecast(left_out, 0.9).items()}
    {'auc': 0.8, 'auc_low': 0.72, 'auc_high': 0.88}
    """
    row: dict = {}
    for name in qualities[0].values if qualities else ():
        values = np.array([q.values[name] for q in qualities])
        centre, m = values.mean(), len(values)
        if believed and name in TRUST:
            before = np.mean([q.believed[name] for q in qualities])
            centre += TRUST[name] * (believed[name] - before)
        df = PRIOR_DF + (m - 1 if domains else 0)
        total = PRIOR_DF * PRIOR_SD**2 + (((values - values.mean()) ** 2).sum() if domains else 0.0)
        half = stats.t.ppf(0.5 + level / 2, df) * np.sqrt(total / df * (1 + 1 / m))
        low = -np.inf if name == "r2" else 0.0
        row |= {
            name: float(np.clip(centre, low, 1.0)),
            f"{name}_low": float(np.clip(centre - half, low, 1.0)),
            f"{name}_high": float(np.clip(centre + half, low, 1.0)),
        }
    return row


def table_of(rows):
    """The rows of a forecast as a table, one per set of features."""
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("features")
