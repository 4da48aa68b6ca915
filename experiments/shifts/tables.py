"""From scores on unseen domains to tables.

All functions take the ``rows`` of :func:`experiments.shifts.runs.run_all`. Means are over the
domains of a table first, then over tables, so that a table with many domains counts no more.
"""

import numpy as np
import pandas as pd

from experiments.shifts.classifiers import MAIN
from experiments.shifts.selectors import ALL, SHARES

KEYS = ["selector", "classifier", "share"]
SIX = [f"{classifier} {share}" for classifier in MAIN for share in SHARES]
MEASURES = {"auc": "AUC", "accuracy": "accuracy", "log_loss": "log-loss"}
N_DRAWS = 2000  # of the bootstrap


def by_table(rows, measure="auc"):
    """A measure by selector, classifier and share: mean and worst domain of every table.

    Parameters
    ----------
    rows : DataFrame
    measure : {"auc", "accuracy", "log_loss"}
    """
    groups = rows.groupby([*KEYS, "table"], sort=False)[measure]
    worst = groups.max() if measure == "log_loss" else groups.min()
    means, worst = groups.mean().unstack("table"), worst.unstack("table")
    columns = {}
    for table in pd.unique(rows["table"]):
        columns |= {table: means[table], f"{table}, worst": worst[table]}
    return pd.DataFrame(columns).assign(mean=means.mean(axis=1), worst=worst.mean(axis=1))


def gains(rows):
    """AUC less that of the same classifier on all columns, in points, one row per trial.

    Returns
    -------
    gains : DataFrame
        ``rows`` without all columns, and with ``gain`` and ``column``, the classifier and share.
    """
    keys = ["table", "target", "classifier"]
    base = rows[rows["selector"] == ALL].set_index(keys)["auc"].rename("base")
    part = rows[rows["selector"] != ALL].join(base, on=keys)
    column = part["classifier"] + " " + part["share"]
    return part.assign(gain=100 * (part["auc"] - part["base"]), column=column)


def by_column(rows):
    """Gains of the selectors in the six columns: table × selector × column, mean over domains."""
    part = gains(rows)
    part = part[part["column"].isin(SIX)]
    return part.groupby(["table", "selector", "column"], sort=False)["gain"].mean()


def summary(rows):
    """Mean gain over the tables by classifier and share, best first.

    ``mean`` is that of the six columns, ``without amazon`` the same over the other tables; ``rank``
    is the average rank among the selectors over the columns and tables.
    """
    means = by_column(rows)
    table = means.groupby(["selector", "column"]).mean().unstack("column")[SIX]
    others = means.drop("amazon", level="table", errors="ignore")
    ranks = means.groupby(["table", "column"]).rank(ascending=False)
    table = table.assign(
        mean=table.mean(axis=1),
        **{"without amazon": others.groupby("selector").mean()},
        rank=ranks.groupby("selector").mean(),
    )
    return table.sort_values("mean", ascending=False)


def by_table_means(rows):
    """Mean gain of the six columns, by table."""
    means = by_column(rows).groupby(["selector", "table"], sort=False).mean().unstack("table")
    means = means.assign(mean=means.mean(axis=1))
    return means.sort_values("mean", ascending=False)


def auto(rows):
    """Gains of the choices of a number, the worst of all domains, and the share of columns kept."""
    part = gains(rows)
    part = part[part["share"] == "auto"]
    keys = ["selector", "classifier"]
    tables = part.groupby([*keys, "table"], sort=False)["gain"].mean().unstack("table")
    kept = part.groupby([*keys, "table"])["kept"].mean().groupby(keys).mean()
    worst = part.groupby(keys)["gain"].min()
    means = pd.DataFrame({"mean": tables.mean(axis=1)})
    return means.join(tables).join(worst.rename("worst domain")).join(kept.rename("columns kept"))


def differences(rows, ours, rivals):
    """Ours less every rival in points of AUC, with a 95 % interval, by column and for their mean.

    The interval is a bootstrap over the domains within each table.

    Parameters
    ----------
    rows : DataFrame
    ours : str
    rivals : sequence of str

    Returns
    -------
    table : DataFrame
        One row per rival and column, the last one being "mean".
    """
    part = gains(rows)
    part = part[part["column"].isin(SIX)]
    wide = part.pivot(index=["table", "target"], columns=["selector", "column"], values="gain")
    weights = _bootstrap_weights(wide.index.get_level_values("table").to_numpy())
    lines = []
    for rival in rivals:
        less = wide[ours][SIX] - wide[rival][SIX]
        less = less.assign(mean=less.mean(axis=1))
        over_tables = less.groupby("table").mean().mean()
        low, high = np.quantile(weights @ less.to_numpy(), (0.025, 0.975), axis=0)
        bounds = {"difference": over_tables, "low": low, "high": high}
        line = pd.DataFrame(bounds).rename_axis("column").reset_index()
        lines.append(line.assign(ours=ours, rival=rival))
    return pd.concat(lines).set_index(["ours", "rival", "column"])


def _bootstrap_weights(table, seed=0):
    """Weights of the tasks in draws of their domains, (draws, tasks); those of a table are even."""
    rng, weights = np.random.default_rng(seed), np.zeros((N_DRAWS, len(table)))
    names = np.unique(table)
    for name in names:
        own = np.flatnonzero(table == name)
        drawn = rng.multinomial(len(own), np.full(len(own), 1 / len(own)), N_DRAWS)
        weights[:, own] = drawn / len(own) / len(names)
    return weights


def classifiers(rows):
    """Every classifier on all columns: the measures by table, and their means."""
    part = rows[rows["selector"] == ALL]
    lines = part.groupby(["table", "classifier"], sort=False)[list(MEASURES)].mean()
    mean = lines.groupby("classifier", sort=False).mean()
    mean.index = pd.MultiIndex.from_product([["mean"], mean.index], names=lines.index.names)
    return pd.concat([lines, mean]).rename(columns=MEASURES)


def cost(costs):
    """Seconds of an order of the columns: mean over the targets of every table."""
    means = costs[costs["selector"] != ALL].groupby(["selector", "table"], sort=False)["seconds"]
    table = means.mean().unstack("table")[list(pd.unique(costs["table"]))]
    return table.assign(mean=table.mean(axis=1)).sort_values("mean")
