"""DeR-CFR: instruments, confounders and adjusters are represented apart."""

from dataclasses import dataclass
from itertools import combinations

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, elu

from experiments.baselines.effects.network import (
    Layers,
    NetworkEstimator,
    arm_mean,
    heads,
    seen,
    squared_distances,
)


@dataclass(eq=False, repr=False)
class DeRCFR(NetworkEstimator):
    """Decomposed representations for counterfactual regression (Wu et al., 2023).

    Three representations of X: instruments I move the treatment only, confounders C both, adjusters
    A the outcome only. Outcomes come from (C, A), one head per arm, under sample weights ω, and
    either arm counts half::

        Σ ω (y - ŷ)²/n + α [MMD²(A between arms) + error of Y from A and T]
                       + β [MMD²(I between arms, within outcome strata) + loss of T from I]
                       + μ (ī·c̄ + c̄·ā + ā·ī) + weight decay

    where ī, c̄, ā (D,) are the mean absolute input weights of the three, each summing to 1. In turn
    with this, ω is learned to balance C between the arms. Rebuilt from the paper's description; ω
    is here a network of C and T, on which weights that balance C depend, and not one free number
    per unit, and the strata are the outcomes above and below their mean.

    Parameters
    ----------
    target : {"ate", "att"}, default="ate"
    alpha : float, default=0.1
        Weight of what makes A an adjuster.
    beta : float, default=0.1
        Weight of what makes I an instrument.
    mu : float, default=1.0
        Weight of the orthogonality of the three.
    hidden, epochs, learning_rate, weight_decay, batch_size, valid_share, random_state
        As in ``NetworkEstimator``; the three representations have ``hidden`` units each.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((400, 2))
    >>> t = (X[:, 0] + rng.standard_normal(400) > 0).astype(float)
    >>> y = 3 * t + X[:, 0]  # the difference of the arms' means is above 4
    >>> effect = DeRCFR(epochs=20).fit(X, y, treatment=t).effect_
    >>> abs(effect - 3) < 0.3
    True
    """

    alpha: float = 0.1
    beta: float = 0.1
    mu: float = 1.0

    def _modules(self, R, D, generator):
        H = self.hidden
        return nn.ModuleDict(
            {name: Layers(R, [D, H, H], generator, elu) for name in "ICA"}
            | {arm: Layers(R, [2 * H, H, 1], generator) for arm in ("control", "treated")}
            | {
                "y_of_A": Layers(R, [H, H, 2], generator),  # an output per arm
                "t_of_I": Layers(R, [H, 1], generator),
                "omega": Layers(R, [H, H, 2], generator),  # an output per arm
            }
        )

    def _outcomes(self, net, x):
        return heads(net, torch.cat([net["C"](x), net["A"](x)], -1))

    def _loss(self, net, x, t, y):
        I, C, A = (net[name](x) for name in "ICA")
        omega = sample_weights(net["omega"], C, t)
        # One kernel call for all three. C is fixed here, and ω in the outcome loss: two steps in
        # turn, as each sees the other's last state.
        K_I, K_A, K_C = rbf_kernel(torch.cat([I, A, C.detach()])).chunk(3)
        strata = torch.stack([y > 0, y <= 0], 1).float()  # outcomes are centred
        distance_I = quadratic(K_I, contrast(strata, t)).sum(-1)
        distance_A = quadratic(K_A, contrast(torch.ones_like(t)[None, None], t)).sum(-1)
        distance_C = quadratic(K_C, contrast(omega[:, None], t)).sum(-1)

        outcome = arm_mean(
            omega.detach() * (y - seen(heads(net, torch.cat([C, A], -1)), t)) ** 2, t
        )
        from_A = arm_mean((y - seen(net["y_of_A"](A).movedim(-1, 0), t)) ** 2, t)
        logits = net["t_of_I"](I)[..., 0]
        from_I = binary_cross_entropy_with_logits(
            logits, t.expand_as(logits), reduction="none"
        ).mean(-1)
        return (
            outcome
            + self.alpha * (distance_A + from_A)
            + self.beta * (distance_I + from_I)
            + self.mu * orthogonality([net[name].W[0] for name in "ICA"])
            + distance_C
            + near_one(omega, t)
        )


def sample_weights(network, C, t):
    """Weights ω in (e⁻², e²) of rows with confounders C (R, B, Z) and treatments t (B,); (R, B)."""
    return torch.exp(2 * torch.tanh(seen(network(C.detach()).movedim(-1, 0), t)))


def near_one(omega, t):
    """Squared distance of either arm's mean weight from 1; (R,)."""
    return sum(((omega * a).sum(-1) / a.sum().clamp(min=1) - 1) ** 2 for a in (t, 1 - t))


def orthogonality(weights):
    """Sum of pairwise products of the mean absolute input weights, each summing to 1; (R,).

    Parameters
    ----------
    weights : list of Tensors of shape (R, D, H)
    """
    means = [W.abs().mean(-1) for W in weights]
    means = [a / a.sum(-1, keepdim=True) for a in means]
    return sum((a * b).sum(-1) for a, b in combinations(means, 2))


def rbf_kernel(z):
    """Of all pairs of rows (R, B, Z), as wide as the mean squared distance; (R, B, B)."""
    square = squared_distances(z, z)
    return torch.exp(-square / square.detach().mean((1, 2), keepdim=True).clamp(min=1e-6))


def contrast(weights, t):
    """Signed weights (R, S, B) of weights (R, S, B): each arm sums to ±1, 0 where one is missing.

    So that s K s' is the weighted MMD² of the arms.
    """
    sums = [(weights * a).sum(-1, keepdim=True) for a in (t, 1 - t)]
    present = (sums[0] > 0) & (sums[1] > 0)
    signed = weights * (t / sums[0].clamp(min=1e-6) - (1 - t) / sums[1].clamp(min=1e-6))
    return signed * present


def quadratic(K, s):
    """s K s' of kernels (R, B, B) and weights (R, S, B); (R, S)."""
    return (s @ K * s).sum(-1)
