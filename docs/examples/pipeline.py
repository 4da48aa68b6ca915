"""# A pipeline and a grid search

The selector is a step of a scikit-learn pipeline, and its settings can be searched. The domains
travel with the rows by scikit-learn's metadata routing.
"""

import matplotlib.pyplot as plt
import pandas as pd
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ddml_fs import CausalFeatureSelector
from ddml_fs.datasets import make_domain_data

sklearn.set_config(enable_metadata_routing=True)

# %%
# Five source domains and one target. Eight columns cause the label, eight follow from it in a way
# that differs between domains, and eight are noise.

data = make_domain_data(n_samples=200, n_causal=8, n_spurious=8, n_noise=8, random_state=1)
source = data.sample_domain > 0
X, y, domain = data.X[source], data.y[source], data.sample_domain[source]
print(X.shape, "rows and columns from", len(set(domain)), "domains")

# %%
# Cross-validation has to ask the question that matters: how well does the model do in a domain it
# has not seen? So one domain is left out at a time. `groups` tells the splitter, `sample_domain`
# the selector.

pipeline = make_pipeline(
    CausalFeatureSelector(random_state=0), StandardScaler(), LogisticRegression()
)
grid = {
    "causalfeatureselector__n_features_to_select": [4, 8, 24],
    "causalfeatureselector__risk_aversion": [0.0, 2.5],
}
search = GridSearchCV(pipeline, grid, cv=LeaveOneGroupOut(), scoring="roc_auc")
search.fit(X, y, sample_domain=domain, groups=domain)
print(search.best_params_)

# %%
# With 24 columns all are kept, and both settings give the same. With fewer columns, the selector
# that avoids risk does better, and eight columns are as good as all.

results = pd.DataFrame(search.cv_results_)
results.columns = [name.replace("param_causalfeatureselector__", "") for name in results]
table = results.pivot(
    index="n_features_to_select", columns="risk_aversion", values="mean_test_score"
)
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
table.plot(ax=ax, marker="o")
ax.set(xlabel="number of columns", ylabel="AUC in a left-out domain", xticks=table.index)
print(table)

# %%
# The target has been seen by nothing so far.

print(f"AUC in the target: {search.score(data.X[~source], data.y[~source]):.3f}")
