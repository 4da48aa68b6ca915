"""The table of effects: one row per feature."""

import numpy as np
import pandas as pd
from scipy import stats

from ddml_fs.domains import across_domains
from ddml_fs.inference import holm


def chosen(shown, arrays):
    """For every feature the entry of its own outcome.

    Parameters
    ----------
    shown : int array of shape (F,)
    arrays : list of arrays of shape (..., F)
        One per outcome.
    """
    if len(arrays) == 1:
        return arrays[0]
    return np.moveaxis(np.stack(arrays), -1, 0)[np.arange(len(shown)), shown].T


def effects_table(evidence, sd, domains, classes):
    """Effects of F features over the domains, and which outcome each row shows.

    Parameters
    ----------
    evidence : list of Evidence
        One per outcome.
    sd : array of shape (F,)
        Of the features; effects are per unit, the evidence is per standard deviation.
    domains : array
        Names.
    classes : array, or None
        Names of the classes.

    Returns
    -------
    table : DataFrame
    shown : int array of shape (F,)
        Number of the outcome.
    """
    parts = [across_domains(*s.by_domain()) for s in evidence]
    shown = np.argmax([np.abs(part.z) for part in parts], 0)

    def of(name):
        return chosen(shown, [getattr(part, name) for part in parts])

    effect, stderr, z = of("effect"), of("stderr"), of("z")
    pvalue = np.minimum(1.0, of("pvalue") * len(parts))
    columns = {} if len(parts) == 1 else {"class": classes[shown]}
    columns |= {
        "effect": effect / sd,
        "std_effect": effect,
        "stderr": stderr / sd,
        "tstat": effect / stderr,
        "pvalue": pvalue,
        "qvalue": stats.false_discovery_control(pvalue),
        "holm": holm(pvalue),
    }
    columns |= {
        f"effect[{name}]": chosen(shown, [part.by_domain[d] for part in parts]) / sd
        for d, name in enumerate(domains)
    }
    columns |= {
        "sign_agreement": of("agreement"),
        "I2": of("I2"),
        "tau": of("tau") / sd,
        "invariance": of("invariance"),
        "z": z,
        "stability": stats.norm.cdf(np.abs(z)),
    }
    return pd.DataFrame(columns), shown


def spread_to_copies(table, order, group, sd, names):
    """From distinct columns to all features: copies share a row, constants have no effect.

    Parameters
    ----------
    table : DataFrame
        One row per distinct column.
    order : int array of shape (F,)
        The distinct columns, best first.
    group : int array of shape (D,)
        For each feature its distinct column, −1 for constants.
    sd : array of shape (D,)
        Of the features: copies may be coded in other units.
    names : sequence of str

    Returns
    -------
    table : DataFrame
        One row per feature.
    ranking : int array of shape (D,)
        1 for the best.
    order : int array
        Features that vary, best first.
    """
    place = np.empty(len(order), dtype=int)
    place[order] = np.arange(len(order))
    varies = np.flatnonzero(group >= 0)
    features = varies[np.argsort(place[group[varies]], kind="stable")]
    spread = table.reindex(group)
    spread.index = pd.Index(names, name="feature")
    constant = group < 0
    in_units = ["effect", "stderr", "tau", *(c for c in spread if c.startswith("effect["))]
    first = varies[np.unique(group[varies], return_index=True)[1]]  # a column for each group
    ratio = np.where(constant, 1.0, sd[first][group] / np.where(constant, 1.0, sd))
    spread[in_units] = spread[in_units].mul(ratio, axis=0)
    zero = [c for c in in_units if c.startswith("effect")] + ["std_effect", "tstat", "z", "score"]
    spread.loc[constant, zero] = 0.0
    spread.loc[constant, ["pvalue", "qvalue", "holm"]] = 1.0
    ranking = np.full(len(group), len(features) + 1)
    places = place[group[features]]
    ranking[features] = np.searchsorted(places, places) + 1
    return spread, ranking, features
