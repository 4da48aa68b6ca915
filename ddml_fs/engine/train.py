"""The training loop of all networks."""

import math
from dataclasses import dataclass

import torch
from torch.optim.adamw import adamw

# Weights of the group lasso for rows of Zc, Zt and Zy. A confounder is cheaper in Zc (√2) than in
# both Zt and Zy (2). A cause of only one target is cheaper in its own role (1) than in Zc.
ROLE_PRICES = (math.sqrt(2), 1.0, 1.0)


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train.

    Attributes
    ----------
    epochs : int
        Largest number of epochs.
    peak : float
        Highest learning rate of the one cycle.
    weight_decay : float
        Decoupled weight decay, a part of Θ.
    lasso : float
        Group lasso on the rows of the first layer per role, the other part of Θ; 0 for none.
    l2 : float
        Penalty ½·l2·‖W‖² on all weights except the intercepts, a part of the loss.
    patience : int
        A problem stops after this number of epochs without a lower validation loss.
    """

    epochs: int
    peak: float
    weight_decay: float = 0.01
    lasso: float = 0.0
    l2: float = 0.0
    patience: int = 20


def one_cycle(step, n_steps, peak, rise=0.3, low=0.04):
    """Learning rate of a step: a cosine up over the first ``rise`` of the steps, then down to 0."""
    if step < rise * n_steps:
        return peak * (low + (1 - low) * 0.5 * (1 - math.cos(math.pi * step / (rise * n_steps))))
    return peak * 0.5 * (1 + math.cos(math.pi * (step / n_steps - rise) / (1 - rise)))


class FlatAdamW:
    """AdamW on all weights of a stack, in a single operation per step.

    A stack has a dozen tensors, most of them small. All but those of the first layer are stored as
    one vector, which is much faster than ``torch.optim.AdamW`` on many tensors (the tests compare
    their weights). The first layer of a wide stack has nearly all weights. As the time is that of
    reading and writing memory, its gradient is used as the backward pass leaves it, neither added
    up nor set to zero. Each entry is updated independently, so problems do not affect each other.

    Parameters
    ----------
    model : StackedModule
        Its weights after the first, and their gradients, become views of the vector. Weights
        outside its masks stay zero.
    weight_decay : float
        Decoupled weight decay.
    l2 : float
        Penalty on weights, not on intercepts, which is added to the gradient.
    betas : pair of float
        Decay rates of the running means of the gradient and of its square.
    """

    def __init__(self, model, weight_decay, l2=0.0, betas=(0.9, 0.999)):
        self.first, *rest = model.parameters()
        self.weight_decay, self.betas, self.l2 = weight_decay, betas, l2
        vector = torch.cat([w.detach().flatten() for w in rest])
        self.values = [self.first.detach(), vector]
        self.gradient = torch.zeros_like(vector)
        self.mean, self.square = ([torch.zeros_like(v) for v in self.values] for _ in range(2))
        self.n_steps = [torch.zeros((), dtype=torch.float32, device=vector.device) for _ in "12"]
        _, *names = (name for name, _ in model.named_parameters())
        penalised = [torch.full_like(w, "W" in n) for n, w in zip(names, rest, strict=True)]
        self.penalised = torch.cat([own.detach().flatten() for own in penalised])
        places, n = model.fixed_places(), self.first.numel()
        parts = places[places < n], places[places >= n] - n
        self.fixed = [torch.as_tensor(part).to(vector.device) for part in parts]
        sizes = [w.numel() for w in rest]
        views = vector.split(sizes), self.gradient.split(sizes)
        for weight, value, gradient in zip(rest, *views, strict=True):
            weight.data, weight.grad = value.view_as(weight), gradient.view_as(weight)
        self.first.grad = None

    def step(self, rate):
        """Update the weights by their gradients, and forget these."""
        gradients = [self.first.grad, self.gradient]
        if self.l2:
            gradients[0].add_(self.values[0], alpha=self.l2)
            gradients[1].addcmul_(self.values[1], self.penalised, value=self.l2)
        adamw(
            self.values,
            gradients,
            self.mean,
            self.square,
            [],
            self.n_steps,
            fused=True,
            amsgrad=False,
            beta1=self.betas[0],
            beta2=self.betas[1],
            lr=rate,
            weight_decay=self.weight_decay,
            eps=1e-8,
            maximize=False,
        )
        for values, fixed in zip(self.values, self.fixed, strict=True):
            values.view(-1).index_fill_(0, fixed, 0.0)
        self.gradient.zero_()
        self.first.grad = None


def training_step(model, objective, optimizer, batch, rate, prices=None):
    """One step on one batch, without any transfer from the device to the host.

    Parameters
    ----------
    model : StackedModule
    objective : callable
        From a batch to the losses (P,). Problems share no weights, so the gradient of the sum has
        the gradients of all problems.
    optimizer : FlatAdamW
    batch : Batch
    rate : float
        Learning rate.
    prices : Tensor of shape (3,), optional
        Weights of the group lasso per role.
    """
    objective(batch).sum().backward()
    optimizer.step(rate)
    if prices is not None:
        model.shrink_rows(rate * prices)


def train(model, objective, stack, schedule, progress=None):
    """Train a stack. Each problem ends with the weights of its own best epoch.

    Parameters
    ----------
    model : StackedModule
        Changed in place.
    objective : Objective
        Callable on a batch, with ``validate(batch, weight)``.
    stack : Stack
    schedule : Schedule
    progress : Progress, optional
        Told of every epoch.

    Returns
    -------
    best : Tensor of shape (P,)
        Validation losses.
    """
    optimizer = FlatAdamW(model, schedule.weight_decay, schedule.l2)
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
    for epoch in range(schedule.epochs):
        for batch in stack.epoch(generators):
            rate = one_cycle(step, n_steps, schedule.peak)
            training_step(model, objective, optimizer, batch, rate, prices)
            step += 1
        with torch.no_grad():
            loss = objective.validate(valid, weight)
        # With a lasso the last epoch is used, as the rows shrink until the end.
        better = (loss < best) & (stale < schedule.patience) | (schedule.lasso > 0)
        best = torch.where(better, loss, best)
        stale = torch.where(better, 0, stale + 1)
        model.exchange(better, kept, current)
        if progress is not None:
            progress.advance()
        # The only value that the host reads, once per epoch, and not before it can be true.
        if epoch + 1 >= schedule.patience and bool((stale >= schedule.patience).all()):
            break
    model.exchange(torch.ones_like(better), current, kept)
    return best
