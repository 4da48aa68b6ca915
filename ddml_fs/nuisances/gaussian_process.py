"""Gaussian processes as nuisances, for few rows."""

import numpy as np
from joblib import effective_n_jobs

from ddml_fs.engine.devices import limit_threads
from ddml_fs.engine.gaussian_process import gp_predict
from ddml_fs.engine.predictions import Predictions
from ddml_fs.engine.resources import Resources
from ddml_fs.engine.ridge import standardised
from ddml_fs.engine.tails import without_long_tails
from ddml_fs.nuisances.base import Nuisance
from ddml_fs.validation import check_integer

EDGE = 0.005  # predictions of 0/1 targets are clipped this far from 0 and 1


class GaussianProcess(Nuisance):
    """Gaussian process regressions with one length scale per column, all folds in one batch.

    Designed for few rows and nonlinear confounding. A 0/1 target is predicted as a number and
    clipped to [0.005, 0.995]. The variance of a row's noise is divided by its sample weight.
    Columns with long tails are replaced by their normal scores.

    Parameters
    ----------
    max_rows : int, default=2000
        The cost grows with the cube of the number of rows; more rows raise an error.

    Examples
    --------
    >>> from ddml_fs import DDML
    >>> from ddml_fs.datasets import make_effect_data
    >>> data = make_effect_data("continuous", n_samples=200, n_features=10, random_state=0)
    >>> effect = DDML("gp", random_state=0).fit(data.X, data.y, treatment=data.treatment)
    >>> bool(abs(effect.effect_ - data.theta) < 4 * effect.stderr_)
    True
    """

    on_device = True

    def __init__(self, *, max_rows=2000):
        self.max_rows = max_rows

    def check(self, score):
        """Raise unless the limit is a number of rows."""
        check_integer(self.max_rows, "max_rows", 2)

    def predict(self, plan, *, arms=False, resources=None):
        """Cross-fitted predictions, see :meth:`Nuisance.predict`."""
        resources = resources or Resources()
        if len(plan.X) > self.max_rows:
            raise ValueError(
                f"a Gaussian process takes at most max_rows={self.max_rows} rows, got "
                f"{len(plan.X)}; use another nuisance."
            )
        predictions = Predictions.empty(plan, arms)
        n_folds, *others = plan.shape
        total = plan.n_problems * len(predictions.functions)
        resources.progress.start(total, "Gaussian processes")
        device = resources.devices[0]
        for c, f in np.ndindex(*others):
            members = [np.ravel_multi_index((k, c, f), plan.shape) for k in range(n_folds)]
            regressions = [r for i in members for r in self._regressions(plan, i, arms)]
            seeds = np.repeat(plan.seeds, len(predictions.functions)).tolist()
            with limit_threads(effective_n_jobs(resources.n_jobs)):
                values = gp_predict(regressions, seeds, device, progress=resources.progress)
            binary = [plan.binary_T[f], *[plan.zero_one_Y[c]] * (3 if arms else 1)]
            for i in members:
                own = [values.pop(0) for _ in binary]
                kept = [
                    np.clip(v, EDGE, 1 - EDGE) if b else v for v, b in zip(own, binary, strict=True)
                ]
                predictions.put(plan, i, kept)
        return predictions

    def _regressions(self, plan, i, arms):
        """Inputs, targets and new inputs of the functions of problem i."""
        k, c, f = plan.problem(i)
        fold = plan.folds[k]
        X, w = plan.X[:, plan.inputs(f)].astype(float), plan.weight[fold.train]
        A, B, _ = standardised(
            without_long_tails(X, plan.weight), fold.train, fold.hold, plan.weight
        )
        t, y = plan.T[fold.train, f].astype(float), plan.Y[fold.train, c].astype(float)
        regressions = [(A, t, B, w), (A, y, B, w)]
        return regressions + [(A[t == a], y[t == a], B, w[t == a]) for a in (0, 1) if arms]
