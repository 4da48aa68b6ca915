"""What is lost, or gained, with fewer columns."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from experiments.figures import save
from experiments.shifts.classifiers import MAIN
from experiments.shifts.selectors import DEFAULT, OURS, SHARES
from experiments.shifts.tables import summary

RED, OTHERS = "#c0392b", ("#e67e22", "#8e44ad", "#d4ac0d", "#a04000", "#f1948a")
N_NAMED = 4  # rivals in colour, the best ones
BLUES = ("#1b4f72", "#2e86c1", "#117864", "#45b39d")


def styles(table):
    """How each selector is drawn, best first: ours warm and thick, the best rivals cold."""
    own = [name for name in table.index if name in OURS]
    rivals = [name for name in table.index if name not in OURS]
    drawn = dict(zip((n for n in own if n != DEFAULT), OTHERS, strict=False))
    found = {name: {"color": drawn.get(name, RED), "lw": 1.8, "marker": "o"} for name in own}
    if DEFAULT in found:
        found[DEFAULT] |= {"lw": 3.2, "ms": 8}
    for name, colour in zip(rivals[:N_NAMED], BLUES, strict=False):
        found[name] = {"color": colour, "lw": 1.2, "marker": "s", "ms": 4}
    markers = iter("v^<>DPX*ph8d+x12")
    for name in rivals[N_NAMED:]:
        found[name] = {"color": "#aaaaaa", "lw": 0.8, "marker": next(markers, "."), "ms": 5}
    return found


def curves(rows, folder, name="curves"):
    """Mean gain over all tables against the share of columns, a line per selector."""
    table = summary(rows)
    figure, axes = plt.subplots(1, 2, figsize=(11, 5), sharey=True)
    shares = [100 * share for share in SHARES.values()]
    for axis, classifier in zip(axes, MAIN, strict=True):
        for selector, style in styles(table).items():
            values = [table.loc[selector, f"{classifier} {share}"] for share in SHARES]
            front = 4 if selector == DEFAULT else 3 if selector in OURS else 2
            axis.plot([*shares, 100], [*values, 0], label=selector, zorder=front, **style)
        axis.axhline(0, color="black", lw=1, ls="--")
        axis.set(xscale="log", xlabel="columns kept, %", title=classifier)
        axis.set_xticks([*shares, 100], labels=[*(f"{s:.0f}" for s in shares), "100"])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("AUC on the unseen domain, points\nabove that of all columns")
    axes[1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1.02, 0.5))
    n = rows["table"].nunique()
    figure.suptitle(f"Mean of {n} tables, every domain in turn unseen")
    save(figure, folder, name)
