"""The command line."""

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from ddml_fs.cli import app


def test_demo():
    result = CliRunner().invoke(app, ["demo", "--n-samples", "2000"])
    assert result.exit_code == 0
    for word in ("truth", "naive difference", "plain DML", "DDML", "x0"):
        assert word in result.output
    rows = {line.split()[1]: line for line in result.output.splitlines() if line.endswith("% │")}
    ours, everything = (float(rows[r].split()[-4][:-1]) for r in ("ddml_fs,", "all"))
    assert ours > everything + 5


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
    for wrong in (["--n-features", "few"], ["--n-features", "9"], ["--label", "ill"]):
        assert CliRunner().invoke(app, [*command, *wrong]).exit_code == 2
