"""Labels and domains as users pass them, read into plain arrays."""

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import column_or_1d

from ddml_fs.columns import MOST_CLASSES
from ddml_fs.readers import holds_numbers


@dataclass(frozen=True)
class Target:
    """The label or number on which effects are estimated.

    Attributes
    ----------
    y : array of shape (N,)
        Class numbers, or the numbers themselves.
    classes : array, or None
        The labels; None for numbers.
    outcomes : list of arrays of shape (N,)
        The outcomes of the estimates: the number itself, the second of two classes as 0/1, or each
        of several classes against the rest as 0/1.
    sd : float, optional
        Standard deviation of a number, where its rows are not at hand.
    """

    y: np.ndarray
    classes: np.ndarray | None
    outcomes: list
    sd: float | None = None

    @property
    def unit(self):
        """The unit in which effects on the outcomes are estimated: the standard deviation, or 1."""
        if self.classes is not None:
            return 1.0
        return float(self.y.std()) if self.sd is None else self.sd

    @property
    def n_least(self):
        """Number of rows of the rarest class; for numbers, of all rows."""
        return len(self.y) if self.classes is None else int(np.bincount(self.y).min())


def read_target(y, task):
    """Read y; ``task`` is "auto", "classification" or "regression"."""
    if y.dtype.kind in "mM":
        what = "durations" if y.dtype.kind == "m" else "dates"
        raise ValueError(f"y must hold labels or numbers, got {what}; turn them into days.")
    if task == "auto":
        values = y.astype(np.float64) if y.dtype == object and holds_numbers(y) else y
        whole = values.dtype.kind in "OUSb" or np.array_equal(values, np.round(values))
        label = whole and (values.dtype.kind in "OUSb" or len(np.unique(values)) <= MOST_CLASSES)
    else:
        label = task == "classification"
    if not label:
        try:
            numbers = y.astype(np.float64)
        except ValueError:
            raise ValueError(
                f"y must be numeric for task='regression', got {plain(y[0])!r}."
            ) from None
        if np.ptp(numbers) == 0:
            raise ValueError(f"y must vary, got the single value {numbers[0]:g} in every row.")
        return Target(numbers, None, [numbers])
    check_labels(y)
    encoder = LabelEncoder().fit(y)
    codes, classes = encoder.transform(y), encoder.classes_
    if len(classes) < 2:
        raise ValueError(
            f"y must have at least 2 classes, got only one class, {plain(classes[0])!r}."
        )
    shown = range(1, 2) if len(classes) == 2 else range(len(classes))
    target = Target(codes, classes, [(codes == c).astype(np.float64) for c in shown])
    if target.n_least < 2:
        rare = plain(classes[np.bincount(codes).argmin()])
        raise ValueError(f"y must have at least 2 rows of each class, got 1 of {rare!r}.")
    return target


def check_labels(y):
    """Raise if y (N,) mixes text with numbers, which have no common order."""
    texts = sum(isinstance(label, str) for label in y) if y.dtype == object else 0
    if 0 < texts < len(y):
        raise ValueError(
            f"y must be all text or all numbers, got {texts} texts and {len(y) - texts} others."
        )


def plain(value):
    """A scalar of NumPy as one of Python, whose text is shorter."""
    return value.item() if isinstance(value, np.generic) else value


def read_domains(sample_domain, n_samples):
    """Find the rows of source domains, and the domain of each.

    Negative numbers mark rows of target domains, as in skada.

    Returns
    -------
    source : bool array of shape (n_samples,)
    domain : int array of shape (n_sources,)
        Number of the domain, as a position in ``names``.
    names : array
        Names of the domains.
    """
    if sample_domain is None:
        return np.ones(n_samples, bool), np.zeros(n_samples, int), np.array(["all"])
    labels = column_or_1d(np.asarray(sample_domain))
    check_consistent_length(labels, np.empty(n_samples))
    missing = int(pd.isna(labels).sum())
    if missing:
        raise ValueError(f"sample_domain must name a domain in every row, got {missing} missing.")
    if labels.dtype == object:
        texts = sum(isinstance(label, str) for label in labels)
        if 0 < texts < len(labels):
            raise ValueError(
                f"sample_domain must be all text or all numbers, got {texts} texts and "
                f"{len(labels) - texts} numbers; use numbers for all domains, negative ones for "
                "targets, or leave the rows of targets out."
            )
        labels = np.array(labels.tolist())  # numbers in a column of objects are numbers
    source = np.ones(n_samples, bool)
    if labels.dtype.kind in "US":
        negative = [label for label in np.unique(labels) if re.fullmatch(r"-\d+(\.0*)?", label)]
        if negative:
            raise ValueError(
                f"sample_domain must not mix text with negative numbers, got the text "
                f"{str(negative[0])!r}; use numbers for all domains, negative ones for targets, "
                "or leave the rows of targets out."
            )
    if labels.dtype.kind in "if":
        if not np.isfinite(labels).all():
            raise ValueError("sample_domain must name a domain in every row, got infinity.")
        source = labels >= 0
    if not source.any():
        raise ValueError(
            "sample_domain must have at least one source domain, which is not negative, got only "
            "targets."
        )
    names, domain = np.unique(labels[source], return_inverse=True)
    return source, domain, names


def number_of_folds(wanted, target, cluster=None):
    """The number of folds, reduced if the rarest class or the table has too few rows.

    With clusters (N,), each fold has at least two of them.
    """
    most = wanted if cluster is None else min(wanted, (cluster.max() + 1) // 2)
    return max(2, min(most, target.n_least, len(target.y) // 4))


def strata_of(target, domain, n_folds):
    """Strata for the folds: classes within domains if these are large enough, or None."""
    several = domain.max() > 0
    both = target.y * (domain.max() + 1) + domain if target.classes is not None else domain
    if several and np.bincount(both)[np.unique(both)].min() >= n_folds:
        return both
    return None if target.classes is None else target.y


def splits_of_domains(target, domain):
    """Whether each domain can be left out in turn, so that the others still have every class."""
    if domain.max() == 0:
        return False
    if target.classes is None:
        return True
    left = [np.unique(target.y[domain != d]) for d in range(domain.max() + 1)]
    return min(map(len, left)) == len(target.classes)
