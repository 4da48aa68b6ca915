"""The table of effects: one row per feature."""

import numpy as np
import pandas as pd
from scipy import stats

from ddml_fs.domains import across_domains
from ddml_fs.evidence import TINY
from ddml_fs.inference import holm, robustness_value
from ddml_fs.scores import DELTA

TAUS = ("tau", "tau_low", "tau_high")


def chosen(shown, arrays):
    """For every feature the entry of the outcome that is shown.

    Parameters
    ----------
    shown : int array of shape (F,)
        Number of the outcome.
    arrays : list of arrays of shape (..., F)
        One per outcome.
    """
    if len(arrays) == 1:
        return arrays[0]
    return np.moveaxis(np.stack(arrays), -1, 0)[np.arange(len(shown)), shown].T


def tail_of(chi2, df, error_df):
    """p-values of χ² statistics with ``df``, whose variances have ``error_df`` of their own.

    Examples
    --------
    >>> round(float(tail_of(3.84, 1, np.inf)), 3), round(float(tail_of(3.84, 1, 10)), 3)
    (0.05, 0.078)
    """
    if np.isinf(error_df):
        return stats.chi2.sf(chi2, df)
    return stats.f.sf(chi2 / df, df, error_df)


def effects_table(evidence, result, domains):
    """Effects of F features over the domains, and which outcome each row shows.

    Parameters
    ----------
    evidence : list of Evidence
        One per outcome.
    result : SweepResult
        Has the features and the classes.
    domains : array
        Names of the domains of the evidence.

    Returns
    -------
    table : DataFrame
    shown : int array of shape (F,)
        Number of the outcome.
    """
    parts = [across_domains(*s.by_domain()) for s in evidence]
    shown = np.argmax([np.abs(part.z) for part in parts], 0)

    def of(name, parts=parts):
        return chosen(shown, [getattr(part, name) for part in parts])

    effect, stderr, z = of("effect"), of("stderr"), of("z")
    df = of("df", evidence)
    size = result.features.size
    several = size > 1
    # For several columns the best-fitting sum is used. By chance alone it would have an effect,
    # whose expected size is subtracted.
    effect = np.where(several, np.sqrt(np.maximum(effect**2 - (size - 1) * stderr**2, 0)), effect)
    # All columns of a block are tested at once. If effects differ between domains, the test is that
    # of the mean effect in a new domain.
    tested = tail_of(of("chi2", evidence), np.maximum(df, 1), result.error_df)
    pvalue = np.where(of("differs"), of("pvalue"), tested)
    pvalue = np.minimum(1.0, np.where(df > 0, pvalue, 1.0) * len(parts))
    of_y = result.target.unit
    unit = np.where(several, 1.0, np.abs(result.features.scale[result.features.first])) / of_y
    strength = (effect / stderr) ** 2 * of("design", evidence) / max(len(evidence[0].influence), 1)
    if result.target.classes is None:
        # Errors of numbers are those of a zero effect; here, what the effect explains is taken off.
        strength = strength / np.maximum(1 - strength, DELTA)
    columns = {} if len(parts) == 1 else {"class": result.target.classes[shown]}
    columns |= {
        "effect": effect / unit,
        "std_effect": effect * of_y,
        "stderr": stderr / unit,
        "tstat": effect / stderr,
        "pvalue": pvalue,
        "qvalue": stats.false_discovery_control(pvalue),
        "holm": holm(pvalue),
        "df": df,
        "unbounded": chosen(shown, [np.broadcast_to(s.unbounded, len(df)) for s in evidence]),
    }
    columns |= {
        f"effect[{name}]": chosen(shown, [part.by_domain[d] for part in parts]) / unit
        for d, name in enumerate(domains)
    }
    columns |= {
        "sign_agreement": of("agreement"),
        "I2": of("I2"),
        "tau": of("tau") / unit,
        "tau_low": of("tau_low") / unit,
        "tau_high": of("tau_high") / unit,
        "instability": of("instability"),
        "z": z,
        "stability": stats.norm.cdf(np.abs(z)),
        "robustness": robustness_value(np.sqrt(strength)),
    }
    return pd.DataFrame(columns), shown


def spread_to_copies(table, order, group, scale, names):
    """From distinct features to all features: copies share effects, constants have none.

    The first of several copies has their rank. The others add nothing to it, and come after all
    distinct features.

    Parameters
    ----------
    table : DataFrame
        One row per distinct feature.
    order : int array of shape (F,)
        The distinct features, best first.
    group : int array of shape (D,)
        For each feature its distinct feature, −1 for constants.
    scale : array of shape (D,)
        Standard deviations of the features, with signs, as copies may have other units.
    names : sequence of str

    Returns
    -------
    table : DataFrame
        One row per feature.
    ranking : int array of shape (D,)
        1 for the best.
    order : int array
        The features that vary, best first.
    """
    place = np.empty(len(order), dtype=int)
    place[order] = np.arange(len(order))
    varies = np.flatnonzero(group >= 0)
    first = varies[np.unique(group[varies], return_index=True)[1]]  # one feature per group
    again = ~np.isin(varies, first)
    features = varies[np.lexsort((place[group[varies]], again))]
    spread = table.reindex(group)
    spread.index = pd.Index(names, name="feature")
    constant = group < 0
    in_units = ["effect", "stderr", *TAUS, *(c for c in spread if c.startswith("effect["))]
    ratio = np.where(constant, 1.0, scale[first][group] / np.where(constant, 1.0, scale))
    for name in in_units:
        size = np.abs(ratio) if name in ("stderr", *TAUS) else ratio
        spread[name] = spread[name] * size
    for name in ("std_effect", "tstat", "z", "unbounded"):
        spread[name] = spread[name] * np.sign(ratio)
    zero = [c for c in in_units if c.startswith("effect")] + [
        "std_effect",
        "tstat",
        "z",
        "unbounded",
        "score",
        "robustness",
    ]
    spread.loc[constant, zero] = 0.0
    spread.loc[constant, ["pvalue", "qvalue", "holm"]] = 1.0
    ranking = np.full(len(group), len(features) + 1)
    ranking[features] = np.arange(len(features)) + 1
    return spread, ranking, features


def domain_effects(table, result, shown, domains):
    """The effect of every feature in every domain, with a 95 % interval.

    Parameters
    ----------
    table : DataFrame
        From :func:`spread_to_copies`.
    result : SweepResult
    shown : int array of shape (F,)
        From :func:`effects_table`.
    domains : array

    Returns
    -------
    long : DataFrame
        ``feature``, ``domain``, ``effect``, ``stderr``, ``low``, ``high``. NaN where the rows of a
        domain have no information about a feature.
    """
    features = result.features
    I = chosen(shown, [s.by_domain()[1] for s in result.evidence])[:, features.group]
    known = (I > TINY) & (features.group >= 0)
    unit = np.where(features.size[features.group] == 1, np.abs(features.scale), 1.0)
    unit = unit / result.target.unit
    stderr = np.where(known, 1 / np.sqrt(np.where(known, I, 1.0)), np.nan) / unit
    parts = [
        pd.DataFrame(
            {
                "feature": table.index,
                "domain": name,
                "effect": np.where(known[d], table[f"effect[{name}]"], np.nan),
                "stderr": stderr[d],
            }
        )
        for d, name in enumerate(domains)
    ]
    long = pd.concat(parts, ignore_index=True)
    half = stats.t.ppf(0.975, result.error_df) * long["stderr"]
    return long.assign(low=long["effect"] - half, high=long["effect"] + half)
