"""# Job training: does it help those who take part?

The trained people were drawn at random from the participants of a study, so the effect on them is
known. The table also has 2490 people who were never in the study and who differ from the trained.
How close do we get with all of them?
"""

from ddml_fs import DDML
from ddml_fs.datasets import fetch_jobs
from ddml_fs.plotting import plot_overlap

data = fetch_jobs()
print(len(data.y), "people,", int(data.treatment.sum()), "trained")
print(f"truth, from the randomised part: {data.att:+.3f}")

# %%
# The plain difference of means has the wrong sign: the trained were much poorer to begin with.

trained = data.treatment == 1
print(f"difference of means: {data.y[trained].mean() - data.y[~trained].mean():+.3f}")

# %%
# `target="att"` asks for the effect on the treated. The default cross-fits networks, smooth
# regressions and boosting, and weighs them by their held-out predictions.

effect = DDML(target="att", random_state=0).fit(data.X, data.y, treatment=data.treatment)
effect.summary()

# %%
# The interval contains the truth. But read the verdict:

print(effect.verdict_)

# %%
# Most untrained people had almost no chance of being trained. The picture of the propensities
# shows it.

_ = plot_overlap(effect)

# %%
# For the effect on the treated this matters less than for the average effect, because untrained
# people who resemble no trained person have little weight. What was weighed how, and the held-out
# loss of each model:

print(effect.nuisance_weights_.round(2))
print(effect.nuisance_losses_.round(3))
