"""Logistic ridge nuisances of a sparse matrix, evaluated on a few columns at a time."""

import numpy as np
from scipy.special import expit

from ddml_fs.engine.affine_fits import forms_of
from ddml_fs.engine.plan import penalty_for
from ddml_fs.engine.product_rows import SparseRows
from ddml_fs.engine.sparse_sums import sums_of
from ddml_fs.evidence import collect
from ddml_fs.scores import Logistic
from ddml_fs.screening import joined_evidence

CHUNK = 16e6  # bytes of a chunk of dense columns: larger ones are slow, as memory is new each time


class SparseLogistic:
    """Nuisances and evidence of a table of distinct columns, for effects on log-odds.

    Parameters
    ----------
    X : sparse matrix of shape (N, P)
        Columns in units of their standard deviations.
    outcomes : array of shape (N, C)
        0/1 labels.
    domain, fold : int arrays of shape (N,)
    """

    def __init__(self, X, outcomes, domain, fold):
        self.X, self.Y, self.domain, self.fold = X, outcomes, domain, fold
        self.rows = [np.flatnonzero(fold == k) for k in np.unique(fold)]
        self.width = max(1, int(CHUNK / (8 * X.shape[0])))

    def forms(self, k, covariates, shrinkage, block):
        """Nuisances of fold k, see :func:`~ddml_fs.engine.affine_fits.forms_of`."""
        train = np.flatnonzero(self.fold != k)
        n, mean, S = sums_of(self.X, train)
        sd = np.sqrt(np.diag(S) / n)
        inverse = np.divide(1.0, sd, out=np.zeros(len(sd)), where=sd > 0)
        S *= inverse[:, None] * inverse / n
        rows = SparseRows(self.X[train], S, mean, inverse)
        penalty = penalty_for(shrinkage, covariates.sum(), n)

        def outcome(y):
            return lambda fit: fit.logistic_outcome(y)

        outcomes = [outcome(y) for y in self.Y[train].T]
        return forms_of(rows, mean, sd, covariates, penalty, block, outcomes)

    def evidence(self, covariates, shrinkage, block, progress):
        """Evidence on every column, a few columns at a time; a list with one per outcome."""
        progress.start(len(self.rows), "folds")
        forms = []
        for k in range(len(self.rows)):
            forms.append(self.forms(k, covariates, shrinkage, block))
            progress.advance()
        P, found = self.X.shape[1], []
        columns = self.X.tocsc()
        for start in range(0, P, self.width):
            at = slice(start, min(start + self.width, P))
            found.append(self._evidence(columns[:, at].toarray(), forms, at))
        return [joined_evidence(parts) for parts in zip(*found, strict=True)]

    def _evidence(self, Z, forms, at):
        """Evidence on the columns of a chunk Z (N, p)."""
        v, g = np.empty_like(Z), [np.empty_like(Z) for _ in self.Y.T]
        for k, hold in enumerate(self.rows):
            rows = self.X[hold]
            for out, (intercept, slope) in zip((v, *g), forms[k], strict=True):
                out[hold] = rows @ np.ascontiguousarray(slope[:, at]) + intercept[at]
        alone = np.ones(Z.shape[1], bool)
        parts = {"Z": Z, "own": np.arange(Z.shape[1]), "straight": alone, "tested": alone}
        found = []
        for y, hat in zip(self.Y.T, g, strict=True):
            hat = expit(hat)
            rest = y[:, None] - hat
            found.append(
                collect(Logistic(), v, rest, hat, **parts, domain=self.domain, fold=self.fold)
            )
        return found
