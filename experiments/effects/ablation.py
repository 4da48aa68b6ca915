"""Which parts of the method earn their place: one setting changed at a time, on tuning seeds."""

import datetime
from pathlib import Path

from ddml_fs import DDML
from experiments.effects.runs import run_all
from experiments.effects.synthetic import summarise

RESULTS = Path(__file__).parent / "results"
SETTINGS = [(kind, d) for kind in ("binary", "continuous") for d in (20, 100)]

BASE = {"lambda_dis": 0.0, "lambda_ort": 0.0}
VARIANTS = {
    "no penalty": {},
    "HSIC 0.1": {"lambda_dis": 0.1},
    "HSIC 1": {"lambda_dis": 1.0},
    "orthogonality as printed, 0.1": {"lambda_ort": 0.1},
    "orthogonality as printed, 1": {"lambda_ort": 1.0},
    "θ from the other half, 0.1": {"lambda_ort": 0.1, "orthogonality": "split"},
    "θ from the other half, 1": {"lambda_ort": 1.0, "orthogonality": "split"},
    "zero moments, 0.1": {"lambda_ort": 0.1, "orthogonality": "moments"},
    "zero moments, 1": {"lambda_ort": 1.0, "orthogonality": "moments"},
    "HSIC 0.1 and zero moments 1": {
        "lambda_dis": 0.1,
        "lambda_ort": 1.0,
        "orthogonality": "moments",
    },
    "no gates": {"gates": False},
    "outcome head as printed": {"outcome": "direct"},
    "outcome head as printed, no gates": {"outcome": "direct", "gates": False},
}


def study(seeds, n_jobs):
    """Run the ablation and write ``results/ablation.csv`` and ``.md``."""
    methods = {
        name: lambda seed, change=change: DDML(
            random_state=seed, device="cpu", **{**BASE, **change}
        )
        for name, change in VARIANTS.items()
    }
    runs = run_all(methods, SETTINGS, seeds, n_jobs)
    summary = summarise(runs)
    summary.to_csv(RESULTS / "ablation.csv", index=False, float_format="%.6g")
    summary["setting"] = summary["kind"] + " " + summary["d"].astype(str)
    wide = summary.pivot(index="method", columns="setting", values="mae")
    wide = wide.loc[list(VARIANTS)]
    wide["mean"] = wide.mean(axis=1)
    text = [
        "# What changes the error",
        "",
        f"MAE over seeds {seeds[0]} to {seeds[-1]} (tuning seeds), one setting changed at a time.",
        f"An entry at the limit has a standard error of about {0.022 / len(seeds) ** 0.5:.3f};",
        "the rows are paired, so differences between them are known better than that. Made by",
        f"`python -m experiments.effects ablation --n-seeds {len(seeds)}`",
        f"on {datetime.date.today()}.",
        "",
        wide.to_markdown(floatfmt=".4f"),
        "",
    ]
    (RESULTS / "ablation.md").write_text("\n".join(text))
    return wide
