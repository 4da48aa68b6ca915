"""The start of networks with shrinkage: ridge nuisances, fitted once per fold."""

from copy import copy
from weakref import WeakValueDictionary

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
        self.held: WeakValueDictionary = WeakValueDictionary()  # what is kept here or in a copy

    def for_thread(self):
        """What a further thread uses: it keeps its own fold, and need not fit what others keep."""
        return copy(self)

    def fit(self, k):
        """The ridge regressions of fold k."""
        if self.last is None or self.last[0] != k:
            self.last = None  # free the memory first
            if (found := self.held.get(k)) is None:
                every = np.arange(len(self.plan.Y))
                found = WideFit(self.plan, k, self.shrinkage, every, self.sparse)
                self.held[k] = found
            self.last = k, found
        return self.last[1]

    def of(self, members):
        """The start of some problems.

        Parameters
        ----------
        members : int array of shape (P,)
            Numbers of the problems.

        Returns
        -------
        base : array of shape (2, P, N), in single precision
            For T and Y: log-odds of binary targets; of others, values minus the target's mean.
        """
        plan = self.plan
        fold, outcome, treatment = plan.problem(members)
        base = np.empty((2, len(members), len(plan.Y)), np.float32)
        for k in fold[np.sort(np.unique(fold, return_index=True)[1])]:
            problems = np.flatnonzero(fold == k)
            chosen, at = np.unique(treatment[problems], return_inverse=True)
            found = self.fit(k).treatments(chosen)
            binary, mean, m = plan.binary_T[chosen], found.mean[:, None], found.m.T
            shift = np.where(binary, 0.0, found.mean - plan.T[:, chosen].mean(0, dtype=np.float64))
            level = found.level - np.where(plan.binary_Y, 0.0, plan.Y.mean(0, dtype=np.float64))
            m[binary] = log_odds_of(m[binary] + mean[binary], mean[binary])
            base[0, problems] = m[at] + shift[at, None]
            for c in np.unique(outcome[problems]):
                own = outcome[problems] == c
                base[1, problems[own]] = found.g[c].T[at[own]] + level[c]
        return base


def log_odds_of(probability, share):
    """Log-odds of linear models of probabilities (F, N), which can leave [0, 1].

    They are clipped, depending on the shares of ones (F, 1).
    """
    share = np.clip(share, CLIP, 1 - CLIP)
    return logit(np.clip(probability, share / 5, 1 - (1 - share) / 5))
