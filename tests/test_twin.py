"""The stacked engine against Algorithm 1 written down line by line."""

import numpy as np
import pytest
import torch
from algorithm_1 import algorithm_1

from ddml_fs.datasets import make_effect_data
from ddml_fs.engine.network import Sizes
from ddml_fs.engine.objective import LossSettings
from ddml_fs.engine.plan import make_plan
from ddml_fs.engine.run import run
from ddml_fs.engine.solve import Settings
from ddml_fs.engine.train import Schedule
from ddml_fs.scores import PartiallyLinear, residuals


@pytest.mark.parametrize("kind", ["binary", "continuous"])
@pytest.mark.parametrize(
    ("outcome", "label", "shrinkage", "weighted"),
    [
        ("direct", False, 0.0, False),
        ("coupled", False, 0.0, False),
        ("direct", True, 0.0, False),
        ("direct", False, 5.0, False),
        ("direct", True, 5.0, False),
        ("coupled", False, 0.0, True),
        ("direct", True, 5.0, True),
    ],
)
def test_stack_equals_algorithm_1(kind, outcome, label, shrinkage, weighted):
    """As printed, coupled, with a label, shrunken towards ridge regressions, and with weights."""
    data = make_effect_data(kind, n_samples=300, n_features=12, random_state=0)
    y = (data.y > np.median(data.y) + 2).astype(float) if label else data.y
    binary = kind == "binary"
    weight = np.random.RandomState(1).uniform(0.2, 3.0, 300) if weighted else np.ones(300)
    weight /= weight.mean()
    plan = make_plan(
        data.X,
        y[:, None],
        np.random.RandomState(0),
        treatments=data.treatment[:, None],
        binary_T=[binary],
        label=label,
        n_folds=3,
        weight=weight,
    )
    theta, T_hat, Y_hat = algorithm_1(
        data.X,
        data.treatment,
        y,
        plan.folds,
        plan.seeds.tolist(),
        binary=binary,
        H=6,
        Z=3,
        B=32,
        epochs=8,
        peak=2e-2,
        decay=0.01,
        lambda_dis=0.3,
        lambda_ort=0.2,
        m=5,
        coupled=outcome == "coupled",
        label=label,
        shrinkage=shrinkage,
        weight=weight,
    )

    settings = Settings(
        sizes=Sizes(H=6, Z=3),
        loss=LossSettings(outcome, 0.3, 0.2, "paper", n_features=5, penalty_every=1),
        screen=None,
        final=Schedule(epochs=8, peak=2e-2, weight_decay=0.01),
        batch_size=32,
        shrinkage=shrinkage,
        dtype=torch.float64,
    )
    hat = run(plan, settings).of()
    m, g = hat.m, hat.g
    np.testing.assert_allclose(m, T_hat, atol=1e-5)
    np.testing.assert_allclose(g, Y_hat, atol=1e-5)
    v, e = residuals(data.treatment, m, y, g)
    moments = PartiallyLinear().of_residuals(v, e, weight=weight)
    assert moments.theta == pytest.approx(theta, abs=1e-5)
    # The twin is no constant: training moved it away from the mean.
    assert np.std(T_hat) > 0.05
