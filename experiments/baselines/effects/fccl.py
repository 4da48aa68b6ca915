"""FCCL: every unit is aligned with a counterfactual that a normalising flow makes."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import log_softmax, normalize

from experiments.baselines.effects.network import Layers, NetworkEstimator, factual, heads


@dataclass(eq=False, repr=False)
class FCCL(NetworkEstimator):
    """Counterfactual contrastive learning with normalising flows.

    A flow that knows the arm takes a unit's representation to the base distribution, and back
    under the other arm: the unit's counterfactual. A contrastive loss pulls the unit towards it,
    against the other units' counterfactuals; outcomes are fitted with one head per arm::

        factual error + γ · InfoNCE(units, counterfactuals) - log-likelihood of the flow per unit

    Known from its abstract only: that a flow makes counterfactuals which stay like their units,
    and that a contrastive loss aligns the two, unit by unit. Filled in here: affine coupling, the
    flow on the learned representation (not on X, which is discrete in part and may be wide), fixed
    counterfactuals as targets, cosine similarity. The abstract also names a consistency of
    categories, without saying how; it is left out.

    Parameters
    ----------
    target : {"ate", "att"}, default="ate"
    gamma : float, default=0.1
        Weight of the contrastive loss.
    temperature : float, default=0.5
        Of the cosine similarities.
    n_couplings : int, default=4
        Layers of the flow.
    hidden, epochs, learning_rate, weight_decay, batch_size, valid_share, random_state
        As in ``NetworkEstimator``; the representation has ``hidden`` units.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((400, 2))
    >>> t = (X[:, 0] + rng.standard_normal(400) > 0).astype(float)
    >>> y = 3 * t + X[:, 0]  # the difference of the arms' means is above 4
    >>> effect = FCCL(epochs=20).fit(X, y, treatment=t).effect_
    >>> abs(effect - 3) < 0.3
    True
    """

    gamma: float = 0.1
    temperature: float = 0.5
    n_couplings: int = 4

    def _modules(self, R, D, generator):
        H = self.hidden
        return nn.ModuleDict(
            {
                "z": Layers(R, [D, H, H, H], generator),
                "flow": Flow(R, H, H, self.n_couplings, generator),
                "control": Layers(R, [H, H, 1], generator),
                "treated": Layers(R, [H, H, 1], generator),
            }
        )

    def _outcomes(self, net, x):
        return heads(net, net["z"](x))

    def _loss(self, net, x, t, y):
        z = net["z"](x)
        # The flow describes the representation and must not shape it: a constant one is likeliest.
        base, log_det = net["flow"](z.detach(), t)
        with torch.no_grad():
            counterfactual = net["flow"].inverse(base, 1 - t)
        return (
            factual(heads(net, z), t, y)
            + self.gamma * info_nce(z, counterfactual, self.temperature)
            + negative_log_likelihood(base, log_det)
        )


class Flow(nn.Module):
    """R flows of affine coupling layers, conditional on the arm.

    Each layer leaves the first half a of its input, and moves the rest to b·exp(tanh s) + m with
    s, m from (a, arm); then the halves change places. The bounded scales keep it from blowing up.

    Parameters
    ----------
    R : int
        Flows.
    Z : int
        Dimension.
    hidden : int
        Units in the networks of s and m.
    n_couplings : int
    generator : torch.Generator
    """

    def __init__(self, R, Z, hidden, n_couplings, generator):
        super().__init__()
        kept = [Z // 2, Z - Z // 2]
        self.couplings = nn.ModuleList(
            Layers(R, [kept[i % 2] + 1, hidden, 2 * (Z - kept[i % 2])], generator)
            for i in range(n_couplings)
        )

    def forward(self, z, t):
        """Base values (R, B, Z) and log-determinants (R, B) of z (R, B, Z) in arms t (B,)."""
        arm = t[:, None].expand(*z.shape[:2], 1)
        log_det = 0
        for layers in self.couplings:
            k = layers.W[0].shape[1] - 1
            a, b = z[..., :k], z[..., k:]
            s, m = layers(torch.cat([a, arm], -1)).chunk(2, -1)
            s = torch.tanh(s)
            z = torch.cat([b * s.exp() + m, a], -1)
            log_det = log_det + s.sum(-1)
        return z, log_det

    def inverse(self, u, t):
        """Values (R, B, Z) whose base values in arms t (B,) are u (R, B, Z)."""
        arm = t[:, None].expand(*u.shape[:2], 1)
        for layers in reversed(self.couplings):
            k = layers.W[0].shape[1] - 1
            b, a = u[..., :-k], u[..., -k:]
            s, m = layers(torch.cat([a, arm], -1)).chunk(2, -1)
            u = torch.cat([a, (b - m) * torch.exp(-torch.tanh(s))], -1)
        return u


def negative_log_likelihood(base, log_det):
    """Of a standard normal base (R, B, Z), per dimension, without the constant; (R,)."""
    return (0.5 * (base**2).sum(-1) - log_det).mean(-1) / base.shape[-1]


def info_nce(z, positive, temperature):
    """Cross-entropy of finding a row's own positive among those of all rows; (R,).

    Parameters
    ----------
    z, positive : Tensors of shape (R, B, Z)
    temperature : float
    """
    similarity = normalize(z, dim=-1) @ normalize(positive, dim=-1).mT
    own = log_softmax(similarity / temperature, -1).diagonal(dim1=-2, dim2=-1)
    return -own.mean(-1)
