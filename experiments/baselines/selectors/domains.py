"""What selectors that know of domains have in common."""

import numpy as np

from experiments.baselines.selectors.base import ScoreSelector


class DomainSelector(ScoreSelector):
    """A selector whose ``fit`` takes the domain of each row; ``_score`` finds it in ``_domain``."""

    def fit(self, X, y, sample_domain=None):
        """Score the features.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Two labels.
        sample_domain : array of shape (n_samples,), optional
            The domain of each row; one domain unless given.
        """
        self._domain = np.zeros(len(y)) if sample_domain is None else np.asarray(sample_domain)
        return super().fit(X, y)
