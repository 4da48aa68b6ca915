"""The tensors of a stack: one matrix X, and the targets and inputs of each problem."""

from copy import copy
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ddml_fs.engine.plan import batch_size_for, group_by_shape

BATCHES_PER_READ = 8  # few enough to fit into memory, many enough for a low cost per batch
COLUMNS_PER_READ = 64  # in double precision at once
CANCELLED = 1e-6  # ratio of variance and mean square below which their difference is not precise


class Batch(NamedTuple):
    """Rows of every fold, scaled: ``x`` (G, B, D) is shared by the p problems of a fold."""

    x: Tensor  # (G, B, D)
    T: Tensor  # (P, B)
    Y: Tensor  # (P, B)
    base: Tensor | None = None  # (P, B, 2), to which the outputs of the heads are added
    weight: Tensor | None = None  # (P, B), of the rows, if they have weights
    own: Tensor | None = None  # (P, B, M), columns whose part in x is subtracted, with a trunk


class Scale(NamedTuple):
    """Means and standard deviations (P, 1) of the problems' targets."""

    mean: Tensor  # of the centred targets, on the device
    sd: Tensor
    level: np.ndarray  # of the targets themselves, in double precision
    unit: np.ndarray

    def undo(self, values):
        """Values (..., P, n) on the targets' own scale, as arrays in double precision."""
        return values.cpu().double().numpy() * self.unit + self.level


def tensor_of(array):
    """The tensor of an array; arrays that workers share can only be read, and are copied."""
    return torch.from_numpy(array if array.flags.writeable else array.copy())


class Stack:
    """G folds with p problems each, packed for the device.

    Columns and targets are scaled by the rows of the fit only. Binary targets stay 0/1.

    Parameters
    ----------
    plan : Plan
    members : int array of shape (P,)
        Numbers of the problems, fold by fold, as :func:`ddml_fs.engine.plan.make_shards` orders
        them.
    X : Tensor of shape (N, D)
        All rows minus ``x_offset``, on the CPU or already on the device.
    device : torch.device
        Where batches are made.
    batch_size : int or "auto"
        Number of rows in a batch.
    dtype : torch.dtype
        Of all tensors, and so of the networks.
    x_offset : array of shape (D,), optional
        Offset that was subtracted from the columns, to keep their precision.
    x_scale : array of shape (K, 2, D), optional
        What :func:`scales_by_fold` returns; computed by default.
    """

    own_W: Tensor | None = None  # (P, M, Q), of a trunk

    def __init__(
        self,
        plan,
        members,
        X,
        device="cpu",
        batch_size="auto",
        dtype=torch.float32,
        x_offset=None,
        x_scale=None,
    ):
        fold, outcome, treatment = plan.problem(np.asarray(members))
        numbers = fold[np.sort(np.unique(fold, return_index=True)[1])]
        self.plan, self.batch_size = plan, batch_size
        self.folds = [plan.folds[k] for k in numbers]
        self.seeds = [int(seed) for seed in plan.seeds[fold]]
        self.G, self.P = len(self.folds), len(members)
        self.p = self.P // self.G
        n_fit = len(self.folds[0].fit)
        self.B = batch_size_for(n_fit, batch_size)
        self.steps = n_fit // self.B
        self.device, self.dtype, self.x_offset = torch.device(device), dtype, x_offset

        binary_T, binary_Y = plan.binary_T[treatment], plan.binary_Y[outcome]
        self.binary_T, self.binary_Y = self._kinds(binary_T), self._kinds(binary_Y)
        self.weight = None
        if plan.weighted:
            self.weight = torch.as_tensor(plan.weight).to(self.device, dtype)
        self.T, self.t_place, self.t_scale, odds_T = self._targets(plan.T, treatment, binary_T)
        self.Y, self.y_place, self.y_scale, odds_Y = self._targets(plan.Y, outcome, binary_Y)
        # Log-odds of binary targets' means, 0 for others, (P, 2).
        self.log_odds = torch.stack([odds_T, odds_Y], 1).to(self.device, dtype)
        self.base = None
        self._read(X, treatment, None if x_scale is None else x_scale[numbers])

    def _read(self, X, treatment, x_scale=None):
        """Set the inputs of the problems, whose treatments are given, (P,)."""
        self.D = X.shape[1]
        if self.x_offset is None:
            self.x_offset = np.zeros(self.D)
        if x_scale is None:
            x_scale = scales_by_fold(X.numpy(), self.folds)
        self.X = X.to(self.device, self.dtype)
        self.x_mean, self.x_sd = (
            torch.as_tensor(x_scale[:, i][:, None]).to(self.device, self.dtype) for i in (0, 1)
        )
        self.columns = torch.arange(self.D)
        # Inputs that a problem may read, (P, D): all covariates except its own treatment.
        self.keep = torch.as_tensor(np.stack([self.plan.inputs(f) for f in treatment]))

    def _targets(self, table, columns, binary):
        """Distinct targets (U, N), and for each problem its target and scale.

        They are centred and scaled in double precision, so that a large offset does no harm.

        Returns
        -------
        values : Tensor of shape (U, N)
            Centred by the mean of all rows; binary targets are unchanged.
        place : Tensor of shape (P,)
        scale : Scale
            Of the problems.
        log_odds : Tensor of shape (P,)
        """
        own, index = np.unique(columns, return_inverse=True)
        values = torch.as_tensor(np.ascontiguousarray(table[:, own].T, dtype=np.float64))
        both = torch.zeros(len(own), dtype=torch.bool)
        both[torch.as_tensor(index)] = torch.as_tensor(binary)
        offset = torch.where(both, 0.0, values.mean(1))
        values = values - offset[:, None]
        place, binary = torch.as_tensor(index), torch.as_tensor(binary)
        found = []
        for fold, own in zip(self.folds, place.split(self.p), strict=True):
            fits = values.index_select(1, torch.as_tensor(fold.fit))[own]  # (p, n)
            weight = torch.as_tensor(self.plan.weight[fold.fit])
            found.append((*_mean_sd(fits, -1), _log_odds(fits, weight)))
        mean, sd, odds = (torch.cat(parts) for parts in zip(*found, strict=True))
        mean, sd = torch.where(binary, 0.0, mean), torch.where(binary, 1.0, sd)
        odds = torch.where(binary, odds, 0.0)
        scale = Scale(
            mean[:, None].to(self.device, self.dtype),
            sd[:, None].to(self.device, self.dtype),
            (offset[place] + mean)[:, None].numpy(),
            sd[:, None].numpy(),
        )
        values = values.to(self.device, self.dtype)
        return values, place.to(self.device), scale, odds

    def _kinds(self, binary):
        """One bool if all targets are of one kind, else (P, 1)."""
        if binary.all() or not binary.any():
            return bool(binary[0])
        return torch.as_tensor(binary)[:, None].to(self.device)

    def penalty(self, shrinkage):
        """The ridge penalty λ, the same for all folds that could share a stack."""
        for group in group_by_shape(self.plan, self.batch_size):
            if any(self.plan.folds[k] is self.folds[0] for k in group):
                return self.plan.penalty(shrinkage, group[0])
        raise ValueError("the folds of a stack must be folds of its plan.")

    def start_from(self, base):
        """Set the base (2, P, N) of the outputs, see :class:`~ddml_fs.engine.start.RidgeStart`."""
        self.base = tensor_of(base).to(self.device, self.dtype, copy=True)
        for own, scale in zip(self.base, (self.t_scale, self.y_scale), strict=True):
            own.sub_(scale.mean).div_(scale.sd)

    def select(self, keep):
        """The same stack with the inputs ``keep`` (P, D), without columns that no problem reads."""
        narrow = copy(self)
        columns = keep.any(0).nonzero()[:, 0]
        narrow.columns, narrow.keep = self.columns[columns], keep[:, columns]
        place = columns.to(self.device)
        narrow.X, narrow.x_mean, narrow.x_sd = (
            a.index_select(-1, place) for a in (self.X, self.x_mean, self.x_sd)
        )
        return narrow

    def batch(self, rows):
        """Read the rows (G, B) of the folds."""
        rows = rows.to(self.device)
        x, taken_out = self._inputs(rows)
        T, Y = (
            self._values(table, place, rows).sub_(scale.mean).div_(scale.sd)
            for table, place, scale in (
                (self.T, self.t_place, self.t_scale),
                (self.Y, self.y_place, self.y_scale),
            )
        )
        base = weight = None
        if self.base is not None:
            parts = zip(self.base.split(self.p, 1), rows, strict=True)
            base = torch.cat([part.index_select(2, own) for part, own in parts], 1)
            base = base.permute(1, 2, 0)
        if self.weight is not None:
            weight = self.weight[rows].repeat_interleave(self.p, 0)
        return Batch(x, T, Y, base, weight, taken_out)

    def _values(self, table, place, rows):
        """Values (P, B) of a table (U, N), given each problem's place in it, (P,).

        They are those of the rows (G, B) of the folds. Two selections are several times faster than
        one of all pairs of a place and a row.
        """
        parts = zip(place.chunk(self.G), rows, strict=True)
        return torch.cat([table.index_select(1, own).index_select(0, at) for at, own in parts])

    def _inputs(self, rows):
        """Inputs of rows (G, B), and what is subtracted from them: nothing."""
        x = self.X.index_select(0, rows.flatten()).unflatten(0, rows.shape)  # faster than X[rows]
        return x.sub_(self.x_mean).div_(self.x_sd), None

    def generators(self):
        """One generator per fold, for the order of its batches."""
        return [torch.Generator().manual_seed(f.seed) for f in self.folds]

    def epoch(self, generators):
        """Yield the batches of one epoch. The last rows do not fill a batch and are skipped."""
        order = torch.stack(
            [
                torch.as_tensor(f.fit)[torch.randperm(len(f.fit), generator=g)][
                    : self.steps * self.B
                ]
                for f, g in zip(self.folds, generators, strict=True)
            ]
        )
        for rows in order.to(self.device).split(BATCHES_PER_READ * self.B, 1):
            batch = self.batch(rows)
            parts = {
                name: a.split(self.B, 1) for name, a in batch._asdict().items() if a is not None
            }
            for own in zip(*parts.values(), strict=True):
                yield Batch(**dict(zip(parts, own, strict=True)))

    def rows(self, part):
        """The rows of a part of the folds, padded to one length.

        Parameters
        ----------
        part : {"fit", "valid", "hold", "train"}

        Returns
        -------
        rows : Tensor of shape (G, n)
            Padded with repeats of a fold's first row.
        weight : Tensor of shape (P, n)
            Weights of the rows, by default 1; 0 for padding.
        """
        parts = [getattr(f, part) for f in self.folds]
        n = max(len(r) for r in parts)
        rows = np.stack([np.concatenate([r, np.full(n - len(r), r[0])]) for r in parts])
        own = np.stack([np.arange(n) < len(r) for r in parts])
        weight = torch.as_tensor(own * self.plan.weight[rows]).repeat_interleave(self.p, 0)
        return torch.as_tensor(rows), weight.to(self.device, self.dtype)


def scales_by_fold(X, folds):
    """Means and standard deviations of the columns of X in the rows to fit on.

    Parameters
    ----------
    X : array of shape (N, D)
    folds : list of Fold

    Returns
    -------
    scale : array of shape (K, 2, D)
        In double precision.
    """
    inside = np.zeros((len(folds), len(X)))
    for k, fold in enumerate(folds):
        inside[k, fold.fit] = 1
    n = inside.sum(1, keepdims=True)
    scale = np.empty((len(folds), 2, X.shape[1]))
    for start in range(0, X.shape[1], COLUMNS_PER_READ):
        part = X[:, start : start + COLUMNS_PER_READ].astype(np.float64)
        mean = inside @ part / n
        part *= part
        square = inside @ part / n
        variance = (square - mean**2) * n / np.maximum(n - 1, 1)
        own = slice(start, start + COLUMNS_PER_READ)
        scale[:, 0, own], scale[:, 1, own] = mean, np.sqrt(np.maximum(variance, 0))
        # Next to a large mean, the difference of the two is rounding.
        for k, j in zip(*np.nonzero(variance <= CANCELLED * square), strict=True):
            values = torch.as_tensor(X[folds[k].fit, start + j], dtype=torch.float64)
            scale[k, :, start + j] = torch.stack(_mean_sd(values, 0)).numpy()
    return scale


def _mean_sd(values, dim):
    """Mean and standard deviation; the latter is 1 for constant columns."""
    sd = values.std(dim)
    return values.mean(dim), torch.where(sd > 1e-12, sd, torch.ones_like(sd))


def _log_odds(labels, weight):
    """Log-odds (p,) of the weighted means of 0/1 labels (p, n), finite even if all are equal."""
    return torch.logit(labels @ weight / weight.sum(), 0.5 / len(weight))
