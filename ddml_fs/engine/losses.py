"""The losses of Causal Role Disentanglement (CRD), each equation once.

All functions take whole stacks, (P, B), and return one loss per problem, (P,).
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, layer_norm

from ddml_fs.engine.draws import Draws
from ddml_fs.scores import DELTA

# --- CRD: supervision (Eq. 13) ---


def by_kind(binary: Tensor | bool, if_binary, otherwise):
    """Choose by the kind of target: one of two functions, or both if a stack is mixed.

    ``binary`` is (P, 1), or one bool for the whole stack, which needs no transfer from the device.
    """
    if isinstance(binary, bool):
        return if_binary() if binary else otherwise()
    return torch.where(binary, if_binary(), otherwise())


def to_mean(raw: Tensor, binary: Tensor | bool):
    """T_pre and Y_pre of Eq. 12: a probability for a binary target, else the value itself."""
    return by_kind(binary, lambda: torch.sigmoid(raw), lambda: raw)


def row_errors(raw: Tensor, target: Tensor, binary: Tensor | bool):
    """Cross-entropy of every row where the target is binary, else its squared error; (P, B)."""

    def entropy():
        # In a mixed stack, continuous targets are excluded: their cross-entropy is unbounded.
        bounded = target if isinstance(binary, bool) else torch.where(binary, target, 0.5)
        return binary_cross_entropy_with_logits(raw, bounded, reduction="none")

    return by_kind(binary, entropy, lambda: (target - raw) ** 2)


def half_log(mean_square: Tensor):
    """½ log MSE: the Gaussian likelihood with its variance profiled out.

    It has the same minimiser as the MSE of Eq. 13, and the losses of T and Y have equal weight
    whatever their scales.
    """
    return 0.5 * torch.log(mean_square + DELTA)


def target_loss(errors: Tensor, binary: Tensor | bool, weight=None):
    """ℓ_T or ℓ_Y of L_sup, Eq. 13, from the rows' errors (P, B); L_sup is the sum of the two."""
    mean = errors.mean(-1) if weight is None else (errors * weight).sum(-1) / weight.sum(-1)
    per_problem = binary if isinstance(binary, bool) else binary[:, 0]
    return by_kind(per_problem, lambda: mean, lambda: half_log(mean))


# --- CRD: disentanglement (Eq. 11) ---


def standardise(a: Tensor):
    """Rescale the last axis, the rows of a batch, to mean 0 and variance 1."""
    return layer_norm(a, a.shape[-1:], eps=DELTA)


def exact_hsic(Z_1: Tensor, Z_2: Tensor):
    """HSIC of two roles, each (P, B, Z), by its B × B kernels: the twin of ``hsic_loss``.

    Gaussian kernels with squared bandwidth Z, the expected squared distance of two standardised
    latents being 2Z.
    """

    def centred_kernel(Z):
        Z = standardise(Z.transpose(-1, -2)).transpose(-1, -2)
        K = torch.exp(-torch.cdist(Z, Z).square() / (2 * Z.shape[-1]))
        return K - K.mean(-1, keepdim=True) - K.mean(-2, keepdim=True) + K.mean((-1, -2), True)

    return (centred_kernel(Z_1) * centred_kernel(Z_2)).mean((-1, -2))


class CosineCovariances(torch.autograd.Function):
    """Sums (P,) of squared, weighted (M, M) covariances of the cosines of angles (P, M, B).

    The gradient is written out, which needs half of the operations that autograd would record.
    """

    @staticmethod
    def forward(ctx, angles, weights):
        """The sums."""
        centred = torch.cos(angles)
        centred -= centred.mean(-1, keepdim=True)
        covariance = (centred @ centred.mT).mul_(weights / angles.shape[-1])
        ctx.save_for_backward(angles, centred, covariance, weights)
        return covariance.square().sum((1, 2))

    @staticmethod
    def backward(ctx, slope):
        """The gradient by the angles, from that by the sums, (P,)."""
        angles, centred, covariance, weights = ctx.saved_tensors
        own = covariance * weights * (-2 / angles.shape[-1] * slope)[:, None, None]
        # Rows of the product have mean 0, as those of ``centred`` do.
        return ((own + own.mT) @ centred).mul_(torch.sin(angles)), None


class RandomFeatures:
    """Random Fourier features of the three roles' Gaussian kernels, drawn once per problem.

    Parameters
    ----------
    seeds : list of int
        One per problem.
    Z : int
        Latents of a role.
    n_features : int
        Features per role, m.
    like : Tensor
        Gives device and dtype.
    """

    def __init__(self, seeds, Z, n_features, like):
        draws = Draws(seeds)
        blocks, phase = draws.normal(3, Z, n_features), draws.uniform(3 * n_features, 1)
        omega = torch.zeros(len(seeds), 3, n_features, 3, Z)
        for r in range(3):  # features of a role read its own latents only
            omega[:, r, :, r] = blocks[:, r].mT / math.sqrt(Z)
        self.omega = omega.flatten(3, 4).flatten(1, 2).to(like)  # (P, 3m, 3Z)
        self.phase = (2 * math.pi * phase).to(like)  # (P, 3m, 1)
        between = torch.ones(3, 3).triu(1)  # the pairs (c, t), (c, y), (t, y)
        pairs = between.repeat_interleave(n_features, 0).repeat_interleave(n_features, 1)
        self.pairs = (2 / n_features * pairs).to(like)  # (3m, 3m)

    def hsic_loss(self, Z: Tensor):
        """L_dis, Eq. 11: the three HSICs, as squared covariances of features of Z (P, B, 3Z)."""
        angles = torch.baddbmm(self.phase, self.omega, standardise(Z.mT))
        return CosineCovariances.apply(angles, self.pairs)
