"""CausalFeatureSelector: effects of all features, ranked, and the top K of them."""

from collections.abc import Callable
from os import PathLike
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy import stats
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from ddml_fs import inference
from ddml_fs.effects_table import chosen, effects_table, spread_to_copies
from ddml_fs.encoding import (
    number_of_folds,
    read_columns,
    read_domains,
    read_target,
)
from ddml_fs.engine.devices import resolve_devices
from ddml_fs.engine.plan import draw_seed
from ddml_fs.engine.resources import Resources
from ddml_fs.nuisances import resolve_nuisance
from ddml_fs.progress import progress_bar
from ddml_fs.ranking import (
    RANKINGS,
    check_number_to_select,
    choose_number,
    default_downstream,
    feature_scores,
    greedy_order,
    left_out_orders,
    number_to_select,
    redundancy_weight,
)
from ddml_fs.sweep import SweepInput, SweepResult, score_for, sweep
from ddml_fs.validation import check_integer, check_number, check_option, forget_fit

N_DRAWS = 1000  # of the multiplier bootstrap


class CausalFeatureSelector(SelectorMixin, BaseEstimator):
    """Select features by their causal effects on the label, and by how stable these are.

    Every feature in turn is the treatment and all others are covariates; all these estimates run
    as one batched computation. Features are ranked by an effect that is large, well known and the
    same in all source domains, and the top K are kept.

    Parameters
    ----------
    n_features_to_select : int, float, "auto" or "fdr", default="auto"
        A number, a share, or a rule. "auto": the fewest features with which ``downstream`` does
        as well as with the best number, leaving one domain out at a time or, with one domain, by
        cross-validation. "fdr": those whose q-value is at most ``fdr_level``. May be changed after
        ``fit`` (by ``set_params``) at no cost, except to "auto".
    nuisance : str, Nuisance, estimator or pair of estimators, default="shrunken"
        Nuisance models, as in :class:`~ddml_fs.DDML`. "shrunken": small networks that start from
        ridge regressions and learn what these miss; "ridge": the ridge regressions alone, in closed
        form, for thousands of features; "shrunken_rf": forests for what the networks miss.
    ranking : {"causal", "effect", "tstat", "stability"} or callable, default="causal"
        "causal": the mean effect over the standard deviation of the effect in a new domain, less
        redundancy with features ranked before. "effect": |θ|. "tstat": |θ| over its standard error.
        "stability": the chance that a new domain's effect has the same sign. A callable takes
        ``effects_`` and returns scores.
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
    downstream : estimator, optional
        For "auto": logistic regression on scaled features, or ridge regression for numbers.
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
    Columns of ``effects_``: ``effect``, the random-effects mean over the domains; ``std_effect``,
    that of one standard deviation of the feature; ``stderr`` and ``tstat`` of the mean; ``pvalue``
    of no effect in a new domain, ``qvalue`` (Benjamini–Hochberg) and ``holm``; ``effect[d]`` in
    each domain; ``sign_agreement``, the share of domains with the mean's sign; ``I2``, the
    heterogeneity; ``tau``, the standard deviation of the effect between domains beyond chance;
    ``z``, the mean over the standard deviation of the effect in a new domain, and ``stability``,
    the chance that this effect has the mean's sign; ``score``, ``rank`` and ``selected``. With more
    than two classes, a feature's row is that of the class on which it acts most clearly,
    ``class``; p-values account for the choice. Standard errors are those of the model,
    1 / √information: they stay honest for rare features, whose robust errors come out too small.

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
        nuisance: Any = "shrunken",
        ranking: str | Callable = "causal",
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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, sample_domain: Any = None) -> Self:
        """Estimate the effects of all features, and rank them.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
            0/1 and continuous columns.
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
        options = {"accept_sparse": ("csr", "csc"), "dtype": np.float64, "ensure_min_samples": 8}
        X, y = validate_data(self, X, y, multi_output=False, **options)
        target = read_target(y, self.task)
        columns = read_columns(X.toarray() if issparse(X) else X)
        result = self._sweep(X, columns, target, domain)
        self._rank(result)
        if self.n_features_to_select == "auto":
            self._choose(result)
        self._get_support_mask()  # a number that is too large is told now
        return result

    def _check_options(self):
        check_number_to_select(self.n_features_to_select)
        if not callable(self.ranking):
            check_option(self.ranking, "ranking", RANKINGS)
        check_integer(self.n_folds, "n_folds", 2)
        check_option(self.covariates, "covariates", ("stable", "all"))
        check_option(self.scale, "scale", ("auto", "log_odds", "mean"))
        check_option(self.task, "task", ("auto", "classification", "regression"))
        check_number(self.fdr_level, "fdr_level", 0, 1)
        check_number(self.memory_budget, "memory_budget", 1e-3, np.inf)

    def _sweep(self, X, columns, target, domain):
        """The evidence on every feature."""
        score = score_for(self.scale, target)
        nuisance = resolve_nuisance(self.nuisance)
        nuisance.check(score)
        nuisance.check_resources(self.device, self.checkpoint)
        seed = self.random_state
        given = isinstance(seed, int | np.integer)
        self._seed_ = int(seed) if given else draw_seed(check_random_state(seed))
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
                SweepInput(X, columns, target, domain),
                nuisance,
                score,
                seed=self._seed_,
                n_folds=number_of_folds(self.n_folds, target),
                stable_only=self.covariates == "stable",
                resources=resources,
            )

    def _rank(self, result):
        """Make the table of effects, and bring the features into order."""
        columns = result.columns
        self._beta_ = redundancy_weight(result.penalty) if self.ranking == "causal" else 0.0
        table, shown = effects_table(
            result.evidence, columns.distinct_sd, self.domains_, result.target.classes
        )
        table["score"] = feature_scores(self.ranking, table, len(columns.X))
        order = greedy_order(table["score"].to_numpy(), columns.X, self._beta_)

        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        self._table_, self.ranking_, self._order_ = spread_to_copies(
            table, order, columns.group, columns.sd, names
        )
        self.scores_ = self._table_["score"].to_numpy()
        influence = chosen(shown, [s.influence for s in result.evidence])
        rng = check_random_state(self._seed_)
        self._maxima_ = inference.bootstrap_maxima(influence, N_DRAWS, rng)

    def _choose(self, result):
        """The number of features, from the given rows alone."""
        columns, target = result.columns, result.target
        downstream = self.downstream
        if downstream is None:
            downstream = default_downstream(target.classes is not None)
        y = target.y if target.classes is None else target.classes[target.y]
        splits = left_out_orders(result, self.domains_, self.ranking, self._beta_)
        number, numbers, losses = choose_number(columns.X, y, splits, downstream, self.n_jobs)
        copies = np.bincount(columns.group[columns.group >= 0])
        ranked = columns.group[self._order_]
        best = ranked[np.sort(np.unique(ranked, return_index=True)[1])][:number]
        self.n_features_auto_ = int(copies[best].sum())
        self.curve_ = pd.DataFrame({"n_features": numbers, "loss": losses.mean(0)})

    @property
    def effects_(self) -> pd.DataFrame:
        """One row per feature: effect, uncertainty, stability, score, rank, and if selected."""
        check_is_fitted(self)
        return self._table_.assign(rank=self.ranking_, selected=self._get_support_mask())

    def _get_support_mask(self):
        check_is_fitted(self)
        self._check_options()
        n = self.n_features_to_select
        if n == "fdr":
            return (self._table_["qvalue"] <= self.fdr_level).to_numpy()
        if n == "auto" and not hasattr(self, "n_features_auto_"):
            raise ValueError(
                "n_features_to_select='auto' must be set before fit, got it after; fit again."
            )
        n = self.n_features_auto_ if n == "auto" else number_to_select(n, self.n_features_in_)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self._order_[:n]] = True
        return mask

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
