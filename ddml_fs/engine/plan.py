"""What is to be solved: folds, problems, and which problems can share one stack."""

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

SMALLEST_BATCH, LARGEST_BATCH = 16, 1024


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
    binary : bool
        Whether the treatment is 0/1.
    seed : int
        Seed of the initial weights.
    """

    fold: Fold
    treatment: np.ndarray | int
    outcome: np.ndarray
    binary: bool
    seed: int


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
        # A stratum of one row cannot be shared between fitting and validation.
        shared = strata is not None and np.unique(strata[train], return_counts=True)[1].min() > 1
        fit, valid = train_test_split(
            train,
            test_size=max(2, math.ceil(valid_share * len(train))),
            random_state=draw_seed(rng),
            stratify=strata[train] if shared else None,
        )
        folds.append(Fold(fit, valid, hold, draw_seed(rng)))
    return folds


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
