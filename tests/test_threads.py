"""Threads: the same results as without them, and what is computed for many columns at once."""

import time
from dataclasses import replace
from threading import current_thread
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from joblib import cpu_count
from sklearn.linear_model import LinearRegression
from threadpoolctl import threadpool_info

from ddml_fs import DDML, CausalFeatureSelector, gain_models
from ddml_fs.datasets import make_domain_data
from ddml_fs.engine import dispatch, start
from ddml_fs.engine.devices import in_threads, library_threads, limit_threads
from ddml_fs.engine.plan import make_plan
from ddml_fs.engine.resources import Resources
from ddml_fs.engine.shared import Shared
from ddml_fs.engine.solve import Settings
from ddml_fs.engine.threads import Stopped, Waiting, beside, each_by_threads
from ddml_fs.nuisances import Forest, shrunken_network
from ddml_fs.score_tests import best_sum, single_tests


@pytest.mark.parametrize("n", [1, 2])
def test_results_are_in_the_order_of_the_items(n):
    def late(i):
        time.sleep(0.002 * (20 - i))
        return i

    with limit_threads(n):
        assert list(in_threads(late, range(20))) == list(range(20))


def test_large_tables_are_not_shared_out():
    """A call that holds much memory has the main thread, one call after another."""
    with limit_threads(2):
        names = {
            held: set(in_threads(lambda _: current_thread().name, range(4), held))
            for held in (0, 1e9)
        }
    assert names[1e9] == {current_thread().name}
    assert current_thread().name not in names[0]


def test_an_error_in_a_thread_is_raised():
    with limit_threads(2), pytest.raises(ZeroDivisionError):
        list(in_threads(lambda i: 1 / i, [2, 0, 1]))


@pytest.mark.parametrize("how", ["closed", "error"])
def test_threads_end_when_nobody_reads_on(how):
    """What runs ends at its next report, and what waits is not begun."""
    begun, ended = [], []

    def work(i, stop):
        begun.append(i)
        if i == 0:
            return i
        if how == "error" and i == 1:
            raise ZeroDivisionError
        try:
            while True:
                time.sleep(0.001)
                stop.advance()
        except Stopped:
            ended.append(i)
            raise

    results = each_by_threads(work, range(9), 2)
    if how == "closed":
        assert next(results) == 0
        results.close()
    else:
        with pytest.raises(ZeroDivisionError):
            list(results)
    assert sorted(ended) == sorted(set(begun) - ({0} if how == "closed" else {0, 1}))
    assert len(begun) < 9


def test_work_beside_a_block():
    """It runs meanwhile; a block that raises stops it, and its own error comes with its result."""
    ended = []

    def work(stop):
        try:
            while True:
                time.sleep(0.001)
                stop.advance()
        except Stopped:
            ended.append("stopped")
            raise

    with pytest.raises(KeyboardInterrupt), beside(work):
        raise KeyboardInterrupt
    assert ended == ["stopped"]
    with beside(lambda stop: 1 / 0) as result:
        pass
    with pytest.raises(ZeroDivisionError):
        result()
    with beside(work, wanted=False) as result:
        pass
    assert result() is None


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("forest", [False, True])
def test_shards_in_threads_give_the_same_predictions(forest, large, monkeypatch):
    """Threads solve large stacks, and small ones if there are few steps."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((200, 12))
    y = X[:, :3].sum(1) + rng.standard_normal(200)
    seed = np.random.RandomState(0)
    plan = make_plan(X, y[:, None], seed, binary_T=np.zeros(12, bool), n_folds=2)
    network = shrunken_network()
    nuisance = Forest(network=network) if forest else network
    few = Resources(memory=2e-3 if forest else 6e-4, detail=False)
    alone = nuisance.predict(plan, resources=few)
    monkeypatch.setattr(dispatch, *(("LARGE_STACK", 0) if large else ("FEW_STEPS", np.inf)))
    monkeypatch.setattr(dispatch, *(("FEW_STEPS", 0) if large else ("LARGE_STACK", np.inf)))
    used = []

    def seen(*args):
        used.append("threads")
        return each_by_threads(*args)

    monkeypatch.setattr(dispatch, "each_by_threads", seen)
    both = nuisance.predict(plan, resources=replace(few, n_jobs=2))
    assert used == ["threads"]
    np.testing.assert_allclose(both.m, alone.m, atol=1e-6)
    np.testing.assert_allclose(both.g, alone.g, atol=1e-6)


def test_with_a_trunk_each_fold_is_regressed_once(monkeypatch):
    """All threads work on the same fold, as the regressions of one fold are all that is kept."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((200, 24))
    y = X[:, :3].sum(1) + rng.standard_normal(200)
    seed = np.random.RandomState(0)
    plan = make_plan(X, y[:, None], seed, binary_T=np.zeros(24, bool), n_folds=3)
    network = shrunken_network().set_params(trunk=True)
    few = Resources(memory=6e-4, detail=False)
    alone = network.predict(plan, resources=few)
    monkeypatch.setattr(dispatch, "FEW_STEPS", np.inf)
    fitted, counted = [], start.WideFit

    def count(plan, k, *args):
        fitted.append(k)
        return counted(plan, k, *args)

    monkeypatch.setattr(start, "WideFit", count)
    both = network.predict(plan, resources=replace(few, n_jobs=2))
    assert fitted == [0, 1, 2]
    np.testing.assert_allclose(both.m, alone.m, atol=1e-6)


def test_threads_stay_with_their_fold():
    """So what a fold needs is seldom made by two of them."""
    waiting = Waiting([0, 1, 3, 4, 5, 6], [0, 0, 1, 1, 1, 2])
    assert waiting.take(None) == (3, 1)  # of the fold with most shards
    assert waiting.take(None) == (0, 0)  # so another thread begins with another fold
    assert [waiting.take(k) for k in (1, 0, 1)] == [(4, 1), (1, 0), (5, 1)]
    assert waiting.take(0) == (6, 2)  # none of its own fold is left


def test_threads_have_their_own_regressions():
    """With a trunk there is one for all, as those of two folds would take too much memory."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((60, 4))
    y = X[:, :1] + rng.standard_normal((60, 1))
    plan = make_plan(X, y, rng, binary_T=np.zeros(4, bool), n_folds=2)
    shared = Shared(plan, Settings(shrinkage=1.0))
    own = shared.for_thread()
    shared.of(np.array([0]))
    own.of(np.array([4]))
    assert (shared.start.last[0], own.start.last[0]) == (0, 1)
    assert shared.start.fit(1) is own.start.fit(1)  # what another thread keeps is not fitted again
    assert list(shared.start.held) == [1]  # and what nobody keeps any more is gone
    wide = Shared(plan, Settings(shrinkage=1.0, trunk=True))
    assert wide.for_thread() is wide


def test_tests_of_single_columns_equal_those_of_one():
    rng = np.random.RandomState(0)
    V, e, variance = rng.standard_normal((3, 60, 5))
    V[:, 2], variance, weight = 0.0, variance**2, rng.rand(60)
    dispersion = np.arange(1.0, 6)
    chi2, df = single_tests(V, e, variance, dispersion, weight)
    for j in range(5):
        given = e[:, j], variance[:, j], dispersion[j], weight
        _, slow, slow_df = best_sum(V[:, [j]], *given)
        assert chi2[j] == pytest.approx(slow)
        assert df[j] == slow_df


def test_single_columns_are_scaled_as_blocks_are():
    """Up to the sign, which no gain depends on; the same with a block among them."""
    rng = np.random.RandomState(0)
    Z, group, weight = rng.standard_normal((80, 6)), np.arange(80) % 2, rng.rand(80) + 0.5
    Z[:, 3], bent = group, np.zeros(6, bool)
    own = np.arange(6)
    fast, features, _ = gain_models.centred_blocks(Z, own, bent, 6, group, weight)
    assert features.tolist() == [0, 1, 2, 4, 5]
    both = np.column_stack([Z, Z[:, 0] ** 2])
    slow, _, _ = gain_models.centred_blocks(
        both, np.r_[own, 5], np.r_[bent, True], 6, group, weight
    )
    np.testing.assert_allclose(np.abs(fast), np.abs(slow[:, :5]), atol=1e-9)


class Recorder(LinearRegression):
    """A regression that notes how many threads the libraries have in the thread that fits it."""

    seen: ClassVar[list] = []

    def fit(self, X, y):
        self.seen.append({info["num_threads"] for info in threadpool_info()})
        return super().fit(X, y)


def test_libraries_have_one_thread_in_threads():
    """OpenMP stores its limit per thread, and two threads with two each would wait."""

    def seen(_):
        return {info["num_threads"] for info in threadpool_info()}

    with limit_threads(2, libraries=True):
        assert set().union(*in_threads(seen, range(4))) == {1}
    X, T, Y = np.random.RandomState(0).standard_normal((3, 60, 2))
    Recorder.seen.clear()
    effect = DDML((Recorder(), Recorder()), n_jobs=2, random_state=0)
    effect.fit(X, Y[:, 0], treatment=T[:, 0])
    assert Recorder.seen
    assert set().union(*Recorder.seen) == {1}


@pytest.mark.parametrize("libraries", [False, True])
def test_linear_algebra_has_several_threads_only_where_asked(libraries):
    """Those of NumPy and of SciPy would wait for each other."""

    def blas():
        return {info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"}

    before, n = blas(), min(2, cpu_count())
    with limit_threads(2, libraries=libraries):
        assert blas() == ({n} if libraries else {1})
        with library_threads():
            assert blas() == {n}
        with library_threads(False):
            assert blas() == ({n} if libraries else {1})
    assert blas() == before


@pytest.mark.parametrize("nuisance", ["auto", "ridge"])
def test_workers_change_nothing_but_rounding(nuisance):
    """Folds, and orders without each domain, are made by threads; residuals have 24 bits."""
    data = make_domain_data(n_samples=250, n_domains=4, random_state=0)
    one, two = (
        CausalFeatureSelector("auto", nuisance=nuisance, n_jobs=n_jobs, random_state=0).fit(
            data.X, data.y, sample_domain=data.sample_domain
        )
        for n_jobs in (1, 2)
    )
    pd.testing.assert_frame_equal(one.effects_, two.effects_, rtol=1e-5, atol=1e-8)
    np.testing.assert_array_equal(one.ranking_, two.ranking_)
    assert one.n_features_auto_ == two.n_features_auto_
