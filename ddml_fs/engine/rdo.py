"""Residual Dependence Orthogonalization (RDO), Eqs. 15 to 17.

All functions take whole stacks, (P, B), and return one loss per problem, (P,).
"""

import torch
from torch import Tensor

from ddml_fs.engine.losses import standardise
from ddml_fs.scores import residual_on_residual

ORTHOGONALITY = ("paper", "split", "moments")


def correlation(a: Tensor, b: Tensor):
    """Pearson correlation over the last axis, as below Eq. 17."""
    return (standardise(a) * standardise(b)).mean(-1)


def orthogonality_loss(form: str, v: Tensor, e: Tensor, Z: Tensor):
    """L_ort in one of its forms.

    Parameters
    ----------
    form : {"paper", "split", "moments"}
        "paper": |Corr(v, u)| with u = e − θ_tra·v on the same rows, Eqs. 15-17. Then vᵀu = 0, so
        the penalty only affects the product of the two means. "split": θ_tra comes from the other
        half of the batch. "moments": squared correlations of v and of u with every latent.
    v, e : Tensors of shape (P, B)
        Residuals, Eq. 14.
    Z : Tensor of shape (P, B, 3Z)
        Latents.
    """
    if form == "split":
        half = v.shape[-1] // 2
        (v1, v2), (e1, e2) = (
            v.split([half, v.shape[-1] - half], -1),
            e.split([half, e.shape[-1] - half], -1),
        )
        u1 = e1 - residual_on_residual(v2, e2)[:, None] * v1
        u2 = e2 - residual_on_residual(v1, e1)[:, None] * v2
        return 0.5 * (correlation(v1, u1).abs() + correlation(v2, u2).abs())
    u = e - residual_on_residual(v, e)[:, None] * v  # Eqs. 15 and 16
    if form == "paper":
        return correlation(v, u).abs()  # Eq. 17
    scaled = standardise(torch.stack([v, u], 1))  # (P, 2, B)
    return (scaled @ standardise(Z.mT).mT / v.shape[-1]).square().sum(1).mean(-1)
