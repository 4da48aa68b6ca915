"""Fits of a selector from sums over the rows, which are read in blocks and not kept."""

import logging
from itertools import chain
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs

from ddml_fs import cautions
from ddml_fs.backends import active_backend, dask_client
from ddml_fs.blocks import COPIES, NO_ROWS, Blocks, read_blocks
from ddml_fs.columns import MOST_CLASSES
from ddml_fs.engine.devices import limit_threads
from ddml_fs.engine.moments import gather, looks_like_labels
from ddml_fs.features import Encoding
from ddml_fs.nuisances import Ridge, resolve_nuisance
from ddml_fs.partitions import gather_partitions
from ddml_fs.product_ranking import ProductRanker
from ddml_fs.product_sweep import product_sweep
from ddml_fs.progress import progress_bar
from ddml_fs.readers import Reader
from ddml_fs.scores import PartiallyLinear
from ddml_fs.selection import FittedSelection
from ddml_fs.sites import merge_sites
from ddml_fs.sweep import seed_for
from ddml_fs.tables import FEWEST_ROWS
from ddml_fs.validation import forget_fit

LOGGER = logging.getLogger(__name__)
LARGEST_SENT = 8e-3 * COPIES  # gigabytes: a block that a cluster is sent has 8 MB of them


class FitFromSums(FittedSelection):
    """The part of a selector that fits from sums of squares and products of the rows."""

    # Parameters of the selector that a fit from sums reads.
    nuisance: Any
    ranking: Any
    risk_aversion: float
    dose: str
    groups: Any
    scale: str
    covariates: str
    n_folds: int
    downstream: Any
    task: str
    memory_budget: float
    checkpoint: Any
    n_jobs: int | None
    device: Any
    random_state: Any
    verbose: bool
    screen: int | None
    n_features_in_: int
    feature_names_in_: np.ndarray

    def _rank(self, result, ranker, progress):
        """Make the table of effects, and order the features."""
        raise NotImplementedError

    @classmethod
    def from_sites(cls, files: Any, n_features_to_select: int | float | str, **params: Any) -> Self:
        """A selector that is fitted on files of :func:`~ddml_fs.sites.collect_site`.

        It is the selector that ``fit`` would give on the rows of all sites, each a domain, read in
        blocks.

        Parameters
        ----------
        files : sequence of paths
            One per site.
        n_features_to_select : int, float or "fdr"
        **params
            Other parameters of the selector. ``nuisance`` is "ridge" and ``scale`` is "mean"; the
            number of folds is that of the files.

        Returns
        -------
        selector : CausalFeatureSelector
        """
        products, n_folds = merge_sites(files)
        if params.setdefault("n_folds", n_folds) != n_folds:
            raise ValueError(f"n_folds must be that of the files, {n_folds}; leave it out.")
        given = {"nuisance": "ridge", "scale": "mean"} | params
        selector = cls(n_features_to_select, **given)
        selector.fit_products(products)
        return selector

    def fit_products(self, products: Any) -> Self:
        """Fit on sums over rows.

        Parameters
        ----------
        products : CellProducts

        Returns
        -------
        self
        """
        forget_fit(self)
        self._check_options()
        self._check_no_screen()
        self._seed_ = seed_for(self.random_state, None, None)
        return self._fit_products(products)

    def _fit_blocks(self, source: Any, label: Any, domain: Any) -> Self:
        """Fit on a table that is read in blocks."""
        forget_fit(self)
        self._check_options()
        if isinstance(source, Blocks):
            if label is not None or domain is not None:
                raise ValueError(
                    "blocks have their own labels and domains; leave out y and sample_domain."
                )
            blocks = source
        else:
            blocks = read_blocks(source, label, domain)
        self._ridge_of_sums()  # raises before any row is read
        self._check_no_screen()
        self._seed_ = seed_for(self.random_state, None, None)
        with limit_threads(effective_n_jobs(self.n_jobs), libraries=True):
            return self._fit_products(self._gather(blocks), blocks.named)

    def _gather(self, blocks):
        """The sums of all rows: by this process, or by a cluster."""
        options = {"n_folds": self.n_folds, "seed": self._seed_}
        client = None if blocks.partitions is None else dask_client()
        if client is not None:

            def check(seen, is_label):
                check_scale(self.scale, is_label)
                check_outcome(seen, is_label, self.task)

            options |= {"task": self.task, "memory": self.memory_budget}
            return gather_partitions(client, blocks, check, **options)
        backend, cluster, memory = active_backend(), None, self.memory_budget
        if backend.is_cluster and self.n_jobs != 1:
            cluster = backend, backend.n_workers(self.n_jobs)
            memory = min(memory / (2 * cluster[1]), LARGEST_SENT)
        rows = blocks.read(memory)
        first = next(rows, None)
        if first is None:
            raise ValueError(NO_ROWS)
        is_label = labels_in(first[1], self.task)
        check_scale(self.scale, is_label)
        rows = self._watched(chain([first], rows), is_label)
        return gather(rows, names=blocks.names, label=is_label, **options, cluster=cluster)

    def _watched(self, rows, is_label):
        """The blocks, with a log and a check that labels stay labels."""
        n, seen = 0, set()
        for X, y, domain in rows:
            seen |= set(np.unique(y).tolist()) if is_label else {y.dtype.kind}
            check_outcome(seen, is_label, self.task)
            n += len(X)
            yield X, y, domain
        LOGGER.info("%d rows read in blocks", n)

    def _fit_products(self, products, named=True):
        """Fit on the cells of all rows."""
        nuisance = self._ridge_of_sums()
        check_scale(self.scale, products.label)
        cells = products.table()
        check_cells(cells, self.n_folds)
        self.task_ = "classification" if products.label else "regression"
        self.scale_, self.domains_ = "mean", cells.domains
        self.n_features_in_ = len(products.names)
        if named:
            self.feature_names_in_ = np.array(products.names, dtype=object)
        centre = cells.n @ cells.mean / cells.n_rows
        self._encoding_ = Encoding(
            [
                Reader(name, "number", fill=float(mean))
                for name, mean in zip(products.names, centre, strict=False)
            ],
            np.arange(len(products.names)),
            products.names,
        )
        threads = limit_threads(effective_n_jobs(self.n_jobs), libraries=True)
        with threads, progress_bar(self.verbose, "sweep") as progress:
            result = product_sweep(
                cells,
                shrinkage=nuisance.shrinkage,
                screen_shrinkage=Ridge().shrinkage,
                covariates=self.covariates,
                progress=progress,
            )
            warn_of_cells(cells, result, products.names)
            ranker = ProductRanker(result, self.ranking, self.risk_aversion)
            progress.enter("ranking")
            progress.start(result.features.n_features, "features")
            self._rank(result, ranker, progress)
        self._get_support_mask()  # raises if the number is too large
        return self

    def _check_no_screen(self):
        if self.screen is not None:
            raise ValueError("screen has no use for rows in blocks or sites; leave it out.")

    def _ridge_of_sums(self):
        """The nuisance; raises for parameters that need the rows."""
        auto = isinstance(self.nuisance, str) and self.nuisance == "auto"
        nuisance = Ridge() if auto else resolve_nuisance(self.nuisance)
        if not isinstance(nuisance, Ridge):
            raise ValueError(
                f"nuisance must be 'ridge' for rows in blocks, sites or sparse X, got "
                f"{self.nuisance!r}."
            )
        nuisance.check(PartiallyLinear())
        nuisance.check_resources(self.device, self.checkpoint)
        if self.n_features_to_select == "auto":
            raise ValueError(
                "n_features_to_select='auto' needs all rows in a dense table, which this fit does "
                "not make; choose a number, a share or 'fdr'."
            )
        if self.dose == "spline":
            raise ValueError(
                "dose='spline' needs all rows in a dense table, which this fit does not make; use "
                "'linear'."
            )
        for name in ("groups", "downstream"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name} needs all rows in a dense table, which this fit does not make; leave "
                    "it out."
                )
        return nuisance


def labels_in(y, task):
    """Whether y, as seen in its first rows, is a label."""
    return looks_like_labels(y) if task == "auto" else task == "classification"


def check_outcome(seen, is_label, task):
    """Raise if labels have too many classes, or if numbers are none.

    ``seen`` is the set of the classes or, for numbers, of the kinds of arrays.
    """
    if is_label and task == "auto" and len(seen) > MOST_CLASSES:
        raise ValueError(
            f"y looks like labels in its first block, but has more than {MOST_CLASSES} values; set "
            "task='regression' or task='classification'."
        )
    if not is_label and not seen <= set("biuf"):
        raise ValueError("y must be numeric for task='regression', got text.")


def check_scale(scale, is_label):
    """Raise unless effects are on the mean, for which sums are enough."""
    if is_label and scale != "mean":
        raise ValueError(
            f"scale must be 'mean' for labels of rows in blocks or of sites, got {scale!r}: sums "
            "over rows have no log-odds."
        )
    if scale == "log_odds":
        raise ValueError("scale='log_odds' needs labels in y, got numbers.")


def check_cells(cells, n_folds):
    """Raise if there are too few rows, or rows of a class, for the folds."""
    P = cells.n_columns
    if cells.n_rows < max(FEWEST_ROWS, 4 * n_folds):
        raise ValueError(
            f"X must have at least 4 rows per fold ({max(FEWEST_ROWS, 4 * n_folds)}), got "
            f"{cells.n_rows:g}."
        )
    if cells.classes is None:
        if np.all(np.ptp(cells.mean[:, P]) == 0) and not cells.S[:, P, P].any():
            raise ValueError(f"y must vary, got the single value {cells.mean[0, P]:g}.")
        return
    if len(cells.classes) < 2:
        raise ValueError(f"y must have at least 2 classes, got only {cells.classes[0]!r}.")
    rows = np.round(cells.n @ cells.mean[:, P:])
    if rows.min() < n_folds:
        rare = cells.classes[rows.argmin()]
        raise ValueError(
            f"n_folds must be at most the number of rows of the rarest class ({rows.min():g} of "
            f"{rare!r}), got {n_folds}."
        )


def warn_of_cells(cells, result, names):
    """The warnings of a fit, from sums."""
    features, own = result.features, result.cells
    F = features.n_features
    total = own.pooled(np.ones(len(own.n), bool)).S
    r2 = total[:F, F:] ** 2 / np.outer(np.diag(total)[:F], np.diag(total)[F:])
    copies = (1 - r2 < cautions.LABEL_COPY).any(1)
    cautions.caution_of_label_copies([names[features.first[f]] for f in np.flatnonzero(copies)])
    cautions.warn_of_repeats(features, names)
    by_domain = (cells.domain == np.arange(len(cells.domains))[:, None]) * cells.n
    single = np.zeros(len(cells.domains), bool)
    if cells.classes is not None:
        rows_of_class = by_domain @ cells.mean[:, cells.n_columns :]
        single = (rows_of_class > 0.5).sum(1) == 1
    cautions.caution_of_domains(by_domain.sum(1).astype(int), single, cells.domains)
    cautions.warn_of_collinear(result.evidence, features, names)
