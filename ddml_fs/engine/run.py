"""From problems to solutions: pack, screen the inputs, train, fit the nuisances, predict."""

from dataclasses import dataclass, field

import numpy as np
import torch

from ddml_fs.engine.gates import choose_inputs, relative_strength
from ddml_fs.engine.network import Network, Sizes, encode
from ddml_fs.engine.nuisance import fit_nuisances
from ddml_fs.engine.objective import Objective, Weights
from ddml_fs.engine.plan import group_by_shape
from ddml_fs.engine.stack import Stack
from ddml_fs.engine.train import Schedule, train


@dataclass(frozen=True)
class Settings:
    """All settings of the engine.

    Attributes
    ----------
    sizes : Sizes
        Widths of the networks.
    weights : Weights
        Settings of L_total.
    screen : Schedule or None
        Training of the network that chooses the inputs; None keeps all inputs.
    final : Schedule
        Training of the network that is used.
    slack : float
        Standard errors of validation loss that closing a gate may cost.
    batch_size : int or "auto"
        Rows of a batch.
    dtype : torch.dtype
        Of the networks; double precision serves tests.
    """

    sizes: Sizes = field(default_factory=Sizes)
    weights: Weights = field(default_factory=Weights)
    screen: Schedule | None = field(
        default_factory=lambda: Schedule(epochs=12, peak=1.5e-2, lasso=0.85)
    )
    final: Schedule = field(default_factory=lambda: Schedule(epochs=40, peak=2e-2))
    slack: float = 2.5
    batch_size: int | str = "auto"
    dtype: torch.dtype = torch.float32

    @property
    def epochs(self):
        """Epochs of one stack, at most."""
        return self.final.epochs + (self.screen.epochs if self.screen else 0)


@dataclass(frozen=True)
class Encoder:
    """One problem's trained Φ, on the CPU."""

    columns: torch.Tensor
    mean: torch.Tensor
    sd: torch.Tensor
    weights: tuple

    def __call__(self, X):
        """Zc, Zt and Zy, each an array (N, Z), of rows X (N, D)."""
        x = torch.tensor(np.asarray(X), dtype=self.mean.dtype)[:, self.columns]
        Z = encode(((x - self.mean) / self.sd)[None], *self.weights)[0]
        return tuple(z.numpy() for z in Z.chunk(3, -1))


@dataclass(frozen=True)
class Solution:
    """What one problem leaves behind.

    Attributes
    ----------
    m, g : arrays of shape (n_hold,)
        Held-out predictions of T and Y.
    mu : array of shape (2, n_hold), or None
        Held-out predictions of Y per arm.
    strength : array of shape (D, 3)
        How strongly each input feeds each role, as a share of the strongest.
    keep : bool array of shape (D,)
        The inputs behind open gates.
    valid_loss : float
        Validation loss of the best epoch.
    encoder : Encoder
        The trained Φ.
    """

    m: np.ndarray
    g: np.ndarray
    mu: np.ndarray | None
    strength: np.ndarray
    keep: np.ndarray
    valid_loss: float
    encoder: Encoder


def run(
    problems,
    X,
    settings,
    nuisance="mlp",
    *,
    per_arm=False,
    device="cpu",
    n_jobs=None,
    progress=None,
):
    """Solve all problems.

    Parameters
    ----------
    problems : list of Problem
    X : array of shape (N, D)
    settings : Settings
    nuisance : "mlp", "rf", estimator, or pair of estimators
    per_arm : bool
        Whether outcome models per arm are wanted.
    device : torch.device
    n_jobs : int, optional
        joblib workers for scikit-learn nuisances.
    progress : callable, optional
        Called after every epoch of every stack.

    Returns
    -------
    solutions : list of Solution
        In the order of ``problems``.
    """
    X = torch.tensor(np.asarray(X), dtype=settings.dtype)
    solutions: dict[int, Solution] = {}
    for members in group_by_shape(problems, settings.batch_size):
        stack = Stack(
            [problems[i] for i in members], X, device, settings.batch_size, settings.dtype
        )
        solved = solve(stack, settings, nuisance, per_arm, n_jobs, progress)
        solutions.update(zip(members, solved, strict=True))
    return [solutions[i] for i in range(len(problems))]


def solve(stack, settings, nuisance, per_arm, n_jobs, progress):
    """Solve one stack: the list of its solutions."""
    sizes, weights = settings.sizes, settings.weights
    keep, strength = stack.keep, None
    if settings.screen is not None:
        net = Network(stack, keep, sizes)
        objective = Objective(net, stack, sizes, weights)
        train(net, objective, stack, settings.screen, progress)
        keep = choose_inputs(net, objective, stack, settings.slack)
        strength = relative_strength(net.row_norms()).cpu().numpy()

    narrow = stack.select(keep.any(0).nonzero()[:, 0])
    net = Network(narrow, keep, sizes)
    objective = Objective(net, narrow, sizes, weights)
    valid_loss = train(net, objective, narrow, settings.final, progress).cpu()
    if strength is None:
        strength = relative_strength(net.row_norms()).cpu().numpy()
    hold = fit_nuisances(
        net,
        objective,
        narrow,
        nuisance,
        per_arm=per_arm,
        schedule=settings.final,
        sizes=sizes,
        n_jobs=n_jobs,
    )
    return [
        Solution(
            m=hold.m[i, :n],
            g=hold.g[i, :n],
            mu=None if hold.mu is None else hold.mu[:, i, :n],
            strength=strength[i],
            keep=keep[i].numpy(),
            valid_loss=float(valid_loss[i]),
            encoder=_encoder(net, narrow, i),
        )
        for i, n in enumerate(len(q.fold.hold) for q in stack.problems)
    ]


def _encoder(net, stack, i):
    """Cut one problem's Φ out of the stack."""
    g, j = divmod(i, net.p)
    read = net.keep[i, stack.columns].nonzero()[:, 0]
    weights = (
        net.W_1[g, read, j][None, :, None],
        net.b_1[g, :, j][None, :, None],
        net.W_2[i][None],
        net.b_2[i][None],
    )
    return Encoder(
        stack.columns[read],
        stack.x_mean[g, 0, read].cpu(),
        stack.x_sd[g, 0, read].cpu(),
        tuple(w.detach().clone().cpu() for w in weights),
    )


def cross_fitted(problems, solutions, n_samples):
    """Held-out predictions of all rows, from those of the folds.

    Parameters
    ----------
    problems, solutions : lists
        One split: folds whose held-out rows are disjoint and together all rows.
    n_samples : int

    Returns
    -------
    hat : dict of arrays of shape (N,)
        ``m`` and ``g`` and, where solved per arm, ``mu_0`` and ``mu_1``.
    """
    names = ["m", "g"] + (["mu_0", "mu_1"] if solutions[0].mu is not None else [])
    hat = {name: np.empty(n_samples) for name in names}
    for problem, solution in zip(problems, solutions, strict=True):
        rows = problem.fold.hold
        hat["m"][rows], hat["g"][rows] = solution.m, solution.g
        if solution.mu is not None:
            hat["mu_0"][rows], hat["mu_1"][rows] = solution.mu
    return hat
