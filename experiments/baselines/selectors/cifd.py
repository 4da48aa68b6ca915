"""CIFD: average causal effects of the features found next to the label by G² tests."""

from itertools import combinations

import numpy as np

from experiments.baselines.selectors.base import ScoreSelector
from experiments.baselines.selectors.independence import (
    binarise,
    g2_test,
    is_testable,
    strata,
    surprise,
)


class CIFD(ScoreSelector):
    """Causally invariant feature discovery: local structure first, then backdoor adjustment.

    The neighbours of y (its parents and children) are learned by G² tests, then the neighbours of
    each of them in the same way; an edge to y stands when both sides found it. The score of such a
    feature is |ACE| of switching it on, adjusted for all its neighbours but y: by strata while
    these are well filled (strata without both arms are left out), else by a linear coefficient.

    Features without an edge to y rank below: first those found from one side only, then the rest,
    both by their least dependence on y over all tests made. No edge is given a direction, so
    children of a feature are adjusted for too and y's children are not told from its parents.

    Left open and chosen by cross-validation within one domain (books): an adjusted effect for all
    features, or for the neighbours' neighbours too, was worse, as rare words get large effects by
    chance; adjusting only for parents found by v-structures made no difference.

    Parameters
    ----------
    n_features_to_select : int, default=50
        K.
    alpha : float, default=0.05
        Level of the tests.
    max_given : int, default=2
        Largest number of features that a test conditions on.
    min_count : int, default=5
        Samples a cell that a test, or strata, need on average; a test without them is not made.
    """

    def __init__(self, n_features_to_select=50, alpha=0.05, max_given=2, min_count=5):
        super().__init__(n_features_to_select)
        self.alpha = alpha
        self.max_given = max_given
        self.min_count = min_count

    def _score(self, X, y):
        data = np.column_stack([binarise(X), y.astype(np.float32)])
        target = X.shape[1]
        candidates, least = self._neighbours(data, target)
        scores = least[:target] / (1 + least.max())
        scores[candidates] += 1
        for j in candidates:
            around, _ = self._neighbours(data, j)
            if target in around:
                given = data[:, [i for i in around if i != target]]
                effect = adjusted_effect(data[:, j], y, given, self.min_count)
                scores[j] = 2 + abs(effect)
        return scores

    def _neighbours(self, data, target):
        """Columns that no tested set makes independent of column `target`.

        The column whose least dependence (-log p) so far is largest enters next, and everything
        still dependent is tested given the sets that the newcomer makes possible.

        Returns
        -------
        members : list of int
        least : array of shape (n_columns,)
        """
        threshold = -np.log(self.alpha)
        # Empty strata are counted too: looking for them would cost as much as the test.
        most_given = int(np.log2(max(len(data) / (4 * self.min_count), 1)))
        least = surprise(*g2_test(data, data[:, target], data[:, :0]))
        least[target] = 0
        members = []
        while True:
            waiting = np.where(np.isin(np.arange(len(least)), members), 0, least)
            newcomer = int(waiting.argmax())
            if waiting[newcomer] <= threshold:
                return members, least
            for size in range(min(self.max_given, most_given)):
                for others in combinations(members, size):
                    given = [newcomer, *others]
                    alive = np.setdiff1d(np.flatnonzero(least > threshold), given)
                    tested = g2_test(data[:, alive], data[:, target], data[:, given])
                    least[alive] = np.minimum(least[alive], surprise(*tested))
            members = [j for j in [*members, newcomer] if least[j] > threshold]


def adjusted_effect(treatment, y, given, min_count):
    """Mean difference of y between treatment 1 and 0, adjusted for the columns of `given`.

    Parameters
    ----------
    treatment, y : arrays of shape (N,)
        0/1.
    given : array of shape (N, S)
        0/1; by strata when these hold `min_count` samples a cell, else linear.
    """
    if not is_testable(given, min_count):
        design = np.column_stack([treatment, np.ones(len(y)), given])
        return np.linalg.lstsq(design, y, rcond=None)[0][0]
    index, n_strata = strata(given)
    n1, n0 = (np.bincount(index, arm, n_strata) for arm in (treatment, 1 - treatment))
    y1, y0 = (np.bincount(index, y * arm, n_strata) for arm in (treatment, 1 - treatment))
    both = (n1 > 0) & (n0 > 0)
    if not both.any():
        return 0.0
    return np.average((y1[both] / n1[both]) - (y0[both] / n0[both]), weights=(n1 + n0)[both])
