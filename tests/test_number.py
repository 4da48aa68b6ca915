"""How many features to keep: losses, their errors, and the rule, against slow twins."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import KFold

from ddml_fs.fewest import DOUBT, as_good
from ddml_fs.number import (
    area,
    candidate_numbers,
    choose_number,
    default_downstream,
    loss_of,
    number_to_select,
    weight_of,
)


class Answers(ClassifierMixin, BaseEstimator):
    """A classifier that has answers alone."""

    def fit(self, X, y):
        self.model_ = RidgeClassifier().fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)


def labelled(n_classes, seed=0):
    """Rows whose classes depend on the first column; its coarse values make ties."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((300, 2)).round(1)
    noisy = X[:, 0] + rng.standard_normal(300)
    codes = np.digitize(noisy, np.quantile(noisy, np.arange(1, n_classes) / n_classes))
    return X, np.array(["low", "middle", "up"])[codes]


@pytest.mark.parametrize("model", [LogisticRegression(), RidgeClassifier()])
def test_loss_of_two_classes(model):
    X, y = labelled(2)
    model.fit(X[:100], y[:100])
    loss, influence = loss_of(model, X[100:], y[100:])
    area = roc_auc_score(y[100:] == model.classes_[1], model.decision_function(X[100:]))
    assert loss == pytest.approx(1 - area)
    assert influence.shape == (200,)
    assert influence.sum() == pytest.approx(0, abs=1e-12)


def test_loss_of_three_classes():
    """The mean of each against the rest; a class that rows do not show is left out."""
    X, y = labelled(3)
    model = LogisticRegression().fit(X[:100], y[:100])
    chances = model.predict_proba(X[100:])
    loss, influence = loss_of(model, X[100:], y[100:])
    assert loss == pytest.approx(1 - roc_auc_score(y[100:], chances, multi_class="ovr"))
    assert influence.sum() == pytest.approx(0, abs=1e-12)
    some = 100 + np.flatnonzero(y[100:] != "middle")
    areas = [
        roc_auc_score(y[some] == c, chances[some - 100, k]) for k, c in ((0, "low"), (2, "up"))
    ]
    assert loss_of(model, X[some], y[some])[0] == pytest.approx(1 - np.mean(areas))


def test_loss_of_numbers():
    """1 − R², whatever the mean of the domain."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((200, 2))
    y = X[:, 0] + rng.standard_normal(200)
    model = LinearRegression().fit(X[:100], y[:100])
    loss, influence = loss_of(model, X[100:], y[100:])
    predicted = model.predict(X[100:])
    shift = (y[100:] - predicted).mean()
    assert loss == pytest.approx(1 - r2_score(y[100:], predicted + shift))
    assert loss_of(model, X[100:], y[100:] + 50)[0] == pytest.approx(loss)
    each = (y[100:] - predicted - shift) ** 2 / y[100:].var()
    assert (influence**2).sum() == pytest.approx(each.var() / 100)


def test_loss_of_answers_alone():
    X, y = labelled(2)
    model = Answers().fit(X[:100], y[:100])
    loss, influence = loss_of(model, X[100:], y[100:])
    share = (model.predict(X[100:]) != y[100:]).mean()
    assert loss == pytest.approx(share)
    assert (influence**2).sum() == pytest.approx(share * (1 - share) / 200)


def slow_delong(scores, positive):
    """Areas of two scores and the covariance of these, from all pairs of rows (DeLong, 1988).

    With n in place of n − 1 in the variances of the placements.
    """
    ones, zeros = np.flatnonzero(positive), np.flatnonzero(~positive)
    wins = np.array(
        [[[(s[i] > s[j]) + 0.5 * (s[i] == s[j]) for j in zeros] for i in ones] for s in scores]
    )
    of_ones, of_zeros = wins.mean(2), wins.mean(1)
    covariance = np.cov(of_ones, bias=True) / len(ones) + np.cov(of_zeros, bias=True) / len(zeros)
    return wins.mean((1, 2)), covariance


def test_area_equals_delong():
    rng = np.random.RandomState(0)
    positive = rng.uniform(size=60) < 0.3
    scores = (rng.standard_normal((2, 60)) + positive).round(1)  # with ties
    areas, covariance = slow_delong(scores, positive)
    found = [area(s, positive) for s in scores]
    np.testing.assert_allclose([a for a, _ in found], areas)
    influence = np.array([i for _, i in found])
    np.testing.assert_allclose(influence @ influence.T, covariance)
    np.testing.assert_allclose(influence.sum(1), 0, atol=1e-12)


def no_error(losses, n=10):
    """Influences of rows that leave no doubt."""
    return [np.zeros((losses.shape[1], n)) for _ in losses]


def test_as_good_takes_the_fewest():
    losses = np.tile([0.4, 0.3, 0.2, 0.2, 0.2], (4, 1))
    assert as_good(losses, np.ones(4), no_error(losses)) == 2
    losses[:, 1] = 0.2029
    assert as_good(losses, np.ones(4), no_error(losses)) == 1
    losses[:, 1] = 0.2031  # more than the margin
    assert as_good(losses, np.ones(4), no_error(losses)) == 2


def test_as_good_takes_all_in_doubt():
    """Differences that vary between parts, or between the rows of a part."""
    losses = np.tile([0.4, 0.2, 0.2, 0.2], (4, 1))
    vary = losses + np.array([[0.02], [-0.02], [0.02], [-0.02]]) * [0, 1, 1, 0]
    assert as_good(vary, np.ones(4), no_error(vary)) == 3
    rows = np.zeros((4, 100))
    rows[:3] = np.where(np.arange(100) % 2, 1, -1) * 0.003  # an error of 0.03 in every part
    assert as_good(losses, np.ones(4), [rows] * 4) == 3
    assert as_good(losses[:1], np.ones(1), [rows]) == 3
    assert as_good(losses[:1], np.ones(1), [0.01 * rows]) == 1
    same = np.tile(rows[0], (4, 1))  # rows that are hard for all numbers of features
    assert as_good(losses, np.ones(4), [same] * 4) == 1


def test_as_good_reference():
    """Where fewer are clearly better than all, it is these that others must be as good as."""
    losses = np.tile([0.3, 0.202, 0.2, 0.204], (4, 1))
    assert as_good(losses, np.ones(4), no_error(losses)) == 1
    losses[:, 1] = 0.2035  # as good as all features, but not as the best
    assert as_good(losses, np.ones(4), no_error(losses)) == 2
    rows = np.zeros((4, 100))
    rows[3] = np.where(np.arange(100) % 2, 1, -1) * 0.002  # all features: an error of 0.02
    # The best is no longer known to be better, and nothing is known to be as good as all.
    assert as_good(losses, np.ones(4), [rows] * 4) == 3


def test_as_good_is_a_paired_t_test():
    """With equal weights and many rows, the reach is that of a one-sided t-interval."""
    rng = np.random.RandomState(0)
    losses = 0.2 + 0.01 * rng.standard_normal((6, 2))
    test = stats.ttest_rel(losses[:, 0], losses[:, 1])
    high = test.confidence_interval(1 - 2 * DOUBT).high
    assert high > 0
    for margin in (high - 1e-6, high + 1e-6):
        assert as_good(losses, np.full(6, 0.7), no_error(losses), margin) == int(margin < high)


def test_as_good_weighs_parts():
    """What a part of hardly any weight says does not count."""
    losses = np.array([[0.2, 0.2], [0.2, 0.2], [0.2, 0.2], [0.9, 0.2]])
    assert as_good(losses, np.array([1, 1, 1, 1e-6]), no_error(losses)) == 0
    assert as_good(losses, np.ones(4), no_error(losses)) == 1


def test_weights():
    """Half the weight at ten rows of each class's harmonic sum; none with one class."""
    assert weight_of(np.ones(50), True) == 0.0
    assert weight_of(np.array(["a"] * 20 + ["b"] * 20), True) == pytest.approx(0.5)
    few, many = np.r_[np.ones(5), np.zeros(995)], np.arange(1000) % 2
    assert weight_of(few, True) == pytest.approx(4.975 / 14.975)
    assert weight_of(many, True) == pytest.approx(250 / 260)
    assert weight_of(np.arange(30.0), False) == pytest.approx(0.75)


def four_of_twenty(kind):
    """Columns 0 to 3 matter alike; the orders of five splits put them first."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((1500, 20))
    index = 1.5 * X[:, :4].sum(1)
    y = index + rng.standard_normal(1500) if kind == "number" else rng.binomial(1, expit(index))
    splits = [
        (train, test, [np.array([j]) for j in np.r_[rng.permutation(4), 4 + rng.permutation(16)]])
        for train, test in KFold(5).split(X)
    ]
    return X, y, splits


@pytest.mark.parametrize("kind", ["label", "number"])
def test_choose_number_finds_four(kind):
    X, y, splits = four_of_twenty(kind)
    number, numbers, losses = choose_number(X, y, splits, [default_downstream(kind == "label")])
    assert number == 4
    assert numbers == candidate_numbers(20)
    assert losses.shape == (5, len(numbers))
    gains = -np.diff(losses.mean(0))
    assert (gains[:3] > 10 * np.abs(gains[3:]).max()).all()


def test_choose_number_by_errors_and_by_several_models():
    """A classifier without chances counts its errors; losses of several models are averaged."""
    X, y, splits = four_of_twenty("label")
    names = np.array(["no", "yes"])[y]
    models = [Answers(), LogisticRegression()]
    both = [choose_number(X, names, splits, [model])[2] for model in models]
    number, _, losses = choose_number(X, names, splits, models)
    assert number >= 4
    np.testing.assert_allclose(losses, np.mean(both, 0))
    train, test, order = splits[0]
    model = Answers().fit(X[train][:, order[0]], names[train])
    errors = model.predict(X[test][:, order[0]]) != names[test]
    assert both[0][0, 0] == pytest.approx(errors.mean())


def test_choose_number_of_blocks():
    """A feature may have several columns, which come together."""
    X, y, splits = four_of_twenty("label")
    pairs = [np.array([0, 1]), np.array([2, 3]), *(np.array([j, j + 1]) for j in range(4, 20, 2))]
    splits = [(train, test, pairs) for train, test, _ in splits]
    number, numbers, losses = choose_number(X, y, splits, [LogisticRegression()])
    assert number == 2
    assert numbers[-1] == 10
    train, test, _ = splits[0]
    model = LogisticRegression().fit(X[train][:, :4], y[train])
    area = roc_auc_score(y[test], model.predict_proba(X[test][:, :4])[:, 1])
    assert losses[0, 1] == pytest.approx(1 - area)


def test_choose_number_with_parts_of_one_class():
    """They say nothing; where no part says anything, all features are kept."""
    X, y, splits = four_of_twenty("label")
    model = [LogisticRegression()]
    one_class = [(train, test[y[test] == 1], order) for train, test, order in splits]
    number, numbers, losses = choose_number(X, y, one_class, model)
    assert number == 20
    assert losses.shape == (0, len(numbers))
    mixed = choose_number(X, y, [*splits, *one_class], model)
    plain = choose_number(X, y, splits, model)
    assert mixed[0] == plain[0] == 4
    np.testing.assert_array_equal(mixed[2], plain[2])


def test_choose_number_with_one_split():
    """The shortest order bounds the numbers."""
    X, y, splits = four_of_twenty("label")
    train, test, order = splits[0]
    number, numbers, losses = choose_number(
        X, y, [(train, test, order[:6])], [LogisticRegression()]
    )
    assert numbers == [1, 2, 3, 4, 5, 6]
    assert losses.shape == (1, 6)
    assert number >= 4


@pytest.mark.parametrize("n", [1, 2, 10, 11, 100, 12345])
def test_candidate_numbers(n):
    numbers = np.array(candidate_numbers(n))
    assert numbers[0] == 1
    assert numbers[-1] == n
    assert (np.diff(numbers) > 0).all()
    assert (numbers[1:] <= 1.2 * numbers[:-1] + 1).all()


def test_number_to_select():
    assert number_to_select(7, 9) == 7
    assert number_to_select(1.0, 9) == 9
    assert number_to_select(0.01, 9) == 1
    with pytest.raises(ValueError, match=r"at most the number of features \(9\), got 10"):
        number_to_select(10, 9)


def test_risky_features_must_be_better():
    """All features, the last number, are chosen if they are clearly better, and not in doubt."""
    none = [np.zeros((3, 9))] * 4
    same = np.array([[0.3, 0.2, 0.2], [0.3, 0.2, 0.19], [0.3, 0.2, 0.21], [0.3, 0.2, 0.2]])
    better = same - np.array([0.0, 0.0, 0.05])
    assert as_good(same, np.ones(4), none, risky=True) == 1
    assert as_good(better, np.ones(4), none, risky=True) == 2
    # Chance within the parts counts too.
    rows = np.zeros((3, 100))
    rows[2] = np.random.default_rng(0).standard_normal(100) * 0.05
    assert as_good(better, np.ones(4), [rows] * 4, risky=True) == 1


def test_fewer_are_taken_in_doubt_if_effects_move():
    """A number that is not shown to be worse will do; one that is clearly worse will not."""
    losses = np.tile([0.4, 0.203, 0.2, 0.2], (4, 1))
    vary = losses + np.array([[0.02], [-0.02], [0.02], [-0.02]]) * [0, 1, 0, 0]
    assert as_good(vary, np.ones(4), no_error(vary)) == 2
    assert as_good(vary, np.ones(4), no_error(vary), moving=True) == 1
    losses[:, 1] = 0.21
    assert as_good(losses, np.ones(4), no_error(losses), moving=True) == 2
    # All features are still taken if they have risky ones and are clearly better.
    better = vary - [0, 0, 0, 0.05]
    assert as_good(vary, np.ones(4), no_error(vary), risky=True, moving=True) == 1
    assert as_good(better, np.ones(4), no_error(better), risky=True, moving=True) == 3
