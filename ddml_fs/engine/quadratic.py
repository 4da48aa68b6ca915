"""Quadratic functions of the latents, fitted in closed form and added to the trained heads.

Training by gradients leaves a part of both nuisances unlearned, and what both miss is confounding.
A ridge regression of the residuals of all training rows on the latents, their squares and their
products learns some of it, in the time of two or three epochs.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ddml_fs.engine.losses import by_kind, to_mean
from ddml_fs.engine.network import HEADS

SHRINKAGE = 1.0  # ridge penalty in units of terms per row; experiments/effects/results/tuned.md
ROWS_AT_ONCE, PROBLEMS_AT_ONCE = 1024, 10  # for the sake of memory
LEAST_WEIGHT = 1e-3  # of a row with a 0/1 target
FLAT = 1e-6  # share of the mean square below which a variance may be rounding


class Quadratic(NamedTuple):
    """Quadratic functions of the latents of P problems, one for each of the two heads."""

    constant: Tensor  # (P, 1, 2)
    linear: Tensor  # (P, 3Z, 2)
    square: Tensor  # (P, 3Z, 6Z), those of the two heads side by side

    def __call__(self, Z):
        """Values (P, B, 2) of the latents (P, B, 3Z)."""
        square = ((Z @ self.square).unflatten(-1, (2, -1)) * Z[:, :, None]).sum(-1)
        return torch.baddbmm(self.constant, Z, self.linear) + square


@torch.no_grad()
def fit_quadratic(objective, stack):
    """Fit the residuals of the heads on all training rows; a 0/1 target by one Newton step.

    Each head reads the latents of its own roles. The intercept is not penalised.

    Parameters
    ----------
    objective : Objective
        Of a trained network.
    stack : Stack

    Returns
    -------
    quadratic : Quadratic
    """
    rows, weight = stack.rows("train")
    n_latents = objective.net.W_2.shape[-1] // 3
    reads = [_places(read, n_latents).to(stack.device) for read in HEADS]
    pairs = torch.triu_indices(2 * n_latents, 2 * n_latents).to(stack.device)
    n_terms = number_of_terms(n_latents)
    # Per head and problem: sums of products of the terms, and of terms and residuals.
    sums = torch.zeros(2, stack.P, n_terms, n_terms + 1).to(stack.X)
    # No more rows at once than are predicted at once, for the sake of memory.
    n = min(ROWS_AT_ONCE, stack.rows("hold")[0].shape[1])
    starts = range(0, stack.P, PROBLEMS_AT_ONCE)
    some = [slice(start, start + PROBLEMS_AT_ONCE) for start in starts]
    for part, own in zip(rows.split(n, 1), weight.split(n, 1), strict=True):
        Z, *residuals = _residuals(objective, stack.batch(part), own)
        for h, (residual, information) in enumerate(residuals):
            for i in some:
                z = Z[i].index_select(-1, reads[h])
                products = z.index_select(-1, pairs[0]) * z.index_select(-1, pairs[1])
                terms = torch.cat([torch.ones_like(z[..., :1]), z, products], -1)
                scaled = terms * information[i, :, None]
                sums[h, i, :, :-1].baddbmm_(terms.mT, scaled)
                sums[h, i, :, -1:].baddbmm_(terms.mT, residual[i, :, None])
    out = Quadratic(*(torch.zeros(s).to(stack.X) for s in _shapes(stack.P, n_latents)))
    total = weight.sum(-1).double()
    for h, place in enumerate(reads):
        for i in some:
            moments = sums[h, i].double()
            constant, slopes = _ridge(moments[..., :-1], moments[..., -1], total[i])
            linear, square = slopes.to(stack.dtype).split([2 * n_latents, pairs.shape[1]], -1)
            out.constant[i, 0, h] = constant.to(stack.dtype)
            out.linear[i, place, h] = linear
            out.square[i, place[pairs[0]], 3 * n_latents * h + place[pairs[1]]] = square
    return out


def number_of_terms(n_latents):
    """Terms of a head that reads two roles with so many latents each, the intercept included.

    Examples
    --------
    >>> number_of_terms(1)  # 1, a, b, aa, ab, bb
    6
    """
    L = 2 * n_latents
    return 1 + L + L * (L + 1) // 2


def _places(read, n_latents):
    """Places of the latents of the roles that a head reads."""
    every = torch.arange(3 * n_latents)
    return every[torch.tensor(read).bool().repeat_interleave(n_latents)]


def _shapes(P, n_latents):
    """Shapes of the tensors of a Quadratic."""
    return (P, 1, 2), (P, 3 * n_latents, 2), (P, 3 * n_latents, 6 * n_latents)


def _residuals(objective, batch, weight):
    """Latents and, per head, weighted residuals and the information of the rows, all (P, B)."""
    Z, T_raw, _, Y_raw = objective.forward(batch)
    out = [Z]
    for raw, target, binary in (
        (T_raw, batch.T, objective.binary_T),
        (Y_raw, objective.outcome_target(batch), objective.binary_Y),
    ):
        mean = to_mean(raw, binary)
        spread = (mean * (1 - mean)).clamp(min=LEAST_WEIGHT)
        information = by_kind(binary, lambda s=spread: s, lambda s=spread: torch.ones_like(s))
        out.append((weight * (target - mean), weight * information))
    return out


def _ridge(products, residuals, n):
    """Intercept (P,) and slopes (P, D) of terms, the first of which is 1.

    Parameters
    ----------
    products : Tensor of shape (P, 1 + D, 1 + D)
        Weighted sums of products of the terms.
    residuals : Tensor of shape (P, 1 + D)
        Sums of products of terms and residuals.
    n : Tensor of shape (P,)
        Number of rows.
    """
    total, first = products[:, :1, 0], products[:, 0, 1:]
    mean = first / total
    covariance = products[:, 1:, 1:] / total[..., None] - mean[:, :, None] * mean[:, None]
    variance = covariance.diagonal(dim1=-2, dim2=-1)
    sd = torch.where(variance > FLAT * (variance + mean**2), variance, 1.0).sqrt()
    correlation = covariance / sd[:, :, None] / sd[:, None]
    correlation.diagonal(dim1=-2, dim2=-1).add_(SHRINKAGE * sd.shape[1] / n[:, None])
    target = (residuals[:, 1:] - mean * residuals[:, :1]) / total / sd
    slopes = torch.linalg.solve(correlation, target) / sd
    return residuals[:, 0] / total[:, 0] - (mean * slopes).sum(-1), slopes
