"""EffectClassifier: a linear classifier between marginal and joint effects of the features."""

import logging
from typing import Any, Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, log_expit, logit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ddml_fs.cautions import warn_of_rows, warn_of_unread
from ddml_fs.display import HTMLRepr, classifier_html
from ddml_fs.effects_path import FREE, effects_path, ridge_path
from ddml_fs.encoding import check_labels, number_of_folds, read_target, splits_of_domains
from ddml_fs.features import SMALLEST, Encoding
from ddml_fs.persistence import Versioned
from ddml_fs.progress import progress_bar
from ddml_fs.rows import read_rows
from ddml_fs.selector import CausalFeatureSelector
from ddml_fs.tables import column_names, read_new_table, read_table
from ddml_fs.validation import check_number, check_option, forget_fit
from ddml_fs.weights import varies, weighted_mean, weighted_var

LOGGER = logging.getLogger(__name__)
THRESHOLDS = ("calibrated", "share")
PENALTIES = np.geomspace(10, 1e-4, 11)  # λ
STEP = 0.01  # weight of a two-valued column's squared step in its penalty; rare ones shrink more
FOLDS, MOST_PARTS = 5, 10  # numbers of parts of the rows, each held out in turn
PATIENCE = 1e-3  # the path of λ stops when the held-out loss is this far above its minimum
LEAST_SLOPE = 1e-3  # uninformative scores then give the base rate, not reversed probabilities


class EffectClassifier(Versioned, HTMLRepr, ClassifierMixin, BaseEstimator):
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

    __metadata_request__fit = {"sample_domain": True, "cluster": True}  # noqa: RUF012

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

    def fit(
        self,
        X: Any,
        y: Any,
        sample_domain: Any = None,
        sample_weight: Any = None,
        cluster: Any = None,
    ) -> Self:
        """Choose the penalty, and fit the weights.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels.
        sample_domain : array of shape (n_samples,), optional
            The domain of each row; negative numbers mark targets, which are left out.
        sample_weight : array of shape (n_samples,), optional
            Weights of the rows. Only their ratios matter; rows with weight 0 are left out.
        cluster : array of shape (n_samples,), optional
            Clusters of rows that depend on one another, which folds do not split.

        Returns
        -------
        self : EffectClassifier
        """
        forget_fit(self)
        check_option(self.threshold, "threshold", THRESHOLDS)
        wanted = self.selector
        if not isinstance(wanted, CausalFeatureSelector | None):
            raise ValueError(f"selector must be a CausalFeatureSelector or None, got {wanted!r}.")
        rows = read_rows(X, sample_domain, sample_weight, cluster)
        domain, weight = rows.domain, rows.weight
        table, label = read_table(self, rows.of(X), rows.labels(y))
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
            given = (y, sample_domain, sample_weight, cluster)  # as arrays: order was warned of
            self.selector_.fit(X, *(None if a is None else np.asarray(a) for a in given))
            used &= np.repeat(self.selector_.get_support(), encoding.width)
        else:
            warn_of_unread(encoding)  # a selector warns itself
            warn_of_rows(domain, rows.domains, target, weight)

        self._spread_ = np.sqrt(weighted_var(numbers, weight))
        numbers, part = numbers[:, used], parts_of(target, domain, rows.cluster)
        mean, unit = weighted_mean(numbers, weight), units(numbers, weight)
        A = (numbers - mean) / unit
        with progress_bar(self.verbose, "choosing the penalty") as progress:
            progress.start(len(target.outcomes) * len(PENALTIES), "penalties")
            found = []
            for y in target.outcomes:
                found.append(fit_effects(A, y, domain, part, weight, self.threshold, progress))
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


def units(X, weight=1.0):
    """The unit of each column of X (N, D) in the penalty, (D,)."""
    low, high, sd = X.min(0), X.max(0), np.sqrt(weighted_var(X, weight))
    two_valued = ((low == X) | (high == X)).all(0)
    return np.hypot(sd, np.sqrt(STEP) * np.where(two_valued, high - low, sd))


def parts_of(target, domain, cluster=None):
    """For each row the part with which it is held out, (N,): domains if possible, else folds."""
    splitter = StratifiedKFold if cluster is None else StratifiedGroupKFold
    if splits_of_domains(target, domain):
        groups = GroupKFold(min(domain.max() + 1, MOST_PARTS))
        splits = groups.split(domain, groups=domain)
    else:
        n_folds = number_of_folds(FOLDS, target, cluster)
        folds = splitter(n_folds, shuffle=True, random_state=0)
        splits = folds.split(domain, target.y, cluster)
    part = np.empty(len(domain), int)
    for k, (_, rows) in enumerate(splits):
        part[rows] = k
    return part


def fit_effects(A, y, domain, part, weight, threshold, progress):
    """Weights (D,) and intercept of columns A (N, D), the chosen λ, and the invariance (D,)."""
    penalty, score = choose_penalty(A, y, domain, part, weight, progress)
    path = effects_path(A, y, domain, PENALTIES[penalty <= PENALTIES], weight)
    *_, (weights, invariance) = path
    slope, (level,) = line(score, y, np.zeros_like(domain), weight)
    if threshold == "share":
        # NumPy interpolates only without weights.
        how = {"weights": weight, "method": "inverted_cdf"} if varies(weight) else {}
        level = -slope * np.quantile(score, 1 - weighted_mean(y, weight), **how)
    return slope * weights, level, penalty, invariance


def choose_penalty(A, y, domain, part, weight, progress):
    """The λ with the lowest held-out log-loss, and its scores of the held-out rows, (N,)."""
    parts = [part == k for k in range(part.max() + 1)]
    paths = [effects_path(A[~own], y[~own], domain[~own], PENALTIES, weight[~own]) for own in parts]
    least, score = np.inf, np.empty(len(y))
    for penalty, weights in zip(PENALTIES, zip(*paths, strict=True), strict=True):
        for own, (w, _) in zip(parts, weights, strict=True):
            score[own] = A[own] @ w
        slope, level = line(score, y, part, weight)
        odds = slope * score + level[part]
        loss = weighted_mean(np.logaddexp(0, odds) - y * odds, weight)
        progress.advance()
        if loss < least:
            least, best, kept = loss, penalty, score.copy()
        elif loss > least + PATIENCE:
            break
    return best, kept


def line(score, y, part, weight):
    """Slope, and one intercept per part, that turn scores (N,) into log-odds of y."""
    spread = score.std() or 1.0
    (slope,), level = next(ridge_path(score[:, None] / spread, y, part, [FREE], weight))
    slope = max(slope, LEAST_SLOPE) / spread
    return slope, level - slope * np.bincount(part, weight * score) / np.bincount(part, weight)


def shift(odds, rate):
    """The constant that, added to the log-odds, makes the mean probability equal to the rate."""
    bound = np.abs(odds).max() + np.abs(logit(rate)) + 1
    return brentq(lambda b: expit(odds + b).mean() - rate, -bound, bound)
