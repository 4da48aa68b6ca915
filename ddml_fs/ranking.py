"""From effects to an order of the features, and how many of them to keep."""

import numpy as np
from joblib import Parallel, delayed
from scipy import stats
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ddml_fs.domains import across_domains
from ddml_fs.effects_table import effects_table
from ddml_fs.encoding import splits_of_domains
from ddml_fs.validation import check_integer, check_number, check_option

RANKINGS = ("causal", "effect", "tstat", "stability")
GROWTH = 1.15  # from one candidate number of features to the next


def feature_scores(ranking, table, n_samples):
    """One score per feature, larger for better ones.

    Parameters
    ----------
    ranking : str or callable
        "causal": |z| / √n times the invariance, z being the mean effect over the standard deviation
        of the effect in a new domain; on the scale of a partial correlation. "effect": |θ|.
        "tstat": |θ| / stderr. "stability": the chance that a new domain's effect has the sign of
        the mean. A callable takes the table and returns the scores.
    table : DataFrame
        Effects of the features.
    n_samples : int

    Returns
    -------
    scores : array of shape (F,)
    """
    if callable(ranking):
        scores = np.asarray(ranking(table), dtype=np.float64)
        if scores.shape != (len(table),) or np.isnan(scores).any():
            raise ValueError(
                f"ranking must return one number per feature ({len(table)}), got an array of shape "
                f"{scores.shape} with {int(np.isnan(scores).sum())} NaN."
            )
        return scores
    if ranking == "causal":
        return (table["z"].abs() * table["invariance"] / np.sqrt(n_samples)).to_numpy()
    return table[ranking].abs().to_numpy()


def redundancy_weight(penalty):
    """Weight β of redundancy: how much of confounding shrunken nuisances leave in an effect.

    A small ridge penalty λ leaves about λ of a standardised confounder in the treatment's residual
    and as much in the label's, so λ² in the score, against 1 that they account for. With ample data
    λ is near 0, effects are conditional on all other features, and no further account of redundancy
    is wanted; with scarce data, effects are nearly marginal, and β is near 1.

    Examples
    --------
    >>> redundancy_weight(3.0), redundancy_weight(0.0)
    (0.9, 0.0)
    """
    return penalty**2 / (1 + penalty**2)


def greedy_order(scores, X, beta):
    """Order features by relevance less redundancy: mRMR on shares of variance.

    The next feature is the one with the largest r_j² − β · mean ρ(x_j, x_k)² over those taken, ρ
    being the correlation.

    Parameters
    ----------
    scores : array of shape (F,)
        Relevance r_j.
    X : array of shape (N, F)
    beta : float
        Weight of redundancy; 0 sorts by score.

    Returns
    -------
    order : int array of shape (F,)
        Best first.

    Examples
    --------
    >>> x = np.array([1.0, 2.0, 3.0, 4.0])
    >>> X = np.column_stack([x, x + [0.1, 0, 0, 0], [1.0, -1, -1, 1]])
    >>> greedy_order(np.array([0.9, 0.8, 0.7]), X, beta=1.0).tolist()
    [0, 2, 1]
    """
    if beta == 0:
        return np.argsort(-scores, kind="stable")
    centred = X - X.mean(0, dtype=np.float64)
    norm = np.sqrt((centred**2).sum(0))
    centred = (centred / np.where(norm > 0, norm, 1.0)).astype(np.float32)
    shared = np.square(centred.T @ centred)
    value, sum_shared = scores**2, np.zeros(len(scores))
    left = np.ones(len(scores), dtype=bool)
    order = np.empty(len(scores), dtype=np.intp)
    for i in range(len(scores)):
        best = np.argmax(np.where(left, value - beta * sum_shared / max(i, 1), -np.inf))
        order[i], left[best] = best, False
        sum_shared += shared[best]
    return order


def check_number_to_select(n):
    """Refuse what is neither a number, nor a share, nor a rule."""
    if isinstance(n, str):
        check_option(n, "n_features_to_select", ("auto", "fdr"))
    elif isinstance(n, float):
        check_number(n, "n_features_to_select", 1e-12, 1.0)
    else:
        check_integer(n, "n_features_to_select", 1)


def number_to_select(n, n_features):
    """A number or a share of the features as a number.

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


def candidate_numbers(n_features):
    """Numbers of features to try: all small ones, then a geometric series up to all of them.

    Examples
    --------
    >>> candidate_numbers(30)
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 21, 24, 28, 30]
    """
    numbers = [1]
    while numbers[-1] < n_features:
        numbers.append(min(n_features, max(numbers[-1] + 1, round(numbers[-1] * GROWTH))))
    return numbers


def default_downstream(label):
    """Logistic regression for labels and ridge regression for numbers, on scaled features."""
    model = LogisticRegression(max_iter=1000) if label else Ridge()
    return make_pipeline(StandardScaler(), model)


def left_out_orders(result, domains, ranking, beta):
    """Splits that leave out one domain at a time or, with one domain, one fold.

    Each has the order of the features that the other rows' evidence gives. Features whose effects
    differ between the domains are not worth a try in a new one.

    Parameters
    ----------
    result : SweepResult
    domains : array
        Names.
    ranking : str or callable
    beta : float
        Weight of redundancy.

    Returns
    -------
    splits : list of triples
        Training rows, test rows, and the order of the eligible features.
    """
    columns, target, evidence = result.columns, result.target, result.evidence
    part = "domain" if splits_of_domains(target, result.domain) else "fold"
    label = getattr(result, part)
    stable = np.all([across_domains(*s.by_domain()).stable for s in evidence], 0)
    if not stable.any():
        stable[:] = True
    splits = []
    for k in np.unique(label):
        train, test = np.flatnonzero(label != k), np.flatnonzero(label == k)
        other = [s.without(part, k) for s in evidence]
        names = np.delete(domains, k) if part == "domain" else domains
        table, _ = effects_table(other, columns.distinct_sd, names, target.classes)
        scores = feature_scores(ranking, table, len(train))
        order = greedy_order(scores, columns.X[train], beta)
        splits.append((train, test, order[stable[order]]))
    return splits


def choose_number(X, y, splits, downstream, n_jobs=None):
    """How many features to keep: the fewest that do as well as the best number.

    Each split brings its own order of the features, without its test rows' evidence. A number is
    as good as the best one when its mean loss on the splits' test rows is worse by at most one
    standard error of the paired difference, or by a hundredth of what the best number gains on a
    single feature.

    Parameters
    ----------
    X : array of shape (N, F)
    y : array of shape (N,)
    splits : list of triples
        Training rows, test rows, and the order of the eligible features.
    downstream : estimator
    n_jobs : int, optional

    Returns
    -------
    number : int
    numbers : list of int
        Those tried.
    losses : array of shape (splits, numbers)
    """
    numbers = candidate_numbers(min(len(order) for _, _, order in splits))

    def loss_of(train, test, columns):
        model = clone(downstream).fit(X[np.ix_(train, columns)], y[train])
        seen = X[np.ix_(test, columns)]
        if is_classifier(model) and hasattr(model, "predict_proba"):
            return log_loss(y[test], model.predict_proba(seen), labels=model.classes_)
        if is_classifier(model):
            return 1 - model.score(seen, y[test])
        return mean_squared_error(y[test], model.predict(seen))

    work = (delayed(loss_of)(tr, te, order[:k]) for tr, te, order in splits for k in numbers)
    losses = np.reshape(Parallel(n_jobs=n_jobs)(work), (len(splits), len(numbers)))
    worse = losses - losses[:, [losses.mean(0).argmin()]]
    stderr = stats.sem(worse, axis=0) if len(splits) > 1 else np.zeros(len(numbers))
    allowed = np.maximum(stderr, 0.01 * worse[:, 0].mean())
    good = worse.mean(0) <= allowed + 1e-12
    return numbers[int(np.argmax(good))], numbers, losses
