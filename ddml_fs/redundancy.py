"""An order for many weak columns, such as words: relevance less redundancy."""

import numpy as np

MOST = 1500  # features whose redundancy counts; the rest follow, ordered by their relevance


def squared_correlations(products, own):
    """Squared correlations between features (F, F); means over the columns of each feature.

    Parameters
    ----------
    products : array of shape (P, P)
        Centred sums of squares and products of the columns.
    own : int array of shape (P,)
        The feature of each column.

    Examples
    --------
    >>> S = np.array([[4.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 1.0]])
    >>> squared_correlations(S, np.array([0, 1, 1])).tolist()
    [[1.0, 0.125], [0.125, 0.5]]
    """
    sd = np.sqrt(np.maximum(np.diag(products), 1e-300))
    square = (products / sd / sd[:, None]) ** 2
    member = (own == np.arange(own.max() + 1)[:, None]).astype(float)
    member /= np.maximum(member.sum(1, keepdims=True), 1)
    return member @ square @ member.T


def greedy_order(relevance, shared):
    """Order features by relevance less redundancy.

    The next feature is the one with the largest r² − mean ρ², where r is its relevance, and the
    mean of the squared correlations ρ² is over the features already taken. Both are shares of
    variance. It is the rule of mRMR (Ding & Peng, 2005) with effects as relevance.

    Parameters
    ----------
    relevance : array of shape (F,)
        On the scale of a correlation.
    shared : array of shape (F, F)
        Squared correlations.

    Returns
    -------
    order : int array of shape (F,)
        Best first.

    Examples
    --------
    >>> shared = np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> greedy_order(np.array([0.5, 0.4, 0.3]), shared).tolist()
    [0, 2, 1]
    """
    value, total = relevance**2, np.zeros(len(relevance))
    left = np.ones(len(relevance), dtype=bool)
    order = np.empty(len(relevance), dtype=np.intp)
    for i in range(len(order)):
        best = np.argmax(np.where(left, value - total / max(i, 1), -np.inf))
        order[i], left[best] = best, False
        total += shared[best]
    return order
