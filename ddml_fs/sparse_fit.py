"""Fits of a selector on a sparse matrix that is too large to be made dense."""

from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import csr_matrix, issparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import validate_data

from ddml_fs import cautions
from ddml_fs.encoding import number_of_folds, read_domains, read_target
from ddml_fs.engine.devices import limit_threads
from ddml_fs.engine.resources import Resources
from ddml_fs.features import Encoding
from ddml_fs.nuisances import Ridge
from ddml_fs.product_ranking import ProductRanker
from ddml_fs.progress import progress_bar
from ddml_fs.readers import Reader
from ddml_fs.sparse_sweep import SparseInput, sparse_sweep
from ddml_fs.summed import FitFromSums
from ddml_fs.sweep import score_for, seed_for
from ddml_fs.tables import FEWEST_ROWS, column_names
from ddml_fs.validation import forget_fit


class FitSparse(FitFromSums):
    """The part of a selector that fits on sparse matrices."""

    def _stays_sparse(self, X):
        """Whether X is a sparse matrix that a ridge sweep leaves sparse."""
        ridge = isinstance(self.nuisance, Ridge) or (
            isinstance(self.nuisance, str) and self.nuisance == "ridge"
        )
        if not issparse(X) or not ridge:
            return False
        return self.screen is not None or 8e-9 * np.prod(X.shape, dtype=float) > self.memory_budget

    def _fit_sparse(self, X: Any, y: Any, sample_domain: Any) -> Self:
        """Fit on a sparse matrix."""
        forget_fit(self)
        self._check_options()
        nuisance = self._ridge_of_sums()
        source, domain, self.domains_ = read_domains(sample_domain, X.shape[0])
        if not source.all():
            X, y = (_safe_indexing(a, np.flatnonzero(source)) for a in (X, y))
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=np.float64,
            ensure_min_samples=FEWEST_ROWS,
        )
        target, names = read_target(y, self.task), column_names(self)
        score = score_for(self.scale, target)
        self.task_ = "regression" if target.classes is None else "classification"
        self.scale_ = "log_odds" if score.label else "mean"
        self._seed_ = seed_for(self.random_state, None, None)
        readers = [Reader(name, "number") for name in names]
        self._encoding_ = Encoding(readers, np.arange(len(names)), names)
        cautions.warn_of_rows(domain, self.domains_, target)
        threads = limit_threads(effective_n_jobs(self.n_jobs), libraries=True)
        with threads, progress_bar(self.verbose, "sweep") as progress:
            result, screened = sparse_sweep(
                SparseInput(csr_matrix(X), target, domain),
                score,
                shrinkage=nuisance.shrinkage,
                screen_shrinkage=Ridge().shrinkage,
                seed=self._seed_,
                n_folds=number_of_folds(self.n_folds, target),
                covariates=self.covariates,
                screen=self.screen,
                resources=Resources(memory=self.memory_budget, progress=progress),
            )
            cautions.warn_of_repeats(result.features, names)
            cautions.warn_of_collinear(result.evidence, result.features, names)
            ranker = ProductRanker(result, self.ranking, self.risk_aversion, screened)
            progress.enter("ranking")
            progress.start(len(screened.swept), "features")
            self._rank(result, ranker, progress)
        self._get_support_mask()  # raises if the number is too large
        return self
