"""From runs to the three tables, beside what the paper prints."""

import datetime
import platform
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ddml_fs import inference
from ddml_fs.engine.predictions import Predictions
from ddml_fs.scores import Interactive, PartiallyLinear, residuals
from experiments.effects import paper
from experiments.effects.runs import as_row

RESULTS = Path(__file__).parent / "results"
LIMIT = "true nuisances"
TITLES = {
    "I": "Table I: binary treatments",
    "II": "Table II: continuous treatments",
    "III": "Table III: IHDP, Twins and Jobs",
}


def limit(case):
    """The orthogonal score with the true nuisance functions, which none can beat by much.

    What is not known is fitted: on IHDP the propensity, by a logistic regression, and on Twins
    the outcomes, by a linear regression per arm.

    Returns
    -------
    estimate : Moments, or None where nothing is known
    """
    T, y = case.treatment, case.y
    if case.g is not None:
        return PartiallyLinear().of_residuals(*residuals(T, case.m, y, case.g))
    m, mu = case.m, case.mu
    if m is None and mu is None:
        return None
    if m is None:
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        m = model.fit(case.X, T).predict_proba(case.X)[:, 1]
    if mu is None:
        arms = [LinearRegression().fit(case.X[T == a], y[T == a]) for a in (0, 1)]
        mu = np.stack([arm.predict(case.X) for arm in arms])
    hat = Predictions(m, mu[0], mu[0], mu[1])  # g has no part in the score
    return Interactive(case.target, clip=0.0).moments(T, y, hat)


def limits(data_sets):
    """The limit's row for every replication, as :func:`experiments.effects.runs.run_all` gives."""
    rows = []
    for data in data_sets:
        for seed in data.seeds:
            case = data.load((seed,))
            estimate = limit(case)
            if estimate is not None:
                interval = inference.normal_interval(estimate.theta, estimate.stderr, 0.95)
                rows.append(as_row(LIMIT, data.name, seed, estimate.theta, case.truth, interval))
    return pd.DataFrame(rows)


def summarise(runs):
    """MAE with its spread, RMSE, bias, coverage and seconds for every method and data set."""
    table = runs.groupby(["data", "method"], sort=False).agg(
        mae=("error", lambda e: np.abs(e).mean()),
        sd=("error", lambda e: np.abs(e).std()),
        rmse=("error", lambda e: np.sqrt((e**2).mean())),
        bias=("error", "mean"),
        coverage=("covered", "mean"),
        runs=("error", "size"),
        seconds=("seconds", "mean"),
    )
    return table.reset_index()


def marked(values, ours):
    """Text of a column with the best of the methods in bold and the second best in italics.

    Parameters
    ----------
    values : Series of float
    ours : Series of str
        The same as they are printed.
    """
    best = values.drop(LIMIT, errors="ignore").nsmallest(2, keep="first").index
    out = ours.copy()
    for mark, name in zip(("**", "*"), best, strict=False):
        out[name] = f"{mark}{out[name]}{mark}"
    return out


def one_table(summary, data_sets, table, value):
    """A table of the paper, ours above the paper's rows.

    Parameters
    ----------
    summary : DataFrame
        Of :func:`summarise`.
    data_sets : list of DataSet
    table : {"I", "II", "III"}
    value : {"mae", "rmse"}
    """
    names = [data.name for data in data_sets if data.table == table]
    part = summary[summary["data"].isin(names)]
    order = [m for m in dict.fromkeys(summary["method"]) if m in set(part["method"])]
    columns = {}
    for name in names:
        own = part[part["data"] == name].set_index("method")
        text = own[value].map("{:.4f}".format)
        if value == "mae" and own["runs"].max() > 1:
            text += own["sd"].map(" ± {:.4f}".format)
        columns[name] = marked(own[value], text)
    ours = pd.DataFrame(columns).reindex(order)
    theirs = {}
    for method, row in paper.printed(table).items():
        theirs[f"{method}, printed in the paper"] = {
            name: f"{mae:.4f} ± {sd:.4f}" if value == "mae" else f"{rmse:.4f}"
            for name, (mae, sd, rmse) in row.items()
            if name in names
        }
    both = pd.concat([ours, pd.DataFrame.from_dict(theirs, orient="index")])
    return both.reindex(columns=names).fillna("").rename_axis("method")


def made_by(command):
    """The line that says how, when and with what a table was made."""
    packages = ("torch", "scikit-learn", "doubleml", "econml", "stochtree")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return (
        f"Made by `{command}` on {datetime.date.today()} with Python {platform.python_version()}, "
        f"{versions}; one thread a run."
    )


def as_markdown(summary, data_sets, command, note):
    """All tables as people read them."""
    lines = ["# Effects: the paper's three tables", "", note, "", made_by(command), ""]
    for table in dict.fromkeys(data.table for data in data_sets):
        title = TITLES[table]
        names = [data.name for data in data_sets if data.table == table]
        part = summary[summary["data"].isin(names)]
        for value, words in (("mae", "MAE ± sd"), ("rmse", "RMSE")):
            lines += [f"## {title}: {words}", ""]
            lines += [one_table(summary, data_sets, table, value).to_markdown(), ""]
        for value, words, form in (
            ("coverage", "Share of the 95 % intervals that hold the truth", ".2f"),
            ("bias", "Mean error", ".4f"),
            ("seconds", "Seconds an estimate", ".2f"),
        ):
            wide = part.pivot(index="method", columns="data", values=value)[names]
            wide = wide.reindex([m for m in dict.fromkeys(summary["method"]) if m in wide.index])
            wide = wide.dropna(how="all")
            text = wide.to_markdown(floatfmt=form).replace(" nan ", "     ")
            lines += [f"### {title}: {words}", "", text, ""]
    return "\n".join(lines)


def runs_before(file, methods, data_sets):
    """The runs of all other methods in a file of an earlier study, on the same replications."""
    if not file.exists():
        raise FileNotFoundError(f"{file} is missing; run without --method first.")
    runs = pd.read_csv(file)
    runs = runs[~runs["method"].isin([*methods, LIMIT])]
    for data in data_sets:
        if (seeds := set(runs.loc[runs["data"] == data.name, "seed"])) != set(data.seeds):
            raise ValueError(
                f"{file} must have seeds {sorted(data.seeds)} of {data.name}, got {sorted(seeds)}; "
                "choose --n-seeds as there, or run without --method."
            )
    return runs


def write(name, runs, data_sets, command, note, folder=RESULTS):
    """Write runs, summary and tables into a folder, and give the summary."""
    folder.mkdir(parents=True, exist_ok=True)
    summary = summarise(runs)
    runs.to_csv(folder / f"{name}_runs.csv", index=False, float_format="%.5g")
    summary.to_csv(folder / f"{name}.csv", index=False, float_format="%.5g")
    (folder / f"{name}.md").write_text(as_markdown(summary, data_sets, command, note))
    return summary
