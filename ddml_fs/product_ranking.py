"""The order of features from sums of squares and products of cells of rows."""

from functools import cached_property

import numpy as np

from ddml_fs.gain_models import TINY, Products, without_near_copies
from ddml_fs.ranking import Ranker
from ddml_fs.redundancy import squared_correlations


def products_from_cells(cells):
    """The same as :func:`~ddml_fs.gain_models.products`, for features with one column each.

    Parameters
    ----------
    cells : CellTable

    Returns
    -------
    products : Products
        With several domains their products, otherwise those of the folds.
    """
    P, C, several = cells.n_columns, cells.n_outcomes, len(cells.domains) > 1
    if several:
        parts = [cells.pooled(cells.domain == d) for d in range(len(cells.domains))]
        S = np.stack([part.S for part in parts])
    else:
        parts = [cells.pooled(cells.fold == k) for k in np.unique(cells.fold)]
        S = np.stack([part.S + part.n * np.outer(part.mean, part.mean) for part in parts])
    n = np.array([part.n for part in parts])
    size = np.sqrt(np.maximum(np.diagonal(S.sum(0)), 0) / n.sum())
    kept = np.r_[size[:P] > TINY, np.ones(C, bool)]
    size = np.maximum(size[kept], TINY)
    S = S[:, kept][:, :, kept] / size[:, None] / size
    own = np.flatnonzero(kept[:P])
    return Products(S, n, own, np.zeros(len(own), bool), P, several)


class ProductRanker(Ranker):
    """Orders features by a sweep from products.

    Parameters
    ----------
    result : ProductResult
    ranking : str or callable
    risk_aversion : float
    screened : Screened, optional
        If only some features were swept.
    """

    def __init__(self, result, ranking, risk_aversion, screened=None):
        self.result, self.ranking, self.risk_aversion = result, ranking, risk_aversion
        self.screened = screened
        self.orders, self.log_odds, self.part = {}, False, "domain"

    @cached_property
    def model(self):
        """The regression whose features are eliminated, to rank them by their gains."""
        model = products_from_cells(self.result.cells)
        return without_near_copies(model, self.result.features.near[: model.n_features])

    def _shared(self, features, left_out):
        """Squared correlations between features (F', F'), and the number of rows."""
        cells = self.result.cells
        total = cells.pooled(np.ones(len(cells.n), bool))
        S = total.S[np.ix_(features, features)]
        return squared_correlations(S, np.arange(len(features))), total.n
