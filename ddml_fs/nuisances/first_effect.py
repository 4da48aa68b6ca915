"""Take a first estimate of the effect out of the outcome, before nuisances are learned.

Y − θ₀T has the same confounding as Y, but less noise: what T adds to Y given X is gone, up to the
error of θ₀. So its mean given X is learned from fewer rows. And errors of m no longer appear in g
as well, where they would pull a large effect towards zero. The effect is that of Y, as θ₀ is added
again to the predictions. This is the coupled outcome of the networks, for all nuisances.
"""

from dataclasses import replace

import numpy as np

from ddml_fs.engine.ridge import standardised
from ddml_fs.engine.tails import without_long_tails
from ddml_fs.engine.terms import SparseTerms
from ddml_fs.nuisances.held_out_loss import squared_error


def first_effect(plan):
    """The coefficient θ₀ of the treatment in one sparse regression of all rows.

    Parameters
    ----------
    plan : Plan

    Returns
    -------
    theta : float
        0 for a plan with several treatments or outcomes, or with a 0/1 outcome.

    Examples
    --------
    >>> from ddml_fs.engine.plan import make_plan
    >>> rng = np.random.RandomState(0)
    >>> X = rng.standard_normal((300, 5))
    >>> t = X[:, 0] + rng.standard_normal(300)
    >>> y = 3 * t + X[:, 0] + rng.standard_normal(300)
    >>> given = {"treatments": t[:, None], "own": [-1], "binary_T": [False]}
    >>> round(first_effect(make_plan(X, y[:, None], rng, **given)))
    3
    """
    if plan.T.shape[1] > 1 or plan.Y.shape[1] > 1 or plan.zero_one_Y[0] or plan.binary_Y[0]:
        return 0.0
    rows = np.flatnonzero(plan.weight > 0)
    X = without_long_tails(plan.X[:, plan.inputs(0)].astype(float), plan.weight)
    A = standardised(X, rows, rows, plan.weight).train
    t, y = plan.T[rows, 0].astype(float), plan.Y[rows, 0].astype(float)
    centre, scale = t.mean(), t.std() or 1.0
    model = SparseTerms(A, y, binary=False, t=(t - centre) / scale, weight=plan.weight[rows])
    return float(np.mean(model.predict(A, 1.0) - model.predict(A, 0.0)) / scale)


def without_effect(plan, theta):
    """The plan for the outcome Y − θ₀T."""
    return plan if theta == 0 else replace(plan, Y=plan.Y - theta * plan.T)


def with_effect(plan, theta, parts, predictions):
    """Predictions of Y from stacked predictions of Y − θ₀T.

    Parameters
    ----------
    plan : Plan
        That of Y.
    theta : float
        θ₀.
    parts : dict of Predictions
        The candidates, for Y − θ₀T.
    predictions : Predictions
        Their stack; losses of g become those of Y.
    """
    if theta == 0:
        return predictions
    out = {"g": predictions.g + theta * predictions.m}
    if predictions.mu_1 is not None:
        out["mu_1"] = predictions.mu_1 + theta
    values = np.stack([part.g + theta * predictions.m for part in parts.values()], -2)
    stacking = predictions.stacking
    losses = stacking.losses | {"g": squared_error(values, plan.Y[:, 0], plan.weight)}
    return replace(predictions, **out, stacking=replace(stacking, losses=losses))
