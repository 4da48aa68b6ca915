"""Make the pictures of the plots, docs/figures/plots/*.png: python docs/make_figures.py."""

import warnings
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib import pyplot as plt

from ddml_fs import DDML, plotting
from ddml_fs.audit import ShiftAudit
from ddml_fs.datasets import load_crashes, make_effect_data

FOLDER = Path(__file__).parent / "figures" / "plots"
DPI = 90


def save(name, ax):
    """Write the figure of the axes, and forget it."""
    ax.figure.savefig(FOLDER / f"{name}.png", dpi=DPI)
    plt.close(ax.figure)


def main():
    """Draw every plot once."""
    mpl.use("Agg")
    warnings.simplefilter("ignore")
    FOLDER.mkdir(parents=True, exist_ok=True)
    data = load_crashes()
    audit = ShiftAudit(random_state=0).fit(data.X, data.y, sample_domain=data.sample_domain)
    for name in ("effects", "effects_by_domain", "curve", "stability", "shift", "forecast"):
        save(name, getattr(plotting, f"plot_{name}")(audit))
    save("dose", plotting.plot_dose(audit, "AGE", data.X, data.y, data.sample_domain))
    for kind in ("binary", "continuous"):
        drawn = make_effect_data(kind, n_samples=3000, random_state=0)
        effect = DDML("mlp", random_state=0).fit(drawn.X, drawn.y, treatment=drawn.treatment)
        save(f"overlap_{kind}", plotting.plot_overlap(effect))
    save("roles", plotting.plot_roles(effect))
    drawn = make_effect_data("binary", n_samples=3000, random_state=0)
    X = pd.DataFrame(drawn.X).add_prefix("x")
    effect = DDML("smooth", random_state=0).fit(X, drawn.y, treatment=drawn.treatment)
    given = {"treatment": drawn.treatment}
    benchmarks = effect.benchmark(X, drawn.y, **given, columns=["x0", "x1"])
    save("sensitivity", plotting.plot_sensitivity(effect, benchmarks=benchmarks))
    save("groups", plotting.plot_groups(effect, X["x0"], n_bins=6))
    save("placebo", plotting.plot_placebo(effect, effect.placebo(X, drawn.y, **given)))


if __name__ == "__main__":
    main()
