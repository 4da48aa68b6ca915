"""The command line."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from ddml_fs.cli import app


@pytest.fixture(scope="module")
def demo():
    return CliRunner().invoke(app, ["demo", "--n-samples", "2000"])


@pytest.fixture(scope="module")
def accuracy(demo):
    """Mean accuracy in unseen domains, in points, by the first word of a row."""
    rows = [line.split() for line in demo.output.splitlines() if line.endswith("% │")]
    return {row[1]: float(row[-4][:-1]) for row in rows}


def test_demo(demo, accuracy):
    assert demo.exit_code == 0
    for word in ("truth", "naive difference", "plain DML", "DDML", "x0"):
        assert word in demo.output
    assert accuracy["ddml_fs,"] > accuracy["F-test's"] + 5
    assert accuracy["ddml_fs,"] > accuracy["all"]


def test_demo_gains_five_points(accuracy):
    assert accuracy["ddml_fs,"] > accuracy["all"] + 5


def test_effect_of_a_csv_file(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((300, 3)), columns=["a", "b", "c"])
    frame["t"] = frame["a"] + rng.standard_normal(300)
    frame["y"] = 2 * frame["t"] + frame["a"] + rng.standard_normal(300)
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    run = CliRunner().invoke(app, ["effect", str(path), "--outcome", "y", "--treatment", "t"])
    assert run.exit_code == 0
    assert "partially linear slope" in run.output
    assert "no reason for doubt" in run.output
    assert "inputs_kept" in run.output
    command = ["effect", str(path), "--outcome", "y", "--treatment", "t", "--nuisance", "ridge"]
    assert CliRunner().invoke(app, command).exit_code == 0
    run = CliRunner().invoke(app, ["effect", str(path), "--outcome", "y", "--treatment", "tt"])
    assert run.exit_code == 2
    frame["town"] = "York"
    frame.to_csv(path, index=False)
    run = CliRunner().invoke(app, ["effect", str(path), "--outcome", "y", "--treatment", "t"])
    assert run.exit_code == 2
    assert "non-numeric" in run.output


def test_select_features_of_a_csv_file(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((400, 6)), columns=list("abcdef"))
    frame["sick"] = np.where(frame["a"] - frame["b"] + rng.standard_normal(400) > 0, "yes", "no")
    frame["town"] = rng.choice(["York", "Leeds"], 400)
    path, out = tmp_path / "data.csv", tmp_path / "effects.csv"
    frame.to_csv(path, index=False)
    command = ["select", str(path), "--label", "sick", "--domain", "town", "--nuisance", "ridge"]
    run = CliRunner().invoke(app, [*command, "--n-features", "2", "--output", str(out)])
    assert run.exit_code == 0
    assert "2 of 6 features selected" in run.output
    effects = pd.read_csv(out, index_col=0)
    assert set(effects.index[effects["selected"]]) == {"a", "b"}
    wrongs = ["--n-features", "few"], ["--n-features", "9"], ["--label", "ill"], ["--ranking", "t"]
    for wrong in wrongs:
        assert CliRunner().invoke(app, [*command, *wrong]).exit_code == 2


@pytest.mark.parametrize("ranking", ["gain", "effect", "tstat", "stability"])
def test_select_reads_a_file_as_people_have_it(tmp_path, ranking):
    """Text and gaps; the default nuisance."""
    rng = np.random.default_rng(0)
    trade = rng.choice(["baker", "cook", "nurse"], 400)
    frame = pd.DataFrame({"trade": trade, "age": rng.standard_normal(400), "b": rng.random(400)})
    frame["sick"] = np.where((trade == "cook") + 0.5 * rng.standard_normal(400) > 0.5, "yes", "no")
    frame.loc[:50, "age"] = np.nan
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    command = ["select", str(path), "--label", "sick", "--n-features", "1", "--ranking", ranking]
    run = CliRunner().invoke(app, command)
    assert run.exit_code == 0, run.output
    assert "1 of 3 features selected" in run.output
    assert "trade" in run.output
