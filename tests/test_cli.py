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


def test_effect_of_a_csv_file(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((300, 3)), columns=["a", "b", "c"])
    frame["t"] = frame["a"] + rng.standard_normal(300)
    frame["y"] = 2 * frame["t"] + frame["a"] + rng.standard_normal(300)
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    run = CliRunner().invoke(app, ["effect", str(path), "--outcome", "y", "--treatment", "t"])
    assert run.exit_code == 0
    assert "ATE" in run.output
    assert "inputs_kept" in run.output
    run = CliRunner().invoke(app, ["effect", str(path), "--outcome", "y", "--treatment", "tt"])
    assert run.exit_code == 2
    frame["town"] = "York"
    frame.to_csv(path, index=False)
    run = CliRunner().invoke(app, ["effect", str(path), "--outcome", "y", "--treatment", "t"])
    assert run.exit_code == 2
    assert "non-numeric" in run.output
