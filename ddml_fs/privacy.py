"""Noise that makes sums over rows differentially private."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from ddml_fs.engine.moments import Cell
from ddml_fs.validation import check_number


@dataclass(frozen=True, eq=False)
class GaussianNoise:
    """Normal noise by which sums over rows hide every single row.

    The file of a site is then (``epsilon``, ``delta``)-differentially private: whether or not any
    one row is in the table hardly changes the distribution of the file.

    Parameters
    ----------
    epsilon : float
        The smaller, the more private: 1 is strict, 10 is lax.
    delta : float, default=1e-5
        Chance of a larger loss of privacy; well below 1 / number of rows.
    low, high : floats or arrays of shape (n_features,)
        Bounds of the columns; values beyond are clipped. They must be known without looking at the
        rows, as the range that a measurement can have.
    y_low, y_high : float, optional
        The same for a numeric y. Labels need none.

    Notes
    -----
    The P columns are scaled to [−a, a] with a = P^(−1/4), which balances the noise of the products
    of columns and of those with y, and y to [−1, 1]. A row z, with 1 in the place of its class or,
    for a numeric y, with y and the constant 1, adds the products z_i·z_j (i ≤ j) to the sums. Their
    norm is √((‖z‖⁴ + Σz_i⁴)/2), which is largest at the bounds: this is the sensitivity. The
    standard deviation of the noise follows from it by the analytic Gaussian mechanism (Balle &
    Wang, 2018). Each row is in one cell only, so one budget serves all cells. Folds are drawn row
    by row, so that no row moves another one.

    Examples
    --------
    >>> round(GaussianNoise(1.0, low=0, high=1).multiplier, 2)
    3.73
    """

    epsilon: float
    delta: float = 1e-5
    low: Any = None
    high: Any = None
    y_low: float | None = None
    y_high: float | None = None

    @property
    def multiplier(self):
        """Standard deviation of the noise for sums of sensitivity 1."""

        def excess(log_s):
            s = np.exp(log_s)
            a, b = 0.5 / s, self.epsilon * s
            return norm.cdf(a - b) - np.exp(self.epsilon + norm.logcdf(-a - b)) - self.delta

        return float(np.exp(brentq(excess, np.log(1e-4), np.log(1e6))))

    @staticmethod
    def sensitivity(P, label):
        """Largest norm of what one row with P columns adds to the sums."""
        squares = np.r_[np.full(P, P**-0.5), np.ones(1 if label else 2)]
        return float(np.sqrt((squares.sum() ** 2 + (squares**2).sum()) / 2))

    def check(self, P, label):
        """Bounds of P columns and, for a number, of y, as arrays; raises if they are wrong."""
        check_number(self.epsilon, "epsilon", 1e-6, 1e3)
        check_number(self.delta, "delta", 1e-300, 0.5)
        bounds = [self.low, self.high, *([] if label else [self.y_low, self.y_high])]
        if any(bound is None for bound in bounds):
            needed = "low and high" if label else "low, high, y_low and y_high"
            raise ValueError(f"noise needs {needed}, the bounds of what is summed up.")
        low, high = (np.broadcast_to(np.asarray(b, dtype=float), P) for b in bounds[:2])
        if not label:
            low, high = np.r_[low, bounds[2]], np.r_[high, bounds[3]]
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
            raise ValueError("bounds of noise must be finite, and low must be below high.")
        return low, high

    def cell(self, X, y, classes, rng):
        """The :class:`~ddml_fs.engine.moments.Cell` of rows, with noise.

        Parameters
        ----------
        X : array of shape (n, Q)
            A numeric outcome is the last column.
        y : array of shape (n,), or None
            Labels.
        classes : list
            All labels, which are public.
        rng : Generator
        """
        label, Q = y is not None, X.shape[1]
        P = Q if label else Q - 1
        low, high = self.check(P, label)
        half, middle = (high - low) / 2, (high + low) / 2
        half[:P] *= P**0.25
        beside = (y[:, None] == np.array(classes)) if label else np.ones((len(X), 1))
        Z = np.hstack([(np.clip(X, low, high) - middle) / half, beside])
        sd = self.multiplier * self.sensitivity(P, label)
        noise = np.triu(rng.normal(0.0, sd, (Z.shape[1], Z.shape[1])))
        M = Z.T @ Z + noise + np.triu(noise, 1).T
        counts = np.maximum(np.diag(M)[Q:], 1.0)
        n = counts.sum()
        mean = M[:Q, Q:].sum(1) / n
        # What follows only uses the noisy sums. Sums of squares have no negative eigenvalues.
        values, vectors = np.linalg.eigh(M[:Q, :Q] - n * np.outer(mean, mean))
        S = (vectors * np.maximum(values, 0.0)) @ vectors.T
        cell = Cell(mean * half + middle, S * np.outer(half, half), n)
        if label:
            own = np.clip((M[:Q, Q:] / counts).T * half + middle, low, high)
            cell.classes = {c: (m, mean) for c, m, mean in zip(classes, counts, own, strict=True)}
        return cell
