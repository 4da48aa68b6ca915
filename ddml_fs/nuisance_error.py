"""What errors of the nuisances add to the standard error of an effect.

The effect is off by E[Δm·Δg] / E[v²] if the nuisances err by Δm and Δg. With many rows this product
is much smaller than the standard error, which therefore leaves it out. With few rows, or where the
nuisances are hard to learn, it is not. How far the candidates of a stack are from each other shows
how far they are from the truth: on simulated data both were of the same order (0.3 to 2 times the
squared error of the stack, in nine worlds with 500 and 2000 rows).
"""

import numpy as np

from ddml_fs.weights import weighted_mean

# Chosen for the coverage of 95 % intervals with 300 to 2000 rows in nine worlds, five of which are
# in the coverage study, with other seeds (experiments/effects/results/tuned.md).
SHARE, ROWS = 0.7, 700


def share_of(n_rows):
    """Share of the largest error that Δm and Δg can cause, as their correlation is not known.

    With few rows, all models miss the same parts of the confounding in m and in g, so that Δm and
    Δg are correlated. With more rows, what is left is rather noise, which is not.

    Examples
    --------
    >>> [round(share_of(n), 2) for n in (100, 300, 700, 2000, 6000)]
    [1.0, 0.93, 0.7, 0.49, 0.34]
    """
    return min(SHARE * (ROWS / n_rows) ** (1 / 3), 1.0)


def nuisance_error(plan, predictions, score, r=0):
    """The standard deviation of an effect that comes from errors of the nuisances.

    Parameters
    ----------
    plan : Plan
        With one treatment and one outcome.
    predictions : Predictions
    score : Score
    r : int
        Number of the split.

    Returns
    -------
    error : float
        s·√(A_m·A_g) / E[v²], where A is the weighted mean squared distance of the candidates from
        their stack, and s is :func:`share_of` the rows; 0 if the nuisances are not stacked.
    """
    if predictions.stacking is None:
        return 0.0
    hat = predictions.of(r)
    square = (plan.T[:, 0] - hat.m) ** 2
    if score.label:
        square = square * hat.g * (1 - hat.g)
    away = predictions.stacking.disagreement
    size = np.sqrt(away["m"][r, 0, 0] * away["g"][r, 0, 0])
    share = share_of((plan.weight > 0).sum())
    return float(share * size / max(weighted_mean(square, plan.weight), 1e-300))
