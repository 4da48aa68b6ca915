"""OLS-1 and OLS-2: one linear regression with the treatment as a column, or one for each arm."""

import numpy as np

from experiments.baselines.effects.base import EffectEstimator, require_binary


def regress(A, y):
    """Coefficients (K,) of y on the columns of A (N, K), and their robust (HC1) covariance.

    Collinear columns share their coefficient.
    """
    inverse = np.linalg.pinv(A, rcond=1e-10)
    beta = inverse @ y
    scores = inverse * (y - A @ beta)
    n, rank = len(A), round(np.sum(inverse.T * A))  # the trace of the projection on the columns
    return beta, scores @ scores.T * n / (n - rank)


class OLS1(EffectEstimator):
    """Regress y on an intercept, the treatment and X; the treatment's coefficient is the effect.

    The effect is taken to be constant, so that it is the same for both targets.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> t = np.arange(50) % 2.0
    >>> round(OLS1().fit(X, X[:, 0] + 3 * t, treatment=t).effect_, 6)
    3.0
    """

    def _fit(self, X, y, t):
        beta, covariance = regress(np.column_stack([t, np.ones(len(y)), X]), y)
        self.effect_, self.stderr_ = float(beta[0]), float(np.sqrt(covariance[0, 0]))


class OLS2(EffectEstimator):
    """Regress y on an intercept and X in each arm; the effect is the mean difference.

    The standard error counts the noise of both regressions, and that the target's rows are a
    sample. The treatment must be binary.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(8.0)
    >>> t = np.array([0, 0, 0, 1, 0, 1, 1, 1.0])
    >>> y = x + t * x  # the effect of row i is i
    >>> [round(OLS2(g).fit(x[:, None], y, treatment=t).effect_, 6) for g in ("ate", "att")]
    [3.5, 5.25]
    """

    def _fit(self, X, y, t):
        require_binary(t, "OLS-2")
        A = np.column_stack([np.ones(len(y)), X])
        (b0, V0), (b1, V1) = (regress(A[t == a], y[t == a]) for a in (0, 1))
        self.effect_ = self.average(A @ (b1 - b0), t)
        a = self.average(A, t)
        spread = self.average((A @ (b1 - b0) - self.effect_) ** 2, t)
        n = np.sum(t) if self.target == "att" else len(t)
        self.stderr_ = float(np.sqrt(a @ (V0 + V1) @ a + spread / n))
