"""What the network baselines share: stacked layers, one training loop, distances of two groups.

A stack holds R networks, one for each replication of the outcome. All see the same rows, so that
every layer is one batched product; the leading axis of every tensor is the replication.
"""

import math
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import nn
from torch.nn.functional import elu

from experiments.baselines.effects.base import EffectEstimator, require_binary

# Of an epoch, at least: a few hundred rows need as many steps as thousands to be fitted.
MIN_STEPS = 8


class Layers(nn.Module):
    """R perceptrons with ELU between the layers, which start alike.

    So a stack gives what its networks give one by one.

    Parameters
    ----------
    R : int
        Networks.
    widths : sequence of int
        Of the input, of every layer, and of the output.
    generator : torch.Generator
    last : callable, optional
        What follows the last layer; nothing unless given.
    """

    def __init__(self, R, widths, generator, last=None):
        super().__init__()
        pairs = list(pairwise(widths))
        self.W = nn.ParameterList(
            (torch.randn(1, a, b, generator=generator) / math.sqrt(a)).repeat(R, 1, 1)
            for a, b in pairs
        )
        self.b = nn.ParameterList(torch.zeros(R, 1, b) for _, b in pairs)
        self.last = last

    def forward(self, x):
        """Outputs (R, B, out) of rows (R, B, in) or (B, in)."""
        x = x.expand(len(self.W[0]), *x.shape[-2:])
        for i, (W, b) in enumerate(zip(self.W, self.b, strict=True)):
            x = torch.baddbmm(b, x, W)
            if i < len(self.W) - 1:
                x = elu(x)
        return x if self.last is None else self.last(x)


@dataclass(eq=False, repr=False)
class NetworkEstimator(EffectEstimator):
    """A network baseline: subclasses make the modules and say what the loss is.

    A data class, and so are its subclasses: each adds its own parameters to these.

    Covariates are scaled, and so is the outcome; a tenth of the rows, the same share of either
    arm, stops the training. y may have several columns, replications of the outcome for the same
    rows and treatments: their networks are trained as one stack.

    Parameters
    ----------
    target : {"ate", "att"}, default="ate"
    hidden : int, default=32
        Units of a layer.
    epochs : int, default=40
        Passes over the rows.
    learning_rate : float, default=1e-2
        Of Adam, with a cosine decay.
    weight_decay : float, default=3e-3
        Penalty ½·λ·‖W‖² in the loss.
    batch_size : int, default=256
        Rows of a batch; fewer where the rows make less than ``MIN_STEPS`` batches.
    valid_share : float, default=0.1
    random_state : int, default=0
        Seed of the weights, the split and the batches.
    """

    target: str = "ate"
    hidden: int = 32
    epochs: int = 40
    learning_rate: float = 1e-2
    weight_decay: float = 3e-3
    batch_size: int = 256
    valid_share: float = 0.1
    random_state: int = 0

    def _modules(self, R, D, generator):
        """The networks, as an ``nn.ModuleDict``."""
        raise NotImplementedError

    def _loss(self, net, x, t, y):
        """Losses (R,) of rows x (B, D) with treatments t (B,) and outcomes y (R, B)."""
        raise NotImplementedError

    def _outcomes(self, net, x):
        """Outcomes of rows x (N, D) without and with treatment, (2, R, N)."""
        raise NotImplementedError

    def _validate(self, net, x, t, y):
        """Losses (R,) of rows left out; that of the factual outcomes unless overridden."""
        return factual(self._outcomes(net, x), t, y)

    def _prepare(self, net, x, t, y):
        """A last look at all training rows, before the first step."""

    def _fit(self, X, y, t):
        require_binary(t, type(self).__name__)
        generator = torch.Generator().manual_seed(self.random_state)
        y = y[:, None] if (single := y.ndim == 1) else y
        x, t_, y_ = (torch.as_tensor(a, dtype=torch.float32) for a in (scaled(X), t, scaled(y).T))
        valid = self._left_out(t, generator)
        fit = torch.ones(len(t), dtype=torch.bool)
        fit[valid] = False
        net = self._modules(len(y_), x.shape[1], generator)
        self._prepare(net, x[fit], t_[fit], y_[:, fit])
        train(
            net,
            lambda rows: self._loss(net, x[rows], t_[rows], y_[:, rows]),
            lambda: self._validate(net, x[valid], t_[valid], y_[:, valid]),
            fit.nonzero()[:, 0],
            self,
            generator,
        )
        with torch.no_grad():
            mu = self._outcomes(net, x).double().numpy()  # (2, R, N)
        effects = self.average((mu[1] - mu[0]).T * y.std(0), t)
        self.effect_ = float(effects[0]) if single else effects

    def _left_out(self, t, generator):
        """Validation rows: the same share of either arm."""
        arms = [np.flatnonzero(t == a) for a in np.unique(t)] if len(np.unique(t)) == 2 else None
        parts = []
        for rows in arms or [np.arange(len(t))]:
            order = torch.randperm(len(rows), generator=generator).numpy()
            parts.append(rows[order[: max(1, round(self.valid_share * len(rows)))]])
        return torch.as_tensor(np.concatenate(parts))


def scaled(a):
    """Columns of a (N, …) with mean 0 and, unless constant, standard deviation 1."""
    return (a - a.mean(0)) / np.where(a.std(0) > 1e-12, a.std(0), 1)


def train(net, loss, validate, rows, settings, generator):
    """Adam with a cosine decay; each network of the stack ends with its own best epoch's weights.

    Parameters
    ----------
    net : nn.Module
        All of its weights have the axis R first.
    loss : callable
        From rows to losses (R,). Networks share no weight: the gradient of the sum is each one's.
    validate : callable
        To losses (R,).
    rows : Tensor of shape (n,)
        Training rows.
    settings : NetworkEstimator
        Gives epochs, learning rate, weight decay and batch size.
    generator : torch.Generator
        Of the batches.
    """
    penalised = [p for name, p in net.named_parameters() if ".W." in name]
    free = [p for name, p in net.named_parameters() if ".W." not in name]
    optimizer = torch.optim.Adam(
        [{"params": penalised, "weight_decay": settings.weight_decay}, {"params": free}],
        lr=settings.learning_rate,
        fused=True,
    )
    steps = max(MIN_STEPS, len(rows) // settings.batch_size)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, settings.epochs * steps)
    kept, best = deepcopy(net.state_dict()), None
    for _ in range(settings.epochs):
        order = rows[torch.randperm(len(rows), generator=generator)]
        for batch in order.tensor_split(steps):
            optimizer.zero_grad()
            loss(batch).sum().backward()
            optimizer.step()
            schedule.step()
        with torch.no_grad():
            now = validate()
            better = torch.ones_like(now, dtype=torch.bool) if best is None else now < best
            best = now if best is None else torch.where(better, now, best)
            for name, value in net.state_dict().items():
                kept[name][better] = value[better]
    net.load_state_dict(kept)


def heads(net, z):
    """Outcomes (2, R, B) without and with treatment at the representations z (R, B, Z)."""
    return torch.stack([net["control"](z)[..., 0], net["treated"](z)[..., 0]])


def seen(mu, t):
    """Of values (2, R, B), those of the arm that was seen; (R, B)."""
    return torch.where(t == 1, mu[1], mu[0])


def arm_mean(values, t):
    """Mean of values (R, B), either arm counting half; (R,)."""
    return 0.5 * sum((values * a).sum(-1) / a.sum().clamp(min=1) for a in (t, 1 - t))


def factual(mu, t, y):
    """Squared error of the outcomes that were seen, either arm counting half; (R,).

    Parameters
    ----------
    mu : Tensor of shape (2, R, B)
    t : Tensor of shape (B,)
    y : Tensor of shape (R, B)
    """
    return arm_mean((y - seen(mu, t)) ** 2, t)


def squared_distances(a, b):
    """Of all pairs of rows, (R, n, m), from (R, n, Z) and (R, m, Z)."""
    return ((a**2).sum(-1)[..., None] + (b**2).sum(-1)[:, None] - 2 * a @ b.mT).clamp(min=0)


def mmd(a, b):
    """MMD² of two groups under an RBF kernel as wide as the median distance, (R,)."""
    if not a.shape[1] or not b.shape[1]:
        return a.new_zeros(len(a))
    both = torch.cat([a, b], 1)
    square = squared_distances(both, both)
    width = square.detach().flatten(1).median(1).values[:, None, None].clamp(min=1e-6)
    k = torch.exp(-square / width)
    n = a.shape[1]
    return k[:, :n, :n].mean((1, 2)) + k[:, n:, n:].mean((1, 2)) - 2 * k[:, :n, n:].mean((1, 2))


def wasserstein(a, b, n_steps=10, sharpness=10.0):
    """Entropic Wasserstein distance of two groups by a few Sinkhorn steps, (R,).

    Parameters
    ----------
    a, b : Tensors of shape (R, n, Z) and (R, m, Z)
    n_steps : int
    sharpness : float
        Larger is nearer to the true distance; in units of the mean cost.
    """
    if not a.shape[1] or not b.shape[1]:
        return a.new_zeros(len(a))
    cost = (squared_distances(a, b) + 1e-8).sqrt()
    with torch.no_grad():  # the plan is held fixed: the gradient flows through the costs
        log_K = -sharpness * cost / cost.mean((1, 2), keepdim=True)
        # u and v absorb these shifts, without which a far row's kernel would vanish
        log_K = log_K - log_K.amax(2, keepdim=True)
        K = torch.exp(log_K - log_K.amax(1, keepdim=True))
        tiny = torch.finfo(K.dtype).tiny
        u = torch.full_like(K[..., :1], 1 / K.shape[1])
        for _ in range(n_steps):
            v = 1 / (K.mT @ u).clamp(min=tiny) / K.shape[2]
            u = 1 / (K @ v).clamp(min=tiny) / K.shape[1]
        plan = u * K * v.mT
    return (plan * cost).sum((1, 2))
