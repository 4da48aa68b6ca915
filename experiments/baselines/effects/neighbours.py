"""KNN: nearest neighbours in the other arm."""

import numpy as np
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from experiments.baselines.effects.base import EffectEstimator, require_binary


class KNN(EffectEstimator):
    """The outcome not seen is the mean of the nearest neighbours in the other arm.

    Distances are Euclidean, on covariates of unit variance. The treatment must be binary.

    Parameters
    ----------
    target : {"ate", "att"}, default="ate"
    random_state : int, default=0
        Unused: nothing is drawn.
    n_neighbors : int, default=5

    Examples
    --------
    >>> import numpy as np
    >>> x, t = np.array([[0.0], [0.1], [9.0], [9.1]]), np.array([0, 1, 0, 1.0])
    >>> KNN(n_neighbors=1).fit(x, np.array([1, 3, 5, 7.0]), treatment=t).effect_
    2.0
    """

    def __init__(self, target="ate", random_state=0, n_neighbors=5):
        super().__init__(target, random_state)
        self.n_neighbors = n_neighbors

    def _fit(self, X, y, t):
        require_binary(t, "KNN")
        x = StandardScaler().fit_transform(X)
        effects = np.empty(len(y))
        for arm, sign in ((0, -1), (1, 1)):
            own, other = t == arm, t != arm
            nearest = NearestNeighbors(n_neighbors=self.n_neighbors).fit(x[other])
            matches = nearest.kneighbors(x[own], return_distance=False)  # (n, n_neighbors)
            effects[own] = sign * (y[own] - y[other][matches].mean(1))
        self.effect_ = self.average(effects, t)
