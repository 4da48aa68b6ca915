"""Accuracy against the number of words, and critical differences of ranks."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import scikit_posthocs as posthocs

from experiments.amazon.selectors import OURS
from experiments.amazon.tables import by_task, friedman
from experiments.figures import save

COLOURS = {"DDML": "#c0392b", "DDML-MLP": "#e67e22", "DDML-RF": "#b7950b", "DDML-ridge": "#8e44ad"}
COLOURS |= {"mRMR": "#2471a3", "ridge-logistic": "#1e8449", "F-test": "#555555"}


def curves(rows, numbers, title, folder, name):
    """Mean accuracy by number of words: ours and three rivals in colour, the others grey."""
    table = by_task(rows)["mean"]
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True)
    for axis, classifier in zip(axes, ("logistic", "naive Bayes"), strict=True):
        for selector in table.index.unique("selector"):
            if selector == "all features":
                axis.axhline(
                    table[selector, classifier, "all"], ls="--", c="black", lw=1, label="all words"
                )
                continue
            values = [table[selector, classifier, str(k)] for k in numbers]
            colour = COLOURS.get(selector, "#cccccc")
            front = selector in COLOURS
            axis.plot(
                numbers,
                values,
                "o-" if selector in OURS else ".-",
                color=colour,
                lw=2 if front else 1,
                zorder=3 if front else 1,
                label=selector if front else None,
            )
        axis.set(xscale="log", xlabel="words kept", title=classifier)
        axis.set_xticks(numbers, labels=numbers, minor=False)
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("mean accuracy on unseen domains")
    low = min(table[s, c, str(numbers[0])] for s in OURS for c in ("logistic", "naive Bayes"))
    axes[0].set_ylim(bottom=low - 0.05)
    axes[1].legend(fontsize=8, loc="lower right")
    figure.suptitle(f"{title} (grey: the other selectors)")
    save(figure, folder, name)


def critical_differences(rows, classifier, k, folder, name):
    """Average ranks over the tasks; bars join selectors that Nemenyi's test does not tell apart."""
    ranks, pvalue, critical, accuracy = friedman(rows, classifier, k)
    alike = posthocs.posthoc_nemenyi_friedman(accuracy.to_numpy())
    alike.index = alike.columns = accuracy.columns
    figure, axis = plt.subplots(figsize=(10, 5))
    posthocs.critical_difference_diagram(
        ranks, alike, ax=axis, label_props={"fontsize": 9}, elbow_props={"color": "#888888"}
    )
    axis.set_title(
        f"{classifier}, K = {k}: average rank, lower is better "
        f"(Friedman p = {pvalue:.1g}, critical difference {critical:.2f})",
        fontsize=10,
    )
    save(figure, folder, name)
