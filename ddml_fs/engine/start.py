"""The start of networks with shrinkage: ridge nuisances, fitted once per fold."""

import numpy as np
from scipy.special import logit

from ddml_fs.engine.wide_ridge import WideFit
from ddml_fs.engine.wide_rows import sparse_of

CLIP = 1e-3  # of the share of a binary treatment


class RidgeStart:
    """Ridge nuisances of all rows, for shards that come fold by fold.

    They are fitted on all training rows. These include the validation rows, which is safe, because
    validation only compares epochs, and all epochs have the same start.

    Parameters
    ----------
    plan : Plan
    shrinkage : float
    """

    def __init__(self, plan, shrinkage):
        self.plan, self.shrinkage = plan, shrinkage
        self.sparse = sparse_of(plan.X)
        self.last = None  # number of a fold, and its fit: only one is kept

    def fit(self, k):
        """The ridge regressions of fold k."""
        if self.last is None or self.last[0] != k:
            self.last = None  # free the memory first
            every = np.arange(len(self.plan.Y))
            self.last = k, WideFit(self.plan, k, self.shrinkage, every, self.sparse)
        return self.last[1]

    def of(self, members):
        """The start of some problems.

        Parameters
        ----------
        members : int array of shape (P,)
            Numbers of the problems.

        Returns
        -------
        base : array of shape (P, N, 2), in single precision
            For T and Y: log-odds of binary targets; of others, values minus the target's mean.
        """
        plan = self.plan
        fold, outcome, treatment = plan.problem(members)
        base = np.empty((len(members), len(plan.Y), 2), np.float32)
        for k in fold[np.sort(np.unique(fold, return_index=True)[1])]:
            problems = np.flatnonzero(fold == k)
            chosen, at = np.unique(treatment[problems], return_inverse=True)
            found = self.fit(k).treatments(chosen)
            shift = found.mean - plan.T[:, chosen].mean(0, dtype=np.float64)
            level = found.level - np.where(plan.binary_Y, 0.0, plan.Y.mean(0, dtype=np.float64))
            for f in np.flatnonzero(plan.binary_T[chosen]):
                found.m[:, f] = log_odds_of(found.m[:, f] + found.mean[f], found.mean[f])
                shift[f] = 0.0
            for i, f in zip(problems, at, strict=True):
                c = outcome[i]
                base[i, :, 0] = found.m[:, f] + shift[f]
                base[i, :, 1] = found.g[c][:, f] + level[c]
        return base


def log_odds_of(probability, share):
    """Log-odds of a linear model of a probability (N,), which can leave [0, 1].

    It is clipped, depending on the share of ones.
    """
    share = np.clip(share, CLIP, 1 - CLIP)
    return logit(np.clip(probability, share / 5, 1 - (1 - share) / 5))
