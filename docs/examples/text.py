"""# Words of reviews

Which words say that a review is positive, in books as well as in kitchenware? Each word is a
column that is 1 where the word occurs.
"""

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from ddml_fs import CausalFeatureSelector, EffectClassifier
from ddml_fs.datasets import fetch_multi_domain_sentiment
from ddml_fs.plotting import plot_effects

data = fetch_multi_domain_sentiment(n_words=200)
shop = np.array(data.domain_names)[data.sample_domain - 1]
words = pd.DataFrame(data.X.toarray(), columns=data.feature_names)
print(words.shape, pd.Series(shop).value_counts().to_dict())

# %%
# We learn from three shops and try the result on the fourth, kitchenware. For text of your own,
# `CountVectorizer(binary=True)` makes such columns.

source = shop != "kitchen"
selector = CausalFeatureSelector(60, random_state=0)
selector.fit(words[source], data.y[source], sample_domain=shop[source])
_ = plot_effects(selector, n_features=15)

# %%
# The effects are on the log-odds of a positive review, each given all other words. Some words
# differ between shops:

moving = selector.effects_.sort_values("instability", ascending=False)
moving = moving[moving["qvalue"] < 0.1]
moving.filter(like="effect[").assign(instability=moving["instability"]).head(5)

# %%
# Accuracy on the reviews of kitchenware:


def accuracy(model, columns):
    model.fit(words[source][columns], data.y[source])
    return model.score(words[~source][columns], data.y[~source])


chosen = words.columns[selector.get_support()]
print(f"60 words, logistic regression:  {accuracy(LogisticRegression(), chosen):.3f}")
print(f"200 words, logistic regression: {accuracy(LogisticRegression(), words.columns):.3f}")
model = EffectClassifier().fit(words[source], data.y[source], sample_domain=shop[source])
print(f"200 words, EffectClassifier:    {model.score(words[~source], data.y[~source]):.3f}")
