"""CausalFeatureSelector: effects of all features, ranked, and the top K of them."""

from collections.abc import Callable
from os import PathLike
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples, check_is_fitted

from ddml_fs import inference
from ddml_fs.effects_table import chosen, effects_table, spread_to_copies
from ddml_fs.encoding import number_of_folds, read_domains, read_target
from ddml_fs.engine.devices import resolve_devices
from ddml_fs.engine.resources import Resources
from ddml_fs.features import Encoding, read_features
from ddml_fs.nuisances import resolve_nuisance
from ddml_fs.number import check_number_to_select, choose_features, number_to_select
from ddml_fs.progress import progress_bar
from ddml_fs.ranking import RANKINGS, Ranker
from ddml_fs.sweep import (
    DOSES,
    SweepInput,
    SweepResult,
    nuisance_for,
    score_for,
    seed_for,
    sweep,
)
from ddml_fs.tables import TableSelector, column_names, read_table, warn_of_labels
from ddml_fs.validation import check_integer, check_number, check_option, forget_fit

N_DRAWS = 1000  # of the multiplier bootstrap


class CausalFeatureSelector(TableSelector, BaseEstimator):
    """Select features by their causal effects on the label, and by how stable these are.

    Every feature in turn is the treatment and all others are covariates; all these estimates run
    as one batched computation. Features are ranked by an effect that is large, well known and the
    same in all source domains, and the top K are kept.

    Parameters
    ----------
    n_features_to_select : int, float, "auto" or "fdr", default="auto"
        A number, a share, or a rule. "auto": the fewest features with which ``downstream`` does
        as well as with the best number, leaving one domain out at a time or, with one domain, by
        cross-validation; all of them when in doubt. "fdr": those whose q-value is at most
        ``fdr_level``. May be changed after ``fit`` (by ``set_params``), except to "auto".
    nuisance : str, Nuisance, estimator or pair of estimators, default="auto"
        Nuisance models of the effects, as in :class:`~ddml_fs.DDML`. "auto": one additive model of
        all features ("additive"), or with more columns than a third of the rows "ridge".
        "shrunken": small networks that start from ridge regressions and learn what these miss.
    ranking : {"gain", "effect", "tstat", "stability"} or callable, default="gain"
        "gain": what a feature is expected to gain in a new domain, given those ranked before.
        "effect": |θ| of one standard deviation. "tstat": |θ| over its standard error. "stability":
        the chance that a new domain's effect has the same sign. A callable takes ``effects_`` and
        returns scores.
    risk_aversion : float, default=2.5
        How much a gain that differs between domains lowers a feature's score; 0: not at all.
    dose : {"auto", "linear", "spline"}, default="auto"
        Whether the effect of a number is tested as a line or as a curve; "auto": as a curve where
        that lowers the held-out loss.
    groups : array of shape (n_features,), optional
        Names of the features that the columns of X belong to: one effect, one rank, selected as a
        whole. A categorical column of a DataFrame is one feature by itself.
    scale : {"auto", "log_odds", "mean"}, default="auto"
        What effects are effects on: the log-odds of a label (the logistic score), or the mean
        (the partially linear score). "auto" is the first for labels and the second for numbers.
    covariates : {"stable", "all"}, default="stable"
        With several domains: what effects are conditional on. Given a consequence of the label,
        the effects of its causes are biased, so features whose effects differ between the domains,
        as a quick ridge sweep finds them, are treatments but no covariates.
    n_folds : int, default=5
        Folds of the cross-fitting; fewer where the rarest class asks for it.
    fdr_level : float, default=0.1
        Share of false discoveries that "fdr" aims at.
    downstream : estimator or list of them, optional
        For "auto": logistic regression on scaled features, or ridge regression for numbers. With
        several, the number that serves all.
    task : {"auto", "classification", "regression"}, default="auto"
        What y is. "auto": labels are strings, booleans, or integers with at most 20 values.
    memory_budget : float, default=1.0
        Gigabytes that a shard of the sweep may take.
    checkpoint : str or path, optional
        Folder in which finished shards are kept. A run that was interrupted does only what is
        missing, and the same sweep is not computed twice.
    n_jobs : int, optional
        joblib workers for the shards and for scikit-learn models, threads of closed forms.
    device : str, torch.device or list of them, default="auto"
        Where to compute; shards take the devices of a list in turn.
    random_state : int, RandomState or None, default=None
        Seed of splits, weights, batches and of the bootstrap.
    verbose : bool, default=False
        Whether to show a progress bar.

    Attributes
    ----------
    effects_ : DataFrame
        One row per feature, see Notes.
    scores_ : array of shape (n_features,)
        Larger is better; 0 for constant columns.
    ranking_ : int array of shape (n_features,)
        1 for the best; copies of a column share their rank.
    domains_ : array
        The source domains.
    n_features_auto_ : int
        The number that "auto" chose; only with "auto".
    curve_ : DataFrame
        Mean loss of ``downstream`` by number of features; only with "auto".
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Columns of ``effects_``: ``effect``, the random-effects mean over the domains, of one unit (of
    one standard deviation of a category's best sum of levels), and ``std_effect``, of one standard
    deviation; ``stderr`` and ``tstat``; ``pvalue`` of no effect in a new domain, by a score test of
    ``df`` columns, ``qvalue`` (Benjamini–Hochberg) and ``holm``; ``effect[d]`` in each domain;
    ``sign_agreement``, the share of domains with the mean's sign; ``I2``, the heterogeneity;
    ``tau``, the standard deviation of the effect between domains, with its interval, and
    ``instability``, from 0 to 1, its size beside the effect's; ``z``, the mean over the standard
    deviation of the effect in a new domain, and ``stability``, the chance that this effect has the
    mean's sign; ``score``, ``rank`` and ``selected``. With several classes, a row is that of the
    class on which the feature acts most clearly, ``class``; p-values account for the choice.
    Standard errors are those of the model, corrected for the nuisances' degrees of freedom.

    Rows whose ``sample_domain`` is negative are targets, as in skada, and are never looked at.
    Sparse input is held as a dense matrix in single precision.

    Examples
    --------
    >>> from ddml_fs import CausalFeatureSelector
    >>> from ddml_fs.datasets import make_domain_data
    >>> data = make_domain_data(n_samples=300, n_causal=5, n_spurious=5, n_noise=10, random_state=0)
    >>> selector = CausalFeatureSelector(5, random_state=0)
    >>> _ = selector.fit(data.X, data.y, sample_domain=data.sample_domain)
    >>> bool(data.causal[selector.get_support()].all())
    True
    """

    # skada's name for domain labels; it travels without being asked for.
    __metadata_request__fit = {"sample_domain": True}  # noqa: RUF012

    def __init__(
        self,
        n_features_to_select: int | float | str = "auto",
        *,
        nuisance: Any = "auto",
        ranking: str | Callable = "gain",
        risk_aversion: float = 2.5,
        dose: str = "auto",
        groups: Any = None,
        scale: str = "auto",
        covariates: str = "stable",
        n_folds: int = 5,
        fdr_level: float = 0.1,
        downstream: Any = None,
        task: str = "auto",
        memory_budget: float = 1.0,
        checkpoint: str | PathLike | None = None,
        n_jobs: int | None = None,
        device: Any = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.nuisance = nuisance
        self.ranking = ranking
        self.risk_aversion = risk_aversion
        self.dose = dose
        self.groups = groups
        self.scale = scale
        self.covariates = covariates
        self.n_folds = n_folds
        self.fdr_level = fdr_level
        self.downstream = downstream
        self.task = task
        self.memory_budget = memory_budget
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_domain: Any = None) -> Self:
        """Estimate the effects of all features, and rank them.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
            Numbers, or a DataFrame with categories, text, truth values, dates and missing values.
        y : array of shape (n_samples,)
            Labels or numbers.
        sample_domain : array of shape (n_samples,), optional
            The domain of each row; negative numbers mark targets, which are left out.

        Returns
        -------
        self : CausalFeatureSelector
        """
        self.fit_sweep(X, y, sample_domain)
        return self

    def fit_sweep(self, X: Any, y: Any, sample_domain: Any = None) -> SweepResult:
        """Fit, and return what was read and found, for estimators that build on it.

        Parameters
        ----------
        X, y, sample_domain
            As in :meth:`fit`.

        Returns
        -------
        result : SweepResult
        """
        forget_fit(self)
        self._check_options()
        source, domain, self.domains_ = read_domains(sample_domain, _num_samples(X))
        if not source.all():
            X, y = (_safe_indexing(a, np.flatnonzero(source)) for a in (X, y))
        X, y = read_table(self, X, y)
        encoding = self._encoding_ = Encoding.of(X, column_names(self), self.groups)
        target = read_target(y, self.task)
        features = read_features(encoding.read(X), encoding.own, len(encoding.names))
        warn_of_labels(features, target, encoding.names)
        result = self._sweep(SweepInput(features, target, domain))
        ranker = Ranker(result, self.ranking, self.risk_aversion, self.dose != "linear")
        self._rank(result, ranker)
        if self.n_features_to_select == "auto":
            self._choose(result, ranker)
        self._get_support_mask()  # a number that is too large is told now
        return result

    def _check_options(self):
        check_number_to_select(self.n_features_to_select)
        if not callable(self.ranking):
            check_option(self.ranking, "ranking", RANKINGS)
        check_integer(self.n_folds, "n_folds", 2)
        check_option(self.covariates, "covariates", ("stable", "all"))
        check_option(self.dose, "dose", DOSES)
        check_option(self.scale, "scale", ("auto", "log_odds", "mean"))
        check_option(self.task, "task", ("auto", "classification", "regression"))
        check_number(self.fdr_level, "fdr_level", 0, 1)
        check_number(self.risk_aversion, "risk_aversion", 0, np.inf)
        check_number(self.memory_budget, "memory_budget", 1e-3, np.inf)

    def _sweep(self, given):
        """The evidence on every feature."""
        score = score_for(self.scale, given.target)
        auto = isinstance(self.nuisance, str) and self.nuisance == "auto"
        nuisance = nuisance_for(given.features) if auto else resolve_nuisance(self.nuisance)
        nuisance.check(score)
        nuisance.check_resources(self.device, self.checkpoint)
        self._seed_ = seed_for(self.random_state, self.checkpoint, given)
        with progress_bar(self.verbose, "sweep over all features") as progress:
            resources = Resources(
                devices=tuple(resolve_devices(self.device)),
                n_jobs=self.n_jobs,
                memory=self.memory_budget,
                checkpoint=self.checkpoint,
                detail=False,
                progress=progress,
            )
            return sweep(
                given,
                nuisance,
                score,
                seed=self._seed_,
                n_folds=number_of_folds(self.n_folds, given.target),
                stable_only=self.covariates == "stable",
                resources=resources,
                dose=self.dose,
            )

    def _rank(self, result, ranker):
        """Make the table of effects, and bring the features into order."""
        table, shown = effects_table(result.evidence, result, self.domains_)
        order, scores = ranker.order()
        features = result.features
        self._table_, ranking, self._order_ = spread_to_copies(
            table.assign(score=scores), order, features.group, features.scale, self._encoding_.names
        )
        column = self._encoding_.feature
        self.ranking_, self.scores_ = ranking[column], self._table_["score"].to_numpy()[column]
        influence = chosen(shown, [s.influence for s in result.evidence])
        rng = check_random_state(self._seed_)
        self._maxima_ = inference.bootstrap_maxima(influence, N_DRAWS, rng)

    def _choose(self, result, ranker):
        """The number of features, from the given rows alone."""
        group = result.features.group
        number, self.curve_ = choose_features(result, ranker, self.downstream, self.n_jobs)
        # Copies go together, and each counts.
        ranked = group[self._order_]
        best = ranked[np.sort(np.unique(ranked, return_index=True)[1])][:number]
        self.n_features_auto_ = int(np.bincount(group[group >= 0])[best].sum())

    @property
    def effects_(self) -> pd.DataFrame:
        """One row per feature: effect, uncertainty, stability, score, rank, and if selected."""
        check_is_fitted(self)
        first = np.unique(self._encoding_.feature, return_index=True)[1]
        return self._table_.assign(rank=self.ranking_[first], selected=self._chosen_features())

    def _chosen_features(self):
        """Which features are selected, a bool array."""
        self._check_options()
        n, n_features = self.n_features_to_select, len(self._encoding_.names)
        if n == "fdr":
            return (self._table_["qvalue"] <= self.fdr_level).to_numpy()
        if n == "auto" and not hasattr(self, "n_features_auto_"):
            raise ValueError(
                "n_features_to_select='auto' must be set before fit, got it after; fit again."
            )
        n = self.n_features_auto_ if n == "auto" else number_to_select(n, n_features)
        mask = np.zeros(n_features, dtype=bool)
        mask[self._order_[:n]] = True
        return mask

    def _get_support_mask(self):
        check_is_fitted(self)
        return self._chosen_features()[self._encoding_.feature]

    def conf_int(self, level: float = 0.95, joint: bool = False) -> pd.DataFrame:
        """Confidence intervals of the mean effects.

        Parameters
        ----------
        level : float, default=0.95
            Coverage.
        joint : bool, default=False
            Whether all intervals together shall cover, by a multiplier bootstrap, instead of each
            by itself.

        Returns
        -------
        intervals : DataFrame
            ``low`` and ``high``, one row per feature.
        """
        check_is_fitted(self)
        check_number(level, "level", 1e-6, 1 - 1e-6)
        reach = np.quantile(self._maxima_, level) if joint else stats.norm.ppf(0.5 + level / 2)
        half = reach * self._table_["stderr"]
        return pd.DataFrame(
            {"low": self._table_["effect"] - half, "high": self._table_["effect"] + half}
        )
