"""Every feature in turn as the treatment, by plain double machine learning."""

import numpy as np
import pandas as pd
from sklearn import config_context

from ddml_fs import CausalFeatureSelector
from ddml_fs.nuisances import Ridge
from experiments.baselines.selectors.base import ScoreSelector
from experiments.baselines.selectors.scikit import FTest


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
            nuisance=Ridge(shrinkage=self.shrinkage),
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
    n_treatments : int, optional
        Only so many features, the best of the F-test, are analysed, with all others as
        controls; those left follow in the F-test's order. One feature takes two seconds with
        2000 reviews of 400 words. All unless given.
    random_state : int or None, default=None
    """

    def __init__(self, n_features_to_select=50, n_treatments=None, random_state=None):
        super().__init__(n_features_to_select)
        self.n_treatments = n_treatments
        self.random_state = random_state

    def _score(self, X, y):
        # Imported here: EconML takes seconds to import, and nothing else needs it.
        from econml.solutions.causal_analysis import CausalAnalysis as EconML

        first = FTest().fit(X, y)
        order = first.order()[: np.count_nonzero(np.ptp(X, axis=0))]  # those that vary
        n_treatments = min(self.n_treatments or len(order), len(order))
        analysis = EconML(
            list(range(n_treatments)),
            [],
            heterogeneity_inds=[[]] * n_treatments,
            classification=True,
            nuisance_models="linear",
            n_jobs=1,
            random_state=self.random_state,
            skip_cat_limit_checks=True,
        )
        with config_context(enable_metadata_routing=False):  # EconML's parts do not know of it
            # EconML indexes names by lists, which names that pyarrow holds refuse.
            names = pd.Index([str(j) for j in range(len(order))], dtype=object)
            analysis.fit(pd.DataFrame(X[:, order], columns=names), y)
        effects = analysis.global_causal_effect()
        scores = first.scores_ / (1 + first.scores_.max()) - 1  # all below any |t|
        scores[order[effects.index.astype(int)]] = effects["zstat"].abs()
        return scores
