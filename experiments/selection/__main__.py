"""``python -m experiments.selection domains``."""

import typer

from experiments.selection import domains

app = typer.Typer(no_args_is_help=True)
app.command(name="domains")(domains.main)


@app.callback()
def studies():
    """What the selector finds where the truth is known."""


if __name__ == "__main__":
    app()
