"""What a fitted selector offers: support, importances, intervals, plots and a notebook view."""

from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.utils.validation import check_is_fitted

from ddml_fs.display import HTMLRepr, selector_html
from ddml_fs.number import number_to_select
from ddml_fs.persistence import Versioned
from ddml_fs.tables import TableSelector
from ddml_fs.validation import check_number, check_option

PLOTS = {
    "effects": "plot_effects",
    "domains": "plot_effects_by_domain",
    "curve": "plot_curve",
    "stability": "plot_stability",
}


class ParameterError(ValueError, AttributeError):
    """A parameter was set to a wrong value after ``fit``."""


@contextmanager
def as_attribute_error():
    """Turn a ValueError into one that ``hasattr`` and ``dir`` understand, for use in properties."""
    try:
        yield
    except ValueError as error:
        raise ParameterError(str(error)) from None


class FittedSelection(Versioned, HTMLRepr, TableSelector):
    """Results of a selector, from its parameters and what ``fit`` stored.

    Attributes
    ----------
    _table_ : DataFrame
        One row per feature.
    _order_ : int array
        Features that vary, best first.
    _maxima_ : array
        Largest |t| in the draws of the bootstrap; missing if the fit had no rows.
    _error_df_ : float
        Degrees of freedom of the errors; infinite without clusters.
    """

    n_features_to_select: int | float | str
    fdr_level: float
    n_features_auto_: int
    scores_: np.ndarray
    ranking_: np.ndarray
    _table_: pd.DataFrame
    _order_: np.ndarray
    _maxima_: np.ndarray
    _error_df_: float

    def _check_options(self):
        """Refuse wrong parameters."""
        raise NotImplementedError

    @property
    def effects_(self) -> pd.DataFrame:
        """One row per feature: effect, uncertainty, stability, score, rank, selected."""
        check_is_fitted(self)
        first = np.unique(self._encoding_.feature, return_index=True)[1]
        with as_attribute_error():
            chosen = self._chosen_features()
        return self._table_.assign(rank=self.ranking_[first], selected=chosen)

    def _chosen_features(self):
        """Which features are selected, a bool array."""
        self._check_options()  # they may have changed since fit
        n, n_features = self.n_features_to_select, len(self._encoding_.names)
        if n == "fdr":
            return (self._table_["qvalue"] <= self.fdr_level).to_numpy()
        if n == "auto" and not hasattr(self, "n_features_auto_"):
            raise ValueError(
                "n_features_to_select='auto' must be set before fit, got it after; fit again."
            )
        n = self.n_features_auto_ if n == "auto" else number_to_select(n, n_features)
        mask = np.zeros(n_features, dtype=bool)
        mask[self._order_[:n]] = True
        return mask

    def _get_support_mask(self):
        check_is_fitted(self)
        return self._chosen_features()[self._encoding_.feature]

    @property
    def support_(self) -> np.ndarray:
        """Which columns are selected, a bool array of shape (n_features,); as in ``RFE``."""
        check_is_fitted(self)
        with as_attribute_error():
            return self._get_support_mask()

    @property
    def feature_importances_(self) -> np.ndarray:
        """Scores as shares, of shape (n_features,): not negative, with sum 1, as those of forests.

        A feature with a negative score, which is expected to do harm in a new domain, has 0.
        Columns of one group have the score of their feature each.
        """
        check_is_fitted(self)
        scores = np.maximum(self.scores_, 0.0)
        return scores / (scores.sum() or 1.0)

    @property
    def has_joint_intervals(self) -> bool:
        """Whether the fit had all rows in a dense table, which joint intervals need."""
        return hasattr(self, "_maxima_")

    def conf_int(self, level: float = 0.95, joint: bool = False) -> pd.DataFrame:
        """Confidence intervals of the mean effects.

        An end is infinite if all rows with a 0/1 feature have the same label: then no effect on the
        log-odds is too large for the data.

        Parameters
        ----------
        level : float, default=0.95
            Coverage probability.
        joint : bool, default=False
            Whether the level holds for all intervals together, by a multiplier bootstrap, or for
            each interval separately.

        Returns
        -------
        intervals : DataFrame
            ``low`` and ``high``, one row per feature.
        """
        check_is_fitted(self)
        check_number(level, "level", 1e-6, 1 - 1e-6)
        if joint and not self.has_joint_intervals:
            raise ValueError("joint=True needs all rows in a dense table; this fit made none.")
        reach = stats.t.ppf(0.5 + level / 2, self._error_df_)
        if joint:
            reach = np.quantile(self._maxima_, level)
        table, half = self._table_, reach * self._table_["stderr"]
        low, high = table["effect"] - half, table["effect"] + half
        if "unbounded" in table:  # not in tables of earlier versions
            low = low.mask(table["unbounded"] < 0, -np.inf)
            high = high.mask(table["unbounded"] > 0, np.inf)
        return pd.DataFrame({"low": low, "high": high})

    def plot(self, kind: str = "effects", ax: Any = None, **options: Any) -> Any:
        """Plot the fit; needs matplotlib.

        Parameters
        ----------
        kind : {"effects", "domains", "curve", "stability"}, default="effects"
            Effects with intervals, effects by domain, loss by number of features (only with
            ``n_features_to_select="auto"``), or effect and variation between domains.
        ax : matplotlib Axes, optional
        **options
            Passed to the function of :mod:`ddml_fs.plotting`.

        Returns
        -------
        ax : matplotlib Axes
        """
        check_is_fitted(self)
        check_option(kind, "kind", tuple(PLOTS))
        from ddml_fs import plotting

        return getattr(plotting, PLOTS[kind])(self, ax=ax, **options)

    def _html_summary(self):
        return selector_html(self)
