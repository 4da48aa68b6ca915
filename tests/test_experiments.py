"""The studies' bookkeeping, and the baselines on data where they must be right."""

import numpy as np
import pandas as pd
import pytest

from ddml_fs import DDML
from ddml_fs.datasets import make_effect_data
from experiments.baselines.effects import OLS1, DMLBoosting
from experiments.effects import paper, runs, synthetic


@pytest.fixture
def linear_data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 3))
    t = X[:, 0] + rng.standard_normal(1000)
    return X, 2 * t - X[:, 0] + rng.standard_normal(1000), t


@pytest.mark.parametrize("method", [OLS1(), DMLBoosting(random_state=0)])
def test_baselines_recover_a_known_effect(linear_data, method):
    X, y, t = linear_data
    method.fit(X, y, treatment=t)
    assert abs(method.effect_ - 2) < 0.2  # the naive slope is 1.5
    low, high = method.conf_int()
    assert low < method.effect_ < high


def test_runs_are_cached_by_method_and_code(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "CACHE", tmp_path)
    methods = {"OLS-1": lambda seed: OLS1()}
    first = runs.run_all(methods, [("binary", 20)], [0, 1], n_jobs=1)
    assert len(list(tmp_path.iterdir())) == 2
    pd.testing.assert_frame_equal(first, runs.run_all(methods, [("binary", 20)], [0, 1], n_jobs=1))
    assert runs.fingerprint(DDML()) != runs.fingerprint(DDML(epochs=3))


def test_summary_and_markdown():
    table = pd.DataFrame(
        {
            "method": ["DDML-MLP"] * 2,
            "kind": ["binary"] * 2,
            "d": [20] * 2,
            "seed": [0, 1],
            "error": [0.1, -0.3],
            "half_width": [0.2, 0.2],
            "covered": [True, False],
            "seconds": [1.0, 2.0],
        }
    )
    row = synthetic.summarise(table).iloc[0]
    assert (row["mae"], row["bias"], row["covered"]) == pytest.approx((0.2, -0.1, 1))
    assert row["rmse"] == pytest.approx(np.sqrt(0.05))
    text = synthetic.as_markdown(synthetic.summarise(table), "a command", "a note")
    assert "0.2000" in text
    assert str(paper.MAE["binary"]["DDML-RF"][0]) in text  # the paper's row stands beside


def test_limit_is_the_true_nuisances():
    row = synthetic.limits([("binary", 20)], [3]).iloc[0]
    d = make_effect_data("binary", n_features=20, random_state=3)
    v, e = d.treatment - d.m, d.y - d.g
    assert row["error"] == pytest.approx(v @ e / (v @ v) - d.theta, abs=1e-8)
