"""The ridge sweep from sums of squares and products: no row is needed, only cells of rows.

On held-out rows, the residuals of every column and of the outcome are linear functions of the row.
So their sums of squares and products over a cell are quadratic forms in the products of the cell.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ddml_fs.encoding import Target
from ddml_fs.engine.affine_fits import forms_of
from ddml_fs.engine.plan import penalty_for
from ddml_fs.engine.product_rows import FLAT, ProductRows
from ddml_fs.evidence import Evidence
from ddml_fs.features import Features
from ddml_fs.near_copies import near_of
from ddml_fs.score_tests import COLLINEAR
from ddml_fs.scores import DELTA
from ddml_fs.sweep import find_stable

CONSTANT = 1e-12  # a column whose standard deviation is a smaller share of its mean is constant
COPY = 1e-12  # columns whose squared correlation is nearer to 1 are copies of each other


@dataclass(frozen=True, eq=False)
class ProductResult:
    """Results of a sweep from products; what orders and tables of features need.

    Attributes
    ----------
    features : Features
        Without rows.
    target : Target
        Without rows.
    domain : int array
        The number of every domain, once.
    evidence : list of Evidence
        One per outcome.
    cells : CellTable
        The distinct columns in units of their standard deviations, and the outcomes.
    """

    features: Features
    target: Target
    domain: np.ndarray
    evidence: list
    cells: Any
    error_df: ClassVar[float] = np.inf  # no clusters


def outcomes_of(cells):
    """Numbers of the outcomes that are estimated: of two classes the second one only."""
    return np.array([1]) if cells.n_outcomes == 2 else np.arange(cells.n_outcomes)


def features_from_products(n, mean, S):
    """Find the distinct, varying columns from means and products.

    Parameters
    ----------
    n : float
        Rows.
    mean : array of shape (P,)
    S : array of shape (P, P)
        Centred sums of squares and products.

    Returns
    -------
    features : Features
        Without rows.
    columns : int array of shape (F,)
        The column of each distinct feature.
    sd : array of shape (F,)
        Standard deviations of these columns.
    """
    P = len(mean)
    sd = np.sqrt(np.maximum(np.diag(S), 0) / n)
    varies = sd > CONSTANT * np.abs(mean)
    size = np.where(varies, sd, 1.0) * np.sqrt(n)
    R = S / size[:, None] / size
    group, scale = np.full(P, -1), np.where(varies, sd, 1.0)
    kept: list = []
    for j in np.flatnonzero(varies):
        same = np.flatnonzero(1 - R[j, kept] ** 2 < COPY)
        group[j] = same[0] if len(same) else len(kept)
        if len(same):
            scale[j] *= np.sign(R[j, kept[same[0]]])
        else:
            kept.append(j)
    columns = np.array(kept, dtype=int)
    near = near_of(R[np.ix_(columns, columns)])
    return Features.without_rows(sd[columns], group, scale, near), columns, sd[columns]


def forms_of_fold(cells, k, covariates, shrinkage, block):
    """Nuisances of fold k, fitted on the cells of the other folds.

    Parameters
    ----------
    cells : CellTable
    k : int
    covariates : bool array of shape (P,)
    shrinkage : float
    block : int array of shape (P,)

    Returns
    -------
    forms : list of pairs
        See :func:`~ddml_fs.engine.affine_fits.forms_of`.
    """
    P = cells.n_columns
    train = cells.pooled(cells.fold != k)
    sd = np.sqrt(np.diag(train.S)[:P] / train.n)
    sd[sd <= FLAT] = 0.0
    size = np.r_[sd, np.ones(cells.n_outcomes)]
    scale = np.divide(1.0, size, out=np.zeros(len(size)), where=size > 0)
    rows = ProductRows(train.n, train.S / train.n * scale[:, None] * scale)
    penalty = penalty_for(shrinkage, covariates.sum(), train.n)

    def outcome(c):
        return lambda fit: train.mean[c] + fit.linear_part(rows[:, c : c + 1])

    outcomes = [outcome(c) for c in range(P, P + cells.n_outcomes)]
    return forms_of(rows[:, :P], train.mean[:P], sd, covariates, penalty, block, outcomes)


def evidence_from_products(cells, covariates, shrinkage, block):
    """Evidence on every column, as :func:`~ddml_fs.domains.collect` makes it from rows.

    Parameters
    ----------
    cells : CellTable
        Columns in units of their standard deviations.
    covariates : bool array of shape (P,)
    shrinkage : float
    block : int array of shape (P,)

    Returns
    -------
    evidence : list of Evidence
        One per outcome; the score is the partially linear one.
    """
    P, C, m = cells.n_columns, cells.n_outcomes, len(cells.n)
    v_mean, vv = np.empty((m, P)), np.empty((m, P))
    e_mean, ve = np.empty((C, m, P)), np.empty((C, m, P))
    ee = np.zeros((C, P))  # around the means of the cells
    for k in np.unique(cells.fold):
        (a, A), *g = forms_of_fold(cells, k, covariates, shrinkage, block)
        members = np.flatnonzero(cells.fold == k)
        for i in members:
            x, y, S = cells.mean[i, :P], cells.mean[i, P:], cells.S[i]
            SA = S[:P, :P] @ A
            v_mean[i], vv[i] = a + x @ A, (A * SA).sum(0)
            for c in range(C):
                e_mean[c, i] = y[c] - g[c][0] - x @ g[c][1]
                ve[c, i] = S[P + c, :P] @ A - (g[c][1] * SA).sum(0)
        S = cells.S[members].sum(0)
        for c in range(C):
            A = g[c][1]
            ee[c] += S[P + c, P + c] - 2 * S[P + c, :P] @ A + (A * (S[:P, :P] @ A)).sum(0)
    n, N = cells.n[:, None], cells.n_rows
    if len(cells.domains) > 1:  # every domain has its own intercept
        own = (cells.domain[:, None] == cells.domain).astype(float) * cells.n
        own /= own.sum(1, keepdims=True)
        v_mean, e_mean = v_mean - own @ v_mean, e_mean - own @ e_mean
    vv += n * v_mean**2
    ve += n * v_mean * e_mean
    # Noisy sums of sites could have a negative one.
    dispersion = np.maximum((ee + (n * e_mean**2).sum(1)) / N, 0.0) + DELTA
    M = vv.sum(0)
    known = M / N - (cells.n @ v_mean / N) ** 2 > COLLINEAR
    found = []
    for c in range(C):
        U, I = (np.where(known, a / dispersion[c], 0.0) for a in (ve[c], vv))
        chi2 = np.divide(U.sum(0) ** 2, I.sum(0), out=np.zeros(P), where=known)
        nothing = np.empty((round(N), 0), np.float32)  # influence needs rows
        found.append(Evidence(U, I, cells.domain, cells.fold, nothing, chi2, known * 1, np.ones(P)))
    return found


def product_sweep(cells, *, shrinkage, screen_shrinkage, covariates, progress):
    """The evidence on every feature, from products.

    Parameters
    ----------
    cells : CellTable
    shrinkage, screen_shrinkage : float
        Of the sweep, and of the quick sweeps that look for unstable features.
    covariates : {"all", "stable", "strict"}
        Which features are covariates, see :func:`~ddml_fs.sweep.find_stable`.
    progress : Progress

    Returns
    -------
    result : ProductResult
    """
    total, P = cells.pooled(np.ones(len(cells.n), bool)), cells.n_columns
    features, columns, sd = features_from_products(total.n, total.mean[:P], total.S[:P, :P])
    if not features.n_features:
        raise ValueError("X must have a column that varies, got only constant columns.")
    own, unit = cells.standardised(columns, outcomes_of(cells), sd), None
    if cells.classes is None:
        unit = float(np.sqrt(total.S[P, P] / total.n))
        size = np.r_[np.ones(own.n_columns), unit]
        own = replace(own, mean=own.mean / size, S=own.S / size[:, None] / size)

    def evidence(stable, shrinkage=shrinkage):
        first = features.near == np.arange(features.n_features)
        covariates = first if stable is None else first & stable
        return evidence_from_products(own, covariates, shrinkage, features.near)

    stable = None
    if covariates != "all" and len(cells.domains) > 1:
        stable = find_stable(
            lambda stable: evidence(stable, screen_shrinkage), covariates, progress
        )
    progress.enter("sweep")
    return ProductResult(
        features=features,
        target=Target(np.empty(0, int), cells.classes, [], unit),
        domain=np.arange(len(cells.domains)),
        evidence=evidence(stable),
        cells=own,
    )
