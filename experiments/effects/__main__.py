"""``python -m experiments.effects``: the paper's tables; further commands for the rest."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from joblib import Parallel, delayed
from rich import print
from rich.progress import track

from experiments.effects import ablation as parts
from experiments.effects import figures, simulated, tables
from experiments.effects import sensitivity as settings
from experiments.effects.data import data_sets, small_data_sets
from experiments.effects.methods import METHODS
from experiments.effects.runs import fit_quietly, run_all

app = typer.Typer(help=__doc__)
Jobs = Annotated[int, typer.Option(help="Processes, of one thread each.")]
Seeds = Annotated[int, typer.Option(help="Replications of the synthetic data.")]
Quick = Annotated[bool, typer.Option(help="A small version of all of it, in two minutes.")]
Method = Annotated[
    list[str] | None, typer.Option(help="Only these; the others as in the last tables.")
]
FRESH = "The tables' replications; `tuned.md` says what had been seen of them."

DEFAULT = "DDML-stacked, interactive"
ON_FRESH_SEEDS = ("DDML-MLP", "DDML-RF", "DML-HGB", "OLS-1")
SMALL = "A few hundred rows and one replication: a look, not a study."
NOTES = {
    "IHDP": "IHDP: the interactive score was tuned on outcomes simulated for its covariates.",
    "Twins": "Twins: with the treatments of the file, and drawn ten times.",
    "Jobs": "Jobs: all units, and the training rows of ten splits.",
}
MARKS = (
    "`tuned.md` says what was tuned. **Best** and *second best* of a column are marked. The last "
    "of our rows has the true nuisance functions; what is not known is fitted."
)


def note_on(columns):
    """What to know of these data sets."""
    notes = []
    if drawn := [seed for c in columns if c.table != "III" for seed in c.seeds]:
        seeds = f"seeds {min(drawn)} to {max(drawn)}"
        notes.append(f"Synthetic data: {seeds}; all settings were chosen on seeds 0 to 19.")
    real = dict.fromkeys(c.name.split(",")[0] for c in columns if c.table == "III")
    return " ".join([*notes, *(NOTES[name] for name in real), MARKS])


def probed(n_seeds, n_ihdp):
    """The three data sets of the figures, with so many replications."""
    by_name = {data.name: data for data in data_sets(n_seeds)}
    names = {"binary 100": n_seeds, "continuous 100": n_seeds, "IHDP": n_ihdp}
    return [replace(by_name[name], seeds=by_name[name].seeds[:n]) for name, n in names.items()]


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    quick: Quick = False,
    method: Method = None,
    data: Annotated[list[str] | None, typer.Option(help="Only these data sets.")] = None,
    n_seeds: Seeds = 10,
    n_jobs: Jobs = 2,
    out: Annotated[Path | None, typer.Option(help="Folder of the results.")] = None,
):
    """Tables I to III: every method on every data set. Runs that are done are not done again."""
    os.environ["PYTHONWARNINGS"] = "ignore"  # of rivals in workers, by the thousand
    if context.invoked_subcommand is not None:
        return
    columns = small_data_sets() if quick else data_sets(n_seeds)
    command = "python -m experiments.effects"
    command += " --quick" if quick else f" --n-seeds {n_seeds}" if n_seeds != 10 else ""
    name, chosen = "tables", METHODS
    place = {name: i for i, name in enumerate([*METHODS, tables.LIMIT])}
    if data:
        known = [column.name for column in columns]
        if unknown := set(data) - set(known):
            raise typer.BadParameter(f"data must be of {known}, got {sorted(unknown)}.")
        columns = [column for column in columns if column.name in data]
        command += "".join(f" --data '{column.name}'" for column in columns)
        name = "_".join([name, *(c.name.replace(", ", "_").replace(" ", "_") for c in columns)])
    folder = out or (Path("results_quick") if quick else tables.RESULTS)
    note, runs = SMALL if quick else note_on(columns), []
    if method:
        chosen = chosen_of(method, METHODS)
        try:
            runs = [tables.runs_before(folder / f"{name}_runs.csv", chosen, columns)]
        except (OSError, ValueError) as error:
            raise typer.BadParameter(str(error)) from None
        command += "".join(f" --method '{name}'" for name in chosen)
        note += " Other rows than those of this command are of earlier runs."
    runs = pd.concat([*runs, run_all(chosen, columns, n_jobs), tables.limits(columns)])
    runs = runs.sort_values("method", key=lambda m: m.map(place), kind="stable")
    summary = tables.write(name, runs, columns, command, note, folder)
    for table in dict.fromkeys(column.table for column in columns):
        print(f"\n[bold]{tables.TITLES[table]}: MAE[/bold]")
        print(tables.one_table(summary, columns, table, "mae").to_string())
    print(f"\n{folder / name}.md")


def chosen_of(method, known):
    """The methods of some names, which must be known."""
    if unknown := set(method) - set(known):
        raise typer.BadParameter(f"method must be of {list(known)}, got {sorted(unknown)}.")
    return {name: METHODS[name] for name in method}


def study(name, title, methods, columns, n_jobs, command, note):
    """Run variants on data sets and write their MAE; methods are given by data set."""
    runs = pd.concat(run_all(methods(data), [data], n_jobs) for data in columns)
    summary = tables.summarise(runs)
    table = figures.wide(summary, [data.name for data in columns])
    summary.to_csv(tables.RESULTS / f"{name}.csv", index=False, float_format="%.5g")
    lines = [f"# {title}", "", note, "", tables.made_by(command), ""]
    text = table.to_markdown(floatfmt=".4f").replace(" nan ", "     ")
    (tables.RESULTS / f"{name}.md").write_text("\n".join([*lines, text, ""]))
    print(table.to_string(float_format="{:.4f}".format))
    return table


@app.command()
def ablation(nuisance: str = "mlp", n_seeds: Seeds = 10, n_jobs: Jobs = 2):
    """Which parts of the method earn their place; table and dots."""
    columns = parts.columns({data.name: data for data in data_sets(n_seeds)}, nuisance)

    def methods(data):
        return parts.variants(nuisance, data.name)

    name = f"ablation_{nuisance}"
    command = f"python -m experiments.effects ablation --nuisance {nuisance} --n-seeds {n_seeds}"
    title = f"DDML-{nuisance.upper()}, one part changed at a time: MAE"
    note = f"{FRESH} IHDP: {parts.REPLICATIONS} of them."
    table = study(name, title, methods, columns, n_jobs, command, note)
    figures.ablation(table, tables.RESULTS, name)


@app.command()
def sensitivity(nuisance: str = "mlp", n_seeds: Seeds = 5, n_jobs: Jobs = 2):
    """The folds K and both weights of the loss; table and curves."""
    columns = probed(n_seeds, 2 * n_seeds)
    name = f"sensitivity_{nuisance}"
    command = f"python -m experiments.effects sensitivity --nuisance {nuisance} --n-seeds {n_seeds}"
    title = f"DDML-{nuisance.upper()}, one setting changed at a time: MAE"

    def methods(data):
        return settings.variants(nuisance, data.name == "IHDP")

    note = f"{FRESH} IHDP: {2 * n_seeds} of them."
    table = study(name, title, methods, columns, n_jobs, command, note)
    figures.sensitivity(table, tables.RESULTS, name)


@app.command()
def tuning(n_seeds: Seeds = 12, n_jobs: Jobs = 2):
    """The interactive score on simulated outcomes, on which it and the stack were tuned."""
    columns = simulated.columns(n_seeds)
    ours = [name for name in METHODS if name.endswith("interactive")]
    methods = {name: METHODS[name] for name in ("OLS-2", "AIPW-HGB", *ours)}
    runs = pd.concat([run_all(methods, columns, n_jobs), tables.limits(columns)])
    summary = tables.summarise(runs)
    summary.to_csv(tables.RESULTS / "tuning.csv", index=False, float_format="%.5g")
    command = f"python -m experiments.effects tuning --n-seeds {n_seeds}"
    lines = ["# Simulated outcomes, on which the interactive score and the stack were tuned", ""]
    lines += [tables.made_by(command), ""]
    for value, title in (("mae", "MAE"), ("coverage", "Share of the 95 % intervals that hold")):
        wide = summary.pivot(index="method", columns="data", values=value)
        wide = wide.reindex(index=summary["method"].unique(), columns=summary["data"].unique())
        lines += [f"## {title}", "", wide.to_markdown(floatfmt=".4f"), ""]
        print(f"\n{title}\n{wide.to_string(float_format='{:.4f}'.format)}")
    (tables.RESULTS / "tuning.md").write_text("\n".join(lines))


@app.command()
def fresh(method: Method = None, n_jobs: Jobs = 2):
    """Seeds on which nothing was chosen: the paper's methods, rivals, the limit."""
    columns = [data for data in data_sets(20, 200) if data.table != "III"]
    chosen = chosen_of(method or ON_FRESH_SEEDS, ON_FRESH_SEEDS)
    runs = [run_all(chosen, columns, n_jobs), tables.limits(columns)]
    title = "Seeds 200 to 219, on which nothing was chosen"
    one_summary("fresh", title, runs, [name for name in ON_FRESH_SEEDS if name not in chosen])


@app.command()
def default(n_jobs: Jobs = 2):
    """The default with the interactive score: real tables, and seeds that chose nothing."""
    columns = [data for data in data_sets(10) if data.table == "III"]
    runs = [run_all({DEFAULT: METHODS[DEFAULT]}, columns + ten_fresh_seeds(), n_jobs)]
    title = "The default with the interactive score: real tables, and seeds 200 to 209"
    one_summary("default", title, runs)


def ten_fresh_seeds():
    """Seeds 200 to 209 of the generator with a 0/1 treatment."""
    columns = [data for data in data_sets(20, 200) if data.table == "I"]
    return [replace(data, seeds=data.seeds[:10]) for data in columns]


def one_summary(name, title, runs, others=()):
    """Write a table with one row per data set and method; others have the rows of the last one."""
    summary, file = tables.summarise(pd.concat(runs)), tables.RESULTS / f"{name}.csv"
    command, note = f"python -m experiments.effects {name}", []
    if others:
        before = pd.read_csv(file)
        command += "".join(f" --method '{m}'" for m in summary["method"].unique() if m in METHODS)
        note = [f"Rows of {', '.join(others)} are of an earlier run.", ""]
        keys = ["data", "method"]
        summary = pd.concat([before[before["method"].isin(others)], summary]).set_index(keys)
        summary = summary.loc[pd.MultiIndex.from_frame(before[keys])].reset_index()  # in its order
    summary.to_csv(file, index=False, float_format="%.5g")
    lines = [f"# {title}", "", tables.made_by(command), "", *note]
    text = summary.to_markdown(index=False, floatfmt=".4f")
    (tables.RESULTS / f"{name}.md").write_text("\n".join([*lines, text, ""]))
    print(summary.to_string(index=False, float_format="{:.4f}".format))


@app.command()
def roles():
    """What each role's latents know of T and Y: heat maps."""
    columns = probed(1, 1)
    found = {d.name: figures.probes(d.load(d.seeds[:1])) for d in track(columns)}
    figures.role_probes(found, tables.RESULTS)


def left(name, data, seed):
    """Rows of what dependence one method leaves on one replication, a fold each."""
    case = data.load((seed,))
    model = fit_quietly(METHODS[name].make("ate", seed), case)
    values = figures.dependence(*(model.residuals_[k].to_numpy() for k in ("v", "e")))
    return [{"data": data.name, "method": name, "seed": seed, "correlation": x} for x in values]


@app.command()
def residuals(n_seeds: Seeds = 3, n_jobs: Jobs = 2):
    """Dependence that is left between v and u: box plots."""
    names = ("DML-RF", "DML-MLP", "C-DML", "DDML-RF", "DDML-MLP")
    columns = probed(n_seeds, n_seeds)
    work = [(name, data, seed) for data in columns for seed in data.seeds for name in names]
    found = Parallel(n_jobs, return_as="generator")(delayed(left)(*job) for job in work)
    rows = track(found, total=len(work), description="estimates")
    values = pd.DataFrame(row for some in rows for row in some)
    values.to_csv(tables.RESULTS / "residual_dependence.csv", index=False, float_format="%.4g")
    figures.residual_dependence(values, tables.RESULTS)


@app.command()
def bias():
    """Errors of DML, C-DML and DDML on IHDP, from the tables' runs: box plots."""
    file = tables.RESULTS / "tables_runs.csv"
    if not file.exists():
        raise typer.BadParameter(f"{file} is missing; run python -m experiments.effects first.")
    names = ("DML-RF", "DML-MLP", "C-DML", "DDML-RF", "DDML-MLP")
    names += ("DDML-MLP, interactive", "DDML-stacked, interactive")
    figures.bias(pd.read_csv(file), names, tables.RESULTS)


if __name__ == "__main__":
    app()
