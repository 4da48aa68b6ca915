"""The command line: ``ddml-fs demo`` and ``ddml-fs effect``."""

from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from rich.console import Console
from rich.table import Table

from ddml_fs import DDML
from ddml_fs.datasets import make_effect_data
from ddml_fs.inference import normal_interval
from ddml_fs.plain import naive_difference, plain_dml

app = typer.Typer(
    help="Causal effects by disentangled double machine learning.", no_args_is_help=True
)
console = Console()


@app.command()
def demo(
    seed: Annotated[int, typer.Option(help="Seed of the data and of all estimates.")] = 0,
    n_samples: Annotated[int, typer.Option(help="Rows of the data.", min=200)] = 6000,
):
    """Estimate an effect that is known, in four ways."""
    data = make_effect_data("binary", n_samples=n_samples, n_features=50, random_state=seed)
    console.print(
        f"{n_samples} rows, 50 covariates, a binary treatment with strong nonlinear confounding.\n"
        "Ten covariates matter: five confound, five act on the treatment alone.\n"
    )
    table = Table("", "effect", "95 % interval", "error")
    table.add_row("truth", f"{data.theta:.3f}", "", "")

    def add(name, theta, interval):
        inside = interval[0] <= data.theta <= interval[1]
        table.add_row(
            name,
            f"{theta:.3f}",
            f"{interval[0]:.3f} to {interval[1]:.3f}" + ("" if inside else "  misses"),
            f"{theta - data.theta:+.3f}",
        )

    with console.status("plain DML with boosting ..."):
        others = {
            "naive difference": naive_difference(data.y, data.treatment),
            "plain DML (boosting)": plain_dml(data.X, data.y, data.treatment, random_state=seed),
        }
    for name, estimate in others.items():
        add(name, estimate.theta, normal_interval(estimate.theta, estimate.stderr, 0.95))
    with console.status("DDML ..."):
        effect = DDML(random_state=seed).fit(data.X, data.y, treatment=data.treatment)
    add("DDML", effect.effect_, effect.conf_int())
    console.print(table)

    found = effect.roles_[effect.roles_["role"] != "none"]
    for role in ("confounder", "treatment", "outcome"):
        names = ", ".join(found.index[found["role"] == role]) or "none"
        console.print(f"covariates found to act as {role}: {names}")
    console.print("(the truth: x0 to x4 confound, x5 to x9 act on the treatment alone)")


@app.command()
def effect(
    file: Annotated[Path, typer.Argument(help="A CSV file with a header.", exists=True)],
    outcome: Annotated[str, typer.Option(help="Column of the outcome.")],
    treatment: Annotated[str, typer.Option(help="Column of the treatment.")],
    score: Annotated[
        str, typer.Option(help="partially_linear or interactive.")
    ] = "partially_linear",
    target: Annotated[str, typer.Option(help="ate or att.")] = "ate",
    nuisance: Annotated[str, typer.Option(help="mlp or rf.")] = "mlp",
    seed: Annotated[int, typer.Option(help="Seed.")] = 0,
):
    """Estimate the effect of one column of a CSV file on another, given all others."""
    frame = pd.read_csv(file)
    for name in (outcome, treatment):
        if name not in frame:
            raise typer.BadParameter(f"no column {name!r} in {file}; it has {list(frame.columns)}.")
    X = frame.drop(columns=[outcome, treatment])
    model = DDML(nuisance, score=score, target=target, random_state=seed, verbose=True)
    try:
        model.fit(X, frame[outcome], treatment=frame[treatment])
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    console.print(model.summary().to_string())
    console.print("\n" + model.diagnostics().to_string())
    roles = model.roles_[model.roles_["role"] != "none"]
    console.print("\n" + roles.round(2).to_string())


if __name__ == "__main__":
    app()
