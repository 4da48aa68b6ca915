"""``python -m experiments.selection domains`` and ``… amazon``."""

import typer

from experiments.selection import amazon, domains

app = typer.Typer(help=__doc__, no_args_is_help=True)
app.command(name="domains")(domains.main)
app.command(name="amazon")(amazon.main)

if __name__ == "__main__":
    app()
