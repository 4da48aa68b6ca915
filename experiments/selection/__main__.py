"""``python -m experiments.selection domains``."""

import typer

from experiments.selection import discoveries, domains

app = typer.Typer(no_args_is_help=True)
app.command(name="domains")(domains.main)
app.command(name="discoveries")(discoveries.main)


@app.callback()
def studies():
    """What the selector finds where the truth is known."""


if __name__ == "__main__":
    app()
