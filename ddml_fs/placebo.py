"""Placebo checks: does the method find nothing where there is nothing?"""

from typing import Any

import numpy as np
import pandas as pd
from joblib import delayed
from scipy import stats
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ddml_fs.covariates import read_treatment
from ddml_fs.estimate import FittedEffect
from ddml_fs.progress import progress_bar, run_parallel
from ddml_fs.validation import check_integer, check_number, check_option
from ddml_fs.warning import said_before

N_STRATA = 10
KINDS = ("treatment", "outcome")
WORDS = {"treatment": "a permuted treatment", "outcome": "an outcome without an effect"}
DOUBT = 0.01  # p-value below which a placebo check fails


def permute_within(values, strata, rng):
    """Values permuted within strata.

    Examples
    --------
    >>> rng = np.random.RandomState(0)
    >>> permuted = permute_within(np.arange(6), np.array([0, 0, 0, 1, 1, 1]), rng)
    >>> sorted(permuted[:3].tolist()), sorted(permuted[3:].tolist())
    ([0, 1, 2], [3, 4, 5])
    """
    out = np.array(values)
    for stratum in np.unique(strata):
        rows = np.flatnonzero(strata == stratum)
        out[rows] = out[rng.permutation(rows)]
    return out


def strata_of(score, n_strata=N_STRATA):
    """Strata of equal size along a score, an int array (N,)."""
    ranks = stats.rankdata(score, method="ordinal") - 1
    return ranks * n_strata // len(ranks)


def verdict_of(z, kind):
    """Whether z-values of a placebo look like chance: their mean, and how many are beyond ±1.96.

    Parameters
    ----------
    z : array of shape (n,)
    kind : {"treatment", "outcome"}

    Returns
    -------
    row : dict
        ``mean_z``; ``rejected``, the share beyond ±1.96; ``pvalue``, of a mean of 0 and a share of
        5 %, the smaller of the two, doubled; ``passed``; ``verdict``, a sentence; ``z``.
    """
    n, rejected = len(z), int((np.abs(z) > stats.norm.ppf(0.975)).sum())
    by_mean = 2 * stats.norm.sf(abs(z.mean()) * np.sqrt(n))
    by_share = stats.binomtest(rejected, n, 0.05, alternative="greater").pvalue
    pvalue = min(1.0, 2 * min(by_mean, by_share))
    passed = bool(pvalue >= DOUBT)
    found = f"With {WORDS[kind]}, {rejected} of {n} intervals miss zero (mean z {z.mean():+.1f})"
    end = (
        ", as chance explains."
        if passed
        else ", more than chance explains: the effect is likely biased, or its interval too short."
    )
    row = {"mean_z": float(z.mean()), "rejected": rejected / n, "pvalue": float(pvalue)}
    return row | {"passed": passed, "verdict": found + end, "z": z}


class PlaceboMixin(FittedEffect):
    """Placebo checks of a fitted effect."""

    def placebo(
        self,
        X: Any,
        y: Any,
        *,
        treatment: Any,
        n: int = 20,
        kinds: Any = KINDS,
        fraction: float = 1.0,
        random_state: Any = 0,
    ) -> pd.DataFrame:
        """Estimate the effect again on data without an effect, and see if zero is found.

        Parameters
        ----------
        X, y : as in :meth:`fit`
        treatment : array of shape (n_samples,)
            As in :meth:`fit`, the values.
        n : int, default=20
            Number of placebo data sets of each kind; each takes as long as ``fit``.
        kinds : list, default=("treatment", "outcome")
            "treatment": the treatment is permuted within ten strata of its prediction, so that it
            still depends on the covariates but has no effect. "outcome": the outcome is what the
            covariates predict plus permuted residuals; confounding stays as it was, and the effect
            is zero. The second is the harder check. With ``fixed_effects``, residuals are not
            permuted: all those of a cluster (by default of a unit) change their sign, or none does,
            so that they stay as dependent within clusters as they are.
        fraction : float, default=1.0
            Share of the rows, drawn by lot, to save time; with ``fixed_effects``, of the clusters.
        random_state : int or RandomState, default=0

        Returns
        -------
        table : DataFrame
            One row per kind: ``mean_z``, ``rejected``, ``pvalue``, ``passed``, ``verdict`` and
            ``z``, an array of the estimates in standard errors.

        Examples
        --------
        >>> from ddml_fs import DDML
        >>> from ddml_fs.datasets import make_effect_data
        >>> data = make_effect_data("continuous", n_samples=600, n_features=10, random_state=0)
        >>> effect = DDML("ridge", random_state=0).fit(data.X, data.y, treatment=data.treatment)
        >>> table = effect.placebo(data.X, data.y, treatment=data.treatment, n=5)
        >>> table.index.tolist()
        ['treatment', 'outcome']
        """
        check_is_fitted(self)
        check_integer(n, "n", 2)
        check_number(fraction, "fraction", 1e-3, 1.0)
        for kind in kinds:
            check_option(kind, "kinds", KINDS)
        if self.score_ == "logistic":
            raise AttributeError("placebo checks need numbers as outcomes, got the logistic score.")
        rng = check_random_state(random_state)
        T, y = np.asarray(read_treatment(treatment)[0]), np.asarray(y, dtype=np.float64)
        panel = self._fit_options_.get("fixed_effects")
        kept = np.arange(len(self.nuisances_)) if panel is None else np.flatnonzero(self._kept_)
        N = len(kept) if panel is None else len(self._kept_)
        if T.shape != y.shape or len(T) != N:
            raise ValueError(
                f"y and treatment must have the {N} rows of fit, got shapes {y.shape} and "
                f"{T.shape}."
            )
        T, y, clusters = T[kept], y[kept], self._clusters_
        make = self._permuted if panel is None else self._with_signs

        def rows_of():
            if panel is None or clusters is None:
                return rng.permutation(len(kept))[: round(fraction * len(kept))]
            groups = np.unique(clusters[:, 0])
            chosen = rng.permutation(groups)[: max(2, round(fraction * len(groups)))]
            return np.flatnonzero(np.isin(clusters[:, 0], chosen))

        def z_of(new_y, new_T, rows):
            model = clone(self).set_params(verbose=False)  # type: ignore[type-var]
            at = kept[rows]
            take = X.iloc[at] if isinstance(X, pd.DataFrame) else np.asarray(X)[at]
            known = {"cluster": None if clusters is None else clusters[rows]}
            if panel is not None:
                known["fixed_effects"] = panel[at] if isinstance(panel, np.ndarray) else panel
            with said_before():
                weight = self._weight_[rows]
                model.fit(take, new_y[rows], treatment=new_T[rows], sample_weight=weight, **known)
            return model.effect_ / model.stderr_

        found = {}
        with progress_bar(self.verbose, "placebo") as progress:
            progress.start(n * len(kinds), "fits")
            for kind in kinds:
                jobs = (delayed(z_of)(*make(kind, y, T, rng), rows_of()) for _ in range(n))
                values = run_parallel(jobs, progress, self.n_jobs)
                found[kind] = verdict_of(np.array(values), kind)
        return pd.DataFrame.from_dict(found, orient="index").rename_axis("placebo")

    def _permuted(self, kind, y, T, rng):
        """An outcome and a treatment (N,) without an effect, by permutation."""
        hat, theta = self.nuisances_, self.effect_
        if kind == "treatment":
            return y, permute_within(T, strata_of(hat["m"]), rng)
        if "mu_0" in hat:
            base = hat["mu_0"].to_numpy()
            rest = y - np.where(T == 1, hat["mu_1"], base)
        else:
            base = (hat["g"] - theta * hat["m"]).to_numpy()
            rest = y - base - theta * T
        return base + rng.permutation(rest), T

    def _with_signs(self, kind, y, T, rng):
        """The same for deviations from unit means, by random signs of the clusters' residuals."""
        hat, left = self.nuisances_, self.residuals_
        clusters: Any = self._clusters_  # a panel always has them
        _, cluster = np.unique(clusters[:, 0], return_inverse=True)
        sign = rng.choice([-1.0, 1.0], cluster.max() + 1)[cluster]
        if kind == "treatment":
            return y, (hat["m"] + sign * left["v"]).to_numpy()
        return (hat["g"] - self.effect_ * hat["m"] + sign * left["u"]).to_numpy(), T
