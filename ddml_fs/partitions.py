"""Sums over the rows of a dask table, computed by the cluster that holds its partitions.

The fold of a row depends on its running number among the rows of its domain and class. So a first
pass over the labels and domains counts the rows of each partition, and a second pass sums up.
"""

from collections import Counter
from functools import reduce
from operator import add

import numpy as np

from ddml_fs.backends import DaskBackend, report_losses
from ddml_fs.blocks import NO_ROWS, read_blocks, rows_of_sources
from ddml_fs.engine.folds import RowCounter
from ddml_fs.engine.moments import gather, looks_like_labels

FAN = 8  # partial sums that are added at a time


def gather_partitions(client, blocks, check, *, task, n_folds, seed, memory):
    """Sum up the rows of a dask table on its cluster.

    Parameters
    ----------
    client : distributed.Client
    blocks : Blocks
        With partitions.
    check : callable
        Called with the classes of labels (or the kinds of numbers) and whether they are labels.
    task : {"auto", "classification", "regression"}
    n_folds, seed : int
        See :class:`~ddml_fs.engine.folds.RowCounter`.
    memory : float
        Gigabytes that a worker may use for a block of rows.

    Returns
    -------
    products : CellProducts
    """
    from dask import delayed

    backend, table = DaskBackend(client), blocks.partitions
    parts = [delayed(labels_of)(part, *table.given) for part in table.of(table.given)]
    kinds = (client.compute(delayed(are_labels)(part)).result() for part in parts)
    label = next((kind for kind in kinds if kind is not None), None)
    if label is None:
        raise ValueError(NO_ROWS)
    if task != "auto":
        label = task == "classification"
    counted = client.gather(client.compute([delayed(count_rows)(part, label) for part in parts]))
    check(set().union(*(values for _, values in counted)), label)
    before: Counter = Counter()
    sums = []
    options = {"names": blocks.names, "label": label, "n_folds": n_folds, "seed": seed}
    for part, (counts, _) in zip(table.of([*blocks.names, *table.given]), counted, strict=True):
        reading = table.label, table.domain, blocks.rows_per_block, memory
        sums.append(delayed(sum_partition)(part, *reading, dict(before), options))
        before.update(counts)
    while len(sums) > 1:
        sums = [delayed(added)(sums[i : i + FAN]) for i in range(0, len(sums), FAN)]
    products = client.compute(sums[0]).result()
    workers, repeated = backend.repeated(sum_partition.__name__)
    report_losses(workers, repeated, "partition")
    return products


def labels_of(frame, label, domain=None):
    """Labels and domains of the rows of a partition that are not targets."""
    X = np.empty((len(frame), 0))
    return rows_of_sources(X, frame[label], None if domain is None else frame[domain])[1:]


def are_labels(rows):
    """Whether the labels of a partition look like labels; None without rows."""
    return looks_like_labels(rows[0]) if len(rows[0]) else None


def count_rows(rows, label):
    """Numbers of rows by domain and class, and the distinct labels (or the kind of numbers)."""
    y, domain = rows
    counter = RowCounter(2, 0)
    if len(y):
        counter.folds(domain, y if label else None)
    return counter.counts, set(np.unique(y).tolist()) if label else {y.dtype.kind}


def sum_partition(frame, label, domain, rows_per_block, memory, counts, options):
    """The sums of the rows of a partition."""
    columns = options["names"]
    blocks = read_blocks(frame, label, domain, columns=columns, rows_per_block=rows_per_block)
    return gather(blocks.read(memory), counts=counts, **options)


def added(parts):
    """The sum of partial sums."""
    return reduce(add, parts)
