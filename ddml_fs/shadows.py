"""Shadow columns: permuted copies of features, which have no effect, to test a sweep's p-values."""

from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
from joblib import effective_n_jobs
from scipy import stats
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ddml_fs.blocks import Blocks
from ddml_fs.effects_table import effects_table
from ddml_fs.engine.devices import limit_threads
from ddml_fs.engine.plan import make_plan
from ddml_fs.features import read_features
from ddml_fs.nuisances import Ridge
from ddml_fs.options import check_no_weights
from ddml_fs.placebo import DOUBT, N_STRATA, strata_of
from ddml_fs.progress import progress_bar
from ddml_fs.sparse_fit import FitSparse
from ddml_fs.sweep import score_for
from ddml_fs.tables import read_new_table
from ddml_fs.validation import check_integer, check_number
from ddml_fs.warning import said_before

LEAST_UNITS = 10  # rows or clusters per stratum
N_FOLDS = 5  # of the predictions that define the strata
SHOWN = ["tstat", "pvalue", "df"]


def donors(score, domain, cluster, rng):
    """For each row another row, whose values it gets in a shadow column; an int array (N,).

    Rows change places within domains and, there, within up to ten strata of similar scores. So a
    shadow column still depends on the covariates and on the domain. No row keeps its own place.
    With clusters, whole clusters change places, so that the rows of a cluster depend on each other
    in the shadow column as they did. A cluster repeats the rows of a smaller one.

    Parameters
    ----------
    score : array of shape (N,)
        The feature as predicted from the others.
    domain : int array of shape (N,)
    cluster : int array of shape (N,), or None
    rng : RandomState

    Examples
    --------
    >>> score, cluster = np.zeros(6), np.array([0, 0, 1, 1, 2, 2])
    >>> source = donors(score, np.zeros(6, int), cluster, np.random.RandomState(0))
    >>> cluster[source][::2].tolist(), cluster[source][1::2].tolist()
    ([1, 2, 0], [1, 2, 0])
    """
    pairs = np.column_stack([domain, np.arange(len(domain)) if cluster is None else cluster])
    units, member = np.unique(pairs, axis=0, return_inverse=True)
    member = member.ravel()
    size = np.bincount(member)
    mean = np.bincount(member, score) / size
    donor = np.arange(len(units))
    for d in np.unique(domain):
        own = np.flatnonzero(units[:, 0] == d)
        strata = strata_of(mean[own], min(max(len(own) // LEAST_UNITS, 1), N_STRATA))
        for stratum in np.unique(strata):
            circle = rng.permutation(own[strata == stratum])
            donor[circle] = np.roll(circle, 1)
    rows = np.argsort(member, kind="stable")
    start = np.cumsum(size) - size
    place = np.empty(len(rows), dtype=int)
    place[rows] = np.arange(len(rows)) - start[member[rows]]
    turn = rng.randint(0, size.max(), len(units))  # a single unit still gets other rows
    from_unit = donor[member]
    return rows[start[from_unit] + (place + turn[member]) % size[from_unit]]


def predicted(given, stable, rng):
    """Held-out ridge predictions of all columns from those of other, stable features, (N, P)."""
    features = given.features
    plan = make_plan(
        features.Z,
        given.target.outcomes[0][:, None],
        rng,
        binary_T=features.binary,
        covariates=None if stable is None else stable[features.own],
        block=features.near[features.own],
        n_folds=min(N_FOLDS, len(features.Z) // 4),
        groups=given.cluster,
        weight=given.weight,
    )
    return Ridge().predict(plan).of(0, 0, slice(None)).m


def with_shadows(given, stable, n, rng):
    """Data of a sweep with n shadow columns beside the features.

    Parameters
    ----------
    given : SweepInput
    stable : bool array of shape (F,), or None
        The covariates. A shadow may depend on no other feature: a consequence of the label would
        give it the label's own values.
    n : int
    rng : RandomState

    Returns
    -------
    given : SweepInput
        The distinct shadows are the last features.
    source : int array of shape (S,)
        The feature of the table of which each of these is a shadow.
    """
    features = given.features
    guess = predicted(given, stable, rng)
    table, owners, source = [features.X], [features.feature], []
    for k, f in enumerate(np.resize(rng.permutation(features.n_features), n)):
        columns = np.flatnonzero(features.own == f)
        # Of several columns, the one that the other features predict best.
        score = guess[:, columns[np.argmax(guess[:, columns].var(0))]]
        rows = donors(score, given.domain, given.cluster, rng)
        block = features.X[np.ix_(rows, features.columns_of([f]))]
        table.append(block)
        owners.append(np.full(block.shape[1], len(features.group) + k))
        source.append(features.first[f])
    both = read_features(
        np.hstack(table), np.concatenate(owners), len(features.group) + n, given.weight
    )
    # A shadow that repeats a feature, or another shadow, is no feature of its own.
    distinct = both.first[features.n_features :] - len(features.group)
    return replace(given, features=both), np.array(source, dtype=int)[distinct]


def table_of_shadows(result, first, domains):
    """The table of effects of the features from number ``first`` on, whose evidence is given."""
    features = result.features
    columns = features.own >= first
    group = np.where(features.group >= first, features.group - first, -1)
    alone = replace(
        features,
        own=features.own[columns] - first,
        near=np.arange(features.n_features - first),
        group=group,
    )
    return effects_table(result.evidence, replace(result, features=alone), domains)[0]


def verdict_of_shadows(pvalues, level):
    """Whether the p-values of shadow columns look like chance.

    Parameters
    ----------
    pvalues : array of shape (S,)
    level : float

    Returns
    -------
    row : dict
        ``rejected``, the share of p-values up to ``level``, with its exact 95 % interval ``low`` to
        ``high``; ``pvalue`` of a share of at most ``level``; ``passed``; ``verdict``.

    Examples
    --------
    >>> verdict_of_shadows(np.linspace(0, 1, 20), 0.1)["verdict"]
    '2 of 20 shadow columns have a p-value of at most 0.1, as chance explains.'
    """
    n, called = len(pvalues), int((pvalues <= level).sum())
    test = stats.binomtest(called, n, level, alternative="greater")
    low, high = stats.binomtest(called, n, level).proportion_ci(0.95, "exact")
    passed = bool(test.pvalue >= DOUBT)
    found = f"{called} of {n} shadow columns have a p-value of at most {level:g}"
    end = (
        ", as chance explains."
        if passed
        else ", more than chance explains: do not trust the p-values, because rows depend on one "
        "another (pass cluster=) or the nuisances miss confounding."
    )
    row = {"rejected": called / n, "low": float(low), "high": float(high)}
    return row | {"pvalue": float(test.pvalue), "passed": passed, "verdict": found + end}


class ShadowPlacebo(FitSparse):
    """The part of a selector that tests its p-values with shadow columns."""

    _seed_: int
    _stable_: np.ndarray | None = None
    domains_: np.ndarray

    def _read(self, X, y, sample_domain, sample_weight, cluster):
        """The data of the sweep."""
        raise NotImplementedError

    def _sweep(self, given, score, progress, **only):
        """The evidence on every feature."""
        raise NotImplementedError

    def sweep_shadows(self, rows, n, rng, clustered, stable):
        """Sweep shadow columns of the features, for :meth:`placebo`; no results are stored.

        Parameters
        ----------
        rows : tuple
            Arguments of :meth:`fit`.
        n : int
        rng : RandomState
        clustered : bool
            Whether folds and errors know the clusters.
        stable : bool array of shape (F,), or None
            The covariates; None: all.

        Returns
        -------
        table : DataFrame
        """
        real = self._read(*rows)
        first = real.features.n_features
        if stable is not None and len(stable) != first:
            raise ValueError("X must have the rows of fit, got others.")
        with progress_bar(self.verbose, "placebo") as progress:
            given, source = with_shadows(real, stable, n, rng)
            given = given if clustered else replace(given, cluster=None)
            score = score_for(self.scale, given.target)
            result, _ = self._sweep(given, score, progress, n_shadows=len(source), stable=stable)
        table = table_of_shadows(result, first, self.domains_)
        table = table.assign(feature=np.array(self._encoding_.names)[source])
        table = table.loc[table["df"] > 0, ["feature", *SHOWN]].reset_index(drop=True)
        if table.empty:
            raise ValueError(
                "X must have a column that the others do not determine, got none that can be "
                "permuted."
            )
        return table

    def placebo(
        self,
        X: Any,
        y: Any,
        sample_domain: Any = None,
        sample_weight: Any = None,
        cluster: Any = None,
        *,
        n: int = 50,
        level: float = 0.1,
        random_state: Any = 0,
    ) -> pd.Series:
        """Sweep shadow columns, which have no effect, and count how many seem to have one.

        A shadow is a copy of a feature whose values change places between rows of the same domain
        for which the other features predict similar values. So it depends on the covariates, but
        has no effect. Its covariates are those of ``fit``. Shadows are not covariates.

        Parameters
        ----------
        X, y, sample_domain, sample_weight
            As in :meth:`fit`.
        cluster : array of shape (n_samples,), optional
            Clusters, which change places as a whole. They must be given if ``fit`` had them. If
            ``fit`` had none, errors are computed without them as in ``fit``, and the result says
            whether this is safe.
        n : int, default=50
            Number of shadows. Features are drawn by lot, and repeated if there are fewer.
        level : float, default=0.1
            p-value up to which a shadow counts as called.
        random_state : int or RandomState, default=0
            Seed of the permutations.

        Returns
        -------
        result : Series
            ``rejected``, the share of shadows with a p-value of at most ``level``, with an exact
            95 % interval ``low`` to ``high``; ``pvalue`` of a share of at most ``level``;
            ``passed``; ``verdict``, a sentence; ``discoveries``, the number of shadows whose
            p-value is at most the largest of a feature with a q-value up to ``fdr_level``;
            ``shadows``, a table with the feature, t statistic and p-value of every shadow. Shadows
            that the other columns determine are left out.

        Examples
        --------
        >>> from ddml_fs import CausalFeatureSelector
        >>> from ddml_fs.datasets import make_domain_data
        >>> data = make_domain_data(n_samples=300, random_state=0)
        >>> rows = {"sample_domain": data.sample_domain}
        >>> selector = CausalFeatureSelector(5, random_state=0).fit(data.X, data.y, **rows)
        >>> selector.placebo(data.X, data.y, **rows)["passed"]
        True
        """
        check_is_fitted(self)
        check_integer(n, "n", 10)
        check_number(level, "level", 1e-3, 0.5)
        in_blocks = isinstance(X, Blocks | str | PathLike) or isinstance(y, str)
        if in_blocks or not self.has_joint_intervals:
            check_no_weights(placebo=n)
        clustered = np.isfinite(self._error_df_)
        if clustered and cluster is None:
            raise ValueError("cluster must be given to placebo, as to fit, got None.")
        read_new_table(self, X)  # raises if the columns are not those of fit
        rng = check_random_state(random_state)
        model: Any = clone(self)  # type: ignore[type-var]
        model.set_params(checkpoint=None, random_state=self._seed_)
        rows = X, y, sample_domain, sample_weight, cluster
        with said_before(), limit_threads(effective_n_jobs(self.n_jobs)):
            table = model.sweep_shadows(rows, n, rng, clustered, self._stable_)
        row = verdict_of_shadows(table["pvalue"].to_numpy(), level)
        found = self._table_["pvalue"][self._table_["qvalue"] <= self.fdr_level]
        row["discoveries"] = int((table["pvalue"] <= found.max()).sum()) if len(found) else 0
        return pd.Series(row | {"shadows": table}, name="placebo")
