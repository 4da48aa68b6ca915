"""The order of features from sums of squares and products of cells of rows."""

import numpy as np

from ddml_fs.forward import TINY, Products
from ddml_fs.ranking import Ranker


def products_from_cells(cells, *, label):
    """The same as :func:`~ddml_fs.forward.products`, for features with one column each.

    Parameters
    ----------
    cells : CellTable
    label : bool
        Whether outcomes are 0/1.

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
    weight = np.ones(len(n))
    if label:
        sums = np.trace(S[:, P:, P:], axis1=1, axis2=2)
        # With one domain the weight is that of all rows.
        weight = np.sqrt(sums / n / C if several else np.full(len(n), sums.sum() / n.sum() / C))
    weight = weight / (np.sqrt(n @ weight**2 / n.sum()) or 1.0)
    inverse = np.divide(1.0, weight, out=np.zeros(len(n)), where=weight > TINY)
    by_column = np.hstack([np.repeat(weight[:, None], P, 1), np.repeat(inverse[:, None], C, 1)])
    S = S * by_column[:, :, None] * by_column[:, None]
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
        self.orders = {}
        if ranking == "gain":
            label = result.target.classes is not None
            self.products = products_from_cells(result.cells, label=label)
