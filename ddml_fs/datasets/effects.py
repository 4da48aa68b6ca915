"""Synthetic data with one treatment whose effect is known."""

import numpy as np
from sklearn.utils import Bunch, check_random_state

KINDS = ("binary", "continuous")

# The columns that enter each factor of section V-A. Columns 0 to 3 act in Zc and in Zy,
# so every driver of the outcome but none of Zt's is a confounder.
ROLES = {"confounder": [0, 1, 2, 3, 4], "treatment": [5, 6, 7, 8, 9], "outcome": [0, 1, 2, 3]}


def make_effect_data(
    kind="binary", *, n_samples=6000, n_features=20, theta=5.0, alpha=4.0, random_state=None
):
    """Draw the paper's synthetic data (section V-A): mixed covariates, strong confounding.

    Parameters
    ----------
    kind : {"binary", "continuous"}, default="binary"
        The kind of treatment.
    n_samples : int, default=6000
        Rows, N.
    n_features : int, default=20
        Columns of X, d; at least 10, of which ten matter.
    theta : float, default=5.0
        The true effect.
    alpha : float, default=4.0
        Weight of the confounder and the outcome factor in Y. The paper leaves it open; 4
        reproduces its OLS rows.
    random_state : int, RandomState or None, default=None
        Seed of all draws.

    Returns
    -------
    data : Bunch
        ``X`` (N, d), ``treatment`` (N,), ``y`` (N,), ``theta``, the true nuisance values
        ``m`` = E[T | X] and ``g`` = E[Y | X], each (N,), and ``roles``, a dict from
        "confounder", "treatment" and "outcome" to the columns that drive Zc, Zt and Zy.

    Examples
    --------
    >>> from ddml_fs.datasets import make_effect_data
    >>> data = make_effect_data("continuous", n_samples=100, random_state=0)
    >>> data.X.shape, data.theta
    ((100, 20), 5.0)
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {KINDS}, got {kind!r}.")
    if n_features < 10:
        raise ValueError(f"n_features must be at least 10, got {n_features}.")
    rng = check_random_state(random_state)
    X = _mixed_covariates(rng, n_samples, n_features)

    Zc = 0.6 * X[:, 0] * X[:, 1] + 0.4 * X[:, 2] ** 2 + 0.3 * np.sin(X[:, 3] + X[:, 4])
    Zt = 0.5 * X[:, 5] * X[:, 6] + 0.3 * np.tanh(X[:, 7]) + 0.2 * np.cos(X[:, 8] + X[:, 9])
    Zy = 0.5 * X[:, 1] * X[:, 2] + 0.3 * np.cos(X[:, 0] + X[:, 3])

    alpha_c, alpha_t = 4.0, 2.0
    if kind == "binary":
        m = 1 / (1 + np.exp(-(alpha_c * Zc + alpha_t * Zt)))
        treatment = rng.binomial(1, m).astype(float)
    else:
        m = alpha_c * (Zc + 0.5 * np.tanh(Zc)) + alpha_t * (Zt + 0.3 * np.sin(Zt))
        treatment = m + rng.standard_normal(n_samples)
        mean, sd = treatment.mean(), treatment.std()
        m, treatment = (m - mean) / sd, (treatment - mean) / sd
    f = alpha * (Zc + Zy)
    y = f + theta * treatment + rng.standard_normal(n_samples)
    return Bunch(X=X, treatment=treatment, y=y, theta=theta, m=m, g=f + theta * m, roles=ROLES)


def make_dense_effect_data(
    kind="binary", *, n_samples=6000, n_features=50, theta=5.0, random_state=None
):
    """Draw data in which every column is a weak confounder, so that no input may be dropped.

    Both nuisances are a dense linear index of all columns passed through a smooth curve.

    Parameters
    ----------
    kind : {"binary", "continuous"}, default="binary"
        The kind of treatment.
    n_samples, n_features : int
        Size of X.
    theta : float, default=5.0
        The true effect.
    random_state : int, RandomState or None, default=None
        Seed of all draws.

    Returns
    -------
    data : Bunch
        As from :func:`make_effect_data`; every column is a confounder.

    Examples
    --------
    >>> from ddml_fs.datasets import make_dense_effect_data
    >>> make_dense_effect_data(n_samples=100, random_state=0).X.shape
    (100, 50)
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {KINDS}, got {kind!r}.")
    rng = check_random_state(random_state)
    X = rng.standard_normal((n_samples, n_features))
    a, b = rng.choice([-1.0, 1.0], (2, n_features)) * rng.uniform(0.5, 1.5, (2, n_features))
    # Half of the outcome's weights agree with the treatment's: confounding that does not cancel.
    b = 0.5 * (a + b)
    index_t, index_y = X @ a / np.sqrt(n_features), X @ b / np.sqrt(n_features)
    if kind == "binary":
        m = 1 / (1 + np.exp(-(1.5 * index_t)))
        treatment = rng.binomial(1, m).astype(float)
    else:
        m = index_t + 0.5 * np.tanh(index_t)
        treatment = m + rng.standard_normal(n_samples)
    f = 3.0 * index_y + np.sin(index_y)
    y = f + theta * treatment + rng.standard_normal(n_samples)
    roles = {"confounder": list(range(n_features)), "treatment": [], "outcome": []}
    return Bunch(X=X, treatment=treatment, y=y, theta=theta, m=m, g=f + theta * m, roles=roles)


def _mixed_covariates(rng, n_samples, n_features, entanglement=8.0):
    """X (N, d): Gaussian factors, globally mixed and bent."""
    Z = rng.standard_normal((n_samples, n_features))
    M = entanglement * rng.standard_normal((n_features, n_features))
    X_lin = Z + Z @ M / n_features
    return np.tanh(X_lin) + 0.2 * np.sin(X_lin @ M.T / n_features)
