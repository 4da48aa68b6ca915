"""The command line: a table of kinds of files with what each gives, and the commands' results."""

import bz2
import gzip
import json
import lzma
import subprocess
import sys
import zipfile
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_selection import f_classif
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from ddml_fs import DDML, CausalFeatureSelector, ShiftAudit
from ddml_fs.cli import app
from ddml_fs.cli.demo import estimates
from ddml_fs.datasets import load_crashes, make_domain_data, make_effect_data
from ddml_fs.version import __version__


def visits(n=120):
    """People, three sites, and who died: older people do."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 90, n),
            "weight": np.round(rng.normal(70, 10, n), 1),
            "sex": rng.choice(["f", "m"], n),
            "site": rng.choice(["Köln", "Lyon", "York"], n),
        }
    )
    died = frame["age"] + rng.normal(0, 15, n) > 60
    return frame.assign(died=np.where(died, "yes", "no"))


def csv(frame=None, **options):
    frame = visits() if frame is None else frame
    return frame.to_csv(index=False, **options).encode(options.pop("encoding", "utf-8"))


def changed(**columns):
    return csv(visits().assign(**columns))


def zipped(*names):
    def write(path):
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, csv())

    return write


def excel(path):
    with pd.ExcelWriter(path) as book:
        visits().to_excel(book, sheet_name="2024", index=False)
        visits().to_excel(book, sheet_name="2023", index=False)


def with_line(number, line):
    lines = csv().decode().splitlines()
    lines.insert(number - 1, line)
    return "\n".join(lines).encode()


ROWS = np.arange(120)
CHOICE = np.random.default_rng(1)
DAYS = pd.date_range("2023-01-30", periods=120)
ONE_CLASS = np.where(visits()["site"] == "York", "no", visits()["died"])
BY_SITE = np.where(visits()["site"] == "York", "no", "yes")
NAMED_ROWS = [f"p{i},{line}" if i else line for i, line in enumerate(csv().decode().splitlines())]

# Name of the file, what is in it, and what a reader is told.
GOOD = {
    "commas.csv": (csv(), ["120 rows, 3 features: 1 text column one-hot encoded"]),
    "semicolons.csv": (csv(sep=";", decimal=","), ["separator ';'", "decimal commas", "`weight`"]),
    "tabs.tsv": (csv(sep="\t"), ["separator tab"]),
    "pipes.txt": (csv(sep="|"), ["separator '|'"]),
    "blanks.txt": (csv(sep=" "), ["separator blanks"]),
    "bom.csv": (b"\xef\xbb\xbf" + csv(), ["120 rows, 3 features"]),
    "utf16.csv": (csv().decode().encode("utf-16"), ["encoding utf-16", "'Köln'"]),
    "windows.csv": (csv().decode().encode("cp1252"), ["encoding cp1252", "'Köln'"]),
    "packed.csv.gz": (gzip.compress(csv()), ["120 rows, 3 features"]),
    "packed.csv.bz2": (bz2.compress(csv()), ["120 rows, 3 features"]),
    "packed.csv.xz": (lzma.compress(csv()), ["120 rows, 3 features"]),
    "packed.zip": (zipped("a.csv"), ["120 rows, 3 features"]),
    "no_suffix": (gzip.compress(csv()), ["120 rows, 3 features"]),
    "table.parquet": (visits().to_parquet, ["read as Parquet", "120 rows, 3 features"]),
    "table.feather": (visits().to_feather, ["read as Feather", "120 rows, 3 features"]),
    "book.xlsx": (excel, ["sheet '2024' read, not `2023`", "120 rows, 3 features"]),
    "quoted.csv": (
        changed(sex=['he said "a, b"\nand left', "m"] * 60),
        ["120 rows, 3 features: 1 text column"],
    ),
    "marks.csv": (
        changed(age=visits()["age"].astype(str).where(ROWS > 6, "?"), weight=["NA", " 7 "] * 60),
        ["'?' read as missing in `age`", "'NA' read as missing", "67 missing values in `age`"],
    ),
    "dates.csv": (
        changed(born=DAYS.strftime("%d.%m.%Y"), seen=DAYS.astype(str)),
        ["dates read in `born`, `seen`", "2 dates turned into days"],
    ),
    "month_first.csv": (
        changed(seen=[f"{1 + i % 9:02}/{1 + i % 11:02}/2024" for i in range(120)]),
        ["dates read with the month first in `seen`", "1 date turned into days"],
    ),
    "row_numbers.csv": (
        visits().to_csv().encode(),
        ["row numbers left out: `Unnamed: 0`", "3 features"],
    ),
    "row_names.csv": (
        "\n".join(NAMED_ROWS).encode(),
        ["another text in every row, left out: `row names`"],
    ),
    "line_ends.csv": (csv().replace(b"\n", b",\r\n"), ["empty columns without a name left out"]),
    "repeated.csv": (
        csv().replace(b"weight", b"age", 1),
        ["repeated column names are now `age.1`"],
    ),
    "text_ids.csv": (
        changed(patient=[f"P{i:04}" for i in ROWS]),
        ["left out: `patient`; --keep makes it a feature", "3 features"],
    ),
    "number_ids.csv": (changed(number=ROWS + 1000), ["row number: `number`; --id leaves it out"]),
    "gaps.csv": (
        changed(died=visits()["died"].where(ROWS > 9), weight=visits()["weight"].where(ROWS > 30)),
        ["10 rows without `died` left out", "21 missing values in `weight` imputed"],
    ),
    "site_of_one_class.csv": (
        changed(died=ONE_CLASS),
        ["2 domains by `site`", "one class only in 'York'"],
    ),
    "small_site.csv": (
        changed(site=visits()["site"].where(ROWS > 4, "Bath")),
        ["fewer than 10 rows in 'Bath'"],
    ),
    "truth_values.csv": (
        changed(smokes=CHOICE.random(120) > 0.5, died=visits()["died"] == "yes"),
        ["label `died`: 0 or 1 (42.5 %)", "4 features"],
    ),
    "says_nothing.csv": (
        changed(empty=None, same="x"),
        ["all values missing in `empty`", "the same value in every row of `same`"],
    ),
    "numbers.csv": (changed(died=visits()["weight"] + 0.5), ["a number from", "regression"]),
    "classes.csv": (
        changed(died=np.array(["a", "b", "c"])[ROWS % 3]),
        ["3 classes, 'a' (40), 'b' (40), 'c' (40); classification"],
    ),
    "thousands.csv": (
        changed(pay=[f"{1 + i},{500 + i}" for i in ROWS]),
        ["commas between thousands left out in `pay`"],
    ),
    "points.csv": (
        changed(pay=[f"{1 + i}.{500 + i},25" for i in ROWS]),
        ["values such as '1.500,25' are text, not numbers, in `pay`"],
    ),
}
BAD = {
    "folder.csv": (lambda path: path.mkdir(), "folder.csv is a folder; name a file in it."),
    "empty.csv": (b"", "empty.csv is empty."),
    "blank.csv": (b"\n\n  \n", "blank.csv is empty."),
    "header.csv": (b"age,site,died\n", "header.csv has column names but no rows."),
    "picture.csv": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9, "it is a binary file."),
    "data.json": (b'[{"age": 1, "died": "no"}]', "not a table: it looks like JSON."),
    "page.csv": (b"<!DOCTYPE html><html></html>", "it looks like a web page or XML."),
    "old.xls": (b"\xd0\xcf\x11\xe0" + bytes(99), "an old Excel file; save it as .xlsx or CSV."),
    "cut.csv.gz": (gzip.compress(csv())[:200], "cut.csv.gz cannot be read as gzip"),
    "two.zip": (zipped("a.csv", "b.csv"), "two.zip must hold one file, got 2."),
    "long_line.csv": (
        with_line(7, "1,2,f,York,yes,9"),
        "line 7 of long_line.csv has 6 values, but its header has 5 columns.",
    ),
    "short_line.csv": (
        with_line(9, "1,2,f,York"),
        "line 9 of short_line.csv has 4 values, but its header has 5 columns.",
    ),
    "no_label.csv": (csv(visits().drop(columns="died")), "there is no column 'died'; the columns"),
    "near_label.csv": (
        csv(visits().rename(columns={"died": "Died "})),
        "there is no column 'died'; did you mean 'Died'?",
    ),
    "one_column.csv": (b"died\nyes\nno\n" * 9, "there is no column 'site'; the columns are `died`"),
    "constant.csv": (changed(died="no"), "label 'died' must vary, got no in every row."),
    "no_labels.csv": (changed(died=None), "column 'died' is missing in every row."),
    "label_by_site.csv": (changed(died=BY_SITE), "one class only in 'Köln', 'Lyon', 'York'."),
    "one_site.csv": (changed(site="York"), "must have two values or more, got York alone."),
    "texts.csv": (changed(died=[f"n{i % 40}" for i in ROWS]), "must have at most 20 classes"),
    "dated_label.csv": (changed(died=DAYS.astype(str)), "must hold labels or numbers, got dates."),
    "few.csv": (csv(visits().head(25)), "fewer than 10 rows in"),
    "lists.parquet": (
        visits().assign(age=[[1, 2]] * 120).to_parquet,
        "column 'age' must hold single values, got lists.",
    ),
}


def write(path, content):
    """A file of the table: bytes, or a function that writes to a path."""
    path.write_bytes(content) if isinstance(content, bytes) else content(path)
    return path


def run(*command):
    """A command in a process of its own."""
    command = [sys.executable, "-m", "ddml_fs.cli", *map(str, command)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)


def run_here(*command):
    """A command in this process, which takes less time."""
    ended = CliRunner().invoke(app, [*map(str, command)])
    if ended.exit_code == 1:
        raise ended.exception
    return SimpleNamespace(returncode=ended.exit_code, stdout=ended.stdout, stderr=ended.stderr)


def test_files_in_a_process_of_its_own(tmp_path):
    """What the following tests do in this process."""
    options = "--label", "died", "--domain", "site", "--dry-run"
    good, bad = write(tmp_path / "good.csv", GOOD["commas.csv"][0]), tmp_path / "empty.csv"
    ended = run("select", good, *options)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert all(text in ended.stdout for text in GOOD["commas.csv"][1])
    check_error(run("select", write(bad, b""), *options), "empty.csv is empty.")


@pytest.mark.parametrize("name", GOOD)
def test_good_files(tmp_path, name):
    content, told = GOOD[name]
    path = write(tmp_path / name, content)
    ended = run_here("select", path, "--label", "died", "--domain", "site", "--dry-run")
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    for text in told:
        assert text in ended.stdout


@pytest.mark.parametrize("name", BAD)
def test_bad_files(tmp_path, name):
    content, told = BAD[name]
    path = write(tmp_path / name, content)
    ended = run_here("select", path, "--label", "died", "--domain", "site", "--dry-run")
    check_error(ended, told)


def check_error(ended, told):
    """One sentence on standard error, and exit code 2."""
    assert ended.returncode == 2, ended.stdout
    assert told in ended.stderr
    assert ended.stderr.startswith("Error: ")
    assert ended.stderr.count("\n") == 1
    assert ended.stdout == ""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write(tmp_path_factory.mktemp("files") / "visits.csv", csv())


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["select", "{folder}/visit.csv"], "did you mean {folder}/visits.csv?"),
        (["select", "{path}", "--encoding", "utf-16"], "visits.csv is not utf-16 text"),
        (["select", "{path}", "--encoding", "utf-99"], "there is no encoding 'utf-99'"),
        (["select", "{path}", "--sep", "::"], "sep must be one character, 'tab' or 'space'"),
        (["select", "{path}", "--sep", ";"], "there is no column 'died'"),
        (["select", "{path}", "--drop", "lab_*"], "no column matches the pattern 'lab_*'."),
        (["select", "{path}", "--drop", "died"], "column 'died' cannot be left out"),
        (["select", "{path}", "--columns", "died"], "there must be a feature beside the label"),
        (["select", "{path}", "--domain", "sites"], "did you mean 'site'?"),
        (["select", "{path}", "--task", "guess"], "task must be one of"),
        (["select", "{path}", "--task", "regression"], "must hold numbers, got text such as"),
        (["select", "{path}", "--n-features", "few"], "--n-features must be a positive number"),
        (["select", "{path}", "--n-features", "9"], "at most the number of features (4), got 9"),
        (["select", "{path}", "--output", "{folder}/no/a.csv"], "there is no folder"),
        (["select", "{path}", "--output", "a.doc"], "a.doc must end in .csv"),
        (["select", "{path}", "--report", "a.pdf"], "a.pdf must end in .html"),
        (["compare", "{path}", "--plot", "a.txt"], "a.txt must end in .png"),
        (["audit", "{path}"], "Missing option '--domain'"),
        (["audit", "{path}", "--domain", "site", "--new", "{other}"], "lacks `weight`"),
        (["effect", "{path}"], "Missing option '--treatment'"),
        (["effect", "{path}", "--treatment", "site"], "must hold numbers, got text such as"),
        (
            ["effect", "{path}", "--treatment", "age", "--task", "regression"],
            "must hold numbers, got text",
        ),
        (["effect", "{path}", "--treatment", "age", "--task", "x"], "--task must be auto"),
        (["select", "{path}", "--seed", "x"], "Invalid value for '--seed'"),
        (["chose", "{path}"], "No such command 'chose'."),
    ],
    ids=lambda value: " ".join(value[2:] or value) if isinstance(value, list) else "",
)
def test_wrong_options(path, command, told):
    other = write(path.parent / "other.csv", b"age,sex\n50,f\n60,m\n")
    places = {"path": path, "folder": path.parent, "other": other}
    run_in_process = CliRunner().invoke(
        app, [part.format(**places) for part in [*command, "--label", "died"]]
    )
    assert run_in_process.exit_code == 2
    assert told.format(**places) in run_in_process.stderr
    assert run_in_process.stderr.count("\n") == 1


def test_options_on_columns(path):
    """Names, patterns, several in one text, and columns that name rows."""
    command = ["select", str(path), "--label", "died", "--dry-run"]
    for options, n_features in [
        (["--drop", "s*"], 2),
        (["--columns", "age,we*"], 2),
        (["--id", "age", "--drop", "sex"], 2),
        (["--columns", "age", "--columns", "sex", "--domain", "site"], 2),
    ]:
        ended = CliRunner().invoke(app, [*command, *options])
        assert f"120 rows, {n_features} features" in ended.stdout


def test_version_help_and_modules():
    assert run("--version").stdout == f"ddml-fs {__version__}\n"
    shown = run("--help").stdout
    for command in ("select", "effect", "audit", "compare", "demo", "info"):
        assert command in shown
    program = "import sys, ddml_fs.cli; print('torch' in sys.modules, 'pandas' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.stdout == "False False\n"


def test_info():
    facts = json.loads(CliRunner().invoke(app, ["info", "--json"]).stdout)
    assert facts["ddml-fs"] == __version__
    assert facts["devices"][0] == "cpu"
    assert facts["extras"]["experiments"] is True
    assert "torch" in CliRunner().invoke(app, ["info"]).stdout


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    """A larger file, with a column that gives the label away."""
    frame = visits(400)
    frame["code"] = np.where(frame["died"] == "yes", 7.0, 3.0)
    return write(tmp_path_factory.mktemp("files") / "sites.csv", csv(frame))


def test_select(sites, tmp_path):
    """JSON alone on standard output; the tables in files."""
    command = ["select", sites, "--label", "died", "--domain", "site", "--drop", "code"]
    outputs = [tmp_path / f"effects.{kind}" for kind in ("csv", "xlsx", "parquet", "feather")]
    ended = run(*command, "--n-features", "1", "--json", "--output", outputs[0])
    assert ended.returncode == 0, ended.stderr
    result = json.loads(ended.stdout)
    assert result["selected"] == ["age"]
    assert result["domains"] == ["Köln", "Lyon", "York"]
    effect = {row["feature"]: row for row in result["effects"]}["age"]
    assert effect["low"] < effect["effect"] < effect["high"]
    # Of a probit model with a standard deviation of 15, on the scale of log-odds.
    assert effect["effect"] == pytest.approx(1.7 / 15, rel=0.3)
    assert "label `died`: 'yes' is 1" in ended.stderr
    table = pd.read_csv(outputs[0], index_col="feature")
    assert table.loc["age", "effect"] == pytest.approx(effect["effect"])
    for output in outputs[1:]:
        options = ["--n-features", "0.5", "--nuisance", "ridge", "--output", str(output)]
        ended = CliRunner().invoke(app, [*map(str, command), *options])
        assert "2 of 3 features selected" in ended.stdout
        assert f"written to {output}" in ended.stdout
    read = pd.read_excel(outputs[1]), pd.read_parquet(outputs[2]), pd.read_feather(outputs[3])
    for table in read:
        assert set(table.reset_index()["feature"]) == {"age", "weight", "sex"}


def test_effect(tmp_path):
    """A treatment of two texts, a covariate of three, and gaps."""
    rng = np.random.default_rng(0)
    n = 500
    town, age = rng.choice(["Bath", "Leeds", "York"], n), rng.standard_normal(n)
    treated = age + (town == "Bath") + rng.standard_normal(n) > 0
    outcome = 2 * treated + age + (town == "Bath") + 0.5 * rng.standard_normal(n)
    frame = pd.DataFrame({"town": town, "age": age, "drug": np.where(treated, "yes", "no")})
    frame = frame.assign(noise=rng.random(n), pain=outcome)
    frame.loc[:3, "noise"] = np.nan
    path = write(tmp_path / "drug.csv", csv(frame))
    command = ["effect", path, "--outcome", "pain", "--treatment", "drug", "--nuisance", "ridge"]
    ended = run(*command, "--score", "partially_linear", "--json")
    assert ended.returncode == 0, ended.stderr
    result = json.loads(ended.stdout)
    assert abs(result["effect"] - 2) < 4 * result["stderr"]
    assert result["low"] < 2 < result["high"]
    assert "treatment `drug`: 'yes' is 1" in ended.stderr
    assert "4 missing values in `noise` imputed" in ended.stderr
    biased = CliRunner().invoke(app, [*map(str, command), "--covariates", "noise", "--json"])
    assert json.loads(biased.stdout)["effect"] > 2.5


def test_effect_with_weights_and_clusters(tmp_path):
    """The columns are no covariates, and the result is that of the report's Python code."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.standard_normal(300), "ward": np.arange(300) // 6})
    frame["dose"] = frame["age"] + rng.standard_normal(300)
    frame["chance"] = 1 / rng.uniform(0.2, 1, 300)
    frame["pain"] = 2 * frame["dose"] + frame["age"] + rng.standard_normal(300)
    frame.loc[:4, "chance"] = np.nan
    path, report = write(tmp_path / "dose.csv", csv(frame)), tmp_path / "effect.html"
    command = ["effect", path, "--outcome", "pain", "--treatment", "dose", "--nuisance", "ridge"]
    command += ["--weight", "chance", "--json", "--report", report, "--cluster"]
    ended = CliRunner().invoke(app, [*map(str, command), "ward"])
    assert ended.exit_code == 0, ended.output
    result = json.loads(ended.stdout)
    assert (result["weight"], result["cluster"], result["rows"]) == ("chance", "ward", 295)
    assert "5 rows without `chance` left out" in result["notes"]
    assert "rows weighted by `chance`" in result["notes"]
    assert "50 clusters by `ward`, whose rows may depend on one another" in result["notes"]
    used = frame.iloc[5:]
    twin = DDML("ridge", random_state=0).fit(
        used[["age"]],
        used["pain"],
        treatment=used["dose"],
        sample_weight=used["chance"],
        cluster=used["ward"],
    )
    assert result["effect"] == pytest.approx(twin.effect_)
    assert result["stderr"] == pytest.approx(twin.stderr_)
    code = "treatment=t, sample_weight=data.weight, cluster=data.cluster)"
    assert code in report.read_text(encoding="utf-8")
    wrong = run(*command, "chance")
    assert wrong.returncode == 2
    assert "must be different" in wrong.stderr


def test_select_with_weights_and_clusters(tmp_path):
    frame = visits(400).assign(ward=np.arange(400) // 5)
    path = write(tmp_path / "wards.csv", csv(frame))
    command = ["select", path, "--label", "died", "--domain", "site", "--n-features", "1"]
    command += ["--weight", "weight", "--cluster", "ward", "--json"]
    ended = CliRunner().invoke(app, list(map(str, command)))
    assert ended.exit_code == 0, ended.output
    result = json.loads(ended.stdout)
    effects = pd.DataFrame(result["effects"]).set_index("feature")
    assert set(effects.index) == {"age", "sex"}
    assert "80 clusters by `ward`, whose rows may depend on one another" in result["notes"]
    y = (frame["died"] == "yes").astype(int)
    twin = CausalFeatureSelector(1, random_state=0)
    twin.fit(frame[["age", "sex"]], y, frame["site"], frame["weight"], frame["ward"])
    for name in ("effect", "stderr", "pvalue"):
        np.testing.assert_allclose(effects[name].astype(float), twin.effects_[name][effects.index])


def test_audit_with_weights_and_clusters(tmp_path):
    frame = visits(400).assign(ward=np.arange(400) // 5)
    path = write(tmp_path / "wards.csv", csv(frame))
    command = ["audit", path, "--label", "died", "--domain", "site", "--weight", "weight"]
    ended = CliRunner().invoke(app, list(map(str, [*command, "--cluster", "ward", "--json"])))
    assert ended.exit_code == 0, ended.output
    result = json.loads(ended.stdout)
    assert (result["weight"], result["cluster"]) == ("weight", "ward")
    y = (frame["died"] == "yes").astype(int)
    twin = ShiftAudit(random_state=0)
    twin.fit(frame[["age", "sex"]], y, frame["site"], frame["weight"], frame["ward"])
    rates = pd.DataFrame(result["base_rates"]).set_index("domain")
    for name in ("base_rate", "low", "high"):
        np.testing.assert_allclose(rates[name], twin.base_rates_.loc[rates.index, name])
    features = pd.DataFrame(result["features"]).set_index("feature")
    wanted = twin.features_.loc[features.index, "effect_low"]
    np.testing.assert_allclose(features["effect_low"].astype(float), wanted)


def test_effect_in_a_panel(tmp_path):
    """Shops differ in what nobody measured; the command finds what the class finds."""
    rng = np.random.default_rng(0)
    shop = np.repeat([f"shop {i}" for i in range(60)], 5)
    week, hidden = np.tile(np.arange(5), 60), np.repeat(rng.standard_normal(60), 5)
    size = rng.standard_normal(300)
    price = hidden + size + rng.standard_normal(300)
    sales = 2 * price + 3 * hidden + size + rng.standard_normal(300)
    columns = {"shop": shop, "week": week, "size": size, "price": price, "sales": sales}
    frame = pd.DataFrame(columns)
    path = write(tmp_path / "shops.csv", csv(frame))
    report = tmp_path / "report.html"
    command = ["effect", path, "--outcome", "sales", "--treatment", "price", "--nuisance", "ridge"]
    command += ["--covariates", "size", "--json", "--fixed-effects"]
    ended = CliRunner().invoke(app, [*map(str, command), "shop,week", "--report", str(report)])
    assert ended.exit_code == 0, ended.output
    result = json.loads(ended.stdout)
    model = DDML("ridge", random_state=0)
    model.fit(
        frame[["size", "shop", "week"]], sales, treatment=price, fixed_effects=["shop", "week"]
    )
    assert result["effect"] == pytest.approx(model.effect_)
    assert result["stderr"] == pytest.approx(model.stderr_)
    assert abs(result["effect"] - 2) < 4 * result["stderr"]
    assert "fixed_effects=[" in report.read_text()
    wrong = CliRunner().invoke(app, [*map(str, command), "shops"])
    assert wrong.exit_code != 0


def test_audit(sites, tmp_path):
    new = write(tmp_path / "new.csv", csv(visits(50).drop(columns=["died", "site"]).assign(code=3)))
    out = tmp_path / "features.csv"
    command = ["audit", sites, "--label", "died", "--domain", "site", "--new", new, "--json"]
    ended = run(*command, "--output", out)
    assert ended.returncode == 0, ended.stderr
    result = json.loads(ended.stdout)
    assert [row["feature"] for row in result["leaks"]] == ["code"]
    assert len(result["base_rates"]) == 3
    assert {row["features"] for row in result["forecast_new"]} == {"all", "selected", "stable"}
    assert all(0.5 < row["auc"] <= 1 for row in result["forecast"])
    assert pd.read_csv(out, index_col="feature").loc["code", "verdict"] == "leak"


def test_compare(sites, tmp_path):
    plot, out = tmp_path / "compare.png", tmp_path / "compare.csv"
    command = ["compare", str(sites), "--label", "died", "--domain", "site", "--drop", "code"]
    command += ["--n-features", "1", "--plot", str(plot), "--output", str(out)]
    ended = CliRunner().invoke(app, command)
    assert ended.exit_code == 0, ended.output
    assert "each value of `site` left out in turn" in ended.stdout
    for method in ("all features", "ddml_fs", "F-test", "mRMR", "L1 path", "RFE"):
        assert method in ended.stdout
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert len(pd.read_csv(out)) == 3 * 6 * 2


def test_reports(sites, tmp_path):
    pytest.importorskip("jinja2")
    for name, options in {
        "select": ["--label", "died", "--domain", "site", "--nuisance", "ridge"],
        "effect": ["--outcome", "died", "--treatment", "age", "--nuisance", "ridge"],
        "audit": ["--label", "died", "--domain", "site"],
    }.items():
        report = tmp_path / f"{name}.html"
        ended = CliRunner().invoke(app, [name, str(sites), *options, "--report", str(report)])
        assert ended.exit_code == 0, ended.output
        assert f"report written to {report}" in ended.stdout
        text = report.read_text(encoding="utf-8")
        assert "read_file(" in text
        assert "died" in text


def test_interrupted(path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("ddml_fs.cli.opening.read_file", interrupt)
    ended = CliRunner().invoke(app, ["select", str(path), "--label", "died"])
    assert ended.exit_code == 130
    assert ended.stderr == "Interrupted.\n"


def test_errors_of_the_program_are_not_hidden(path, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr("ddml_fs.cli.opening.read_file", fail)
    ended = CliRunner().invoke(app, ["select", str(path), "--label", "died"])
    assert isinstance(ended.exception, ZeroDivisionError)


def test_demo_estimates():
    data = make_effect_data("binary", n_samples=3000, n_features=20, random_state=0)
    found = estimates(data, seed=0)
    low, high = found["DDML"][1:]
    assert low < data.theta < high
    assert abs(found["DDML"][0] - data.theta) < abs(found["naive difference"][0] - data.theta) / 10


def test_crashes():
    """A model on the two leaks knows who died."""
    data = load_crashes()
    assert len(data.X) == len(data.y) == 6003
    assert np.bincount(data.sample_domain)[1:].tolist() == [667] * 9
    for leak in data.leaks:
        dead = data.y[data.X[leak] != "Not_a_Fatality_(Not_Applicable)"]
        assert dead.all()


def test_selection_gains_in_unseen_domains():
    """Accuracy in ten unseen domains, against all features and as many of the F-test."""
    data = make_domain_data(n_samples=500, n_targets=10, random_state=0)
    source = data.sample_domain > 0
    X, y = data.X[source], data.y[source]
    selector = CausalFeatureSelector(random_state=0)
    selector.fit(data.X, data.y, sample_domain=data.sample_domain)
    chosen = selector.get_support(indices=True)
    choices = {
        "all": np.arange(X.shape[1]),
        "F-test": np.argsort(-f_classif(X, y)[0])[: len(chosen)],
        "ours": chosen,
    }
    accuracy = {}
    for name, columns in choices.items():
        model = LogisticRegression(max_iter=1000).fit(X[:, columns], y)
        right = model.predict(data.X[:, columns]) == data.y
        accuracy[name] = np.mean([right[data.sample_domain == d].mean() for d in range(-10, 0)])
    assert accuracy["ours"] > accuracy["F-test"] + 0.05
    assert accuracy["ours"] > accuracy["all"] + 0.05
