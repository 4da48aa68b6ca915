"""``ddml-fs audit``: effects that differ between domains, leaks, and what to expect next."""

from pathlib import Path
from typing import Annotated

import typer

from ddml_fs.cli import options

SHOWN = ["verdict", "effect", "effect_low", "effect_high", "tau", "qvalue_shift", "mean_shift"]
MOST_SHOWN = 30


def audit(
    file: options.File,
    label: options.Label,
    domain: options.Domain,
    new: Annotated[
        Path | None, typer.Option(help="Rows of a new domain, without labels: forecast for it.")
    ] = None,
    positive: options.Positive = "",
    weight: options.Weight = "",
    cluster: options.Cluster = "",
    columns: options.Columns = None,
    drop: options.Drop = None,
    id_: options.Id = None,
    keep: options.Keep = None,
    task: options.Task = "auto",
    sep: options.Sep = None,
    encoding: options.Encoding = None,
    output: options.Output = None,
    report: options.Report = None,
    dry_run: options.DryRun = False,
    as_json: options.Json = False,
    n_jobs: options.Jobs = 1,
    seed: options.Seed = 0,
):
    """Find columns whose effects differ between domains, and columns that look like leaks."""
    from ddml_fs.cli.opening import code_for, command_line, open_file, open_new
    from ddml_fs.cli.printing import Printer, check_paths, write_table

    check_paths(output, report)
    out = Printer(as_json)
    reading: dict = {"drop": drop, "ids": id_, "columns": columns, "keep": keep, "task": task}
    reading |= {"sep": sep, "encoding": encoding, "weight": weight, "cluster": cluster}
    reading |= {"positive": positive}
    data = open_file(out, file, label, domain, **reading)
    X_new = None if new is None else open_new(out, new, data.X, sep=sep, encoding=encoding)
    if dry_run:
        return out.result({"rows": len(data.X), "notes": data.notes})
    from ddml_fs.audit import ShiftAudit

    audited = ShiftAudit(task=data.task, n_jobs=n_jobs, random_state=seed, verbose=out.verbose)
    with out.working(n_jobs):
        audited.fit(data.X, data.y, data.domain, data.weight, data.cluster)
    features, leaks = audited.features_, audited.leaks_
    for verdict in audited.verdicts_:
        out.say(verdict)
    out.table(features[SHOWN].head(MOST_SHOWN), title="features", index="feature")
    if len(features) > MOST_SHOWN:
        out.say(f"{len(features) - MOST_SHOWN} more; --output writes them all")
    if len(leaks):
        out.table(leaks, title="leaks", index="feature")
    out.table(audited.base_rates_, title=f"label by {domain}", index=domain)
    out.table(audited.forecast_, title="what to expect in a new domain", index="features")
    forecast = None
    if new is not None:
        forecast = audited.forecast(X_new)
        out.table(forecast, title=f"what to expect in {new.name}", index="features")
    if output is not None:
        write_table(features.rename_axis("feature"), output)
        out.say(f"all features written to {output}")
    if report is not None:
        from ddml_fs.report import write_report

        call = f"ShiftAudit(task={data.task!r}, random_state={seed})"
        write_report(
            report,
            audit=audited,
            title=f"What shifts between the values of {domain}",
            data=data.X,
            notes=data.notes,
            command=command_line(),
            code=code_for(call, file, label, domain, **reading),
        )
        out.say(f"report written to {report}")
    out.result(
        {
            "file": file,
            "label": label,
            "domain": domain,
            "weight": weight or None,
            "cluster": cluster or None,
            "task": data.task,
            "rows": len(data.X),
            "verdicts": audited.verdicts_,
            "features": features.rename_axis("feature"),
            "leaks": leaks.rename_axis("feature"),
            "base_rates": audited.base_rates_.rename_axis("domain"),
            "domain_effects": audited.domain_effects_.reset_index(drop=True),
            "forecast": audited.forecast_.rename_axis("features"),
            "forecast_new": None if forecast is None else forecast.rename_axis("features"),
            "notes": data.notes,
        }
    )
