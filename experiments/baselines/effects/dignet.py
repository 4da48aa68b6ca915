"""DIGNet: two patterns of balancing, learned apart, next to what they start from."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, elu, normalize

from experiments.baselines.effects.network import (
    Layers,
    NetworkEstimator,
    arm_mean,
    factual,
    heads,
    wasserstein,
)


@dataclass(eq=False, repr=False)
class DIGNet(NetworkEstimator):
    """Individual propensity confusion and group distance, decomposed (Huang et al., 2024).

    A representation E of X is learned from the outcomes alone. Two more are made from it: G, whose
    Wasserstein distance between the arms is small, and P, from which a propensity head cannot tell
    the arm: the head learns to, P learns to confuse it. The outcome heads, one per arm, see E, G
    and P together, and balancing never reaches E, so that it cannot wash out what predicts the
    outcome. Rebuilt from the paper's description; its separate steps of minimising and maximising
    are one step here, with the gradient reversed between P and the propensity head.

    Parameters
    ----------
    target : {"ate", "att"}, default="ate"
    alpha_group : float, default=0.1
        Weight of the arms' distance in G.
    alpha_propensity : float, default=0.1
        Weight of the confusion in P.
    hidden, epochs, learning_rate, weight_decay, batch_size, valid_share, random_state
        As in ``NetworkEstimator``; the three representations have ``hidden`` units each.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((400, 2))
    >>> t = (X[:, 0] + rng.standard_normal(400) > 0).astype(float)
    >>> y = 3 * t + X[:, 0]  # the difference of the arms' means is above 4
    >>> effect = DIGNet(epochs=20).fit(X, y, treatment=t).effect_
    >>> abs(effect - 3) < 0.3
    True
    """

    alpha_group: float = 0.1
    alpha_propensity: float = 0.1

    def _modules(self, R, D, generator):
        H = self.hidden
        return nn.ModuleDict(
            {
                "E": Layers(R, [D, H, H], generator, elu),
                # Of unit length: no distance is made small by shrinking G.
                "G": Layers(R, [H, H], generator, partial(normalize, dim=-1)),
                "P": Layers(R, [H, H], generator, elu),
                "propensity": Layers(R, [H, H, 1], generator),
                "control": Layers(R, [3 * H, H, 1], generator),
                "treated": Layers(R, [3 * H, H, 1], generator),
            }
        )

    def _outcomes(self, net, x):
        return self._of_three(net, net["E"](x))

    def _of_three(self, net, E):
        """Outcomes (2, R, B) from E, and from G and P that are made of it."""
        return heads(net, torch.cat([E, net["G"](E), net["P"](E)], -1))

    def _loss(self, net, x, t, y):
        E = net["E"](x)
        fixed = E.detach()  # balancing shapes G and P, not what they start from
        G = net["G"](fixed)
        P = Reverse.apply(net["P"](fixed), self.alpha_propensity)
        return (
            factual(self._of_three(net, E), t, y)
            + self.alpha_group * wasserstein(G[:, t == 1], G[:, t == 0])
            + propensity_loss(net["propensity"](P)[..., 0], t)
        )


class Reverse(torch.autograd.Function):
    """Passes values on; backwards, gradients change sign and are multiplied by a strength."""

    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.strength * gradient, None


def propensity_loss(logits, t):
    """Cross-entropy of treatments t (B,) under logits (R, B), either arm counting half; (R,)."""
    loss = binary_cross_entropy_with_logits(logits, t.expand_as(logits), reduction="none")
    return arm_mean(loss, t)
