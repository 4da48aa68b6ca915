"""``python -m experiments.effects synthetic``"""

from typing import Annotated

import typer
from rich import print

from experiments.effects import ablation as ablation_study
from experiments.effects import synthetic as synthetic_study

app = typer.Typer(help=__doc__, no_args_is_help=True)
Jobs = Annotated[int, typer.Option(help="Workers; each computes with one thread.")]

TUNED = (
    "Seeds 100 to 119. All settings were chosen on seeds 0 to 19, and the same serve all eight "
    "data sets; `tuned.md` says what was tuned, and what had been seen of these seeds by then."
)


@app.command()
def synthetic(
    first_seed: Annotated[int, typer.Option(help="First seed.")] = 100,
    n_seeds: Annotated[int, typer.Option(help="How many seeds.")] = 20,
    quick: Annotated[bool, typer.Option(help="Two seeds, d = 20 only.")] = False,
    jobs: Jobs = 2,
):
    """Tables I and II: DDML, boosting, OLS and the limit on the paper's synthetic data."""
    settings = synthetic_study.SETTINGS
    command = "python -m experiments.effects synthetic"
    if quick:
        n_seeds, settings = 2, [s for s in settings if s[1] == 20]
    official = first_seed == 100 and not quick
    seeds = range(first_seed, first_seed + n_seeds)
    note = TUNED if official else f"Seeds {seeds[0]} to {seeds[-1]}: a trial, not the study."
    name = "synthetic" if official else "synthetic_trial"
    print(synthetic_study.study(seeds, settings, jobs, command, note, name).to_string())


@app.command()
def ablation(
    n_seeds: Annotated[int, typer.Option(help="Seeds 0 to n − 1, the tuning seeds.")] = 10,
    jobs: Jobs = 2,
):
    """Which parts of the method change the error, on the tuning seeds."""
    print(ablation_study.study(range(n_seeds), jobs).to_string())


if __name__ == "__main__":
    app()
