"""ShiftAudit: one look at a table from several domains before a model is built on it."""

from typing import Any, Self

import numpy as np
import pandas as pd
from joblib import effective_n_jobs
from scipy import stats
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from ddml_fs.audit.copies import copies_in
from ddml_fs.audit.forecast import believed_quality, forecast, left_out_qualities, table_of
from ddml_fs.audit.leaks import find_leaks
from ddml_fs.audit.shift import (
    MATERIAL,
    base_rates,
    effect_shift,
    mean_shift,
    moving,
)
from ddml_fs.audit.verdicts import verdicts
from ddml_fs.display import HTMLRepr, audit_html
from ddml_fs.encoding import read_target
from ddml_fs.engine.devices import limit_threads
from ddml_fs.features import Encoding
from ddml_fs.number import default_downstream, fit_where_weighted
from ddml_fs.persistence import Versioned
from ddml_fs.rows import read_rows
from ddml_fs.selector import CausalFeatureSelector
from ddml_fs.tables import column_names, read_new_table, read_table
from ddml_fs.validation import check_number, check_option, forget_fit


class ShiftAudit(Versioned, HTMLRepr, BaseEstimator):
    """Find out what moves between domains, what leaks the label, and what to expect in a new one.

    First every column is searched for signs of a leak. Then the effect of every other column is
    estimated in every domain, by the sweep of :class:`~ddml_fs.CausalFeatureSelector`, and compared
    between domains. Last, domains are left out one at a time to forecast how a model does in a
    domain that is not yet seen. No causal graph is needed.

    Parameters
    ----------
    fdr_level : float, default=0.1
        Share of false discoveries among the columns whose effects, or means, are said to move.
    level : float, default=0.9
        Coverage of the forecast's intervals.
    downstream : estimator, optional
        The model that the forecast is for: logistic regression on scaled columns, or ridge
        regression for numbers.
    selector : CausalFeatureSelector, optional
        Settings of the sweep and of the order; by default its covariates are "strict". Its number
        of features is "auto"; ``downstream``, ``groups``, ``task``, ``n_jobs``, ``random_state``
        and ``verbose`` are those given here.
    groups : array of shape (n_features,), optional
        Columns that belong together, as in the selector.
    task : {"auto", "classification", "regression"}, default="auto"
        What y is.
    n_jobs : int, optional
        Workers.
    random_state : int, RandomState or None, default=None
        Seed.
    verbose : bool, default=False
        Whether to show progress.

    Attributes
    ----------
    features_ : DataFrame
        One row per feature, the most suspicious first, see Notes.
    domain_effects_ : DataFrame
        ``feature``, ``domain``, ``effect``, ``stderr``, ``low``, ``high``.
    base_rates_ : DataFrame
        Rows and base rate (mean of numbers) of each domain, with 95 % intervals.
    leaks_ : DataFrame
        ``leak`` and ``evidence`` of each feature that may know the label.
    forecast_ : DataFrame
        Expected AUC and accuracy (R² of numbers) in a new domain with all features that are no
        leaks, with the selected ones, and with those whose effects do not move.
    verdicts_ : list of str
        All of this in sentences.
    selector_ : CausalFeatureSelector
        Fitted on the columns that are no leaks.
    domains_ : array
        The domains.

    Notes
    -----
    Columns of ``features_``: ``effect``, ``effect_low``, ``effect_high``, the mean effect over the
    domains and its 95 % interval; ``tau``, ``tau_low``, ``tau_high``, the standard deviation of the
    effect between domains; ``instability``, its size beside the effect's; ``pvalue_shift`` and
    ``qvalue_shift`` of equal effects in all domains; ``shift_cost``, what a model that uses the
    mean effect loses by the shift in a new domain, in log-likelihood per row; ``effect_moves``, if
    the q-value is at most ``fdr_level`` and τ is at least 0.1 for one standard deviation of the
    feature; ``mean_shift``, the standard deviation of the feature's mean between domains over its
    own, and ``mean_moves``, if that is at least 0.2 and significant; ``missing``, the share of
    missing values; ``alone``, the held-out AUC (R²) of the feature alone; ``copy_of``, a feature
    that it nearly repeats; ``leak``; ``verdict``: "leak", "effect moves", "mean moves", "stable",
    "no effect", or "unknown" if other columns determine the feature; ``selected``, by
    "auto". Effects of leaks are not estimated, and given leaks those of others would mean nothing.

    Examples
    --------
    >>> from ddml_fs import ShiftAudit
    >>> from ddml_fs.datasets import make_domain_data
    >>> data = make_domain_data(n_samples=400, n_causal=4, n_spurious=3, n_noise=3, random_state=0)
    >>> audit = ShiftAudit(random_state=0).fit(data.X, data.y, sample_domain=data.sample_domain)
    >>> moving = audit.features_.index[audit.features_["effect_moves"]]
    >>> set(moving) == {f"x{j}" for j in np.flatnonzero(data.roles == "spurious")}
    True
    """

    # skada's name for domain labels; it travels without being asked for.
    __metadata_request__fit = {"sample_domain": True, "cluster": True}  # noqa: RUF012

    def __init__(
        self,
        *,
        fdr_level: float = 0.1,
        level: float = 0.9,
        downstream: Any = None,
        selector: CausalFeatureSelector | None = None,
        groups: Any = None,
        task: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.fdr_level = fdr_level
        self.level = level
        self.downstream = downstream
        self.selector = selector
        self.groups = groups
        self.task = task
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        sample_domain: Any = None,
        sample_weight: Any = None,
        cluster: Any = None,
    ) -> Self:
        """Audit a table.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
            Numbers, or a DataFrame with categories, text, truth values, dates and missing values.
        y : array of shape (n_samples,)
            Labels or numbers.
        sample_domain : array of shape (n_samples,), optional
            The domain of each row; negative numbers mark targets, which are left out.
        sample_weight, cluster : arrays of shape (n_samples,), optional
            Weights of the rows, and clusters of rows that depend on one another, as in
            :meth:`CausalFeatureSelector.fit <ddml_fs.CausalFeatureSelector.fit>`.

        Returns
        -------
        self : ShiftAudit
        """
        with limit_threads(effective_n_jobs(self.n_jobs)):
            return self._fit(X, y, sample_domain, sample_weight, cluster)

    def _fit(self, X, y, *rows_given):
        """The steps of the audit."""
        forget_fit(self)
        check_number(self.fdr_level, "fdr_level", 0, 1)
        check_number(self.level, "level", 1e-6, 1 - 1e-6)
        check_option(self.task, "task", ("auto", "classification", "regression"))
        rows = read_rows(X, *rows_given)
        self.domains_ = rows.domains
        X, y = read_table(self, rows.of(X), rows.of(y))
        names = column_names(self)
        frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X, columns=names)
        target = read_target(y, self.task)
        encoding = Encoding.of(frame, names, self.groups)
        missing = np.zeros((len(frame), len(encoding.names)), bool)
        for j, f in enumerate(encoding.feature):
            missing[:, f] |= frame.iloc[:, j].isna().to_numpy()
        given = encoding.read(frame), encoding.own, missing, target, encoding.names
        known = {"weight": rows.weight, "cluster": rows.cluster}
        leaks = find_leaks(*given, self.random_state, **known)
        copies = copies_in(frame)
        leaks["copy_of"] = [copies.get(name, "") for name in leaks.index]
        self.leaks_ = leaks.loc[leaks["leak"] != "", ["leak", "evidence"]]
        kept = (leaks["leak"] == "").to_numpy()
        if not kept.any():
            raise ValueError(
                f"X must have a column that is no leak, got {len(kept)} columns that all predict "
                "the label nearly by themselves."
            )
        self._kept_ = kept[encoding.feature]
        ranker = self._fit_selector(frame, y, rows)  # first, as it checks the clusters
        self.base_rates_ = base_rates(target, rows.domain, self.domains_, **known)
        self._table(leaks, ranker.result)
        self._fit_forecast(ranker)
        self.verdicts_ = verdicts(
            self.features_,
            self.base_rates_,
            self.forecast_,
            by_domain=self._by_domain_,
            n_domains=len(self.domains_),
        )
        return self

    def _fit_selector(self, frame, y, rows):
        """Effects of all columns that are no leaks."""
        selector = self.selector or CausalFeatureSelector(covariates="strict")
        groups = None if self.groups is None else np.asarray(self.groups)[self._kept_]
        self.selector_ = clone(selector).set_params(
            n_features_to_select="auto",
            downstream=self.downstream,
            groups=groups,
            task=self.task,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
            verbose=self.verbose,
        )
        own = self.domains_[rows.domain], rows.weight, rows.cluster
        return self.selector_.fit_sweep(frame.loc[:, self._kept_], y, *own)

    def _table(self, leaks, result):
        """One row per feature."""
        effects, features = self.selector_.effects_, result.features
        shift = effect_shift(result.evidence, len(result.domain))
        means = mean_shift(features, result.domain, result.weight, result.cluster)
        shift = shift.join(means).reindex(features.group)
        shift.index = effects.index
        shift[["pvalue_shift", "pvalue_mean"]] = shift[["pvalue_shift", "pvalue_mean"]].fillna(1.0)
        shift = shift.fillna({"material": False}).fillna(0.0)
        interval = self.selector_.conf_int()
        moves = moving(shift, self.fdr_level)
        means = stats.false_discovery_control(shift["pvalue_mean"]) <= self.fdr_level
        means &= shift["mean_shift"] >= MATERIAL
        verdict = np.where(effects["qvalue"] <= self.fdr_level, "stable", "no effect")
        verdict = np.where(means, "mean moves", verdict)
        known = effects["df"] > 0
        table = effects[["effect"]].assign(
            effect=effects["effect"].where(known),
            effect_low=interval["low"].where(known),
            effect_high=interval["high"].where(known),
            tau=effects["tau"],
            tau_low=effects["tau_low"],
            tau_high=effects["tau_high"],
            instability=effects["instability"],
            pvalue_shift=shift["pvalue_shift"],
            qvalue_shift=stats.false_discovery_control(shift["pvalue_shift"]),
            shift_cost=shift["shift_cost"],
            effect_moves=moves,
            mean_shift=shift["mean_shift"],
            mean_moves=means,
            verdict=np.where(~known, "unknown", np.where(moves, "effect moves", verdict)),
            selected=effects["selected"],
            least_cost=shift["least_cost"],
        )
        table = table.reindex(leaks.index)
        flags = ["effect_moves", "mean_moves", "selected"]
        table[flags] = table[flags].eq(True)  # no leak has any
        table["verdict"] = table["verdict"].fillna("leak")
        table = table.join(leaks[["missing", "alone", "copy_of", "leak"]])
        no_leak = table["verdict"] != "leak"
        order = np.lexsort([-table["shift_cost"], -table["least_cost"], no_leak])
        self.features_ = table.iloc[order].drop(columns="least_cost")
        self.domain_effects_ = self.selector_.domain_effects_

    def _fit_forecast(self, ranker):
        """Leave out one domain at a time, with every set of features."""
        result = ranker.result
        features, target = result.features, result.target
        self._label_ = target.classes is not None
        model = default_downstream(self._label_) if self.downstream is None else self.downstream
        y = target.y if target.classes is None else target.classes[target.y]
        effects = self.selector_.effects_
        chosen = np.unique(features.group[effects["selected"].to_numpy()])
        self._by_domain_ = ranker.part == "domain"
        everything = np.arange(features.n_features)
        columns = {"all": everything, "selected": chosen, "stable": self._stable(result)}
        splits: dict = {name: [] for name in columns}
        for part in np.unique(ranker.labels):
            rows = np.flatnonzero(ranker.labels != part), np.flatnonzero(ranker.labels == part)
            own = {
                "all": everything,
                "selected": ranker.order(left_out=part)[0][: len(chosen)],
                "stable": self._stable(result, part if self._by_domain_ else None),
            }
            for name, which in own.items():
                splits[name].append((*rows, features.columns_of(which)))
        X = features.X
        self._forecasts_ = {}
        for name, which in columns.items():
            use = features.columns_of(which)
            weight = result.weight
            qualities = left_out_qualities(X, y, splits[name], model, self._label_, weight)
            final = X[:, use], y, weight
            fitted = fit_where_weighted(clone(model), *final) if len(use) else None
            self._forecasts_[name] = (use, len(which), qualities, fitted)
        self.forecast_ = self._forecast_table()

    def _stable(self, result, left_out=None):
        """Features whose effects do not move, as the other domains tell."""
        evidence = result.evidence
        if left_out is not None:
            evidence = [s.without("domain", left_out) for s in evidence]
        shift = effect_shift(evidence, len(result.domain))
        return np.flatnonzero(~moving(shift, self.fdr_level))

    def _forecast_table(self, X=None):
        rows = {}
        for name, (use, number, qualities, fitted) in self._forecasts_.items():
            believed = None
            if X is not None and self._label_ and fitted is not None:
                believed = believed_quality(fitted, X[:, use])
            row = forecast(qualities, self.level, believed, self._by_domain_)
            rows[name] = {"n_features": number} | row
        return table_of(rows)

    def forecast(self, X: Any) -> pd.DataFrame:
        """Forecast for rows of one new domain, without their labels.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        forecast : DataFrame
            As ``forecast_``.
        """
        check_is_fitted(self)
        X = read_new_table(self, X)
        frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X, columns=column_names(self))
        return self._forecast_table(self.selector_.encode(frame.loc[:, self._kept_]))

    def summary(self) -> str:
        """The verdicts, the suspicious columns and the forecast as text."""
        check_is_fitted(self)
        shown = self.features_[self.features_["verdict"].isin(["leak", "effect moves"])]
        columns = ["verdict", "leak", "effect", "tau", "qvalue_shift", "shift_cost", "alone"]
        parts = ["\n".join(f"- {sentence}" for sentence in self.verdicts_)]
        if len(shown):
            parts.append(shown[columns].to_string(float_format="{:.3g}".format, na_rep=""))
        parts.append(self.forecast_.to_string(float_format="{:.3f}".format))
        return "\n\n".join(parts)

    def _html_summary(self):
        return audit_html(self)
