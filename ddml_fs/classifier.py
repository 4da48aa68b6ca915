"""EffectClassifier: a linear classifier between marginal and joint effects of the features."""

import logging
from typing import Any, Self

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit, log_expit, logit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_is_fitted

from ddml_fs.cautions import warn_of_domains
from ddml_fs.display import HTMLRepr, classifier_html
from ddml_fs.domains import across_domains
from ddml_fs.encoding import (
    check_labels,
    number_of_folds,
    read_domains,
    read_target,
    splits_of_domains,
)
from ddml_fs.features import SMALLEST, Encoding
from ddml_fs.progress import progress_bar
from ddml_fs.selector import CausalFeatureSelector
from ddml_fs.tables import column_names, read_new_table, read_table
from ddml_fs.validation import check_number, check_option, forget_fit

LOGGER = logging.getLogger(__name__)
THRESHOLDS = ("calibrated", "share")
PENALTIES = np.geomspace(10, 1e-4, 11)  # λ
START = 0.1  # λ of the fit at which the effects in the domains are compared
STEP = 0.01  # weight of a two-valued column's squared step in its penalty; rare ones shrink more
FOLDS, MOST_PARTS = 5, 10  # numbers of parts of the rows, each held out in turn
PATIENCE = 1e-3  # the path of λ stops when the held-out loss is this far above its minimum
FREE = 1e-5  # penalty of the intercepts, which keeps them finite in domains with one class
LEAST_SLOPE = 1e-3  # uninformative scores then give the base rate, not reversed probabilities
SOLVER: dict = {"jac": True, "method": "L-BFGS-B", "tol": 1e-7}


class EffectClassifier(HTMLRepr, ClassifierMixin, BaseEstimator):
    """Classify by a sum of shrunken effects; effects that differ between domains shrink more.

    The model is a ridge-logistic regression with one intercept per source domain. Its penalty λ is
    chosen on held-out domains.

    Parameters
    ----------
    selector : CausalFeatureSelector, optional
        Selects the features that are used, from all source rows. By default all are used.
    threshold : {"calibrated", "share"}, default="calibrated"
        "calibrated": the more probable class is predicted. "share": each class is predicted for the
        share of the source rows that has it. A rare class is then predicted more often, and the
        accuracy is lower.
    target_rate : float, optional
        The share of the second of two classes in the target domain, if it is known. The intercept
        is then shifted so that the mean predicted probability of the rows given to ``predict``
        equals this share.
    verbose : bool, default=False
        Whether to show progress.

    Attributes
    ----------
    coef_ : array of shape (1, n_columns) or (n_classes, n_columns)
        Log-odds per unit of a column of X; categories have one column per level, and missing
        values may have a column.
    intercept_ : array of shape (1,) or (n_classes,)
    classes_ : array of shape (n_classes,)
    penalty_ : array of shape (1,) or (n_classes,)
        The chosen λ.
    invariance_ : array like ``coef_``
        1 if chance explains the differences of the effect between domains, smaller if not.
    selector_ : CausalFeatureSelector
        The fitted selector; only if one was given.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The penalty of column j is λ (sd_j² + 0.01 step_j²) / invariance_j² / 2 times its squared
    coefficient. For a two-valued column, step_j is the difference of its values; for others, sd_j.
    With a large λ, each coefficient depends on its own column only and is close to a shrunken
    marginal effect, which does not depend on the correlations between features. With λ near 0, the
    coefficients are those of logistic regression. The chosen λ has the lowest log-loss on held-out
    domains or, if these lack a class, on held-out folds.

    Probabilities are calibrated on held-out rows, and so to the base rate of the source domains.
    For a target domain with another base rate, set ``target_rate``. With several classes, each is
    fitted against the rest.

    Examples
    --------
    >>> from ddml_fs import EffectClassifier
    >>> from ddml_fs.datasets import make_domain_data
    >>> data = make_domain_data(n_samples=300, random_state=0)
    >>> model = EffectClassifier().fit(data.X, data.y, sample_domain=data.sample_domain)
    >>> bool(model.score(data.X, data.y) > 0.7)
    True
    """

    __metadata_request__fit = {"sample_domain": True}  # noqa: RUF012

    def __init__(
        self,
        selector: CausalFeatureSelector | None = None,
        *,
        threshold: str = "calibrated",
        target_rate: float | None = None,
        verbose: bool = False,
    ) -> None:
        self.selector = selector
        self.threshold = threshold
        self.target_rate = target_rate
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any, sample_domain: Any = None) -> Self:
        """Choose the penalty, and fit the weights.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels.
        sample_domain : array of shape (n_samples,), optional
            The domain of each row; negative numbers mark targets, which are left out.

        Returns
        -------
        self : EffectClassifier
        """
        forget_fit(self)
        check_option(self.threshold, "threshold", THRESHOLDS)
        wanted = self.selector
        if not isinstance(wanted, CausalFeatureSelector | None):
            raise ValueError(f"selector must be a CausalFeatureSelector or None, got {wanted!r}.")
        source, domain, domains = read_domains(sample_domain, _num_samples(X))
        whole = source.all() or y is None
        rows = [a if whole else _safe_indexing(a, source) for a in (X, y)]
        table, label = read_table(self, *rows)
        check_labels(label)
        check_classification_targets(label)
        target = read_target(label, "classification")
        self.classes_ = target.classes
        self._check_rate()
        self._encoding_ = encoding = Encoding.of(table, column_names(self))
        numbers = encoding.read(table)
        used = (numbers.min(0) < numbers.max(0)) & (numbers.std(0) > SMALLEST)
        if wanted is not None:
            self.selector_ = clone(wanted).set_params(task="classification")
            self.selector_.fit(X, y, sample_domain=sample_domain)
            used &= np.repeat(self.selector_.get_support(), encoding.width)
        else:
            warn_of_domains(domain, domains, target)  # a selector does so itself

        self._spread_ = numbers.std(0)
        numbers, part = numbers[:, used], parts_of(target, domain)
        mean, unit = numbers.mean(0), units(numbers)
        A = (numbers - mean) / unit
        with progress_bar(self.verbose, "choosing the penalty") as progress:
            progress.start(len(target.outcomes) * len(PENALTIES), "penalties")
            found = []
            for y in target.outcomes:
                found.append(fit_effects(A, y, domain, part, self.threshold, progress))
                progress.reach(len(found) * len(PENALTIES))
        weights, level, self.penalty_, invariance = map(np.array, zip(*found, strict=True))
        self.coef_ = np.zeros((len(found), len(used)))
        self.invariance_ = np.ones_like(self.coef_)
        self.coef_[:, used], self.invariance_[:, used] = weights / unit, invariance
        self.intercept_ = level - self.coef_[:, used] @ mean
        LOGGER.info("Penalty %s chosen on %d held-out parts", self.penalty_, part.max() + 1)
        return self

    def _html_summary(self):
        return classifier_html(self, self._encoding_.columns, self._spread_)

    def _check_rate(self):
        if self.target_rate is not None:
            check_number(self.target_rate, "target_rate", 1e-6, 1 - 1e-6)
            if len(self.classes_) > 2:
                raise ValueError(f"target_rate needs two classes in y, got {len(self.classes_)}.")

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of the second class, (n_samples,), or of each of C > 2, (n_samples, C)."""
        check_is_fitted(self, "coef_")
        self._check_rate()  # it may be set after fit
        odds = self._encoding_.read(read_new_table(self, X)) @ self.coef_.T + self.intercept_
        if self.target_rate is not None:
            odds += shift(odds, self.target_rate)
        return odds[:, 0] if len(self.classes_) == 2 else odds

    def predict(self, X: Any) -> np.ndarray:
        """The most likely class of each row, (n_samples,)."""
        odds = self.decision_function(X)
        return self.classes_[(odds > 0).astype(int) if odds.ndim == 1 else odds.argmax(1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, (n_samples, n_classes)."""
        odds = self.decision_function(X)
        if odds.ndim == 1:
            return expit(np.column_stack([-odds, odds]))
        return softmax(log_expit(odds), axis=1)


def units(X):
    """The unit of each column of X (N, D) in the penalty, (D,)."""
    low, high, sd = X.min(0), X.max(0), X.std(0)
    two_valued = ((low == X) | (high == X)).all(0)
    return np.hypot(sd, np.sqrt(STEP) * np.where(two_valued, high - low, sd))


def parts_of(target, domain):
    """For each row the part with which it is held out, (N,): domains if possible, else folds."""
    if splits_of_domains(target, domain):
        groups = GroupKFold(min(domain.max() + 1, MOST_PARTS))
        splits = groups.split(domain, groups=domain)
    else:
        folds = StratifiedKFold(number_of_folds(FOLDS, target), shuffle=True, random_state=0)
        splits = folds.split(domain, target.y)
    part = np.empty(len(domain), int)
    for k, (_, rows) in enumerate(splits):
        part[rows] = k
    return part


def fit_effects(A, y, domain, part, threshold, progress):
    """Weights (D,) and intercept of columns A (N, D), the chosen λ, and the invariance (D,)."""
    penalty, score = choose_penalty(A, y, domain, part, progress)
    *_, (weights, invariance) = effects_path(A, y, domain, PENALTIES[penalty <= PENALTIES])
    slope, (level,) = line(score, y, np.zeros_like(domain))
    if threshold == "share":
        level = -slope * np.quantile(score, 1 - y.mean())
    return slope * weights, level, penalty, invariance


def choose_penalty(A, y, domain, part, progress):
    """The λ with the lowest held-out log-loss, and its scores of the held-out rows, (N,)."""
    parts = [part == k for k in range(part.max() + 1)]
    paths = [effects_path(A[~own], y[~own], domain[~own], PENALTIES) for own in parts]
    least, score = np.inf, np.empty(len(y))
    for penalty, weights in zip(PENALTIES, zip(*paths, strict=True), strict=True):
        for own, (w, _) in zip(parts, weights, strict=True):
            score[own] = A[own] @ w
        slope, level = line(score, y, part)
        odds = slope * score + level[part]
        loss = (np.logaddexp(0, odds) - y * odds).mean()
        progress.advance()
        if loss < least:
            least, best, kept = loss, penalty, score.copy()
        elif loss > least + PATIENCE:
            break
    return best, kept


def line(score, y, part):
    """Slope, and one intercept per part, that turn scores (N,) into log-odds of y."""
    spread = score.std() or 1.0
    (slope,), level = next(ridge_path(score[:, None] / spread, y, part, [FREE]))
    slope = max(slope, LEAST_SLOPE) / spread
    return slope, level - slope * np.bincount(part, score) / np.bincount(part)


def shift(odds, rate):
    """The constant that, added to the log-odds, makes the mean probability equal to the rate."""
    bound = np.abs(odds).max() + np.abs(logit(rate)) + 1
    return brentq(lambda b: expit(odds + b).mean() - rate, -bound, bound)


def effects_path(A, y, domain, penalties):
    """Weights (D,) of columns A (N, D) for each λ, and the columns' invariance (D,)."""
    several = np.ptp(domain) > 0
    invariance = invariance_of(A, y, domain) if several else np.ones(A.shape[1])
    for coef, _ in ridge_path(A * invariance, y, domain, penalties):
        yield coef * invariance, invariance


def invariance_of(A, y, domain):
    """Invariance of the columns (D,), from effects by domain: one Newton step from a pooled fit."""
    U, I = [], []
    coef, levels = next(ridge_path(A, y, domain, [START]))
    for level, own in zip(levels, np.unique(domain)[:, None] == domain, strict=True):
        p = expit(level + (A[own] - A[own].mean(0)) @ coef)
        w = p * (1 - p)
        v = A[own] - w @ A[own] / w.sum()
        U.append(v.T @ (y[own] - p))
        I.append(w @ v**2)
    return across_domains(np.array(U), np.array(I)).invariance


def ridge_path(A, y, domain, penalties):
    """Ridge-logistic coefficients (D,), and log-odds of each domain's mean row, for every penalty.

    The problem is solved along the principal axes, scaled to equal curvature, where a few steps of
    L-BFGS suffice.
    """
    number = np.unique(domain, return_inverse=True)[1]
    size, n = np.bincount(number), len(A)
    A = A - np.stack([A[number == d].mean(0) for d in range(len(size))])[number]
    Z = A @ (axes := principal_axes(A))
    mean = np.clip(np.bincount(number, y) / size, 0.5 / n, 1 - 0.5 / n)
    theta = np.r_[logit(mean), np.zeros(Z.shape[1])]
    spread = max(y.var(), 0.02) * np.r_[size / n, (Z**2).mean(0)]
    for penalty in penalties:
        ridge = np.r_[np.full(len(size), FREE), np.full(Z.shape[1], penalty)]
        unit = 1 / np.sqrt(spread + ridge)
        given = (Z, 2 * y - 1, number, ridge, unit)
        theta = unit * minimize(ridge_loss, theta / unit, given, **SOLVER).x
        yield axes @ theta[len(size) :], theta[: len(size)]


def ridge_loss(u, Z, side, number, ridge, unit):
    """Penalised mean log-loss of labels −1 and 1, and its gradient, at theta = u · unit."""
    theta, k = u * unit, len(u) - Z.shape[1]
    margin = side * (theta[:k][number] + Z @ theta[k:])
    g = -side * expit(-margin) / len(Z)
    gradient = np.r_[np.bincount(number, g, k), Z.T @ g] + ridge * theta
    return np.logaddexp(0, -margin).mean() + ridge @ theta**2 / 2, gradient * unit


def principal_axes(A):
    """Principal axes of centred rows A (n, D), as columns (D, r)."""
    n, D = A.shape
    values, vectors = np.linalg.eigh((A @ A.T if n < D else A.T @ A) / n)
    kept = values > 1e-10 * values.max(initial=0.0)
    values, vectors = values[kept], vectors[:, kept]
    return A.T @ vectors / np.sqrt(n * values) if n < D else vectors
