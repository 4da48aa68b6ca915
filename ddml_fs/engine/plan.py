"""What is to be solved: folds, problems, the stacks they share, and shards of these."""

import math
from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

SMALLEST_BATCH, LARGEST_BATCH = 16, 1024
LARGEST_SHARD = 256  # problems: enough to fill two cores, few enough that a lost shard costs little
VALID_SHARE = 0.1  # of the training rows: they stop the training and open the gates
LEAST_PENALTY = 1e-6


@dataclass(frozen=True, eq=False)
class Fold:
    """The rows of one fold of the cross-fitting.

    Attributes
    ----------
    fit, valid : int arrays
        The training rows I_tra, split into those that are trained on and those that stop the
        training.
    hold : int array
        The held-out rows I_hold, seen by nothing but the last prediction.
    seed : int
        Seed of the batch order.
    """

    fit: np.ndarray
    valid: np.ndarray
    hold: np.ndarray
    seed: int

    @property
    def train(self):
        """All training rows, I_tra."""
        return np.concatenate([self.fit, self.valid])


@dataclass(frozen=True, eq=False)
class Plan:
    """Every treatment with every outcome on every fold: problems as numbers into arrays.

    Attributes
    ----------
    X : array of shape (N, D)
        The covariates, and treatments that are columns of X.
    T : array of shape (N, F)
        The treatments; X itself in a sweep over all columns.
    own : int array of shape (F,)
        The column of X that a treatment is, so that it is no covariate; −1 for one beside X.
    binary_T : bool array of shape (F,)
        Which treatments are 0/1.
    Y : array of shape (N, C)
        The outcomes.
    binary_Y : bool array of shape (C,)
        Which outcomes the score takes as 0/1 labels, predicted as probabilities.
    covariates : bool array of shape (D,)
        The columns that may be covariates.
    folds : list of Fold
        Those of all random splits, split by split.
    seeds : int array
        Of the initial weights, one per fold: a treatment's effect is the same alone and in a sweep.
    block : int array of shape (D,)
        Columns that belong together: a treatment's whole block is no covariate of it.
    domain : int array of shape (N,)
        Domains with intercepts of their own, for nuisances that know of them.
    n_repeats : int
        Random splits, R.
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
        """Which outcomes are 0/1, whatever the score takes them for; a bool array (C,)."""
        return ((self.Y == 0) | (self.Y == 1)).all(0)

    @property
    def n_folds(self):
        """Folds of one split, K."""
        return len(self.folds) // self.n_repeats

    def problem(self, i):
        """Numbers of the fold, the outcome and the treatment of problem i, or of many."""
        return np.unravel_index(i, self.shape)

    def part(self, treatments, outcomes):
        """The plan with some treatments and some outcomes alone."""
        return replace(
            self,
            T=self.T[:, treatments],
            own=self.own[treatments],
            binary_T=self.binary_T[treatments],
            Y=self.Y[:, outcomes],
            binary_Y=self.binary_Y[outcomes],
        )

    def inputs(self, f):
        """The columns of X that are covariates of treatment f, a bool array (D,)."""
        use = self.covariates.copy()
        if self.own[f] >= 0:
            use &= self.block != self.block[self.own[f]]
        return use

    def penalty(self, shrinkage, k=0):
        """λ = shrinkage · D/n, D covariates and n training rows of fold k.

        The best ridge penalty where signal / noise is 1 / shrinkage.
        """
        return penalty_for(shrinkage, self.covariates.sum(), len(self.folds[k].train))


def penalty_for(shrinkage, D, n):
    """λ = shrinkage · D/n for D columns and n rows.

    Examples
    --------
    >>> penalty_for(20.0, 400, 1600)
    5.0
    """
    return max(float(shrinkage * D / n), LEAST_PENALTY)


def draw_seed(rng):
    """One seed from a numpy ``RandomState``."""
    return int(rng.randint(np.iinfo(np.int32).max))


def make_folds(n_samples, n_folds, rng, *, strata=None):
    """Split the rows into ``n_folds`` folds.

    Parameters
    ----------
    n_samples, n_folds : int
        N and K.
    rng : RandomState
        Draws the split and the seeds.
    strata : int array of shape (N,), optional
        Labels that every fold has in the same shares (a binary treatment).

    Returns
    -------
    folds : list of Fold
    """
    splitter = KFold if strata is None else StratifiedKFold
    labels = np.zeros(n_samples) if strata is None else strata
    split = splitter(n_folds, shuffle=True, random_state=draw_seed(rng)).split(labels, labels)
    folds = []
    for train, hold in split:
        n_valid = max(2, math.ceil(VALID_SHARE * len(train)))
        # Strata with too few rows cannot be shared between fitting and validation.
        counts = np.unique(labels[train], return_counts=True)[1]
        shared = strata is not None and counts.min() > 1 and len(counts) <= n_valid
        fit, valid = train_test_split(
            train,
            test_size=n_valid,
            random_state=draw_seed(rng),
            stratify=labels[train] if shared else None,
        )
        folds.append(Fold(fit, valid, hold, draw_seed(rng)))
    return folds


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
):
    """Plan the cross-fitting of every treatment with every outcome.

    Parameters
    ----------
    X : array of shape (N, D)
    outcomes : array of shape (N, C)
    rng : RandomState
    treatments : array of shape (N, F), optional
        The columns of X unless given.
    own : int array of shape (F,), optional
        See :class:`Plan`; treatments that are given are beside X unless this says otherwise.
    binary_T : bool array of shape (F,)
    label : bool
        Whether the outcomes are 0/1 labels.
    covariates : bool array of shape (D,), optional
        All columns unless given.
    block : int array of shape (D,), optional
        Each column by itself unless given.
    domain : int array of shape (N,), optional
    n_folds, n_repeats : int
    strata : int array of shape (N,), optional

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
    folds, seeds = [], []
    for _ in range(n_repeats):
        folds += make_folds(len(X), n_folds, rng, strata=strata)
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
        n_repeats=n_repeats,
    )


def batch_size_for(n_rows, batch_size="auto"):
    """Rows of a batch, B; ``"auto"`` is the power of two next below a sixteenth of the rows.

    Small data then still get enough steps per epoch, and large data are not slowed by tiny batches.

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
    """Group the folds whose batches are equally large and equally many: they share a stack.

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


def make_shards(plan, sizes, batch_size="auto", memory=1.0):
    """Split the problems into shards, each one stack that fits the memory and is solved by itself.

    Parameters
    ----------
    plan : Plan
    sizes : Sizes
        Widths of the networks.
    batch_size : int or "auto"
    memory : float
        Gigabytes that one shard may take.

    Returns
    -------
    shards : list of int arrays
        Numbers of problems; those of one fold stand side by side.
    """
    shards = []
    p = plan.n_problems // len(plan.folds)
    numbers = np.arange(plan.n_problems).reshape(len(plan.folds), p)
    for group in group_by_shape(plan, batch_size):
        G, fold = len(group), plan.folds[group[0]]
        B = batch_size_for(len(fold.fit), batch_size)
        room = memory * 1e9 / (G * bytes_of_problem(fold, plan.X.shape[1], sizes, B))
        share = max(1, min(p, int(room), LARGEST_SHARD // G))
        share = math.ceil(p / math.ceil(p / share))  # shards of about one size
        for start in range(0, p, share):
            shards.append(numbers[group, start : start + share].ravel())
    return shards


def bytes_of_problem(fold, n_columns, sizes, batch_size):
    """About how many bytes one problem takes in training, in single precision.

    The weights are held seven times (values, gradient, two moments, the best epoch's, two at work),
    the units of a batch about eight times, those of the rows to predict about three times.
    """
    H, Z = sizes.H, sizes.Z
    weights = 3 * H * (n_columns + 1) + 3 * Z * (3 * H + 1) + 2 * H * (3 * Z + 2) + 2
    units = 3 * H + 3 * Z + 2 * H + 4
    rows = max(len(fold.hold), len(fold.valid))
    return 4 * (7 * weights + 8 * batch_size * units + 3 * rows * units)
