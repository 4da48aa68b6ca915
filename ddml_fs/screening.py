"""Screens: only the best features are swept, and the others follow in the order of the screen."""

from dataclasses import dataclass, replace

import numpy as np

from ddml_fs.features import Features


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


def part_of(evidence, features):
    """The evidence on some features."""
    return replace(
        evidence,
        U=evidence.U[:, features],
        I=evidence.I[:, features],
        influence=evidence.influence[:, :0],
        chi2=evidence.chi2[features],
        df=evidence.df[features],
    )


def joined_evidence(parts):
    """The evidence on all features of several parts, which have the same cells.

    Influences are left out: they are as large as a dense table of all rows.
    """
    first = parts[0]
    return replace(
        first,
        U=np.hstack([s.U for s in parts]),
        I=np.hstack([s.I for s in parts]),
        influence=np.empty((len(first.influence), 0), np.float32),
        chi2=np.concatenate([s.chi2 for s in parts]),
        df=np.concatenate([s.df for s in parts]),
    )


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
    first = np.r_[kept[features.first], rest]
    return Features(
        X=np.empty((0, n_columns)),
        feature=np.arange(n_columns),
        Z=np.empty((0, len(first)), np.float32),
        own=np.arange(len(first)),
        binary=np.zeros(len(first), bool),
        unit=sd[first],
        group=group,
        scale=scale,
        near=np.r_[features.near, F + np.arange(len(rest))],
    )
