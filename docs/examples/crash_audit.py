"""# An audit of crash records

Who dies in a fatal crash? The table has columns from before the crash (age, sex, seat) and from
after it (alcohol tests, the way to hospital), and what is done after a crash differs between
regions of the country.
"""

import numpy as np

from ddml_fs import ShiftAudit
from ddml_fs.datasets import load_crashes
from ddml_fs.plotting import plot_effects_by_domain, plot_forecast, plot_shift

data = load_crashes()
X, y = data.X, data.y
region = np.array(data.domain_names)[data.sample_domain - 1]
print(X.shape, f"{y.mean():.1%} died")

# %%
# One call does the audit. No causal graph is needed, and text columns are read as they are.

audit = ShiftAudit(random_state=0).fit(X, y, sample_domain=region)
audit.features_[["effect", "tau", "instability", "verdict"]].round(3).head(12)

# %%
# Two columns predict the label almost perfectly. They are recorded for the dead only, so they are
# leaks, and everything else was computed without them:

for feature, row in audit.leaks_.iterrows():
    print(f"{feature}: {row['leak']}. {row['evidence']}")

# %%
# Next come the tests for alcohol and drugs: their effects move from region to region.

_ = plot_shift(audit)

# %%
# Three of them in detail, and age, whose effect is the same everywhere:

moving = audit.features_.index[audit.features_["verdict"] == "effect moves"]
_ = plot_effects_by_domain(audit, features=[*moving[:3], "AGE"])

# %%
# What to expect in a region that is not in the table, with all columns, the selected ones and the
# stable ones:

_ = plot_forecast(audit)

# %%
# The audit in words:

for sentence in audit.verdicts_:
    print("-", sentence)
