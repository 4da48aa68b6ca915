"""Held-out losses of nuisances."""

import numpy as np

EDGE = 1e-3  # probabilities are clipped this far from 0 and 1 in the log-loss


def log_loss(p, target, weight=None):
    """Mean log-loss of 0/1 targets under probabilities, over the last axis, with weights (n,)."""
    p = np.clip(p, EDGE, 1 - EDGE)
    return -np.average(np.log(np.where(target == 1, p, 1 - p)), axis=-1, weights=weight)


def squared_error(predicted, target, weight=None):
    """Mean squared error, over the last axis, with weights (n,)."""
    return np.average((predicted - target) ** 2, axis=-1, weights=weight)


def losses_of(plan, predictions, r=0, c=0, f=0):
    """Held-out losses of all functions: log-loss for 0/1 targets, mean squared error for others.

    The outcome of an arm is evaluated on the rows of this arm.

    Parameters
    ----------
    plan : Plan
    predictions : Predictions
    r, c, f : int
        Numbers of the split, the outcome and the treatment.

    Returns
    -------
    losses : dict of float
    """
    out = {}
    for name in predictions.functions:
        rows, target, binary = target_of(plan, name, c, f)
        loss = log_loss if binary else squared_error
        own = getattr(predictions, name)[r, c, f][rows], target[rows], plan.weight[rows]
        out[name] = float(loss(*own))
    return out


def target_of(plan, name, c, f):
    """Rows on which a function is evaluated, its targets (N,), and whether these are 0/1."""
    everywhere = np.ones(len(plan.X), dtype=bool)
    if name == "m":
        return everywhere, plan.T[:, f].astype(float), bool(plan.binary_T[f])
    outcome, label = plan.Y[:, c].astype(float), bool(plan.zero_one_Y[c])
    if name == "g":
        return everywhere, outcome, label
    return plan.T[:, f] == int(name[-1]), outcome, label
