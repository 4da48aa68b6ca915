"""What a fitted effect offers: its interval, a summary, plots and a notebook view."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from ddml_fs import diagnostics, inference
from ddml_fs.cautions import caution
from ddml_fs.covariates import read_new_rows
from ddml_fs.display import HTMLRepr, effect_html
from ddml_fs.persistence import Versioned
from ddml_fs.tables import EncodedTable
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


class FittedEffect(Versioned, EncodedTable, HTMLRepr):
    """Results of an estimator with ``effect_``, ``stderr_``, ``pvalue_`` and ``estimand_``."""

    nuisance: Any
    n_jobs: int | None
    verbose: bool
    effect_: float
    stderr_: float
    nuisance_stderr_: float
    pvalue_: float
    estimand_: str
    score_: str
    influence_: np.ndarray
    nuisances_: pd.DataFrame
    residuals_: pd.DataFrame
    repeats_: pd.DataFrame
    _df_: float
    _few_rows_: str = ""  # why the interval may be too short
    _clusters_: np.ndarray | None
    _weight_: np.ndarray
    _kept_: np.ndarray  # rows of a panel that are not left out
    _signal_: np.ndarray | None
    _inflation_: float
    _fit_options_: dict
    _binary_: bool
    _clip_: float
    _encoder_: Any
    _inputs_kept_: float
    _nearest_split_: int
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

    def represent(self, X: Any) -> Bunch:
        """The three latents of given rows, from the encoder with the lowest validation loss.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        latents : Bunch
            ``Zc``, ``Zt`` and ``Zy``, each an array of shape (n_samples, latent).
        """
        check_is_fitted(self)
        if not hasattr(self, "_encoder_"):
            raise AttributeError(f"nuisance={self.nuisance!r} has no latents; use 'mlp' or 'rf'.")
        if "fixed_effects" in self._fit_options_:
            raise AttributeError("new rows have no latents with fixed_effects.")
        Zc, Zt, Zy = self._encoder_(read_new_rows(self, self._encoding_, X))
        return Bunch(Zc=Zc, Zt=Zt, Zy=Zy)

    def diagnostics(self) -> pd.Series:
        """Diagnostics of the effect; ``verdict_`` summarises them in words.

        Returns
        -------
        diagnostics : Series
            ``n_samples``, rows with weight; ``unexplained_share``, the share of the treatment's
            variance that the covariates do not explain; for a binary treatment, the range of the
            propensities and the share of them that is clipped (for the ATT, the share of the
            treated whose propensity is clipped at the upper end); ``abs_corr_v_u``, the
            correlation of the residuals; held-out losses of the nuisances and of a constant; and
            ``inputs_kept``, the mean number of covariates that networks use.
            ``nuisance_losses_`` has the losses of all candidates.
        """
        check_is_fitted(self)
        rows = diagnostics.overview(self, self._binary_, self._clip_, self._weight_)
        if hasattr(self, "_inputs_kept_"):
            rows["inputs_kept"] = self._inputs_kept_
        return pd.Series(rows, name="value")

    def _html_summary(self):
        return effect_html(self)
