"""``ddml-fs compare``: our selection against others, on the left-out domains of a file."""

from pathlib import Path
from typing import Annotated

import typer

from ddml_fs.cli import options


def compare(
    file: options.File,
    label: options.Label,
    domain: options.Domain = "",
    n_features: Annotated[
        str, typer.Option(help="Number of features of all methods; auto: ours decides.")
    ] = "auto",
    plot: Annotated[Path | None, typer.Option(help="Draw it: .png, .svg or .pdf.")] = None,
    columns: options.Columns = None,
    drop: options.Drop = None,
    id_: options.Id = None,
    keep: options.Keep = None,
    task: options.Task = "auto",
    sep: options.Sep = None,
    encoding: options.Encoding = None,
    output: options.Output = None,
    dry_run: options.DryRun = False,
    as_json: options.Json = False,
    n_jobs: options.Jobs = 1,
    seed: options.Seed = 0,
):
    """Compare our selection with others where domains are left out of the training."""
    from ddml_fs.cli.opening import open_file
    from ddml_fs.cli.printing import Printer, check_paths, write_table
    from ddml_fs.cli.select import read_number

    check_paths(output, plot=plot)
    number = read_number(n_features)
    if number == "fdr":
        raise ValueError("--n-features must be a number, a share or auto here, got 'fdr'.")
    out = Printer(as_json)
    data = open_file(
        out,
        file,
        label,
        domain,
        drop=drop,
        ids=id_,
        columns=columns,
        keep=keep,
        task=task,
        sep=sep,
        encoding=encoding,
    )
    if dry_run:
        return out.result({"rows": len(data.X), "notes": data.notes})
    from ddml_fs.compare import compare_selectors, plot_comparison, summarise

    with out.working(n_jobs):
        table = compare_selectors(
            data.X,
            data.y,
            data.domain,
            n_features_to_select=number,
            task=data.task,
            n_jobs=n_jobs,
            random_state=seed,
            verbose=out.verbose,
        )
    summary = summarise(table)
    how = f"each value of `{domain}` left out in turn" if domain else "5-fold cross-validation"
    out.say(f"{how}; features and their number are chosen on the other rows only")
    out.table(summary, index="method")
    if output is not None:
        write_table(table, output)
        out.say(f"all results written to {output}")
    if plot is not None:
        plot_comparison(table).figure.savefig(plot, dpi=150, bbox_inches="tight")
        out.say(f"picture written to {plot}")
    out.result(
        {
            "file": file,
            "label": label,
            "domain": domain or None,
            "task": data.task,
            "rows": len(data.X),
            "summary": summary.reset_index(),
            "results": table,
            "notes": data.notes,
        }
    )
