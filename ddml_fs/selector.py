"""CausalFeatureSelector: effects of all features, ranked, and the top K of them."""

import logging
from collections.abc import Callable
from os import PathLike
from typing import Any, Self

from joblib import effective_n_jobs
from numpy.random import default_rng
from sklearn.base import BaseEstimator

from ddml_fs import cautions, inference
from ddml_fs.blocks import Blocks
from ddml_fs.effects_table import chosen, domain_effects, effects_table, spread_to_copies
from ddml_fs.encoding import number_of_folds, read_target
from ddml_fs.engine.checkpoint import resumable
from ddml_fs.engine.devices import limit_threads
from ddml_fs.engine.resources import Resources
from ddml_fs.features import Encoding
from ddml_fs.nuisances import resolve_nuisance
from ddml_fs.number import choose_features
from ddml_fs.options import check_no_weights, check_selector
from ddml_fs.progress import progress_bar
from ddml_fs.ranking import Ranker, ranked_early
from ddml_fs.rows import read_rows
from ddml_fs.screening import screened_sweep
from ddml_fs.sweep import SweepInput, nuisance_for, score_for, seed_for, sweep
from ddml_fs.sweep_sensitivity import SweepSensitivity
from ddml_fs.tables import column_names, read_table
from ddml_fs.validation import forget_fit
from ddml_fs.weights import varies

N_DRAWS = 1000  # of the multiplier bootstrap
LOGGER = logging.getLogger(__name__)


class CausalFeatureSelector(SweepSensitivity, BaseEstimator):
    """Select features by their causal effects on the label, and by how stable these are.

    Each feature in turn is the treatment, and the other features are covariates. All these effects
    are estimated in one batched computation. Features rank high if their effect is large, precise
    and the same in all source domains. The top K are kept.

    Parameters
    ----------
    n_features_to_select : int, float, "auto" or "fdr", default="auto"
        A number, a share, or a rule. "auto": the smallest number of features with which
        ``downstream`` is as accurate as with the best number. Accuracy is measured on domains that
        are left out in turn or, with one domain, by cross-validation. If the comparison is not
        clear, more features are kept. "fdr": the features whose q-value is at most ``fdr_level``.
        May be changed after ``fit`` (by ``set_params``), except to "auto".
    nuisance : str, Nuisance, estimator or pair of estimators, default="auto"
        Nuisance models of the effects, as in :class:`~ddml_fs.DDML`. "auto": one additive model of
        all features ("additive"), or "ridge" if there are more columns than a third of the rows or
        with ``ranking="redundancy"``. "shrunken": small networks that learn the residuals of ridge.
    ranking : {"gain", "effect", "tstat", "stability", "redundancy"} or callable, default="gain"
        "gain": how much a feature is expected to improve predictions in a new domain, given the
        features ranked before it. "effect": |θ| of one standard deviation. "tstat": |θ| divided by
        its standard error. "stability": the probability that the effect has the same sign in a new
        domain. "redundancy": large effects that correlate little with the features ranked before;
        for words and naive Bayes. A callable takes ``effects_`` and returns scores.
    risk_aversion : float, default=2.5
        Only for ``ranking="gain"``: how much variation of an effect between domains lowers the
        score of a feature, if some effect has opposite signs in two domains. 0: not at all.
    dose : {"auto", "linear", "spline"}, default="auto"
        Whether the effect of a numeric column is tested as a line or as a curve. "auto": as a curve
        if that lowers the held-out loss.
    groups : array of shape (n_features,), optional
        For each column of X the name of its feature. The columns of one feature have one effect and
        one rank, and are selected together. A categorical column of a DataFrame is one feature.
    scale : {"auto", "log_odds", "mean"}, default="auto"
        The scale of the effects: the log-odds of a label (logistic score), or the mean (partially
        linear score). "auto" is the first for labels and the second for numbers.
    covariates : {"stable", "strict", "all"}, default="stable"
        Which features serve as covariates, with several domains. A consequence of the label biases
        the effects of its causes if it is a covariate. "stable": features whose effects clearly
        differ between the domains in a quick ridge sweep are treatments, but not covariates.
        "strict": nor are features whose effects may differ by chance alone.
    n_folds : int, default=5
        Number of folds of the cross-fitting; fewer if the rarest class has fewer rows.
    fdr_level : float, default=0.1
        False discovery rate of "fdr".
    downstream : estimator or list of them, optional
        Model for "auto": by default logistic regression on scaled features, or ridge regression for
        numbers. With several models, their mean loss counts. Weights reach those that take them.
    task : {"auto", "classification", "regression"}, default="auto"
        What y is. "auto": labels are strings, booleans, or integers with at most 20 values.
    memory_budget : float, default=1.0
        Gigabytes that the fit may use, libraries not counted: shards of networks are sized so that
        all workers together stay below it, and blocks of rows likewise. On a cluster, each worker
        may use as much. With ridge nuisances, sparse X that would be larger stays sparse.
    checkpoint : str or path, optional
        Folder in which finished shards are stored. After an interruption, ``fit`` computes only the
        missing shards. The same sweep is never computed twice.
    n_jobs : int, optional
        Number of joblib workers for shards and scikit-learn models, and of threads for closed
        forms.
    device : str, torch.device or list of them, default="auto"
        Where to compute. Each device of a list has its own process.
    random_state : int, RandomState or None, default=None
        Seed of splits, weights, batches and of the bootstrap.
    verbose : bool, default=False
        Whether to show progress. Details are logged under the name "ddml_fs".
    screen : int, optional
        Number of features that are swept: the best of a ridge sweep or, for sparse X with ridge
        nuisances, of marginal scores. The others follow in that order, untested (p-value 1).

    Attributes
    ----------
    effects_ : DataFrame
        One row per feature, see Notes.
    support_ : bool array of shape (n_features,)
        Which columns are selected.
    scores_, feature_importances_ : arrays of shape (n_features,)
        Larger is better; 0 for constant columns. Importances are scores without negative values,
        divided by their sum.
    ranking_ : int array of shape (n_features,)
        1 for the best. Further copies of a column come after all distinct ones.
    domain_effects_ : DataFrame
        Effect of every feature in every domain: ``feature``, ``domain``, ``effect``, ``stderr``,
        ``low`` and ``high``.
    task_, scale_ : str
        "classification" or "regression", and "log_odds" or "mean".
    domains_ : array
        Names of the source domains.
    n_features_auto_ : int
        The number that "auto" chose; only with "auto".
    curve_ : DataFrame
        Mean loss of ``downstream`` by number of features; only with "auto".
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Columns of ``effects_``: ``effect``, the random-effects mean over the domains per unit of the
    feature (for a category: per standard deviation of the best-fitting sum of its levels);
    ``std_effect``, the same per standard deviation; ``stderr``, ``tstat``; ``pvalue`` of no effect,
    from a score test with ``df`` columns or, if effects differ between domains, of the mean effect
    in a new domain; ``qvalue`` (Benjamini–Hochberg), ``holm``; ``unbounded``, the end of the
    interval that is infinite, 1 or −1, see :meth:`conf_int`; ``effect[d]`` in domain d;
    ``sign_agreement``, the share of domains whose effect has the sign of the mean; ``I2``, the
    heterogeneity; ``tau``, the standard deviation of the effect between domains, with its interval
    ``tau_low`` to ``tau_high``; ``instability``, tau relative to the effect, from 0 to 1; ``z``,
    the mean divided by the standard deviation of the effect in a new domain; ``stability``, the
    probability that the effect in a new domain has the sign of the mean; ``robustness``, the share
    of the remaining variance of the feature and of the outcome that a confounder which was not
    measured would have to explain to bring the effect to zero; ``score``, ``rank``, ``selected``.
    With several classes, a row describes the ``class`` with the largest |z|, and p-values account
    for this choice. Standard errors are corrected for the degrees of freedom of the nuisances. They
    are model-based or, with weights that differ or with clusters, robust (sandwich), as are the
    tests and the joint intervals. A constant column has effect 0, p-value 1 and no stderr (NaN).

    Rows with a negative ``sample_domain`` are targets, as in skada, and are never used. Sparse
    input is made dense (with over 1000 columns, in single precision) unless it stays sparse (see
    ``memory_budget``). Then, and with blocks, there are neither curves, joint intervals nor "auto".

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

    # skada's name for domain labels; metadata routing passes both without a request. Weights need
    # one (``set_fit_request``), as those of all estimators of scikit-learn.
    __metadata_request__fit = {"sample_domain": True, "cluster": True}  # noqa: RUF012

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
        screen: int | None = None,
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
        self.screen = screen

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_domain: Any = None,
        sample_weight: Any = None,
        cluster: Any = None,
    ) -> Self:
        """Estimate the effects of all features, and rank them.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
            Numbers, or a DataFrame with categories, text, booleans, dates and missing values.
            Or a table that is read in blocks, see :func:`~ddml_fs.blocks.read_blocks`.
        y : array of shape (n_samples,)
            Labels or numbers; for a table that is read in blocks, the name of a column.
        sample_domain : array of shape (n_samples,), optional
            The domain of each row; negative numbers mark targets, which are left out.
        sample_weight : array of shape (n_samples,), optional
            Weights of the rows. Only their ratios matter; rows with weight 0 are left out.
        cluster : array of shape (n_samples,), optional
            Clusters of rows that depend on one another. Folds do not split them, and errors allow
            for the dependence.

        Returns
        -------
        self : CausalFeatureSelector
        """
        in_blocks = isinstance(X, Blocks | str | PathLike) or isinstance(y, str)
        if in_blocks or self._stays_sparse(X):
            check_no_weights(sample_weight=sample_weight, cluster=cluster)
            return (self._fit_blocks if in_blocks else self._fit_sparse)(X, y, sample_domain)
        self.fit_sweep(X, y, sample_domain, sample_weight, cluster)
        return self

    def fit_sweep(self, X, y, sample_domain=None, sample_weight=None, cluster=None) -> Ranker:
        """Fit, and return the evidence and its orders, for estimators that build on them.

        Parameters
        ----------
        X, y, sample_domain, sample_weight, cluster
            As in :meth:`fit`.

        Returns
        -------
        ranker : Ranker
            ``ranker.result`` has the data as read, and the evidence.
        """
        forget_fit(self)
        self._check_options()
        threads = limit_threads(effective_n_jobs(self.n_jobs))  # small computations wait for many
        with threads, resumable(self.checkpoint), progress_bar(self.verbose, "sweep") as progress:
            given = self._read(X, y, sample_domain, sample_weight, cluster)
            options = self.ranking, self.risk_aversion, self.dose != "linear"
            score = score_for(self.scale, given.target)
            with ranked_early(given, *options, score) as orders:
                result, screened = self._sweep(given, score, progress)
            self._stable_ = result.stable
            cautions.warn_of_collinear(result.evidence, given.features, self._encoding_.names)
            ranker = Ranker(result, *options, screened, score.label, orders())
            progress.enter("ranking")
            F, n_orders = given.features.n_features, 1 + len(ranker.left_out)
            progress.start(n_orders * F, "features", done=len(ranker.orders) * F)
            self._rank(result, ranker, progress)
            if self.n_features_to_select == "auto":
                self._choose(result, ranker, progress)
        self._get_support_mask()  # raises if the number is too large
        return ranker

    def _check_options(self):
        check_selector(self)

    def _read(self, X, y, sample_domain, sample_weight, cluster):
        """The data of the sweep, a SweepInput; warns of what looks wrong in them."""
        rows = read_rows(X, sample_domain, sample_weight, cluster)
        self.domains_ = rows.domains
        X, y = read_table(self, rows.of(X), rows.of(y))
        encoding = self._encoding_ = Encoding.of(X, column_names(self), self.groups)
        target = read_target(y, self.task)
        self.task_ = "regression" if target.classes is None else "classification"
        features = encoding.features(X, rows.weight)
        cautions.warn_of_unread(encoding)
        cautions.warn_of_label_copies(features, target, encoding.names)
        cautions.warn_of_repeats(features, encoding.names)
        cautions.warn_of_rows(rows.domain, self.domains_, target, rows.weight)
        return SweepInput(features, target, rows.domain, rows.weight, rows.cluster)

    def _sweep(self, given, score, progress, **only):
        """The evidence on every feature, or on those that ``only`` names."""
        self.scale_ = "log_odds" if score.label else "mean"
        nuisance = nuisance_for(given.features, self.ranking)
        if not isinstance(self.nuisance, str) or self.nuisance != "auto":
            nuisance = resolve_nuisance(self.nuisance)
        nuisance.check(score)
        nuisance.check_resources(self.device, self.checkpoint)
        if varies(given.weight):
            nuisance.check_weights()
        self._seed_ = seed_for(self.random_state, self.checkpoint, given)
        n_folds = number_of_folds(self.n_folds, given.target, given.cluster)
        LOGGER.info(
            "%d rows, %d domains, %d features in %d columns; nuisance %r, %s score, %d folds",
            *(len(given.domain), len(self.domains_), given.features.n_features),
            *(given.features.Z.shape[1], nuisance, score.name, n_folds),
        )
        use = {"n_jobs": self.n_jobs, "memory": self.memory_budget, "progress": progress}
        use |= {"checkpoint": self.checkpoint, "detail": False}
        resources = Resources.on(self.device, **use)
        options = {"seed": self._seed_, "n_folds": n_folds, "dose": self.dose}
        options |= {"covariates": self.covariates, "resources": resources}
        if self.screen is None or only:
            return sweep(given, nuisance, score, **options, **only), None
        how = self.screen, self.ranking, self.risk_aversion
        return screened_sweep(given, nuisance, score, *how, **options)

    def _rank(self, result, ranker, progress):
        """Make the table of effects, and order the features."""
        table, shown = effects_table(result.evidence, result, self.domains_)
        order, scores = ranker.order(progress=progress)
        features = result.features
        given = table.assign(score=scores), order, features.group, features.scale
        self._table_, ranking, self._order_ = spread_to_copies(*given, self._encoding_.names)
        self.domain_effects_ = domain_effects(self._table_, result, shown, self.domains_)
        column = self._encoding_.feature
        self.ranking_, self.scores_ = ranking[column], self._table_["score"].to_numpy()[column]
        self._error_df_ = result.error_df
        if result.evidence[0].influence.shape[1]:
            influence = chosen(shown, [s.influence for s in result.evidence])
            drawn = N_DRAWS, default_rng(self._seed_), result.cluster
            self._maxima_ = inference.bootstrap_maxima(influence, *drawn)

    def _choose(self, result, ranker, progress):
        """Choose the number of features."""
        options = self.downstream, self.n_jobs, progress
        self.n_features_auto_, self.curve_ = choose_features(result, ranker, *options)
        LOGGER.info('"auto" keeps %d features', self.n_features_auto_)
