"""Usual ways to bring features into order, for comparison: F-test, mRMR, L1 path, RFE.

Each takes standardised columns Z (N, D) and y, and returns the columns, best first.
"""

import warnings

import numpy as np
import sklearn
from sklearn.feature_selection import RFE, f_classif, f_regression
from sklearn.linear_model import LogisticRegression, Ridge, lasso_path
from sklearn.svm import l1_min_c

LEAST = 1e-3  # of redundancy, so that a column unlike all others does not win for that alone
N_PENALTIES = 20  # of the L1 path, each 0.7 times the one before
ROUNDS = 30  # of the elimination, at most
L1 = (
    {"penalty": "l1"}
    if tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8)
    else {"l1_ratio": 1.0}
)


def standardised(X, like=None):
    """Columns of mean 0 and standard deviation 1 (constant ones 0), as those of ``like``."""
    like = X if like is None else like
    sd = like.std(0)
    return (X - like.mean(0)) / np.where(sd > 0, sd, 1.0)


def relevance(Z, y, label):
    """F of each column alone, (D,); 0 for constant ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constant columns
        F = (f_classif if label else f_regression)(Z, y)[0]
    return np.nan_to_num(F, nan=0.0, posinf=1e12)


def by_f_test(Z, y, label):
    """By F of each column alone."""
    return np.argsort(-relevance(Z, y, label), kind="stable")


def by_mrmr(Z, y, label):
    """By F over the mean absolute correlation with the columns taken before, greedily.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.standard_normal((2, 500))
    >>> Z = standardised(np.column_stack([a, a + 0.05 * rng.standard_normal(500), b]))
    >>> by_mrmr(Z, (a + 0.5 * b > 0).astype(int), True).tolist()[1]
    2
    """
    F, n = relevance(Z, y, label), Z.shape[1]
    redundancy, left, order = np.zeros(n), np.ones(n, bool), []
    for i in range(n):
        ratio = F / (redundancy / i) if i else F
        best = int(np.argmax(np.where(left, ratio, -np.inf)))
        left[best] = False
        order.append(best)
        redundancy += np.abs(Z.T @ Z[:, best] / len(Z)).clip(LEAST)
    return np.array(order)


def by_l1_path(Z, y, label):
    """By the order in which an L1 penalty that falls lets columns in."""
    if label:
        classes = np.unique(y)
        shown = classes[1:] if len(classes) == 2 else classes
        paths = [logistic_path(Z, (y == c).astype(int)) for c in shown]
        path = np.abs(paths).sum(0)
    else:
        centred = y - np.mean(y)
        largest = np.abs(Z.T @ centred).max() / len(Z)  # takes no column
        penalties = largest * np.geomspace(1, 1e-3, N_PENALTIES)
        path = np.abs(lasso_path(Z, centred, alphas=penalties)[1].T)
    inside = path > 0
    first = np.where(inside.any(0), inside.argmax(0), len(path))
    size = np.append(path, np.zeros((1, path.shape[1])), 0)[first, np.arange(path.shape[1])]
    return np.lexsort([-size, first])


def logistic_path(Z, y):
    """Coefficients of L1-logistic regressions whose penalty falls, (N_PENALTIES, D)."""
    path = []
    for C in l1_min_c(Z, y, loss="log") * np.geomspace(1, 1000, N_PENALTIES):
        model = LogisticRegression(C=C, solver="liblinear", random_state=0, **L1)
        path.append(model.fit(Z, y).coef_[0])
    return np.array(path)


def by_elimination(Z, y, label):
    """By recursive elimination of the smallest coefficients of a ridge (logistic) regression."""
    model = LogisticRegression(C=0.1, max_iter=1000) if label else Ridge()
    step = max(1, Z.shape[1] // ROUNDS)
    return np.argsort(RFE(model, n_features_to_select=1, step=step).fit(Z, y).ranking_)


RIVALS = {"F-test": by_f_test, "mRMR": by_mrmr, "L1 path": by_l1_path, "RFE": by_elimination}
