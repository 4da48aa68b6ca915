"""Sparse input gates: which covariates a problem's final network reads.

A first network is trained with a group lasso on its input rows. Its small rows are then cut away,
as many as the validation rows let go without a loss that they can tell from chance; with dense
confounding that is none.
"""

import torch

# Cuts as shares of a problem's longest row, from no gate at all to a few inputs.
CUTS = (0.0, 0.02, 0.03, 0.045, 0.065, 0.09, 0.12, 0.16, 0.2, 0.25, 0.3)


def relative_strength(norms):
    """Row norms (P, D, 3) as shares of the problem's longest row."""
    return norms / norms.amax((1, 2), keepdim=True).clamp(min=1e-12)


@torch.no_grad()
def choose_inputs(net, objective, stack, slack, cuts=CUTS):
    """The inputs that each problem keeps.

    Each cut is tried on the validation rows. A cut is allowed when, for neither head, the mean
    error exceeds the best cut's by more than ``slack`` standard errors of the paired difference;
    the deepest allowed cut is taken.

    Parameters
    ----------
    net : RoleNetwork
        Trained with a group lasso; unchanged on return.
    objective : Objective
    stack : Stack
    slack : float
        Standard errors.
    cuts : tuple of float
        Shares of the longest row, in rising order.

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
    excess = (error - error.gather(0, least)) * weight
    mean = excess.sum(-1) / n
    sd = ((excess - mean[..., None]).square() * weight).sum(-1).div(n).sqrt()
    allowed = (mean <= slack * sd / n.sqrt()).all(1)  # (cuts, P); the cut 0 where nothing else is
    depth = torch.arange(len(cuts), device=allowed.device)[:, None]
    deepest = torch.where(allowed, depth, 0).amax(0)
    chosen = torch.tensor(cuts, device=strength.device)[deepest]  # (P,)
    return (strength > chosen[:, None]).cpu() & stack.keep
