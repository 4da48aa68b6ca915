"""What a fitted effect offers: its interval, a summary, plots and a notebook view."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from ddml_fs import inference
from ddml_fs.cautions import caution
from ddml_fs.display import HTMLRepr, effect_html
from ddml_fs.validation import check_number, check_option


def summary_table(effect, level=0.95):
    """Effect, standard error, z, p-value and interval of a fitted effect, a DataFrame."""
    low, high = effect.conf_int(level)
    row = {
        "effect": effect.effect_,
        "stderr": effect.stderr_,
        "z": effect.effect_ / effect.stderr_,
        "pvalue": effect.pvalue_,
        f"{50 - 50 * level:g}%": low,
        f"{50 + 50 * level:g}%": high,
    }
    return pd.DataFrame(row, index=[effect.estimand_])


class FittedEffect(HTMLRepr):
    """Results of an estimator with ``effect_``, ``stderr_``, ``pvalue_`` and ``estimand_``."""

    n_jobs: int | None
    verbose: bool
    effect_: float
    stderr_: float
    pvalue_: float
    estimand_: str
    score_: str
    influence_: np.ndarray
    nuisances_: pd.DataFrame
    repeats_: pd.DataFrame
    _df_: float
    _few_rows_: str = ""  # why the interval may be too short
    _clusters_: np.ndarray | None
    _weight_: np.ndarray
    _signal_: np.ndarray | None
    _elements_: Any

    def conf_int(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of the effect.

        Parameters
        ----------
        level : float, default=0.95
            Coverage probability.

        Returns
        -------
        low, high : float
        """
        check_is_fitted(self)
        check_number(level, "level", 1e-6, 1 - 1e-6)
        return inference.normal_interval(self.effect_, self.stderr_, level, self._df_)

    def summary(self, level: float = 0.95) -> pd.DataFrame:
        """Effect, standard error, z, p-value and interval as a DataFrame of one row.

        Warns again if ``fit`` warned that the interval may be too short.
        """
        table = summary_table(self, level)
        if self._few_rows_:
            caution(self._few_rows_)
        return table

    def plot(self, kind: str = "overlap", ax: Any = None) -> Any:
        """Plot the overlap of the arms, or the roles of the covariates; needs matplotlib.

        Parameters
        ----------
        kind : {"overlap", "roles"}, default="overlap"
        ax : matplotlib Axes, optional

        Returns
        -------
        ax : matplotlib Axes
        """
        check_is_fitted(self)
        check_option(kind, "kind", ("overlap", "roles"))
        from ddml_fs import plotting

        return getattr(plotting, f"plot_{kind}")(self, ax=ax)

    def _html_summary(self):
        return effect_html(self)
