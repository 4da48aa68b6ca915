"""CFR: outcome heads on a representation in which the arms look alike."""

from dataclasses import dataclass

from torch import nn
from torch.nn.functional import normalize

from experiments.baselines.effects.network import (
    Layers,
    NetworkEstimator,
    factual,
    heads,
    mmd,
    wasserstein,
)

DISTANCES = {"mmd": mmd, "wasserstein": wasserstein}


@dataclass(eq=False, repr=False)
class CFR(NetworkEstimator):
    """Counterfactual regression (Shalit et al., 2017), rebuilt from its description.

    A shared representation z of unit length, one outcome head for each arm; the loss is the
    factual error, either arm counting half, plus α times the distance of the arms' z in the batch.

    Parameters
    ----------
    target : {"ate", "att"}, default="ate"
    distance : {"wasserstein", "mmd"}, default="wasserstein"
        Entropic Wasserstein distance, or MMD² under an RBF kernel.
    alpha : float, default=0.03
        Weight of the distance.
    hidden, epochs, learning_rate, weight_decay, batch_size, valid_share, random_state
        As in ``NetworkEstimator``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((400, 2))
    >>> t = (X[:, 0] + rng.standard_normal(400) > 0).astype(float)
    >>> y = 3 * t + X[:, 0]  # the difference of the arms' means is above 4
    >>> effect = CFR(epochs=20).fit(X, y, treatment=t).effect_
    >>> abs(effect - 3) < 0.3
    True
    """

    distance: str = "wasserstein"
    alpha: float = 0.03

    def _modules(self, R, D, generator):
        return two_heads(R, D, self.hidden, generator)

    def _loss(self, net, x, t, y):
        z = net["representation"](x)
        distance = DISTANCES[self.distance](z[:, t == 1], z[:, t == 0])
        return factual(heads(net, z), t, y) + self.alpha * distance

    def _outcomes(self, net, x):
        return heads(net, net["representation"](x))


def two_heads(R, D, hidden, generator):
    """R representations of unit length, each with one outcome head for either arm."""
    return nn.ModuleDict(
        {
            "representation": Layers(R, (D, hidden, hidden, hidden), generator, unit_length),
            "control": Layers(R, (hidden, hidden, 1), generator),
            "treated": Layers(R, (hidden, hidden, 1), generator),
        }
    )


def unit_length(z):
    """z (R, B, Z) on the unit sphere: no distance is made small by shrinking z."""
    return normalize(z, dim=-1)
