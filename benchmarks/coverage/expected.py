"""Coverage from few replications, with the true nuisances as a control."""

import numpy as np
from scipy.stats import norm


def expected_coverage(error, half, control, controls):
    """The coverage to expect of many replications.

    A method that estimates the nuisances well errs much as the true nuisances do on the same draws,
    and these are so quick that they have many more draws. So the error is a regression on that of
    the true nuisances, a bias and a rest. Bias and spread are then known far better than from the
    few replications alone. Errors are taken to be normal.

    Parameters
    ----------
    error, half : arrays of shape (R,)
        Errors of the method, and half-widths of its intervals.
    control : array of shape (R,)
        Errors with the true nuisances on the same draws.
    controls : array of shape (C,)
        The same on all draws.

    Returns
    -------
    coverage : float
        NaN with fewer than five replications.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> controls = rng.standard_normal(500)
    >>> error = controls[:20] + 0.1 * rng.standard_normal(20)  # as good as the true nuisances
    >>> round(expected_coverage(error, np.full(20, 1.96), controls[:20], controls), 2)
    0.95
    """
    if len(error) < 5:
        return float("nan")
    centred = control - control.mean()
    slope = centred @ error / max(centred @ centred, 1e-300)
    rest = error - slope * control
    bias = rest.mean() + slope * controls.mean()
    spread = np.sqrt(slope**2 * controls.var() + rest.var(ddof=2))
    return float(np.mean(norm.cdf((half - bias) / spread) - norm.cdf((-half - bias) / spread)))
