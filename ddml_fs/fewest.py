"""The fewest features that are as good as the best number of them, by paired tests."""

import numpy as np
from scipy import stats

DOUBT = 0.15  # level of the one-sided tests between two numbers of features
MARGIN = 0.003  # of the loss: 0.3 points of the area under the ROC curve


def compare(losses, weight, influence, reference):
    """Mean difference of each number's loss to that of a reference, and its one-sided error.

    With few parts, the losses of the parts may be similar by chance. So the standard error of a
    mean difference is at least the one that follows from the rows within the parts.

    Parameters
    ----------
    losses : array of shape (splits, numbers)
    weight : array of shape (splits,)
    influence : list of arrays of shape (numbers, n_rows)
        For each split, the influence of its rows on its losses.
    reference : int
        Position of a number.

    Returns
    -------
    mean, reach : arrays of shape (numbers,)
        With a chance of :data:`DOUBT` the true difference is beyond mean + reach.
    """
    weight = weight / weight.sum()
    difference = losses - losses[:, [reference]]
    mean = weight @ difference
    within = [((rows - rows[reference]) ** 2).sum(1) for rows in influence]
    within = weight**2 @ np.array(within)
    if len(losses) == 1:
        return mean, stats.norm.isf(DOUBT) * np.sqrt(within)
    # Variance of a weighted mean of independent differences.
    rest = ((weight[:, None] * (difference - mean)) ** 2).sum(0)
    between = rest / (1 - (weight**2).sum())
    df = max(1 / (weight**2).sum() - 1, 1)
    reach = stats.t.isf(DOUBT, df) * np.sqrt(between)
    return mean, np.maximum(reach, stats.norm.isf(DOUBT) * np.sqrt(within))


def as_good(losses, weight, influence, margin=MARGIN, risky=False, moving=False):
    """Position of the first number that is as good as the best one, or of the last: all features.

    Two numbers may be too close to tell. By default a number must be shown to be as good, and all
    features are taken in doubt. If effects move between domains, it must not be shown to be worse.

    Parameters
    ----------
    losses, weight, influence
        As in :func:`compare`.
    margin : float
    risky : bool
        Whether the last number has features whose risk exceeds their gain. It is then chosen only
        if it is better than the choice among the others.
    moving : bool
        Whether the effects of many features move between domains, so that fewer are taken in doubt.

    Examples
    --------
    >>> losses = np.array([[0.4, 0.201, 0.2, 0.2], [0.4, 0.2, 0.2, 0.2], [0.4, 0.2, 0.201, 0.2]])
    >>> as_good(losses, np.ones(3), [np.zeros((4, 9))] * 3, margin=0.01)
    1
    """
    last = losses.shape[1] - 1
    if risky:
        harmless = losses[:, :-1], weight, [rows[:-1] for rows in influence]
        chosen = as_good(*harmless, margin, moving=moving)
        mean, reach = compare(losses, weight, influence, chosen)
        return last if mean[last] + reach[last] < 0 else chosen
    mean, reach = compare(losses, weight, influence, last)
    best = int(np.argmin(mean))
    if moving:
        mean, reach = compare(losses, weight, influence, best)
        return int(np.argmax(mean - reach <= margin))
    reference = best if mean[best] + reach[best] < 0 else last
    mean, reach = compare(losses, weight, influence, reference)
    return int(np.argmax(mean + reach <= margin))
