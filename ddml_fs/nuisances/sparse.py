"""Sparse regressions on curves and products of columns."""

from ddml_fs.engine.predictions import average
from ddml_fs.engine.ridge import standardised
from ddml_fs.engine.terms import SparseTerms
from ddml_fs.nuisances.closed_form import PerProblem


class Sparse(PerProblem):
    """Regressions on a few terms, chosen one after another among curves and products of columns.

    Terms are the columns, their squares, hinges and steps at seven quantiles, and products of two
    columns. The product of a chosen term with a curve of another column is a term as well, of three
    columns at most. The outcome per arm comes from one model of both arms, in which products of
    terms with the treatment are terms too. The terms are chosen by up to 10 000 rows, among those
    of the 60 columns that matter most.

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

    def values_of(self, plan, i, arms):
        """Held-out predictions (2 or 4, n_hold) of problem i."""
        k, c, f = plan.problem(i)
        fold = plan.folds[k]
        X, w = plan.X[:, plan.inputs(f)].astype(float), plan.weight[fold.train]
        A, B, _ = standardised(X, fold.train, fold.hold, plan.weight)
        t, y = plan.T[fold.train, f].astype(float), plan.Y[fold.train, c].astype(float)
        label = bool(plan.zero_one_Y[c])
        m = SparseTerms(A, t, bool(plan.binary_T[f]), weight=w).predict(B)
        if not arms:
            return m, SparseTerms(A, y, label, weight=w).predict(B)
        outcome = SparseTerms(A, y, label, t, w)
        mu = [outcome.predict(B, a) for a in (0, 1)]
        return m, average(m, mu), *mu
