"""One additive model of all columns, from which every column's nuisances follow."""

import numpy as np
from joblib import effective_n_jobs
from scipy.special import expit

from ddml_fs.engine.additive import AdditiveFit, held_out_losses
from ddml_fs.engine.devices import limit_threads
from ddml_fs.engine.predictions import Predictions
from ddml_fs.engine.resources import Resources
from ddml_fs.nuisances.base import Nuisance
from ddml_fs.validation import check_number

STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1)
WIDEST = 1 / 3  # columns per row; beyond that, residuals of a regression on all others are chance


class Additive(Nuisance):
    """Effects whose errors are honest where columns go together: nothing is left by a penalty.

    All columns together make one (logistic) ridge regression, whose penalty is chosen by held-out
    loss. Without a treatment's own block it predicts the outcome. The treatment itself is
    regressed on all other columns *without* a penalty, with the outcome's weights: what the
    outcome's model misses by its penalty is then without any part in the score. Both are fitted on
    all rows, as in classical regression; the degrees of freedom that this takes are counted.

    Parameters
    ----------
    strength : float or None, default=None
        Penalty of the outcome's model as a share of the columns' variance. None: of 0.0001, 0.001,
        0.01 and 0.1 the one with the least held-out loss.

    Notes
    -----
    For at most a third as many columns as rows.
    """

    def __init__(self, *, strength=None):
        self.strength = strength

    def check(self, score):
        """Refuse a strength that is no positive number, and scores with arms."""
        if self.strength is not None:
            check_number(self.strength, "strength", 0, np.inf)
        if score.arms:
            raise ValueError(f"nuisance='additive' is not for score={score.name!r}.")

    def predict(self, plan, *, arms=False, resources=None):
        """Predictions of all rows, see :meth:`Nuisance.predict`."""
        resources = resources or Resources()
        predictions = Predictions.empty(plan, arms=False)
        resources.progress.start(plan.Y.shape[1])
        dof = 0.0
        with limit_threads(effective_n_jobs(resources.n_jobs)):
            for c, label in enumerate(plan.binary_Y):
                y = plan.Y[:, c].astype(np.float64)
                strength = self.strength
                if strength is None:
                    losses = held_out_losses(plan, y, label, STRENGTHS)
                    strength = STRENGTHS[int(np.argmin(losses))]
                fit = AdditiveFit(plan, y, label, strength)
                dof = max(dof, fit.dof)
                for f in range(plan.T.shape[1]):
                    v, index = fit.left_out(f)
                    predictions.m[:, c, f] = plan.T[:, f] - v
                    predictions.g[:, c, f] = expit(index) if label else index
                resources.progress.advance()
        return predictions.with_dof(dof)
