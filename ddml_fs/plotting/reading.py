"""What plots read from fitted estimators."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from ddml_fs.validation import check_option

PER = {"sd": "standard deviation", "unit": "unit"}


def selector_of(estimator: Any) -> Any:
    """The fitted selector: the estimator itself, or that of an audit."""
    check_is_fitted(estimator)
    selector = getattr(estimator, "selector_", estimator)
    needs(selector, "effects_", "a fitted CausalFeatureSelector or ShiftAudit")
    return selector


def needs(estimator: Any, attribute: str, where: str) -> Any:
    """An attribute, or an error that says which estimators have it."""
    check_is_fitted(estimator)
    if not hasattr(estimator, attribute):
        raise ValueError(
            f"This plot needs {attribute}, which {where} has; got {type(estimator).__name__} "
            "without it."
        )
    return getattr(estimator, attribute)


def has_labels(estimator: Any) -> bool | None:
    """Whether the outcome is a label, or a number; None where the estimator does not tell."""
    if hasattr(estimator, "base_rates_"):
        return "base_rate" in estimator.base_rates_
    task = getattr(estimator, "task_", getattr(estimator, "task", "auto"))
    if task == "auto":
        return True if "class" in getattr(estimator, "effects_", ()) else None
    return task == "classification"


def effect_label(estimator: Any, per: str = "sd") -> str:
    """What the effects of a selector or audit are effects on, for an axis.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> effect_label(SimpleNamespace(scale_="log_odds"), "unit")
    'effect on the log-odds per unit'
    """
    check_option(per, "per", tuple(PER))
    selector = getattr(estimator, "selector_", estimator)
    scale = getattr(selector, "scale_", getattr(selector, "scale", "auto"))
    if scale == "auto":
        scale = {True: "log_odds", False: "mean", None: "outcome"}[has_labels(estimator)]
    return f"effect on the {scale.replace('_', '-')} per {PER[per]}"


def known_effects(effects: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``effects_`` whose effects are known: other columns do not determine the feature."""
    known = effects[effects["df"] > 0]
    if known.empty:
        raise ValueError("There is no effect to plot: the effects of all features are unknown.")
    return known


def units(effects: pd.DataFrame) -> np.ndarray:
    """What turns an effect per unit into one per standard deviation, one per row of ``effects_``.

    Features of several columns are measured in standard deviations already.
    """
    effect, std_effect = effects["effect"].to_numpy(), effects["std_effect"].to_numpy()
    known = np.abs(effect) > 0
    return np.divide(std_effect, effect, out=np.ones(len(effect)), where=known)


def unit_of(effects: pd.DataFrame, names: Any, per: str) -> np.ndarray:
    """The factor for features given by name: 1 for effects per unit."""
    check_option(per, "per", tuple(PER))
    if per == "unit":
        return np.ones(len(names))
    factor = pd.Series(units(effects), index=effects.index.astype(str))
    factor = factor[~factor.index.duplicated()]
    return factor.reindex([str(name) for name in names]).fillna(1.0).to_numpy()


def check_features(wanted: Any, known: Any) -> list:
    """Names of features, each of them known."""
    wanted = [wanted] if isinstance(wanted, str) else list(wanted)
    missing = [name for name in wanted if name not in set(known)]
    if missing:
        raise ValueError(
            f"features must be names of features, got {missing[0]!r}; there are "
            f"{', '.join(map(str, list(known)[:10]))}{', …' if len(known) > 10 else ''}."
        )
    return wanted
