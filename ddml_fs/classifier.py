"""EffectClassifier: a linear classifier whose weights are the features' shrunken effects."""

from typing import Any, Self

import numpy as np
from scipy.special import expit, log_expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.utils import _safe_indexing
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from ddml_fs.domains import TINY, across_domains
from ddml_fs.empirical_bayes import PRIORS, learn_prior
from ddml_fs.encoding import read_domains
from ddml_fs.selector import CausalFeatureSelector
from ddml_fs.validation import check_option, forget_fit

THRESHOLDS = ("share", "calibrated")
POOLINGS = ("auto", "common", "random")
LEAST_SLOPE = 1e-3  # effects that say nothing give chances near one half, not reversed ones


class EffectClassifier(ClassifierMixin, BaseEstimator):
    """Classify by the sum of the features' effects on the log-odds of the label.

    Each weight is an effect of its own, Σ_j x_j · E[θ_j | θ̂_j]: the estimate θ̂_j = U_j / I_j of the
    selector's sweep, shrunken by a prior that all features' estimates decide. With a normal prior
    it is U_j / (I_j + 1/τ²). In contrast to a regression's coefficients, weights do not make up
    for one another, so that they hold where features go together in other ways.

    Parameters
    ----------
    selector : CausalFeatureSelector, optional
        Estimates the effects, and selects the features that count. Unless given, ridge nuisances
        and all features.
    prior : {"mixture", "normal"}, default="mixture"
        Of the true effects, learned from the estimates: a mixture of normals, from no effect to
        large ones, or one normal. Effects are those of a step from 0 to 1 for two-valued columns,
        and of one standard deviation for others.
    threshold : {"share", "calibrated"}, default="share"
        "share": a label is given to as large a share of the source as has it; with balanced labels
        this is the median score. "calibrated": where a logistic regression of the label on the
        score is even; the better one for chances of rare labels.
    pooling : {"auto", "common", "random"}, default="auto"
        How effects of several domains are made one. "common": as if all domains had the same
        effect. "random": the random-effects mean, less certain for features whose effects differ
        between domains. "auto": what classifies better when one source is left out at a time.

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        Log-odds per unit of a feature; copies of a column share its weight.
    intercept_ : array of shape (1,) or (n_classes,)
    classes_ : array of shape (n_classes,)
    priors_ : list of Prior
        Learned for each row of ``coef_``.
    pooling_ : str
        "common" or "random".
    selector_ : CausalFeatureSelector
        Fitted; ``selector_.effects_`` holds the effects before they are shrunken.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Scores of a sum of nearly marginal effects are too large: the slope and the threshold that turn
    them into chances come from scores of rows whose own fold gave no evidence to the weights.

    With ample rows and few columns, columns that nearly repeat another count twice; logistic
    regression is the better choice there.

    Examples
    --------
    >>> from ddml_fs import EffectClassifier
    >>> from ddml_fs.datasets import make_domain_data
    >>> data = make_domain_data(n_samples=300, random_state=0)
    >>> model = EffectClassifier().fit(data.X, data.y, sample_domain=data.sample_domain)
    >>> model.predict_proba(data.X[:3]).shape
    (3, 2)
    """

    __metadata_request__fit = {"sample_domain": True}  # noqa: RUF012

    def __init__(
        self,
        selector: CausalFeatureSelector | None = None,
        *,
        prior: str = "mixture",
        threshold: str = "share",
        pooling: str = "auto",
    ) -> None:
        self.selector = selector
        self.prior = prior
        self.threshold = threshold
        self.pooling = pooling

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, sample_domain: Any = None) -> Self:
        """Estimate the effects and learn how far to trust them.

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
        check_option(self.prior, "prior", PRIORS)
        check_option(self.threshold, "threshold", THRESHOLDS)
        check_option(self.pooling, "pooling", POOLINGS)
        source = read_domains(sample_domain, _num_samples(X))[0]
        if y is not None:  # the selector says what is missing
            seen = y if source.all() else _safe_indexing(y, np.flatnonzero(source))
            check_classification_targets(seen)
        selector = self._selector()
        found = selector.fit_sweep(X, y, sample_domain)
        self.selector_, self.n_features_in_ = selector, selector.n_features_in_
        if hasattr(selector, "feature_names_in_"):
            self.feature_names_in_ = selector.feature_names_in_
        self.classes_ = found.target.classes

        self.pooling_ = self._choose_pooling(found)
        self.priors_, coef, intercept = [], [], []
        for outcome, evidence in zip(found.target.outcomes, found.evidence, strict=True):
            weights, prior = self._weights(evidence, found.columns, self.pooling_)
            score = self._left_out_scores(found, evidence, "fold", self.pooling_)
            slope, threshold = self._line(score, outcome)
            self.priors_.append(prior)
            coef.append(slope * weights)
            intercept.append(-slope * (threshold + self._centre(found.X) @ weights))
        self.coef_, self.intercept_ = np.array(coef), np.array(intercept)
        return self

    def _choose_pooling(self, found):
        """The pooling whose scores, from all other domains, part the classes better."""
        if self.pooling != "auto":
            return self.pooling
        if found.domain.max() == 0:
            return "common"
        areas = dict.fromkeys(("common", "random"), 0.0)
        for pooling in areas:
            for outcome, evidence in zip(found.target.outcomes, found.evidence, strict=True):
                score = self._left_out_scores(found, evidence, "domain", pooling)
                for d in np.unique(found.domain):
                    own = found.domain == d
                    if np.ptp(outcome[own]) > 0:
                        areas[pooling] += roc_auc_score(outcome[own], score[own])
        return max(areas, key=lambda pooling: areas[pooling])

    def _left_out_scores(self, found, evidence, part, pooling):
        """Scores of all rows less that of the mean row, (N,).

        Each is made without the evidence of the row's own fold or domain. The folds' weights
        differ, and far from the mean row even a small difference would set their rows apart.
        """
        label, centre = getattr(found, part), self._centre(found.X)
        score = np.empty(len(label))
        for k in np.unique(label):
            weights, _ = self._weights(evidence.without(part, k), found.columns, pooling)
            score[label == k] = safe_sparse_dot(found.X[label == k], weights) - centre @ weights
        return score

    def _centre(self, X):
        """The mean row, (D,)."""
        return np.asarray(X.mean(0)).ravel()

    def _selector(self):
        if self.selector is None:
            return CausalFeatureSelector(
                1.0, nuisance="ridge", task="classification", random_state=0
            )
        if not isinstance(self.selector, CausalFeatureSelector):
            raise ValueError(
                f"selector must be a CausalFeatureSelector or None, got {self.selector!r}."
            )
        return clone(self.selector).set_params(task="classification")

    def _weights(self, evidence, columns, pooling):
        """Shrunken effects per unit of the features, (D,), and the prior that shrank them."""
        U, I = evidence.by_domain()
        if pooling == "common":
            U, I = U.sum(0, keepdims=True), I.sum(0, keepdims=True)
        pooled = across_domains(U, I)
        # In steps that mean the same in every domain: a rare 0/1 column has a small standard
        # deviation here, and need not be rare elsewhere.
        step = np.where(columns.binary, columns.unit, 1.0)
        effect = pooled.effect / step
        stderr = np.where(I.max(0) > TINY, pooled.stderr / step, np.inf)
        prior = learn_prior(effect, stderr, self.prior)
        shrunken = prior.posterior_mean(effect, stderr) * step

        used = self.selector_.get_support() & (columns.group >= 0)
        group = columns.group[used]
        weights = np.zeros(len(used))
        weights[used] = shrunken[group] / columns.sd[used] / np.bincount(group)[group]
        return weights, prior

    def _line(self, score, outcome):
        """Slope and threshold that turn scores into log-odds of the outcome."""
        threshold = np.quantile(score, 1 - outcome.mean())
        spread = score.std() or 1.0
        model = LogisticRegression(C=np.inf, fit_intercept=self.threshold == "calibrated")
        model.fit((score - threshold)[:, None] / spread, outcome)
        slope = max(model.coef_[0, 0], LEAST_SLOPE) / spread
        return slope, threshold - np.sum(model.intercept_) / slope

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of the second class, (n_samples,), or of each of several, (n_samples, C)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        odds = safe_sparse_dot(X, self.coef_.T) + self.intercept_
        return odds[:, 0] if len(self.classes_) == 2 else odds

    def predict(self, X: Any) -> np.ndarray:
        """The most likely class of each row, (n_samples,)."""
        odds = self.decision_function(X)
        return self.classes_[(odds > 0).astype(int) if odds.ndim == 1 else odds.argmax(1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Chances of the classes, (n_samples, n_classes)."""
        odds = self.decision_function(X)
        if odds.ndim == 1:
            return expit(np.column_stack([-odds, odds]))
        return softmax(log_expit(odds), axis=1)
