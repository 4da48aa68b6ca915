"""The command line: ``ddml-fs demo``, ``ddml-fs effect`` and ``ddml-fs select``."""

from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from rich.console import Console
from rich.table import Table
from sklearn.feature_selection import f_classif
from sklearn.linear_model import LogisticRegression

from ddml_fs import DDML, CausalFeatureSelector
from ddml_fs.baselines import naive_difference, plain_dml
from ddml_fs.datasets import make_domain_data, make_effect_data
from ddml_fs.inference import normal_interval

app = typer.Typer(
    help="Causal effects and causal features by disentangled double machine learning.",
    no_args_is_help=True,
)
console = Console()


@app.command()
def demo(
    seed: Annotated[int, typer.Option(help="Seed of the data and of all estimates.")] = 0,
    n_samples: Annotated[int, typer.Option(help="Rows of the data.", min=200)] = 6000,
):
    """Estimate an effect that is known, and select features whose causes are known."""
    console.rule("1. The effect of one treatment")
    demo_effect(seed, n_samples)
    console.rule("2. Features for domains that are not yet seen")
    demo_selection(seed)


def demo_effect(seed, n_samples):
    """One effect, by three methods."""
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
        effect = DDML("mlp", score="partially_linear", random_state=seed)
        effect.fit(data.X, data.y, treatment=data.treatment)
    add("DDML", effect.effect_, effect.conf_int())
    console.print(table)

    found = effect.roles_[effect.roles_["role"] != "none"]
    for role in ("confounder", "treatment", "outcome"):
        names = ", ".join(found.index[found["role"] == role]) or "none"
        console.print(f"covariates found to act as {role}: {names}")
    console.print("(the truth: x0 to x4 confound, x5 to x9 act on the treatment alone)\n")


def demo_selection(seed):
    """What is selected, and how the choice does in unseen domains."""
    # In any one unseen domain chance may be kind to the consequences; hence ten.
    data = make_domain_data(n_targets=10, random_state=seed)
    source = data.sample_domain > 0
    n_domains, n_features = len(set(data.sample_domain[source])), data.X.shape[1]
    console.print(
        f"{source.sum()} rows from {n_domains} domains, {n_features} features: "
        f"{(data.roles == 'causal').sum()} causes of the label, "
        f"{(data.roles == 'spurious').sum()} consequences whose strength and sign change from "
        f"domain to domain, {(data.roles == 'noise').sum()} noise.\n"
    )
    with console.status("one effect per feature, in one sweep ..."):
        selector = CausalFeatureSelector(random_state=seed)
        selector.fit(data.X, data.y, sample_domain=data.sample_domain)
    k = selector.n_features_auto_
    F = f_classif(data.X[source], data.y[source])[0]
    choices = {
        "all features": np.arange(n_features),
        f"F-test's {k}": np.argsort(-F)[:k],
        f"ddml_fs, {k} (auto)": np.flatnonzero(selector.get_support()),
        "the true causes": np.flatnonzero(data.causal),
    }
    console.print("Accuracy of logistic regression in ten unseen domains:")
    table = Table("features", "causes", "consequences", "noise", "mean", "worst")
    for name, chosen in choices.items():
        model = LogisticRegression(max_iter=1000).fit(data.X[source][:, chosen], data.y[source])
        right = model.predict(data.X[:, chosen]) == data.y
        accuracy = [right[data.sample_domain == d].mean() for d in range(-10, 0)]
        roles = data.roles[chosen]
        counts = [str((roles == role).sum()) for role in ("causal", "spurious", "noise")]
        table.add_row(name, *counts, f"{np.mean(accuracy):.1%}", f"{min(accuracy):.1%}")
    console.print(table)
    console.print("The best five, and the best one that was not selected:")
    ranked = selector.effects_.sort_values("rank")
    shown = pd.concat([ranked.head(5), ranked[~ranked["selected"]].head(1)])
    columns = ["effect", "stderr", "qvalue", "sign_agreement", "instability", "score", "rank"]
    console.print(shown[columns].round(3).to_string())


@app.command()
def effect(
    file: Annotated[Path, typer.Argument(help="A CSV file with a header.", exists=True)],
    outcome: Annotated[str, typer.Option(help="Column of the outcome.")],
    treatment: Annotated[str, typer.Option(help="Column of the treatment.")],
    score: Annotated[
        str, typer.Option(help="auto, partially_linear, interactive or logistic.")
    ] = "auto",
    target: Annotated[str, typer.Option(help="ate or att.")] = "ate",
    nuisance: Annotated[
        str, typer.Option(help="stacked, mlp, rf, boosting, gp, smooth or ridge.")
    ] = "stacked",
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
    console.print("\n" + model.verdict_)
    console.print("\n" + model.diagnostics().to_string())
    console.print("\nheld-out losses\n" + model.nuisance_losses_.round(4).to_string())
    if hasattr(model, "roles_"):
        roles = model.roles_[model.roles_["role"] != "none"]
        console.print("\n" + roles.round(2).to_string())


@app.command()
def select(
    file: Annotated[Path, typer.Argument(help="A CSV file with a header.", exists=True)],
    label: Annotated[str, typer.Option(help="Column of the label.")],
    domain: Annotated[str, typer.Option(help="Column of the domain, where there is one.")] = "",
    n_features: Annotated[str, typer.Option(help="A number, a share, auto or fdr.")] = "auto",
    nuisance: Annotated[
        str,
        typer.Option(help="auto, additive, ridge, shrunken, shrunken_rf, or a name of `effect`."),
    ] = "auto",
    ranking: Annotated[str, typer.Option(help="gain, effect, tstat or stability.")] = "gain",
    output: Annotated[Path | None, typer.Option(help="Write all effects to this CSV file.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder for finished shards of networks.")
    ] = None,
    n_jobs: Annotated[int, typer.Option(help="Workers; -1 is one per core.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed.")] = 0,
):
    """Select the features of a CSV file by their effects on its label."""
    frame = pd.read_csv(file)
    for name in filter(None, (label, domain)):
        if name not in frame:
            raise typer.BadParameter(f"no column {name!r} in {file}; it has {list(frame.columns)}.")
    number: str | int | float = n_features
    if n_features not in ("auto", "fdr"):
        try:
            number = float(n_features) if "." in n_features else int(n_features)
        except ValueError:
            raise typer.BadParameter(
                f"--n-features must be a number, a share, auto or fdr, got {n_features!r}."
            ) from None
    selector = CausalFeatureSelector(
        number,
        nuisance=nuisance,
        ranking=ranking,
        checkpoint=checkpoint,
        n_jobs=n_jobs,
        random_state=seed,
        verbose=True,
    )
    X = frame.drop(columns=[c for c in (label, domain) if c])
    try:
        selector.fit(X, frame[label], sample_domain=frame[domain] if domain else None)
        effects = selector.effects_.sort_values("rank")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    chosen = effects[effects["selected"]]
    columns = ["effect", "stderr", "pvalue", "qvalue", "sign_agreement", "instability", "score"]
    console.print(f"{len(chosen)} of {len(effects)} features selected")
    console.print(chosen[columns].to_string(float_format="{:.3g}".format))
    if output is not None:
        effects.to_csv(output)
        console.print(f"effects of all features written to {output}")


if __name__ == "__main__":
    app()
