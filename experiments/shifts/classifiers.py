"""The classifiers that are tried on the unseen domain."""

import numpy as np
from anchorboosting import AnchorBooster
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter

from ddml_fs import EffectClassifier

GAMMAS = (1.0, 4.0, 16.0)  # 1 is boosting without regard to domains


class AnchorBoosting(ClassifierMixin, BaseEstimator):
    """Boosting of the anchor loss (``anchorboosting``), the domains being the anchor.

    As large as the study's boosting otherwise. The weight γ of the anchor is the one with the best
    mean AUC when one source domain is left out at a time; with one domain there is nothing to
    weigh.

    Parameters
    ----------
    gammas : sequence of float
    n_rounds : int, default=100
    """

    def __init__(self, gammas=GAMMAS, n_rounds=100):
        self.gammas = gammas
        self.n_rounds = n_rounds

    def fit(self, X, y, sample_domain):
        """Choose γ, then learn from all rows; y is 0/1."""
        self.classes_ = np.array([0, 1])
        areas = [self._left_out_auc(gamma, X, y, sample_domain) for gamma in self.gammas]
        self.gamma_ = self.gammas[int(np.argmax(areas))]
        self.booster_ = self._fitted(self.gamma_, X, y, sample_domain)
        return self

    def _fitted(self, gamma, X, y, domain):
        booster = AnchorBooster(
            gamma,
            objective="binary",
            num_boost_round=self.n_rounds,
            learning_rate=0.05,
            num_leaves=8,
            min_gain_to_split=0.1,  # as its authors advise
            num_threads=1,
            verbosity=-1,
        )
        return booster.fit(X, y, Z=np.unique(domain, return_inverse=True)[1])

    def _left_out_auc(self, gamma, X, y, domain):
        """Sum over the source domains that have both labels."""
        total = 0.0
        for d in np.unique(domain):
            own = domain == d
            if not own.all() and np.ptp(y[own]) > 0 and np.ptp(y[~own]) > 0:
                booster = self._fitted(gamma, X[~own], y[~own], domain[~own])
                total += roc_auc_score(y[own], booster.predict(X[own]))
        return total

    def predict_proba(self, X):
        """Chances of the classes, (N, 2)."""
        chance = self.booster_.predict(X)
        return np.column_stack([1 - chance, chance])


CLASSIFIERS = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=1000)),
    "boosting": HistGradientBoostingClassifier(
        max_leaf_nodes=8, learning_rate=0.05, random_state=0
    ),
    "effects": EffectClassifier(),
    "anchor boosting": AnchorBoosting(),
}
MAIN = ("logistic", "boosting")  # those that every selector is tried with


def score(name, task, columns):
    """Learn from some columns of the source, and measure on the target.

    Parameters
    ----------
    name : str
        Of a classifier.
    task : Task
    columns : int array

    Returns
    -------
    measures : dict
        ``auc``, ``accuracy`` and ``log_loss``.
    """
    model, source = clone(CLASSIFIERS[name]), task.source
    # A pipeline's fit has no such parameter.
    knows_domains = has_fit_parameter(model, "sample_domain")
    domain = {"sample_domain": source.domain} if knows_domains else {}
    model.fit(source.X[:, columns], source.y, **domain)
    return measures(task.y, model.predict_proba(task.X[:, columns])[:, 1])


def measures(y, chance):
    """AUC, accuracy and log-loss of chances of label 1."""
    return {
        "auc": float(roc_auc_score(y, chance)),
        "accuracy": float(np.mean((chance > 0.5) == y)),
        "log_loss": float(log_loss(y, chance, labels=[0, 1])),
    }
