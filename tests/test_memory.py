"""The memory ceiling: the cost model against measured peaks, budgets, and exhausted devices."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ddml_fs import CausalFeatureSelector
from ddml_fs.datasets import make_domain_data
from ddml_fs.engine import dispatch
from ddml_fs.engine.memory import WORKERS, make_ceiling
from ddml_fs.engine.plan import make_plan, make_shards
from ddml_fs.engine.resources import Resources
from ddml_fs.engine.run import make_job
from ddml_fs.engine.shared import Shared
from ddml_fs.engine.solve import Settings
from ddml_fs.engine.wide_ridge import bytes_of_ridge
from ddml_fs.nuisances import Network
from ddml_fs.nuisances.network import shrunken_network

ROOT = Path(__file__).resolve().parents[1]
NETWORK = Network(hidden=4, latent=4, epochs=2, gates=False)


def plan_of(N, D):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((N, D))
    return make_plan(X, X[:, :1] + 1, rng, binary_T=np.zeros(D, bool), n_folds=5)


@pytest.fixture(scope="module")
def table():
    data = make_domain_data(1, 300, 5, 0, 7, n_targets=0, random_state=0)
    return data.X, data.y


def networks(**options):
    return CausalFeatureSelector(5, nuisance=NETWORK, random_state=0, **options)


@pytest.fixture(scope="module")
def effects(table):
    return networks().fit(*table).effects_["effect"]


# --- Measured peaks, in processes of their own ---


def read(name):
    return int(Path("/proc/self/status").read_text().split(f"{name}:")[1].split()[0]) * 1024


def peak_of(function):
    """Bytes by which the memory of this process grows at most while a function runs."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
    before = read("VmRSS")
    function()
    return read("VmHWM") - before


STACKS = {  # network, rows, columns, treatments, summaries
    "weights": (Network(epochs=1, gates=False), 500, 600, 12, False),
    "rows": (Network(epochs=1, gates=False), 10_000, 20, 6, False),
    "shrunken": (shrunken_network().set_params(epochs=1), 4000, 60, 40, False),
    "summaries": (Network(epochs=1, gates=False), 1000, 100, 10, True),
}


def measure_stacks():
    """Measured and modelled bytes of stacks."""
    networks().fit(np.random.RandomState(0).standard_normal((100, 6)), np.arange(100) % 2)
    found = {}
    for name, (network, N, D, p, detail) in STACKS.items():
        plan, settings = plan_of(N, D), network.settings(False)
        kind = {"shrunken": settings.shrinkage > 0, "detail": detail}
        kind["quadratic"] = settings.quadratic
        members = np.arange(plan.n_problems).reshape(5, D)[:, :p].ravel()
        job = make_job(plan, [members], settings, None, False, detail)
        peak = peak_of(lambda job=job: solve_one(job))
        ceiling = make_ceiling(plan, settings, None, **kind)
        ridge = bytes_of_ridge(plan, settings.shrinkage) if settings.shrinkage else 0
        found[name] = peak, ceiling.table + len(members) * ceiling.problem + ridge
    return found


def solve_one(job):
    """The only shard of a job, with its inputs."""
    inputs = Shared(job.plan, job.settings).of(job.shards[0])
    return dispatch.solve_shard(job, 0, inputs, torch.device("cpu"))


def measure_fit(budget):
    """Bytes of a whole fit, in a process that has fitted before."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((6000, 40))
    y = X[:, 0] + rng.standard_normal(6000)
    options = {"nuisance": NETWORK, "covariates": "all"}
    selector = CausalFeatureSelector(5, memory_budget=budget, random_state=0, **options)
    selector.fit(X[:500], y[:500])
    return peak_of(lambda: selector.fit(X, y))


BUDGET = 0.06


@pytest.fixture(scope="module")
def measured():
    """Measured and modelled bytes of stacks, and the bytes of a fit, from a new process."""
    if sys.platform != "linux":
        pytest.skip("memory is measured as Linux reports it")
    # Memory that is free is given back at once, so that growth is what is used.
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    code = (
        "import json, test_memory as t; "
        "print(json.dumps([t.measure_stacks(), t.measure_fit(t.BUDGET)]))"
    )
    argv = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def test_cost_model_is_a_ceiling_within_a_factor_of_three(measured):
    for name, (peak, model) in measured[0].items():
        assert model / 3 < peak < 1.1 * model, (name, peak / 1e6, model / 1e6)


def test_whole_fit_stays_within_the_budget(measured):
    assert 0.3 * BUDGET < measured[1] / 1e9 < BUDGET


# --- Budgets ---


def test_shards_leave_room_for_several_workers():
    plan, settings = plan_of(2000, 100), Settings()
    for memory in (0.05, 0.2, 1.0):
        ceiling = make_ceiling(plan, settings, memory)
        shards = make_shards(plan, settings.sizes, memory=ceiling.shard / 1e9)
        largest = max(map(len, shards)) * ceiling.problem
        n = ceiling.most_workers(shards)
        assert n * (ceiling.table + largest) <= ceiling.room < memory * 1e9
        assert n >= WORKERS or memory == 0.05
    assert len(shards) < 20


def test_no_ceiling_without_a_budget():
    plan = plan_of(500, 10)
    ceiling = make_ceiling(plan, Settings(), None)
    assert ceiling.most_workers(make_shards(plan, Settings().sizes)) == sys.maxsize


def test_budgets_limit_the_workers(caplog):
    resources = Resources(n_jobs=8)
    assert dispatch.Workers.of(resources, 10, 3).n == 3
    assert "memory_budget allows 3 of 8 workers" in caplog.text
    devices = Resources(devices=(torch.device("cpu"),) * 3)
    assert dispatch.Workers.of(devices, 10, 99).n == 3
    assert dispatch.Workers.of(devices, 2, 99).n == 2


def test_a_budget_that_is_too_small_says_what_is_needed(monkeypatch):
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((2000, 40)), rng.standard_normal(2000)
    monkeypatch.setattr(dispatch, "solve_stack", None)  # nothing long has started
    with pytest.raises(ValueError, match="memory_budget must be at least") as error:
        networks(memory_budget=1e-3).fit(X, y)
    assert str(error.value).endswith("for networks on 2000 rows and 40 columns, got 0.001.")
    least = float(str(error.value).split()[5])
    plan = plan_of(2000, 40)
    plan = replace(plan, X=plan.X.astype(np.float32))  # as a sweep has it
    make_ceiling(plan, NETWORK.settings(False), least)
    with pytest.raises(ValueError, match="memory_budget must be at least"):
        make_ceiling(plan, NETWORK.settings(False), 0.9 * least)


# --- Exhausted memory ---

ERRORS = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
    RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
    MemoryError(),
]


def exhausted_above(monkeypatch, limit, error):
    """Let stacks of more problems than a limit fail; return the sizes that were tried."""
    tried, solve = [], dispatch.solve_stack

    def solve_small(job, members, *args, **options):
        tried.append(len(members))
        if len(members) > limit:
            raise error
        return solve(job, members, *args, **options)

    monkeypatch.setattr(dispatch, "solve_stack", solve_small)
    return tried


@pytest.mark.parametrize("error", ERRORS, ids=["device", "torch", "numpy"])
def test_exhausted_memory_halves_the_shard(table, effects, monkeypatch, caplog, tmp_path, error):
    tried = exhausted_above(monkeypatch, 20, error)
    found = networks(checkpoint=tmp_path).fit(*table).effects_["effect"]
    np.testing.assert_allclose(found, effects, atol=1e-4)
    assert tried == [60, 30, 15, 15, 30, 15, 15]
    assert "60 problems exhausted the memory of cpu; halving" in caplog.text
    assert "Shard 0 ran out of memory and was solved in 4 parts" in caplog.text
    tried.clear()
    again = networks(checkpoint=tmp_path).fit(*table).effects_["effect"]
    assert again.equals(found)
    assert not tried  # the checkpoint has the shard as it was planned


@pytest.mark.parametrize("trunk", [False, True])
@pytest.mark.parametrize(("limit", "n_parts"), [(4, 6), (1, 15)])
def test_parts_are_put_together(monkeypatch, limit, n_parts, trunk):
    """Predictions and summaries of 3 treatments on 5 folds, which are split after treatments."""
    plan = plan_of(104, 3)  # folds of different sizes
    settings = NETWORK.settings(False)
    if trunk:
        settings = replace(shrunken_network().settings(False), trunk=True)
    job = make_job(plan, [np.arange(15)], settings, None, False, not trunk)
    whole = solve_one(job)
    exhausted_above(monkeypatch, limit, MemoryError())
    parts = solve_one(job)
    assert (whole.n_parts, parts.n_parts) == (1, n_parts)
    for i, k in enumerate(plan.problem(np.arange(15))[0]):
        n = len(plan.folds[k].hold)
        both = parts.values[:, i, :n], whole.values[:, i, :n]
        np.testing.assert_allclose(*both, atol=1e-3)  # rounding, after a hundred steps
    for one, other in zip(parts.summaries or (), whole.summaries or (), strict=True):
        np.testing.assert_allclose(one.rise, other.rise, atol=1e-2)


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("shapes differ")])
def test_what_halving_cannot_help_is_raised(table, monkeypatch, error):
    tried = exhausted_above(monkeypatch, 0, error)
    with pytest.raises(type(error)):
        networks().fit(*table)
    assert tried == ([60] if isinstance(error, RuntimeError) else [60, 30, 15, 10, 5, 3, 2, 1])
