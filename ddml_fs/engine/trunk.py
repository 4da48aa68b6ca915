"""The shared trunk: a first layer that serves all treatments of a fold.

For wide tables, the networks of a fold read the same Q projections S = X·W of the columns, in place
of the columns themselves. W is chosen once per fold, on the rows of the fit: the leading principal
components, and the ridge regression of every outcome. A problem must not see its own treatment, so
what the treatment's columns add to S is subtracted: x_j·W_j, a correction of rank one for each
column. So the cost of one more treatment does not depend on the number of columns.
"""

from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse.linalg import LinearOperator, cg

from ddml_fs.engine.plan import penalty_for
from ddml_fs.engine.stack import Stack, tensor_of
from ddml_fs.engine.wide_rows import Standard

# Of 0, 4, 16 and 48, a compromise between three kinds of data (python -m benchmarks.trunk).
COMPONENTS = 16
SPARE, ROUNDS = 8, 4  # of the randomised singular value decomposition
DIRECTION_SHRINKAGE = 20.0  # of the ridge regression of the outcome, as that of a sweep


class Trunk(NamedTuple):
    """The projections of one fold: S = (X − mean)·W, of variance 1 in the rows of the fit."""

    S: np.ndarray  # (N, Q)
    W: np.ndarray  # (D, Q), 0 for columns that are no covariates
    mean: np.ndarray  # (D,)


def n_projections(plan):
    """Q: the components, and one direction per outcome."""
    return min(COMPONENTS, int(plan.covariates.sum())) + plan.Y.shape[1]


def make_trunk(plan, k):
    """The trunk of fold k.

    Parameters
    ----------
    plan : Plan
    k : int

    Returns
    -------
    trunk : Trunk
    """
    rows, use = plan.folds[k].fit, np.flatnonzero(plan.covariates)
    A = Standard.of(plan.X, rows, plan.weight, np.float32)
    parts = [components(A, rows, use, np.random.RandomState(plan.seeds[k]))]
    parts += [direction(A, rows, use, plan.Y[rows, c])[:, None] for c in range(plan.Y.shape[1])]
    V = np.hstack(parts).astype(np.float32)  # (d, Q)
    S = np.empty((len(plan.Y), V.shape[1]), np.float32)
    for at, part in A.row_chunks(np.arange(len(S)), use):
        S[at] = part @ V
    sd = S[rows].std(0)
    scale = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > 1e-6)
    W = np.zeros((A.shape[1], V.shape[1]), np.float32)
    W[use] = V * A.inverse[use, None] * scale
    return Trunk(S * scale, W, A.mean)


def components(A, rows, use, rng):
    """Leading principal components (d, q) of some rows, by a randomised decomposition."""
    q = min(COMPONENTS, len(use))
    V = rng.standard_normal((len(use), min(q + SPARE, len(use)))).astype(np.float32)
    for _ in range(ROUNDS):
        total = np.zeros_like(V)
        for _, part in A.row_chunks(rows, use):
            total += part.T @ (part @ V)
        V = np.linalg.qr(total)[0]
    image = np.vstack([part @ V for _, part in A.row_chunks(rows, use)])
    values, turn = np.linalg.eigh(image.T @ image)
    return V @ turn[:, np.argsort(-values, kind="stable")[:q]]


def direction(A, rows, use, y):
    """Coefficients (d,) of a ridge regression of an outcome on the rows of the fit."""
    n, every = len(rows), np.zeros(A.shape[0])
    penalty = penalty_for(DIRECTION_SHRINKAGE, len(use), n)

    def sums(values):
        every[rows] = values / n
        return A.cross(every)[use]

    def product(beta):
        whole = np.zeros(A.shape[1])
        whole[use] = beta.ravel()
        return sums(A.dot(whole)[rows]) + penalty * whole[use]

    G = LinearOperator((len(use), len(use)), matvec=product, dtype=np.float64)
    return cg(G, sums(y - y.mean(dtype=np.float64)), maxiter=50)[0]


class ShardTrunk(NamedTuple):
    """What the problems of a shard read: the projections of G folds, and their own columns.

    Attributes
    ----------
    S : array of shape (G, N, Q)
    own : array of shape (U, N)
        The U columns that some problem must not see, centred.
    place : int array of shape (P, M)
        For each problem the places of at most M such columns.
    mean : array of shape (P, M)
        Their means in the rows of the fit.
    W : array of shape (P, M, Q)
        Their rows of W; 0 if a problem has fewer than M of them.
    """

    S: np.ndarray
    own: np.ndarray
    place: np.ndarray
    mean: np.ndarray
    W: np.ndarray

    def part(self, problems, folds):
        """The same for some problems, given their places and those of their folds."""
        own = (a[problems] for a in (self.place, self.mean, self.W))
        return ShardTrunk(self.S[folds], self.own, *own)


def trunk_of_shard(plan, members, trunks):
    """The trunk of some problems, from those of their folds.

    Parameters
    ----------
    plan : Plan
    members : int array of shape (P,)
    trunks : callable
        From the number of a fold to its Trunk.
    """
    fold, _, treatment = plan.problem(members)
    blocks = {f: plan.block_of(f) for f in np.unique(treatment)}
    columns = np.unique(np.concatenate([*blocks.values(), np.empty(0, int)])).astype(int)
    centre = plan.X[:, columns].mean(0, dtype=np.float64)
    most = max(map(len, blocks.values()))
    numbers = fold[np.sort(np.unique(fold, return_index=True)[1])]
    parts = {k: trunks(k) for k in numbers}
    S = np.stack([parts[k].S for k in numbers])
    place = np.zeros((len(members), most), dtype=np.int64)
    mean = np.zeros(place.shape, np.float32)
    W = np.zeros((*place.shape, S.shape[-1]), np.float32)
    for i, (k, f) in enumerate(zip(fold, treatment, strict=True)):
        block = blocks[f]
        at = np.searchsorted(columns, block)
        place[i, : len(block)] = at
        mean[i, : len(block)] = parts[k].mean[block] - centre[at]
        W[i, : len(block)] = parts[k].W[block]
    own = np.ascontiguousarray((plan.X[:, columns] - centre).T, dtype=np.float32)
    return ShardTrunk(S, own, place, mean, W)


class TrunkStack(Stack):
    """A stack whose problems read the projections of a trunk, not the columns of X.

    ``trunk`` (ShardTrunk) takes the place of X; other parameters are those of
    :class:`~ddml_fs.engine.stack.Stack`. Batches have x (G, B, Q), the projections, and
    own (P, B, M), the columns whose contributions the networks subtract.
    """

    def _read(self, trunk, treatment, x_scale=None):
        self.D = trunk.S.shape[-1]
        self.X = tensor_of(trunk.S).to(self.device, self.dtype)
        self.own = tensor_of(trunk.own).to(self.device, self.dtype)
        self.own_place = tensor_of(trunk.place).flatten().to(self.device)  # (P·M,)
        self.own_mean = tensor_of(trunk.mean)[:, None].to(self.device, self.dtype)
        self.own_W = tensor_of(trunk.W).to(self.device, self.dtype)
        self.fold_index = torch.arange(self.G, device=self.device)[:, None]
        self.columns = torch.arange(self.D)
        self.keep = torch.ones(self.P, self.D, dtype=torch.bool)

    def _inputs(self, rows):
        x = self.X[self.fold_index, rows]
        own = self._values(self.own, self.own_place, rows)  # (P·M, B)
        return x, own.unflatten(0, (self.P, self.own_mean.shape[2])).mT - self.own_mean
