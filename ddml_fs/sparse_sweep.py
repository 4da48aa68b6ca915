"""The ridge sweep on a sparse matrix, which is never made dense.

Effects on the mean follow from products of sparse columns, see :mod:`ddml_fs.product_sweep`. For
effects on log-odds, residuals are evaluated for a few columns at a time, see
:mod:`ddml_fs.sparse_logistic`. So memory holds tables of products, D × D for D columns, and no
dense table of rows. For more columns than memory allows, a screen by marginal scores keeps the best
of them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ddml_fs.encoding import strata_of
from ddml_fs.engine.folds import make_folds
from ddml_fs.engine.sparse_sums import FLAT, cells_of, sums_of
from ddml_fs.evidence import TINY, Evidence
from ddml_fs.product_sweep import ProductResult, evidence_from_products, features_from_products
from ddml_fs.screening import Screened, features_with_rest, joined_evidence, part_of
from ddml_fs.sparse_logistic import SparseLogistic
from ddml_fs.sweep import find_stable

TABLES = 6  # of products, in memory beside those of the cells or folds


@dataclass(frozen=True, eq=False)
class SparseInput:
    """Data of a sparse sweep.

    Attributes
    ----------
    X : sparse matrix of shape (N, D), in compressed rows
    target : Target
    domain : int array of shape (N,)
    """

    X: Any
    target: Any
    domain: np.ndarray


def marginal_evidence(X, outcomes, domain, cells, label):
    """Evidence on every column without covariates, within domains; it is no test (df = 0).

    Parameters
    ----------
    X : sparse matrix of shape (N, D)
        Columns in units of their standard deviations.
    outcomes : array of shape (N, C)
    domain : int array of shape (N,)
    cells : int array of shape (cells, 2)
        Domain and fold of the cells. The sums of a domain are put into its first cell.
    label : bool
        Whether effects are log-odds of a label, by one step from no effect.

    Returns
    -------
    evidence : list of Evidence
        One per outcome.
    """
    D, squares = X.shape[1], X.multiply(X).tocsr()
    first = [np.argmax(cells[:, 0] == d) for d in np.unique(domain)]
    spread, across, variance = [], [], []
    for d in np.unique(domain):
        rows = np.flatnonzero(domain == d)
        part, e = X[rows], outcomes[rows] - outcomes[rows].mean(0)
        sums = np.asarray(part.sum(0)).ravel()
        spread.append(np.asarray(squares[rows].sum(0)).ravel() - sums**2 / len(rows))
        across.append(np.asarray(part.T @ e))
        variance.append((e**2).mean(0))
    share = np.bincount(domain) / len(domain)
    found = []
    for c in range(outcomes.shape[1]):
        own = np.array([v[c] for v in variance])
        U, I = np.zeros((len(cells), D)), np.zeros((len(cells), D))
        total = share @ own
        for i, d in enumerate(first):
            U[d] = across[i][:, c] / (1.0 if label else total)
            I[d] = np.maximum(spread[i], 0) * (own[i] if label else 1 / total)
        nothing = np.empty((X.shape[0], 0), np.float32)
        zeros = np.zeros(D)
        found.append(
            Evidence(U, I, cells[:, 0], cells[:, 1], nothing, zeros, zeros.astype(int), zeros + 1)
        )
    return found


def screen_columns(evidence, most):
    """The columns with the largest marginal scores |ΣU|/√ΣI, and all columns in that order."""
    z = [np.abs(s.U.sum(0)) / np.sqrt(np.maximum(s.I.sum(0), TINY)) for s in evidence]
    order = np.argsort(-np.max(z, 0), kind="stable")
    return np.sort(order[:most]), order


def check_memory(n_columns, n_tables, memory):
    """Raise if tables of products of the columns need more memory than allowed."""
    need = 8e-9 * n_columns**2 * (n_tables + TABLES)
    if need > memory:
        most = int(n_columns * np.sqrt(memory / need))
        raise ValueError(
            f"the products of {n_columns} columns need {need:.1f} GB, but memory_budget is "
            f"{memory:g}; set screen to at most {most}, or a larger memory_budget."
        )


def sparse_sweep(
    given, score, *, shrinkage, screen_shrinkage, seed, n_folds, covariates, screen, resources
):
    """The evidence on every feature of a sparse matrix.

    Parameters
    ----------
    given : SparseInput
    score : ResidualScore
    shrinkage, screen_shrinkage : float
        As in :func:`~ddml_fs.product_sweep.product_sweep`.
    seed, n_folds : int
    covariates : {"all", "stable", "strict"}
    screen : int, or None
        Number of columns with the largest marginal scores that are kept. The others are neither
        treatments nor covariates.
    resources : Resources

    Returns
    -------
    result : ProductResult
        Distinct columns that were kept come first.
    screened : Screened
    """
    X, domain, progress = given.X, given.domain, resources.progress
    N, D = X.shape
    outcomes = np.column_stack(given.target.outcomes) / given.target.unit
    strata = strata_of(given.target, domain, n_folds)
    folds = make_folds(N, n_folds, np.random.RandomState(seed), strata=strata)
    mean = np.asarray(X.mean(0)).ravel()
    squares = np.asarray(X.multiply(X).mean(0)).ravel()
    variance = squares - mean**2
    sd = np.sqrt(np.where(variance > FLAT * squares, variance, 0.0))
    varies = np.flatnonzero(sd > 0)
    if not len(varies):
        raise ValueError("X must have a column that varies, got only constant columns.")
    X = sparse.csr_matrix(X[:, varies] @ sparse.diags(1 / sd[varies]))
    fold = np.empty(N, dtype=int)
    for k, part in enumerate(folds):
        fold[part.hold] = k
    cells = np.unique(np.column_stack([domain, fold]), axis=0)
    marginal = marginal_evidence(X, outcomes, domain, cells, score.label)
    kept, order = np.arange(len(varies)), np.arange(len(varies))
    if screen is not None and screen < len(varies):
        kept, order = screen_columns(marginal, screen)
    tables = n_folds * (1 + outcomes.shape[1]) if score.label else len(cells)
    check_memory(len(kept), tables, resources.memory)
    X = X[:, kept]
    n, centre, S = sums_of(X, np.arange(N))
    features, columns, _ = features_from_products(n, centre, S)
    del S
    X, several = X[:, columns], domain.max() > 0
    if score.label:
        logistic = SparseLogistic(X, outcomes, domain, fold)
        # The gains need one table per domain or, with one domain, per fold.
        zeros = np.zeros(N, int)
        parts = cells_of(X, outcomes, domain, zeros if several else fold)
    else:
        parts = cells_of(X, outcomes, domain, fold)

    def evidence(stable, shrinkage=shrinkage):
        first = features.near == np.arange(features.n_features)
        covariates = first if stable is None else first & stable
        if score.label:
            return logistic.evidence(covariates, shrinkage, features.near, progress)
        return evidence_from_products(parts, covariates, shrinkage, features.near)

    stable = None
    if covariates != "all" and several:
        stable = find_stable(
            lambda stable: evidence(stable, screen_shrinkage), covariates, progress
        )
    progress.enter("sweep")
    found = evidence(stable)
    # Columns that were screened out follow, with their marginal effects.
    rest = order[~np.isin(order, kept)]
    F = features.n_features
    screened = Screened(np.arange(F), F + np.arange(len(rest)))
    found = [joined_evidence([a, part_of(b, rest)]) for a, b in zip(found, marginal, strict=True)]
    result = ProductResult(
        features=features_with_rest(features, D, varies[kept], varies[rest], sd),
        target=given.target,
        domain=np.arange(domain.max() + 1),
        evidence=found,
        cells=parts,
    )
    return result, screened
