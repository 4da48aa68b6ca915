"""Every feature in turn as the treatment, by plain double machine learning."""

import numpy as np
import pandas as pd
from sklearn import config_context

from ddml_fs import CausalFeatureSelector
from ddml_fs.selector import sweep_estimator
from experiments.baselines.selectors.base import ScoreSelector


class RidgeDML(ScoreSelector):
    """|t| of the partially linear effect, with ridge nuisances in closed form.

    Parameters
    ----------
    n_features_to_select : int, default=50
    shrinkage : float, default=1.0
        The penalty is this times features over samples: best for prediction where a feature's
        share of the signal is as large as the noise.
    random_state : int or None, default=None
        Seed of the folds.
    """

    def __init__(self, n_features_to_select=50, shrinkage=1.0, random_state=None):
        super().__init__(n_features_to_select)
        self.shrinkage = shrinkage
        self.random_state = random_state

    def _score(self, X, y):
        sweep = CausalFeatureSelector(
            1.0,
            estimator=sweep_estimator("ridge", shrinkage=self.shrinkage),
            ranking="tstat",
            scale="mean",
            random_state=self.random_state,
        )
        return sweep.fit(X, y).scores_


class CausalAnalysis(ScoreSelector):
    """|t| of EconML's ``CausalAnalysis``, one feature after another.

    Parameters
    ----------
    n_features_to_select : int, default=50
    n_first : int, optional
        Only the first so many features that vary; half a minute each for 2000 reviews of 400
        words. The rest come last.
    random_state : int or None, default=None
    """

    def __init__(self, n_features_to_select=50, n_first=None, random_state=None):
        super().__init__(n_features_to_select)
        self.n_first = n_first
        self.random_state = random_state

    def _score(self, X, y):
        # Imported here: EconML takes seconds to import, and nothing else needs it.
        from econml.solutions.causal_analysis import CausalAnalysis as EconML

        varies = np.flatnonzero(np.ptp(X, axis=0) > 0)
        n_first = min(self.n_first or len(varies), len(varies))
        analysis = EconML(
            list(range(n_first)),
            [],
            heterogeneity_inds=[[]] * n_first,
            classification=True,
            nuisance_models="linear",
            n_jobs=1,
            random_state=self.random_state,
            skip_cat_limit_checks=True,
        )
        with config_context(enable_metadata_routing=False):  # EconML's parts do not know of it
            analysis.fit(pd.DataFrame(X[:, varies]).rename(columns=str), y)
        scores = np.zeros(X.shape[1])
        effects = analysis.global_causal_effect()
        scores[varies[effects.index.astype(int)]] = effects["zstat"].abs()
        return scores
