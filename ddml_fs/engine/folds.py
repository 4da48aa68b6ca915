"""Folds of the cross-fitting."""

import math
from dataclasses import dataclass, replace

import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    train_test_split,
)

VALID_SHARE = 0.1  # of the training rows: they stop the training and choose the inputs


@dataclass(frozen=True, eq=False)
class Fold:
    """The rows of one fold of the cross-fitting.

    Attributes
    ----------
    fit, valid : int arrays
        The training rows I_tra, split into rows for the fit and rows for early stopping.
    hold : int array
        The held-out rows I_hold, used only for the final prediction.
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


def draw_seed(rng):
    """One seed from a numpy ``RandomState``."""
    return int(rng.randint(np.iinfo(np.int32).max))


def make_folds(n_samples, n_folds, rng, *, strata=None, groups=None, weight=None):
    """Split the rows into ``n_folds`` folds.

    Parameters
    ----------
    n_samples, n_folds : int
        N and K.
    rng : RandomState
        Draws the split and the seeds.
    strata : int array of shape (N,), optional
        Labels whose shares are the same in every fold, such as a binary treatment.
    groups : int array of shape (N,), optional
        Clusters of rows that stay together.
    weight : array of shape (N,), optional
        Rows with weight 0 are held-out rows only. The other rows have the same folds as without
        them.

    Returns
    -------
    folds : list of Fold
    """
    if weight is not None and not weight.all():
        used = np.flatnonzero(weight > 0)
        parts = {
            name: None if labels is None else labels[used]
            for name, labels in (("strata", strata), ("groups", groups))
        }
        folds = make_folds(len(used), n_folds, rng, **parts)
        return with_unused_rows(folds, used, np.flatnonzero(weight == 0), groups)
    if groups is not None:
        return grouped_folds(n_folds, rng, strata, groups)
    splitter = KFold if strata is None else StratifiedKFold
    labels = np.zeros(n_samples) if strata is None else strata
    split = splitter(n_folds, shuffle=True, random_state=draw_seed(rng)).split(labels, labels)
    folds = []
    for train, hold in split:
        n_valid = max(2, math.ceil(VALID_SHARE * len(train)))
        # Strata with one row cannot be split into fit and validation rows.
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


def with_unused_rows(folds, used, unused, groups):
    """Folds of the rows ``used``, numbered within them, with all others as held-out rows.

    These are spread over the folds in turn. With groups, they join the rows of their group.
    """
    place = np.arange(len(unused)) % len(folds)
    if groups is not None:
        fold_of = {g: k for k, fold in enumerate(folds) for g in groups[used[fold.hold]]}
        place = np.array([fold_of.get(g, k) for g, k in zip(groups[unused], place, strict=True)])
    return [
        replace(
            fold,
            fit=used[fold.fit],
            valid=used[fold.valid],
            hold=np.sort(np.r_[used[fold.hold], unused[place == k]]),
        )
        for k, fold in enumerate(folds)
    ]


def grouped_folds(n_folds, rng, strata, groups):
    """Folds, and validation rows, that never split a group; see :func:`make_folds`."""
    splitter = GroupKFold if strata is None else StratifiedGroupKFold
    labels = np.zeros(len(groups)) if strata is None else strata
    split = splitter(n_folds, shuffle=True, random_state=draw_seed(rng))
    folds = []
    for train, hold in split.split(labels, labels, groups):
        inner = GroupShuffleSplit(1, test_size=VALID_SHARE, random_state=draw_seed(rng))
        fit, valid = next(inner.split(train, groups=groups[train]))
        folds.append(Fold(train[fit], train[valid], hold, draw_seed(rng)))
    return folds


def mixed(numbers):
    """Numbers (uint64) that look random, by the finaliser of SplitMix64."""
    x = np.asarray(numbers, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x ^ (x >> np.uint64(31))


def fold_of_number(number, n_folds, seed):
    """The folds of rows from their running numbers alone, so that no row must wait for another.

    Each run of ``n_folds`` successive rows has one row in every fold, in an order that is drawn
    from the seed and the number of the run.

    Parameters
    ----------
    number : int array of shape (n,)
    n_folds, seed : int

    Examples
    --------
    >>> fold = fold_of_number(np.arange(20), 5, seed=0)
    >>> np.sort(fold.reshape(4, 5), 1).tolist()[0], fold[:5].tolist() != fold[5:10].tolist()
    ([0, 1, 2, 3, 4], True)
    """
    run, place = np.divmod(np.asarray(number), n_folds)
    runs, at = np.unique(run, return_inverse=True)
    start = mixed([seed + 1])
    drawn = mixed(start ^ (runs[:, None] * n_folds + np.arange(n_folds)).astype(np.uint64))
    return np.argsort(drawn, axis=1, kind="stable")[at, place]


class RowCounter:
    """Folds of rows that arrive in blocks, balanced within domains and classes.

    The running number of a row is counted among the rows of its domain and class. So the fold of a
    row does not depend on the size of the blocks, nor on the rows of other domains.

    Parameters
    ----------
    n_folds, seed : int
        See :func:`fold_of_number`.
    counts : dict, optional
        Numbers of the rows before, by domain and class; by default there are none.
    """

    def __init__(self, n_folds, seed, counts=None):
        self.n_folds, self.seed, self.counts = n_folds, seed, dict(counts or {})

    def folds(self, domain, label=None):
        """The folds of the next rows, from their domains (n,) and, if any, their labels (n,)."""
        code = np.unique(domain, return_inverse=True)[1]
        classes = np.zeros(len(code), int)
        if label is not None:
            classes = np.unique(label, return_inverse=True)[1]
        number = np.empty(len(code), dtype=np.int64)
        for d, c in np.unique(np.column_stack([code, classes]), axis=0):
            rows = np.flatnonzero((code == d) & (classes == c))
            key = domain[rows[0]], None if label is None else label[rows[0]]
            seen = self.counts.get(key, 0)
            number[rows] = seen + np.arange(len(rows))
            self.counts[key] = seen + len(rows)
        return fold_of_number(number, self.n_folds, self.seed)


def folds_from(fold, seed=0):
    """Folds (list of Fold) from the fold of every row, (N,); no rows are kept for validation."""
    return [
        Fold(np.flatnonzero(fold != k), np.empty(0, int), np.flatnonzero(fold == k), seed)
        for k in np.unique(fold)
    ]
