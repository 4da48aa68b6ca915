"""The effect study's bookkeeping: who is run on what, what is cached, and what the tables say."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from ddml_fs import DDML
from ddml_fs.datasets import make_effect_data
from ddml_fs.nuisances import Network
from experiments.baselines.effects import CFR, OLS1, EffectEstimator
from experiments.effects import __main__ as command
from experiments.effects import ablation, figures, paper, runs, sensitivity, simulated, tables
from experiments.effects.data import Case, DataSet, data_sets, thinned
from experiments.effects.methods import METHODS, Method, rival

STACKED = "replications of one X"


class Mean(EffectEstimator):
    """The outcome's mean as the effect: easy to follow through the tables."""

    def _fit(self, X, y, t):
        self.effect_, self.stderr_ = y.mean(0) if y.ndim > 1 else float(y.mean()), 0.5


def cases(seeds):
    """Outcomes that are all equal to their seed, with the truth 1."""
    X, t = np.zeros((8, 2)), np.arange(8) % 2.0
    y = np.tile(np.array(seeds, dtype=float), (8, 1))
    if len(seeds) == 1:
        return Case(X, t, y[:, 0], 1.0)
    return Case(X, t, y, np.ones(len(seeds)))


@pytest.fixture
def columns(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "CACHE", tmp_path)
    return [
        DataSet("binary 20", "I", cases, (1, 2)),
        DataSet("continuous 20", "II", cases, (1, 2)),
        DataSet(STACKED, "III", cases, (1, 2, 3), stacked=True),
    ]


@pytest.fixture
def methods():
    make = lambda target, seed: Mean(target, seed)  # noqa: E731
    return {"alone": Method(make), "stacked": Method(make, continuous=True, stacked=True)}


def test_every_run_is_made_once_and_read_again(columns, methods, tmp_path):
    table = runs.run_all(methods, columns, n_jobs=1)
    # "alone" has no continuous column: 2 + 3 runs; "stacked" 2 + 2 + 3.
    assert table.groupby("method").size().to_dict() == {"alone": 5, "stacked": 7}
    np.testing.assert_allclose(table["error"], table["seed"] - 1)
    # The truth is within 1.96 · 0.5 of seeds 1 and 2 − 0.02 no more.
    assert table.loc[table["seed"] == 1, "covered"].eq(1).all()
    assert table.loc[table["seed"] == 3, "covered"].eq(0).all()
    files = {f: f.stat().st_mtime_ns for f in tmp_path.iterdir()}
    assert len(files) == 7  # both names stand for the same estimator, and share its runs
    pd.testing.assert_frame_equal(table, runs.run_all(methods, columns, n_jobs=1))
    assert files == {f: f.stat().st_mtime_ns for f in tmp_path.iterdir()}


def test_an_interrupted_stack_makes_only_what_is_missing(columns, methods, tmp_path):
    runs.run_all(methods, columns, n_jobs=1)
    (lost,) = tmp_path.glob(f"Mean-{STACKED}-2-*.json")
    lost.unlink()
    table = runs.run_all(methods, columns, n_jobs=1)
    assert len(table) == 12
    assert json.loads(lost.read_text())["error"] == 1


def test_cached_runs_belong_to_their_settings_code_and_data():
    data = DataSet("a", "I", cases)
    marks = {
        runs.fingerprint(DDML(), data, 10),
        runs.fingerprint(DDML(Network(epochs=3)), data, 10),
        runs.fingerprint(DDML(), data, 20),
        runs.fingerprint(DDML(), DataSet("b", "I", cases), 10),
        runs.fingerprint(CFR(), data, 10),
        runs.fingerprint(OLS1(), data, 10),
    }
    assert len(marks) == 6
    assert runs.fingerprint(CFR(), data, 10) in marks


def test_the_study_has_every_method_of_the_paper_and_todays():
    for table in ("I", "II", "III"):
        assert set(paper.printed(table)) <= set(METHODS)
    assert {"DML-HGB", "AIPW-HGB", "causal forest"} <= set(METHODS)
    assert set(paper.printed("II")) <= {n for n, m in METHODS.items() if m.continuous}
    assert [d.name for d in data_sets(1) if d.table == "I"] == list(paper.COLUMNS["I"])


def test_printed_figures():
    """A few by hand, from the paper's tables."""
    assert paper.printed("I")["DeR-CFR"]["binary 100"] == (0.1432, 0.1263, 0.1888)
    assert paper.printed("II")["BART"]["continuous 200"] == (0.8684, 0.3149, 0.9210)
    assert paper.printed("III")["OLS-2"]["IHDP"] == (0.1340, 0.1134, 0.1752)
    assert paper.printed("III")["C-DML"]["Jobs, splits"] == (0.0737, 0.0122, 0.0746)


def test_summary_and_tables(columns, methods):
    table = runs.run_all(methods, columns, n_jobs=1)
    table.loc[(table["method"] == "alone") & (table["seed"] == 2), "error"] = -3.0
    summary = tables.summarise(table)
    row = summary.set_index(["data", "method"]).loc[("binary 20", "alone")]
    assert (row["mae"], row["sd"], row["bias"]) == pytest.approx((1.5, 1.5 * 2**0.5, -1.5))
    assert row["rmse"] == pytest.approx(np.sqrt(4.5))
    shown = tables.one_table(summary, columns, "I", "mae")["binary 20"]
    assert shown["stacked"] == "**0.5000 ± 0.7071**"  # the best
    assert shown["alone"] == "*1.5000 ± 2.1213*"
    assert shown["DDML-RF, printed in the paper"] == "0.0769 ± 0.0522"
    text = tables.as_markdown(summary, columns, "a command", "a note")
    assert all(title in text for title in tables.TITLES.values())
    assert "a command" in text


def test_the_limit_is_not_marked():
    values = pd.Series({"a": 2.0, "b": 1.0, tables.LIMIT: 0.1})
    assert tables.marked(values, values.map(str)).tolist() == ["*2.0*", "**1.0**", "0.1"]


def test_limit_is_the_true_nuisances():
    data = next(d for d in data_sets(1, 3, (20,)) if d.name == "binary 20")
    row = tables.limits([data]).iloc[0]
    d = make_effect_data("binary", n_features=20, random_state=3)
    v, e = d.treatment - d.m, d.y - d.g
    assert row["error"] == pytest.approx(v @ e / (v @ v) - d.theta, abs=1e-8)


def test_limit_with_known_outcomes_alone():
    """Exact outcomes leave nothing to correct, whatever the fitted propensity."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    t = (rng.random(200) < 0.4).astype(float)
    mu = np.stack([X[:, 0], X[:, 0] + 2])
    case = Case(X, t, np.where(t == 1, mu[1], mu[0]), 2.0, mu=mu)
    assert tables.limit(case).theta == pytest.approx(2)
    assert tables.limit(Case(X, t, X[:, 0], 2.0)) is None


def test_fewer_rows_and_the_same_truth():
    case = thinned(lambda seeds: cases((1, 2)), 5)((1, 2))
    assert case.X.shape == (5, 2)
    assert case.y.shape == (5, 2)
    np.testing.assert_array_equal(case.truth, [1, 1])


def test_variants_change_one_thing():
    for nuisance in ("mlp", "rf"):
        for data in (*ablation.SYNTHETIC[nuisance], ablation.ALONE):
            for name, method in ablation.variants(nuisance, data).items():
                made = method.make("ate", 0)
                if name == ablation.WITHOUT_ENCODER:
                    assert not isinstance(made, DDML)
                    continue
                network = made.nuisance if nuisance == "mlp" else made.nuisance.network
                assert network.get_params() == Network().get_params() | ablation.CHANGES[name]
                score = "interactive" if data == ablation.ALONE else "partially_linear"
                assert made.get_params(deep=False) == DDML(
                    made.nuisance, score=score, random_state=0
                ).get_params(deep=False)
        made = {k: m.make("ate", 0) for k, m in ablation.variants(nuisance, "IHDP").items()}
        assert made["closed forms alone"].nuisance == "smooth"
        assert made["networks alone"].nuisance == nuisance
    columns = ablation.columns({d.name: d for d in data_sets(3, 0)}, "rf")
    assert [len(data.seeds) for data in columns] == [3, 3, 20, 20]
    made = sensitivity.variants("mlp", varying=True)["λ_dis = 0.001"].make("ate", 0)
    assert (made.nuisance.lambda_dis, made.score) == (0.001, "interactive")
    made = sensitivity.variants("rf", varying=False)["K = 7"].make("ate", 0)
    assert (made.n_folds, made.nuisance.network.lambda_dis) == (7, 0.1)


def test_dependence_sees_what_the_nuisances_left():
    """Clean residuals leave noise alone; means that are not zero leave a correlation."""
    rng = np.random.default_rng(0)
    v, z = rng.standard_normal((2, 5000))
    clean = figures.dependence(v, 2 * v + z)
    assert clean.shape == (5,)
    assert clean.max() < 3.5 / np.sqrt(1000)  # five folds of 1000 rows
    # θ without intercept is E[(v + 1)(2v − 2)] / E[(v + 1)²] = 0, so u = e.
    left = figures.dependence(v + 1, 2 * v + z - 2).mean()
    assert left == pytest.approx(np.sqrt(4 / 5), abs=0.05)


def test_probes_tell_the_roles_apart():
    data = make_effect_data("binary", n_samples=3000, random_state=0)
    table = figures.probes(Case(data.X, data.treatment, data.y, 5.0))
    (t_T, t_Y), (y_T, y_Y), (c_T, c_Y) = table
    assert max(t_T, c_T) > 0.6
    assert c_Y > t_Y  # Zt says little of the outcome beyond the treatment
    assert max(y_Y, c_Y) > 0.3
    assert y_T < max(t_T, c_T)


def test_rivals_take_target_and_seed():
    made = rival(CFR, distance="mmd").make("att", 7)
    assert (made.target, made.random_state, made.distance) == ("att", 7, "mmd")
    assert METHODS["DDML-RF"].make("att", 1).target == "ate"  # a constant effect is both
    assert METHODS["DDML-RF, interactive"].make("att", 1).target == "att"


@pytest.mark.parametrize("target", ["ate", "att"])
def test_simulated_labels_have_the_shares_and_effects_they_claim(target):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((6000, 5)), np.ones(6000)])
    options = {"treated": 0.3, "ones": 0.2, "overlap": (0.05, 0.9), "target": target}
    case = simulated.simulate_labels(X, 0, **options)
    t, y = case.treatment, case.y
    assert t.mean() == pytest.approx(0.3, abs=0.02)
    assert 0.05 < case.m.min() < case.m.max() < 0.9
    assert case.mu[0].mean() == pytest.approx(0.2, abs=1e-6)
    estimate = tables.limit(case)
    assert estimate.theta == pytest.approx(case.truth, abs=4 * estimate.stderr)
    assert abs(y[t == 1].mean() - y[t == 0].mean() - case.truth) > 0.02  # confounded


def test_simulated_outcomes_have_the_effects_they_claim():
    rng = np.random.default_rng(0)
    X, t = rng.standard_normal((4000, 25)), (rng.random(4000) < 0.3).astype(float)
    for seed in range(4):
        case = simulated.simulate(X, t, seed)
        assert case.truth == pytest.approx((case.mu[1] - case.mu[0]).mean())
        noise = case.y - np.where(t == 1, case.mu[1], case.mu[0])
        assert noise.std() == pytest.approx(1, abs=4 / np.sqrt(2 * 4000))
        assert np.std(case.mu[1] - case.mu[0]) > 0.1  # effects vary
    line = np.linalg.lstsq(np.c_[X, np.ones(4000)], simulated.simulate(X, t, 0).mu[0], rcond=None)
    assert line[1][0] < 1e-15 * 4000  # the first kind is linear


def test_notes_speak_of_the_data_at_hand():
    every = {data.name: data for data in data_sets(2)}
    note = command.note_on([every["binary 20"], every["Jobs"], every["Jobs, splits"]])
    assert "seeds 100 to 101" in note
    assert note.count("Jobs:") == 1
    assert "Twins" not in note


def test_command_writes_the_tables_of_the_data_it_is_asked_for(
    columns, methods, monkeypatch, tmp_path
):
    monkeypatch.setattr(command, "small_data_sets", lambda: columns)
    monkeypatch.setattr(command, "METHODS", methods)
    options = ["--quick", "--n-jobs", "1", "--out", str(tmp_path / "out")]
    found = CliRunner().invoke(command.app, options)
    assert found.exit_code == 0, found.output
    text = (tmp_path / "out" / "tables.md").read_text()
    assert all(title in text for title in tables.TITLES.values())
    found = CliRunner().invoke(command.app, [*options, "--data", "continuous 20"])
    assert found.exit_code == 0, found.output
    text = (tmp_path / "out" / "tables_continuous_20.md").read_text()
    assert "Table II" in text
    assert "Table III" not in text
    found = CliRunner().invoke(command.app, [*options, "--data", "nothing"])
    assert found.exit_code == 2


def test_one_method_alone_is_made_again(columns, methods, monkeypatch, tmp_path):
    """Rows of the others are taken from the tables before, if they have the same replications."""
    monkeypatch.setattr(command, "small_data_sets", lambda: columns)
    monkeypatch.setattr(command, "METHODS", {"rival": methods["stacked"], "DDML-MLP": None})
    folder = tmp_path / "out"
    options = ["--quick", "--n-jobs", "1", "--out", str(folder)]
    found = CliRunner().invoke(command.app, [*options, "--method", "DDML-MLP"])
    assert found.exit_code == 2
    assert "is missing; run without --method first" in " ".join(found.output.split())
    monkeypatch.setattr(command, "METHODS", {"rival": methods["stacked"]})
    assert CliRunner().invoke(command.app, options).exit_code == 0
    before = pd.read_csv(folder / "tables_runs.csv")
    monkeypatch.setattr(command, "METHODS", {"rival": None, "DDML-MLP": methods["alone"]})
    found = CliRunner().invoke(command.app, [*options, "--method", "DDML-MLP"])
    assert found.exit_code == 0, found.output
    after = pd.read_csv(folder / "tables_runs.csv")
    rivals = after[after["method"] == "rival"]
    pd.testing.assert_frame_equal(rivals, before[before["method"] == "rival"])
    assert set(after["method"]) == {"rival", "DDML-MLP"}
    assert (
        "Other rows than those of this command are of earlier runs"
        in (folder / "tables.md").read_text()
    )
    other = DataSet("binary 20", "I", cases, (1, 2, 9))
    with pytest.raises(ValueError, match=r"must have seeds \[1, 2, 9\] of binary 20, got \[1, 2\]"):
        tables.runs_before(folder / "tables_runs.csv", ["DDML-MLP"], [other])
