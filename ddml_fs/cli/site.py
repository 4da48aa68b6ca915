"""``ddml-fs site`` and ``ddml-fs pool``: a selection from several sites that keep their rows."""

from pathlib import Path
from typing import Annotated

import typer

from ddml_fs.cli import options
from ddml_fs.cli.select import SHOWN, read_number


def site(
    file: options.File,
    label: options.Label,
    name: Annotated[str, typer.Option("--site", help="Name of this site.")],
    out: Annotated[Path, typer.Option(help="File to write, such as north.npz.")],
    columns: options.Columns = None,
    drop: options.Drop = None,
    id_: options.Id = None,
    keep: options.Keep = None,
    task: options.Task = "auto",
    n_folds: Annotated[int, typer.Option(help="Folds, the same at all sites.", min=2)] = 5,
    sep: options.Sep = None,
    encoding: options.Encoding = None,
    as_json: options.Json = False,
    seed: options.Seed = 0,
):
    """Write the sums over the rows of a file, and no rows, for a selection from several sites."""
    from ddml_fs.cli.printing import Printer
    from ddml_fs.files import read_file
    from ddml_fs.prepare import find_column, prepare
    from ddml_fs.sites import collect_site

    printer = Printer(as_json)
    frame, notes = read_file(file, sep=sep, encoding=encoding)
    given: dict = {"drop": drop or (), "ids": id_ or (), "columns": columns or ()}
    data = prepare(frame, label, keep=keep or (), task=task, **given)
    printer.say(f"{file}: {len(frame)} rows, {frame.shape[1]} columns")
    printer.notes([*notes, *data.notes])
    # Names of classes as they are, because codes of classes could differ between sites.
    y = frame[find_column(label, list(frame.columns))].dropna().to_numpy()
    collect_site(data.X, y, out, site=name, task=data.task, n_folds=n_folds, seed=seed)
    printer.say(f"sums over {len(y)} rows and {data.X.shape[1]} features written to {out}")
    printer.result({"file": file, "site": name, "rows": len(y), "features": list(data.X)})


def pool(
    files: Annotated[list[Path], typer.Argument(help="Files of `ddml-fs site`, one per site.")],
    n_features: Annotated[str, typer.Option(help="A number, a share or fdr.")] = "fdr",
    ranking: Annotated[
        str, typer.Option(help="gain, effect, tstat, stability or redundancy.")
    ] = "gain",
    output: options.Output = None,
    as_json: options.Json = False,
    seed: options.Seed = 0,
):
    """Select features from the sums of several sites, each of them a domain."""
    from ddml_fs import CausalFeatureSelector
    from ddml_fs.cli.printing import Printer, check_paths, write_table

    check_paths(output, None)
    printer = Printer(as_json)
    with printer.working():
        selector = CausalFeatureSelector.from_sites(
            files, read_number(n_features), ranking=ranking, random_state=seed
        )
    effects = selector.effects_.join(selector.conf_int()).sort_values("rank")
    chosen = effects[effects["selected"]]
    printer.say(f"{len(files)} sites: {', '.join(map(str, selector.domains_))}")
    printer.say(f"{len(chosen)} of {len(effects)} features selected")
    printer.table(chosen[SHOWN], index="feature")
    if output is not None:
        write_table(effects.rename_axis("feature"), output)
        printer.say(f"effects of all features written to {output}")
    printer.result(
        {
            "files": files,
            "domains": selector.domains_,
            "task": selector.task_,
            "selected": list(chosen.index),
            "effects": effects.rename_axis("feature"),
        }
    )
