"""Orders, numbers of features, tables, adjusted p-values and inputs, against slow twins."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import KFold

from ddml_fs import inference
from ddml_fs.domains import Evidence
from ddml_fs.effects_table import effects_table, spread_to_copies
from ddml_fs.encoding import read_columns, read_domains, read_target
from ddml_fs.engine.network import Sizes
from ddml_fs.engine.plan import make_plan, make_shards
from ddml_fs.ranking import (
    candidate_numbers,
    choose_number,
    default_downstream,
    feature_scores,
    greedy_order,
)
from ddml_fs.scores import Logistic


def slow_greedy(scores, X, beta):
    """mRMR with every correlation computed afresh at every step."""
    taken, left = [], list(range(len(scores)))
    while left:
        values = []
        for j in left:
            shared = [np.corrcoef(X[:, j], X[:, k])[0, 1] ** 2 for k in taken]
            values.append(scores[j] ** 2 - beta * (np.mean(shared) if taken else 0.0))
        taken.append(left.pop(int(np.argmax(values))))
    return taken


@pytest.mark.parametrize("beta", [0.3, 1.0])
def test_greedy_order_equals_twin(beta):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((100, 15)) @ rng.standard_normal((15, 15)) + 5
    scores = rng.uniform(0, 1, 15)
    order = greedy_order(scores, X, beta)
    assert order.tolist() == slow_greedy(scores, X, beta)
    assert order.tolist() != np.argsort(-scores).tolist()


def test_greedy_order_without_redundancy_is_a_sort():
    scores = np.array([0.2, 0.9, 0.2, -0.5])
    assert greedy_order(scores, np.ones((5, 4)), 0.0).tolist() == [1, 0, 2, 3]


def test_greedy_order_takes_a_constant_column():
    """It shares nothing with others: its value is its score alone."""
    rng = np.random.RandomState(0)
    x = rng.standard_normal(50)
    X = np.column_stack([x, np.full(50, 7.0), x + 0.01 * rng.standard_normal(50)])
    assert greedy_order(np.array([0.9, 0.1, 0.8]), X, 1.0).tolist() == [0, 1, 2]


def four_of_twenty(kind):
    """Columns 0 to 3 matter alike; the orders of five splits put them first."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((1000, 20))
    index = 1.5 * X[:, :4].sum(1)
    y = index + rng.standard_normal(1000) if kind == "number" else rng.binomial(1, expit(index))
    splits = [
        (train, test, np.r_[rng.permutation(4), 4 + rng.permutation(16)])
        for train, test in KFold(5).split(X)
    ]
    return X, y, splits


@pytest.mark.parametrize("kind", ["label", "number"])
def test_choose_number_finds_four(kind):
    X, y, splits = four_of_twenty(kind)
    number, numbers, losses = choose_number(X, y, splits, default_downstream(kind == "label"))
    assert number == 4
    assert numbers == candidate_numbers(20)
    assert losses.shape == (5, len(numbers))
    gains = -np.diff(losses.mean(0))
    assert (gains[:3] > 10 * np.abs(gains[3:]).max()).all()


def test_choose_number_by_errors():
    """A classifier without probabilities counts its errors."""
    X, y, splits = four_of_twenty("label")
    names = np.array(["no", "yes"])[y]
    number, _, losses = choose_number(X, names, splits, RidgeClassifier())
    assert number == 4
    train, test, order = splits[0]
    model = RidgeClassifier().fit(X[train][:, order[:1]], names[train])
    errors = model.predict(X[test][:, order[:1]]) != names[test]
    assert losses[0, 0] == pytest.approx(errors.mean())


def test_choose_number_with_one_split_and_eligible_features():
    """The shortest order bounds the numbers; test rows need not show every class."""
    X, y, splits = four_of_twenty("label")
    train, test, order = splits[0]
    only = [(train, test[y[test] == 1], order[:6])]
    number, numbers, losses = choose_number(X, y, only, LogisticRegression())
    assert numbers == [1, 2, 3, 4, 5, 6]
    assert losses.shape == (1, 6)
    assert number in numbers


@pytest.mark.parametrize("n", [1, 2, 10, 11, 100, 12345])
def test_candidate_numbers(n):
    numbers = np.array(candidate_numbers(n))
    assert numbers[0] == 1
    assert numbers[-1] == n
    assert (np.diff(numbers) > 0).all()
    assert (numbers[1:] <= 1.2 * numbers[:-1] + 1).all()


def test_feature_scores():
    table = pd.DataFrame(
        {
            "effect": [1.0, -2.0],
            "tstat": [-3.0, 2.0],
            "stability": [0.9, 0.6],
            "z": [-4.0, 2.0],
            "invariance": [0.5, 1.0],
        }
    )
    assert feature_scores("causal", table, 100).tolist() == [0.2, 0.2]
    assert feature_scores("effect", table, 100).tolist() == [1.0, 2.0]
    assert feature_scores("tstat", table, 100).tolist() == [3.0, 2.0]
    assert feature_scores("stability", table, 100).tolist() == [0.9, 0.6]
    assert feature_scores(lambda t: -t["z"], table, 100).tolist() == [4.0, -2.0]
    assert feature_scores(lambda t: [1, 2], table, 100).dtype == np.float64
    for bad in ([1.0], 3.0, [[1.0], [2.0]], [1.0, np.nan]):
        with pytest.raises(ValueError, match="one number per feature"):
            feature_scores(lambda t, bad=bad: bad, table, 100)


def evidence_of(U, I):
    """Evidence of domains with one fold each."""
    U, I = np.array(U), np.array(I)
    return Evidence(U, I, np.arange(len(U)), np.zeros(len(U), int), np.zeros((1, U.shape[1])))


def test_effects_table_of_one_outcome():
    rng = np.random.RandomState(0)
    I = rng.uniform(10, 50, (2, 30))
    U = I * np.where(np.arange(30) < 5, 0.7, 0.0) + np.sqrt(I) * rng.standard_normal(I.shape)
    sd = rng.uniform(1, 2, 30)
    table, shown = effects_table([evidence_of(U, I)], sd, np.array(["a", "b"]), None)
    assert not shown.any()
    assert "class" not in table
    np.testing.assert_allclose(table["effect[b]"], U[1] / I[1] / sd)
    np.testing.assert_allclose(table["std_effect"], table["effect"] * sd)
    np.testing.assert_allclose(table["tstat"], table["effect"] / table["stderr"])
    p = table["pvalue"].to_numpy()
    np.testing.assert_allclose(table["holm"], slow_holm(p))
    np.testing.assert_allclose(table["qvalue"], slow_benjamini_hochberg(p))
    np.testing.assert_allclose(table["qvalue"], stats.false_discovery_control(p))


def test_effects_table_shows_the_clearest_class():
    """Three classes: a row is that of the largest |z|, and its p-value pays for the choice."""
    z = np.array([[4.0, 0.5], [-1.0, -2.0], [0.0, 1.0]])
    parts = [evidence_of([row], [[1.0, 1.0]]) for row in z]
    table, shown = effects_table(parts, np.ones(2), np.array(["all"]), np.array(["x", "y", "z"]))
    assert shown.tolist() == [0, 1]
    assert table["class"].tolist() == ["x", "y"]
    assert table["effect"].tolist() == table["effect[all]"].tolist() == [4.0, -2.0]
    np.testing.assert_allclose(table["pvalue"], 3 * 2 * stats.norm.sf([4.0, 2.0]))


def test_copies_share_a_rank_and_constants_are_last():
    """Columns a and c are copies, b is constant; d is better than they are, and e worse."""
    X = np.column_stack([[1.0, 2, 4], [5.0, 5, 5], [1.0, 2, 4], [3.0, 1, 0], [0.0, 2, 0]])
    columns = read_columns(X)
    group = columns.group
    assert group.tolist() == [0, -1, 0, 1, 2]
    evidence = [evidence_of([[2.0, 3.0, 1.0]], [[1.0, 1.0, 1.0]])]
    table, _ = effects_table(evidence, np.ones(3), np.array(["all"]), None)
    table["score"] = table["z"].abs()
    best_first = np.array([1, 0, 2])
    spread, ranking, order = spread_to_copies(table, best_first, group, columns.sd, list("abcde"))
    assert ranking.tolist() == [2, 5, 2, 1, 4]
    assert order.tolist() == [3, 0, 2, 4]
    assert spread.index.tolist() == list("abcde")
    assert spread["score"].tolist() == [2.0, 0.0, 2.0, 3.0, 1.0]
    constant = spread.loc["b"]
    assert constant[["effect", "std_effect", "tstat", "z", "effect[all]"]].tolist() == [0.0] * 5
    assert constant[["pvalue", "qvalue", "holm"]].tolist() == [1.0] * 3
    pd.testing.assert_series_equal(spread.loc["a"], spread.loc["c"], check_names=False)


def slow_holm(p):
    """The largest of (n − rank + 1)·p over all p-values up to one's own."""
    n, ranked = len(p), sorted(p)
    return [min(1.0, max((n - i) * q for i, q in enumerate(ranked) if q <= own)) for own in p]


def slow_benjamini_hochberg(p):
    """The smallest of n·p / rank over all p-values from one's own."""
    n, ranked = len(p), sorted(p)
    return [min(n * q / (i + 1) for i, q in enumerate(ranked) if q >= own) for own in p]


def test_holm_equals_twin():
    rng = np.random.RandomState(0)
    for n in (1, 2, 40):
        p = rng.uniform(size=n) ** 3
        np.testing.assert_allclose(inference.holm(p), slow_holm(p))
    assert inference.holm(np.array([0.02, 0.02])).tolist() == [0.04, 0.04]


def tolerance(n_features, n_draws, quantile):
    """Four standard errors of a 95 % quantile of maxima: √(0.95·0.05 / n) over their density."""
    share = 2 * stats.norm.cdf(quantile) - 1
    density = n_features * share ** (n_features - 1) * 2 * stats.norm.pdf(quantile)
    return 4 * np.sqrt(0.95 * 0.05 / n_draws) / density


def test_bootstrap_maxima():
    """Orthogonal influences: Šidák's quantile. Copies of one: that of a single feature."""
    rng = np.random.RandomState(0)
    independent = np.linalg.qr(rng.standard_normal((200, 20)))[0] * rng.uniform(1, 9, 20)
    sidak = stats.norm.ppf(0.5 + 0.95 ** (1 / 20) / 2)
    maxima = inference.bootstrap_maxima(independent, 10000, rng)
    assert abs(np.quantile(maxima, 0.95) - sidak) < tolerance(20, 10000, sidak)
    copies = np.repeat(independent[:, :1], 20, 1)
    copies[:, 5] = 0  # no information
    maxima = inference.bootstrap_maxima(copies, 10000, rng)
    assert abs(np.quantile(maxima, 0.95) - 1.96) < tolerance(1, 10000, 1.96)
    assert (np.diff(maxima) >= 0).all()


def test_logistic_effect():
    """A small effect on the log-odds, with true nuisances.

    By Stein's identity E[v·y] = θ·E[p'(a + θv)], so one step from zero is wrong by a share of at
    most θ²/2 · |p'''/p'| ≤ θ²/2 to the first order. The standard error is that of the information.
    """
    rng = np.random.RandomState(0)
    n, theta = 20000, 0.2
    X, v = rng.standard_normal((2, n))
    p = expit(0.8 * X - 0.3)
    y = rng.binomial(1, expit(0.8 * X - 0.3 + theta * v))
    estimate = Logistic().of_residuals(v, y - p, p, 1.0)
    assert abs(estimate.theta - theta) < 4 * estimate.stderr + theta * theta**2 / 2
    assert estimate.influence.mean() == pytest.approx(0, abs=1e-6)  # δ
    # The two differ by a share of about θ²/2, and by chance: v²·e² has sd 1.5 of its mean, so the
    # root of its mean 1.5 / 2 / √n = 0.0053; four times that is 0.021.
    assert estimate.stderr == pytest.approx(1 / np.sqrt(np.sum(v**2 * p * (1 - p))), rel=0.041)


def test_read_columns():
    x = np.array([0.5, 1.5, 2.5, 4.0])
    two = np.array([3.0, 7.0, 7.0, 3.0])
    columns = read_columns(np.column_stack([x, np.full(4, 9.0), two, x, 10 - two, 2 * x]))
    assert columns.group.tolist() == [0, -1, 1, 0, 2, 3]  # a column upside down is no copy
    assert columns.binary.tolist() == [False, True, True, False]
    assert columns.X.dtype == np.float32
    np.testing.assert_array_equal(columns.X[:, 1], [0, 1, 1, 0])
    np.testing.assert_array_equal(columns.X[:, 2], [1, 0, 0, 1])
    np.testing.assert_allclose(columns.X[:, 0], x - x.mean())
    np.testing.assert_allclose(columns.unit, [x.std(), 0.5, 0.5, 2 * x.std()])
    np.testing.assert_allclose(columns.distinct_sd, [x.std(), two.std(), two.std(), 2 * x.std()])
    nothing = read_columns(np.ones((4, 2)))
    assert nothing.X.shape == (4, 0)
    assert nothing.group.tolist() == [-1, -1]


@pytest.mark.parametrize(
    ("y", "n_classes", "n_outcomes"),
    [
        (np.arange(40) % 2, 2, 1),
        (np.arange(40) % 2 == 0, 2, 1),
        (np.arange(40) % 20, 20, 20),
        (np.arange(40.0) % 3, 3, 3),
        (np.array(["a", "b"] * 20), 2, 1),
        (np.array(["a", "b"] * 20, dtype=object), 2, 1),
        (np.arange(42) % 21, None, 1),
        (np.arange(40) % 2 + 0.5, None, 1),
    ],
)
def test_read_target_by_itself(y, n_classes, n_outcomes):
    target = read_target(y, "auto")
    assert len(target.outcomes) == n_outcomes
    if n_classes is None:
        assert target.classes is None
        assert target.n_least == len(y)
        np.testing.assert_array_equal(target.outcomes[0], y)
    else:
        assert len(target.classes) == n_classes
        assert target.n_least == np.unique(y, return_counts=True)[1].min()
        np.testing.assert_array_equal(target.classes[target.y], y)
        np.testing.assert_array_equal(target.outcomes[-1], y == target.classes[-1])


def test_read_target_as_told():
    codes = np.arange(60) % 30
    assert len(read_target(codes, "classification").outcomes) == 30
    assert read_target(codes % 2, "regression").classes is None
    for y, task, words in (
        (np.array(["a", "b"]), "regression", "numeric"),
        (np.ones(5), "regression", "must vary"),
        (np.ones(5), "auto", "at least 2 classes"),
        (np.array([0, 0, 0, 1]), "auto", "at least 2 rows"),
    ):
        with pytest.raises(ValueError, match=words):
            read_target(y, task)


def test_read_domains():
    source, domain, names = read_domains(None, 3)
    assert source.all()
    assert domain.tolist() == [0, 0, 0]
    assert names.tolist() == ["all"]
    source, domain, names = read_domains([5, -1, 2, 5, -2], 5)
    assert source.tolist() == [True, False, True, True, False]
    assert domain.tolist() == [1, 0, 1]
    assert names.tolist() == [2, 5]
    source, domain, names = read_domains(["b", "-1", "b"], 3)  # a name is no number
    assert source.all()
    assert names.tolist() == ["-1", "b"]
    assert read_domains([0, 0], 2)[0].all()
    for labels, words in (
        ([-1, -2], "targets alone"),
        ([1.0, np.nan], "NaN"),
        ([1, 2, 3], "inconsistent"),
    ):
        with pytest.raises(ValueError, match=words):
            read_domains(labels, 2)


def planned(n_samples, n_treatments, n_repeats=1):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((n_samples, n_treatments))
    options = {"binary_T": [False] * n_treatments, "n_folds": 3, "n_repeats": n_repeats}
    return make_plan(X, np.arange(n_samples, dtype=float)[:, None], rng, **options)


# Of 47 rows the folds fit on 27 or 28: one batch of 16 in each, but three or four batches of 7.
@pytest.mark.parametrize("batch_size", ["auto", 7])
@pytest.mark.parametrize("memory", [1.0, 1e-3, 1e-9])
@pytest.mark.parametrize(("n_treatments", "n_repeats"), [(1, 1), (10, 2), (97, 1)])
def test_shards_hold_every_problem_once(batch_size, memory, n_treatments, n_repeats):
    plan = planned(47, n_treatments, n_repeats)
    shards = make_shards(plan, Sizes(), batch_size, memory)
    assert sorted(i for shard in shards for i in shard) == list(range(plan.n_problems))
    for shard in shards:
        folds = plan.problem(shard)[0].tolist()
        counts = [folds.count(fold) for fold in set(folds)]
        assert len(set(counts)) == 1  # equally many of each fold, and at least one
        changes = sum(a != b for a, b in pairwise(folds))
        assert changes == len(counts) - 1  # problems of one fold stand side by side
        assert len(shard) <= 256


def test_less_memory_gives_more_shards():
    plan = planned(60, 40)
    counts = [len(make_shards(plan, Sizes(), memory=m)) for m in (1.0, 0.01, 1e-9)]
    assert counts[0] == 1
    assert counts[0] < counts[1] < counts[2]
    assert counts[2] == 40  # one treatment on all folds is the least
