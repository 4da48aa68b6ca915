"""How strong a hidden confounder would have to be, for all effects of a sweep, beside columns."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from ddml_fs.engine.ridge import FLAT
from ddml_fs.inference import robustness_value, strength
from ddml_fs.nuisances.additive import WIDEST
from ddml_fs.rows import read_rows
from ddml_fs.sensitivity import STRONGEST
from ddml_fs.shadows import ShadowPlacebo
from ddml_fs.weights import weighted_mean

JITTER = 1e-6  # keeps the inverse finite if columns repeat others


def partial_correlations(X, domain, weight):
    """Squared correlations of columns (N, P) within domains, given all other columns, (P, P).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((5000, 3))
    >>> X[:, 2] = X[:, 2] / 2 + X[:, 0] + X[:, 1]  # given the third, the first two are related
    >>> partial_correlations(X, np.zeros(5000, int), np.ones(5000)).round(1).tolist()
    [[0.0, 0.6, 0.8], [0.6, 0.0, 0.8], [0.8, 0.8, 0.0]]
    """
    Z = X.astype(np.float64, copy=True)
    for d in np.unique(domain):
        rows = domain == d
        Z[rows] -= weighted_mean(Z[rows], weight[rows])
    sd = np.sqrt(weighted_mean(Z**2, weight))
    Z *= np.divide(np.sqrt(weight)[:, None], sd, out=np.zeros_like(Z), where=sd > FLAT)
    omega = np.linalg.inv(Z.T @ Z / weight.sum() + JITTER * np.eye(Z.shape[1]))
    squares = omega**2 / np.outer(np.diag(omega), np.diag(omega))
    np.fill_diagonal(squares, 0.0)
    return squares


class SweepSensitivity(ShadowPlacebo):
    """The part of a selector that compares hidden confounders with measured columns."""

    def sensitivity(
        self, X: Any, sample_domain: Any = None, sample_weight: Any = None
    ) -> pd.DataFrame:
        """How strong a hidden confounder would have to be, beside the strongest measured one.

        Every feature in turn is imagined as the confounder that was not measured. Its strength
        follows from the sweep and from the partial correlations of the columns, so that nothing is
        fitted again.

        Parameters
        ----------
        X, sample_domain, sample_weight
            As in :meth:`fit`.

        Returns
        -------
        table : DataFrame
            One row per feature: ``robustness``, as in ``effects_``; ``strongest``, the feature that
            would bias its effect the most if it had not been measured ("" if none would);
            ``benchmark``, the strength of that feature on the scale of ``robustness``;
            ``exceeds``, whether only a confounder that is stronger than all features could explain
            the effect away.

        Examples
        --------
        >>> import numpy as np
        >>> from ddml_fs import CausalFeatureSelector
        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((2000, 3))
        >>> X[:, 1] += X[:, 0]
        >>> y = X[:, 0] + X[:, 1] + 0.1 * X[:, 2] + rng.standard_normal(2000)
        >>> table = CausalFeatureSelector(3, random_state=0).fit(X, y).sensitivity(X)
        >>> table["strongest"].tolist()[:2], table["exceeds"].tolist()[2]
        (['x1', 'x0'], True)
        """
        check_is_fitted(self)
        rows = read_rows(X, sample_domain, sample_weight)
        numbers, own = self.encode(rows.of(X)), self._encoding_.own
        if numbers.shape[1] > WIDEST * len(numbers):
            raise ValueError(
                f"sensitivity needs at least three rows per column, got {len(numbers)} rows and "
                f"{numbers.shape[1]} columns."
            )
        table = self._table_[["robustness"]].copy()
        r = table["robustness"].fillna(0.0).to_numpy()
        squares = partial_correlations(numbers, rows.domain, rows.weight)
        # Of a feature with several columns, the one that is related most.
        related = np.zeros((len(r), len(r)))
        np.maximum.at(related, (own[:, None], own[None]), squares)
        np.fill_diagonal(related, 0.0)
        cf_y = np.minimum(strength(r, r) ** 2, 1.0)
        cf_d = np.minimum(related / np.maximum(1 - related, 1e-12), STRONGEST)
        reached = robustness_value(strength(cf_y[None], cf_d))
        best = reached.argmax(1)
        table["benchmark"] = reached[np.arange(len(r)), best]
        names = table.index.to_numpy(dtype=object)[best]
        table.insert(1, "strongest", np.where(table["benchmark"] > 0, names, ""))
        table["exceeds"] = table["robustness"] > table["benchmark"]
        return table
