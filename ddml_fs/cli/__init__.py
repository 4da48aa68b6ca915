"""The command line: ``ddml-fs select``, ``effect``, ``audit``, ``compare``, ``site``, ``pool``.

What is slow to import, torch above all, is imported inside the commands.
"""

from typing import Annotated

import typer

from ddml_fs.cli.audit import audit
from ddml_fs.cli.compare import compare
from ddml_fs.cli.demo import demo
from ddml_fs.cli.effect import effect
from ddml_fs.cli.group import Commands
from ddml_fs.cli.info import info
from ddml_fs.cli.select import select
from ddml_fs.cli.site import pool, site
from ddml_fs.version import __version__

app = typer.Typer(
    name="ddml-fs",
    help="Causal effects and causal features by disentangled double machine learning.",
    cls=Commands,
    add_completion=False,
)
for command in (select, effect, audit, compare, site, pool, demo, info):
    app.command()(command)


def _show_version(wanted: bool):
    if wanted:
        typer.echo(f"ddml-fs {__version__}")
        raise typer.Exit()


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
):
    """Causal effects and causal features by disentangled double machine learning."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
