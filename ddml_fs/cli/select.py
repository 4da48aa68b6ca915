"""``ddml-fs select``: the features of a file with the largest, most stable effects."""

from pathlib import Path
from typing import Annotated

import typer

from ddml_fs.cli import options

SHOWN = ["effect", "low", "high", "qvalue", "sign_agreement", "instability", "score"]


def select(
    file: options.File,
    label: options.Label,
    domain: options.Domain = "",
    positive: options.Positive = "",
    weight: options.Weight = "",
    cluster: options.ClusterOrScheduler = "",
    n_features: Annotated[str, typer.Option(help="A number, a share, auto or fdr.")] = "auto",
    ranking: Annotated[
        str, typer.Option(help="gain, effect, tstat, stability or redundancy.")
    ] = "gain",
    nuisance: Annotated[
        str, typer.Option(help="auto, additive, ridge, shrunken, mlp, rf, boosting, ...")
    ] = "auto",
    columns: options.Columns = None,
    drop: options.Drop = None,
    id_: options.Id = None,
    keep: options.Keep = None,
    task: options.Task = "auto",
    sep: options.Sep = None,
    encoding: options.Encoding = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder for finished shards of networks.")
    ] = None,
    output: options.Output = None,
    report: options.Report = None,
    dry_run: options.DryRun = False,
    as_json: options.Json = False,
    n_jobs: options.Jobs = 1,
    scheduler: options.Scheduler = "",
    seed: options.Seed = 0,
):
    """Select the features of a file by their effects on its label."""
    from ddml_fs.cli.opening import code_for, command_line, open_file
    from ddml_fs.cli.printing import Printer, check_paths, write_table
    from ddml_fs.cli.scheduler import split_cluster, workers_at

    cluster, scheduler = split_cluster(cluster, scheduler)
    check_paths(output, report)
    number = read_number(n_features)
    out = Printer(as_json)
    reading: dict = {"drop": drop, "ids": id_, "columns": columns, "keep": keep, "task": task}
    reading |= {"sep": sep, "encoding": encoding, "weight": weight, "cluster": cluster}
    reading |= {"positive": positive}
    data = open_file(out, file, label, domain, **reading)
    if isinstance(number, int) and number > data.X.shape[1]:
        raise ValueError(
            f"--n-features must be at most the number of features ({data.X.shape[1]}), "
            f"got {number}."
        )
    if dry_run:
        return out.result({"rows": len(data.X), "notes": data.notes})
    from ddml_fs import CausalFeatureSelector

    settings: dict = {"nuisance": nuisance, "ranking": ranking, "task": data.task}
    settings |= {"random_state": seed}
    with out.working(n_jobs), workers_at(scheduler, n_jobs) as n_jobs:
        selector = CausalFeatureSelector(
            number, **settings, checkpoint=checkpoint, n_jobs=n_jobs, verbose=out.verbose
        )
        selector.fit(data.X, data.y, data.domain, data.weight, data.cluster)
    effects = selector.effects_.join(selector.conf_int()).sort_values("rank")
    chosen = effects[effects["selected"]]
    out.say(f"{len(chosen)} of {len(effects)} features selected")
    out.table(chosen[SHOWN], index="feature")
    if output is not None:
        write_table(effects.rename_axis("feature"), output)
        out.say(f"effects of all features written to {output}")
    if report is not None:
        from ddml_fs.report import write_report

        given = ", ".join(f"{name}={value!r}" for name, value in settings.items())
        write_report(
            report,
            selector=selector,
            title=f"Features that act on {label}",
            data=data.X,
            notes=data.notes,
            command=command_line(),
            code=code_for(
                f"CausalFeatureSelector({number!r}, {given})", file, label, domain, **reading
            ),
        )
        out.say(f"report written to {report}")
    out.result(
        {
            "file": file,
            "label": label,
            "domain": domain or None,
            "weight": weight or None,
            "cluster": cluster or None,
            "task": data.task,
            "rows": len(data.X),
            "domains": [] if data.domain is None else selector.domains_,
            "selected": list(chosen.index),
            "effects": effects.rename_axis("feature"),
            "notes": data.notes,
        }
    )


def read_number(text):
    """A number or a share of features, "auto" or "fdr"."""
    if text in ("auto", "fdr"):
        return text
    try:
        number = float(text) if "." in text else int(text)
    except ValueError:
        number = 0
    if number <= 0 or (isinstance(number, float) and number > 1):
        raise ValueError(
            f"--n-features must be a positive number, a share up to 1.0, auto or fdr, got {text!r}."
        )
    return number
