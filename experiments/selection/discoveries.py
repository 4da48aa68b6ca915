"""Honest discoveries: labels drawn on the covariates of seven real tables.

Which columns act on the label is known, how columns go together is real. Half of the draws have
log-odds that are linear in the columns, half have bent ones; half of all come from three domains
whose base rates and means differ. Beside ours: the tests of an unpenalised logistic regression, and
knockoffs (hidimstat).
"""

import warnings
from functools import cache
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from hidimstat import ModelXKnockoff
from rich.progress import track
from scipy import stats
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from ddml_fs import CausalFeatureSelector
from ddml_fs.datasets import fetch_amazon_reviews, fetch_shift
from ddml_fs.datasets.shifts import SHIFTS
from ddml_fs.features import read_features
from experiments.selection.tables import write

N_ROWS, N_WORDS, MOST_CAUSES, LEVEL = 2000, 150, 10, 0.1
N_KNOCKOFFS = 4  # draws a table that knockoffs are tried on: they take ten seconds each


@cache
def table_of(name):
    """All rows of a table, (N, D)."""
    if name == "amazon":
        return fetch_amazon_reviews().X[:, :N_WORDS].astype(float)
    return fetch_shift(name).X


def covariates_of(name, n_rows, rng):
    """Rows of a table, without constant columns and copies, (N, D)."""
    X = table_of(name)
    X = X[rng.choice(len(X), min(n_rows, len(X)), replace=False)]
    return X[:, read_features(X, np.arange(X.shape[1]), X.shape[1]).first]


def draw(X, rng, *, bent, several):
    """Labels for rows X: a quarter of the columns act, at most ten.

    Returns
    -------
    X : array of shape (N, D)
        With means that differ between domains where there are several.
    y, domain : arrays of shape (N,)
    theta : array of shape (D,)
        Log-odds for one unit; NaN for a column that acts in a bent way.
    """
    D = X.shape[1]
    sd = X.std(0)
    standard = (X - X.mean(0)) / sd
    causes = rng.choice(D, min(MOST_CAUSES, max(1, D // 4)), replace=False)
    size = rng.uniform(0.6, 1.2, len(causes)) * rng.choice([-1, 1], len(causes))
    index, theta = np.zeros(len(X)), np.zeros(D)
    for j, b in zip(causes, size, strict=True):
        part = standard[:, j]
        theta[j] = b / sd[j]
        if bent and len(np.unique(part)) > 2:
            away = part - np.median(part)
            part = np.abs(away) if rng.random() < 0.5 else np.maximum(away, 0)
            part, theta[j] = (part - part.mean()) / part.std(), np.nan
        index += b * part
    domain = np.zeros(len(X), int)
    if several:
        domain = rng.integers(0, 3, len(X))
        index = index + np.array([-0.7, 0.0, 0.7])[domain]
        moves = np.array([len(np.unique(column)) > 2 for column in X.T])
        X = X + (0.3 * rng.standard_normal((3, D)) * sd * moves)[domain]
    return X, rng.binomial(1, expit(index)), domain, theta


def wald(X, y, domain):
    """q-values of an unpenalised logistic regression with the domains' intercepts."""
    A = StandardScaler().fit_transform(X)
    intercepts = (domain[:, None] == np.unique(domain)[1:]).astype(float)
    A = np.column_stack([A, intercepts])
    model = LogisticRegression(C=1e6, max_iter=2000).fit(A, y)
    p = model.predict_proba(A)[:, 1]
    A = np.column_stack([np.ones(len(A)), A])
    covariance = np.linalg.pinv((A * (p * (1 - p))[:, None]).T @ A)
    se = np.sqrt(np.maximum(np.diag(covariance), 1e-12))[1 : X.shape[1] + 1]
    z = np.abs(model.coef_[0, : X.shape[1]]) / se
    return stats.false_discovery_control(2 * stats.norm.sf(z))


def knockoffs(X, y, domain):
    """Columns that knockoffs select."""
    A = StandardScaler().fit_transform(X)
    for d in np.unique(domain):
        A[domain == d] -= A[domain == d].mean(0)
    model = ModelXKnockoff(random_state=0)
    model.fit_importance(A, y.astype(float))
    return np.asarray(model.fdr_selection(LEVEL)) == 1


def rows_of(table, seed, n_rows, bent, several):
    """One row a method."""
    rng = np.random.default_rng(seed)
    X, y, domain, theta = draw(covariates_of(table, n_rows, rng), rng, bent=bent, several=several)
    causes = np.isnan(theta) | (theta != 0)
    selector = CausalFeatureSelector("fdr", fdr_level=LEVEL, random_state=0)
    selector.fit(X, y, sample_domain=domain + 1 if several else None)
    bands, known = selector.conf_int(joint=True), selector.effects_["df"].to_numpy() > 0
    inside = ((bands["low"] <= theta) & (theta <= bands["high"])).to_numpy()
    found = {
        "DDML": selector.get_support(),
        "Wald": wald(X, y, domain) <= LEVEL,
    }
    if seed < N_KNOCKOFFS:
        found["knockoffs"] = knockoffs(X, y, domain)
    for method, chosen in found.items():
        yield {
            "table": table,
            "domains": 3 if several else 1,
            "log-odds": "bent" if bent else "linear",
            "seed": seed,
            "method": method,
            "false": (chosen & ~causes).sum() / max(chosen.sum(), 1),
            "power": (chosen & causes).sum() / causes.sum(),
            "bands hold": (inside | np.isnan(theta) | ~known).all() if method == "DDML" else np.nan,
        }


def main(
    n_draws: Annotated[int, typer.Option(help="Draws a table, half of them bent.")] = 20,
    n_rows: Annotated[int, typer.Option(help="Rows of a draw, at most.")] = N_ROWS,
):
    """False discoveries, power and joint bands on real covariates with known causes."""
    warnings.simplefilter("ignore")
    work = [(t, d, s) for t in (*SHIFTS, "amazon") for d in (False, True) for s in range(n_draws)]
    rows = [
        row
        for table, several, seed in track(work, description="draws")
        for row in rows_of(table, seed, n_rows, seed % 2 == 1, several)
    ]
    frame = pd.DataFrame(rows)
    title = f"Discoveries at {LEVEL:.0%} on real covariates, {n_draws} draws a table"
    command = f"python -m experiments.selection discoveries --n-draws {n_draws} --n-rows {n_rows}"
    write("discoveries", title, frame, summary(frame), command)


def summary(frame):
    """Means by method and table, one and three domains side by side."""
    values = ["false", "power", "bands hold"]
    by = frame.groupby(["method", "table", "domains"], sort=False)[values].mean()
    mean = by.groupby(level=["method", "domains"], sort=False).mean()
    mean = pd.concat({"mean": mean}, names=["table"]).reorder_levels(by.index.names)
    wide = pd.concat([by, mean]).unstack("domains").dropna(axis=1, how="all")
    wide.columns = [f"{name}, {d} domain{'s' * (d > 1)}" for name, d in wide.columns]
    wide.index = [f"{method}, {table}" for method, table in wide.index]
    return wide
