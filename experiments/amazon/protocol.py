"""Who sees what: sources are for learning, targets for the accuracy in the table and nothing else.

A method is handed a :class:`Source`, which holds no row of a target. The order of the features,
their number and the classifier are settled before the first row of a target is scored.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import StratifiedKFold

N_FOLDS = 4  # of the cross-validation within one source


@dataclass(frozen=True)
class Source:
    """All that a method may learn from.

    Attributes
    ----------
    name : str
    X : array of shape (N, D)
    y : array of shape (N,)
    domain : array of shape (N,), or None
        The domain of each row where there are several.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    domain: np.ndarray | None = None

    def rows(self, index):
        """The source with these rows alone."""
        domain = None if self.domain is None else self.domain[index]
        return Source(self.name, self.X[index], self.y[index], domain)

    def splits(self):
        """Training and test rows within the source: folds, or one domain left out at a time."""
        if self.domain is None:
            folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
            return list(folds.split(self.X, self.y))
        return [
            (np.flatnonzero(self.domain != d), np.flatnonzero(self.domain == d))
            for d in np.unique(self.domain)
        ]


@dataclass(frozen=True)
class Task:
    """A source, and the targets on which what was learned is tried.

    Attributes
    ----------
    source : Source
    targets : dict
        From a domain's name to its rows, X and y.
    """

    source: Source
    targets: dict


def single_source(data):
    """One domain to learn from, tried on each of the others.

    Parameters
    ----------
    data : dict
        From a domain's name to X and y.

    Returns
    -------
    tasks : list of Task
    """
    return [
        Task(Source(name, *data[name]), {d: data[d] for d in data if d != name}) for name in data
    ]


def leave_one_out(data):
    """All domains but one to learn from, tried on that one; as for :func:`single_source`."""
    tasks = []
    for name in data:
        others = [d for d in data if d != name]
        X, y = (np.concatenate([data[d][i] for d in others]) for i in (0, 1))
        domain = np.repeat(np.arange(len(others)), [len(data[d][1]) for d in others])
        tasks.append(Task(Source(f"without {name}", X, y, domain), {name: data[name]}))
    return tasks


PROTOCOLS = {"single source": single_source, "leave one domain out": leave_one_out}


def by_domain(bunch, n_rows=None, n_words=None):
    """A fetched data set as a dict of domains, or a part of it: the first rows of either label.

    Parameters
    ----------
    bunch : Bunch
        Of :func:`ddml_fs.datasets.fetch_amazon_reviews` or of its wide sister.
    n_rows, n_words : int, optional
    """
    data = {}
    X = bunch.X.toarray() if hasattr(bunch.X, "toarray") else bunch.X
    for number, name in enumerate(bunch.domain_names, start=1):
        rows = np.flatnonzero(bunch.sample_domain == number)
        if n_rows is not None:
            labels = bunch.y[rows]
            rows = np.concatenate([rows[labels == c][: n_rows // 2] for c in (0, 1)])
        data[name] = X[rows][:, :n_words], bunch.y[rows]
    return data
