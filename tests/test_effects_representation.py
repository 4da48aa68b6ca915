"""DeR-CFR, DIGNet and FCCL: known effects, and slow twins of their pieces."""

import numpy as np
import pytest
import torch

from experiments.baselines.effects import OLS1
from experiments.baselines.effects.dercfr import (
    DeRCFR,
    contrast,
    orthogonality,
    quadratic,
    rbf_kernel,
    sample_weights,
)
from experiments.baselines.effects.dignet import DIGNet, Reverse
from experiments.baselines.effects.fccl import FCCL, Flow, info_nce

METHODS = [DeRCFR, DIGNet, FCCL]


def curved(N, effect, seed=0):
    """A confounder |X₀| that no line sees; X₁ moves the treatment, X₂ the outcome."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, 4))
    p = 1 / (1 + np.exp(1.2 - 1.5 * np.abs(X[:, 0]) - 0.5 * X[:, 1]))
    t = rng.binomial(1, p).astype(float)
    y = 3 * np.abs(X[:, 0]) + X[:, 2] + effect * t + rng.standard_normal(N)
    return X, y, t


def generator():
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize("method", METHODS)
def test_recovers_a_known_effect(method):
    X, y, t = curved(2000, effect=3.0)
    assert y[t == 1].mean() - y[t == 0].mean() > 3.8
    assert OLS1().fit(X, y, treatment=t).effect_ > 3.8
    # Four standard errors of an estimate that knows both surfaces and the propensity (0.052).
    effect = method(epochs=15, batch_size=128).fit(X, y, treatment=t).effect_
    assert effect == pytest.approx(3, abs=0.2)


@pytest.mark.parametrize("method", METHODS)
def test_effect_on_the_treated(method):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((1000, 2))
    t = (X[:, 0] + rng.standard_normal(1000) > 0) * 1.0
    y = X[:, 1] + (1 + X[:, 0]) * t  # noiseless; the treated gain more
    truth = (1 + X[t == 1, 0]).mean()
    assert truth > 1.5
    effect = method(target="att", epochs=10).fit(X, y, treatment=t).effect_
    assert effect == pytest.approx(truth, abs=0.15)


@pytest.mark.parametrize("method", METHODS)
def test_stack_equals_fits_one_by_one(method):
    X, _, t = curved(300, effect=0)
    rng = np.random.default_rng(1)
    y = np.stack([a * t + X[:, 0] ** 2 + rng.standard_normal(300) for a in (1, 2, 3)], 1)
    stack = method(epochs=3).fit(X, y, treatment=t).effect_
    single = [method(epochs=3).fit(X, y[:, r], treatment=t).effect_ for r in range(3)]
    np.testing.assert_allclose(stack, single, rtol=1e-3)
    assert np.ptp(single) > 0.1


@pytest.mark.parametrize("method", METHODS)
def test_needs_a_binary_treatment(method):
    X, y, t = curved(50, effect=1)
    with pytest.raises(ValueError, match=method.__name__):
        method(epochs=1).fit(X, y, treatment=t + X[:, 0])


def test_orthogonality_is_the_loop():
    W = [torch.randn(2, 5, 3, generator=generator()) + k for k in range(3)]
    for r in range(2):
        total = 0.0
        for j, k in [(0, 1), (0, 2), (1, 2)]:
            for d in range(5):
                a = W[j][r, d].abs().sum() / W[j][r].abs().sum()
                b = W[k][r, d].abs().sum() / W[k][r].abs().sum()
                total += float(a * b)
        assert float(orthogonality(W)[r]) == pytest.approx(total, rel=1e-5)
    apart = [torch.eye(3)[None, :, k : k + 1] for k in range(3)]
    assert float(orthogonality(apart)) == 0


def test_weighted_mmd_is_the_loop():
    z = torch.randn(2, 6, 3, generator=generator())
    w = torch.rand(2, 2, 6, generator=generator())
    w[1, 1, :3] = 0  # no treated unit in this stratum
    t = torch.tensor([1.0, 1, 1, 0, 0, 0])
    got = quadratic(rbf_kernel(z), contrast(w, t))
    for r in range(2):
        square = ((z[r][:, None] - z[r][None]) ** 2).sum(-1)
        K = torch.exp(-square / square.mean())
        for s in range(2):
            a, b = w[r, s, :3] / w[r, s, :3].sum(), w[r, s, 3:] / w[r, s, 3:].sum()
            mmd = a @ K[:3, :3] @ a + b @ K[3:, 3:] @ b - 2 * a @ K[:3, 3:] @ b
            expected = 0 if (r, s) == (1, 1) else float(mmd)
            assert float(got[r, s]) == pytest.approx(expected, abs=1e-5)


def test_learned_weights_balance_the_confounders():
    class Kept(DeRCFR):
        def _modules(self, R, D, generator):
            self.net = super()._modules(R, D, generator)
            return self.net

    X, y, t = curved(1000, effect=1.0)
    net = Kept(epochs=15).fit(X, y, treatment=t).net
    X, _, t = curved(500, effect=1.0, seed=1)  # fresh rows; their scale is 1 already
    x, t = (torch.as_tensor(a, dtype=torch.float32) for a in (X, t))
    with torch.no_grad():
        C = net["C"](x)
        omega = sample_weights(net["omega"], C, t)
        equal, weighted = (
            float(quadratic(rbf_kernel(C), contrast(w[:, None], t)))
            for w in (torch.ones_like(omega), omega)
        )
    assert weighted < 0.7 * equal
    assert [float(omega[0, t == a].mean()) for a in (0, 1)] == pytest.approx([1, 1], abs=0.3)


def test_reversal_changes_the_sign():
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    out = Reverse.apply(x, 0.5)
    assert torch.equal(out, x)
    (out**2).sum().backward()
    torch.testing.assert_close(x.grad, -0.5 * 2 * x.detach())


def test_balancing_shapes_its_own_patterns_only():
    X, y, t = (torch.as_tensor(a, dtype=torch.float32) for a in curved(60, effect=1.0))
    gradients = {}
    for strength in (0.0, 5.0):
        method = DIGNet(alpha_group=strength, alpha_propensity=strength)
        net = method._modules(1, 4, generator())
        method._loss(net, X, t, y[None]).sum().backward()
        gradients[strength] = {name: net[name].W[0].grad for name in net}
    for name, equal in {"E": True, "propensity": True, "G": False, "P": False}.items():
        assert torch.allclose(gradients[0.0][name], gradients[5.0][name]) == equal, name


@pytest.mark.parametrize("Z", [4, 5])
def test_flow_is_undone_by_its_inverse(Z):
    flow = Flow(3, Z, 8, 4, generator())
    z = 3 * torch.randn(3, 20, Z, generator=generator())
    t = (torch.arange(20) % 2).float()
    with torch.no_grad():
        base = flow(z, t)[0]
        torch.testing.assert_close(flow.inverse(base, t), z, atol=1e-4, rtol=1e-4)
        assert (flow.inverse(base, 1 - t) - z).abs().mean() > 0.1  # the other arm is elsewhere


@pytest.mark.parametrize("Z", [4, 5])
def test_log_determinant_is_that_of_the_jacobian(Z):
    flow = Flow(1, Z, 8, 3, generator())
    z = torch.randn(2, Z, generator=generator())
    t = torch.tensor([0.0, 1.0])
    log_det = flow(z[None], t)[1][0].detach()
    for i in range(2):
        J = torch.autograd.functional.jacobian(
            lambda row, i=i: flow(row[None, None], t[i : i + 1])[0][0, 0], z[i]
        )
        assert float(log_det[i]) == pytest.approx(float(J.det().abs().log()), abs=1e-4)


def test_flow_learns_to_swap_the_arms():
    """Two arms that differ by a shift and a scale: the counterfactual is the other arm's."""
    z = torch.randn(1, 400, 2, generator=generator())
    t = (torch.arange(400) % 2).float()
    z = torch.where(t[:, None] == 1, 2 + 0.5 * z, z)
    flow = Flow(1, 2, 8, 4, generator())
    optimizer = torch.optim.Adam(flow.parameters(), lr=0.02)
    for _ in range(200):
        base, log_det = flow(z, t)
        optimizer.zero_grad()
        (0.5 * (base**2).sum(-1) - log_det).mean().backward()
        optimizer.step()
    with torch.no_grad():
        other = flow.inverse(flow(z, t)[0], 1 - t)[0]
    for arm, (mean, sd) in {0: (2, 0.5), 1: (0, 1)}.items():
        assert other[t == arm].mean(0).tolist() == pytest.approx([mean] * 2, abs=0.2)
        assert other[t == arm].std(0).tolist() == pytest.approx([sd] * 2, abs=0.2)


def test_info_nce_is_a_cross_entropy():
    z, positive = torch.randn(2, 3, 6, 4, generator=generator())
    got = info_nce(z, positive, 0.5)
    for r in range(3):
        cosine = torch.nn.functional.cosine_similarity(z[r][:, None], positive[r][None], dim=-1)
        expected = torch.nn.functional.cross_entropy(cosine / 0.5, torch.arange(6))
        assert float(got[r]) == pytest.approx(float(expected), rel=1e-5)
