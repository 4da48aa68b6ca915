"""The plan: folds, problems, and the shards into which problems are packed."""

import math
from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from ddml_fs.engine.folds import draw_seed, make_folds
from ddml_fs.weights import varies

SMALLEST_BATCH, LARGEST_BATCH = 16, 1024
LARGEST_SHARD = 256  # problems: enough to use two cores well, and a lost shard costs little time
LARGEST_WITH_TRUNK = 128  # as their weights are few, and half of the memory is that of the rows
LEAST_PENALTY = 1e-6
# Columns; wider tables are computed in little memory, and networks share a trunk. There, separate
# encoders take more than twice the time of a trunk (python -m benchmarks.trunk).
WIDE = 1000


@dataclass(frozen=True, eq=False)
class Plan:
    """All problems: every treatment with every outcome on every fold.

    Attributes
    ----------
    X : array of shape (N, D)
        The covariates, and treatments that are columns of X.
    T : array of shape (N, F)
        The treatments; X itself in a sweep over all columns.
    own : int array of shape (F,)
        The column of X of each treatment, which is then not a covariate; −1 if it is not in X.
    binary_T : bool array of shape (F,)
        Which treatments are 0/1.
    Y : array of shape (N, C)
        The outcomes.
    binary_Y : bool array of shape (C,)
        Which outcomes the score treats as 0/1 labels, predicted as probabilities.
    covariates : bool array of shape (D,)
        The columns that may be covariates.
    folds : list of Fold
        The folds of one random split after another.
    seeds : int array
        Seeds of the initial weights, one per fold. A treatment has the same effect alone and in a
        sweep.
    block : int array of shape (D,)
        Block of each column. No column of a treatment's block is a covariate of this treatment.
    domain : int array of shape (N,)
        Domains, for nuisances with one intercept per domain.
    weight : array of shape (N,)
        Weights of the rows, with mean 1. Rows with weight 0 are only predicted.
    n_repeats : int
        Number of random splits, R.
    """

    X: np.ndarray
    T: np.ndarray
    own: np.ndarray
    binary_T: np.ndarray
    Y: np.ndarray
    binary_Y: np.ndarray
    covariates: np.ndarray
    folds: list
    seeds: np.ndarray
    block: np.ndarray
    domain: np.ndarray
    weight: np.ndarray
    n_repeats: int = 1

    @property
    def shape(self):
        """Numbers of folds, outcomes and treatments: the axes of the problems."""
        return len(self.folds), self.Y.shape[1], self.T.shape[1]

    @property
    def n_problems(self):
        """P."""
        return math.prod(self.shape)

    @property
    def zero_one_Y(self):
        """Which outcomes have only the values 0 and 1, a bool array (C,)."""
        return ((self.Y == 0) | (self.Y == 1)).all(0)

    @property
    def weighted(self):
        """Whether the weights of the training rows differ."""
        return varies(self.weight)

    @property
    def n_folds(self):
        """Number of folds of one split, K."""
        return len(self.folds) // self.n_repeats

    def problem(self, i):
        """Numbers of the fold, the outcome and the treatment of problem i, or of many."""
        return np.unravel_index(i, self.shape)

    def part(self, treatments, outcomes):
        """The plan for some of the treatments and outcomes only."""
        return replace(
            self,
            T=self.T[:, treatments],
            own=self.own[treatments],
            binary_T=self.binary_T[treatments],
            Y=self.Y[:, outcomes],
            binary_Y=self.binary_Y[outcomes],
        )

    def block_of(self, f):
        """The covariates that share a block with treatment f and are left out for it, (k,)."""
        if self.own[f] < 0:
            return np.empty(0, dtype=int)
        return np.flatnonzero(self.covariates & (self.block == self.block[self.own[f]]))

    def inputs(self, f):
        """The columns of X that are covariates of treatment f, a bool array (D,)."""
        use = self.covariates.copy()
        if self.own[f] >= 0:
            use &= self.block != self.block[self.own[f]]
        return use

    def penalty(self, shrinkage, k=0):
        """The ridge penalty λ = shrinkage · D/n, for D covariates and n training rows of fold k.

        It is the best penalty if the signal-to-noise ratio is 1 / shrinkage. n is the sum of the
        weights.
        """
        n = self.weight[self.folds[k].train].sum()
        return penalty_for(shrinkage, self.covariates.sum(), n)


def penalty_for(shrinkage, D, n):
    """The ridge penalty λ = shrinkage · D/n for D columns and n rows.

    Examples
    --------
    >>> penalty_for(20.0, 400, 1600)
    5.0
    """
    return max(float(shrinkage * D / n), LEAST_PENALTY)


def make_plan(
    X,
    outcomes,
    rng,
    *,
    treatments=None,
    own=None,
    binary_T,
    label=False,
    covariates=None,
    block=None,
    domain=None,
    n_folds=5,
    n_repeats=1,
    strata=None,
    groups=None,
    weight=None,
    folds=None,
):
    """Plan the cross-fitting of every treatment with every outcome.

    Parameters
    ----------
    X : array of shape (N, D)
    outcomes : array of shape (N, C)
    rng : RandomState
    treatments : array of shape (N, F), optional
        By default the columns of X.
    own : int array of shape (F,), optional
        See :class:`Plan`. By default, given treatments are not columns of X.
    binary_T : bool array of shape (F,)
    label : bool
        Whether the outcomes are 0/1 labels.
    covariates : bool array of shape (D,), optional
        By default all columns.
    block : int array of shape (D,), optional
        By default each column is its own block.
    domain : int array of shape (N,), optional
    n_folds, n_repeats : int
    strata, groups : int arrays of shape (N,), optional
        As in :func:`make_folds`.
    weight : array of shape (N,), optional
        By default 1 for all rows.
    folds : list of Fold, optional
        Given folds of one split; by default they are drawn.

    Returns
    -------
    plan : Plan

    Examples
    --------
    >>> X = np.arange(40.0).reshape(20, 2)
    >>> plan = make_plan(X, X[:, :1], np.random.RandomState(0), binary_T=[False, False], n_folds=4)
    >>> plan.shape, plan.inputs(1).tolist()
    ((4, 1, 2), [True, False])
    """
    given, folds, seeds = folds, [], []
    weight = np.ones(len(X)) if weight is None else weight
    options = {"strata": strata, "groups": groups, "weight": weight}
    for _ in range(n_repeats):
        folds += given or make_folds(len(X), n_folds, rng, **options)
        seeds += [draw_seed(rng) for _ in range(n_folds)]
    if treatments is None:
        treatments, own = X, np.arange(X.shape[1])
    if own is None:
        own = np.full(treatments.shape[1], -1)
    if covariates is None:
        covariates = np.ones(X.shape[1], dtype=bool)
    return Plan(
        X=X,
        T=treatments,
        own=np.asarray(own),
        binary_T=np.asarray(binary_T),
        Y=outcomes,
        binary_Y=np.full(outcomes.shape[1], label),
        covariates=np.asarray(covariates),
        folds=folds,
        seeds=np.array(seeds),
        block=np.arange(X.shape[1]) if block is None else np.asarray(block),
        domain=np.zeros(len(X), int) if domain is None else np.asarray(domain),
        weight=weight,
        n_repeats=n_repeats,
    )


def batch_size_for(n_rows, batch_size="auto"):
    """Number of rows in a batch, B; "auto" is the largest power of two up to a 16th of the rows.

    So small data have enough steps per epoch, and large data have large batches, which are fast.

    Examples
    --------
    >>> batch_size_for(4320), batch_size_for(500), batch_size_for(10**6)
    (256, 16, 1024)
    """
    if batch_size == "auto":
        batch_size = 1 << max(0, (n_rows // 16).bit_length() - 1)
        batch_size = min(max(batch_size, SMALLEST_BATCH), LARGEST_BATCH)
    return min(batch_size, n_rows)


def group_by_shape(plan, batch_size="auto"):
    """Group folds with the same size and number of batches, so that they can share a stack.

    Returns
    -------
    groups : list of lists of int
        Numbers of folds.
    """
    by_shape: dict = defaultdict(list)
    for k, fold in enumerate(plan.folds):
        B = batch_size_for(len(fold.fit), batch_size)
        by_shape[B, len(fold.fit) // B].append(k)
    return list(by_shape.values())


def make_shards(
    plan, sizes, batch_size="auto", memory=1.0, *, by_fold=False, n_inputs=None, **kind
):
    """Split the problems into shards. Each is one stack whose problems fit into some memory.

    Parameters
    ----------
    plan : Plan
    sizes : Sizes
        Widths of the networks.
    batch_size : int or "auto"
    memory : float
        Gigabytes that the problems of one shard may take. The least is one problem with
        ``by_fold``, otherwise one treatment on all folds.
    by_fold : bool
        Whether problems that need several shards are split fold by fold, so that what the shards of
        a fold share has to be there only once at a time.
    n_inputs : int, optional
        Number of inputs of a network with a trunk; by default there is none, and the inputs are the
        columns of X.
    **kind
        Of the networks, see :func:`bytes_of_problem`.

    Returns
    -------
    shards : list of int arrays
        Numbers of problems; those of one fold are adjacent.
    """
    shards = []
    largest = LARGEST_SHARD if n_inputs is None else LARGEST_WITH_TRUNK
    n_inputs = plan.X.shape[1] if n_inputs is None else n_inputs
    p = plan.n_problems // len(plan.folds)
    numbers = np.arange(plan.n_problems).reshape(len(plan.folds), p)
    for group in group_by_shape(plan, batch_size):
        fold = plan.folds[group[0]]
        B = batch_size_for(len(fold.fit), batch_size)
        room = memory * 1e9 / bytes_of_problem(fold, n_inputs, sizes, B, **kind)
        most = max(1, min(int(room), largest))  # problems
        several = by_fold and most < p * len(group)
        for folds in [[k] for k in group] if several else [group]:
            share = max(1, min(p, most // len(folds)))
            share = math.ceil(p / math.ceil(p / share))  # shards of similar sizes
            for start in range(0, p, share):
                shards.append(numbers[folds, start : start + share].ravel())
    return shards


def bytes_of_problem(
    fold,
    n_inputs,
    sizes,
    batch_size,
    *,
    shrunken=False,
    detail=False,
    models=False,
    quadratic=False,
):
    """Number of bytes of one problem in single precision, at most.

    A step of the optimizer holds the weights eight times at most (values, gradient, two moments,
    best epoch, temporary copies). A backward pass holds them five times, and the units of a batch
    about six times. The units of the rows to predict are held less than twice. The factors are
    those of measured peaks (``tests/test_memory.py``).

    Parameters
    ----------
    fold : Fold
    n_inputs : int
    sizes : Sizes
    batch_size : int
    shrunken, detail, models, quadratic : bool
        Whether networks start from ridge regressions, are summarised, are followed by models on the
        latents of all training rows, and have quadratic heads.
    """
    H, Z = sizes.H, sizes.Z
    weights = 3 * H * (n_inputs + 1) + 3 * Z * (3 * H + 1) + 2 * H * (3 * Z + 2) + 2
    units = 3 * H + 3 * Z + 2 * H + 4
    N = len(fold.fit) + len(fold.valid) + len(fold.hold)
    rows = N if models else max(len(fold.hold), len(fold.valid))
    train = 4 * max(8 * weights, 5 * weights + 6 * batch_size * units)
    predict = 4 * (5 * weights + 1.8 * rows * units + 4 * detail * n_inputs * rows)
    # Batches are read eight at a time. The start is there twice: as it was sent, and scaled.
    held = 256 * batch_size + 16 * N * shrunken + 8 * quadratic * (2 * Z**2 + 3 * Z + 1) ** 2
    return max(max(train, predict) + held, 16 * N + 24 * N * shrunken)
