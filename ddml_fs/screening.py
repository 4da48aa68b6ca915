"""Screens: only the best features are swept, and the others follow in the order of the screen."""

from dataclasses import dataclass, replace

import numpy as np

from ddml_fs.evidence import joined
from ddml_fs.features import Features
from ddml_fs.nuisances import Additive, Ridge
from ddml_fs.ranking import Ranker
from ddml_fs.sweep import sweep


@dataclass(frozen=True, eq=False)
class Screened:
    """What a screen did.

    Attributes
    ----------
    swept : int array
        The features that were swept.
    rest : int array
        The features that were not, in the order of the screen.
    """

    swept: np.ndarray
    rest: np.ndarray

    def order(self, order, scores):
        """Order and scores of all features, from those of the features that were swept."""
        every = np.empty(len(self.swept) + len(self.rest))
        every[self.swept] = scores[self.swept]
        every[self.rest] = min(scores[self.swept].min(initial=0.0), 0.0)
        return np.r_[order[np.isin(order, self.swept)], self.rest], every


def screened_sweep(given, nuisance, score, most, ranking, risk_aversion, **options):
    """A sweep over the best features of a ridge sweep; all features may be covariates.

    Parameters
    ----------
    given, nuisance, score, **options
        As in :func:`~ddml_fs.sweep.sweep`.
    most : int
        Number of features that are swept.
    ranking, risk_aversion
        As in :class:`~ddml_fs.ranking.Ranker`; they order the features of the ridge sweep.

    Returns
    -------
    result : SweepResult
        The others have the evidence of the ridge sweep, which is no test (df = 0).
    screened : Screened, or None
        None if there are no others.
    """
    if isinstance(nuisance, Ridge | Additive):
        raise ValueError(
            f"screen is for nuisances that are fitted feature by feature, or for sparse X with "
            f"ridge, got {nuisance!r}; leave it out."
        )
    if most >= given.features.n_features:
        return sweep(given, nuisance, score, **options), None
    quick = sweep(given, Ridge(), score, **options)
    bends = options["dose"] != "linear"
    order, _ = Ranker(quick, ranking, risk_aversion, bends, log_odds=score.label).order()
    screened = Screened(np.sort(order[:most]), order[most:])
    result = sweep(given, nuisance, score, **options, swept=screened.swept)
    pairs = zip(quick.evidence, result.evidence, strict=True)
    return replace(result, evidence=[put(*pair, screened.swept) for pair in pairs]), screened


def put(quick, found, swept):
    """Evidence on all features, with that on the ones that were swept in its place."""
    tables = {}
    for name in ("U", "I", "influence"):
        tables[name] = getattr(quick, name).copy()
        tables[name][:, swept] = getattr(found, name)
    for name, start in (("chi2", 0), ("df", 0), ("design", 1)):
        tables[name] = np.full_like(getattr(quick, name), start)
        tables[name][swept] = getattr(found, name)
    return replace(quick, **tables)


def part_of(evidence, features):
    """The evidence on some features."""
    return replace(
        evidence,
        U=evidence.U[:, features],
        I=evidence.I[:, features],
        influence=evidence.influence[:, :0],
        chi2=evidence.chi2[features],
        df=evidence.df[features],
        design=evidence.design[features],
    )


def joined_evidence(parts):
    """The evidence on all features of several parts, which have the same cells.

    Influences are left out: they are as large as a dense table of all rows.
    """
    return joined([replace(s, influence=s.influence[:, :0]) for s in parts])


def features_with_rest(features, n_columns, kept, rest, sd):
    """The distinct features of a whole table, from those of some of its columns.

    Parameters
    ----------
    features : Features
        Of the columns ``kept``, in units of their standard deviations.
    n_columns : int
        D.
    kept, rest : int arrays
        The columns that were kept, and others that vary.
    sd : array of shape (D,)
        Standard deviations.

    Returns
    -------
    features : Features
        Without rows; the features of ``kept`` come first.
    """
    F = features.n_features
    group, scale = np.full(n_columns, -1), np.where(sd > 0, sd, 1.0)
    group[kept] = features.group
    group[rest] = F + np.arange(len(rest))
    scale[kept] *= np.sign(features.scale)
    unit = sd[np.r_[kept[features.first], rest]]
    near = np.r_[features.near, F + np.arange(len(rest))]
    return Features.without_rows(unit, group, scale, near)
