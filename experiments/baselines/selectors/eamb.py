"""EAMB: the Markov blanket of the label by G² tests, with a second look at what they rejected."""

from itertools import combinations

import numpy as np

from experiments.baselines.selectors.base import ScoreSelector
from experiments.baselines.selectors.independence import binarise, g2_test, is_testable, surprise


class EAMB(ScoreSelector):
    """Error-aware Markov blanket (after Guo et al., 2022).

    The blanket grows by the feature most dependent on y given the members so far, and after each
    step loses the members that became independent of y given the others. Tests err, so the best of
    the features left over are looked at from their own side: one whose own blanket holds y joins.

    A blanket is a set and the comparison needs a ranking: members by their dependence on y given
    the other members, then those that joined, then the rest, the last two by their least
    dependence on y given at most two members. Dependence is -log p of the test. A feature is added
    only while the test is testable (`min_count`), removed only by a testable one; on 2000 reviews
    this ends the blanket at about ten words.

    Left open by the description and chosen by cross-validation within one domain (books): the
    order of the leftovers (the marginal test and the test given all members were a little worse),
    `share` and `min_count`. All were close.

    Parameters
    ----------
    n_features_to_select : int, default=50
        K.
    share : float, default=0.25
        Share of the leftovers that get a second look, best first.
    alpha : float, default=0.05
        Level of the tests.
    min_count : int, default=5
        Samples a cell that a test needs on average.
    """

    def __init__(self, n_features_to_select=50, share=0.25, alpha=0.05, min_count=5):
        super().__init__(n_features_to_select)
        self.share = share
        self.alpha = alpha
        self.min_count = min_count

    def _score(self, X, y):
        data = np.column_stack([binarise(X), y.astype(np.float32)])
        target = X.shape[1]
        members = self._blanket(data, target)
        inside = [_dependence(data, target, _without(members, j), [j])[0] for j in members]
        given_few = [s for size in range(3) for s in combinations(members, size)]
        # Given a member itself its dependence is 0, but members are scored by `inside`.
        outside = np.min([_dependence(data, target, s)[:target] for s in given_few], axis=0)

        order = [j for j in np.argsort(-outside, kind="stable") if j not in members]
        second_look = order[: int(self.share * len(order))]
        joined = [j for j in second_look if outside[j] > 0 and target in self._blanket(data, j)]

        scores = _below_one(outside)
        scores[joined] += 1
        scores[members] = 2 + _below_one(np.array(inside))
        return scores

    def _blanket(self, data, target):
        """Indices of the Markov blanket of column `target`, by growing and shrinking in turn."""
        members, seen = [], set()
        # A set met before would be left by the same steps: errors of the tests can make a circle.
        while frozenset(members) not in seen and is_testable(data[:, members], self.min_count):
            seen.add(frozenset(members))
            dependence = _dependence(data, target, members)
            dependence[target] = 0
            best = int(dependence.argmax())
            if not self._significant(dependence[best]):
                break
            members.append(best)
            for j in members[:-1]:
                rest = _without(members, j)
                if is_testable(data[:, rest], self.min_count) and not self._significant(
                    _dependence(data, target, rest, [j])[0]
                ):
                    members = rest
        return members

    def _significant(self, dependence):
        return dependence > -np.log(self.alpha)


def _dependence(data, target, given, columns=slice(None)):
    """-log p of every one of `columns` against column `target` given the columns `given`."""
    return surprise(*g2_test(data[:, columns], data[:, target], data[:, list(given)]))


def _without(members, j):
    return [i for i in members if i != j]


def _below_one(values):
    """The same order within [0, 1)."""
    return values / (1 + values.max(initial=0))
