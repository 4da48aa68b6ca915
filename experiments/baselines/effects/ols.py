"""OLS-1: one linear regression with the treatment as a column."""

import numpy as np
from sklearn.base import BaseEstimator

from ddml_fs.inference import normal_interval


class OLS1(BaseEstimator):
    """Regress y on an intercept, the treatment and X; the treatment's coefficient is the effect.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> t = np.arange(50) % 2.0
    >>> round(OLS1().fit(X, X[:, 0] + 3 * t, treatment=t).effect_, 6)
    3.0
    """

    def fit(self, X, y, *, treatment):
        """Fit, with heteroscedasticity-robust (HC1) standard errors."""
        design = np.column_stack([treatment, np.ones(len(y)), X])
        inverse = np.linalg.inv(design.T @ design)
        beta = inverse @ (design.T @ y)
        scores = design * (y - design @ beta)[:, None]
        n, k = design.shape
        covariance = inverse @ (scores.T @ scores) @ inverse * n / (n - k)
        self.effect_, self.stderr_ = float(beta[0]), float(np.sqrt(covariance[0, 0]))
        return self

    def conf_int(self, level=0.95):
        """Normal interval."""
        return normal_interval(self.effect_, self.stderr_, level)
