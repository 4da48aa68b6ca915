"""Make probabilities less extreme where held-out rows say that they are too extreme.

A network that fits its training rows too closely predicts propensities too near to 0 and 1, the
more so the fewer rows there are. Scores that divide by a propensity then give a few rows a huge
weight. Platt's (1999) remedy is a logistic regression of the target on the predicted log-odds. Its
two coefficients are learned from the held-out predictions of all rows, as the weights of a stack.
"""

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from ddml_fs.scores import log_odds, residual_on_residual, residuals


def calibrated(plan, predictions, *, coupled):
    """Predictions whose probabilities of 0/1 targets are calibrated.

    Parameters
    ----------
    plan : Plan
    predictions : Predictions
        With m for 0/1 treatments and g for labels as probabilities.
    coupled : bool
        Whether g contains θ·m, which then changes with m.

    Returns
    -------
    predictions : Predictions
    """
    m, g, w = predictions.m.copy(), predictions.g.copy(), plan.weight
    for at in np.ndindex(m.shape[:3]):
        _, c, f = at
        T, Y = plan.T[:, f], plan.Y[:, c]
        if plan.binary_T[f]:
            m[at] = less_extreme(m[at], T, w)
        if plan.binary_Y[c]:
            g[at] = less_extreme(g[at], Y, w)
        if coupled:
            v, e = residuals(T, predictions.m[at], Y, predictions.g[at])
            theta = residual_on_residual(np.sqrt(w) * v, np.sqrt(w) * e)
            g[at] += theta * (m[at] - predictions.m[at])
    return replace(predictions, m=m, g=g)


def less_extreme(p, target, weight):
    """Probabilities with log-odds a + b·logit(p), where b is at most 1 and not negative.

    Parameters
    ----------
    p : array of shape (n,)
        Held-out predictions of a 0/1 target.
    target, weight : arrays of shape (n,)

    Returns
    -------
    p : array of shape (n,)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> index = rng.standard_normal(5000)
    >>> y = (rng.random(5000) < expit(index)).astype(float)
    >>> bool(np.abs(less_extreme(expit(3 * index), y, np.ones(5000)) - expit(index)).max() < 0.03)
    True
    >>> bool(np.allclose(less_extreme(expit(index), y, np.ones(5000)), expit(index), atol=0.03))
    True
    """
    index, w = log_odds(p.astype(np.float64)), weight / weight.sum()

    def loss(coefficients):
        eta = coefficients[0] + coefficients[1] * index
        excess = w * (expit(eta) - target)
        return w @ (np.logaddexp(0, eta) - target * eta), np.array([excess.sum(), excess @ index])

    bounds = [(None, None), (0.0, 1.0)]
    a, b = minimize(loss, [0.0, 1.0], jac=True, method="L-BFGS-B", bounds=bounds).x
    return expit(a + b * index).astype(p.dtype)
