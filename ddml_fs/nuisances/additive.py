"""One additive model of all columns, which gives the nuisances of every column."""

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
WIDEST = 1 / 3  # columns per row; with more, residuals of a regression on all others are noise


class Additive(Nuisance):
    """One additive model of all columns, with valid standard errors for correlated columns.

    The outcome is predicted by one (logistic) ridge regression on all columns, without the block of
    the treatment. Its penalty is chosen by held-out loss. The treatment is regressed on all other
    columns *without* a penalty, with the weights of the outcome's model. Its residuals are then
    orthogonal to these columns, so the bias of the penalised outcome model does not enter the
    score. Both models are fitted on all rows, as in classical regression, and standard errors
    account for their degrees of freedom.

    Parameters
    ----------
    strength : float or None, default=None
        Penalty of the outcome's model as a share of the columns' variance. None: the one of 0.0001,
        0.001, 0.01 and 0.1 with the lowest held-out loss.

    Notes
    -----
    Use it with at most one column per three rows.
    """

    def __init__(self, *, strength=None):
        self.strength = strength

    def check(self, score):
        """Raise for a negative strength, and for scores with arms."""
        if self.strength is not None:
            check_number(self.strength, "strength", 0, np.inf)
        if score.arms:
            raise ValueError(f"nuisance='additive' is not for score={score.name!r}.")

    def predict(self, plan, *, arms=False, resources=None):
        """Predictions of all rows, see :meth:`Nuisance.predict`."""
        resources = resources or Resources()
        predictions = Predictions.empty(plan, arms=False)
        resources.progress.start(plan.Y.shape[1] * plan.T.shape[1], "columns")
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
