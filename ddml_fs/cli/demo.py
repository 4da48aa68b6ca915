"""``ddml-fs demo``: a known effect, and an audit of a real table, in less than a minute."""

from pathlib import Path
from typing import Annotated

import typer

from ddml_fs.cli import options

FOLDER = Path("ddml_fs_demo")
LEFT_OUT = "West South Central"  # the last of the nine divisions


def demo(
    seed: options.Seed = 0,
    folder: Annotated[Path, typer.Option(help="Where the report and the picture go.")] = FOLDER,
):
    """Estimate an effect that is known, and audit a real table of crashes."""
    from ddml_fs.cli.printing import Printer

    out = Printer()
    with out.working():
        out.heading("1. One effect, whose true value is known")
        show_effect(out, seed)
        out.heading("2. Audit of a real table: who died in fatal crashes, by region")
        audit, left_out = show_audit(out, seed)
        out.heading("3. A region that was not seen in training")
        show_selection(out, audit, left_out)
        write_pages(out, audit, folder, seed)


def show_effect(out, seed, n_samples=3000):
    """Print the estimates of three methods beside the truth."""
    import pandas as pd

    from ddml_fs.datasets import make_effect_data

    data = make_effect_data("binary", n_samples=n_samples, n_features=20, random_state=seed)
    out.say(
        f"{n_samples} rows, 20 covariates, a binary treatment with strong nonlinear confounding."
    )
    rows: dict = {"truth": (f"{data.theta:.3f}", "", "", "")}
    for name, found in estimates(data, seed).items():
        inside = "yes" if found[1] <= data.theta <= found[2] else "no"
        rows[name] = (*(f"{value:.3f}" for value in found), inside)
    columns = ["effect", "low", "high", "interval holds the truth"]
    out.table(pd.DataFrame.from_dict(rows, "index", columns=columns))


def estimates(data, seed):
    """The effect and its 95 % interval by three methods: a dict of (effect, low, high)."""
    from ddml_fs import DDML
    from ddml_fs.baselines import naive_difference, plain_dml, quick_boosting
    from ddml_fs.inference import normal_interval

    models = quick_boosting(random_state=seed)
    others = {
        "naive difference": naive_difference(data.y, data.treatment),
        "plain DML (boosting)": plain_dml(
            data.X, data.y, data.treatment, models, n_folds=3, random_state=seed
        ),
    }
    found = {
        name: (e.theta, *normal_interval(e.theta, e.stderr, 0.95)) for name, e in others.items()
    }
    model = DDML("mlp", score="partially_linear", random_state=seed)
    model.fit(data.X, data.y, treatment=data.treatment)
    return found | {"DDML": (model.effect_, *model.conf_int())}


def show_audit(out, seed):
    """Audit the crash table without one region; return the audit, and that region's rows."""
    from ddml_fs.audit import ShiftAudit
    from ddml_fs.datasets import load_crashes

    data = load_crashes()
    target = data.sample_domain == data.domain_names.index(LEFT_OUT) + 1
    names = [data.domain_names[d - 1] for d in data.sample_domain[~target]]
    out.say(
        f"{(~target).sum()} people in eight regions of the United States, {data.X.shape[1]} "
        f"columns; {LEFT_OUT} is kept for the test.\n"
    )
    audit = ShiftAudit(random_state=seed, verbose=out.verbose)
    audit.fit(data.X[~target], data.y[~target], sample_domain=names)
    for sentence in audit.verdicts_:
        out.say(f"- {sentence}")
    suspects = audit.features_[audit.features_["verdict"].isin(["leak", "effect moves"])]
    out.table(suspects[["verdict", "leak", "alone", "effect", "tau"]], index="column")
    left_out = {"X": data.X[target], "y": data.y[target]}
    return audit, left_out | {"X_train": data.X[~target], "y_train": data.y[~target]}


def show_selection(out, audit, rows):
    """Print the AUC in the region that was left out, and what was forecast for it."""
    import pandas as pd

    forecast = audit.forecast(rows["X"])
    found = aucs_of_choices(audit, **rows)
    table = pd.DataFrame.from_dict(found, "index", columns=["columns", "AUC"])
    for choice, name in (("all", "all but the leaks"), ("selected", "selected")):
        for column in ("auc_low", "auc_high"):
            table.loc[name, f"forecast {column[4:]}"] = forecast.loc[choice, column]
    out.say(f"{LEFT_OUT}, logistic regression; the forecast saw no labels of this region:")
    digits = table.drop(columns="columns").map(lambda x: "" if pd.isna(x) else f"{x:.3f}")
    out.table(table[["columns"]].join(digits), index="columns that are used")


def aucs_of_choices(audit, X, y, X_train, y_train):
    """Number of columns and AUC on new rows, for three choices of columns without the leaks."""
    from sklearn.metrics import roc_auc_score

    from ddml_fs.features import Encoding
    from ddml_fs.number import default_downstream
    from ddml_fs.rivals import by_f_test, standardised

    safe = X_train.columns.drop(audit.leaks_.index)
    encoding = Encoding.of(X_train[safe], list(safe))
    Z, Z_new = encoding.read(X_train[safe]), encoding.read(X[safe])
    chosen = safe.get_indexer(audit.selector_.get_feature_names_out())
    ranked = encoding.own[by_f_test(standardised(Z), y_train, True)]
    choices = {
        "all but the leaks": list(range(len(safe))),
        "selected": list(chosen),
        "as many, by the F-test": list(dict.fromkeys(ranked))[: len(chosen)],
    }
    found = {}
    for name, features in choices.items():
        own = [j for j, feature in enumerate(encoding.own) if feature in features]
        model = default_downstream(True).fit(Z[:, own], y_train)
        auc = roc_auc_score(y, model.predict_proba(Z_new[:, own])[:, 1])
        found[name] = (len(features), auc)
    return found


def write_pages(out, audit, folder, seed):
    """Write the report and a picture, where their packages are installed."""
    from ddml_fs.cli.printing import check_extra

    try:
        check_extra("report", "jinja2", "matplotlib")
    except ImportError as error:
        out.say(f"No report and no picture: {error}")
        return
    from matplotlib.figure import Figure

    from ddml_fs.plotting import plot_effects
    from ddml_fs.report import write_report

    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(9, 6), layout="constrained")
    plot_effects(audit.selector_, ax=figure.add_subplot())
    figure.savefig(folder / "effects.png", dpi=150)
    write_report(
        folder / "report.html",
        selector=audit.selector_,
        audit=audit,
        title="Who died in fatal crashes",
        notes=[f"a sample of the FARS table that comes with ddml_fs, without {LEFT_OUT}"],
        command=f"ddml-fs demo --seed {seed}",
        code=CODE.format(seed=seed, left_out=LEFT_OUT),
    )
    out.say(f"report:  {folder / 'report.html'}")
    out.say(f"picture: {folder / 'effects.png'}")


CODE = """from ddml_fs.audit import ShiftAudit
from ddml_fs.datasets import load_crashes

data = load_crashes()
rows = data.sample_domain != data.domain_names.index("{left_out}") + 1
audit = ShiftAudit(random_state={seed})
audit.fit(data.X[rows], data.y[rows], sample_domain=data.sample_domain[rows])"""
