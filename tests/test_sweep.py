"""Shards: the same sweep whatever the workers, the devices and the interruptions."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from ddml_fs import DDML, CausalFeatureSelector
from ddml_fs.datasets import make_domain_data
from ddml_fs.engine import dispatch as engine
from ddml_fs.nuisances import Network

NETWORKS = {"nuisance": "shrunken", "random_state": 0}
SMALL = NETWORKS | {"memory_budget": 0.01}  # gigabytes: a few features per shard
CODE = """
from ddml_fs import CausalFeatureSelector
from ddml_fs.datasets import make_domain_data
data = make_domain_data(1, 400, 10, 0, 20, n_targets=0, random_state=0)
CausalFeatureSelector(
    5, nuisance="shrunken", memory_budget=0.01, random_state=0, checkpoint="{folder}"
).fit(data.X, data.y)
"""


@pytest.fixture(scope="module")
def table():
    data = make_domain_data(1, 400, 10, 0, 20, n_targets=0, random_state=0)
    return data.X, data.y


@pytest.fixture(scope="module")
def effects(table):
    return CausalFeatureSelector(5, **NETWORKS).fit(*table).effects_["effect"]


def shards_in(folder):
    return sorted(Path(folder).glob("*/shard-*.npy"))


def test_shards_do_not_change_effects(table, effects):
    sharded = CausalFeatureSelector(5, **SMALL).fit(*table)
    np.testing.assert_allclose(sharded.effects_["effect"], effects, atol=1e-4)


def test_workers_do_not_change_effects(table, effects):
    parallel = CausalFeatureSelector(5, **SMALL, n_jobs=2).fit(*table)
    np.testing.assert_allclose(parallel.effects_["effect"], effects, atol=1e-4)


class NotedJob(engine.Job):
    """Notes in a file when X is brought to a device, and by which process."""

    def rows(self, device):
        with Path(os.environ["NOTES"]).open("a") as notes:
            notes.write(f"{device} {os.getpid()}\n")
        return super().rows(device)


def test_x_reaches_each_device_once(table, effects, tmp_path, monkeypatch):
    monkeypatch.setenv("NOTES", str(tmp_path / "notes"))
    monkeypatch.setattr("ddml_fs.engine.run.Job", NotedJob)
    devices = ["cpu", "cpu:0"]
    found = CausalFeatureSelector(5, device=devices, **SMALL).fit(*table).effects_["effect"]
    np.testing.assert_allclose(found, effects, atol=1e-4)
    notes = [line.split() for line in (tmp_path / "notes").read_text().splitlines()]
    assert sorted(device for device, _ in notes) == devices
    assert len({pid for _, pid in notes} | {os.getpid()}) == 3  # processes of their own
    (tmp_path / "notes").unlink()
    CausalFeatureSelector(5, device="cpu", **SMALL).fit(*table)
    assert (tmp_path / "notes").read_text() == f"cpu {os.getpid()}\n"


def test_a_killed_sweep_goes_on_where_it_stopped(table, effects, tmp_path, monkeypatch):
    process = subprocess.Popen([sys.executable, "-c", CODE.format(folder=tmp_path)])
    deadline = time.monotonic() + 120
    while len(shards_in(tmp_path)) < 2 and time.monotonic() < deadline:
        assert process.poll() is None, "the sweep ended before it could be killed"
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = {file: file.stat().st_mtime_ns for file in shards_in(tmp_path)}
    assert len(before) >= 2

    solved = []
    solve = engine.solve_shard
    monkeypatch.setattr(
        engine, "solve_shard", lambda **task: solved.append(task["s"]) or solve(**task)
    )
    resumed = CausalFeatureSelector(5, checkpoint=tmp_path, **SMALL).fit(*table)
    after = shards_in(tmp_path)
    assert len(solved) == len(after) - len(before) > 0
    assert all(file.stat().st_mtime_ns == made for file, made in before.items())
    np.testing.assert_allclose(resumed.effects_["effect"], effects, atol=1e-4)

    other = CausalFeatureSelector(5, checkpoint=tmp_path, **NETWORKS).fit(*table)
    np.testing.assert_allclose(other.effects_["effect"], effects, atol=1e-4)  # other shards

    solved.clear()
    again = CausalFeatureSelector(8, checkpoint=tmp_path, **SMALL).fit(*table)
    assert not solved  # another number of features is the same sweep
    assert again.effects_["effect"].equals(resumed.effects_["effect"])
    CausalFeatureSelector(5, checkpoint=tmp_path, **SMALL | {"random_state": 1}).fit(*table)
    assert len(solved) == len(after)  # another seed is another one


@pytest.mark.parametrize("options", [SMALL, {"random_state": 0}], ids=["networks", "default"])
def test_progress_is_told(table, capsys, options):
    CausalFeatureSelector(5, verbose=True, **options).fit(*table)
    assert "sweep: " in capsys.readouterr().err


def test_threads_are_given_back(table):
    before = torch.get_num_threads()
    DDML(Network(epochs=1, gates=False), random_state=0).fit(*table, treatment=0)
    assert torch.get_num_threads() == before


def test_column_as_treatment():
    """A column of X by number or by name, and the same column beside X, agree within noise."""
    data = make_domain_data(1, 1000, 5, 0, 5, kind="continuous", n_targets=0, random_state=0)
    names = [f"f{j}" for j in range(10)]
    frame = pd.DataFrame(data.X, columns=names)
    j = int(np.argmax(np.abs(data.theta)))
    by_number = DDML("mlp", random_state=0).fit(data.X, data.y, treatment=j)
    by_name = DDML("mlp", random_state=0).fit(frame, data.y, treatment=names[j])
    assert by_number.effect_ == by_name.effect_
    assert names[j] not in by_name.roles_.index
    beside = DDML("mlp", random_state=0).fit(
        np.delete(data.X, j, 1), data.y, treatment=data.X[:, j]
    )
    assert by_number.effect_ == pytest.approx(beside.effect_, abs=3 * beside.stderr_)
    for wrong in ("g", 10, -1):
        with pytest.raises(ValueError, match="treatment must be a column"):
            DDML().fit(frame, data.y, treatment=wrong)


@pytest.mark.parametrize("nuisance", ["mlp", "ridge", "rf", "smooth", "boosting", "stacked"])
def test_logistic_score(nuisance):
    """The log-odds of a binary outcome, given what confounds them."""
    rng = np.random.RandomState(0)
    n = 2000 if nuisance == "rf" else 4000  # forests take their time
    X = rng.standard_normal((n, 6))
    t = 0.7 * X[:, 0] + rng.standard_normal(n)
    p = 1 / (1 + np.exp(-(0.3 * t + X[:, 0] - 0.5 * X[:, 1])))
    y = rng.binomial(1, p)
    effect = DDML(nuisance, score="logistic", random_state=0).fit(X, y, treatment=t)
    assert effect.effect_ == pytest.approx(0.3, abs=3 * effect.stderr_)
    assert 0.02 < effect.stderr_ < 0.06
    assert effect.nuisances_["g"].between(0, 1).all()
    with pytest.raises(ValueError, match="coded 0/1"):
        DDML(nuisance, score="logistic").fit(X, t, treatment=t[::-1])


def test_ridge_has_no_latents(table):
    X, y = table
    effect = DDML("ridge", random_state=0).fit(X, y, treatment=0)
    assert not hasattr(effect, "roles_")
    assert np.isfinite(effect.effect_)
    assert "inputs_kept" not in effect.diagnostics()
    with pytest.raises(AttributeError, match="no latents"):
        effect.represent(X)


def test_shrunken_networks_learn_what_ridge_misses():
    """Confounders that act by their absolute value: a ridge leaves them, a network does not."""
    rng = np.random.RandomState(0)
    C = rng.standard_normal((4000, 2))
    h = 2 * np.abs(C).sum(1)
    decoy = h[:, None] + rng.standard_normal((4000, 1))
    y = rng.binomial(1, 1 / (1 + np.exp(-(h - h.mean()))))
    X = np.hstack([decoy, C, rng.standard_normal((4000, 6))])
    spurious = {}
    for nuisance in ("ridge", "shrunken"):
        fitted = CausalFeatureSelector(5, nuisance=nuisance, random_state=0).fit(X, y)
        spurious[nuisance] = abs(fitted.effects_["tstat"].iloc[0])
    assert spurious["ridge"] > 20
    assert spurious["shrunken"] < 3


def test_forests_meet_a_column_that_some_folds_lack():
    """One row in 60 has it, so four of five folds are without it in hold, one in training."""
    rng = np.random.RandomState(0)
    X = np.column_stack([rng.binomial(1, 0.5, (60, 2)), np.arange(60) == 7]).astype(float)
    selector = CausalFeatureSelector(1, nuisance="shrunken_rf", random_state=0)
    effects = selector.fit(X, rng.permutation(np.arange(60) % 2)).effects_
    assert np.isfinite(effects["score"]).all()
