"""Time and memory of one effect estimate, against DoubleML: ``python -m benchmarks.effect``.

Every measurement is a process of its own, so that peak memory is the method's. Seconds are those
of ``fit`` after a small warm-up fit; methods take turns, and the fastest of the repeats counts, so
that other work on the machine disturbs all alike.
"""

import json
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from rich.progress import track
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ddml_fs import DDML
from ddml_fs.datasets import make_effect_data
from ddml_fs.nuisances import Network
from experiments.baselines.effects.boosting import AIPWBoosting, DMLBoosting
from experiments.baselines.effects.dml import partially_linear_dml

RESULTS = Path(__file__).parent / "results"


class DMLNetwork:
    """DoubleML with scikit-learn's MLP for both nuisances."""

    def fit(self, X, y, *, treatment):
        """Fit."""
        options = {"hidden_layer_sizes": (64, 64), "early_stopping": True, "random_state": 0}
        binary = set(treatment) == {0.0, 1.0}
        kind = MLPClassifier if binary else MLPRegressor
        models = [make_pipeline(StandardScaler(), m(**options)) for m in (MLPRegressor, kind)]
        self.effect_ = float(partially_linear_dml(X, y, treatment, *models, random_state=0).coef[0])
        return self


def network(**settings):
    """DDML with the pure network."""
    return lambda: DDML(Network(**settings), score="partially_linear", random_state=0)


METHODS = {
    "DDML, network, all losses": network(lambda_dis=0.1, lambda_ort=0.1),
    "DDML, network": network(),
    "DDML, network, HSIC only": network(lambda_dis=0.1, lambda_ort=0.0),
    "DDML, network, no penalty": network(lambda_dis=0.0, lambda_ort=0.0),
    "DDML, default (stacked)": lambda: DDML(score="partially_linear", random_state=0),
    "DoubleML, boosting": lambda: DMLBoosting(random_state=0),
    "DoubleML, MLP": DMLNetwork,
}
# The interactive score, for the binary treatment alone.
INTERACTIVE = {
    "DDML, interactive, network": lambda: DDML("mlp", random_state=0),
    "DDML, interactive, default (stacked)": lambda: DDML(random_state=0),
    "DoubleML, interactive, boosting": lambda: AIPWBoosting(random_state=0),
}


def measure(name, kind, n_samples, d):
    """Seconds, peak memory and error of one fit in this process."""
    warnings.simplefilter("ignore")
    small = make_effect_data(kind, n_samples=200, n_features=10, random_state=0)
    make = (METHODS | INTERACTIVE)[name]
    make().fit(small.X, small.y, treatment=small.treatment)
    data = make_effect_data(kind, n_samples=n_samples, n_features=d, random_state=0)
    start = time.perf_counter()
    model = make().fit(data.X, data.y, treatment=data.treatment)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "peak_mb": peak, "error": model.effect_ - data.theta}


def compare(kind, n_samples, d, repeats):
    """All methods in turns; ratios are to DoubleML with boosting."""
    best: dict = {}
    methods = METHODS | INTERACTIVE if kind == "binary" else METHODS
    rounds = [(r, name) for r in range(repeats) for name in methods]
    for _, name in track(rounds, description=f"{kind}, d = {d}"):
        argv = [sys.executable, "-m", "benchmarks.effect", "--only", name]
        argv += ["--kind", kind, "--n-samples", str(n_samples), "--d", str(d)]
        row = json.loads(subprocess.run(argv, check=True, capture_output=True).stdout)
        if name not in best or row["seconds"] < best[name]["seconds"]:
            best[name] = row
    table = pd.DataFrame(best).T
    peers = ["interactive" in name for name in table.index]
    peers = np.where(peers, "DoubleML, interactive, boosting", "DoubleML, boosting")
    reference = table.loc[peers].set_index(table.index)
    table["time ratio"] = table["seconds"] / reference["seconds"]
    table["memory ratio"] = table["peak_mb"] / reference["peak_mb"]
    table.insert(0, "kind", kind)
    return table


def main(
    kind: Annotated[str, typer.Option(help="binary, continuous or both.")] = "both",
    n_samples: Annotated[int, typer.Option(help="Rows.")] = 6000,
    d: Annotated[int, typer.Option(help="Covariates.")] = 100,
    repeats: Annotated[int, typer.Option(help="Times each method is measured.")] = 3,
    only: Annotated[str, typer.Option(help="Measure one method in this process.")] = "",
):
    """Time and memory of one estimate against DoubleML, as ratios in one run."""
    if only:
        print(json.dumps(measure(only, kind, n_samples, d)))
        return
    kinds = ("binary", "continuous") if kind == "both" else (kind,)
    table = pd.concat([compare(k, n_samples, d, repeats) for k in kinds])
    lines = [f"# One estimate, N = {n_samples}, d = {d}", ""]
    for k in kinds:
        part = table[table["kind"] == k]
        hsic = (
            part.loc["DDML, network, HSIC only", "seconds"]
            / part.loc["DDML, network, no penalty", "seconds"]
        )
        lines += [f"## {k.capitalize()} treatment", ""]
        lines += [part.drop(columns="kind").to_markdown(floatfmt=".3f"), ""]
        lines += [f"HSIC costs {hsic - 1:.0%} on top of training without it.", ""]
    lines += [
        "Ratios are to DoubleML with boosting and the same score. Memory is the peak of the whole "
        "process, libraries included. Made by `python -m benchmarks.effect` "
        f"(fastest of {repeats}) on {pd.Timestamp.today().date()}."
    ]
    text = "\n".join(lines)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "effect.md").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    typer.run(main)
