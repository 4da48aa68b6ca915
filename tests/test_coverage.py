"""The coverage study: its worlds have the truth they claim, and its table counts correctly."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm
from typer.testing import CliRunner

from benchmarks.coverage import __main__ as command
from benchmarks.coverage import runs
from benchmarks.coverage.expected import expected_coverage
from benchmarks.coverage.grid import CONSTANT, MODELS, Setting, grid, tuning_grid
from benchmarks.coverage.methods import DEFAULT, METHODS, ORACLE, PEER, Found, estimate, methods_for
from benchmarks.coverage.tuning_worlds import WORLDS as WORLDS_OF_TUNING
from benchmarks.coverage.tuning_worlds import draw_tuning
from benchmarks.coverage.worlds import draw
from experiments.jobs import files_behind

WORLDS = ("linear", "bent", "clustered", "paper")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(runs, "KEPT", tmp_path / "runs.csv.gz")
    monkeypatch.setattr(runs, "CONTROLS", 0)
    # Jobs run here, where the functions can be replaced.
    monkeypatch.setattr(
        runs, "run_jobs", lambda f, jobs, *_, **__: [f(*job) for job in jobs] and None
    )
    return tmp_path / "cache"


# --- Worlds ---


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("treatment", ["binary", "continuous"])
def test_known_nuisances_are_those_of_the_draws(world, treatment):
    data = draw(world, treatment, "constant", 40_000, 10, seed=1)
    v, e = data.treatment - data.m, data.y - data.g
    inputs = np.column_stack([np.ones(len(v)), data.X, data.X**2, data.X[:, 1] * data.X[:, 2]])
    for rest in (v, e):  # unexplained by anything that X offers
        t = inputs.T @ rest / np.sqrt((inputs**2).T @ rest**2)
        limit = 10 if world == "clustered" else 4.5  # rows of a cluster are dependent
        assert np.abs(t).max() < limit
    np.testing.assert_allclose(data.mu_1 - data.mu_0, data.truth, rtol=1e-6)
    np.testing.assert_allclose(data.g, data.mu_0 + data.truth * data.m, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("world", ["linear", "bent"])
def test_truth_of_varying_effects_is_their_mean(world):
    data = draw(world, "binary", "varying", 400_000, 10, seed=0)
    tau = data.mu_1 - data.mu_0
    assert tau.std() > 0.5
    assert abs(tau.mean() - data.truth) < 4 * tau.std() / np.sqrt(len(tau))
    assert 0.005 < np.quantile(data.m, 0.01)  # moderate overlap
    assert np.quantile(data.m, 0.99) < 0.995


@pytest.mark.parametrize("world", list(WORLDS_OF_TUNING))
@pytest.mark.parametrize("treatment", ["binary", "continuous"])
def test_worlds_of_tuning_have_known_nuisances(world, treatment):
    data = draw_tuning(world, treatment, 40_000, WORLDS_OF_TUNING[world], seed=1)
    assert data.truth == -1
    v, e = data.treatment - data.m, data.y - data.g
    inputs = np.column_stack([np.ones(len(v)), data.X, np.sin(data.X), data.X[:, 1] * data.X[:, 2]])
    for rest in (v, e):
        t = inputs.T @ rest / np.sqrt((inputs**2).T @ rest**2)
        assert np.abs(t).max() < 4.5
    settings = {s for s in tuning_grid() if s.world == world}
    assert len(settings) == 4
    assert not settings & set(grid())


def test_draws_depend_on_the_seed_alone():
    first, again, other = (draw("bent", "binary", "constant", 50, 10, s) for s in (0, 0, 1))
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.allclose(first.X, other.X)


# --- Coverage ---


CASES = [(world, model) for world in ("linear", "bent") for model in MODELS]
CASES += [("clustered", model) for model in CONSTANT]


@pytest.mark.parametrize(("world", "model"), CASES)
def test_intervals_with_true_nuisances_hold(world, model):
    """The limit of all methods: 95 % of 200 intervals, up to chance."""
    treatment, score, effect = model
    # Sandwich errors of few clusters are too small, so there are 100.
    method, n = (f"{ORACLE}, cluster=", 2000) if world == "clustered" else (ORACLE, 500)
    held = 0
    for seed in range(200):
        data = draw(world, treatment, effect, n, 10, seed)
        found = estimate(method, data, score, seed)
        held += found.low <= data.truth <= found.high
    low, high = binom.ppf([1e-3, 1 - 1e-3], 200, 0.95)
    assert low <= held <= high


def test_clusters_make_plain_intervals_too_short():
    ratio = []
    for seed in range(30):
        data = draw("clustered", "continuous", "constant", 500, 10, seed)
        plain, clustered = (
            estimate(name, data, "partially_linear", seed).stderr
            for name in (ORACLE, f"{ORACLE}, cluster=")
        )
        ratio.append(clustered / plain)
    assert np.mean(ratio) > 1.3


@pytest.mark.parametrize(("bias", "rest"), [(0.0, 0.2), (1.0, 0.2), (0.5, 1.0)])
def test_expected_coverage_needs_few_replications(bias, rest):
    """Near the truth on average, and closer to it than a count of the same replications."""
    rng = np.random.default_rng(0)
    spread = np.hypot(1, rest)
    truth = norm.cdf((1.96 - bias) / spread) - norm.cdf((-1.96 - bias) / spread)
    found, counted = [], []
    for _ in range(300):
        controls = rng.standard_normal(500) / 1.96
        error = controls[:20] + (bias + rest * rng.standard_normal(20)) / 1.96
        found.append(expected_coverage(error, controls[:20], controls))
        counted.append((np.abs(error) < 1).mean())
    assert np.mean(found) == pytest.approx(truth, abs=0.01)
    assert np.std(found) < 0.75 * np.std(counted)
    assert np.isnan(expected_coverage(error[:4], controls[:4], controls))


# --- The machinery ---


def test_grid():
    settings = grid()
    assert len(set(settings)) == len(settings)
    assert {s.n_samples for s in settings} == {300, 500, 1000, 2000, 6000}
    assert not [s for s in settings if s.score == "interactive" and s.treatment == "continuous"]
    assert not [s for s in settings if s.score != "interactive" and s.effect == "varying"]
    small, large = (Setting("bent", *CONSTANT[0], 10, n) for n in (500, 6000))
    assert [s.n_replications(500) for s in (small, large)] == [500, 41]
    assert [s.n_replications(100) for s in (small, large)] == [100, 20]
    assert [s.n_replications(5) for s in (small, large)] == [5, 5]


def test_chunks_are_made_once(cache, monkeypatch):
    made = []

    def fake(method, data, score, seed):
        made.append((method, seed))
        return Found(data.truth + 0.1 * seed, 1.0, data.truth + 0.1 * seed - 1, 9.0, seed > 3)

    monkeypatch.setattr(runs, "estimate", fake)
    setting = Setting("linear", "binary", "interactive", "constant", 10, 50)
    runs.run_all([setting], 12)
    assert len(made) == 12 * len(METHODS) == 12 * len(methods_for(setting))
    assert len(list(cache.glob("*.json"))) == 2 * len(METHODS)
    rows = runs.run_all([setting], 12)
    assert len(made) == 12 * len(METHODS)
    assert rows["seed"].tolist() == [*range(12)] * len(METHODS)
    # Nothing is run, and what was not asked for is left out, except the true nuisances.
    only = runs.run_all([setting], 30, only_read=True, chosen=[DEFAULT])
    assert only["method"].value_counts().to_dict() == {DEFAULT: 10, ORACLE: 10}
    table = command.summarise(rows).loc[(setting.name, 50, PEER)]
    assert table["replications"] == 12
    assert table["coverage"] == pytest.approx(11 / 12)  # the last lower end is 0.1 too high
    assert table["bias"] == pytest.approx(0.55)
    assert table["sd"] == pytest.approx(0.1 * np.std(range(12), ddof=1))
    assert table["warned"] == pytest.approx(8 / 12)
    assert table["from"] < 11 / 12 < table["to"]
    assert 0.9 < table["expected"] <= 1  # the intervals are long


def test_kept_runs_are_not_made_again(cache, tmp_path, monkeypatch):
    """On another machine, without the cache; runs of other code are made again."""
    made = []

    def fake(method, data, score, seed):
        made.append(method)
        return Found(data.truth + 0.1 * seed, 1 / 3, -1.0, 9.0)

    monkeypatch.setattr(runs, "estimate", fake)
    setting = Setting("linear", "binary", "interactive", "constant", 10, 50)
    rows = runs.run_all([setting], 10)
    runs.keep_runs(rows, runs.KEPT)
    for file in cache.glob("*.json"):
        file.unlink()
    made.clear()
    again = runs.run_all([setting], 10)
    assert set(made) == {ORACLE}  # these take no time and are not kept
    values = rows.columns.drop("seconds")
    pd.testing.assert_frame_equal(again[values], rows[values], rtol=1e-5)
    for file in cache.glob("*.json"):
        file.unlink()
    made.clear()
    monkeypatch.setattr(runs, "code_of", lambda method: ["another", method])
    runs.run_all([setting], 10)
    assert set(made) == set(METHODS)


def test_code_of_an_estimate_is_what_it_imports():
    names = {path.name for path in files_behind("ddml_fs.effect")}
    assert {"effect.py", "terms.py", "stacked.py", "train.py", "scores.py"} <= names
    assert not {"selector.py", "classifier.py", "elimination.py"} & names


def test_command_writes_the_table(cache, tmp_path, monkeypatch):
    small = [Setting("linear", "continuous", "partially_linear", "constant", 10, 100)]
    monkeypatch.setattr(command, "quick_grid", lambda: small)
    app = command.typer.Typer()
    app.command()(command.main)
    options = ["--quick", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, [*options, "--method", PEER, "--method", ORACLE])
    assert result.exit_code == 0, result.output
    table = pd.read_csv(tmp_path / "out" / "coverage.csv")
    assert table["method"].tolist() == [PEER, ORACLE]
    assert table["replications"].eq(3).all()
    assert "python -m benchmarks.coverage" in (tmp_path / "out" / "coverage.md").read_text()
    assert CliRunner().invoke(app, [*options, "--only", "nowhere"]).exit_code == 2


def test_ddml_is_run_with_its_defaults():
    data = draw("linear", "continuous", "constant", 100, 10, seed=0)
    found = estimate("DDML, mlp", data, "partially_linear", 0)
    assert abs(found.effect - data.truth) < 1
    assert found.low < found.effect < found.high
