"""Ridge regressions on blocks of columns, for the elimination of features.

Numbers have sums of squares and products, one table per domain, from which all fits follow. Labels
have logistic regressions on the rows.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from ddml_fs.chunks import chunks
from ddml_fs.engine.additive import LEAST_WEIGHT, ridge_index
from ddml_fs.weights import weighted_mean

# λ = 200 + P/2 for P columns, chosen on real tables with 800 to 10 000 rows (docs/shifts.md).
RIDGE, RIDGE_BY_WIDTH = 200.0, 0.5
DISPERSION_STEPS = 3
TINY = 1e-9


class Fit(NamedTuple):
    """A penalised fit.

    Attributes
    ----------
    beta : array of shape (K,)
        Coefficients of the columns, then of the intercepts if there are any.
    omega : array of shape (K, K)
        Inverse of the penalised information.
    by_domain : callable
        From curves (K, F) to their scores and informations by domain, each (domains, F). If the
        coefficient of a curve is the same in all domains, score / information is near 1 in all.
    """

    beta: np.ndarray
    omega: np.ndarray
    by_domain: Callable


def penalty_of(n_columns):
    """The penalty λ: 1/λ is the variance of a coefficient before data are seen.

    Examples
    --------
    >>> penalty_of(100)
    250.0
    """
    return RIDGE + RIDGE_BY_WIDTH * n_columns


def centred_blocks(Z, own, bent, n_features, group, weight):
    """Columns that are centred within groups, orthogonal within features, with mean square 1.

    Parameters
    ----------
    Z : array of shape (N, P)
        Columns of all blocks; those of one feature are adjacent.
    own : int array of shape (P,)
        The feature that a column belongs to, in increasing order.
    bent : bool array of shape (P,)
        Columns that make the effect of a feature nonlinear; they come last in its block.
    n_features : int
    group : int array of shape (N,)
    weight : array of shape (N,)
        Weights of the rows in means and squares.

    Returns
    -------
    Z, own, bent : arrays
        Without columns that do not vary within groups, or that the others of a block explain.
    """
    Z = np.array(Z, dtype=np.float64)
    for at in chunks(Z.shape[1], 8 * len(Z)):
        Z[:, at] /= np.maximum(np.abs(Z[:, at]).max(0), TINY)
        for d in np.unique(group):
            rows = group == d
            Z[rows, at] -= weighted_mean(Z[rows, at], weight[rows])
    if (np.diff(own) > 0).all():  # one column each, where there is nothing to orthogonalise
        size = np.empty(Z.shape[1])
        for at in chunks(Z.shape[1], 8 * len(Z)):
            size[at] = np.sqrt(weighted_mean(Z[:, at] ** 2, weight))
            Z[:, at] /= np.maximum(size[at], TINY)
        kept = size > TINY
        return (Z, own, bent) if kept.all() else (Z[:, kept], own[kept], bent[kept])
    features, curved, n = [], [], 0
    bounds = np.searchsorted(own, np.arange(n_features + 1))
    for f in range(n_features):
        at = np.arange(bounds[f], bounds[f + 1])
        block, kept = orthogonal(Z[:, at], weight)
        Z[:, n : n + len(kept)] = block  # in place: blocks do not grow
        n += len(kept)
        features += [f] * len(kept)
        curved += list(bent[at[kept]])
    return Z[:, :n], np.array(features, dtype=int), np.array(curved, dtype=bool)


def orthogonal(block, weight):
    """Orthogonalise the columns (N, k) of a block in their order, with weighted mean square 1.

    Columns that the ones before explain are dropped. Also returns the numbers of the columns kept.
    """
    size = np.sqrt(weighted_mean(block**2, weight))
    scaled, root = block / np.maximum(size, TINY), np.sqrt(weight.sum())
    R = np.asarray(np.linalg.qr(np.sqrt(weight)[:, None] * scaled, mode="r"))
    kept = np.flatnonzero((np.abs(np.diag(R)) > 1e-3 * root) & (size > TINY))
    return np.linalg.solve(R[np.ix_(kept, kept)].T, scaled[:, kept].T).T * root, kept


def without_near_copies(model, near):
    """The model with one of several near copies: the one with the largest gain alone.

    The others add next to nothing to it, and come last.

    Parameters
    ----------
    model : Products or RowModel
    near : int array of shape (F,)
        The feature that each one nearly repeats, or itself.
    """
    keep = np.ones(len(near), bool)
    copies = np.unique(near[near != np.arange(len(near))])
    alone = model.gains_alone() if len(copies) else np.empty(0)
    for f in copies:
        alike = np.flatnonzero(near == f)
        keep[np.delete(alike, np.argmax(alone[alike]))] = False
    return model if keep.all() else model.with_columns(keep[model.own])


@dataclass(frozen=True, eq=False)
class Products:
    """Sums of squares and products of P columns and C outcomes, for each part of the rows.

    Attributes
    ----------
    S : array of shape (parts, P + C, P + C)
    n : array of shape (parts,)
        Rows, or the sums of their weights.
    own : int array of shape (P,)
        The feature that a column belongs to, in increasing order.
    bent : bool array of shape (P,)
        Columns that make the effect of a feature nonlinear; they come last in its block.
    n_features : int
        F.
    domains : bool
        Whether parts are domains, so that effects may differ between them, or folds of one domain.
    """

    S: np.ndarray
    n: np.ndarray
    own: np.ndarray
    bent: np.ndarray
    n_features: int
    domains: bool

    @property
    def n_rows(self):
        """Rows, or the sum of their weights."""
        return self.n.sum()

    @property
    def penalty(self):
        """λ, see :func:`penalty_of`."""
        return penalty_of(len(self.own))

    @property
    def n_outcomes(self):
        """Number of outcomes."""
        return self.S.shape[1] - len(self.own)

    @property
    def n_domains(self):
        """Number of domains; 1 if parts are folds."""
        return len(self.n) if self.domains else 1

    @property
    def parts(self):
        """The parts that may be left out."""
        return np.arange(len(self.n))

    def with_columns(self, use):
        """The products of some columns, given by a bool array (P,), and the outcomes."""
        at = np.flatnonzero(np.r_[use, np.ones(self.n_outcomes, bool)])
        S = self.S[:, at[:, None], at]
        return replace(self, S=S, own=self.own[use], bent=self.bent[use])

    def without(self, part):
        """The products of all other parts."""
        return replace(self, S=np.delete(self.S, part, 0), n=np.delete(self.n, part))

    def fit(self, outcome, columns, start=None):
        """Least squares on some columns, with residual variance as dispersion; see :class:`Fit`."""
        y = len(self.own) + outcome
        S_y = self.S[:, columns, y]
        S = self.S[:, columns[:, None], columns]
        G, U, square = S.sum(0), S_y.sum(0), self.S[:, y, y].sum()
        dispersion = max(square / self.n_rows, TINY)
        eye = np.eye(len(columns))
        for _ in range(DISPERSION_STEPS):
            beta = np.linalg.solve(G + self.penalty * dispersion * eye, U)
            rest = square - 2 * beta @ U + beta @ G @ beta
            dispersion = max(rest / self.n_rows, TINY)
        omega = np.linalg.inv(G / dispersion + self.penalty * eye)

        def by_domain(curves):
            I = ((S @ curves) * curves).sum(1) / dispersion
            return (S_y - S @ beta) @ curves / dispersion + I, I

        return Fit(beta, omega, by_domain)

    def gains_alone(self):
        """Gain of every feature alone, in log-likelihood of all rows, (F,)."""
        P, total = len(self.own), self.S.sum(0)
        U, G = total[:P, P:], np.diag(total)[:P, None]
        dispersion = np.maximum(np.diag(total)[P:] / self.n_rows, TINY)
        gain = (U**2 / dispersion / (G + self.penalty * dispersion)).mean(1) / 2 - 1
        return np.bincount(self.own, gain, self.n_features)


def products(Z, outcomes, part, own, bent, n_features, *, domains, weight):
    """Sums of squares and products of blocks of columns and of the outcomes.

    Parameters
    ----------
    Z, own, bent, n_features
        As in :func:`centred_blocks`.
    outcomes : array of shape (N, C)
    part : int array of shape (N,)
        Domain or fold of a row.
    domains : bool
        Whether parts are domains. Each domain then has its own intercept.
    weight : array of shape (N,)

    Returns
    -------
    products : Products
    """
    group = part if domains else np.zeros(len(part), dtype=int)
    Z, own, bent = centred_blocks(Z, own, bent, n_features, group, weight)
    e = np.array(outcomes, dtype=np.float64)
    for d in np.unique(group):
        e[group == d] -= weighted_mean(e[group == d], weight[group == d])
    table = np.hstack([Z, e / np.maximum(np.sqrt(weighted_mean(e**2, weight)), TINY)])
    table *= np.sqrt(weight)[:, None]  # so that all sums are weighted
    S = np.stack([table[part == d].T @ table[part == d] for d in np.unique(part)])
    return Products(S, np.bincount(part, weight)[np.unique(part)], own, bent, n_features, domains)


@dataclass(frozen=True, eq=False)
class RowModel:
    """Logistic regressions of labels, with an intercept for every domain.

    Attributes
    ----------
    Z : array of shape (N, P)
        Blocks of columns, see :func:`centred_blocks`.
    outcomes : array of shape (N, C)
        0/1 labels.
    part : int array of shape (N,)
        Part of each row that may be left out: its domain or its fold.
    domain : int array of shape (N,)
    weight : array of shape (N,)
        Positive weights of the rows.
    own, bent, n_features
        As in :class:`Products`.
    """

    Z: np.ndarray
    outcomes: np.ndarray
    part: np.ndarray
    domain: np.ndarray
    weight: np.ndarray
    own: np.ndarray
    bent: np.ndarray
    n_features: int

    @property
    def n_rows(self):
        """Rows, or the sum of their weights."""
        return self.weight.sum()

    @property
    def penalty(self):
        """λ, see :func:`penalty_of`."""
        return penalty_of(len(self.own))

    @property
    def n_outcomes(self):
        """Number of outcomes."""
        return self.outcomes.shape[1]

    @property
    def n_domains(self):
        """Number of domains."""
        return len(np.unique(self.domain))

    @property
    def parts(self):
        """The parts that may be left out."""
        return np.unique(self.part)

    def with_columns(self, use):
        """The model of some columns, given by a bool array (P,)."""
        return replace(self, Z=self.Z[:, use], own=self.own[use], bent=self.bent[use])

    def without(self, part):
        """The model of the rows of all other parts."""
        rows = self.part != part
        names = ("Z", "outcomes", "part", "domain", "weight")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def fit(self, outcome, columns, start=None):
        """Logistic regression on some columns, from the coefficients of a start; see Fit."""
        y, intercepts = self.outcomes[:, outcome], self._intercepts
        A = np.hstack([self.Z[:, columns], intercepts])
        penalty = np.r_[np.full(len(columns), self.penalty), np.zeros(intercepts.shape[1])]
        own = self.weight
        beta = ridge_index(A, y, penalty / own.sum(), True, start=start, weight=own)
        p = expit(A @ beta)
        w = own * np.maximum(p * (1 - p), LEAST_WEIGHT)
        S = A * np.sqrt(w)[:, None]
        H = S.T @ S  # of one factor, as a symmetric product takes half the time
        H[np.diag_indices_from(H)] += penalty + TINY * len(A)
        return Fit(beta, np.linalg.inv(H), partial(self._by_domain, A, w, own * (y - p)))

    def _by_domain(self, A, w, e, curves):
        U, I = [], []
        for d in np.unique(self.domain):
            rows = self.domain == d
            v = A[rows] @ curves
            I.append((w[rows, None] * v**2).sum(0))
            U.append(e[rows] @ v + I[-1])
        return np.array(U), np.array(I)

    @property
    def _intercepts(self):
        return (self.domain[:, None] == np.unique(self.domain)).astype(float)

    def gains_alone(self):
        """Gain of every feature alone, in log-likelihood of all rows, (F,)."""
        A, w = self._intercepts, self.weight[:, None]
        p = A @ (A.T @ (w * self.outcomes) / (A * w).sum(0)[:, None])
        e, spread, gain = w * (self.outcomes - p), w * p * (1 - p), np.empty(len(self.own))
        for at in chunks(len(self.own), 8 * len(self.Z)):
            U, G = self.Z[:, at].T @ e, (self.Z[:, at] ** 2).T @ spread
            gain[at] = (U**2 / (G + self.penalty)).mean(1) / 2 - 1
        return np.bincount(self.own, gain, self.n_features)
