"""Score tests of several columns at once, and variances that are robust."""

from dataclasses import dataclass

import numpy as np

from ddml_fs.inference import cluster_sums
from ddml_fs.weights import column

TINY = 1e-12
COLLINEAR = 0.01  # a column is collinear if the others leave a smaller share of its variance


@dataclass(frozen=True, eq=False)
class Robust:
    """Variances of sums over rows, which may depend on each other within clusters.

    Attributes
    ----------
    cluster : int array of shape (N,), or None
        None: all rows are independent.
    n_domains : int
        Each has its own effects, which take as many degrees of freedom.
    """

    cluster: np.ndarray | None
    n_domains: int

    def parts(self, scores):
        """Scores (N, F) as independent parts (G, F), scaled for the degrees of freedom."""
        if self.cluster is None:
            return scores
        G = self.cluster.max() + 1
        return cluster_sums(self.cluster, scores) * np.sqrt(G / (G - self.n_domains))

    def covariance(self, scores):
        """Covariance (k, k) of the sums of scores (N, k)."""
        parts = self.parts(scores)
        return parts.T @ parts

    def variance(self, scores):
        """Variances (F,) of the sums of scores (N, F)."""
        return (self.parts(scores).astype(np.float64) ** 2).sum(0)


def best_sum(V, e, variance, dispersion, weight, robust=None):
    """The sum of columns that explains e best, and the score test of no effect.

    Parameters
    ----------
    V : array of shape (N, k)
    e, variance, weight : arrays of shape (N,)
        Residuals of the outcome, their variances in the score's model, and weights of the rows.
    dispersion : float
    robust : Robust, optional
        By default, the test is model-based.

    Returns
    -------
    b : array of shape (k,)
    chi2 : float
    df : int
        Degrees of freedom: the number of columns, without collinear ones.
    """
    V = V.astype(np.float64)
    M, U = (V * (weight * variance)[:, None]).T @ V, V.T @ (weight * e)
    scale = np.sqrt(np.where(np.diag(M) > 0, np.diag(M), 1.0))
    values, vectors = np.linalg.eigh(M / scale[:, None] / scale)
    values, vectors = values[values > COLLINEAR], vectors[:, values > COLLINEAR]
    part = vectors.T @ (U / scale)
    b = vectors @ (part / values) / scale
    if robust is None:
        return b, (part**2 / values).sum() / dispersion, len(values)
    found = robust.covariance((V * (weight * e)[:, None]) @ (vectors / scale[:, None]))
    values, vectors = np.linalg.eigh(found)
    known = values > TINY * max(values.max(initial=0.0), TINY)  # at most as many as clusters
    return b, ((vectors[:, known].T @ part) ** 2 / values[known]).sum(), int(known.sum())


def single_tests(V, e, variance, dispersion, weight):
    """The score tests of :func:`best_sum` for many features with one column each.

    Parameters
    ----------
    V, e, variance : arrays of shape (N, F)
    dispersion : array of shape (F,)
    weight : array of shape (N,)

    Returns
    -------
    chi2 : array of shape (F,)
    df : int array of shape (F,)
        1, or 0 for a column without variation.
    """
    V = V.astype(np.float64)
    U = np.einsum("nf,nf,n->f", V, e, weight, optimize=False)
    M = np.einsum("nf,nf,nf,n->f", V, V, variance, weight, optimize=False)
    known = M > 0
    chi2 = np.divide(U**2, M * dispersion, out=np.zeros(len(M)), where=known)
    return chi2, known.astype(int)


def design_effects(moments, U, I, domain, robust=None):
    """Robust over model-based variance of each effect, (F,).

    The scores are those at the effect of each domain. One ratio holds for all domains, as a domain
    may have few clusters.

    Parameters
    ----------
    moments : Moments
    U, I : arrays of shape (domains, F)
        Sums of scores and information over the rows of each domain.
    domain : int array of shape (N,)
    robust : Robust, optional
        By default, the ratios are 1.
    """
    if robust is None:
        return np.ones(I.shape[1])
    theta = np.divide(U, I, out=np.zeros_like(U), where=I > TINY)
    theta = theta[np.unique(domain, return_inverse=True)[1]]
    scores = column(moments.weight, theta) * (moments.psi_a * theta + moments.psi_b)
    total, found = I.sum(0), robust.variance(scores / moments.dispersion)
    return np.where((total > TINY) & (found > TINY), found / np.maximum(total, TINY), 1.0)
