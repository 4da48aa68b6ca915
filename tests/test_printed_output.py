"""What README.md and docs/command_line.md show of the commands is what the commands print."""

import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ddml_fs.cli import app
from ddml_fs.datasets import load_crashes

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "command_line.md"
LEFT_OUT = {"...", "…"}
DIGITS = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def blocks_of(page, command):
    """What a page shows below a command, each as a list of lines."""
    blocks = []
    for text in re.findall(r"^```console\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            given, *lines = part.splitlines()
            if given == command and lines:
                blocks.append(lines)
    return blocks


def words_of(lines):
    """Words of lines; rules of tables and names of files are left out."""
    lines = [line for line in lines if not line.startswith(("report:", "picture:"))]
    return [word for line in lines for word in line.split() if set(word) != {"─"}]


def alike(shown, printed):
    """Whether two words are equal but for the last digits of numbers, which machines round."""
    given, found = ([float(x) for x in DIGITS.findall(word)] for word in (shown, printed))
    if len(given) != len(found) or DIGITS.sub("", shown) != DIGITS.sub("", printed):
        return False
    return all(abs(a - b) <= 0.002 * (1 + abs(b)) for a, b in zip(given, found, strict=True))


def missing(shown, printed):
    """The first stretch of words, between two ellipses, that was not printed; None if all were.

    Examples
    --------
    >>> missing("a 1.00 ... c".split(), "x a 1.001 b c".split())
    >>> missing("a 1.00 c".split(), "a 1.00 b c".split())
    ['a', '1.00', 'c']
    """
    stretches: list = [[]]
    for word in shown:
        if word in LEFT_OUT:
            stretches.append([])
        else:
            stretches[-1].append(word)
    start = 0
    for stretch in stretches:
        n = len(stretch)
        places = range(start, len(printed) - n + 1)
        fits = (i for i in places if all(map(alike, stretch, printed[i : i + n])))
        place = next(fits, None)
        if place is None:
            return stretch
        start = place + n
    return None


CRASHES = "crashes.csv.gz --label died --domain division"
COMMANDS = [
    f"audit {CRASHES} --report audit.html",
    f"select {CRASHES} --dry-run",
    f"select {CRASHES} --drop RACE,HISPANIC_ORIGIN --output effects.csv",
    "effect crashes.csv.gz --outcome died --treatment AGE "
    "--covariates SEX,PERSON_TYPE,SEATING_POSITION --nuisance smooth",
]


def output_of(command, monkeypatch, folder):
    """What a command prints on a wide terminal, in a folder that has the crashes."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "240")
    shutil.copy(load_crashes().path, "crashes.csv.gz")
    ended = CliRunner().invoke(app, command.split()[1:])
    assert ended.exit_code == 0, ended.output
    return ended.output


def check(page, command, output):
    """All that a page shows below a command must be in its output."""
    blocks = blocks_of(page, command)
    assert blocks, f"{page.name} shows no output of {command!r}"
    for lines in blocks:
        assert missing(words_of(lines), words_of(output.splitlines())) is None


@pytest.mark.parametrize("command", [f"ddml-fs {command}" for command in COMMANDS])
def test_commands(command, tmp_path, monkeypatch):
    check(PAGE, command, output_of(command, monkeypatch, tmp_path))


def test_demo(tmp_path, monkeypatch):
    output = output_of("ddml-fs demo", monkeypatch, tmp_path)
    check(PAGE, "ddml-fs demo", output)
    check(ROOT / "README.md", "make demo", output)
    for page in ("report.html", "effects.png"):
        assert (tmp_path / "ddml_fs_demo" / page).stat().st_size > 10_000
        assert str(Path("ddml_fs_demo") / page) in output


def test_a_wrong_figure_is_found():
    assert missing(["AUC", "0.893"], ["AUC", "0.901"]) == ["AUC", "0.893"]
    assert missing(["(14)"], ["(15)"]) == ["(14)"]
    assert missing(["a", "…", "b"], ["b", "a"]) == ["b"]
