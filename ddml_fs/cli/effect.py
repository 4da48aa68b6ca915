"""``ddml-fs effect``: what one column of a file does to another."""

from typing import Annotated

import typer

from ddml_fs.cli import options


def effect(
    file: options.File,
    label: Annotated[str, typer.Option("--outcome", "--label", help="Column of the outcome.")],
    treatment: Annotated[str, typer.Option(help="Column of the treatment.")],
    covariates: Annotated[
        list[str] | None,
        typer.Option("--covariates", "--columns", help="Covariates, by name or pattern."),
    ] = None,
    domain: Annotated[str, typer.Option(help="Column of the domain, a covariate here.")] = "",
    positive: options.Positive = "",
    treated: Annotated[
        str, typer.Option(help="Level of the treatment that is 1; else the last one.")
    ] = "",
    weight: options.Weight = "",
    cluster: options.Cluster = "",
    fixed_effects: Annotated[
        str, typer.Option(help="Column of the unit of a panel, or of unit and time: a,b.")
    ] = "",
    score: Annotated[
        str, typer.Option(help="auto, partially_linear, interactive or logistic.")
    ] = "auto",
    target: Annotated[str, typer.Option(help="ate or att.")] = "ate",
    nuisance: Annotated[
        str, typer.Option(help="stacked, mlp, rf, boosting, gp, sparse, smooth or ridge.")
    ] = "stacked",
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
    """Estimate the effect of one column of a file on another, given the covariates."""
    from ddml_fs.cli.opening import code_for, command_line, open_file, row_arguments
    from ddml_fs.cli.printing import Printer, check_paths, write_table
    from ddml_fs.estimate import summary_table
    from ddml_fs.prepare import pick, read_treatment

    check_paths(output, report)
    if task not in ("auto", "classification", "regression"):
        raise ValueError(f"--task must be auto, classification or regression, got {task!r}.")
    out = Printer(as_json)
    beside = [treatment, *filter(None, [domain, fixed_effects])]
    names = [*covariates, *beside] if covariates else None
    kept = [*(keep or ()), treatment, *([fixed_effects] if fixed_effects else [])]
    reading: dict = {"drop": drop, "ids": id_, "columns": names, "keep": kept}
    reading |= {"task": "regression" if task == "regression" else "number"}
    reading |= {"sep": sep, "encoding": encoding, "weight": weight, "cluster": cluster}
    reading |= {"positive": positive}
    if domain and domain in (weight, cluster):
        raise ValueError(f"--domain is a covariate, and no weight or cluster, got {domain!r}.")
    data = open_file(out, file, label, "", **reading)
    if task == "classification" and data.task != task:
        raise ValueError(f"outcome {label!r} must have two values for --task classification.")
    X, t, note = read_treatment(data.X, treatment, domain, treated)
    units = {"fixed_effects": pick([fixed_effects], list(X.columns))} if fixed_effects else {}
    out.notes([note])
    if dry_run:
        return out.result({"rows": len(data.X), "notes": [*data.notes, note]})
    from ddml_fs import DDML

    settings: dict = {"score": score, "target": target, "random_state": seed}
    model = DDML(nuisance, **settings, n_jobs=n_jobs, verbose=out.verbose)
    with out.working(n_jobs):
        known: dict = {"sample_weight": data.weight, "cluster": data.cluster}
        model.fit(X, data.y.astype(float), treatment=t, **known, **units)
    summary = summary_table(model)
    out.table(summary, index="estimand")
    out.say(model.verdict_)
    diagnostics = model.diagnostics()
    out.table(diagnostics.to_frame(), title="diagnostics")
    if hasattr(model, "roles_"):
        roles = model.roles_[model.roles_["role"] != "none"]
        out.table(roles.head(20), title="roles of covariates", index="covariate")
    if output is not None:
        write_table(summary.rename_axis("estimand"), output)
        out.say(f"effect written to {output}")
    if report is not None:
        from ddml_fs.report import write_report

        given = ", ".join(f"{name}={value!r}" for name, value in settings.items())
        code = code_for(f"DDML({nuisance!r}, {given})", file, label, "", **reading)
        rows = row_arguments(weight=weight, cluster=cluster)
        of_units = "".join(f", {name}={value!r}" for name, value in units.items())
        fit = (
            f"X, t, _ = read_treatment(data.X, {treatment!r}, {domain!r}, {treated!r})\n"
            f"model = DDML({nuisance!r}, {given})\n"
            f"model.fit(X, data.y.astype(float), treatment=t{rows}{of_units})"
        )
        code = code.replace("import prepare", "import prepare, read_treatment")
        write_report(
            report,
            effect=model,
            title=f"The effect of {treatment} on {label}",
            data=data.X,
            notes=[*data.notes, note],
            command=command_line(),
            code=code[: code.rindex("model =")] + fit,
        )
        out.say(f"report written to {report}")
    low, high = model.conf_int()
    out.result(
        {
            "file": file,
            "outcome": label,
            "treatment": treatment,
            "weight": weight or None,
            "cluster": cluster or None,
            "rows": len(model.residuals_),
            "estimand": model.estimand_,
            "effect": model.effect_,
            "stderr": model.stderr_,
            "pvalue": model.pvalue_,
            "low": low,
            "high": high,
            "verdict": model.verdict_,
            "diagnostics": diagnostics.to_dict(),
            "notes": [*data.notes, note],
        }
    )
