"""Runs the code of pages and examples when the site is built, and shows what it gives.

Pages that ``mkdocs.yml`` lists under ``extra: run`` keep their place and gain outputs and figures.
Every script in ``docs/examples`` becomes a page of the gallery. With the environment variable
``DDML_FS_DOCS=quick`` nothing is run, for a look at the text alone.
"""

import ast
import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import warnings
from pathlib import Path

from mkdocs.structure.files import File

EXAMPLES = Path(__file__).parent / "examples"
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROLE = re.compile(r":(?:class|func|meth|mod|data|attr):<code>(~?)([\w.]+)</code>")
NOT_RUN = "# not run"  # a Python block that starts with this is shown only
WIDTH = 80  # characters of an output line
MOST_LINES = 50  # of the output of a command


def from_script(text):
    """A script as Markdown: its docstring and the comments after ``# %%`` are prose.

    Examples
    --------
    >>> print(from_script('\"\"\"# Title\"\"\"\\n\\nx = 1\\n\\n# %%\\n# Prose.\\n\\nx'))
    # Title
    <BLANKLINE>
    ```python
    x = 1
    ```
    <BLANKLINE>
    Prose.
    <BLANKLINE>
    ```python
    x
    ```
    """
    tree = ast.parse(text)
    parts = [ast.get_docstring(tree)]
    code = "\n".join(text.splitlines()[tree.body[0].end_lineno :])
    for cell in re.split(r"^# %%\n", code, flags=re.MULTILINE):
        lines = cell.strip().splitlines()
        n = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
        parts.append("\n".join(line[2:] for line in lines[:n]))
        rest = "\n".join(lines[n:]).strip()
        parts.append(f"```python\n{rest}\n```" if rest else "")
    return "\n\n".join(part for part in parts if part)


def wrapped(text):
    """Text whose long sentences are wrapped, as a terminal does; tables are left alone."""
    lines = [line.rstrip() for line in text.rstrip().splitlines()]
    prose = [len(line) > WIDTH and not re.search("  |[│┃┏┡└━─]", line.strip()) for line in lines]
    return "\n".join(
        textwrap.fill(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False) if wrap else line
        for line, wrap in zip(lines, prose, strict=True)
    )


def run_block(code, namespace):
    """Run a block as a notebook does, and return what it prints, with the value it ends with."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, kind, *_: print(f"{kind.__name__}: {message}")
        exec(compile(tree, "<docs>", "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "<docs>", "eval"), namespace)
            if value is not None and "matplotlib" not in type(value).__module__:
                print(value)
    return wrapped(out.getvalue())


def run_commands(code):
    """Run the lines of a console block that start with ``$``, and return all lines with outputs."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "COLUMNS": str(WIDTH), "NO_COLOR": "1"}
    shown = []
    for line in code.splitlines():
        shown.append(line)
        if line.startswith("$ "):
            done = subprocess.run(
                line[2:], shell=True, env=environment, capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise RuntimeError(f"{line} ended with {done.returncode}: {done.stderr}")
            lines = wrapped(done.stdout).splitlines()
            shown += lines[:MOST_LINES] + ["…"] * (len(lines) > MOST_LINES)
    return "\n".join(shown)


def figures(name):
    """Open figures as PNG, by name; they are closed."""
    import matplotlib.pyplot as plt

    out = {}
    for number in plt.get_fignums():
        picture = io.BytesIO()
        plt.figure(number).savefig(picture, dpi=130, bbox_inches="tight")
        out[f"{name}-{len(out) + 1}.png"] = picture.getvalue()
    plt.close("all")
    return out


def run_page(markdown, name):
    """Run all blocks of a page, in one namespace and an empty folder.

    Returns
    -------
    markdown : str
        The page with outputs and figures.
    pictures : dict of str to bytes
        Figures, and reports that commands wrote.
    """
    import matplotlib.pyplot as plt
    import pandas as pd
    import sklearn

    plt.close("all")  # a page shows its own figures alone
    namespace, pictures = {"__name__": "__main__"}, {}

    def show(match):
        kind, code = match.groups()
        if kind == "console":
            shown = f"```console\n{run_commands(code)}\n```"
            made = {path.name: path.read_bytes() for path in Path().glob("*.html")}
            links = [f"[{each}](figures/{each})" for each in made if each not in pictures]
            pictures.update(made)
            return shown + (f"\n\nIt wrote {', '.join(links)}." if links else "")
        if code.startswith(NOT_RUN):
            return f"```python\n{code.split(chr(10), 1)[1]}```"
        output = run_block(code, namespace)
        made = figures(f"{name}-{len(pictures) + 1}")
        pictures.update(made)
        parts = [match.group(0)]
        parts += [f'```{{.text .output title="Output"}}\n{output}\n```'] if output else []
        parts += [f"![Figure of the code above](figures/{each})" for each in made]
        return "\n\n".join(parts)

    options = ("display.width", WIDTH, "display.max_columns", 12, "display.precision", 3)
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        pd.option_context(*options),
        sklearn.config_context(),  # what a page sets is its own
    ):
        return BLOCK.sub(show, markdown), pictures


def page(markdown, uri, config, quick):
    """The files of a page that is run, itself and its pictures; a note if its data are missing."""
    text, pictures = markdown, {}
    if not quick:
        try:
            text, pictures = run_page(markdown, Path(uri).stem)
        except FileNotFoundError as error:  # data of others, and no network
            text = markdown.replace("\n\n", f"\n\n!!! note\n    Not run: {error}\n\n", 1)
    folder = Path(uri).parent
    yield File.generated(config, uri, content=text)
    for picture, content in pictures.items():
        yield File.generated(config, (folder / "figures" / picture).as_posix(), content=content)


def card(markdown, uri, pictures):
    """An entry of the gallery: title, first sentence, first picture."""
    title, lead = re.match(r"# (.*)\n+((?:.+\n?)+)", markdown).groups()
    sentence = re.split(r"(?<=[.?]) ", " ".join(lead.split()))[0]
    name = Path(uri).name
    picture = f"\n\n    [![{title}](figures/{pictures[0]})]({name})" if pictures else ""
    return f"-   **[{title}]({name})**{picture}\n\n    {sentence}\n"


def on_page_content(html, page, config, files):
    """Turn the roles by which docstrings name classes, as numpydoc does, into links."""

    def link(match):
        short, name = match.groups()
        shown = name.rpartition(".")[2] if short else name
        return f'<autoref identifier="{name}" optional><code>{shown}</code></autoref>'

    return ROLE.sub(link, html)


def on_files(files, config):
    """Replace the pages that are run, and add the gallery."""
    import matplotlib

    matplotlib.use("Agg")
    quick = os.environ.get("DDML_FS_DOCS") == "quick"
    if "DDML_FS_DATA" in os.environ:  # pages run in folders of their own
        os.environ["DDML_FS_DATA"] = str(Path(os.environ["DDML_FS_DATA"]).resolve())
    for uri in config.extra["run"]:
        file = files.get_file_from_path(uri)
        markdown = file.content_string
        files.remove(file)
        for each in page(markdown, uri, config, quick):
            files.append(each)
    cards = []
    for script in sorted(EXAMPLES.glob("*.py")):
        uri, markdown = f"gallery/{script.stem}.md", from_script(script.read_text("utf-8"))
        made = list(page(markdown, uri, config, quick))
        for each in made:
            files.append(each)
        pictures = [Path(each.src_uri).name for each in made[1:]]
        cards.append(card(markdown, uri, pictures))
    index = files.get_file_from_path("gallery/index.md")
    entries = '<div class="grid cards" markdown>\n\n' + "\n".join(cards) + "\n</div>\n"
    text = index.content_string
    files.remove(index)
    files.append(File.generated(config, "gallery/index.md", content=f"{text}\n{entries}"))
    return files
