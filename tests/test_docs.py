"""What the README and the pages show is true: code runs, commands and links are valid."""

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
import typer.main
import yaml
from published_files import DATA, needs

from ddml_fs.cli import app
from ddml_fs.datasets.jobs import JOBS_PREPARED

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.py"))
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"^```(?:bash|console|sh|shell)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(ddml-fs [^`\n]+)`")
NOT_RUN = "# not run"
NEEDS = {"docs/believe.md": [needs(JOBS_PREPARED)]}  # pages on data that must be there
HARD = (
    "foretell",
    "1 / s",
    "let go without",
    "is not chosen between",
    "so many-th",
    "one a feature",
)


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def pages_to_run():
    """Pages with Python blocks, each skipped where its data are missing."""
    names = {name_of(page): page for page in PAGES if blocks(page)}
    return [pytest.param(page, id=n, marks=NEEDS.get(n, ())) for n, page in names.items()]


def blocks(path):
    """The Python blocks of a page that are to be run, with the line that each starts at."""
    text = path.read_text()
    found = [(text[: m.start(1)].count("\n"), m.group(1)) for m in PYTHON.finditer(text)]
    return [(line, code) for line, code in found if not code.startswith(NOT_RUN)]


def commands(path):
    """All ``ddml-fs`` commands of a page."""
    text = path.read_text()
    lines = INLINE.findall(text)
    for block in map(str.splitlines, SHELL.findall(text)):
        prompts = [line.removeprefix("$ ") for line in block if line.startswith("$ ")]
        lines += prompts or block  # without prompts, there are no outputs either
    return [line for line in lines if line.startswith("ddml-fs ")]


def check_command(line):
    """Raise ValueError unless a command line has a known command and valid options."""
    try:
        parse_command(line)
    except Exception as error:
        # Wrong options; their class is click's or typer's own, by version.
        if not hasattr(error, "format_message"):
            raise
        raise ValueError(f"{line}: {error.format_message()}") from None


def parse_command(line):
    words = shlex.split(line, comments=True)[1:]
    group = typer.main.get_command(app)
    context = group.context_class(group, info_name="ddml-fs")
    command = context.command
    if words[0].startswith("-"):
        known = [option for each in command.params for option in each.opts]
        if words[0] not in [*known, "--help"]:
            raise ValueError(f"{line}: no such option")
        return
    name, command, rest = command.resolve_command(context, words)
    # No file of the examples exists, and none is opened: only the options are read.
    parser = command.make_parser(command.context_class(command, info_name=name))
    values, _, _ = parser.parse_args(list(rest))
    missing = [p.opts[0] for p in command.params if p.required and p.name not in values]
    if missing and rest and "--help" not in rest:  # a bare name is a mention
        raise ValueError(f"{line}: {', '.join(missing)} missing")


@pytest.fixture(scope="module")
def hooks():
    pytest.importorskip("mkdocs")
    spec = importlib.util.spec_from_file_location("docs_hooks", ROOT / "docs" / "hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("path", pages_to_run())
def test_python_blocks_run(path, tmp_path, monkeypatch):
    """The blocks of one page share a namespace, and run one after the other in an empty folder."""
    import sklearn

    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    if DATA:  # may be relative to where the tests were started
        monkeypatch.setenv("DDML_FS_DATA", str(Path(DATA).resolve()))
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    with sklearn.config_context():
        for line, code in blocks(path):
            # Tracebacks show the line of the page.
            exec(compile("\n" * line + code, str(path), "exec"), namespace)
    plt.close("all")


@pytest.mark.parametrize("path", [page for page in PAGES if commands(page)], ids=name_of)
def test_commands_are_valid(path):
    for line in commands(path):
        check_command(line)


@pytest.mark.parametrize(
    "line",
    [
        "ddml-fs slect a.csv --label y",
        "ddml-fs select a.csv --lable y",
        "ddml-fs audit a.csv --label y",
        "ddml-fs --vers",
    ],
)
def test_wrong_commands_are_found(line):
    with pytest.raises(ValueError, match=line):
        check_command(line)


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_lead_to_files(path):
    for target in re.findall(r"\]\(([^)#\s]+?)(?:#[^)]*)?\)", path.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        there = path.parent / target
        script = ROOT / "docs" / "examples" / f"{there.stem}.py"  # pages of the gallery are made
        assert there.exists() or (there.parent.name == "gallery" and script.exists()), target


def test_navigation_has_every_page():
    text = (ROOT / "mkdocs.yml").read_text()
    named = set(re.findall(r"[\w/]+\.md", text))
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    pages |= {f"gallery/{path.stem}.md" for path in EXAMPLES} | {"gallery/index.md"}
    assert named == pages


@pytest.mark.parametrize("path", [*PAGES, *EXAMPLES], ids=name_of)
def test_plain_english(path):
    assert [phrase for phrase in HARD if phrase in path.read_text()] == []


def test_gallery():
    assert len(EXAMPLES) >= 6
    for path in EXAMPLES:
        compile(path.read_text(), str(path), "exec")
        assert path.read_text().startswith('"""# '), path


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=name_of)
def test_github_files_are_yaml(path):
    assert yaml.safe_load(path.read_text())


def test_workflow_runs_the_verbs_of_the_makefile():
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    verbs = set(re.findall(r"run: make (\w+)", text))
    assert verbs == {"lint", "test", "docs"}
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{verb}:", makefile, re.MULTILINE) for verb in verbs)


class TestHooks:
    def test_script_becomes_a_page(self, hooks):
        text = hooks.from_script(
            '"""# Title\n\nLead."""\n\nx = 1\n\n# %%\n# Prose,\n# more.\n\nx\n'
        )
        expected = "# Title\n\nLead.\n\n```python\nx = 1\n```\n\nProse,\nmore.\n\n```python\nx\n```"
        assert text == expected

    def test_block_shows_prints_warnings_and_its_value(self, hooks):
        code = "import warnings\nprint('a')\nwarnings.warn('b')\n1 + 1"
        assert hooks.run_block(code, {}) == "a\nUserWarning: b\n2"
        assert hooks.run_block("x = 1", {}) == ""

    def test_page_shows_outputs_and_figures(self, hooks):
        page = (
            "# T\n\n```python\nimport matplotlib.pyplot as plt\n_ = plt.plot([1])\n```\n\n"
            "```python\n# not run\nraise ValueError\n```\n\n```python\nprint(3)\n```\n"
        )
        text, pictures = hooks.run_page(page, "t")
        assert "![Figure of the code above](figures/t-1-1.png)" in text
        assert "# not run" not in text
        assert "\n3\n" in text
        assert [*pictures] == ["t-1-1.png"]
        assert pictures["t-1-1.png"].startswith(b"\x89PNG")

    def test_long_sentences_are_wrapped_and_tables_are_not(self, hooks):
        rule, sentence = " " + "─" * 90, "ten chars " * 9
        lines = hooks.wrapped(f"{rule}\n{sentence}\nshort").splitlines()
        assert lines == [rule, ("ten chars " * 8).rstrip(), "  ten chars", "short"]

    def test_page_without_its_data_says_so(self, hooks, monkeypatch):
        monkeypatch.setattr(hooks.File, "generated", lambda config, uri, content: content)
        page = "# T\n\n```python\nraise FileNotFoundError('no jobs.npz')\n```\n"
        (text,) = hooks.page(page, "gallery/t.md", config=None, quick=False)
        assert text.startswith("# T\n\n!!! note\n    Not run: no jobs.npz\n\n```python")

    def test_commands_are_run(self, hooks):
        assert hooks.run_commands("$ echo a b\n") == "$ echo a b\na b"
        with pytest.raises(RuntimeError, match="ended with 3"):
            hooks.run_commands("$ exit 3")

    def test_card_of_the_gallery(self, hooks):
        card = hooks.card("# T\n\nOne thing. Another.\n", "gallery/t.md", ["t-1-1.png"])
        assert "**[T](t.md)**" in card
        assert "One thing." in card
        assert "Another" not in card
        assert "figures/t-1-1.png" in card
