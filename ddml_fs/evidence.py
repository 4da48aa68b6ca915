"""Evidence on the effects of all features: sums of scores and information over rows.

In domain d, feature j has the score U_dj with information I_dj. Its effect is U_dj / I_dj with
variance 1 / I_dj.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from ddml_fs.inference import separation
from ddml_fs.score_tests import COLLINEAR, Robust, best_sum, design_effects, single_tests
from ddml_fs.scores import log_odds
from ddml_fs.weights import column, varies, weighted_mean, weighted_var

TINY = 1e-12
INTERCEPT_STEPS = 4


@dataclass(frozen=True)
class Evidence:
    """Scores and information of every feature in cells of rows; a cell is a fold of a domain.

    Attributes
    ----------
    U, I : arrays of shape (cells, F)
        Sums over the rows of a cell, divided by ``design``, so that 1 / I is a variance.
    domain, fold : int arrays of shape (cells,)
        Domain and fold of each cell.
    influence : array of shape (N, F)
        Influence of each row on the pooled effect.
    chi2, df : arrays of shape (F,)
        Statistic of the score test that no column of the feature has an effect, over all rows, and
        its degrees of freedom.
    design : array of shape (F,)
        Robust over model-based variance of the effect; 1 without weights and clusters.
    unbounded : int array of shape (F,), or 0
        The side on which the rows do not bound the effect, see :func:`separation`.
    """

    U: np.ndarray
    I: np.ndarray
    domain: np.ndarray
    fold: np.ndarray
    influence: np.ndarray
    chi2: np.ndarray
    df: np.ndarray
    design: np.ndarray
    unbounded: np.ndarray | int = 0

    def without(self, part, number):
        """The evidence from all other domains (``part="domain"``) or folds (``part="fold"``).

        The test is then the one of the pooled effect.
        """
        other = getattr(self, part) != number
        U, I = self.U[other], self.I[other]
        return replace(
            self,
            U=U,
            I=I,
            domain=self.domain[other],
            fold=self.fold[other],
            chi2=U.sum(0) ** 2 / np.maximum(I.sum(0), TINY),
            df=np.minimum(self.df, 1),
        )

    def by_domain(self):
        """U and I summed over the folds, each (domains, F)."""
        own = self.domain == np.unique(self.domain)[:, None]
        return own @ self.U, own @ self.I


def joined(parts):
    """The evidence on all features of several parts, which have the same cells."""
    if len(parts) == 1:
        return parts[0]
    of_features = ("U", "I", "influence", "chi2", "df", "design")
    both = {name: np.concatenate([getattr(s, name) for s in parts], -1) for name in of_features}
    sides = [np.broadcast_to(s.unbounded, s.df.shape) for s in parts]
    return replace(parts[0], **both, unbounded=np.concatenate(sides))


def own_intercepts(score, v, e, g, domain, weight):
    """Give every domain its own intercept.

    Otherwise, features whose means differ between domains as those of the label do would seem to
    have an effect.

    Parameters
    ----------
    score : ResidualScore
    v : array of shape (N, P)
        Residuals of the treatments.
    e, g : arrays of shape (N, F)
        Residuals of the outcome, and its predictions.
    domain : int array of shape (N,)
    weight : array of shape (N,)

    Returns
    -------
    v, e, g : arrays
        The log-odds of predicted labels are shifted so that the mean prediction in each domain is
        the mean of the label; v is centred in each domain.
    """
    v, e, g = v.copy(), e.copy(), g.copy()
    for d in np.unique(domain):
        rows = domain == d
        w = weight[rows]
        v[rows] -= weighted_mean(v[rows], w)
        if score.label:
            y, index = e[rows] + g[rows], log_odds(g[rows])
            for _ in range(INTERCEPT_STEPS):
                p = expit(index)
                spread = np.maximum(weighted_mean(p * (1 - p), w), 1e-3)
                step = weighted_mean(y - p, w) / spread
                index += np.clip(step, -2, 2)
            g[rows] = expit(index)
            e[rows] = y - g[rows]
        else:
            shift = weighted_mean(e[rows], w)
            e[rows] -= shift
            g[rows] += shift
    return v, e, g


def collect(
    score, v, e, g, *, Z, own, straight, tested, domain, fold, dof=0.0, weight=None, cluster=None
):
    """Sum the scores and the information of every feature over the folds of the domains.

    Parameters
    ----------
    score : ResidualScore
    v : array of shape (N, P)
        Residuals of every column, given the columns of all other features.
    e, g : arrays of shape (N, F)
        Residuals and predictions of the outcome, from models without the feature.
    Z : array of shape (N, P)
        The columns.
    own : int array of shape (P,)
        The feature of every column.
    straight, tested : bool arrays of shape (P,)
        The columns that define the effect of a feature, and the columns that are tested. Hinge
        functions are only tested, so that the effect of a number is the slope of a line.
    domain, fold : int arrays of shape (N,)
    dof : float
        Degrees of freedom of nuisances that were fitted on the same rows; otherwise 0.
    weight : array of shape (N,), optional
        With mean 1.
    cluster : int array of shape (N,), optional

    Returns
    -------
    evidence : Evidence

    Notes
    -----
    For a feature with several columns, such as the levels of a category, the effect is that of one
    standard deviation of the best-fitting sum of its columns. The test includes all columns.
    Columns of which the others leave less than the share :data:`~ddml_fs.score_tests.COLLINEAR` are
    not used. With weights that differ, or with clusters, variances and tests are robust (sandwich),
    because model-based ones do not hold.
    """
    weight = np.ones(len(v), v.dtype) if weight is None else weight.astype(v.dtype)
    robust = None
    if cluster is not None or varies(weight):
        robust = Robust(cluster, len(np.unique(domain)))
    if domain.max() > 0 and dof == 0:  # nuisances with dof have such intercepts already
        v, e, g = own_intercepts(score, v, e, g, domain, weight)
    N, F = len(v), e.shape[1]
    dispersion = np.broadcast_to(score.dispersion(e, weight), F)
    known = weighted_var(v, weight) > COLLINEAR * weighted_var(Z, weight)
    curve = np.zeros((N, F), dtype=v.dtype)
    chi2, df = np.zeros(F), np.zeros(F, dtype=int)
    variance = score.variance(g) * np.ones_like(e)
    order = np.argsort(own, kind="stable")
    bounds = np.searchsorted(own[order], np.arange(F + 1))
    several = np.arange(F)
    if robust is None:  # then features with one column are tested all at once
        alone = np.flatnonzero(np.diff(bounds) == 1)
        at = order[bounds[alone]]
        alone, at = alone[straight[at]], at[straight[at]]
        several = np.setdiff1d(several, alone)
        use = tested[at] & known[at]
        alone, at = alone[use], at[use]
        own_given = e[:, alone], variance[:, alone], dispersion[alone], weight
        chi2[alone], df[alone] = single_tests(v[:, at], *own_given)
        spread = np.sqrt(weighted_var(Z[:, at], weight))
        curve[:, alone] = v[:, at] / np.where(spread > 0, spread, 1.0).astype(v.dtype)
    for f in several:
        columns = order[bounds[f] : bounds[f + 1]]
        columns = columns[tested[columns] & known[columns]]
        if not len(columns):
            continue
        given = e[:, f], variance[:, f], dispersion[f], weight, robust
        _, chi2[f], df[f] = best_sum(v[:, columns], *given)
        line = columns[straight[columns]]
        b = np.ones(len(line))  # so that a single column keeps its sign
        if len(line) > 1:
            b = best_sum(v[:, line], *given)[0]
        curve[:, f] = v[:, line] @ (b / (np.sqrt(weighted_var(Z[:, line] @ b, weight)) or 1.0))
    moments = score.of_residuals(curve, e, g, dispersion, weight)
    cells = np.unique(np.column_stack([domain, fold]), axis=0)
    member = (domain == cells[:, :1]) & (fold == cells[:, 1:])  # (cells, N)
    # Residuals are too small because of the degrees of freedom, and so are the weights of labels,
    # which come from the same fit.
    kept = max(1 - dof / N, 0.1) ** (2 if score.label else 1)
    U, I = (
        np.stack([a[rows].sum(0, dtype=np.float64) for rows in member])
        for a in (column(weight, e) * moments.psi_b / dispersion, moments.information)
    )
    in_domain = cells[:, 0] == np.unique(domain)[:, None]
    design = design_effects(moments, in_domain @ U, in_domain @ I, domain, robust)
    U, I = kept / design * U, kept / design * I
    influence = moments.influence.astype(np.float32)
    unbounded = np.zeros(F, dtype=int)
    if score.label:
        lines, size = own[straight], np.bincount(own[straight], minlength=F)
        unbounded[lines] = separation(Z[:, straight], np.round(e[:, 0] + g[:, 0]))
        unbounded[size > 1] = 0  # the effect is that of a sum of columns
    of_features = influence, kept * chi2, df, design, unbounded
    return Evidence(U, I, cells[:, 0], cells[:, 1], *of_features)
