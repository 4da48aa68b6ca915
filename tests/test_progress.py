"""Progress: phases with names, counts and the time left, wherever the output goes."""

import logging
import re
from io import StringIO
from types import SimpleNamespace

import numpy as np
import pytest
from joblib import delayed, parallel_config
from rich.console import Console
from sklearn.linear_model import LinearRegression, LogisticRegression

from ddml_fs import DDML, CausalFeatureSelector, EffectClassifier
from ddml_fs.datasets import make_domain_data, make_effect_data
from ddml_fs.nuisances import Network, OnLatents, Stacked
from ddml_fs.progress import (
    BarProgress,
    LineProgress,
    NotebookProgress,
    Progress,
    progress_bar,
    run_parallel,
    suitable_progress,
)

SMALL = Network(epochs=2, gates=False, hidden=4, latent=2)


class Clock:
    """A clock that is moved by hand."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Counted(Progress):
    """Notes what it is told."""

    def __init__(self):
        self.calls = []

    def enter(self, phase):
        self.calls.append(phase)

    def start(self, total, unit, done=0):
        self.calls.append([done, total, unit])

    def advance(self, n=1):
        self.calls[-1][0] += n

    def reach(self, done):
        self.calls[-1][0] = done


@pytest.fixture(scope="module")
def domains():
    return make_domain_data(3, 200, 3, 3, 4, n_targets=0, random_state=0)


@pytest.fixture(scope="module")
def binary():
    return make_effect_data("binary", n_samples=300, n_features=10, random_state=0)


def lines_of(capsys):
    """Last lines of the phases, without the times; nothing is on the standard output."""
    out, err = capsys.readouterr()
    assert out == ""
    ends = [line for line in err.splitlines() if not line.endswith(" left")]
    return [re.sub(r", (less than )?\d.*$", "", line) for line in ends]


# --- What is shown ---


def test_lines_are_sparse(capsys):
    clock = Clock()
    progress = LineProgress("sweep", clock)
    progress.start(12, "shards")
    for _ in range(11):
        clock.now += 4
        progress.advance()
    progress.finish()
    progress.finish()  # says nothing again
    assert capsys.readouterr().err.splitlines() == [
        "sweep: 3 of 12 shards, 36 s left",
        "sweep: 6 of 12 shards, 24 s left",
        "sweep: 9 of 12 shards, 12 s left",
        "sweep: 12 of 12 shards, 44 s",
    ]


def test_time_left_counts_from_what_was_restored(capsys):
    clock = Clock()
    progress = LineProgress("sweep", clock)
    progress.start(100, "shards", done=90)
    clock.now += 20
    progress.advance()
    assert capsys.readouterr().err == "sweep: 91 of 100 shards, 3 min 0 s left\n"


def test_phases_follow_each_other(capsys):
    with progress_bar(True, "sweep") as progress:
        progress.start(5, "epochs")
        progress.reach(2)  # stopped early
        progress.enter("choosing the number of features")
        progress.start(3, "fits")
        progress.reach(7)
    assert lines_of(capsys) == [
        "sweep: 5 of 5 epochs",
        "choosing the number of features: 3 of 3 fits",
    ]


def test_an_error_ends_the_display(capsys):
    def fail():
        with progress_bar(True, "sweep") as progress:
            progress.start(5, "epochs")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert lines_of(capsys) == []


def test_bars_in_a_terminal():
    file = StringIO()
    progress = BarProgress("sweep", Console(file=file, force_terminal=True, width=100))
    progress.start(12, "shards")
    progress.advance(3)
    progress.bar.refresh()
    progress.enter("ranking")
    progress.start(4, "features")
    progress.finish()
    progress.close()
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", file.getvalue())
    assert "3 of 12 shards" in text
    last = text.replace("\r", "\n").split("\n")
    assert any(re.match(r"sweep +━+ 12 of 12 shards", line) for line in last)
    assert any(re.match(r"ranking +━+ 4 of 4 features", line) for line in last)


def test_bars_in_a_notebook():
    shown = []
    handle = SimpleNamespace(update=lambda data, raw: shown.append(data))

    def display(data, raw, display_id):
        assert raw
        assert display_id
        shown.append(data)
        return handle

    clock = Clock()
    progress = NotebookProgress("a <b>", display, clock)
    progress.start(1000, "fits")
    for _ in range(500):
        clock.now += 0.01
        progress.advance()
    assert len(shown) < 30  # 5 seconds
    progress.enter("ranking")
    progress.start(2, "features")
    html, text = (shown[-1][kind] for kind in ("text/html", "text/plain"))
    assert text == "a <b>: 1000 of 1000 fits, 5 s\nranking: 0 of 2 features"
    assert html.count("<progress ") == 2
    assert '<progress value="1000" max="1000"></progress> a &lt;b&gt;: 1000' in html
    done, left = re.search(r"(\d+) of 1000 fits, (\d+) s left", shown[10]["text/plain"]).groups()
    assert int(left) == round(0.01 * (1000 - int(done)))


def test_display_suits_the_output(monkeypatch):
    assert isinstance(suitable_progress("sweep"), LineProgress)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    progress = suitable_progress("sweep")
    assert isinstance(progress, BarProgress)
    progress.close()
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(suitable_progress("sweep"), LineProgress)


# --- What is told ---


def test_phases_of_a_selection(domains, capsys):
    data = domains
    CausalFeatureSelector(random_state=0, verbose=True).fit(data.X, data.y, data.sample_domain)
    *lines, last = lines_of(capsys)
    assert lines == [
        "screening for unstable features: 50 of 50 treatments",
        "screening for unstable features: 50 of 50 treatments",
        "sweep: 40 of 40 columns",
        "ranking: 40 of 40 features",  # with all three domains, and without each
        "ranking without each domain: 30 of 30 features",
    ]
    assert re.fullmatch(r"choosing the number of features: (\d+) of \1 fits", last)


def test_phases_of_a_network_sweep(domains, capsys, tmp_path):
    options = {"nuisance": SMALL, "covariates": "all", "random_state": 0, "verbose": True}
    options |= {"memory_budget": 1e-3, "checkpoint": tmp_path}
    given = domains.X, domains.y, domains.sample_domain
    CausalFeatureSelector(3, **options).fit(*given)
    files = list(tmp_path.rglob("*.npy"))
    n = len(files)
    assert n > 2
    assert lines_of(capsys)[0] == f"sweep: {2 * n} of {2 * n} epochs of the networks"
    for file in files[1:]:
        file.unlink()
    with parallel_config(backend="threading"):
        CausalFeatureSelector(3, n_jobs=2, **options).fit(*given)
    assert lines_of(capsys)[0] == f"sweep: {n} of {n} shards"


@pytest.mark.filterwarnings("ignore::ddml_fs.cautions.DDMLWarning")
def test_phases_of_an_effect(binary, capsys):
    stacked = Stacked([SMALL, "smooth", "boosting", "gp"])
    DDML(stacked, n_folds=2, random_state=0, verbose=True).fit(
        binary.X, binary.y, treatment=binary.treatment
    )
    assert lines_of(capsys) == [
        "DDML: 4 of 4 epochs of the networks",  # two for the arms
        "DDML: 2 of 2 closed-form regressions",
        "DDML: 2 of 2 pairs of boosting models",
        "DDML: 8 of 8 Gaussian processes",  # m, g, mu_0 and mu_1 of two folds
    ]


def test_models_on_latents_are_counted(binary, capsys):
    models = OnLatents(LogisticRegression(), LinearRegression(), network=SMALL)
    DDML(models, n_folds=2, random_state=0, verbose=True).fit(
        binary.X, binary.y, treatment=binary.treatment
    )
    assert lines_of(capsys) == ["DDML: 4 of 4 epochs and fits on the latents"]


def test_phases_of_a_classifier(domains, capsys):
    EffectClassifier(verbose=True).fit(domains.X, domains.y, domains.sample_domain)
    assert lines_of(capsys) == ["choosing the penalty: 11 of 11 penalties"]


def test_quiet_by_default(domains, binary, capsys):
    CausalFeatureSelector(random_state=0).fit(domains.X, domains.y, domains.sample_domain)
    EffectClassifier().fit(domains.X, domains.y)
    DDML("ridge", random_state=0).fit(binary.X, binary.y, treatment=binary.treatment)
    assert capsys.readouterr() == ("", "")


def test_verbose_changes_no_number(domains):
    given = domains.X, domains.y, domains.sample_domain
    tables = [
        CausalFeatureSelector(random_state=0, verbose=verbose).fit(*given).effects_
        for verbose in (False, True)
    ]
    assert tables[0].equals(tables[1])


# --- Parallel work ---


@pytest.mark.parametrize(
    "config", [{}, {"n_jobs": 2}, {"backend": "threading"}, {"backend": "multiprocessing"}]
)
def test_results_come_in_order(config):
    progress = Counted()
    progress.start(20, "roots")
    with parallel_config(**config):
        results = run_parallel((delayed(np.sqrt)(i) for i in range(20)), progress)
    np.testing.assert_array_equal(results, np.sqrt(np.arange(20)))
    assert progress.calls == [[20, 20, "roots"]]


# --- Logging ---


def test_decisions_are_logged(domains, caplog):
    with caplog.at_level(logging.INFO, "ddml_fs"):
        model = CausalFeatureSelector(random_state=0)
        model.fit(domains.X, domains.y, domains.sample_domain)
    assert {record.name.split(".")[0] for record in caplog.records} == {"ddml_fs"}
    assert "600 rows, 3 domains, 10 features" in caplog.text
    assert "nuisance Additive(), logistic score, 5 folds" in caplog.text
    assert re.search(r"Screening: \d+ of 10 features are stable", caplog.text)
    assert re.search(r"\d+ of 10 are as accurate as the best number on left-out", caplog.text)
    assert re.search(r"\d+ features have a (positive|clear) expected gain", caplog.text)
    assert f"keeps {model.n_features_auto_} features" in caplog.text


def test_restored_shards_are_logged(domains, caplog, tmp_path):
    options = {"nuisance": SMALL, "covariates": "all", "random_state": 0, "checkpoint": tmp_path}
    given = domains.X, domains.y, domains.sample_domain
    CausalFeatureSelector(3, **options).fit(*given)
    with caplog.at_level(logging.INFO, "ddml_fs"):
        CausalFeatureSelector(3, **options).fit(*given)
    assert "shards: 1, of which restored from the checkpoint: 1; devices: cpu" in caplog.text


def test_effect_is_logged(binary, caplog):
    with caplog.at_level(logging.INFO, "ddml_fs"):
        model = DDML("ridge", random_state=0)
        model.fit(binary.X, binary.y, treatment=binary.treatment)
    assert "ATE by the interactive score; Ridge(); 300 rows, 10 columns; 5 folds" in caplog.text
    assert model.verdict_ in caplog.text
