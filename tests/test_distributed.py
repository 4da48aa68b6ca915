"""Clusters of dask and of Ray: the results of one process, also if a worker is killed."""

import contextlib
import os
import pickle
import signal
import socket
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from typer.testing import CliRunner

from ddml_fs import CausalFeatureSelector, backends, read_blocks
from ddml_fs.cautions import DDMLWarning
from ddml_fs.cli import app, scheduler
from ddml_fs.datasets import make_domain_data
from ddml_fs.engine.checkpoint import Checkpoint
from ddml_fs.nuisances import Network

NETWORK = Network(hidden=4, latent=4, epochs=3, gates=False)
LOST = r"1 worker of the cluster was lost during the run; \d shards? (was|were) computed again"


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed", reason="needs the extra 'dask'")
    import dask

    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        # Three processes that import torch one by one would take most of the time of these tests.
        context = distributed.utils.get_mp_context()
        packages = ["distributed", "dask.dataframe", "ddml_fs.engine.run", "ddml_fs.partitions"]
        context.set_forkserver_preload(packages)
        options = {"n_workers": 3, "threads_per_worker": 1, "dashboard_address": None}
        with (
            distributed.LocalCluster(processes=True, **options) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            yield client


@pytest.fixture(scope="module")
def table():
    data = make_domain_data(1, 300, 8, 0, 12, n_targets=0, random_state=0)
    return data.X, data.y


@pytest.fixture(scope="module")
def frame():
    data = make_domain_data(3, 200, 4, 2, 4, n_targets=1, random_state=0)
    frame = pd.DataFrame(data.X, columns=[f"c{j}" for j in range(10)])
    return frame.assign(bought=np.array(["no", "yes"])[data.y], site=data.sample_domain)


def networks(**options):
    """A sweep in about ten shards."""
    return CausalFeatureSelector(5, nuisance=NETWORK, memory_budget=2e-3, random_state=0, **options)


@pytest.fixture(scope="module")
def effects(table):
    return networks().fit(*table).effects_["effect"]


def ridge(**options):
    return CausalFeatureSelector(4, nuisance="ridge", scale="mean", random_state=0, **options)


def test_networks_on_dask(client, table, effects, monkeypatch):
    """Shards are computed by the workers, each of which has the table once."""
    shared, calls = [], []
    share, each_on = backends.DaskBackend.share, backends.each_on

    def noted(self, value):
        shared.append(share(self, value))
        assert len(client.who_has(shared[-1])[shared[-1].key]) == 3
        return shared[-1]

    def watched(backend, function, work, *rest):
        work = list(work)
        calls.extend(call for _, call in work)
        return each_on(backend, function, iter(work), *rest)

    monkeypatch.setattr(backends.DaskBackend, "share", noted)
    monkeypatch.setattr("ddml_fs.engine.dispatch.each_on", watched)
    with parallel_config(backend="dask", client=client), warnings.catch_warnings():
        warnings.simplefilter("error", DDMLWarning)
        found = networks().fit(*table).effects_["effect"]
    np.testing.assert_allclose(found, effects, atol=1e-6)
    assert len(shared) == 1
    assert len(calls) > 5
    small = [{name: value for name, value in call.items() if name != "job"} for call in calls]
    assert len(pickle.dumps(small)) < 200 * len(calls)


def test_explicitly_one_worker_is_this_process(client, table, effects, monkeypatch):
    monkeypatch.setattr(backends.DaskBackend, "share", None)  # would raise
    with parallel_config(backend="dask", client=client):
        found = networks(n_jobs=1).fit(*table).effects_["effect"]
    np.testing.assert_array_equal(found, effects)


def test_sums_of_a_dask_table(client, frame):
    """The cluster sums up its partitions, and gives the folds and the sums of one process."""
    dd = pytest.importorskip("dask.dataframe")
    expected = ridge().fit(frame, "bought", "site")
    partitions = dd.from_pandas(frame.sort_index(), npartitions=11)
    with parallel_config(backend="dask", client=client):
        found = ridge().fit(partitions, "bought", "site")
        np.testing.assert_allclose(found.scores_, expected.scores_, atol=1e-9)
        assert list(found.domains_) == [1, 2, 3]
        numbers = ridge().fit(partitions.drop(columns="bought"), "c0", "site")
        direct = ridge().fit(frame.drop(columns="bought"), "c0", "site")
        np.testing.assert_allclose(numbers.scores_, direct.scores_, atol=1e-9)
        with pytest.raises(ValueError, match="y must be numeric for task='regression'"):
            ridge(task="regression").fit(partitions, "bought", "site")
        with pytest.raises(ValueError, match="'c1' must hold finite numbers"):
            ridge().fit(partitions.assign(c1=np.nan), "bought", "site")
        with pytest.raises(ValueError, match="X must have rows of a source domain"):
            ridge().fit(partitions.assign(site=-1), "bought", "site")


def test_sums_of_blocks_that_a_cluster_is_sent(client, frame, monkeypatch):
    blocks = read_blocks(frame, "bought", "site", rows_per_block=70)
    expected = ridge().fit(blocks)
    sums = []
    monkeypatch.setattr(
        "ddml_fs.engine.moments.each_on",
        lambda *given: (sums.append(part) or part for part in backends.each_on(*given)),
    )
    with parallel_config(backend="dask", client=client):
        found = ridge().fit(blocks)
    assert sorted(i for i, _ in sums) == list(range(len(sums)))
    assert len(sums) > 8
    np.testing.assert_allclose(found.scores_, expected.scores_, atol=1e-9)


def test_command_line(client, frame, tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    frame.iloc[:200, :5].assign(y=frame["bought"]).to_csv(path, index=False)
    used = []
    share = backends.DaskBackend.share
    monkeypatch.setattr(
        backends.DaskBackend, "share", lambda self, value: used.append(1) or share(self, value)
    )

    def run(*arguments):
        command = ["select", str(path), "--label", "y", "--n-features", "2", *arguments]
        return CliRunner().invoke(app, command)

    address = client.scheduler.address
    done = run("--nuisance", "shrunken", "--cluster", address)
    assert done.exit_code == 0, done.output
    assert used == [1]
    assert done.output == run("--nuisance", "shrunken").output.replace("\r", "")
    assert run("--scheduler", address).exit_code == 0
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setattr(scheduler, "SECONDS", 0.5)
        failed = run("--cluster", f"tcp://127.0.0.1:{free.getsockname()[1]}")
    assert failed.exit_code == 2
    assert "none answers at 'tcp://127.0.0.1:" in failed.output
    failed = run("--cluster", address, "--n-jobs", "2")
    assert failed.exit_code == 2
    assert "--n-jobs is for workers of this machine" in failed.output
    failed = run("--cluster", address, "--scheduler", address)
    assert "--cluster must be a column if --scheduler is given" in failed.output
    monkeypatch.setattr(scheduler, "find_spec", lambda name: None)
    failed = run("--cluster", address)
    assert failed.exit_code == 2
    assert "pip install 'ddml-fs[dask]'" in failed.output


def test_a_killed_worker_of_dask(client, table, effects, monkeypatch, tmp_path, caplog):
    """It is killed when the first shard has arrived, and others are under way."""
    killed, save = [], Checkpoint.save

    def save_and_kill(self, *args):
        save(self, *args)
        if not killed:
            killed.extend(client.run(os.getpid).values())
            os.kill(killed[0], signal.SIGKILL)

    monkeypatch.setattr(Checkpoint, "save", save_and_kill)
    with parallel_config(backend="dask", client=client), pytest.warns(DDMLWarning, match=LOST):
        found = networks(checkpoint=tmp_path).fit(*table).effects_["effect"]
    assert killed
    assert "1 worker of the cluster was lost" in caplog.text
    np.testing.assert_allclose(found, effects, atol=1e-6)


def test_ray_with_a_killed_worker(table, effects, monkeypatch):
    ray = pytest.importorskip("ray", reason="needs the extra 'ray'")
    psutil = pytest.importorskip("psutil")
    from ray.util.joblib import register_ray

    killed = []

    def kill():
        """Kill a worker that is at work; its first shard takes seconds, for imports."""
        while not killed and not ended.wait(0.05):
            for child in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error, IndexError):
                    if not killed and child.cmdline()[0] == "ray::PoolActor.run_batch":
                        killed.append(child.pid)
                        child.kill()

    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    ended, killer = threading.Event(), threading.Thread(target=kill)
    ray.init(
        num_cpus=2, include_dashboard=False, object_store_memory=80_000_000, log_to_driver=False
    )
    try:
        register_ray()
        killer.start()
        with parallel_config(backend="ray"), pytest.warns(DDMLWarning, match=LOST):
            found = networks().fit(*table).effects_["effect"]
    finally:
        ended.set()
        killer.join()
        ray.shutdown()
    assert killed
    np.testing.assert_allclose(found, effects, atol=1e-5)
