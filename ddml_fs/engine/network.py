"""The stacked network of Causal Role Disentanglement: encoder Φ and heads Ψ.

Every layer is one product for the whole stack. Masks say which unit reads which: a weight outside
the mask starts at zero, and the optimizer keeps it there. The three encoders of Φ are the
diagonal blocks of one layer, and Ψ_T does not read Zy because these weights are masked.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import hardswish

from ddml_fs.engine.draws import Draws

# Which of the roles (Zc, Zt, Zy) each of two heads reads.
HEADS = ((1, 1, 0), (1, 0, 1))  # Ψ_T and Ψ_Y, Eq. 12
ARMS = ((1, 0, 1), (1, 0, 1))  # outcomes without and with treatment


@dataclass(frozen=True)
class Sizes:
    """Widths: hidden units of a role's encoder and of a head (H), latents of a role (Z)."""

    H: int = 16
    Z: int = 8


def encode(x, W_1, b_1, W_2, b_2, part=None):
    """Φ, Eq. 10, for G folds with p problems each.

    Parameters
    ----------
    x : Tensor of shape (G, B, D)
        Scaled rows.
    W_1, b_1, W_2, b_2 : Tensors of shape (G, D, p, 3H), (G, 1, p, 3H), (P, 3H, 3Z), (P, 1, 3Z)
    part : Tensor of shape (P, B, 3H), optional
        The part of the first layer that a problem must not see.

    Returns
    -------
    Z : Tensor of shape (P, B, 3Z)
        The latents Zc, Zt and Zy side by side.
    """
    p, B = W_1.shape[2], x.shape[1]
    h = torch.baddbmm(b_1.flatten(2), x, W_1.flatten(2))  # (G, B, p·3H): one product per fold
    if part is None:
        h = hardswish(h).unflatten(2, (p, -1)).transpose(1, 2).reshape(W_2.shape[0], B, -1)
    else:
        h = h.unflatten(2, (p, -1)).transpose(1, 2).reshape(W_2.shape[0], B, -1)
        h = hardswish(h - part)
    return torch.baddbmm(b_2, h, W_2)


class StackedModule(nn.Module):
    """Weights with a problem axis: (P, in, out), or (G, in, p, out) in a shared first layer."""

    W_1: Tensor
    b_1: Tensor
    W_2: Tensor
    b_2: Tensor

    def __init__(self, stack):
        super().__init__()
        self.G, self.p, self.P = stack.G, stack.p, stack.P
        self.kind = {"device": stack.device, "dtype": stack.dtype}
        self.masks: dict[str, Tensor] = {}

    def place(self, value):
        """A tensor with the device and dtype of the stack."""
        return value.contiguous().to(**self.kind)

    def set_weight(self, name, value, mask=None):
        """Register a weight that is zero outside the mask."""
        if mask is not None:
            value, self.masks[name] = value * mask, mask
        self.register_parameter(name, nn.Parameter(self.place(value)))

    def fixed_places(self):
        """Places of the weights outside the masks, in the vector of all weights: an int array."""
        masks = {
            f"{prefix}.{name}".lstrip("."): mask
            for prefix, module in self.named_modules()
            for name, mask in getattr(module, "masks", {}).items()
        }
        places, start = [], 0
        for name, weight in self.named_parameters():
            if name in masks:
                outside = ~masks[name].bool().expand(weight.shape)  # on the CPU
                places.append(start + np.flatnonzero(outside.numpy()))
            start += weight.numel()
        return np.concatenate(places)

    def snapshot(self):
        """A copy of the weights and buffers."""
        return {name: w.detach().clone() for name, w in self.state_dict().items()}

    @torch.no_grad()
    def exchange(self, chosen, target, source):
        """Copy the weights ``source`` to ``target`` for the problems in ``chosen`` (P,)."""
        for name, old in target.items():
            shape = (self.G, 1, self.p, 1) if old.dim() == 4 else (self.P, 1, 1)
            torch.where(chosen.view(shape), source[name], old, out=old)


class Heads(StackedModule):
    """Ψ, Eq. 12: two small networks on the latents, each of which reads two of the three roles.

    Parameters
    ----------
    stack : Stack
        Gives G, p and the device.
    draws : Draws
        Of the problems.
    sizes : Sizes
        Widths.
    reads : tuple
        Which roles each of the two heads reads, ``HEADS`` or ``ARMS``.
    """

    def __init__(self, stack, draws, sizes, reads=HEADS):
        super().__init__(stack)
        H, Z = sizes.H, sizes.Z
        read = torch.tensor(reads).float().T  # (3, 2)
        mask_1 = read.repeat_interleave(Z, 0).repeat_interleave(H, 1)  # (3Z, 2H)
        mask_2 = torch.block_diag(*[torch.ones(H, 1)] * 2)  # (2H, 2)
        W_1 = draws.normal(*mask_1.shape) / math.sqrt(2 * Z)
        W_2 = draws.normal(*mask_2.shape) / math.sqrt(H)
        self.set_weight("W_1", W_1, mask_1)
        self.set_weight("b_1", torch.zeros(self.P, 1, 2 * H))
        self.set_weight("W_2", W_2, mask_2)
        self.set_weight("b_2", torch.zeros(self.P, 1, 2))

    def forward(self, Z: Tensor):
        """The two outputs, each (P, B), from the latents (P, B, 3Z)."""
        h = hardswish(torch.baddbmm(self.b_1, Z, self.W_1))
        return torch.baddbmm(self.b_2, h, self.W_2).unbind(-1)


class RoleNetwork(StackedModule):
    """Φ and Ψ for a stack of P = G·p problems.

    Weights are drawn on the CPU, from the seed of each problem and for all columns of X. So they
    depend neither on the device nor on the packing of problems into shards.

    Parameters
    ----------
    stack : Stack
        Gives G, p, the columns, the inputs that each problem reads, the seeds and the device.
    sizes : Sizes
        Widths.
    silent : bool
        Whether the heads start at zero, so that the network starts at the base of its stack.
    """

    def __init__(self, stack, sizes, silent=False):
        super().__init__(stack)
        H, Z = sizes.H, sizes.Z
        draws = Draws(stack.seeds)
        mask_2 = torch.block_diag(*[torch.ones(H, Z)] * 3)  # (3H, 3Z)
        n_inputs = stack.keep.sum(1).clamp(min=1)
        W_1 = draws.normal(stack.D, 3 * H)[:, stack.columns] / n_inputs.sqrt()[:, None, None]
        W_2 = draws.normal(*mask_2.shape) / math.sqrt(H)
        # The problems of a fold are adjacent, so that the first layer is one product.
        W_1 = W_1.unflatten(0, (self.G, self.p)).transpose(1, 2)  # (G, D, p, 3H)
        mask_1 = stack.keep.unflatten(0, (self.G, self.p)).transpose(1, 2)[..., None]
        self.set_weight("W_1", W_1, mask_1)
        self.set_weight("b_1", torch.zeros(self.G, 1, self.p, 3 * H))
        self.set_weight("W_2", W_2, mask_2)
        self.set_weight("b_2", torch.zeros(self.P, 1, 3 * Z))
        self.Psi = Heads(stack, draws, sizes)
        if silent:
            with torch.no_grad():
                self.Psi.W_2.zero_()
        self.register_buffer("theta_0", self.place(torch.zeros(self.P, 1, 1)))
        self.own_W = stack.own_W

    def Phi(self, x: Tensor, own: Tensor | None = None):
        """The latents (P, B, 3Z) of rows x (G, B, D), see :func:`encode`.

        With a trunk, x are projections, from which the part of the columns ``own`` (P, B, M) is
        subtracted: a correction of rank M.
        """
        part = None
        if own is not None:
            W_1 = self.W_1.transpose(1, 2).flatten(0, 1)  # (P, Q, 3H)
            part = own @ (self.own_W @ W_1)
        return encode(x, self.W_1, self.b_1, self.W_2, self.b_2, part)

    def row_norms(self):
        """Norms of the first-layer weights of each input for each role, (P, D, 3)."""
        rows = self.W_1.detach().unflatten(-1, (3, -1)).norm(dim=-1)  # (G, D, p, 3)
        return rows.transpose(1, 2).flatten(0, 1)

    @torch.no_grad()
    def shrink_rows(self, by):
        """Proximal step of the group lasso: shorten the weights of each input by ``by`` (3,)."""
        rows = self.W_1.unflatten(-1, (3, -1))  # (G, D, p, 3, H)
        norm = rows.norm(dim=-1, keepdim=True).clamp(min=1e-12)
        rows.mul_((1 - by[:, None] / norm).clamp(min=0))
