"""Coverage from few replications, with the true nuisances as a control."""

import numpy as np


def expected_coverage(error, control, controls):
    """The coverage to expect of many replications.

    A method that estimates the nuisances well errs much as the true nuisances do on the same draws,
    and these are so quick that they have many more draws. So the error of the method is a
    regression on that of the true nuisances, plus a rest, whose mean is the method's own bias. Few
    replications show the rest well, and many draws show the error of the true nuisances. Errors are
    in units of the half-width of each interval, so that an interval holds if its error is at most
    1, and neither errors nor standard errors have to be normal.

    Parameters
    ----------
    error : array of shape (R,)
        Errors of the method, each divided by half the width of its interval.
    control : array of shape (R,)
        The same with the true nuisances, on the same draws.
    controls : array of shape (C,)
        The same on all draws.

    Returns
    -------
    coverage : float
        NaN with fewer than five replications.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> controls = rng.standard_normal(500) / 1.96
    >>> error = controls[:20] + 0.1 * rng.standard_normal(20)  # as good as the true nuisances
    >>> round(expected_coverage(error, controls[:20], controls), 2)
    0.95
    """
    R = len(error)
    if R < 5:
        return float("nan")
    centred = control - control.mean()
    slope = centred @ error / max(centred @ centred, 1e-300)
    rest = error - slope * control
    # Two parameters were fitted, so that the rest varies a little more than it seems to.
    rest = rest.mean() + (rest - rest.mean()) * np.sqrt(R / (R - 2))
    return float(np.mean(np.abs(slope * controls + rest[:, None]) <= 1))
