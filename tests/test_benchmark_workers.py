"""The benchmark of workers compares with one worker in the same round."""

import json
from types import SimpleNamespace

import pytest

from benchmarks import workers


def test_medians_over_the_rounds(monkeypatch, tmp_path):
    rounds = []

    def run(argv, **_):
        """Made-up seconds: two workers halve them, and the second round is three times as fast."""
        n_jobs = int(argv[argv.index("--n-jobs") + 1])
        rounds.append((argv[argv.index("--only") + 1], n_jobs))
        slow = 1 if 4 < len(rounds) <= 8 else 3
        seconds = {"first fit, s": 12 * slow / n_jobs + n_jobs, "second fit, s": 12 * slow / n_jobs}
        return SimpleNamespace(stdout="a line of the fit\n" + json.dumps(seconds))

    monkeypatch.setattr(workers.subprocess, "run", run)
    workers.main(out=tmp_path)
    assert len(rounds) == 5 * 6
    assert rounds[:6] == rounds[6:12]
    table = workers.measure_all(2, None)
    two = table.loc["forests", 2]
    assert two["second fit / one worker's"] == pytest.approx(0.5)
    assert two["first fit / one worker's"] == pytest.approx((18 + 2) / (36 + 1))
    lines = (tmp_path / "workers.csv").read_text().splitlines()
    assert lines[1] == "networks,1,37.00,36.00,1.00,1.00"
    assert lines[2] == "networks,2,20.00,18.00,0.54,0.50"
    assert "python -m benchmarks.workers`" in (tmp_path / "workers.md").read_text()
    assert (tmp_path / "workers.png").stat().st_size > 5000
