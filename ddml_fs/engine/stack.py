"""The tensors of a stack: one matrix X, and what each problem reads from it."""

from copy import copy
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ddml_fs.engine.plan import batch_size_for

BATCHES_A_READ = 8  # few enough to hold, many enough that reading costs little a batch


class Batch(NamedTuple):
    """Rows of every fold, scaled: ``x`` (G, B, D) is shared by the p problems of a fold."""

    x: Tensor  # (G, B, D)
    T: Tensor  # (P, B)
    Y: Tensor  # (P, B)
    base: Tensor | None = None  # (P, B, 2), what the heads' outputs are added to


class Stack:
    """G folds with p problems each, packed for the device.

    Everything is scaled by the rows that are trained on, and by no others. Binary targets
    stay 0/1.

    Parameters
    ----------
    problems : list of Problem
        Fold by fold, as :func:`ddml_fs.engine.plan.group_by_shape` orders them.
    X : Tensor of shape (N, D)
        All rows, on the CPU.
    device : torch.device
        Where batches are made.
    batch_size : int or "auto"
        Rows of a batch.
    dtype : torch.dtype
        Of all tensors, and so of the networks.
    covariates : bool array of shape (D,), optional
        The columns that may be covariates; all unless given.
    """

    def __init__(
        self,
        problems,
        X,
        device="cpu",
        batch_size="auto",
        dtype=torch.float32,
        covariates=None,
    ):
        self.problems = problems
        self.folds = list({id(q.fold): q.fold for q in problems}.values())
        self.G, self.p = len(self.folds), len(problems) // len(self.folds)
        self.P, self.D = len(problems), X.shape[1]
        n_fit = len(self.folds[0].fit)
        self.B = batch_size_for(n_fit, batch_size)
        self.steps = n_fit // self.B
        self.device, self.dtype = torch.device(device), dtype

        T, t_index = _unique_vectors([vector(q.treatment, X.numpy()) for q in problems])
        Y, y_index = _unique_vectors([q.outcome for q in problems])
        binary_T, binary_Y = ([getattr(q, b) for q in problems] for b in ("binary_T", "binary_Y"))
        x_scale = [_mean_sd(X[f.fit].double(), 0) for f in self.folds]
        t_scale = [_mean_sd(T[i, q.fold.fit], -1) for q, i in zip(problems, t_index, strict=True)]
        y_scale = [_mean_sd(Y[i, q.fold.fit], -1) for q, i in zip(problems, y_index, strict=True)]
        t_scale, y_scale = (
            [(0.0, 1.0) if b else scale for b, scale in zip(binary, scales, strict=True)]
            for binary, scales in ((binary_T, t_scale), (binary_Y, y_scale))
        )

        odds_T, odds_Y = (
            [
                _log_odds(V[i, q.fold.fit]) if b else 0.0
                for q, i, b in zip(problems, index, binary, strict=True)
            ]
            for V, index, binary in ((T, t_index, binary_T), (Y, y_index, binary_Y))
        )
        self.t_index, self.y_index = (i[:, None].to(self.device) for i in (t_index, y_index))
        self.X, self.T, self.Y = (a.to(self.device, dtype) for a in (X, T, Y))
        self.x_mean, self.x_sd = self._columns(x_scale, (self.G, 1, self.D))
        self.t_mean, self.t_sd = self._columns(t_scale, (self.P, 1))
        self.y_mean, self.y_sd = self._columns(y_scale, (self.P, 1))
        # Log-odds of binary targets' means, 0 for others, (P, 2).
        self.log_odds = torch.tensor([odds_T, odds_Y]).T.to(self.device, dtype)
        self.base = None
        self.binary_T, self.binary_Y = self._kinds(binary_T), self._kinds(binary_Y)
        self.columns = torch.arange(self.D)
        self.keep = self._inputs(covariates)

    def _columns(self, scales, shape):
        pairs = ([torch.as_tensor(s[k]) for s in scales] for k in (0, 1))
        return [torch.stack(a).reshape(shape).to(self.device, self.dtype) for a in pairs]

    def _kinds(self, binary):
        """One bool where all targets are of one kind, else (P, 1)."""
        if len(set(binary)) == 1:
            return bool(binary[0])
        return torch.tensor(binary)[:, None].to(self.device)

    def _inputs(self, covariates):
        """Inputs that a problem may read, (P, D): all covariates but its own treatment."""
        keep = torch.ones(self.P, self.D, dtype=torch.bool)
        if covariates is not None:
            keep &= torch.as_tensor(covariates)
        for i, problem in enumerate(self.problems):
            if not isinstance(problem.treatment, np.ndarray):
                keep[i, problem.treatment] = False
        return keep

    def start_from(self, base):
        """Add the heads' outputs to these values (P, N, 2), those of continuous targets scaled."""
        base = torch.as_tensor(base)
        for k, (mean, sd) in enumerate(((self.t_mean, self.t_sd), (self.y_mean, self.y_sd))):
            base[..., k] = (base[..., k] - mean.cpu()) / sd.cpu()
        self.base = base.to(self.device, self.dtype)

    def select(self, columns):
        """The same stack with these columns of X only, for networks that read no others."""
        narrow = copy(self)
        columns = torch.as_tensor(columns)
        narrow.columns = self.columns[columns]
        place = columns.to(self.device)
        narrow.X, narrow.x_mean, narrow.x_sd = (
            a.index_select(-1, place) for a in (self.X, self.x_mean, self.x_sd)
        )
        return narrow

    def batch(self, rows):
        """Read the rows (G, B) of the folds."""
        rows = rows.to(self.device)
        x = self.X[rows].sub_(self.x_mean).div_(self.x_sd)
        own = rows.repeat_interleave(self.p, 0)  # (P, B)
        T = (self.T[self.t_index, own] - self.t_mean) / self.t_sd
        Y = (self.Y[self.y_index, own] - self.y_mean) / self.y_sd
        if self.base is None:
            return Batch(x, T, Y)
        return Batch(x, T, Y, self.base[torch.arange(self.P, device=self.device)[:, None], own])

    def generators(self):
        """One generator a fold, for the order of its batches."""
        return [torch.Generator().manual_seed(f.seed) for f in self.folds]

    def epoch(self, generators):
        """Yield one epoch of batches; the rows left over change from epoch to epoch."""
        order = torch.stack(
            [
                torch.as_tensor(f.fit)[torch.randperm(len(f.fit), generator=g)][
                    : self.steps * self.B
                ]
                for f, g in zip(self.folds, generators, strict=True)
            ]
        )
        for rows in order.to(self.device).split(BATCHES_A_READ * self.B, 1):
            parts = (a.split(self.B, 1) for a in self.batch(rows) if a is not None)
            yield from map(Batch, *parts)

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
            1 for rows, 0 for padding.
        """
        parts = [getattr(f, part) for f in self.folds]
        n = max(len(r) for r in parts)
        rows = np.stack([np.concatenate([r, np.full(n - len(r), r[0])]) for r in parts])
        own = torch.as_tensor(np.stack([np.arange(n) < len(r) for r in parts]))
        return torch.as_tensor(rows), own.repeat_interleave(self.p, 0).to(self.device, self.dtype)

    def unscale_T(self, T):
        """Treatments (P, n) on their own scale."""
        return T * self.t_sd + self.t_mean

    def unscale_Y(self, Y):
        """Outcomes (P, n) on their own scale."""
        return Y * self.y_sd + self.y_mean


def vector(treatment, X):
    """A treatment as an array (N,), be it given or a column of X."""
    return treatment if isinstance(treatment, np.ndarray) else X[:, treatment]


def _unique_vectors(vectors):
    """Stack the distinct vectors, and say which one each problem reads."""
    first: dict = {}
    keys = [(v.__array_interface__["data"][0], v.strides) for v in vectors]
    for key, vector in zip(keys, vectors, strict=True):
        first.setdefault(key, vector)
    place = {key: i for i, key in enumerate(first)}
    stacked = torch.from_numpy(np.stack([np.asarray(v, dtype=np.float64) for v in first.values()]))
    return stacked, torch.tensor([place[k] for k in keys])


def _mean_sd(values, dim):
    """Mean and standard deviation; columns that do not vary are left unscaled."""
    sd = values.std(dim)
    return values.mean(dim), torch.where(sd > 1e-12, sd, torch.ones_like(sd))


def _log_odds(labels):
    """Log-odds of the mean of 0/1 labels, finite where all are alike."""
    return float(torch.logit(labels.mean(), 0.5 / len(labels)))
