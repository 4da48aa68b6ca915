"""The trunk of wide networks: how many projections, from which width, and what they cost.

``python -m benchmarks.trunk``: errors of nuisances on held-out rows with 0, 4, 16 and 48 principal
components beside the ridge regression of the outcome, and with separate encoders; and seconds per
treatment by the number of columns. ``--quick`` takes a part of the data, and nothing is written.
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from ddml_fs.datasets import fetch_amazon_reviews, make_effect_data
from ddml_fs.engine import trunk as engine
from ddml_fs.engine.plan import make_plan
from ddml_fs.engine.resources import Resources
from ddml_fs.engine.run import run
from ddml_fs.nuisances import Network, shrunken_network
from experiments.amazon.protocol import by_domain
from experiments.writing import Writer

RESULTS = Path(__file__).parent / "results"
COMPONENTS, WIDTHS = (0, 4, 16, 48), (400, 1000, 2000)
NETWORK = Network(gates=False, hidden=8, latent=4, epochs=20, lambda_dis=0.0)
SHARED, SEPARATE = "{} components", "separate encoders"


def interactions(n_rows, n_columns=300):
    """Common factors whose product confounds, beside columns of noise."""
    rng = np.random.RandomState(0)
    factors = rng.standard_normal((n_rows, 3))
    X = rng.standard_normal((n_rows, n_columns))
    X[:, : n_columns // 2] += 2 * factors @ rng.standard_normal((3, n_columns // 2))
    bend = factors[:, 0] * factors[:, 1]
    t = bend + rng.standard_normal(n_rows)
    return X, t[:, None], t + 2 * bend + rng.standard_normal(n_rows)


def sparse_causes(n_rows):
    """A few of many independent columns confound, in a way that is not linear."""
    data = make_effect_data("continuous", n_samples=n_rows, n_features=100, random_state=0)
    return data.X, data.treatment[:, None], data.y


def words(n_rows):
    """Reviews of books: ten words as treatments of the label, given all other words."""
    X, y = by_domain(fetch_amazon_reviews())["books"]
    rows = np.random.RandomState(0).permutation(len(y))[:n_rows]
    X = X[rows][:, X[rows].std(0) > 0].astype(float)
    return X[:, 10:], X[:, :10], y[rows].astype(float)


DATA = {
    "product of factors": interactions,
    "few causes": sparse_causes,
    "words": words,
}


def errors(X, T, y, settings):
    """Shares of the variance of the treatments and of the outcome that are left, held out."""
    rng = np.random.RandomState(0)
    plan = make_plan(X, y[:, None], rng, treatments=T, binary_T=[False] * T.shape[1], n_folds=3)
    hat = run(plan, settings, resources=Resources(detail=False))
    left_T = ((T - hat.m[0, 0].T) ** 2).mean(0) / T.var(0)
    left_Y = ((y[:, None] - hat.g[0, 0].T) ** 2).mean(0) / y.var()
    return left_T.mean(), left_Y.mean()


def accuracy(n_rows):
    """One row per data set and first layer."""
    rows, usual = [], engine.COMPONENTS
    settings = replace(NETWORK.set_params(outcome="direct").settings(False), trunk=True)
    for name, make in DATA.items():
        data = make(n_rows)
        for q in (*COMPONENTS, None):
            engine.COMPONENTS = usual if q is None else q
            own = replace(settings, trunk=q is not None)
            left_T, left_Y = errors(*data, own)
            layer = SEPARATE if q is None else SHARED.format(q)
            rows.append({"data": name, "first layer": layer, "left of T": left_T})
            rows[-1]["left of Y"] = left_Y
            print(rows[-1], flush=True)
    engine.COMPONENTS = usual
    return pd.DataFrame(rows).set_index(["data", "first layer"])


def costs(widths, n_rows):
    """Processor milliseconds per treatment and fold by the number of columns."""
    rows, rng = [], np.random.RandomState(0)
    base = shrunken_network().settings(False)
    for D in widths:
        X = rng.standard_normal((n_rows, D)).astype(np.float32)
        y = X[:, :5].sum(1) + rng.standard_normal(n_rows)
        whole = make_plan(X, y[:, None], rng, binary_T=[False] * D, n_folds=3)
        plan = whole.part(np.arange(200), [0])
        row = {"columns": D}
        for shared in (True, False):
            start = time.process_time()
            settings = replace(base, trunk=shared, shrinkage=0.0)
            run(plan, settings, resources=Resources(detail=False))
            seconds = time.process_time() - start
            row["shared trunk" if shared else SEPARATE] = 1e3 * seconds / plan.n_problems
        rows.append(row)
        print(row, flush=True)
    return pd.DataFrame(rows).set_index("columns")


def main(quick: Annotated[bool, typer.Option(help="A small part; nothing is written.")] = False):
    """Errors by first layer, and time by width."""
    table = accuracy(200 if quick else 1000)
    times = costs(WIDTHS[:1] if quick else WIDTHS, 200 if quick else 1000)
    if not quick:
        write = Writer(RESULTS, "python -m benchmarks.trunk")
        notes = (
            "Held-out shares of variance that nuisances leave: 1000 rows, three folds, small "
            "networks without shrinkage and gates. The trunk has principal components and the "
            "ridge regression of the outcome; separate encoders read all columns."
        )
        write("trunk", "The first layer of wide networks", table, notes, digits=3)
        notes = "Processor milliseconds per treatment and fold, 1000 rows, `nuisance='shrunken'`."
        write("trunk_time", "The cost of a treatment by width", times, notes, digits=1)


if __name__ == "__main__":
    typer.run(main)
