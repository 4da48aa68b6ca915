"""# An effect that bends

Risk is often lowest in the middle: too little sleep is bad, and so is too much. A straight line
sees no effect at all there.
"""

import numpy as np
import pandas as pd
from scipy.special import expit

from ddml_fs import CausalFeatureSelector
from ddml_fs.plotting import plot_dose

rng = np.random.default_rng(0)
n = 3000
table = pd.DataFrame(
    {
        "sleep": rng.normal(7, 1.2, n),
        "age": rng.uniform(20, 80, n),
        "coffee": rng.poisson(2, n).astype(float),
    }
)
log_odds = -1.5 + 0.5 * (table["sleep"] - 7) ** 2 + 0.02 * (table["age"] - 50)
ill = rng.random(n) < expit(log_odds)
print(f"{ill.mean():.0%} are ill")

# %%
# Tested as a line, sleep has no effect. Tested as a curve (a line with bends at the quartiles),
# it has the clearest effect of all. `df` is the number of columns that are tested together.

columns = ["effect", "stderr", "pvalue", "df", "rank"]
for dose in ("linear", "auto"):
    selector = CausalFeatureSelector(2, dose=dose, random_state=0).fit(table, ill)
    print(f'dose="{dose}"')
    print(selector.effects_[columns], "\n")

# %%
# The curve itself, relative to seven hours (the median):

_ = plot_dose(selector, "sleep", table, ill)
