"""The Amazon study: nobody sees a target, and the tables count rightly."""

import numpy as np
import pandas as pd
import pytest
from mrmr import mrmr_classif
from scipy import stats
from sklearn import config_context

from experiments.amazon import classifiers, runs, tables
from experiments.amazon.protocol import PROTOCOLS, Source, by_domain, single_source
from experiments.amazon.selectors import SELECTORS
from experiments.baselines import selectors as rivals

QUICK = {name: SELECTORS[name] for name in SELECTORS if name not in ("DDML-MLP", "DDML-RF")}


def words(seed, n=240, D=24, n_causes=6):
    """Words of one domain: six move the label, the same in all domains; others are noise."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, D)) < rng.uniform(0.2, 0.5, D)).astype(float)
    index = X[:, :n_causes] @ np.resize([1.5, -1.5], n_causes)
    return X, (index - index.mean() + rng.logistic(size=n) > 0).astype(int)


@pytest.fixture(scope="module")
def data():
    return {f"domain {seed}": words(seed) for seed in range(3)}


def test_sources_hold_no_row_of_a_target(data):
    for protocol in PROTOCOLS.values():
        for task in protocol(data):
            names = set(data) - set(task.targets)
            assert len(task.source.y) == sum(len(data[d][1]) for d in names)
            seen = {
                row.tobytes() + bytes([y]) for d in names for row, y in zip(*data[d], strict=True)
            }
            pairs = zip(task.source.X, task.source.y, strict=True)
            assert {row.tobytes() + bytes([y]) for row, y in pairs} <= seen


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_labels_of_targets_change_nothing_but_the_score(data, protocol, tmp_path, monkeypatch):
    """With every label of the targets turned round, right answers become wrong ones."""
    monkeypatch.setattr(classifiers, "scores_with_all", classifiers.scores_with_all.func)
    task = PROTOCOLS[protocol](data)[0]
    turned = type(task)(task.source, {d: (X, 1 - y) for d, (X, y) in task.targets.items()})
    paths = [tmp_path / "as_is.npz", tmp_path / "turned.npz"]
    for one, path in zip((task, turned), paths, strict=True):
        runs.run_job(one, "F-test", [5, 10], path)
    first, second = map(np.load, paths)
    for name in ("order", "chosen", "keys"):
        np.testing.assert_array_equal(first[name], second[name])
    n = first["n_rows"][0]
    for i in range(len(first["keys"])):
        right, wrong = (np.unpackbits(f[f"right{i}"], count=n) for f in (first, second))
        np.testing.assert_array_equal(right, 1 - wrong)


def test_permuted_labels_give_chance(data):
    """A rule learned from noise has a random direction: chance on the mean over permutations."""
    rng, found = np.random.default_rng(0), []
    for _ in range(30):
        shuffled = {d: (X, rng.permutation(y)) for d, (X, y) in data.items()}
        source = single_source(shuffled)[0].source
        order = rivals.FTest().fit(source.X, source.y).order()
        X, y = data["domain 1"]
        found.append(np.mean((classifiers.scores_of("logistic", source, order[:5], X) > 0) == y))
    assert abs(np.mean(found) - 0.5) < 3 * np.std(found) / np.sqrt(30)
    task = single_source(data)[0]
    order = rivals.FTest().fit(task.source.X, task.source.y).order()
    X, y = data["domain 1"]
    seen = classifiers.scores_of("logistic", task.source, order[:5], X)
    assert np.mean((seen > 0) == y) > 0.7


@pytest.mark.parametrize("name", QUICK)
def test_every_selector_finds_words_that_matter(data, name):
    """Five of six causes among the first eight of 24 words, as the lot does once in 146 times."""
    source = Source("pooled", *(np.concatenate([data[d][i] for d in data]) for i in (0, 1)))
    selector = QUICK[name]
    if name.startswith("DDML"):
        selector.fit(source.X, source.y)
        order = np.argsort(selector.ranking_)
    else:
        order = selector.fit(source.X, source.y).order()
    assert sorted(order) == list(range(24))
    assert (np.sum(order[:8] < 6) >= 5) == (name != "random")


def test_mrmr_equals_the_package(data):
    X, y = data["domain 0"]
    order = rivals.MRMR().fit(X, y).order()
    package = mrmr_classif(pd.DataFrame(X), pd.Series(y), K=24, n_jobs=1, show_progress=False)
    assert order.tolist() == package


def test_causal_analysis_finds_the_causes_whatever_the_routing():
    """Skada turns scikit-learn's routing on when it is imported; EconML fails with it."""
    X, y = words(3, D=4, n_causes=2)
    with config_context(enable_metadata_routing=True):
        analysis = rivals.CausalAnalysis(2, random_state=0).fit(X, y)
    assert set(analysis.order()[:2]) == {0, 1}


def test_causal_analysis_of_some_words_alone():
    """The best of the F-test are analysed, the others follow in its order."""
    X, y = words(3, D=6, n_causes=2)
    by_f = rivals.FTest().fit(X, y).order()
    order = rivals.CausalAnalysis(2, n_treatments=3, random_state=0).fit(X, y).order()
    assert set(order[:3]) == set(by_f[:3])
    assert order[3:].tolist() == by_f[3:].tolist()


def test_choice_on_the_source():
    accuracy = {("logistic", 5): 0.80, ("logistic", 10): 0.79, ("naive Bayes", 5): 0.70}
    choice = classifiers.Choice(accuracy, dict.fromkeys(accuracy, 1.0), 1000)
    assert choice.best() == ("logistic", 5)
    # The standard error is √(0.8 · 0.2 / 1000) = 0.013.
    assert choice.as_good() == [("logistic", 5), ("logistic", 10)]
    assert choice.number("SVC") == choice.number("logistic") == 5


@pytest.fixture
def rows():
    """Two selectors with accuracies 0.8 and 0.6 on 2 × 2 tasks of 1000 rows."""
    rng, found = np.random.default_rng(0), []
    for selector, accuracy in (("DDML-MLP", 0.8), ("rival", 0.6)):
        for source, target in (("a", "b"), ("c", "b"), ("a", "d"), ("c", "d")):
            right = rng.permutation(np.arange(1000) < 1000 * accuracy)
            found.append((selector, "logistic", "50", source, target, right.mean(), right))
    names = ["selector", "classifier", "K", "source", "target", "accuracy", "right"]
    return pd.DataFrame(found, columns=names)


def test_means_ranks_and_intervals(rows):
    table = tables.intervals(rows)
    ours = table.loc[("DDML-MLP", "logistic", "50")]
    assert ours["mean"] == pytest.approx(0.8)
    assert ours["rank"] == 1
    # Two targets of 1000 reviews, each answered twice, independently: 4000 answers in all.
    half = 1.96 * np.sqrt(0.8 * 0.2 / 4000)
    assert (ours["high"] - ours["low"]) / 2 == pytest.approx(half, rel=0.15)
    line = tables.differences(rows, "DDML-MLP", [50], ["logistic"]).iloc[0]
    assert line["difference"] == pytest.approx(0.2)
    assert line["low"] < 0.2 < line["high"]


def test_critical_difference_is_the_papers():
    """Seven methods on twelve tasks: 2.60."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        [
            (f"method {m}", "logistic", "50", f"s{t}", "target", rng.random())
            for m in range(7)
            for t in range(12)
        ],
        columns=["selector", "classifier", "K", "source", "target", "accuracy"],
    )
    ranks, pvalue, critical, accuracy = tables.friedman(rows, "logistic", 50)
    assert critical == pytest.approx(2.60, abs=0.005)
    assert ranks.mean() == pytest.approx(4)
    assert pvalue == pytest.approx(stats.friedmanchisquare(*accuracy.to_numpy().T).pvalue)


def test_paper_rows_have_their_printed_means():
    for name, digits in tables.PAPER.items():
        *tasks, mean = (int(d) for d in digits.split())
        assert len(tasks) == 12, name
        # DDML-MLP's row averages 0.7465 where the paper prints 0.7462.
        assert np.mean(tasks) == pytest.approx(mean, abs=3)


def test_agreement_between_sources():
    orders = [np.array([0, 1, 2, 3]), np.array([1, 0, 3, 2]), np.array([2, 3, 0, 1])]
    jobs = pd.DataFrame({"selector": ["s"] * 3, "order": orders})
    assert tables.agreement(jobs, [2]).loc["s", "2"] == pytest.approx(1 / 3)


def test_part_of_a_data_set():
    bunch = type("Bunch", (), {})()
    bunch.X, bunch.y = np.eye(8), np.tile([0, 1], 4)
    bunch.sample_domain, bunch.domain_names = np.repeat([1, 2], 4), ("a", "b")
    part = by_domain(bunch, n_rows=2, n_words=3)
    assert part["b"][0].shape == (2, 3)
    assert part["b"][1].tolist() == [0, 1]
