"""Sparse input gates: which covariates the final network of a problem reads.

A first network is trained with a group lasso on the rows of its input weights. Inputs with small
rows are then dropped, as many as possible without a significant rise of the validation loss. With
dense confounding, no input is dropped.
"""

import torch

# Thresholds as shares of a problem's longest row, from all inputs to a few inputs.
CUTS = (0.0, 0.02, 0.03, 0.045, 0.065, 0.09, 0.12, 0.16, 0.2, 0.25, 0.3)


def relative_strength(norms):
    """Row norms (P, D, 3) as shares of the problem's longest row."""
    return norms / norms.amax((1, 2), keepdim=True).clamp(min=1e-12)


@torch.no_grad()
def choose_inputs(net, objective, stack, slack, cuts=CUTS):
    """The inputs that each problem keeps.

    Each threshold is evaluated on the validation rows. A threshold is allowed if, for both heads,
    its mean error exceeds that of the best threshold by at most ``slack`` standard errors of the
    paired difference. The largest allowed threshold is used.

    Parameters
    ----------
    net : RoleNetwork
        Trained with a group lasso; unchanged on return.
    objective : Objective
    stack : Stack
    slack : float
        Number of standard errors.
    cuts : tuple of float
        Thresholds as shares of the longest row, in increasing order.

    Returns
    -------
    keep : bool Tensor of shape (P, D)
        On the CPU.
    """
    rows, weight = stack.rows("valid")
    valid = stack.batch(rows)
    strength = relative_strength(net.row_norms()).amax(-1)  # (P, D)
    full = net.W_1.clone()
    errors = []
    for cut in cuts:
        open_ = (strength > cut).unflatten(0, (net.G, net.p)).transpose(1, 2)[..., None]
        net.W_1.copy_(full * open_)
        errors.append(torch.stack(objective.errors(valid)))
    net.W_1.copy_(full)

    error = torch.stack(errors)  # (cuts, 2, P, B)
    n = weight.sum(-1)
    mean = (error * weight).sum(-1) / n
    least = mean.argmin(0, keepdim=True)[..., None].expand(1, -1, -1, error.shape[-1])
    excess = error - error.gather(0, least)
    mean = (excess * weight).sum(-1) / n
    stderr = ((excess - mean[..., None]) * weight).square().sum(-1).sqrt() / n
    allowed = (mean <= slack * stderr).all(1)  # (cuts, P); if none is, the first is used
    depth = torch.arange(len(cuts), device=allowed.device)[:, None]
    deepest = torch.where(allowed, depth, 0).amax(0)
    chosen = torch.tensor(cuts, device=strength.device)[deepest]  # (P,)
    return (strength > chosen[:, None]).cpu() & stack.keep
