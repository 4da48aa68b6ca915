"""Scores, tables, adjusted p-values and inputs, against slow twins."""

from dataclasses import fields, replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit

from ddml_fs import inference
from ddml_fs.domains import across_domains
from ddml_fs.effects_table import effects_table, spread_to_copies
from ddml_fs.elimination import eliminate
from ddml_fs.encoding import read_domains, read_target
from ddml_fs.engine.devices import limit_threads
from ddml_fs.engine.network import Sizes
from ddml_fs.engine.plan import make_plan, make_shards
from ddml_fs.engine.resources import Resources
from ddml_fs.evidence import Evidence
from ddml_fs.features import read_features
from ddml_fs.nuisances import Additive
from ddml_fs.ranking import Ranker, feature_scores, ranked_early
from ddml_fs.scores import Logistic, PartiallyLinear
from ddml_fs.sweep import SweepInput, sweep


def test_feature_scores():
    table = pd.DataFrame(
        {
            "effect": [9.0, 9.0],
            "std_effect": [1.0, -2.0],
            "tstat": [-3.0, 2.0],
            "stability": [0.9, 0.6],
            "z": [-4.0, 2.0],
        }
    )
    assert feature_scores("effect", table).tolist() == [1.0, 2.0]
    assert feature_scores("tstat", table).tolist() == [3.0, 2.0]
    assert feature_scores("stability", table).tolist() == [0.9, 0.6]
    assert feature_scores(lambda t: -t["z"], table).tolist() == [4.0, -2.0]
    assert feature_scores(lambda t: [1, 2], table).dtype == np.float64
    for bad in ([1.0], 3.0, [[1.0], [2.0]], [1.0, np.nan]):
        with pytest.raises(ValueError, match="one number per feature"):
            feature_scores(lambda t, bad=bad: bad, table)


def evidence_of(U, I, df=1):
    """Evidence of domains with one fold each, whose features have one column."""
    U, I = np.array(U), np.array(I)
    F = U.shape[1]
    chi2 = U.sum(0) ** 2 / np.maximum(I.sum(0), 1e-12)
    domain, fold = np.arange(len(U)), np.zeros(len(U), int)
    return Evidence(U, I, domain, fold, np.zeros((1, F)), chi2, np.full(F, df), np.ones(F))


def result_of(X, feature=None, classes=None):
    """What the table of effects needs of a sweep: the features and the classes."""
    feature = np.arange(X.shape[1]) if feature is None else np.array(feature)
    features = read_features(X, feature, feature.max() + 1)
    target = SimpleNamespace(classes=None if classes is None else np.array(classes), unit=1.0)
    return SimpleNamespace(features=features, target=target, error_df=np.inf)


def test_effects_table_of_one_outcome():
    rng = np.random.RandomState(0)
    I = rng.uniform(10, 50, (2, 30))
    U = I * np.where(np.arange(30) < 5, 0.7, 0.0) + np.sqrt(I) * rng.standard_normal(I.shape)
    X = rng.standard_normal((40, 30)) * rng.uniform(1, 2, 30)
    X[:, 3] = X[:, 3] > 0
    sd = X.std(0)
    table, shown = effects_table([evidence_of(U, I)], result_of(X), np.array(["a", "b"]))
    assert not shown.any()
    assert "class" not in table
    np.testing.assert_allclose(table["effect[b]"], U[1] / I[1] / sd)
    np.testing.assert_allclose(table["std_effect"], table["effect"] * sd)
    np.testing.assert_allclose(table["tstat"], table["effect"] / table["stderr"])
    p = table["pvalue"].to_numpy()
    same = across_domains(U, I).tau == 0
    assert same.sum() > 10
    z = U.sum(0) / np.sqrt(I.sum(0))
    np.testing.assert_allclose(p[same], 2 * stats.norm.sf(np.abs(z))[same])
    np.testing.assert_allclose(table["holm"], slow_holm(p))
    np.testing.assert_allclose(table["qvalue"], slow_benjamini_hochberg(p))
    np.testing.assert_allclose(table["qvalue"], stats.false_discovery_control(p))


def test_effects_that_differ_are_judged_by_their_spread():
    """Effects of 3 and −1 with errors of 0.1: nothing is sure of a new domain."""
    evidence = evidence_of([[300.0, 100.0], [-100.0, 100.0]], np.full((2, 2), 100.0))
    X = np.random.RandomState(0).standard_normal((20, 2))
    table, _ = effects_table([evidence], result_of(X), np.array(["a", "b"]))
    z = table["z"].to_numpy()
    assert table["pvalue"][0] == pytest.approx(2 * stats.t(1).sf(abs(z[0])))
    assert table["pvalue"][0] > 0.5
    assert table["pvalue"][1] == pytest.approx(2 * stats.norm.sf(np.sqrt(200.0)))


def test_effects_table_shows_the_clearest_class():
    """Three classes: a row is that of the largest |z|, and its p-value pays for the choice."""
    z = np.array([[4.0, 0.5], [-1.0, -2.0], [0.0, 1.0]])
    parts = [evidence_of([row], [[1.0, 1.0]]) for row in z]
    X = np.array([[1.0, -1], [-1, -1], [1, 1], [-1, 1]])  # standard deviations of 1
    result = result_of(X, classes=["x", "y", "z"])
    table, shown = effects_table(parts, result, np.array(["all"]))
    assert shown.tolist() == [0, 1]
    assert table["class"].tolist() == ["x", "y"]
    assert table["effect"].tolist() == table["effect[all]"].tolist() == [4.0, -2.0]
    np.testing.assert_allclose(table["pvalue"], 3 * 2 * stats.norm.sf([4.0, 2.0]))


def test_effects_table_of_blocks():
    """Of k columns the best sum is taken: k − 1 squared errors come off its squared effect."""
    rng = np.random.RandomState(0)
    X = 5 * rng.standard_normal((50, 6))
    evidence = evidence_of([[30.0, 30.0, 1.0]], [[100.0, 100.0, 100.0]])
    evidence = replace(evidence, df=np.array([1, 3, 2]), chi2=np.array([9.0, 9.0, 0.01]))
    table, _ = effects_table([evidence], result_of(X, [0, 1, 1, 1, 2, 2]), np.array(["all"]))
    np.testing.assert_allclose(table["std_effect"], [0.3, np.sqrt(0.09 - 2 * 0.01), 0.0])
    np.testing.assert_allclose(table["effect"][0], 0.3 / X[:, 0].std())
    np.testing.assert_allclose(table["effect"][1], table["std_effect"][1])  # has no unit
    np.testing.assert_allclose(table["pvalue"], stats.chi2.sf([9.0, 9.0, 0.01], [1, 3, 2]))
    assert table["df"].tolist() == [1, 3, 2]


def test_nothing_known_of_a_feature():
    evidence = evidence_of([[3.0, 0.0]], [[1.0, 0.0]])
    evidence = replace(evidence, df=np.array([1, 0]), chi2=np.array([9.0, 0.0]))
    X = np.random.RandomState(0).standard_normal((20, 2))
    table, _ = effects_table([evidence], result_of(X), np.array(["all"]))
    assert table["pvalue"][1] == 1.0
    assert table["z"][1] == 0.0


def test_further_copies_come_after_distinct_features_and_constants_are_last():
    """Columns a and c are copies, b is constant; d is better than they are, and e worse."""
    X = np.column_stack([[1.0, 2, 4], [5.0, 5, 5], [1.0, 2, 4], [3.0, 1, 1.5], [0.0, 2, 0]])
    result = result_of(X)
    features = result.features
    assert features.group.tolist() == [0, -1, 0, 1, 2]
    evidence = [evidence_of([[2.0, 3.0, 1.0]], [[1.0, 1.0, 1.0]])]
    table, _ = effects_table(evidence, result, np.array(["all"]))
    table["score"] = table["z"].abs()
    best_first = np.array([1, 0, 2])
    spread, ranking, order = spread_to_copies(
        table, best_first, features.group, features.scale, list("abcde")
    )
    assert ranking.tolist() == [2, 5, 4, 1, 3]
    assert order.tolist() == [3, 0, 4, 2]
    assert spread.index.tolist() == list("abcde")
    assert spread["score"].tolist() == [2.0, 0.0, 2.0, 3.0, 1.0]
    constant = spread.loc["b"]
    assert constant[["effect", "std_effect", "tstat", "z", "effect[all]"]].tolist() == [0.0] * 5
    assert constant[["pvalue", "qvalue", "holm"]].tolist() == [1.0] * 3
    pd.testing.assert_series_equal(spread.loc["a"], spread.loc["c"], check_names=False)


def test_copies_in_other_units():
    """−2x has minus half the effect of x for one unit, and minus its effect for one sd."""
    x = np.array([0.5, 1.0, 3.0, -2.0, 0.0])
    result = result_of(np.column_stack([x, -2 * x + 3, x**2]))
    features = result.features
    assert features.group.tolist() == [0, 0, 1]
    evidence = evidence_of([[20.0, 3.0], [30.0, 1.0]], np.full((2, 2), 10.0))
    table, _ = effects_table([evidence], result, np.array(["s", "t"]))
    table["score"] = [2.0, 1.0]
    spread, ranking, _ = spread_to_copies(
        table, np.array([0, 1]), features.group, features.scale, list("abc")
    )
    assert ranking.tolist() == [1, 3, 2]
    assert spread["effect"]["a"] == pytest.approx(2.5 / x.std())
    for name in ("effect", "effect[s]", "effect[t]"):
        assert spread[name]["b"] == pytest.approx(-spread[name]["a"] / 2)
    for name in ("stderr", "tau", "tau_low", "tau_high"):
        assert spread[name]["b"] == pytest.approx(spread[name]["a"] / 2)
    for name in ("std_effect", "tstat", "z"):
        assert spread[name]["b"] == pytest.approx(-spread[name]["a"])
    for name in ("pvalue", "qvalue", "holm", "score", "stability", "I2"):
        assert spread[name]["b"] == spread[name]["a"]


def swept(ranking, n_domains, **options):
    """A ranker of six columns in 240 rows; the last is a copy of the first."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((240, 5))
    X = np.column_stack([X, 3 - 2 * X[:, 0]])
    y = (X[:, :5] @ [1.5, 1.0, 0.5, 0.0, 0.0] + rng.standard_normal(240) > 0).astype(int)
    domain = np.arange(240) % n_domains
    features, target = read_features(X, np.arange(6), 6), read_target(y, "auto")
    given = SweepInput(features, target, domain, np.ones(240))
    found = sweep(
        given,
        Additive(),
        Logistic(),
        seed=0,
        n_folds=4,
        covariates="all",
        resources=Resources(),
        dose="linear",
    )
    return Ranker(found, ranking, 1.5, **options)


@pytest.mark.parametrize("ranking", ["gain", "effect", "tstat", "stability"])
@pytest.mark.parametrize("n_domains", [1, 3])
def test_rankers_order_and_split(ranking, n_domains):
    """Domains are left out one at a time or, with one, folds; features come with their columns."""
    ranker = swept(ranking, n_domains)
    order, scores = ranker.order()
    assert order[:3].tolist() == [0, 1, 2]
    assert (np.diff(scores[order]) <= 0).all() or ranking == "gain"
    splits, harmless = ranker.splits()
    assert harmless >= 3
    labels = ranker.result.domain if n_domains > 1 else ranker.result.fold
    assert len(splits) == (n_domains if n_domains > 1 else 4)
    for k, (train, test, columns) in enumerate(splits):
        np.testing.assert_array_equal(test, np.flatnonzero(labels == k))
        assert sorted([*train, *test]) == list(range(240))
        assert sorted(c.tolist() for c in columns) == [[0], [1], [2], [3], [4]]
        assert sorted(c.tolist() for c in columns[:2]) == [[0], [1]]


def test_ranker_without_a_part_forgets_it():
    """What a left-out domain says has no part in the order of the others' rows."""
    ranker = swept("effect", 3)
    _, scores = ranker.order(left_out=1)
    left = [s.without("domain", 1) for s in ranker.result.evidence]
    U, I = left[0].by_domain()
    np.testing.assert_allclose(scores, np.abs(across_domains(U, I).effect))
    gains = swept("gain", 3)
    order, scores = gains.order(left_out=1)
    slow = eliminate(gains.model.without(1), risk_aversion=1.5)
    np.testing.assert_array_equal(order, slow[0])
    np.testing.assert_array_equal(scores, slow[1])
    assert not np.allclose(scores, gains.order()[1])


@pytest.mark.parametrize("n_domains", [1, 3])
def test_orders_that_need_no_evidence(n_domains):
    """They are the same before the sweep as after it, whatever the folds are."""
    late = swept("gain", n_domains)
    given = {f.name: getattr(late.result, f.name) for f in fields(SweepInput)}
    options = "gain", 1.5, True
    with limit_threads(2), ranked_early(SweepInput(**given), *options, Logistic()) as orders:
        pass
    early = Ranker(late.result, *options, orders=orders())
    assert list(early.orders) == [None]
    np.testing.assert_array_equal(early.order()[0], late.order()[0])
    np.testing.assert_array_equal(early.order()[1], late.order()[1])
    assert early.splits()[1] == late.splits()[1]


@pytest.mark.parametrize(
    ("n_threads", "ranking", "score"),
    [(1, "gain", Logistic()), (2, "tstat", Logistic()), (2, "gain", PartiallyLinear())],
)
def test_orders_that_come_after_the_sweep(n_threads, ranking, score):
    """With one worker, an order by effects, or sums by folds."""
    given = {f.name: getattr(swept("gain", 1).result, f.name) for f in fields(SweepInput)}
    options = ranking, 1.5, True, score
    with limit_threads(n_threads), ranked_early(SweepInput(**given), *options) as orders:
        pass
    assert orders() is None


def test_order_is_the_mean_without_each_domain():
    """The mean logarithm of the ranks; two domains are too few, and folds are no domains."""
    ranker = swept("gain", 4)
    assert ranker.left_out.tolist() == [0, 1, 2, 3]
    models = [ranker.model, *(ranker.model.without(k) for k in range(4))]
    orders = [eliminate(model, risk_aversion=1.5).order for model in models]
    ranks = [[list(order).index(f) + 1 for f in range(5)] for order in orders]
    order, scores = ranker.order()
    mean = np.exp(np.log(ranks).mean(0))
    assert (np.diff(mean[order]) >= 0).all()
    np.testing.assert_array_equal(scores, eliminate(ranker.model, risk_aversion=1.5).scores)
    for n_domains in (1, 2):
        ranker = swept("gain", n_domains)
        assert len(ranker.left_out) == 0
        slow = eliminate(ranker.model, risk_aversion=1.5)
        np.testing.assert_array_equal(ranker.order()[0], slow.order)


def test_risky_features_are_tried_last():
    """Six columns; two have effects of either sign, which is more than chance explains."""
    ranker = swept("gain", 3)
    assert not ranker.moving
    found = ranker.orders[None]
    assert not found.risky.any()
    risky = np.array([True, False, True, False, False])
    ranker.orders[0] = found._replace(risky=risky)
    ranker.orders[None] = found._replace(risky=risky)
    splits, harmless = ranker.splits()
    assert harmless == 3
    assert {int(c[0]) for c in splits[0][2][3:]} == {0, 2}
    assert {int(c[0]) for c in splits[1][2][:3]} == {0, 1, 2}
    assert ranker.moving


def test_bent_columns_count_unless_told():
    """Five numbers have three hinges each."""
    assert len(swept("gain", 1).model.own) == 20
    assert len(swept("gain", 1, bends=False).model.own) == 5
    ranker = swept("effect", 1)
    ranker.splits()
    assert "model" not in vars(ranker)  # it is made when it is needed


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
    rng = np.random.default_rng(0)
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
    source, domain, names = read_domains(["b", "a-1", "b"], 3)
    assert source.all()
    assert domain.tolist() == [1, 0, 1]
    assert names.tolist() == ["a-1", "b"]
    assert read_domains([0, 0], 2)[0].all()
    numbers = np.array([3, -1], dtype=object)  # as a column of objects holds them
    assert read_domains(numbers, 2)[0].tolist() == [True, False]
    assert read_domains(pd.Series(["x", "y"], dtype="category"), 2)[1].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([-1, -2], "got only targets"),
        ([1.0, np.nan], "got 1 missing"),
        (["a", None], "got 1 missing"),
        ([1.0, np.inf], "infinity"),
        ([1, 2, 3], "inconsistent"),
        (["a", "-1"], "must not mix text with negative numbers, got the text '-1'"),
        (["a", "-2.0"], "got the text '-2.0'"),
        (np.array(["a", -1], dtype=object), "got 1 texts and 1 numbers"),
    ],
)
def test_read_domains_refuses(labels, words):
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
