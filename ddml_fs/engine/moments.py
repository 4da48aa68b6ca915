"""Sums of squares and products of the rows, by cell: all that a linear sweep needs to know of them.

A cell is a fold of a domain. Its rows are summed up by their number, their means, and the centred
sums of squares and products of the columns and of the outcome. Cells of several blocks of rows, or
of several sites, are merged by the formulas of Chan, Golub and LeVeque, which lose no digits.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from ddml_fs.backends import each_on
from ddml_fs.columns import MOST_CLASSES
from ddml_fs.engine.folds import RowCounter


@dataclass(eq=False)
class Cell:
    """Sums of the rows of one cell.

    Attributes
    ----------
    mean : array of shape (Q,)
        Means of the columns; a numeric outcome is the last one.
    S : array of shape (Q, Q)
        Centred sums of squares and products.
    n : float
        Rows.
    classes : dict
        For labels: from each class to its number of rows and its means (Q,).
    """

    mean: np.ndarray
    S: np.ndarray
    n: float = 0.0
    classes: dict = field(default_factory=dict)

    @classmethod
    def empty(cls, width):
        """A cell without rows."""
        return cls(np.zeros(width), np.zeros((width, width)))

    @classmethod
    def of(cls, X, y=None):
        """The cell of rows X (n, Q) with labels y (n,)."""
        mean = X.mean(0)
        X = X - mean
        rest = X.mean(0)  # what rounding left, if offsets are large
        X -= rest
        cell = cls(mean + rest, X.T @ X, len(X))
        for c in [] if y is None else np.unique(y):
            rows = y == c
            cell.classes[c.item()] = int(rows.sum()), X[rows].mean(0) + cell.mean
        return cell

    def merge(self, other):
        """Add the rows of another cell to this one, in place."""
        n = self.n + other.n
        if n == 0:
            return
        gap = other.mean - self.mean
        self.S += other.S
        self.S += np.outer(gap, gap * (self.n * other.n / n))
        self.mean = self.mean + gap * (other.n / n)
        self.n = n
        for c, (n_c, mean_c) in other.classes.items():
            n_old, mean_old = self.classes.get(c, (0, mean_c))
            share = n_c / (n_old + n_c)
            self.classes[c] = n_old + n_c, mean_old + (mean_c - mean_old) * share


class CellProducts:
    """The cells of rows that arrive in blocks.

    Parameters
    ----------
    names : list of str
        Names of the columns, P of them.
    label : bool
        Whether the outcome is a label, or a number.

    Attributes
    ----------
    cells : dict
        From (domain, fold) to its :class:`Cell`.

    Examples
    --------
    >>> rng = np.random.RandomState(0)
    >>> X, y, domain = rng.standard_normal((40, 2)), rng.standard_normal(40), np.repeat("a", 40)
    >>> whole, half = CellProducts(["u", "v"], False), CellProducts(["u", "v"], False)
    >>> whole.add(X, y, domain, np.arange(40) % 2)
    >>> for rows in (slice(20), slice(20, 40)):
    ...     half.add(X[rows], y[rows], domain[rows], np.arange(20) % 2)
    >>> bool(np.allclose(whole.cells["a", 0].S, half.cells["a", 0].S))
    True
    """

    def __init__(self, names, label):
        self.names, self.label, self.cells = list(names), label, {}

    @property
    def width(self):
        """Number of columns whose products are kept, Q."""
        return len(self.names) + (not self.label)

    def add(self, X, y, domain, fold):
        """Add a block of rows.

        Parameters
        ----------
        X : array of shape (n, P)
        y, domain : arrays of shape (n,)
        fold : int array of shape (n,)
        """
        names, code = np.unique(domain, return_inverse=True)
        for d, k in np.unique(np.column_stack([code, fold]), axis=0):
            rows = (code == d) & (fold == k)
            part = np.asarray(X[rows], dtype=np.float64)
            if not self.label:
                part = np.column_stack([part, y[rows]])
            key = names[d].item(), int(k)
            self.put(key, Cell.of(part, y[rows] if self.label else None))

    def put(self, key, cell):
        """Add the rows of a cell to the one of a domain and a fold."""
        self.cells.setdefault(key, Cell.empty(self.width)).merge(cell)

    def __add__(self, other):
        """The cells of both."""
        if (self.names, self.label) != (other.names, other.label):
            raise ValueError("products must have the same columns and the same kind of outcome.")
        both = CellProducts(self.names, self.label)
        for part in (self, other):
            for key, cell in part.cells.items():
                both.put(key, cell)
        return both

    def table(self):
        """All cells as arrays, see :class:`CellTable`."""
        keys = sorted(self.cells)
        domains = sorted({d for d, _ in keys})
        cells = [self.cells[key] for key in keys]
        classes = sorted({c for cell in cells for c in cell.classes})
        parts = [
            with_labels(cell, classes) if self.label else (cell.mean, cell.S) for cell in cells
        ]
        return CellTable(
            n=np.array([cell.n for cell in cells]),
            mean=np.stack([mean for mean, _ in parts]),
            S=np.stack([S for _, S in parts]),
            domain=np.array([domains.index(d) for d, _ in keys]),
            fold=np.array([k for _, k in keys]),
            n_outcomes=len(classes) if self.label else 1,
            domains=np.array(domains),
            classes=np.array(classes) if self.label else None,
        )


def with_labels(cell, classes):
    """Means (P + C,) and products of the columns and of one 0/1 outcome for each of C classes."""
    counts = np.array([cell.classes.get(c, (0, None))[0] for c in classes], dtype=np.float64)
    means = np.stack([cell.classes.get(c, (0, cell.mean))[1] for c in classes])
    share = counts / max(cell.n, 1)
    across = (counts[:, None] * (means - cell.mean)).T
    among = np.diag(counts) - np.outer(counts, share)
    return np.r_[cell.mean, share], np.block([[cell.S, across], [across.T, among]])


@dataclass(frozen=True, eq=False)
class CellTable:
    """Cells as arrays, for P columns and C outcomes, which come last.

    Attributes
    ----------
    n : array of shape (cells,)
        Rows.
    mean : array of shape (cells, P + C)
    S : array of shape (cells, P + C, P + C)
        Centred sums of squares and products.
    domain, fold : int arrays of shape (cells,)
    n_outcomes : int
        C: for labels the number of classes, for numbers 1.
    domains : array
        Names of the domains.
    classes : array, or None
        The labels; None for numbers.
    """

    n: np.ndarray
    mean: np.ndarray
    S: np.ndarray
    domain: np.ndarray
    fold: np.ndarray
    n_outcomes: int
    domains: np.ndarray
    classes: np.ndarray | None

    @property
    def n_columns(self):
        """P."""
        return self.S.shape[1] - self.n_outcomes

    @property
    def n_rows(self):
        """N."""
        return float(self.n.sum())

    def pooled(self, use):
        """The :class:`Cell` of all rows of some cells; ``use`` is a bool array (cells,)."""
        total = Cell.empty(self.S.shape[1])
        for i in np.flatnonzero(use):
            total.merge(Cell(self.mean[i], self.S[i], self.n[i]))
        return total

    def standardised(self, columns, outcomes, sd):
        """Some columns, centred over all rows and in units ``sd`` (P',), and some outcomes."""
        at = np.r_[columns, self.n_columns + np.asarray(outcomes)].astype(int)
        inverse = np.r_[1 / sd, np.ones(len(outcomes))]
        centre = self.n @ self.mean / self.n_rows
        return replace(
            self,
            mean=(self.mean - centre)[:, at] * inverse,
            S=self.S[:, at[:, None], at] * np.outer(inverse, inverse),
            n_outcomes=len(outcomes),
        )


def looks_like_labels(y):
    """Whether "auto" takes y for labels: text, truth values, or few whole numbers."""
    if y.dtype.kind in "OUSb":
        return True
    return bool((y == np.round(y)).all()) and len(np.unique(y)) <= MOST_CLASSES


def gather(blocks, *, names, label, n_folds, seed, counts=None, cluster=None):
    """Sum up rows that arrive in blocks, one block in memory at a time.

    Parameters
    ----------
    blocks : iterable of triples
        X (n, P), y (n,) and the domains (n,) of some rows.
    names : list of str
        Names of the columns.
    label : bool
        Whether y is a label.
    n_folds, seed : int
        See :class:`~ddml_fs.engine.folds.RowCounter`.
    counts : dict, optional
        The rows before these, see :class:`~ddml_fs.engine.folds.RowCounter`.
    cluster : pair of Backend and int, optional
        Workers that are sent the blocks, and their number. By default this process sums up.

    Returns
    -------
    products : CellProducts
    """
    counter = RowCounter(n_folds, seed, counts)
    calls = (
        (i, {"i": i, "names": names, "label": label, "block": (X, y, domain, fold)})
        for i, (X, y, domain) in enumerate(blocks)
        for fold in [counter.folds(domain, y if label else None)]
    )
    products, waiting, n = CellProducts(names, label), {}, 0
    if cluster is None:
        for _, call in calls:
            products.add(*call["block"])
        return products
    backend, n_workers = cluster
    for i, part in each_on(backend, sum_block, calls, n_workers, "block"):
        waiting[i] = part
        while n in waiting:  # in the order of the blocks, so that sums do not depend on the workers
            products, n = products + waiting.pop(n), n + 1
    return products


def sum_block(i, names, label, block):
    """The number of a block of rows, and its :class:`CellProducts`."""
    products = CellProducts(names, label)
    products.add(*block)
    return i, products
