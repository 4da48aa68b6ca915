"""How many features to keep: the fewest with which models do not lose accuracy in new domains."""

import logging

import numpy as np
import pandas as pd
from joblib import delayed
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ddml_fs.engine.models import fit_weighted, weight_parameter
from ddml_fs.fewest import as_good
from ddml_fs.inference import cluster_sums
from ddml_fs.progress import Progress, run_parallel
from ddml_fs.validation import check_integer, check_number, check_option
from ddml_fs.weights import influence_on_mean, varies, weighted_mean, weighted_var

GROWTH = 1.15  # from one candidate number of features to the next
FEW_ROWS = 10.0  # rows of the rarer class that give a part half its full weight
LOGGER = logging.getLogger(__name__)


def check_number_to_select(n):
    """Raise unless n is a number, a share or a rule."""
    if isinstance(n, str):
        check_option(n, "n_features_to_select", ("auto", "fdr"))
    elif isinstance(n, float):
        check_number(n, "n_features_to_select", 1e-12, 1.0)
    else:
        check_integer(n, "n_features_to_select", 1)


def number_to_select(n, n_features):
    """The number of features, from a number or a share.

    Examples
    --------
    >>> number_to_select(0.25, 12)
    3
    """
    if isinstance(n, float):
        return max(1, round(n * n_features))
    if n > n_features:
        raise ValueError(
            f"n_features_to_select must be at most the number of features ({n_features}), got {n}."
        )
    return n


def candidate_numbers(n_features, harmless=None):
    """Numbers of features to try: all small ones, a geometric series, and all features.

    Parameters
    ----------
    n_features : int
    harmless : int, optional
        Between this number and all features, none is tried.

    Examples
    --------
    >>> candidate_numbers(30)
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 21, 24, 28, 30]
    >>> candidate_numbers(30, 5)
    [1, 2, 3, 4, 5, 30]
    """
    most = n_features if harmless is None else min(harmless, n_features)
    numbers = [1]
    while numbers[-1] < most:
        numbers.append(min(most, max(numbers[-1] + 1, round(numbers[-1] * GROWTH))))
    return numbers if most == n_features else [*numbers, n_features]


def default_downstream(label):
    """Logistic regression for labels and ridge regression for numbers, on scaled features."""
    model = LogisticRegression(max_iter=1000) if label else Ridge()
    return make_pipeline(StandardScaler(), model)


def fit_where_weighted(model, X, y, weight):
    """Fit a model, with weights (n,) if they differ and if it takes them."""
    weighted = varies(weight) and weight_parameter(model) is not None
    return fit_weighted(model, X, y, weight if weighted else None)


def loss_of(model, X, y, weight=None):
    """Loss of a fitted model on the rows of one domain, which does not depend on its base rate.

    For labels, 1 − the area under the ROC curve (AUC), averaged over all classes against the rest;
    for a classifier without probabilities or scores, its error rate; for numbers, 1 − R² after
    the mean residual of the domain is removed.

    Means are weighted by ``weight`` (n,), by default 1.

    Returns
    -------
    loss : float
    influence : array of shape (n,)
        Influence of each row on the loss; the sum is 0. For two models, the sum of the squared
        differences of influences estimates the variance of the difference of their losses.
    """
    n, w = len(y), np.ones(len(y)) if weight is None else weight
    if not is_classifier(model):
        rest = y - model.predict(X)
        each = (rest - weighted_mean(rest, w)) ** 2 / max(weighted_var(y, w), 1e-12)
        return weighted_mean(each, w), influence_on_mean(each, w) / n
    if not hasattr(model, "predict_proba") and not hasattr(model, "decision_function"):
        wrong = (model.predict(X) != y).astype(float)
        return weighted_mean(wrong, w), influence_on_mean(wrong, w) / n
    method = "predict_proba" if hasattr(model, "predict_proba") else "decision_function"
    scores = getattr(model, method)(X)
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores])
    classes = [c for c in range(len(model.classes_)) if 0 < (y == model.classes_[c]).mean() < 1]
    if len(model.classes_) == 2:
        classes = classes[-1:]
    areas = [area(scores[:, c], y == model.classes_[c], w) for c in classes]
    return 1 - np.mean([a for a, _ in areas]), -np.mean([i for _, i in areas], 0)


def area(score, positive, weight=None):
    """The area under the ROC curve, and the influence of each row (DeLong et al., 1988).

    Rows count by ``weight`` (n,), by default 1.

    Examples
    --------
    >>> found, influence = area(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 1, 0, 1]) == 1)
    >>> float(found), influence.tolist()
    (0.75, [0.125, -0.125, -0.125, 0.125])
    """
    weight = np.ones(len(score)) if weight is None else weight
    place = np.unique(score, return_inverse=True)[1]
    ones, zeros = (np.bincount(place, weight * own) for own in (positive, ~positive))
    # Weight of each class below a score, where equal scores count half.
    below_1, below_0 = (np.cumsum(own) - own / 2 for own in (ones, zeros))
    n1, n0 = ones.sum(), zeros.sum()
    # Share of the rows of the other class that a row is ranked right with.
    share = np.where(positive, below_0[place] / n0, 1 - below_1[place] / n1)
    found = share @ (weight * positive) / n1
    return found, weight * (share - found) / np.where(positive, n1, n0)


def weight_of(y, label):
    """Weight of a left-out part: small if a class has few rows, 0 if there is only one class."""
    if not label:
        return len(y) / (len(y) + FEW_ROWS)
    counts = np.unique(y, return_counts=True)[1]
    if len(counts) < 2:
        return 0.0
    rows = 1 / np.sum(1 / counts)
    return rows / (rows + FEW_ROWS)


def choose_features(result, ranker, downstream, n_jobs=None, progress=None):
    """Choose how many of the distinct features of a sweep to keep.

    Parameters
    ----------
    result : SweepResult
    ranker : Ranker
    downstream : estimator, list of estimators, or None
    n_jobs : int, optional
    progress : Progress, optional

    Returns
    -------
    number : int
        With ``ranking="gain"``, at least the number of features with a positive score or, if
        effects move between domains, with a score above its standard error. Losses on few left-out
        parts are too noisy to drop these.
    curve : DataFrame
        Mean loss by number of features.
    """
    target = result.target
    if downstream is None:
        downstream = default_downstream(target.classes is not None)
    models = list(downstream) if isinstance(downstream, list | tuple) else [downstream]
    y = target.y if target.classes is None else target.classes[target.y]
    splits, harmless = ranker.splits(progress)
    moving = ranker.moving
    number, numbers, losses = choose_number(
        *(result.features.X, y, splits, models, n_jobs, progress, harmless),
        weight=result.weight,
        cluster=result.cluster,
        moving=moving,
    )
    LOGGER.info(
        "Number of features: %d of %d are as accurate as the best number on left-out %ss",
        number,
        result.features.n_features,
        ranker.part,
    )
    if ranker.ranking == "gain":
        gain = ranker.order()[1] * ranker.model.n_rows
        # The standard error of half a squared t statistic, of which 1 is subtracted.
        least = np.sqrt(2 * (np.maximum(gain, 0) + 1)) if moving else 0.0
        clear = int((gain > least).sum())
        LOGGER.info("%d features have a %s expected gain", clear, "clear" if moving else "positive")
        number = max(number, clear)
    mean = losses.mean(0) if len(losses) else np.full(len(numbers), np.nan)
    return number, pd.DataFrame({"n_features": numbers, "loss": mean})


def choose_number(
    X,
    y,
    splits,
    downstream,
    n_jobs=None,
    progress=None,
    harmless=None,
    *,
    weight=None,
    cluster=None,
    moving=False,
):
    """The smallest number of features that is as accurate as the best number.

    The best number has the lowest mean loss over the left-out parts. If a paired t-test at level
    ``DOUBT`` does not find it better than all features, all features are the reference in its
    place. The result is the smallest number whose loss is, by the same test, less than ``MARGIN``
    above that of the reference. Features whose risk exceeds their gain are used only if all
    features are better, by the same test. The constants are those of :mod:`~ddml_fs.fewest`.

    Parameters
    ----------
    X : array of shape (N, Q)
    y : array of shape (N,)
    splits : list of triples
        Training rows, test rows, and a list with the columns of X of every feature, best first as
        ranked on the training rows.
    downstream : list of estimators
    n_jobs : int, optional
    progress : Progress, optional
    harmless : int, optional
        Between this number and all features, none is tried.
    weight : array of shape (N,), optional
        Weights of the rows in the losses, and in the fits of models that take ``sample_weight``.
    cluster : int array of shape (N,), optional
        Rows whose losses depend on one another.
    moving : bool
        Whether fewer features are taken in doubt, see :func:`~ddml_fs.fewest.as_good`.

    Returns
    -------
    number : int
    numbers : list of int
        The numbers that were tried.
    losses : array of shape (splits, numbers)
        Means over the models.
    """
    progress = progress or Progress()
    weight = np.ones(len(y)) if weight is None else weight
    numbers = candidate_numbers(min(len(order) for _, _, order in splits), harmless)
    label = is_classifier(downstream[0])
    shares = np.array([weight_of(y[test], label) for _, test, _ in splits])
    used = [s for s, share in zip(splits, shares, strict=True) if share > 0]
    shares = shares[shares > 0]
    if not used:
        return numbers[-1], numbers, np.zeros((0, len(numbers)))

    def losses_of(model, train, test, order, k):
        columns = np.concatenate(order[:k])
        own = X[np.ix_(train, columns)], y[train], weight[train]
        fitted = fit_where_weighted(clone(model), *own)
        loss, influence = loss_of(fitted, X[np.ix_(test, columns)], y[test], weight[test])
        if cluster is not None:
            influence = cluster_sums(np.unique(cluster[test], return_inverse=True)[1], influence)
        return loss, influence

    work = (
        delayed(losses_of)(model, train, test, order, k)
        for model in downstream
        for train, test, order in used
        for k in numbers
    )
    progress.enter("choosing the number of features")
    progress.start(len(downstream) * len(used) * len(numbers), "fits")
    results = run_parallel(work, progress, n_jobs)
    shape = (len(downstream), len(used), len(numbers))
    losses = np.reshape([loss for loss, _ in results], shape).mean(0)
    influence = []  # for each split, the mean over the models
    for i in range(len(used)):
        parts = [
            np.stack([results[np.ravel_multi_index((j, i, k), shape)][1] for k in range(shape[2])])
            for j in range(shape[0])
        ]
        influence.append(np.mean(parts, 0))
    risky = harmless is not None and harmless < numbers[-1]
    chosen = as_good(losses, shares, influence, risky=risky, moving=moving)
    return numbers[chosen], numbers, losses
