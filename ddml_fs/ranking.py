"""Rankings: from effects to an order of the features."""

from typing import Any

import numpy as np

from ddml_fs.effects_table import effects_table
from ddml_fs.encoding import splits_of_domains
from ddml_fs.features import ROOMY, bent_columns
from ddml_fs.forward import forward_order, products
from ddml_fs.progress import Progress

HARMLESS, HARMLESS_BY_WIDTH = 10.0, 100.0  # in units of 1/n, the size of a gain by chance
RANKINGS = ("gain", "effect", "tstat", "stability")


def feature_scores(ranking, table):
    """One score per feature; larger is better.

    Parameters
    ----------
    ranking : str or callable
        "effect": |θ| of one standard deviation. "tstat": |θ| / stderr. "stability": the
        probability that the effect in a new domain has the sign of the mean. A callable takes the
        table and returns the scores.
    table : DataFrame
        Effects of the features.

    Returns
    -------
    scores : array of shape (F,)
    """
    if callable(ranking):
        scores = np.asarray(ranking(table), dtype=np.float64)
        if scores.shape != (len(table),) or np.isnan(scores).any():
            raise ValueError(
                f"ranking must return one number per feature ({len(table)}), got an array of shape "
                f"{scores.shape} with {int(np.isnan(scores).sum())} NaN."
            )
        return scores
    return table["std_effect" if ranking == "effect" else ranking].abs().to_numpy()


class Ranker:
    """Orders features by the evidence of a sweep, from all rows or without a part of them.

    Parameters
    ----------
    result : SweepResult
    ranking : str or callable
    risk_aversion : float
    bends : bool
        Whether the gain of a feature includes its nonlinear columns.
    screened : Screened, optional
        If only some features were swept: the others come after them.
    """

    def __init__(self, result, ranking, risk_aversion, bends=True, screened=None):
        self.result, self.ranking, self.risk_aversion = result, ranking, risk_aversion
        self.screened = screened
        self.part = "domain" if splits_of_domains(result.target, result.domain) else "fold"
        self.labels = getattr(result, self.part)
        self.products: Any = self._products(bends) if ranking == "gain" else None
        self.orders: dict = {}  # by the part that is left out

    def _products(self, bends):
        """Sums of products for the gains, one table per part."""
        features, target = self.result.features, self.result.target
        hinges, column = bent_columns(features)
        # If there are few rows for the columns, curves of all of them would be chance.
        if not bends or features.Z.shape[1] + len(column) > ROOMY * len(features.Z):
            hinges, column = hinges[:, :0], column[:0]
        Z = np.column_stack([features.Z, hinges])
        own = np.r_[features.own, features.own[column]]
        order = np.argsort(own, kind="stable")
        several = self.result.domain.max() > 0
        return products(
            Z[:, order],
            np.column_stack(target.outcomes),
            self.result.domain if several else self.labels,
            own[order],
            (np.arange(len(own)) >= len(features.own))[order],
            features.n_features,
            label=target.classes is not None,
            domains=several,
        )

    def order(self, left_out=None, progress=None):
        """The features, best first, and their scores, (F,).

        Parameters
        ----------
        left_out : int, optional
            A part of the rows whose evidence is not used. Exception: if there are several domains,
            but leaving one out would lose a class, the gains use all rows.
        progress : Progress, optional
            Told of every feature that is ranked by its gain.
        """
        if left_out not in self.orders:
            order, scores = self._order(left_out, progress)
            if self.screened is not None:
                order, scores = self.screened.order(order, scores)
            self.orders[left_out] = order, scores
        return self.orders[left_out]

    def _order(self, left_out, progress):
        """Compute an order."""
        if self.ranking == "gain":
            given = self.products
            # With several domains the products are those of domains; folds cannot be left out.
            if left_out is not None and given.domains == (self.part == "domain"):
                given = given.without(left_out)
            return forward_order(given, risk_aversion=self.risk_aversion, progress=progress)
        result = self.result
        evidence = result.evidence
        names = np.unique(result.domain)
        if left_out is not None:
            evidence = [s.without(self.part, left_out) for s in evidence]
            names = np.delete(names, left_out) if self.part == "domain" else names
        table, _ = effects_table(evidence, result, names)
        scores = feature_scores(self.ranking, table)
        return np.argsort(-scores, kind="stable"), scores

    def harmless(self, scores):
        """Number of features whose score is not clearly negative; these come first in the order.

        The score of a feature is clearly negative if its risk exceeds its gain. Features without
        any effect have scores near 0, within a few times the size of a gain by chance.
        """
        if self.ranking != "gain":
            return len(scores)
        N, F = len(self.labels), len(scores)
        return int((scores > -(HARMLESS + HARMLESS_BY_WIDTH * F / N) / N).sum())

    def splits(self, progress=None):
        """Training rows, test rows, and the order of the features on the training rows.

        Parameters
        ----------
        progress : Progress, optional

        Returns
        -------
        splits : list of triples
            One per left-out domain or, with one domain, per left-out fold. The order is a list that
            has the columns of ``features.X`` of each feature.
        harmless : int
            In each order, so many features come before those whose score is clearly negative.
        """
        progress = progress or Progress()
        features = self.result.features
        columns = [features.columns_of([f]) for f in range(features.n_features)]
        out, harmless = [], features.n_features
        parts = np.unique(self.labels)
        progress.enter(f"ranking without each {self.part}")
        progress.start(len(parts) * features.n_features, "features")
        for i, k in enumerate(parts):
            order, scores = self.order(left_out=k, progress=progress)
            progress.reach((i + 1) * features.n_features)
            harmless = min(harmless, max(1, self.harmless(scores)))
            train, test = np.flatnonzero(self.labels != k), np.flatnonzero(self.labels == k)
            out.append((train, test, [columns[f] for f in order]))
        return out, harmless
