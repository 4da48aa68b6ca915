"""DDML: the effect of one treatment."""

import logging
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from ddml_fs import cautions, diagnostics, inference
from ddml_fs.covariates import read_effect_table
from ddml_fs.engine.plan import Plan, make_plan
from ddml_fs.engine.predictions import Predictions
from ddml_fs.engine.resources import Resources
from ddml_fs.heterogeneity import HeterogeneityMixin
from ddml_fs.linear import linear_gap, linear_moments
from ddml_fs.nuisance_error import nuisance_error
from ddml_fs.nuisances import resolve_nuisance
from ddml_fs.panel import inflation, read_panel
from ddml_fs.placebo import PlaceboMixin
from ddml_fs.progress import progress_bar
from ddml_fs.rows import warn_of_order
from ddml_fs.scores import CLIP, Score, residuals, resolve_score
from ddml_fs.sensitivity import SensitivityMixin, elements
from ddml_fs.validation import (
    check_arms,
    check_clusters,
    check_folds,
    check_identified,
    check_integer,
    check_label,
    check_treatment,
    check_vector,
    forget_fit,
)
from ddml_fs.weights import check_weights, varies

LOGGER = logging.getLogger(__name__)


class DDML(PlaceboMixin, HeterogeneityMixin, SensitivityMixin, BaseEstimator):
    """Effect of a treatment on an outcome by Disentangled Double Machine Learning.

    Nuisance models predict the treatment and the outcome from the covariates. Each row is predicted
    by models that were fitted on other rows (cross-fitting). The effect follows from an orthogonal
    score.

    Parameters
    ----------
    nuisance : str, Nuisance, estimator or pair of estimators, default="stacked"
        Nuisance models. "stacked": several models, weighted by their held-out loss. "mlp": the
        networks of the paper, which split the covariates' information into three parts: for
        confounding, for the treatment only and for the outcome only. "rf": random forests on the
        latents of these networks. "boosting", "gp" (Gaussian processes, for few rows), "sparse" (a
        few curves and products of columns), "smooth" and "ridge" (both in closed form): models of
        the covariates. An object of
        :mod:`ddml_fs.nuisances` allows other settings. A scikit-learn estimator, or a pair for
        (treatment, outcome), is fitted on the covariates.
    score : {"auto", "partially_linear", "interactive", "logistic"}, default="auto"
        "auto": interactive for a 0/1 treatment, partially linear for a continuous one. Partially
        linear: one constant effect, any treatment. Interactive: effects may vary with X; 0/1
        treatments only (AIPW, with outcome models per arm). Logistic: the effect on the log-odds of
        a 0/1 outcome; the score is orthogonal at a zero effect, so large effects may be biased.
    target : {"ate", "att"}, default="ate"
        Average effect over all rows or, with the interactive score, over the treated.
    n_folds : int, default=5
        Number of folds of the cross-fitting, K.
    n_repeats : int, default=1
        Number of random splits. The median effect is reported, and the standard error includes the
        spread between splits.
    clip : float, optional
        Propensities are clipped to [clip, 1 - clip]; 0.01 by default. Interactive score only.
    n_jobs : int, optional
        Number of joblib workers for networks and scikit-learn models, and of threads for closed
        forms.
    device : str or torch.device, default="auto"
        Where networks and Gaussian processes run. "auto" is CUDA, then MPS, then the CPU.
    random_state : int, RandomState or None, default=None
        Seed of splits, weights and batches.
    verbose : bool, default=False
        Whether to show progress. Details are logged under the name "ddml_fs".

    Attributes
    ----------
    effect_ : float
        The effect; also available as ``ate_`` or ``att_`` if it is one of these.
    estimand_ : str
        What the effect is: "ATE", "ATT", "partially linear slope" or "log-odds slope".
    score_ : str
        The score that was used.
    stderr_, pvalue_ : float
        Robust standard error, and p-value of the test of a zero effect.
    nuisance_stderr_ : float
        The part of ``stderr_`` that allows for errors of the nuisances, from the disagreement of
        stacked candidates; 0 for other nuisances. ``stderr_**2`` is the sum of its square and that
        of the influence function's standard error.
    influence_ : array of shape (n_samples,)
        Influence function: each row's influence on the effect.
    residuals_ : DataFrame
        Held-out residuals ``v`` of the treatment and ``e`` of the outcome, and ``u = e − θv``.
    nuisances_ : DataFrame
        Held-out predictions ``m`` = E[T | X], ``g`` = E[Y | X] and, with the interactive score,
        ``mu_0`` and ``mu_1``.
    nuisance_losses_ : DataFrame
        Held-out loss of each nuisance function, for every candidate model, for the model that was
        used and for a constant: log-loss for 0/1 targets, mean squared error for others.
    nuisance_weights_ : DataFrame
        Weights of the candidate models for each nuisance function; only for stacked nuisances.
        With the interactive score, "effect" has the weights of the candidates' effects, where the
        rest to 1 is the weight of a constant effect; or, if models per arm are clearly better, both
        arms have weights.
    roles_ : DataFrame
        How strongly each covariate acts as confounder, on the treatment only and on the outcome
        only; only if networks are among the nuisances. A category is one covariate.
    verdict_ : str
        What the diagnostics say, in words.
    repeats_ : DataFrame
        Effect and standard error of every random split.
    folds_ : list of pairs of int arrays
        Training and held-out rows of every fold, for one split after another.
    encoding_ : DataFrame
        How each column of X was read, in words.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    ``influence_``, ``residuals_`` and ``nuisances_`` belong to the split whose effect is closest to
    the median. With ``fixed_effects``, they and ``folds_`` have the rows that are not left out.

    Examples
    --------
    >>> from ddml_fs import DDML
    >>> from ddml_fs.datasets import make_effect_data
    >>> data = make_effect_data("binary", n_samples=2000, random_state=0)
    >>> effect = DDML("mlp", random_state=0).fit(data.X, data.y, treatment=data.treatment)
    >>> low, high = effect.conf_int(0.99)
    >>> effect.estimand_, bool(low < data.theta < high)
    ('ATE', True)
    """

    def __init__(
        self,
        nuisance: Any = "stacked",
        *,
        score: str = "auto",
        target: str = "ate",
        n_folds: int = 5,
        n_repeats: int = 1,
        clip: float | None = None,
        n_jobs: int | None = None,
        device: Any = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.nuisance = nuisance
        self.score = score
        self.target = target
        self.n_folds = n_folds
        self.n_repeats = n_repeats
        self.clip = clip
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        treatment: Any,
        cluster: Any = None,
        sample_weight: Any = None,
        fixed_effects: Any = None,
    ) -> Self:
        """Estimate the effect.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
            Covariates: all variables that may confound treatment and outcome. Numbers, or a
            DataFrame with categories, text, booleans and dates. Missing numbers are set to the
            median of all rows, with an indicator if more than 1 % are missing; ``encoding_`` and
            ``verdict_`` say so.
        y : array of shape (n_samples,)
            Outcome; 0/1 for the logistic score.
        treatment : array of shape (n_samples,), str or int
            Treatment, 0/1, continuous, or text with two levels, of which the second in
            alphabetical order is 1 (``verdict_`` says so); or the name or number of the column of X
            that is the treatment, where all other columns are covariates. Keyword only, so that it
            cannot be swapped with y.
        cluster : array of shape (n_samples,) or (n_samples, 2), optional
            Clusters of rows that depend on one another, such as patients of a hospital. Folds do
            not split them, and errors allow for the dependence. With two ways of clustering, the
            folds keep the first together.
        sample_weight : array of shape (n_samples,), optional
            Weights of the rows, such as the inverse probabilities with which they were sampled.
            Only their ratios matter. A row with weight 0 is predicted, but has no influence.
        fixed_effects : array of shape (n_samples,) or (n_samples, 2), str or list of str, optional
            Unit, or unit and time, of each row of a panel; or names of columns of X, which then are
            no covariates. Their effects are taken out of outcome, treatment and covariates, see
            :mod:`ddml_fs.panel`. Clusters are the units unless ``cluster`` is given. Rows without
            weight, or without another row of their unit, are left out. Partially linear score only,
            also for a 0/1 treatment.

        Returns
        -------
        self : DDML
        """
        forget_fit(self)
        check_integer(self.n_repeats, "n_repeats", 1)
        index = X.index if isinstance(X, pd.DataFrame) else None
        rows = {"y": y, "treatment": treatment, "cluster": cluster, "sample_weight": sample_weight}
        warn_of_order(X, **rows, fixed_effects=fixed_effects)
        panel = None
        if fixed_effects is not None:
            known = fixed_effects, X, treatment, self.score, sample_weight
            panel, X, treatment = read_panel(*known)
        table = read_effect_table(self, X, treatment)
        X, column, self._encoding_ = table.X, table.column, table.encoding
        weight = check_weights(sample_weight, len(X))
        T, binary = check_treatment(table.treatment, len(X), weight)
        clusters = None
        if cluster is not None:
            clusters = check_clusters(cluster, len(X), weight, self.n_folds, "n_folds=")
        self._fit_options_ = {"cluster": clusters}
        if varies(weight) or not weight.all():
            self._fit_options_["sample_weight"] = weight
        binary = binary and panel is None  # a 0/1 treatment has other values within units
        score = resolve_score(self.score, binary, self.target, self.clip)
        nuisance = resolve_nuisance(self.nuisance)
        nuisance.check(score)
        nuisance.check_resources(self.device)
        if varies(weight):
            nuisance.check_weights()
        size = len(X), weight
        y = check_label(y, *size) if score.label else check_vector(y, "y", *size)
        source, note = np.arange(X.shape[1]), table.note
        if panel is not None:
            self._fit_options_["fixed_effects"], self._kept_ = panel.given, panel.keep
            T, y = panel.take_out(T, "treatment"), panel.take_out(y, "y")
            X, source = panel.covariates(X, column)
            index, note = panel.index(index), f"{panel.note} {note}"
            clusters, weight = panel.clusters(clusters, self.n_folds), panel.weight
        self._inflation_ = 1.0 if panel is None else inflation(panel.codes, clusters)
        used = weight > 0
        check_folds(self.n_folds, T[used], binary)
        covariates = np.arange(X.shape[1]) != column
        if not covariates.any():
            raise ValueError("X must have a covariate besides the treatment, got none.")
        inputs = X[np.ix_(used, covariates)]
        check_identified(inputs, T[used])
        names = np.array(self._encoding_.columns)[source[covariates]]
        cautions.warn_of_outcome_copies(inputs, y[used], names)
        cautions.warn_of_weights(weight)

        strata = y if score.label else T if binary else None
        plan = make_plan(
            X,
            y[:, None],
            check_random_state(self.random_state),
            treatments=T[:, None],
            own=[-1 if column is None else column],
            binary_T=[binary],
            label=score.label,
            n_folds=self.n_folds,
            n_repeats=self.n_repeats,
            strata=None if strata is None else strata.astype(int),
            groups=None if clusters is None else clusters[:, 0],
            weight=weight,
        )
        if binary:
            check_arms(plan.folds, T)
        resources = Resources.on(self.device, n_jobs=self.n_jobs)
        where = resources.devices[0]
        facts = score.estimand, score.name, nuisance, *X.shape, len(plan.folds), where
        LOGGER.info("%s by the %s score; %r; %d rows, %d columns; %d folds; device %s", *facts)
        with progress_bar(self.verbose, "DDML") as progress:
            resources = replace(resources, progress=progress)
            predictions = nuisance.predict(plan, arms=score.arms, resources=resources)
        self._combine(plan, predictions, score, index, clusters)
        self._describe(plan, predictions, column, self._encoding_.own[source])
        clip = getattr(score, "clip", None)
        self._binary_, self._clip_ = binary, CLIP if clip is None else clip
        if used.sum() < diagnostics.FEW:
            linear = linear_moments(score, X[:, covariates], T, y, weight)
            noise = float(inference.stderr_of(self.influence_, clusters))
            estimate = self.effect_, noise, self.influence_, clusters
            self._few_rows_ = cautions.few_rows(int(used.sum()), linear_gap(linear, *estimate))
        found = self.diagnostics()
        said = diagnostics.verdict(found, clip, score.estimand, bool(self._few_rows_))
        self.verdict_ = f"{said} {note}".strip()
        LOGGER.info("Effect %.4g (%.2g). %s", self.effect_, self.stderr_, self.verdict_)
        cautions.warn_of_overlap(found, clip, score.estimand)
        if self._few_rows_:
            cautions.caution(self._few_rows_)
        return self

    def _combine(self, plan: Plan, predictions: Predictions, score: Score, index, clusters):
        """Effect of every split, and the median over the splits."""
        T, y, self._weight_ = plan.T[:, 0], plan.Y[:, 0], plan.weight
        splits = [
            score.moments(T, y, predictions.of(r), plan.weight) for r in range(plan.n_repeats)
        ]
        effects = np.array([split.theta for split in splits])
        stderrs = np.array([inference.stderr_of(s.influence, clusters) for s in splits])
        errors = [nuisance_error(plan, predictions, score, r) for r in range(plan.n_repeats)]
        self.nuisance_stderr_ = float(np.median(errors))
        stderrs = np.hypot(stderrs * self._inflation_, errors)
        self._clusters_, self._df_ = clusters, np.inf
        if clusters is not None:
            self._df_ = min(len(np.unique(column)) for column in clusters.T) - 1
        self.effect_, self.stderr_ = inference.median_of(effects, stderrs)
        self.score_, self.estimand_ = score.name, score.estimand
        if score.estimand in ("ATE", "ATT"):
            setattr(self, f"{score.estimand.lower()}_", self.effect_)
        self.pvalue_ = inference.normal_pvalue(self.effect_, self.stderr_, self._df_)
        self.repeats_ = pd.DataFrame({"effect": effects, "stderr": stderrs})
        self.folds_ = [(np.sort(fold.train), fold.hold) for fold in plan.folds]

        r = int(np.argmin(np.abs(effects - self.effect_)))
        hat = predictions.of(r)
        self.influence_ = splits[r].influence
        self._signal_ = splits[r].psi_b if score.estimand == "ATE" else None
        self._elements_ = elements(score, T, y, hat, splits[r].theta, plan.weight)
        v, e = residuals(T, hat.m, y, hat.g)
        self.residuals_ = pd.DataFrame({"v": v, "e": e, "u": e - self.effect_ * v}, index=index)
        self.nuisances_ = pd.DataFrame(
            {name: getattr(hat, name) for name in hat.functions}, index=index
        )

    def _describe(self, plan: Plan, predictions: Predictions, column, feature):
        """Losses and weights of the nuisances, and summaries of networks."""
        names = self._encoding_.names
        self.nuisance_losses_, weights = diagnostics.nuisance_tables(plan, predictions)
        if weights is not None:
            self.nuisance_weights_ = weights
        if predictions.networks is not None:
            networks = predictions.networks
            n_rows = (plan.weight > 0).sum() * plan.n_repeats
            self.roles_ = diagnostics.roles_table(networks, n_rows, names, feature)
            if column is not None:
                self.roles_ = self.roles_.drop(index=names[feature[column]])
            self._encoder_ = min(networks, key=lambda n: n.valid_loss).encoder
            self._inputs_kept_ = float(np.mean([n.keep.sum() for n in networks]))
