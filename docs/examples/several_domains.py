"""# Several domains

Columns that follow from the label predict well, until the domain changes. Several domains show
which ones they are.
"""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ddml_fs import CausalFeatureSelector
from ddml_fs.datasets import make_domain_data
from ddml_fs.plotting import plot_curve, plot_effects_by_domain, plot_stability

data = make_domain_data(n_samples=500, n_causal=8, n_spurious=8, n_noise=14, random_state=0)
roles = np.asarray(data.roles)
print({str(role): int((roles == role).sum()) for role in np.unique(roles)})

# %%
# Rows with a negative domain are targets. The selector does not look at them.

selector = CausalFeatureSelector(random_state=0)
selector.fit(data.X, data.y, sample_domain=data.sample_domain)
table = selector.effects_.assign(role=roles).sort_values("rank")
table[["role", "effect", "stderr", "tau", "instability", "rank", "selected"]].head(12)

# %%
# The causes come first. The last ones in the order are consequences: their effects are large, and
# differ between domains.

table[["role", "effect", "stderr", "tau", "instability", "rank", "selected"]].tail(5)

# %%
# Two causes and two consequences, with the effect in every domain:

shown = [*table.index[:2], *table.index[-2:]]
_ = plot_effects_by_domain(selector, features=shown)

# %%
# All features at once: the size of the effect, and how much it varies.

_ = plot_stability(selector)

# %%
# How many to keep. The curve shows the AUC in left-out source domains.

_ = plot_curve(selector)

# %%
# And in the target, with logistic regression:

source = data.sample_domain > 0
for name, use in {"all": slice(None), "selected": selector.get_support()}.items():
    model = make_pipeline(StandardScaler(), LogisticRegression())
    model.fit(data.X[source][:, use], data.y[source])
    accuracy = model.score(data.X[~source][:, use], data.y[~source])
    print(f"{name:9} columns: accuracy {accuracy:.3f} in the target")
