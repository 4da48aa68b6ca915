"""Devices: what the host reads while they train, and their precision."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ddml_fs.engine import devices
from ddml_fs.engine.network import RoleNetwork, Sizes
from ddml_fs.engine.objective import LossSettings, Objective
from ddml_fs.engine.plan import make_plan
from ddml_fs.engine.quadratic import fit_quadratic
from ddml_fs.engine.run import run
from ddml_fs.engine.solve import Settings
from ddml_fs.engine.stack import Stack
from ddml_fs.engine.train import FlatAdamW, Schedule, train, training_step
from ddml_fs.scores import residual_on_residual, residuals

aten = torch.ops.aten


class CountedReads(TorchDispatchMode):
    """Counts operations whose results depend on values that the host must wait for."""

    WAIT = (
        aten._local_scalar_dense,  # .item(), bool(), float()
        aten.nonzero,  # indices by truth values
        aten.masked_select,
        aten.equal,
        aten._unique2,
    )

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        masks = args[1] if func.overloadpacket is aten.index else ()
        masked = any(mask is not None and mask.dtype == torch.bool for mask in masks)
        if func.overloadpacket in self.WAIT or masked:
            self.names.append(func.overloadpacket.__name__)
        return func(*args, **kwargs or {})


class RoundedProducts(TorchDispatchMode):
    """Rounds the factors of all matrix products to a number of bits, as TF32 and bfloat16 do."""

    def __init__(self, bits):
        super().__init__()
        self.unit = 2**bits

    def rounded(self, x):
        mantissa, exponent = torch.frexp(x)
        return torch.ldexp((mantissa * self.unit).round() / self.unit, exponent)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        factors = {aten.mm: 0, aten.bmm: 0, aten.addmm: 1, aten.baddbmm: 1}
        first = factors.get(func.overloadpacket)
        if first is not None:
            args = *args[:first], *map(self.rounded, args[first : first + 2]), *args[first + 2 :]
        return func(*args, **kwargs or {})


@pytest.fixture(scope="module")
def plan():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((800, 8))
    X[:, 0] += X[:, 1] + np.sin(X[:, 2])
    y = X[:, 0] + X[:, 1] ** 2 + rng.standard_normal(800)
    return make_plan(X, y[:, None], rng, binary_T=np.zeros(8, bool), n_folds=2)


def parts(plan, device="cpu"):
    stack = Stack(plan, np.arange(plan.n_problems), torch.as_tensor(plan.X).float(), device)
    net = RoleNetwork(stack, Sizes())
    return stack, net, Objective(net, stack, Sizes(), LossSettings("coupled", 0.1, 0.1, "paper"))


def test_reads_are_counted():
    with CountedReads() as reads:
        x = torch.arange(3.0)
        float(x[0]), bool((x > 1).all()), x[x > 1]
    assert reads.names == ["_local_scalar_dense", "_local_scalar_dense", "index"]


def test_no_value_is_read_in_training_steps(plan):
    stack, net, objective = parts(plan)
    optimizer = FlatAdamW(net, 0.01)
    prices = torch.ones(3)
    with CountedReads() as reads:
        for batch in stack.epoch(stack.generators()):
            training_step(net, objective, optimizer, batch, 1e-2, prices)
    assert stack.steps > 5
    assert reads.names == []


def test_one_value_is_read_per_epoch_after_the_patience(plan):
    stack, net, objective = parts(plan)
    with CountedReads() as reads:
        train(net, objective, stack, Schedule(epochs=4, peak=1e-2, patience=20))
    assert reads.names == []
    with CountedReads() as reads:
        train(net, objective, stack, Schedule(epochs=6, peak=1e-9, patience=4))
    assert reads.names in (["_local_scalar_dense"] * n for n in (2, 3))


def test_whole_training_runs_on_meta(plan):
    """Tensors of this device have no values, so that reading or copying one would raise."""
    stack, net, objective = parts(plan, "meta")
    train(net, objective, stack, Schedule(epochs=3, peak=1e-2, lasso=0.5))
    assert {w.device.type for w in net.parameters()} == {"meta"}
    assert {part.device.type for part in fit_quadratic(objective, stack)} == {"meta"}
    with pytest.raises((RuntimeError, NotImplementedError)):
        net.W_1.cpu()


def test_rounding_of_tf32_is_small_beside_standard_errors(plan):
    """10 bits in all products change effects by less than a tenth of a standard error."""
    settings = replace(Settings(), screen=None, final=Schedule(epochs=15, peak=2e-2))

    def effects():
        found = []
        for f in range(4):
            hat = predictions.of(f=f)
            v, e = residuals(plan.T[:, f], hat.m, plan.Y[:, 0], hat.g)
            found.append((residual_on_residual(v, e), e.std() / (v.std() * np.sqrt(len(v)))))
        return np.array(found).T

    predictions = run(plan, settings)
    exact, stderr = effects()
    with RoundedProducts(bits=11):  # one of them is implicit
        predictions = run(plan, settings)
    change = np.abs(effects()[0] - exact) / stderr
    assert 1e-6 < change.max() < 0.1


@pytest.mark.parametrize(("device", "capability"), [("cuda", (8, 0)), ("cuda", (7, 5)), ("cpu", 0)])
def test_tensor_cores_are_used_where_they_are(monkeypatch, device, capability):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    before = torch.get_float32_matmul_precision()
    with devices.tensor_cores(device):
        expected = "high" if capability == (8, 0) else before
        assert torch.get_float32_matmul_precision() == expected
    assert torch.get_float32_matmul_precision() == before
