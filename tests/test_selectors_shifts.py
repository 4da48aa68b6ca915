"""The rivals made for the shift study, on data of known truth."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.inspection import permutation_importance
from sklearn.metrics import log_loss as log_loss_of
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import has_fit_parameter

from experiments.baselines.selectors import (
    InvariantPrediction,
    MixedMutualInformation,
    PermutationImportance,
    Terciles,
)
from experiments.baselines.selectors.cifd import CIFD
from experiments.baselines.selectors.permutation import area, log_likelihood

RIVALS = {
    "ICP": InvariantPrediction(n_candidates=4),
    "mutual information": MixedMutualInformation(random_state=0),
    "CIFD": Terciles(CIFD()),
    "rows": PermutationImportance(random_state=0),
    "domains, AUC": PermutationImportance(held_out="domains", scoring="auc", random_state=0),
}


@pytest.fixture(scope="module")
def table():
    """A strong cause, a weak one with two values, noise, a constant; three domains."""
    rng = np.random.default_rng(0)
    domain = np.repeat([1, 2, 3], 400)
    strong, noise = rng.normal(size=(2, len(domain)))
    weak = rng.integers(0, 2, len(domain))
    y = (2 * strong + 1.2 * weak - 0.6 + rng.logistic(size=len(domain)) > 0).astype(int)
    return np.column_stack([noise, weak, np.ones(len(domain)), strong]), y, domain


@pytest.mark.parametrize("name", RIVALS)
def test_the_strong_cause_is_first_and_noise_after_the_weak_one(table, name):
    X, y, domain = table
    rival = RIVALS[name]
    knows_domains = has_fit_parameter(rival, "sample_domain")
    rival.fit(X, y, **({"sample_domain": domain} if knows_domains else {}))
    order = rival.order().tolist()
    assert order[0] == 3
    assert order.index(1) < order.index(0)
    assert sorted(order) == [0, 1, 2, 3]


def test_terciles_show_a_bent_effect_that_the_median_hides():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 4))
    X[:, 1] = rng.integers(0, 2, 900)
    y = ((np.abs(X[:, 3]) > 0.7) ^ (rng.random(900) < 0.1)).astype(int)
    assert Terciles(CIFD()).fit(X, y).order()[0] == 3


def test_bent_effects_are_information():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = (np.abs(X[:, 2]) > 0.7).astype(int)
    assert MixedMutualInformation(random_state=0).fit(X, y).order()[0] == 2


@pytest.fixture(scope="module")
def unstable():
    """A cause, and a consequence of the label whose sign changes from domain to domain."""
    rng = np.random.default_rng(0)
    domain = np.repeat([1, 2, 3, 4], 400)
    cause = rng.normal(size=len(domain)) + 0.8 * (domain - 2.5)
    y = (1.5 * cause + rng.logistic(size=len(domain)) > 0).astype(int)
    strength = np.array([3.0, 3.0, 0.0, -3.0])[domain - 1]
    consequence = strength * (y - 0.5) + rng.normal(size=len(domain))
    noise = rng.normal(size=len(domain))
    return np.column_stack([consequence, cause, noise]), y, domain


def test_invariant_prediction_prefers_the_invariant_cause(unstable):
    X, y, domain = unstable
    rival = InvariantPrediction().fit(X, y, sample_domain=domain)
    assert rival.n_accepted_ > 0
    assert rival.order()[0] == 1
    assert rival.order()[-1] == 0


def test_without_domains_invariant_prediction_keeps_the_order_of_its_screen(unstable):
    X, y, _ = unstable
    rival = InvariantPrediction(n_candidates=2).fit(X, y)
    assert rival.n_accepted_ == 0
    assert rival.order().tolist()[:2] == rival.candidates_


def test_candidates_of_invariant_prediction_do_not_repeat_each_other(unstable):
    """Indicators of all levels of a category add up to one, and so do a column and its rest."""
    X, y, domain = unstable
    X = np.column_stack([X, -X[:, 1], X[:, 0] + X[:, 1]])
    rival = InvariantPrediction().fit(X, y, sample_domain=domain)
    assert np.linalg.matrix_rank(X[:, rival.candidates_]) == len(rival.candidates_) == 3
    assert sorted(rival.order()) == [0, 1, 2, 3, 4]


def test_left_out_domains_unmask_the_consequence(unstable):
    X, y, domain = unstable
    within = PermutationImportance(random_state=0).fit(X, y, sample_domain=domain)
    across = PermutationImportance(held_out="domains", random_state=0)
    across.fit(X, y, sample_domain=domain)
    assert within.order().tolist() == [1, 0, 2]
    assert across.order().tolist() == [1, 2, 0]
    assert across.scores_[0] < 0  # boosting would do better without it


def test_permutation_importance_is_scikit_learns(table):
    """Up to the draws of thirty shufflings."""
    X, y, _ = table
    rival = PermutationImportance(n_repeats=30, random_state=0)
    train, test = np.arange(900), np.arange(900, 1200)
    found = rival._loss(X, y, train, test)
    model = HistGradientBoostingClassifier(max_leaf_nodes=8, learning_rate=0.05, random_state=0)
    expected = permutation_importance(
        model.fit(X[train], y[train]),
        X[test],
        y[test],
        scoring="neg_log_loss",
        n_repeats=30,
        random_state=1,
    )
    error = 4 * expected.importances_std / np.sqrt(30)
    assert (np.abs(found - expected.importances_mean) <= error + 1e-12).all()


def test_measures_of_permutation_importance():
    rng = np.random.default_rng(0)
    y, chance = rng.integers(0, 2, 50), rng.random((3, 50)).round(1).clip(0.05, 0.95)
    assert area(y, chance) == pytest.approx(np.mean([roc_auc_score(y, c) for c in chance]))
    loss = np.mean([log_loss_of(y, c) for c in chance])
    assert log_likelihood(y, chance) == pytest.approx(-loss)
