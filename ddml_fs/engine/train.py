"""The one training loop."""

import math
from dataclasses import dataclass

import torch

# Prices of a row of Zc, Zt and Zy. A confounder pays less through Zc (√2) than through Zt and Zy
# (2), a cause of one target less through its own role (1) than through Zc.
ROLE_PRICES = (math.sqrt(2), 1.0, 1.0)


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train.

    Attributes
    ----------
    epochs : int
        Passes over the rows, at most.
    peak : float
        Highest learning rate of the one cycle.
    weight_decay : float
        Decoupled weight decay, a part of Θ.
    lasso : float
        Group lasso on the first layer's rows per role, the other part of Θ; 0 is none.
    patience : int
        Epochs without a better validation loss after which a problem stops.
    """

    epochs: int
    peak: float
    weight_decay: float = 0.01
    lasso: float = 0.0
    patience: int = 20


def one_cycle(step, n_steps, peak, rise=0.3, low=0.04):
    """Learning rate of a step: a cosine up over the first ``rise`` of the steps, then down to 0."""
    if step < rise * n_steps:
        return peak * (low + (1 - low) * 0.5 * (1 - math.cos(math.pi * step / (rise * n_steps))))
    return peak * 0.5 * (1 + math.cos(math.pi * (step / n_steps - rise) / (1 - rise)))


def make_optimizer(model, schedule):
    """AdamW over all weights of the stack; it acts on each entry alone, so problems do not mix."""
    weights = list(model.parameters())
    fused = weights[0].device.type != "meta"
    return torch.optim.AdamW(
        weights, lr=schedule.peak, weight_decay=schedule.weight_decay, fused=fused
    )


def training_step(model, objective, optimizer, batch, rate, prices=None):
    """One step on one batch, with no value brought back to the host.

    Parameters
    ----------
    model : Stacked
    objective : callable
        From a batch to the losses (P,). Problems share no weight, so the gradient of the sum is
        each problem's own.
    optimizer : torch.optim.Optimizer
    batch : Batch
    rate : float
        Learning rate.
    prices : Tensor of shape (3,), optional
        Group lasso per role.
    """
    optimizer.zero_grad()
    objective(batch).sum().backward()
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
    if prices is not None:
        model.shrink_rows(rate * prices)


def train(model, objective, stack, schedule, progress=None):
    """Train a stack; each problem ends with the weights of its own best epoch.

    Parameters
    ----------
    model : Stacked
        Changed in place.
    objective : Objective
        Callable on a batch, with ``validate(batch, weight)``.
    stack : Stack
    schedule : Schedule
    progress : callable, optional
        Called after every epoch.

    Returns
    -------
    best : Tensor of shape (P,)
        Validation losses.
    """
    optimizer = make_optimizer(model, schedule)
    prices = None
    if schedule.lasso:
        prices = schedule.lasso * torch.tensor(ROLE_PRICES).to(stack.X)
    generators = stack.generators()
    rows, weight = stack.rows("valid")
    valid = stack.batch(rows)

    n_steps, step = schedule.epochs * stack.steps, 0
    best = torch.full((stack.P,), math.inf).to(stack.X)
    stale = torch.zeros(stack.P).to(stack.X)
    kept, current = model.snapshot(), dict(model.state_dict())
    for _ in range(schedule.epochs):
        for batch in stack.epoch(generators):
            rate = one_cycle(step, n_steps, schedule.peak)
            training_step(model, objective, optimizer, batch, rate, prices)
            step += 1
        with torch.no_grad():
            loss = objective.validate(valid, weight)
        # With a lasso the last epoch counts: the rows have had all steps to shrink.
        better = (loss < best) & (stale < schedule.patience) | (schedule.lasso > 0)
        best = torch.where(better, loss, best)
        stale = torch.where(better, 0, stale + 1)
        model.exchange(better, kept, current)
        if progress is not None:
            progress()
        if bool((stale >= schedule.patience).all()):
            break
    model.exchange(torch.ones_like(better), current, kept)
    return best
