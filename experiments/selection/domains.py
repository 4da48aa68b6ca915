"""Data with known causes: five source domains, and one that is never seen.

Compared are all features, as many as there are causes by an F-test, and the selector: as it comes,
with effects conditional on all features, without aversion to risk, and without the domains.
"""

from typing import Annotated

import numpy as np
import pandas as pd
import typer
from rich.progress import track
from sklearn.feature_selection import f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from ddml_fs import CausalFeatureSelector
from ddml_fs.datasets import make_domain_data
from experiments.selection.tables import write

SELECTORS = {
    "selector": {},
    "selector, covariates=all": {"covariates": "all"},
    "selector, no aversion": {"risk_aversion": 0.0},
    "selector, no domains": {},
}


def travel(data, columns):
    """Accuracy in the unseen domain of a logistic regression on these columns of the sources."""
    source = data.sample_domain > 0
    model = LogisticRegression(max_iter=1000).fit(data.X[source][:, columns], data.y[source])
    return model.score(data.X[~source][:, columns], data.y[~source])


def rows_of(seed, n_proxies, n_jobs):
    """One row a method."""
    data = make_domain_data(n_proxies=n_proxies, random_state=seed)
    source, n_causal = data.sample_domain > 0, int(data.causal.sum())
    yield {"method": "all features", "accuracy": travel(data, np.arange(data.X.shape[1]))}
    F = f_classif(data.X[source], data.y[source])[0]
    top = np.argsort(-F)[:n_causal]
    yield {
        "method": "F-test",
        "auc": roc_auc_score(data.causal, F),
        "found": data.causal[top].mean(),
        "accuracy": travel(data, top),
    }
    yield {"method": "the causes", "accuracy": travel(data, np.flatnonzero(data.causal))}
    for name, options in SELECTORS.items():
        selector = CausalFeatureSelector("auto", random_state=0, n_jobs=n_jobs, **options)
        domain = np.where(source, 1, -1) if name.endswith("no domains") else data.sample_domain
        selector.fit(data.X, data.y, sample_domain=domain)
        row = {"method": name, "auc": roc_auc_score(data.causal, -selector.ranking_)}
        row["auto K"] = selector.n_features_auto_
        row["accuracy, auto K"] = travel(data, np.flatnonzero(selector.get_support()))
        selector.set_params(n_features_to_select="fdr", fdr_level=0.1)
        chosen = selector.get_support()
        row["false discoveries"] = (chosen & ~data.causal).sum() / max(chosen.sum(), 1)
        row["power"] = (chosen & data.causal).sum() / n_causal
        selector.set_params(n_features_to_select=n_causal)
        row["found"] = data.causal[selector.get_support()].mean()
        row["accuracy"] = travel(data, np.flatnonzero(selector.get_support()))
        yield row


def main(
    n_seeds: Annotated[int, typer.Option(help="Data sets.")] = 10,
    n_proxies: Annotated[int, typer.Option(help="Proxies of causes.")] = 0,
    n_jobs: Annotated[int, typer.Option(help="Workers.")] = 2,
):
    """Causes found, false discoveries, and accuracy in an unseen domain."""
    rows = [
        {"seed": seed, **row}
        for seed in track(range(n_seeds), description="data sets")
        for row in rows_of(seed, n_proxies, n_jobs)
    ]
    table = pd.DataFrame(rows)
    groups = table.drop(columns="seed").groupby("method", sort=False)
    summary = groups.mean()
    spread = groups["auto K"]
    summary["auto K, least"], summary["auto K, most"] = spread.min(), spread.max()
    name = "domains" + (f"_{n_proxies}_proxies" if n_proxies else "")
    title = (
        "Known causes: 5 domains, 20 causes, 20 consequences that change, 60 noise, "
        f"{n_proxies} proxies, {n_seeds} seeds"
    )
    command = f"python -m experiments.selection domains --n-seeds {n_seeds} --n-proxies {n_proxies}"
    write(name, title, table, summary, command)
