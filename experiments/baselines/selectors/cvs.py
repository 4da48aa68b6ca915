"""CVS: one conditional independence test a feature, against a seed that is taken as a cause."""

import numpy as np

from experiments.baselines.selectors.base import ScoreSelector
from experiments.baselines.selectors.independence import binarise, g2_test, surprise


class CVS(ScoreSelector):
    """Causal variable separation with a seed variable (after Kuang et al., 2020).

    Two causes of y become dependent given y, their common effect; a feature that is unrelated to
    the causes stays independent of them. So each feature is tested by G² against a seed known to
    be a cause, given y, and -log p is its score.

    Rebuilt from the abstract alone. Prior knowledge names the seed there; without it the seed is
    the feature most dependent on y, which may as well be a consequence of y, and then the test is
    blind to the causes. Seeds rank first. Words of a topic depend on each other whatever y is,
    which the test cannot tell from the dependence that y brings. By cross-validation within one
    domain (books) the test alone ranks much worse than with the feature's own dependence on y, so
    -log p of both tests are added (Fisher's way of joining tests); the gain of the conditional
    test over the marginal one, products, minima and ranks were worse, more seeds no better.

    Parameters
    ----------
    n_features_to_select : int, default=50
        K.
    seeds : sequence of int or None, default=None
        Features known to be causes; the test is averaged over them. None takes the `n_seeds` most
        dependent on y.
    n_seeds : int, default=1
        How many to take when `seeds` is None.
    use_label : bool, default=True
        Whether to add the feature's own dependence on y; False is the test against the seed alone.
    """

    def __init__(self, n_features_to_select=50, seeds=None, n_seeds=1, use_label=True):
        super().__init__(n_features_to_select)
        self.seeds = seeds
        self.n_seeds = n_seeds
        self.use_label = use_label

    def _score(self, X, y):
        X = binarise(X)
        on_label = surprise(*g2_test(X, y, X[:, :0]))
        seeds = self.seeds
        if seeds is None:
            seeds = np.argsort(-on_label, kind="stable")[: self.n_seeds]
        scores = np.mean([surprise(*g2_test(X, X[:, s], y[:, None])) for s in seeds], axis=0)
        if self.use_label:
            scores += on_label
        scores[list(seeds)] = 1 + scores.max() + on_label[list(seeds)]
        return scores
