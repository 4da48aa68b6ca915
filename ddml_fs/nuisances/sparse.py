"""Sparse regressions on curves and products of columns."""

import numpy as np

from ddml_fs.engine.indices import linear_indices
from ddml_fs.engine.predictions import average
from ddml_fs.engine.ridge import standardised
from ddml_fs.engine.tails import without_long_tails
from ddml_fs.engine.terms import SparseTerms
from ddml_fs.nuisances.closed_form import PerProblem
from ddml_fs.validation import check_option


class Sparse(PerProblem):
    """Regressions on a few terms, chosen one after another among curves and products of columns.

    Terms are the columns, their squares, hinges and steps at seven quantiles, and products of two
    columns. The product of a chosen term with a curve of another column is a term as well, of three
    columns at most. The outcome per arm comes from one model of both arms, in which products of
    terms with the treatment are terms too. The terms are chosen by up to 10 000 rows (3000 with
    60 columns or more), among those of the 60 columns that matter most. Columns with long tails
    are replaced by their normal scores.

    Parameters
    ----------
    index : bool, default=False
        Whether linear predictions of the treatment and of the outcome are columns, too. Their
        curves and products stand for many columns that act together through a sum.

    Examples
    --------
    >>> from ddml_fs import DDML
    >>> from ddml_fs.datasets import make_effect_data
    >>> data = make_effect_data("continuous", n_samples=300, random_state=0)
    >>> effect = DDML("sparse", random_state=0).fit(data.X, data.y, treatment=data.treatment)
    >>> bool(abs(effect.effect_ - data.theta) < 4 * effect.stderr_)
    True
    """

    unit = "sparse regressions"

    def __init__(self, *, index=False):
        self.index = index

    def check(self, score):
        """Raise unless ``index`` is true or false."""
        check_option(self.index, "index", (True, False))

    def values_of(self, plan, i, arms):
        """Held-out predictions (2 or 4, n_hold) of problem i."""
        k, c, f = plan.problem(i)
        fold = plan.folds[k]
        X, w = plan.X[:, plan.inputs(f)].astype(float), plan.weight[fold.train]
        A, B, _ = standardised(
            without_long_tails(X, plan.weight), fold.train, fold.hold, plan.weight
        )
        t, y = plan.T[fold.train, f].astype(float), plan.Y[fold.train, c].astype(float)
        if self.index:
            found = linear_indices(A, np.column_stack([t, y]), B, w)
            A, B = (np.hstack(pair) for pair in zip((A, B), found, strict=True))
        label = bool(plan.zero_one_Y[c])
        m = SparseTerms(A, t, bool(plan.binary_T[f]), weight=w).predict(B)
        if not arms:
            return m, SparseTerms(A, y, label, weight=w).predict(B)
        outcome = SparseTerms(A, y, label, t, w)
        mu = [outcome.predict(B, a) for a in (0, 1)]
        return m, average(m, mu), *mu
