"""``python -m experiments.audit crashes``, ``leaks``, ``null`` and ``forecast``."""

import typer

from experiments.audit import crashes, forecast, leaks, null

app = typer.Typer(no_args_is_help=True)
app.command(name="crashes")(crashes.main)
app.command(name="leaks")(leaks.main)
app.command(name="null")(null.main)
app.command(name="forecast")(forecast.main)


@app.callback()
def studies():
    """What ShiftAudit finds where the truth is known, and how its forecasts hold."""


if __name__ == "__main__":
    app()
