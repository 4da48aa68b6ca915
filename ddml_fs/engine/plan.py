"""What is to be solved: folds, problems, the stacks they share, and shards of these."""

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

SMALLEST_BATCH, LARGEST_BATCH = 16, 1024
LARGEST_SHARD = 256  # problems: enough to fill two cores, few enough that a lost shard costs little


@dataclass(frozen=True, eq=False)
class Fold:
    """The rows of one fold of the cross-fitting.

    Problems that hold the *same* ``Fold`` object see the same batches in the same order.

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
class Problem:
    """One effect on one fold: the unit of which a stack has P.

    Attributes
    ----------
    fold : Fold
        The rows.
    treatment : array of shape (N,), or int
        The treatment, or the column of X that is the treatment and so is no covariate.
    outcome : array of shape (N,)
        The outcome.
    binary_T : bool
        Whether the treatment is 0/1.
    seed : int
        Seed of the initial weights.
    binary_Y : bool
        Whether the outcome is a 0/1 label, predicted as a probability.
    """

    fold: Fold
    treatment: np.ndarray | int
    outcome: np.ndarray
    binary_T: bool
    seed: int
    binary_Y: bool = False


def draw_seed(rng):
    """One seed from a numpy ``RandomState``."""
    return int(rng.randint(np.iinfo(np.int32).max))


def make_folds(n_samples, n_folds, rng, *, strata=None, valid_share=0.1):
    """Split the rows into ``n_folds`` folds.

    Parameters
    ----------
    n_samples, n_folds : int
        N and K.
    rng : RandomState
        Draws the split and the seeds.
    strata : array of shape (N,), optional
        Labels that every fold has in the same shares (a binary treatment).
    valid_share : float
        Share of the training rows that stops the training.

    Returns
    -------
    folds : list of Fold
    """
    splitter = KFold if strata is None else StratifiedKFold
    labels = np.zeros(n_samples) if strata is None else strata
    split = splitter(n_folds, shuffle=True, random_state=draw_seed(rng)).split(labels, labels)
    folds = []
    for train, hold in split:
        n_valid = max(2, math.ceil(valid_share * len(train)))
        # Strata with too few rows cannot be shared between fitting and validation.
        counts = np.unique(labels[train], return_counts=True)[1]
        shared = strata is not None and counts.min() > 1 and len(counts) <= n_valid
        fit, valid = train_test_split(
            train,
            test_size=n_valid,
            random_state=draw_seed(rng),
            stratify=strata[train] if shared else None,
        )
        folds.append(Fold(fit, valid, hold, draw_seed(rng)))
    return folds


def plan_problems(treatments, outcomes, n_samples, rng, *, n_folds, n_repeats=1, **options):
    """Every treatment with every outcome, on every fold of every random split.

    Problems of one fold start from the same weights, whatever their number: a treatment's effect is
    the same alone and in a sweep.

    Parameters
    ----------
    treatments : list of pairs
        A treatment as :class:`Problem` takes it, and whether it is 0/1.
    outcomes : list of pairs
        An outcome (N,), and whether it is a 0/1 label.
    n_samples : int
    rng : RandomState
    n_folds, n_repeats : int
    **options
        Of :func:`make_folds`.

    Returns
    -------
    problems : list of Problem
        By repeat, then by fold, then by outcome, then by treatment.
    """
    problems = []
    for _ in range(n_repeats):
        for fold in make_folds(n_samples, n_folds, rng, **options):
            seed = draw_seed(rng)
            problems += [
                Problem(fold, treatment, outcome, binary_T, seed, binary_Y)
                for outcome, binary_Y in outcomes
                for treatment, binary_T in treatments
            ]
    return problems


def batch_size_for(n_rows, batch_size="auto"):
    """Rows of a batch, B; ``"auto"`` is the power of two next below a sixteenth of the rows.

    Small data then still get enough steps an epoch, and large data are not slowed by tiny batches.

    Examples
    --------
    >>> batch_size_for(4320), batch_size_for(500), batch_size_for(10**6)
    (256, 16, 1024)
    """
    if batch_size == "auto":
        batch_size = 1 << max(0, (n_rows // 16).bit_length() - 1)
        batch_size = min(max(batch_size, SMALLEST_BATCH), LARGEST_BATCH)
    return min(batch_size, n_rows)


def group_by_shape(problems, batch_size="auto"):
    """Group problems into stacks: folds with equal batches, each with equally many problems.

    Parameters
    ----------
    problems : list of Problem
    batch_size : int or "auto"

    Returns
    -------
    stacks : list of lists of int
        Positions in ``problems``; in each list the problems of one fold stand side by side.
    """
    by_fold: dict = defaultdict(list)
    for i, problem in enumerate(problems):
        by_fold[id(problem.fold)].append(i)
    by_shape: dict = defaultdict(list)
    for members in by_fold.values():
        n_fit = len(problems[members[0]].fold.fit)
        B = batch_size_for(n_fit, batch_size)
        by_shape[B, n_fit // B, len(members)] += members
    return list(by_shape.values())


def make_shards(problems, n_columns, sizes, batch_size="auto", memory=1.0):
    """Split problems into shards, each one stack that fits the memory and is solved by itself.

    Parameters
    ----------
    problems : list of Problem
    n_columns : int
        Columns of X, D.
    sizes : Sizes
        Widths of the networks.
    batch_size : int or "auto"
    memory : float
        Gigabytes that one shard may take.

    Returns
    -------
    shards : list of lists of int
        Positions in ``problems``.
    """
    shards = []
    for members in group_by_shape(problems, batch_size):
        folds = [problems[i].fold for i in members]
        G = len({id(fold) for fold in folds})
        p = len(members) // G
        B = batch_size_for(len(folds[0].fit), batch_size)
        room = memory * 1e9 / (G * bytes_of_problem(folds[0], n_columns, sizes, B))
        share = max(1, min(p, int(room), LARGEST_SHARD // G))
        share = math.ceil(p / math.ceil(p / share))  # shards of about one size
        for start in range(0, p, share):
            stop = min(start + share, p)
            shards.append([i for g in range(G) for i in members[g * p + start : g * p + stop]])
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
