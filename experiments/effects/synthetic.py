"""Tables I and II: effects on the paper's synthetic data."""

import datetime
import platform
from pathlib import Path

import numpy as np
import pandas as pd
import sklearn
import torch

from ddml_fs import DDML, inference
from ddml_fs.datasets import make_effect_data
from ddml_fs.engine.losses import residuals
from experiments.baselines.effects import OLS1, DMLBoosting
from experiments.effects import paper
from experiments.effects.runs import as_row, run_all

RESULTS = Path(__file__).parent / "results"
SETTINGS = [(kind, d) for kind in ("binary", "continuous") for d in paper.DIMENSIONS]
METHODS = {
    "DDML-MLP": lambda seed: DDML("mlp", random_state=seed, device="cpu"),
    "DDML-RF": lambda seed: DDML("rf", random_state=seed, device="cpu"),
    "DML-HGB": lambda seed: DMLBoosting(random_state=seed),
    "OLS-1": lambda seed: OLS1(),
}
LIMIT = "true nuisances"


def limits(settings, seeds):
    """The partially linear estimate with the true nuisance functions, which none can beat."""
    rows = []
    for kind, d in settings:
        for seed in seeds:
            data = make_effect_data(kind, n_features=d, random_state=seed)
            v, e = residuals(data.treatment, data.m, data.y, data.g)
            estimate = inference.partially_linear(v, e)
            interval = inference.normal_interval(estimate.theta, estimate.stderr, 0.95)
            rows.append(as_row(LIMIT, kind, d, seed, data, estimate.theta, interval))
    return pd.DataFrame(rows)


def summarise(runs):
    """MAE with its spread, RMSE, bias, coverage and seconds for every method and data set."""
    grouped = runs.groupby(["kind", "d", "method"], sort=False)
    table = grouped.agg(
        mae=("error", lambda e: np.abs(e).mean()),
        sd=("error", lambda e: np.abs(e).std()),
        rmse=("error", lambda e: np.sqrt((e**2).mean())),
        bias=("error", "mean"),
        covered=("covered", "sum"),
        runs=("covered", "size"),
        seconds=("seconds", "mean"),
    )
    return table.reset_index()


def as_markdown(summary, command, note):
    """The tables as people read them, beside the paper's rows."""
    lines = ["# Effects on the paper's synthetic data", "", note, ""]
    lines += [
        f"Made by `{command}` on {datetime.date.today()} with Python {platform.python_version()}, "
        f"torch {torch.__version__} and scikit-learn {sklearn.__version__}, one thread a run.",
        "",
    ]
    for kind in dict.fromkeys(summary["kind"]):
        part = summary[summary["kind"] == kind]
        for value, title in (("mae", "MAE ± sd"), ("rmse", "RMSE")):
            lines += [f"## {kind.capitalize()} treatment: {title}", ""]
            rows = {}
            for method in dict.fromkeys(part["method"]):
                own = part[part["method"] == method].set_index("d")
                rows[method] = [
                    f"{own.loc[d, value]:.4f}"
                    + (f" ± {own.loc[d, 'sd']:.4f}" if value == "mae" else "")
                    for d in own.index
                ]
            printed = paper.MAE if value == "mae" else paper.RMSE
            columns = list(dict.fromkeys(part["d"]))
            for method, figures in printed[kind].items():
                by_d = dict(zip(paper.DIMENSIONS, figures, strict=True))
                rows[f"{method}, as printed in the paper"] = [f"{by_d[d]:.4f}" for d in columns]
            header = pd.DataFrame.from_dict(
                rows, orient="index", columns=[f"d = {d}" for d in columns]
            )
            header.index.name = "method"
            lines += [header.to_markdown(), ""]
        for value, title in (
            ("covered", "95 % intervals that cover the truth"),
            ("bias", "Mean error"),
            ("seconds", "Seconds an estimate"),
        ):
            wide = part.pivot(index="method", columns="d", values=value)
            wide = wide.loc[list(dict.fromkeys(part["method"]))]
            wide.columns = [f"d = {d}" for d in wide.columns]
            runs = int(part["runs"].iloc[0])
            title = f"{title}, of {runs}" if value == "covered" else title
            lines += [f"### {kind.capitalize()}: {title}", ""]
            lines += [wide.to_markdown(floatfmt=".0f" if value == "covered" else ".3f"), ""]
    return "\n".join(lines)


def study(seeds, settings, n_jobs, command, note, name="synthetic"):
    """Run the study and write ``results/<name>.csv`` and ``.md``."""
    runs = run_all(METHODS, settings, seeds, n_jobs)
    runs = pd.concat([runs, limits(settings, seeds)])
    summary = summarise(runs)
    RESULTS.mkdir(exist_ok=True)
    runs.to_csv(RESULTS / f"{name}_runs.csv", index=False, float_format="%.6g")
    summary.to_csv(RESULTS / f"{name}.csv", index=False, float_format="%.6g")
    (RESULTS / f"{name}.md").write_text(as_markdown(summary, command, note))
    return summary
