"""Solve one stack of problems: screen the inputs, train, and predict the held-out rows."""

from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch.nn.functional import hardswish

from ddml_fs.engine.gates import choose_inputs
from ddml_fs.engine.latents import predict_from_heads, predict_from_models
from ddml_fs.engine.network import RoleNetwork, Sizes, encode
from ddml_fs.engine.objective import LossSettings, Objective
from ddml_fs.engine.quadratic import fit_quadratic
from ddml_fs.engine.train import Schedule, train

# The penalty of a network that corresponds to a ridge penalty of 1, set by hand on Amazon and on
# generated domains. It applies to every layer, so a much larger one would set all weights to zero.
L2_OF_PENALTY = 0.006


@dataclass(frozen=True)
class Settings:
    """All settings of the networks.

    Attributes
    ----------
    sizes : Sizes
        Widths of the networks.
    loss : LossSettings
        Settings of L_total.
    screen : Schedule or None
        Training of the network that chooses the inputs; None keeps all inputs.
    final : Schedule
        Training of the network that is used.
    slack : float
        How much the validation loss may rise when inputs are dropped, in standard errors.
    batch_size : int or "auto"
        Rows of a batch.
    shrinkage : float
        Ridge penalty of the nuisances, in units of D / n. A network with shrinkage starts from
        ridge regressions with this penalty and learns their residuals.
    quadratic : bool
        Whether quadratic functions of the latents are added to the trained heads, see
        :mod:`ddml_fs.engine.quadratic`; not for networks with shrinkage.
    trunk : bool
        Whether the networks of a fold share their first layer, see :mod:`ddml_fs.engine.trunk`.
    dtype : torch.dtype
        Precision of the networks; tests use double precision.
    """

    sizes: Sizes = field(default_factory=Sizes)
    loss: LossSettings = field(default_factory=LossSettings)
    screen: Schedule | None = field(
        default_factory=lambda: Schedule(epochs=12, peak=1.5e-2, lasso=0.85)
    )
    final: Schedule = field(default_factory=lambda: Schedule(epochs=40, peak=2e-2))
    slack: float = 2.5
    batch_size: int | str = "auto"
    shrinkage: float = 0.0
    quadratic: bool = False
    trunk: bool = False
    dtype: torch.dtype = torch.float32

    def total_epochs(self, arms):
        """The largest number of epochs of one stack; heads per arm are trained after the others."""
        final = self.final.epochs * (2 if arms else 1)
        return final + (self.screen.epochs if self.screen else 0)


@dataclass(frozen=True)
class Encoder:
    """One problem's trained Φ, on the CPU.

    Attributes
    ----------
    columns : int array
        The columns of X that it reads.
    mean, sd : arrays
        Of these columns.
    weights : tuple of arrays
    """

    columns: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    weights: tuple

    def __call__(self, X):
        """Zc, Zt and Zy, each an array (N, Z), of rows X (N, D)."""
        x = (np.asarray(X, dtype=np.float64)[:, self.columns] - self.mean) / self.sd
        weights = [torch.as_tensor(w) for w in self.weights]
        Z = encode(torch.as_tensor(x).to(weights[0].dtype)[None], *weights)[0]
        return tuple(z.numpy() for z in Z.chunk(3, -1))


@dataclass(frozen=True)
class NetworkSummary:
    """Summary of a trained network.

    Attributes
    ----------
    rise, rise_square : arrays of shape (D, 2)
        Rise of the held-out errors of T and of Y when a column is set to its mean: sums of the rise
        and of its square over the held-out rows.
    keep : bool array of shape (D,)
        The inputs that the network reads.
    valid_loss : float
        Validation loss of the best epoch.
    encoder : Encoder
        The trained Φ.
    """

    rise: np.ndarray
    rise_square: np.ndarray
    keep: np.ndarray
    valid_loss: float
    encoder: Encoder


def solve(stack, settings, *, pair=None, arms=False, detail=True, n_jobs=None, progress=None):
    """Solve one stack.

    Parameters
    ----------
    stack : Stack
    settings : Settings
    pair : callable, optional
        Makes scikit-learn models on the latents, see :func:`predict_from_models`. By default, the
        heads of the network predict.
    arms, detail : bool
        Whether to fit outcome models per arm, and whether to return summaries of the networks.
    n_jobs : int, optional
        For scikit-learn models.
    progress : Progress, optional
        Told of every epoch.

    Returns
    -------
    values : array of shape (2 or 4, P, n)
        Held-out predictions of m, g, mu_0 and mu_1, padded as ``stack.rows("hold")``.
    summaries : list of NetworkSummary, or None
    """
    sizes, loss = settings.sizes, settings.loss
    narrow = stack
    if settings.screen is not None:
        net = RoleNetwork(stack, sizes)
        objective = Objective(net, stack, sizes, loss)
        train(net, objective, stack, settings.screen, progress)
        narrow = stack.select(choose_inputs(net, objective, stack, settings.slack))

    schedule, shrunken, rate = settings.final, settings.shrinkage > 0, None
    if shrunken:
        penalty = stack.penalty(settings.shrinkage)
        schedule, rate = shortened(schedule, penalty), 1 / (1 + penalty)
    net = RoleNetwork(narrow, sizes, silent=shrunken)
    objective = Objective(net, narrow, sizes, replace(loss, even=shrunken))
    valid_loss = train(net, objective, narrow, schedule, progress).cpu()
    if settings.quadratic:
        objective.quadratic = fit_quadratic(objective, narrow)
    if pair is None:
        values = predict_from_heads(
            objective, narrow, sizes, arms=arms, schedule=settings.final, progress=progress
        )
    else:
        values = predict_from_models(
            objective,
            narrow,
            pair,
            arms=arms,
            n_jobs=n_jobs,
            rate=None if arms else rate,
            progress=progress,
        )
    return values, summarise(net, objective, narrow, valid_loss) if detail else None


def shortened(schedule, penalty):
    """Training of a network with shrinkage: shorter if there are few rows per column.

    The epochs and the peak learning rate are divided by 1 + λ. So what is learned beyond the ridge
    regression shrinks by (1 + λ)², as does the effect of confounding that it leaves in both
    nuisances.
    """
    return replace(
        schedule,
        epochs=max(1, round(schedule.epochs / (1 + penalty))),
        peak=schedule.peak / (1 + penalty),
        l2=L2_OF_PENALTY * penalty,
    )


def summarise(net, objective, stack, valid_loss):
    """Summaries of trained networks, one per problem."""
    rise = column_rises(net, objective, stack)  # (D, 2, P, n)
    columns = stack.columns.numpy()
    total, square = (np.zeros((stack.P, stack.D, 2)) for _ in range(2))
    total[:, columns] = rise.sum(-1).permute(2, 0, 1).cpu().numpy()
    square[:, columns] = rise.square().sum(-1).permute(2, 0, 1).cpu().numpy()
    keep = np.zeros((stack.P, stack.D), dtype=bool)
    keep[:, columns] = stack.keep.numpy()
    return [
        NetworkSummary(total[i], square[i], keep[i], float(valid_loss[i]), _encoder(net, stack, i))
        for i in range(stack.P)
    ]


@torch.no_grad()
def column_rises(net, objective, stack):
    """Rise of the held-out errors of the rows when a column is set to its mean.

    Returns
    -------
    rise : Tensor of shape (D, 2, P, n)
        For each column of the stack, for the errors of T and of Y; 0 for padding.
    """
    rows, weight = stack.rows("hold")
    batch = stack.batch(rows)
    before = torch.stack(objective.errors(batch))
    units = torch.baddbmm(net.b_1.flatten(2), batch.x, net.W_1.flatten(2))  # (G, B, p·3H)
    out = torch.zeros(len(stack.columns), *before.shape).to(before)
    for j in range(len(stack.columns)):
        # A rank-one correction removes the column from the first layer.
        left = units - batch.x[..., j : j + 1] * net.W_1[:, j].flatten(1)[:, None]
        left = hardswish(left).unflatten(2, (net.p, -1)).transpose(1, 2).flatten(0, 1)
        Z = torch.baddbmm(net.b_2, left, net.W_2)
        out[j] = (torch.stack(objective.errors(batch, Z)) - before) * weight
    return out


def _encoder(net, stack, i):
    """The encoder Φ of one problem of the stack."""
    g, j = divmod(i, net.p)
    read = stack.keep[i].nonzero()[:, 0]
    weights = (
        net.W_1[g, read, j][None, :, None],
        net.b_1[g, :, j][None, :, None],
        net.W_2[i][None],
        net.b_2[i][None],
    )
    columns = stack.columns[read].numpy()
    return Encoder(
        columns,
        stack.x_offset[columns] + stack.x_mean[g, 0, read].cpu().double().numpy(),
        stack.x_sd[g, 0, read].cpu().double().numpy(),
        tuple(w.detach().clone().cpu().numpy() for w in weights),
    )
