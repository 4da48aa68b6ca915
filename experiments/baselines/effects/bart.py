"""BART: Bayesian additive regression trees, by stochtree."""

import numpy as np
from stochtree import BARTModel

from experiments.baselines.effects.base import EffectEstimator, is_binary


class BART(EffectEstimator):
    """Sums of trees on X and the treatment; the effect is the mean difference f(x, 1) − f(x, 0).

    For a continuous treatment it is the mean slope between t − h and t + h, where h is half of
    the treatment's standard deviation: trees are steps, and have no derivative.

    Parameters
    ----------
    target : {"ate", "att"}, default="ate"
    random_state : int, default=0
        Seed of the sampler.
    n_warm : int, default=5
        Greedy sweeps that grow the trees the chain begins with.
    n_burn : int, default=100
        Steps of the chain that are dropped.
    n_draws : int, default=100
        Steps that are kept.

    Attributes
    ----------
    draws_ : array of shape (n_draws,)
        The effect in each draw from the posterior.
    """

    def __init__(self, target="ate", random_state=0, n_warm=5, n_burn=100, n_draws=100):
        super().__init__(target, random_state)
        self.n_warm = n_warm
        self.n_burn = n_burn
        self.n_draws = n_draws

    def _fit(self, X, y, t):
        model = BARTModel()
        model.sample(
            X_train=np.column_stack([X, t]),
            y_train=y,
            num_gfr=self.n_warm,
            num_burnin=self.n_burn,
            num_mcmc=self.n_draws,
            general_params={"random_seed": self.random_state, "num_threads": 1},
        )
        h = t.std() / 2
        low, high = (0 * t, 0 * t + 1) if is_binary(t) else (t - h, t + h)
        f0, f1 = (
            model.predict(np.column_stack([X, level]), terms="y_hat") for level in (low, high)
        )  # (N, n_draws)
        self.draws_ = self.average((f1 - f0) / (high - low)[:, None], t)
        self.effect_, self.stderr_ = float(self.draws_.mean()), float(self.draws_.std())

    def conf_int(self, level=0.95):
        """Quantiles of the posterior."""
        low, high = np.quantile(self.draws_, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)
