"""How strong a confounder that was not measured would have to be to explain an effect away.

The bias that omitted variables can cause is at most |ρ|·S·√(cf_y·cf_d / (1 − cf_d)), with S = σν
(Chernozhukov, Cinelli, Newey, Sharma & Syrgkanis, 2022). cf_y is the share of the outcome's
residual variance that they explain, cf_d the share of the variation of the treatment's weights
that they add, and ρ the correlation of the two. σ² is the outcome's residual variance, and ν² is
the second moment of the weights (the Riesz representer).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import optimize, stats
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ddml_fs.estimate import FittedEffect
from ddml_fs.inference import robustness_value, stderr_of, strength
from ddml_fs.scores import Interactive, PartiallyLinear, residuals
from ddml_fs.validation import check_number
from ddml_fs.warning import said_before
from ddml_fs.weights import influence_on_mean, weighted_mean, weighted_var

STRONGEST = 0.999  # a confounder's strength, at most


@dataclass(frozen=True)
class Elements:
    """What the bias of omitted variables depends on.

    Attributes
    ----------
    sigma2, nu2 : float
        Residual variance of the outcome, and second moment of the Riesz representer.
    psi_sigma2, psi_nu2 : arrays of shape (N,)
        Influence of each row on them.
    """

    sigma2: float
    nu2: float
    psi_sigma2: np.ndarray
    psi_nu2: np.ndarray

    @property
    def S(self):
        """σν: the bias of a confounder with cf_y·cf_d / (1 − cf_d) = 1."""
        return float(np.sqrt(self.sigma2 * self.nu2))

    @property
    def psi_S(self):
        """Influence of each row on S, (N,)."""
        return (self.sigma2 * self.psi_nu2 + self.nu2 * self.psi_sigma2) / (2 * self.S)


def elements(score, T, Y, hat, theta, weight=1.0):
    """σ² and ν² of a score, with the influence of every row.

    Parameters
    ----------
    score : PartiallyLinear or Interactive
    T, Y : arrays of shape (N,)
    hat : object with ``m``, ``g`` or ``mu_0`` and ``mu_1``
        Held-out predictions.
    theta : float
        The effect.
    weight : float or array of shape (N,)
        Weights of the rows.

    Returns
    -------
    elements : Elements, or None for scores without a linear bias, such as the logistic one
    """
    if isinstance(score, PartiallyLinear):
        v, e = residuals(T, hat.m, Y, hat.g)
        squares = (e - theta * v) ** 2
        nu2 = 1 / weighted_mean(v**2, weight)
        psi_nu2 = -(nu2**2) * influence_on_mean(v**2, weight)
        sigma2, psi_sigma2 = weighted_mean(squares, weight), influence_on_mean(squares, weight)
        return Elements(sigma2, nu2, psi_sigma2, psi_nu2)
    if isinstance(score, Interactive):
        m = np.clip(hat.m, score.clip, 1 - score.clip)
        squares = (Y - np.where(T == 1, hat.mu_1, hat.mu_0)) ** 2
        share = weighted_mean(T, weight)
        own, own_bar = (1.0, 1.0) if score.target == "ate" else (T / share, m / share)
        representer = own_bar * (T / m - (1 - T) / (1 - m))
        moment = own * own_bar * (1 / m + 1 / (1 - m))
        second = 2 * moment - representer**2  # its mean is that of the square, and is orthogonal
        if weighted_mean(second, weight) <= 0:
            second = representer**2
        means = [weighted_mean(a, weight) for a in (squares, second)]
        return Elements(*means, *(influence_on_mean(a, weight) for a in (squares, second)))
    return None


def bounds(theta, influence, given, bias, level, clusters=None, inflation=1.0, nuisance_stderr=0.0):
    """Bounds of the effect under a bias in units of S, and one-sided limits of them.

    ``nuisance_stderr`` is the error of the effect that its influence function does not see.

    Returns
    -------
    low, high, ci_low, ci_high : float
    """
    low, high = theta - bias * given.S, theta + bias * given.S
    z = stats.norm.ppf(level)

    def error(sign):
        own = stderr_of(influence + sign * bias * given.psi_S, clusters)
        return np.hypot(inflation * own, nuisance_stderr)

    return low, high, low - z * error(-1), high + z * error(1)


class SensitivityMixin(FittedEffect):
    """Sensitivity of a fitted effect to hidden confounding; needs ``_elements_`` from ``fit``."""

    def sensitivity_elements(self) -> Elements:
        """σ², ν² and the influence of every row on them, which the bias depends on."""
        check_is_fitted(self)
        if self._elements_ is None:
            raise AttributeError(
                f"sensitivity needs score='partially_linear' or 'interactive', got {self.score_!r}."
            )
        return self._elements_

    def sensitivity(
        self,
        cf_y: float = 0.03,
        cf_d: float = 0.03,
        rho: float = 1.0,
        *,
        level: float = 0.95,
        null: float = 0.0,
    ) -> pd.Series:
        """Bounds of the effect if a confounder of given strength was not measured.

        Parameters
        ----------
        cf_y : float, default=0.03
            Share of the outcome's residual variance that the confounder explains.
        cf_d : float, default=0.03
            Share of the residual variance of the treatment that it explains. (For a 0/1 treatment
            with the interactive score: of the second moment of the inverse-propensity weights.)
        rho : float, default=1.0
            How well the two go together; 1 is the worst case.
        level : float, default=0.95
            Coverage of the limits ``ci_low`` and ``ci_high``, each one-sided.
        null : float, default=0.0
            The effect that the robustness values ask about.

        Returns
        -------
        row : Series
            ``effect``; ``low`` and ``high``, its bounds; ``ci_low`` and ``ci_high``, confidence
            limits of these; ``robustness``, the strength r = cf_y = cf_d at which the bounds reach
            ``null``; ``robustness_ci``, that at which their limits do.

        Examples
        --------
        >>> from ddml_fs import DDML
        >>> from ddml_fs.datasets import make_effect_data
        >>> data = make_effect_data("continuous", n_samples=2000, n_features=10, random_state=0)
        >>> effect = DDML("ridge", random_state=0).fit(data.X, data.y, treatment=data.treatment)
        >>> row = effect.sensitivity(cf_y=0.1, cf_d=0.1)
        >>> bool(row["low"] < effect.effect_ < row["high"]), bool(0 < row["robustness_ci"] < 1)
        (True, True)
        """
        given = self.sensitivity_elements()
        check_number(cf_y, "cf_y", 0, 1)
        check_number(cf_d, "cf_d", 0, STRONGEST)
        check_number(rho, "rho", -1, 1)
        check_number(level, "level", 0.5, 1 - 1e-6)
        theta, influence = self.effect_, self.influence_
        names = ("low", "high", "ci_low", "ci_high")
        errors = self._clusters_, self._inflation_, self.nuisance_stderr_
        found = bounds(theta, influence, given, strength(cf_y, cf_d, rho), level, *errors)
        row = {"effect": theta} | dict(zip(names, map(float, found), strict=True))
        towards = 2 if theta > null else 3  # the limit on the side of the null

        def gap(r):
            limit = bounds(theta, influence, given, strength(r, r, rho), level, *errors)[towards]
            return (limit - null) * (1 if theta > null else -1)

        row["robustness"] = float(
            robustness_value(abs(theta - null) / given.S / max(abs(rho), 1e-9))
        )
        row["robustness_ci"] = 0.0 if gap(0.0) <= 0 else _root(gap)
        return pd.Series(row, name=self.estimand_)

    def benchmark(self, X: Any, y: Any, *, treatment: Any, columns: Any) -> pd.DataFrame:
        """Strength of measured covariates, as a yardstick for one that was not measured.

        Each named covariate is left out in turn, and the effect is estimated again.

        Parameters
        ----------
        X, y, treatment
            As in :meth:`fit`; X must be a DataFrame.
        columns : list
            Names of covariates, or lists of names that are left out together.

        Returns
        -------
        table : DataFrame
            One row per benchmark: ``cf_y``, ``cf_d`` and ``rho`` of the covariate, ``change``, how
            the effect changes without it, and ``low`` and ``high``, the bounds of the effect if a
            confounder of that strength was not measured.
        """
        given = self.sensitivity_elements()
        if not isinstance(X, pd.DataFrame):
            raise TypeError(f"benchmark needs X as a DataFrame, got {type(X).__name__}.")
        rows = {}
        outcome = self.residuals_["e"] + self.nuisances_["g"]  # without fixed effects
        variance = weighted_var(outcome.to_numpy(), self._weight_)
        for names in columns:
            names = [names] if isinstance(names, str) else list(names)
            unknown = [name for name in names if name not in X]
            if unknown:
                raise ValueError(f"columns must be among those of X, got {unknown[0]!r}.")
            short = clone(self)  # type: ignore[type-var]
            with said_before():
                short.fit(X.drop(columns=names), y, treatment=treatment, **self._fit_options_)
            row = compare(short.sensitivity_elements(), given, variance)
            change = short.effect_ - self.effect_
            rho = float(np.sign(change)) * min(abs(change) / max(row.pop("reach"), 1e-12), 1.0)
            bound = self.sensitivity(row["cf_y"], min(row["cf_d"], STRONGEST))
            row |= {"rho": rho, "change": change, "low": bound["low"], "high": bound["high"]}
            rows[", ".join(names)] = row
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("left out")


def compare(short, long, variance):
    """Strength of covariates that the long model has and the short one lacks.

    Returns
    -------
    row : dict
        ``cf_y``, ``cf_d``, and ``reach``, the largest change of the effect they can cause.
    """
    unexplained = long.sigma2 / variance
    cf_y = max((short.sigma2 - long.sigma2) / variance, 0.0) / unexplained
    ratio = short.nu2 / long.nu2
    cf_d = max((1 - ratio) / ratio, 0.0)
    reach = np.sqrt(max(short.sigma2 - long.sigma2, 0.0) * max(long.nu2 - short.nu2, 0.0))
    return {"cf_y": float(min(cf_y, 1.0)), "cf_d": float(cf_d), "reach": float(reach)}


def _root(gap):
    if gap(STRONGEST) > 0:
        return STRONGEST
    return float(optimize.brentq(gap, 0.0, STRONGEST))
