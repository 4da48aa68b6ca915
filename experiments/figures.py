"""How figures are kept."""

import matplotlib.pyplot as plt


def save(figure, folder, name):
    """As PNG and as SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in ("png", "svg"):
        figure.savefig(folder / f"{name}.{kind}", dpi=150, bbox_inches="tight")
    plt.close(figure)
