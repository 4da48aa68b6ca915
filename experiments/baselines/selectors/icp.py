"""Invariant causal prediction: which columns the invariant sets have in common."""

import causalicp
import numpy as np

from experiments.baselines.selectors.domains import DomainSelector
from experiments.baselines.selectors.scikit import L1Logistic

COLLINEAR = 1e-6  # of a column's norm: what is left of it beside others, if it repeats them
LEVELS = 0.05**2.0 ** np.arange(6)  # down to 2e-42


class InvariantPrediction(DomainSelector):
    """How many of the invariant sets hold a column (``causalicp``).

    A set is invariant if the residuals of a linear regression of the label on it have the same mean
    and variance in all domains (Peters, Bühlmann and Meinshausen, 2016). There are 2^D sets, so
    only the first columns of an L1 path are candidates; all others follow in the path's order,
    which also settles ties.

    The published method returns what all accepted sets have in common, mostly nothing. The number
    of accepted sets that hold a column is the ranking nearest to that. With thousands of rows every
    set is rejected at 5 %: then the level falls, by squaring it, until one set is accepted. If
    that does not help, and with one domain, where nothing can vary, the order is the path's.

    Parameters
    ----------
    n_features_to_select : int, default=50
    n_candidates : int, default=8
        Each one more doubles the time.

    Attributes
    ----------
    candidates_ : list of int
    n_accepted_ : int
        Sets that were accepted; 0 if ICP had nothing to say.
    """

    def __init__(self, n_features_to_select=50, n_candidates=8):
        super().__init__(n_features_to_select)
        self.n_candidates = n_candidates

    def _score(self, X, y):
        order = L1Logistic().fit(X, y).order()
        self.candidates_ = _independent(X, order, self.n_candidates)
        counts = self._accepted_sets_with_each(X[:, self.candidates_], y)
        scores = np.zeros(X.shape[1])
        scores[order] = -np.arange(len(order)) / len(order)  # the path's, within (-1, 0]
        scores[self.candidates_] += 1 + counts
        return scores

    def _accepted_sets_with_each(self, X, y):
        """Number of sets that hold a column, at the first level that accepts any, (D,)."""
        self.n_accepted_ = 0
        data = np.column_stack([X, y])
        domains = [data[self._domain == d] for d in np.unique(self._domain)]
        for level in LEVELS if len(domains) > 1 else ():
            accepted = causalicp.fit(domains, X.shape[1], alpha=float(level)).accepted_sets
            if accepted:
                self.n_accepted_ = len(accepted)
                return np.sum([[j in s for j in range(X.shape[1])] for s in accepted], axis=0)
        return np.zeros(X.shape[1])


def _independent(X, order, n):
    """The first n columns in an order that are no linear combination of those before."""
    chosen, basis = [], np.ones((len(X), 1)) / np.sqrt(len(X))
    for j in order:
        rest = X[:, j] - basis @ (basis.T @ X[:, j])
        if len(chosen) < n and np.linalg.norm(rest) > COLLINEAR * np.linalg.norm(X[:, j]):
            chosen.append(int(j))
            basis = np.column_stack([basis, rest / np.linalg.norm(rest)])
    return chosen
