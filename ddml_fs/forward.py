"""Forward selection by the gain that a feature is expected to have in a new domain.

A feature is a block of columns: the column itself, its hinge functions, the levels of a category.
In each step the block with the best score is taken. Then a ridge regression on this block removes
its part from the label and from all other blocks. All computations use sums of squares and
products, one table per domain.
"""

from dataclasses import dataclass, replace

import numpy as np

from ddml_fs.domains import heterogeneity, quantile_of_chance
from ddml_fs.progress import Progress

RIDGE = 0.03  # share of a column's variance; larger if there are many columns for the rows
RIDGE_BY_WIDTH = 4.0
CHANCE_BY_WIDTH = 20.0
UNSTABLE = 0.001  # p-value of equal effects in all domains, above which they count as equal
MOST = 1500  # columns in the stepwise search; the rest follow, ordered by their own gains
TINY = 1e-9


@dataclass(frozen=True, eq=False)
class Products:
    """Sums of squares and products of P columns and C outcomes, for each part of the rows.

    Attributes
    ----------
    S : array of shape (parts, P + C, P + C)
    n : array of shape (parts,)
        Rows.
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

    def without(self, part):
        """The products of all other parts."""
        return replace(self, S=np.delete(self.S, part, 0), n=np.delete(self.n, part))


def products(Z, outcomes, part, own, bent, n_features, *, label, domains):
    """Sums of squares and products of blocks of columns and of the outcomes.

    Parameters
    ----------
    Z : array of shape (N, P)
        Columns of all blocks; those of one feature are adjacent.
    outcomes : array of shape (N, C)
    part : int array of shape (N,)
        Domain or fold of a row.
    own : int array of shape (P,)
    bent : bool array of shape (P,)
    n_features : int
    label : bool
        Whether outcomes are 0/1. The weight of a row is then the variance of the label in its
        domain, as in logistic regression: it is the effect on the log-odds that may be the same in
        all domains. A domain with only one class has weight 0.
    domains : bool
        Whether parts are domains. Each domain then has its own intercept.

    Returns
    -------
    products : Products

    Notes
    -----
    The columns of a block are made orthogonal over all rows, with variance 1. Columns without
    variation within domains are dropped.
    """
    group = part if domains else np.zeros(len(part), dtype=int)
    weight = np.ones(len(Z))
    Z, e = np.array(Z, dtype=np.float64), np.array(outcomes, dtype=np.float64)
    scale = np.maximum(np.abs(Z).max(0), TINY)
    Z /= scale
    for d in np.unique(group):
        rows = group == d
        Z[rows] -= Z[rows].mean(0)
        e[rows] -= e[rows].mean(0)
        if label:
            weight[rows] = np.sqrt((e[rows] ** 2).mean())  # over all classes
    mean = np.sqrt((weight**2).mean()) or 1.0
    weight /= mean
    Z *= weight[:, None]
    e = np.divide(e, weight[:, None], out=np.zeros_like(e), where=weight[:, None] > TINY)
    e /= np.maximum(np.sqrt((e**2).mean(0)), TINY)
    features, columns, curved = [], [], []
    for f in range(n_features):
        at = np.flatnonzero(own == f)
        block, kept = orthogonal(Z[:, at])
        columns.append(block)
        features += [f] * len(kept)
        curved += list(bent[at[kept]])
    table = np.hstack([*columns, e])
    S = np.stack([table[part == d].T @ table[part == d] for d in np.unique(part)])
    n = np.bincount(part)[np.unique(part)]
    # Types are given, because no column may be left.
    own, curves = np.array(features, dtype=int), np.array(curved, dtype=bool)
    return Products(S, n, own, curves, n_features, domains)


def orthogonal(block):
    """Orthogonalise the columns (N, k) of a block in their order, with mean square 1.

    Columns that the ones before explain are dropped. Also returns the numbers of the columns kept.
    """
    size = np.sqrt((block**2).mean(0))
    Q, R = np.linalg.qr(block / np.maximum(size, TINY))
    kept = np.flatnonzero((np.abs(np.diag(R)) > 1e-3 * np.sqrt(len(block))) & (size > TINY))
    return Q[:, kept] * np.sqrt(len(block)), kept


def forward_order(given, *, risk_aversion=2.5, progress=None):
    """Order the features by forward selection.

    Parameters
    ----------
    given : Products
    risk_aversion : float
        The score is lowered by ``risk_aversion`` · τ/θ times the gain, see Notes.
    progress : Progress, optional
        Told of every feature.

    Returns
    -------
    order : int array of shape (F,)
        Best first.
    scores : array of shape (F,)
        The gain in a new domain that was expected when the feature was taken, as a share of the
        label's variance (with several classes, averaged over them), minus the penalty for risk.

    Notes
    -----
    Let U = Σ_d U_d and G = Σ_d G_d be the products of a block with the label and with itself. The
    ridge estimate b = (G + λnI)⁻¹U has the gain Uᵀb/n on the rows that it was fitted on. On new
    rows the gain is smaller, by 2/n times the noise variance for each column. The variation between
    domains is measured along the fitted curve Zb: its coefficient in domain d is θ_d, with mean θ
    and variance τ² between domains. In a new domain the standard deviation of the gain is 2τ/θ
    times the gain. The mean over m domains is itself an estimate, which costs τ²/(mθ²) of the gain.

    If there are many columns for the rows, most gains are due to chance. Then features that are
    correlated with those already taken are penalised, by up to 20 F/n times the size of a gain by
    chance.
    """
    F, N = given.n_features, given.n.sum()
    active = given
    first = np.arange(F)
    if len(given.own) > MOST:
        alone = ResidualProducts(given, 0.0).gains(ridge_of(F, N), risk_aversion)
        ranked = np.argsort(-alone, kind="stable")
        room = np.cumsum(np.bincount(given.own, minlength=F)[ranked]) <= MOST
        first, rest = np.sort(ranked[room]), ranked[~room]
        active = subset(given, first)
    scores = np.zeros(F)
    order, taken = steps(active, F, N, risk_aversion, progress or Progress())
    scores[first[order]] = taken
    order = first[order]
    if len(order) < F:
        scores[rest] = np.minimum(alone[rest], taken.min(initial=0.0))
        order = np.r_[order, rest]
    return order, scores


def ridge_of(F, N):
    """λ for F features and N rows."""
    return RIDGE + RIDGE_BY_WIDTH * F / N


def subset(given, features):
    """The products of some of the features."""
    use = np.isin(given.own, features)
    number = np.full(given.n_features, -1)
    number[features] = np.arange(len(features))
    keep = np.r_[np.flatnonzero(use), np.arange(len(given.own), given.S.shape[1])]
    S = given.S[:, keep[:, None], keep]
    own, bent = number[given.own[use]], given.bent[use]
    return replace(given, S=S, own=own, bent=bent, n_features=len(features))


def steps(given, F, N, risk_aversion, progress):
    """Take one feature after another; returns the order, and each score when it was taken."""
    ridge, shared = ridge_of(F, N), redundancy(given)
    remaining = ResidualProducts(given, ridge * N)
    left = np.ones(given.n_features, dtype=bool)
    like_taken = np.zeros(given.n_features)
    order = np.empty(given.n_features, dtype=np.intp)
    taken = np.empty(given.n_features)
    for i in range(given.n_features):
        score = remaining.gains(ridge, risk_aversion)
        if i:
            share = like_taken / max(like_taken[left].mean(), TINY)
            score = score - CHANCE_BY_WIDTH * F / N**2 * share
        best = int(np.argmax(np.where(left, score, -np.inf)))
        order[i], taken[i] = best, score[best]
        like_taken += shared[best]
        left[best] = False
        if i + 1 < given.n_features:
            remaining.take_out(best)
        progress.advance()
    return order, taken


def redundancy(given):
    """Mean squared correlation of the columns of two features, (F, F)."""
    P, F = len(given.own), given.n_features
    total = given.S[:, :P, :P].sum(0)
    size = np.maximum(np.diag(total), TINY)
    squared = total**2 / size[:, None] / size
    member = (given.own[:, None] == np.arange(F)).astype(float)
    member /= np.maximum(member.sum(0), 1)
    return member.T @ squared @ member


class ResidualProducts:
    """Products of what regressions on the features taken so far leave of all columns.

    With a block taken, the products of part d become S_d − AᵀH_d − H_dᵀA, where A are the
    coefficients of all columns on the block. Only the products within a feature, and with the
    outcomes, are kept up to date. Those of a block with all other columns are computed when it is
    taken, from all A and H so far.

    Parameters
    ----------
    given : Products
    penalty : float
        Of the regressions.
    """

    def __init__(self, given, penalty):
        self.given, self.penalty = given, penalty
        P, (m, T, _) = len(given.own), given.S.shape
        self.A, self.H = np.empty((P, T)), np.empty((m, P, T))
        self.n_taken = 0  # columns
        size = np.bincount(given.own, minlength=given.n_features)
        straight = np.bincount(given.own[~given.bent], minlength=given.n_features)
        start = np.r_[0, np.cumsum(size)]
        self.rest = given.S[:, P:, P:].sum(0)
        self.blocks = []
        for k in np.unique(size[size > 0]):
            features = np.flatnonzero(size == k)
            at = start[features][:, None] + np.arange(k)
            G = given.S[:, at[:, :, None], at[:, None]]  # (m, f, k, k)
            U = given.S[:, at, P:]  # (m, f, k, C)
            self.blocks.append((features, at, straight[features], G, U))

    def take_out(self, feature):
        """Remove the part of a feature from all others and from the outcomes."""
        block = np.flatnonzero(self.given.own == feature)
        if not len(block):
            return
        S, P, K, k = self.given.S, len(self.given.own), self.n_taken, len(block)
        A, H = self.A[:K], self.H[:, :K]
        B = S[:, block] - A[:, block].T @ H - H[:, :, block].transpose(0, 2, 1) @ A  # (m, k, T)
        total = B.sum(0)
        A = np.linalg.solve(total[:, block] + self.penalty * np.eye(k), total)
        H = B - 0.5 * B[:, :, block] @ A
        self.A[K : K + k], self.H[:, K : K + k] = A, H
        self.n_taken = K + k
        change = A[:, P:].T @ H[:, :, P:].sum(0)
        self.rest = self.rest - change - change.T
        for _, at, _, G, U in self.blocks:
            A_f, H_f = A[:, at], H[:, :, at]  # (k, f, l), (m, k, f, l)
            change = np.einsum("jfk,mjfl->mfkl", A_f, H_f)
            G -= change + change.swapaxes(-1, -2)
            U -= np.einsum("jfk,mjc->mfkc", A_f, H[:, :, P:])
            U -= np.einsum("mjfk,jc->mfkc", H_f, A[:, P:])

    def gains(self, ridge, risk_aversion):
        """Expected gain of every feature in a new domain, minus the penalty for risk, (F,).

        Nonlinear columns must improve the score: a feature has the better score of the two.
        """
        score = np.full(self.given.n_features, -np.inf)
        for features, _, straight, G, U in self.blocks:
            k = G.shape[-1]
            score[features] = self._gains(G, U, ridge, risk_aversion)
            for s in np.unique(straight[(straight > 0) & (straight < k)]):
                some = straight == s
                linear = self._gains(G[:, some, :s, :s], U[:, some, :s], ridge, risk_aversion)
                score[features[some]] = np.maximum(score[features[some]], linear)
        score[score == -np.inf] = -2.0  # features without columns come after all others
        return score

    def _gains(self, G_d, U_d, ridge, risk_aversion):
        """Gains of f features of k columns each, from products (m, f, k, k) and (m, f, k, C)."""
        m, N, k = len(self.given.n), self.given.n.sum(), G_d.shape[-1]
        noise = np.diag(self.rest) / N  # variance of the outcomes that the taken features leave
        G, U = G_d.sum(0), U_d.sum(0)
        b = np.linalg.solve(G + ridge * N * np.eye(k), U)  # (f, k, C)
        own = ((U * b).sum(1) - 2 * k * noise) / N  # (f, C)
        if self.given.domains and m > 1:
            I_d = np.einsum("fkc,mfkl,flc->mfc", b, G_d, b)
            size_d = np.einsum("fkc,mfkc->mfc", b, U_d)
            own = own - risk(size_d, I_d, noise, N, m, risk_aversion)
        return own.mean(-1)


def risk(U, I, noise, N, m, aversion):
    """How much the variation of an effect between domains lowers its score, (f, C).

    Parameters
    ----------
    U, I : arrays of shape (m, f, C)
        Products of a block's fitted curve with the outcome and with itself.
    noise : array of shape (C,)
    N, m : int
        Rows and domains.
    aversion : float
    """
    noise = np.maximum(noise, TINY)
    total = np.maximum(I.sum(0), TINY)
    _, Q, df, spread = heterogeneity(U / noise, I / noise, 1e-6 * total / m < I)
    tau2 = np.where(quantile_of_chance(UNSTABLE, df) < Q, (Q - df) / spread, 0.0)
    theta = U.sum(0) / total
    relative = tau2 / np.maximum(theta**2, TINY)  # of the effect
    gain = U.sum(0) * theta / N
    return gain * (relative / m + aversion * np.sqrt(relative))
