"""From problems to solutions: pack, screen the inputs, train, fit the nuisances, predict."""

from contextlib import nullcontext
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from joblib import Parallel, delayed, effective_n_jobs

from ddml_fs.engine.checkpoint import Checkpoint, fingerprint
from ddml_fs.engine.devices import one_thread
from ddml_fs.engine.gates import choose_inputs, relative_strength
from ddml_fs.engine.network import Network, Sizes, encode
from ddml_fs.engine.nuisance import fit_nuisances, weigh_arms
from ddml_fs.engine.objective import Objective, Weights
from ddml_fs.engine.plan import make_shards
from ddml_fs.engine.ridge import penalty_for, ridge_base, solve_ridge
from ddml_fs.engine.smooth import solve_smooth
from ddml_fs.engine.stack import Stack
from ddml_fs.engine.train import Schedule, train
from ddml_fs.progress import Progress

# A network's penalty for a ridge penalty of 1, set by hand on Amazon and on generated domains: a
# path pays in every layer, and much larger ones close it.
L2_OF_PENALTY = 0.006
WIDE = 1000  # columns from which threads pay in the ridge's linear algebra


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
    shrinkage : float
        Penalty of the nuisances, in units of D / n. A shrunken network starts from ridge
        regressions with this penalty, and learns what they miss.
    blend : bool
        Whether networks per arm are weighed against closed forms.
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
    shrinkage: float = 0.0
    blend: bool = True
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
class Detail:
    """What a trained network tells about its problem.

    Attributes
    ----------
    strength : array of shape (D, 3)
        How strongly each input feeds each role, as a share of the strongest.
    keep : bool array of shape (D,)
        The inputs behind open gates.
    valid_loss : float
        Validation loss of the best epoch.
    encoder : Encoder
        The trained Φ.
    shares : array of shape (3,)
        The network's weights in m, mu_0 and mu_1: below 1 where closed forms stand beside it.
    """

    strength: np.ndarray
    keep: np.ndarray
    valid_loss: float
    encoder: Encoder
    shares: np.ndarray


@dataclass(frozen=True)
class Solution:
    """What one problem leaves behind.

    Attributes
    ----------
    m, g : arrays of shape (n_hold,)
        Held-out predictions of T and Y.
    mu : array of shape (2, n_hold), or None
        Held-out predictions of Y per arm.
    detail : Detail or None
        Of the network; sweeps and closed forms have none.
    """

    m: np.ndarray
    g: np.ndarray
    mu: np.ndarray | None = None
    detail: Detail | None = None


def run(
    problems,
    X,
    settings,
    nuisance="mlp",
    *,
    covariates=None,
    per_arm=False,
    detail=True,
    devices=("cpu",),
    n_jobs=None,
    memory=1.0,
    checkpoint=None,
    progress=None,
):
    """Solve all problems, in shards.

    The shards depend on the problems and the memory alone, so neither workers nor devices change
    what is computed.

    Parameters
    ----------
    problems : list of Problem
    X : array of shape (N, D)
    settings : Settings
    nuisance : "mlp", "rf", "ridge", estimator, or pair of estimators
    covariates : bool array of shape (D,), optional
        The columns that may be covariates; all unless given.
    per_arm : bool
        Whether outcome models per arm are wanted.
    detail : bool
        Whether solutions carry what their networks tell.
    devices : sequence of torch.device
        Shards take them in turn.
    n_jobs : int, optional
        joblib workers: for shards or, where there is one shard, for scikit-learn nuisances.
    memory : float
        Gigabytes that one shard may take.
    checkpoint : str or Path, optional
        Folder in which finished shards are kept.
    progress : Progress, optional
        Told how many epochs there are, and of each that is done.

    Returns
    -------
    solutions : list of Solution
        In the order of ``problems``.
    """
    if isinstance(nuisance, str) and nuisance == "ridge":
        with one_thread() if X.shape[1] < WIDE else nullcontext():
            solve_all = solve_smooth if per_arm else solve_ridge
            return [Solution(*s) for s in solve_all(problems, X, settings.shrinkage, covariates)]
    X = np.ascontiguousarray(X, dtype=str(settings.dtype).removeprefix("torch."))
    shards = make_shards(problems, X.shape[1], settings.sizes, settings.batch_size, memory)
    store = Checkpoint(
        checkpoint,
        lambda: fingerprint(problems, X, shards, settings, nuisance, covariates, per_arm),
    )
    progress = progress or Progress()
    progress.start(len(shards) * settings.epochs)

    solved = {}
    for s in range(len(shards)):
        hold = store.load(s)
        if hold is not None:
            solved[s] = (hold, None)
            progress.reach(len(solved) * settings.epochs)
    missing = [s for s in range(len(shards)) if s not in solved]
    workers = min(max(effective_n_jobs(n_jobs), len(devices)), len(missing))
    inner = n_jobs if workers <= 1 else 1

    def task(s):
        return {
            "s": s,
            "problems": [problems[i] for i in shards[s]],
            "X": X,
            "settings": settings,
            "nuisance": nuisance,
            "covariates": covariates,
            "per_arm": per_arm,
            "detail": detail,
            "device": devices[s % len(devices)],
            "n_jobs": inner,
        }

    if workers <= 1:
        for s in missing:
            _, *solved[s] = solve_shard(**task(s), progress=progress)
            store.save(s, solved[s][0])
            progress.reach(len(solved) * settings.epochs)
    else:
        work = (delayed(solve_shard)(**task(s)) for s in missing)
        for s, *result in Parallel(workers, return_as="generator_unordered")(work):
            solved[s] = result
            store.save(s, result[0])
            progress.reach(len(solved) * settings.epochs)

    solutions: dict[int, Solution] = {}
    for s, (hold, details) in solved.items():
        for k, i in enumerate(shards[s]):
            n = len(problems[i].fold.hold)
            mu = None if hold.mu is None else hold.mu[:, k, :n]
            own = None if details is None else details[k]
            solutions[i] = Solution(hold.m[k, :n], hold.g[k, :n], mu, own)
    return [solutions[i] for i in range(len(problems))]


def solve_shard(
    s,
    problems,
    X,
    settings,
    nuisance,
    covariates,
    per_arm,
    detail,
    device,
    n_jobs,
    progress=None,
):
    """Solve the problems of one shard, on the device it is told, in this process.

    Returns
    -------
    s : int
        The shard's number.
    hold : Predictions
    details : list of Detail, or None
    """
    rows = torch.from_numpy(X if X.flags.writeable else X.copy())
    with one_thread():
        stack = Stack(problems, rows, device, settings.batch_size, settings.dtype, covariates)
        if settings.shrinkage:
            stack.start_from(ridge_base(problems, X, settings.shrinkage, covariates))
        return s, *solve(stack, settings, nuisance, per_arm, detail, n_jobs, progress)


def solve(stack, settings, nuisance, per_arm=False, detail=True, n_jobs=None, progress=None):
    """Solve one stack: its held-out predictions, and what its networks tell."""
    sizes, weights = settings.sizes, settings.weights
    keep, strength = stack.keep, None
    if settings.screen is not None:
        net = Network(stack, keep, sizes)
        objective = Objective(net, stack, sizes, weights)
        train(net, objective, stack, settings.screen, progress)
        keep = choose_inputs(net, objective, stack, settings.slack)
        strength = relative_strength(net.row_norms()).cpu().numpy()

    narrow = stack.select(keep.any(0).nonzero()[:, 0])
    schedule, shrunken, rate = settings.final, settings.shrinkage > 0, None
    if shrunken:
        D = int(stack.keep.sum(1).max())
        penalty = penalty_for(settings.shrinkage, D, stack.steps * stack.B)
        schedule, rate = shortened(schedule, penalty), 1 / (1 + penalty)
    net = Network(narrow, keep, sizes, silent=shrunken)
    objective = Objective(net, narrow, sizes, replace(weights, even=shrunken))
    valid_loss = train(net, objective, narrow, schedule, progress).cpu()
    hold, valid = fit_nuisances(
        net,
        objective,
        narrow,
        nuisance,
        per_arm=per_arm,
        schedule=settings.final,
        sizes=sizes,
        n_jobs=n_jobs,
        rate=rate,
    )
    if per_arm and settings.blend:
        hold = weigh_arms(stack, hold, valid)
    if not detail:
        return hold, None
    if strength is None:
        strength = np.zeros((stack.P, stack.D, 3))
        strength[:, narrow.columns] = relative_strength(net.row_norms()).cpu().numpy()
    shares = np.ones((stack.P, 3)) if hold.shares is None else hold.shares
    details = [
        Detail(
            strength[i], keep[i].numpy(), float(valid_loss[i]), _encoder(net, narrow, i), shares[i]
        )
        for i in range(stack.P)
    ]
    return hold, details


def shortened(schedule, penalty):
    """Training of a shrunken network: the fewer rows a column has, the less beyond the ridge.

    Both the epochs and the peak are divided by 1 + λ: what is learned shrinks by its square, as
    confounding that the ridge leaves in both nuisances weighs in the effect.
    """
    return replace(
        schedule,
        epochs=max(1, round(schedule.epochs / (1 + penalty))),
        peak=schedule.peak / (1 + penalty),
        l2=L2_OF_PENALTY * penalty,
    )


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
