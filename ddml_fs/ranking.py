"""From effects to an order of the features."""

from typing import Any

import numpy as np

from ddml_fs.effects_table import effects_table
from ddml_fs.encoding import splits_of_domains
from ddml_fs.features import bent_columns
from ddml_fs.forward import forward_order, products

HARMLESS, HARMLESS_BY_WIDTH = 10.0, 100.0  # chance gains, 1/n each
RANKINGS = ("gain", "effect", "tstat", "stability")


def feature_scores(ranking, table):
    """One score per feature, larger for better ones.

    Parameters
    ----------
    ranking : str or callable
        "effect": |θ| of one standard deviation. "tstat": |θ| / stderr. "stability": the chance
        that a new domain's effect has the sign of the mean. A callable takes the table and returns
        the scores.
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
    """Orders features by what a sweep found, with all its rows or without a part of them.

    Parameters
    ----------
    result : SweepResult
    ranking : str or callable
    risk_aversion : float
    bends : bool
        Whether a feature's bent columns count in its gain.
    """

    def __init__(self, result, ranking, risk_aversion, bends=True):
        self.result, self.ranking, self.risk_aversion = result, ranking, risk_aversion
        self.part = "domain" if splits_of_domains(result.target, result.domain) else "fold"
        self.labels = getattr(result, self.part)
        self.products: Any = self._products(bends) if ranking == "gain" else None

    def _products(self, bends):
        """Sums of products for the gains, one table a part."""
        features, target = self.result.features, self.result.target
        hinges, column = bent_columns(features)
        if not bends:
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

    def order(self, left_out=None):
        """The features, best first, and their scores, (F,).

        Parameters
        ----------
        left_out : int, optional
            A part of the rows whose evidence does not count; it does count in gains where there
            are several domains, but none can be left out without losing a class.
        """
        if self.ranking == "gain":
            given = self.products
            # Products are of domains where there are several, and then folds cannot be left out.
            if left_out is not None and given.domains == (self.part == "domain"):
                given = given.without(left_out)
            return forward_order(given, risk_aversion=self.risk_aversion)
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
        """How many features are worth a try: a risk that exceeds the gain puts the others last.

        Gains of features that do nothing are within a few chance gains of 0.
        """
        if self.ranking != "gain":
            return len(scores)
        N, F = len(self.labels), len(scores)
        return int((scores > -(HARMLESS + HARMLESS_BY_WIDTH * F / N) / N).sum())

    def splits(self):
        """Rows to train on and to test on, and the order that the former give.

        Returns
        -------
        splits : list of triples
            One domain left out at a time or, with one domain, one fold. The order is a list of the
            columns of ``features.X`` that hold each feature; features whose risk exceeds their gain
            are not in it.
        """
        features = self.result.features
        columns = [features.columns_of([f]) for f in range(features.n_features)]
        out = []
        for k in np.unique(self.labels):
            order, scores = self.order(left_out=k)
            order = order[: max(1, self.harmless(scores))]
            train, test = np.flatnonzero(self.labels != k), np.flatnonzero(self.labels == k)
            out.append((train, test, [columns[f] for f in order]))
        return out
