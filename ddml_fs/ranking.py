"""Rankings: from effects to an order of the features."""

from functools import cached_property, partial

import numpy as np

from ddml_fs.effects_table import effects_table
from ddml_fs.elimination import MOST, THREADED, Elimination, eliminate, mean_order
from ddml_fs.encoding import splits_of_domains
from ddml_fs.engine.devices import MOST_HELD, in_threads, n_threads
from ddml_fs.engine.threads import beside
from ddml_fs.features import ROOMY
from ddml_fs.gain_models import RowModel, centred_blocks, products, without_near_copies
from ddml_fs.hinges import bent_columns
from ddml_fs.progress import Progress
from ddml_fs.redundancy import MOST as MOST_REDUNDANT
from ddml_fs.redundancy import greedy_order, squared_correlations
from ddml_fs.sweep import SweepResult

RANKINGS = ("gain", "effect", "tstat", "stability", "redundancy")


def feature_scores(ranking, table):
    """One score per feature; larger is better.

    Parameters
    ----------
    ranking : str or callable
        "effect": |θ| of one standard deviation. "tstat": |θ| / stderr. "stability": the
        probability that the effect in a new domain has the sign of the mean. "redundancy": |z|, the
        mean effect divided by its standard deviation in a new domain. A callable takes the table
        and returns the scores.
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
    names = {"effect": "std_effect", "redundancy": "z"}
    return table[names.get(ranking, ranking)].abs().to_numpy()


def informative_rows(target, domain):
    """Rows of domains that say something about effects on labels: those with several classes, (N,).

    All rows, if no domain has several classes, and for numbers.
    """
    if target.classes is None:
        return np.ones(len(domain), bool)
    outcomes = np.column_stack(target.outcomes)
    several = [d for d in np.unique(domain) if np.ptp(outcomes[domain == d], axis=0).any()]
    rows = np.isin(domain, several)
    return rows if rows.any() else ~rows


def ranked_early(given, ranking, risk_aversion, bends, score):
    """A context in which a sweep runs, and beside it an elimination of features that can be early.

    With labels it needs no evidence, and with several workers it shares their time. The table must
    be narrow enough for one thread, and small enough for a copy of it to be held meanwhile.

    Parameters
    ----------
    given : SweepInput
    ranking, risk_aversion, bends
        As in :class:`Ranker`.
    score : ResidualScore

    Yields
    ------
    orders : callable
        Gives the ``orders`` of the ranker that are known by then.
    """
    Z = given.features.Z
    fold = np.zeros(len(Z), int)  # matters to orders without a part of the rows alone
    result = SweepResult(**vars(given), fold=fold, evidence=[], bent=fold[:0])
    ranker = Ranker(result, ranking, risk_aversion, bends)
    small = Z.shape[1] <= THREADED and 8 * Z.size <= MOST_HELD
    early = small and score.label and ranking == "gain" and n_threads() > 1
    return beside(ranker.begin, early)


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
    log_odds : bool
        Whether gains of labels are those of a logistic regression, or of least squares.
    orders : dict, optional
        Orders that are known, see :func:`ranked_early`.
    """

    def __init__(
        self, result, ranking, risk_aversion, bends=True, screened=None, log_odds=True, orders=None
    ):
        self.result, self.ranking, self.risk_aversion = result, ranking, risk_aversion
        self.screened = screened
        self.part = "domain" if splits_of_domains(result.target, result.domain) else "fold"
        self.labels = getattr(result, self.part)
        self.informative = informative_rows(result.target, result.domain)
        self.log_odds = log_odds and result.target.classes is not None
        self.bends = bends
        self.orders = orders or {}  # Eliminations by the part that is left out

    @cached_property
    def model(self):
        """The regression whose features are eliminated, to rank them by their gains."""
        return without_near_copies(self._model(), self.result.features.near)

    def _model(self):
        """The same with all near copies."""
        features, target, domain = self.result.features, self.result.target, self.result.domain
        hinges, column = bent_columns(features, ROOMY if self.bends else 0.0)
        own = np.r_[features.own, features.own[column]]
        bent = np.arange(len(own)) >= len(features.own)
        order = np.argsort(own, kind="stable")
        Z = np.column_stack([features.Z, hinges])[:, order] if len(column) else features.Z
        blocks = own[order], bent[order], features.n_features
        outcomes = np.column_stack(target.outcomes) / target.unit
        weight = self.result.weight
        if not self.log_odds:
            several = domain.max() > 0  # then folds cannot be left out
            part = domain if several else self.labels
            return products(Z, outcomes, part, *blocks, domains=several, weight=weight)
        rows = self.informative & (weight > 0)
        rows = slice(None) if rows.all() else rows
        Z, own, bent = centred_blocks(Z[rows], *blocks, domain[rows], weight[rows])
        parts = outcomes[rows], self.labels[rows], domain[rows], weight[rows]
        return RowModel(Z, *parts, own, bent, features.n_features)

    @property
    def left_out(self):
        """The domains without which features are ordered too, for the mean of all these orders.

        None with fewer than three domains, as risk is not known from one domain alone; and none
        with very many columns, for the sake of time and memory.
        """
        several = self.ranking == "gain" and self.part == "domain" and self.model.n_domains > 2
        return self.model.parts if several and len(self.model.own) <= MOST else []

    @property
    def moving(self):
        """Whether the effects of more features move between domains than chance explains."""
        return self.ranking == "gain" and self._order(None).moving

    def order(self, left_out=None, progress=None):
        """The features, best first, and their scores, (F,).

        With several domains, an order that one of them decides does not hold in a new one. So the
        order of all rows is the mean of that by all domains and those without each of them. Scores
        are those by all domains.

        Parameters
        ----------
        left_out : int, optional
            A part of the rows whose evidence is not used.
        progress : Progress, optional
            Told of every feature that is ranked by its gain.
        """
        parts = [None, *self.left_out] if left_out is None else [left_out]
        (order, scores, _), *others = self._orders(parts, progress)
        if others:
            order = mean_order([order, *(other.order for other in others)])
        return (order, scores) if self.screened is None else self.screened.order(order, scores)

    def _orders(self, parts, progress):
        """Yield the Elimination without each of some parts; None: of all rows."""
        of_rows = len(parts) > 1 and self.ranking == "gain" and isinstance(self.model, RowModel)
        held = self.model.Z.nbytes if of_rows else 0
        return in_threads(partial(self._order, progress=progress), parts, held)

    def _order(self, left_out, progress=None):
        """The Elimination of all features, or their order by effects, which has no risky ones."""
        if left_out not in self.orders:
            ordered = self._eliminate if self.ranking == "gain" else self._order_by_effects
            self.orders[left_out] = ordered(left_out, progress)
        return self.orders[left_out]

    def begin(self, progress):
        """The orders without evidence: that of all rows."""
        self._order(None, progress)
        return self.orders

    def _eliminate(self, left_out, progress):
        model = self.model
        if left_out is not None and (self.log_odds or model.domains == (self.part == "domain")):
            model = model.without(left_out)
        return eliminate(model, risk_aversion=self.risk_aversion, progress=progress)

    def _order_by_effects(self, left_out, progress):
        result = self.result
        evidence = result.evidence
        names = np.unique(result.domain)
        if left_out is not None:
            evidence = [s.without(self.part, left_out) for s in evidence]
            names = np.delete(names, left_out) if self.part == "domain" else names
        table, _ = effects_table(evidence, result, names)
        scores = feature_scores(self.ranking, table)
        order = np.argsort(-scores, kind="stable")
        if self.ranking == "redundancy":
            best, rest = np.sort(order[:MOST_REDUNDANT]), order[MOST_REDUNDANT:]
            shared, n_rows = self._shared(best, left_out)
            scores = scores / np.sqrt(n_rows)  # on the scale of a partial correlation
            order = np.r_[best[greedy_order(scores[best], shared)], rest]
        return Elimination(order, scores, np.zeros(len(scores), bool))

    def _shared(self, features, left_out):
        """Squared correlations between features (F', F'), and the number of rows."""
        own = self.result.features.own
        at = np.flatnonzero(np.isin(own, features))
        rows = np.ones(len(self.labels), bool) if left_out is None else self.labels != left_out
        Z = self.result.features.Z[np.ix_(rows, at)].astype(np.float64)
        Z -= Z.mean(0)
        return squared_correlations(Z.T @ Z, np.searchsorted(features, own[at])), len(Z)

    def splits(self, progress=None):
        """Training rows, test rows, and the order of the features on the training rows.

        Parameters
        ----------
        progress : Progress, optional

        Returns
        -------
        splits : list of triples
            One per left-out domain or, with one domain, per left-out fold. The order is a list that
            has the columns of ``features.X`` of each feature; those of risky features come last.
        harmless : int
            The smallest number of features, over all orders, whose risk does not exceed their gain.
        """
        progress = progress or Progress()
        features = self.result.features
        columns = [features.columns_of([f]) for f in range(features.n_features)]
        out, harmless = [], features.n_features
        parts = np.unique(self.labels)
        progress.enter(f"ranking without each {self.part}")
        progress.start(len(parts) * features.n_features, "features")
        for i, (k, _) in enumerate(zip(parts, self._orders(parts, progress), strict=True)):
            order, _ = self.order(left_out=k)
            progress.reach((i + 1) * features.n_features)
            risky = self.orders[k].risky
            order = order[np.argsort(risky[order], kind="stable")]
            harmless = min(harmless, max(1, int((~risky).sum())))
            train = np.flatnonzero((self.labels != k) & self.informative)
            test = np.flatnonzero(self.labels == k)
            out.append((train, test, [columns[f] for f in order]))
        return out, harmless
