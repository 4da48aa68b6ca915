"""The network baselines: their parts against slow twins, and effects that they must find."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from torch import nn

from experiments.baselines.effects import OLS1
from experiments.baselines.effects.cdml import CDML
from experiments.baselines.effects.cfr import CFR, heads
from experiments.baselines.effects.network import Layers, factual, mmd, train, wasserstein
from experiments.baselines.effects.site import SITE, hard_units, propensity_similarity

THETA = 2.0


def nonlinear_data(kind="binary", n=1200, seed=0):
    """X_0² drives treatment and outcome: a linear adjustment is of no use."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.7, 1.7, size=(n, 3))
    c = X[:, 0] ** 2
    if kind == "binary":
        t = rng.binomial(1, 1 / (1 + np.exp(2 - 2 * c))).astype(float)
    else:
        t = c + rng.standard_normal(n)
    return X, THETA * t + 2 * c + 0.5 * rng.standard_normal(n), t


def groups(n, m, R=2, Z=3):
    rng = torch.Generator().manual_seed(0)
    a = torch.randn(R, n, Z, generator=rng, dtype=torch.float64)
    return a, 0.5 + torch.randn(R, m, Z, generator=rng, dtype=torch.float64)


# --- network.py


def test_layers_are_linear_layers_with_elu():
    x = torch.randn(7, 4, generator=torch.Generator().manual_seed(1))
    net = Layers(3, (4, 5, 2), torch.Generator().manual_seed(0))
    with torch.no_grad():
        net.W[1][2] += 0.3  # the networks of a stack are apart
        twin = nn.Sequential(nn.Linear(4, 5), nn.ELU(), nn.Linear(5, 2))
        for linear, W, b in zip(twin[::2], net.W, net.b, strict=True):
            linear.weight.copy_(W[2].T)
            linear.bias.copy_(b[2, 0])
        assert torch.allclose(net(x)[2], twin(x), atol=1e-6)
        assert torch.equal(net(x)[0], net(x)[1])
        assert not torch.allclose(net(x)[0], net(x)[2])


def test_factual_loss_weighs_both_arms_equally():
    rng = np.random.default_rng(0)
    mu, y, t = rng.normal(size=(2, 3, 9)), rng.normal(size=(3, 9)), np.arange(9) % 3 == 0
    square = [[(y[r, b] - mu[int(t[b]), r, b]) ** 2 for b in range(9)] for r in range(3)]
    twin = [0.5 * np.mean(np.array(s)[t]) + 0.5 * np.mean(np.array(s)[~t]) for s in square]
    got = factual(*(torch.as_tensor(a) for a in (mu, t.astype(float), y)))
    np.testing.assert_allclose(got, twin)


def test_mmd_is_the_double_sum():
    a, b = groups(6, 9)
    for r, got in enumerate(mmd(a, b)):
        both = np.concatenate([a[r], b[r]])
        square = [[np.sum((p - q) ** 2) for q in both] for p in both]
        width = torch.tensor(square).flatten().median().item()

        def mean(first, second, width=width):
            return np.mean([[np.exp(-np.sum((p - q) ** 2) / width) for q in second] for p in first])

        a_, b_ = a[r].numpy(), b[r].numpy()
        twin = mean(a_, a_) + mean(b_, b_) - 2 * mean(a_, b_)
        assert got.item() == pytest.approx(twin)


def test_wasserstein_comes_near_the_best_assignment():
    a, b = groups(20, 20)
    a[0, 0] += 10  # a far row, whose kernel is next to nothing
    for r, got in enumerate(wasserstein(a, b, n_steps=3000, sharpness=200.0)):
        cost = cdist(a[r], b[r])
        exact = cost[linear_sum_assignment(cost)].mean()
        assert got.item() == pytest.approx(exact, rel=0.003)


@pytest.mark.parametrize("distance", [mmd, wasserstein])
def test_distances_of_alike_far_and_missing_groups(distance):
    a, b = groups(20, 20)
    assert (distance(a, b + 5) > 3 * distance(a, b)).all()
    assert torch.equal(distance(a, b[:, :0]), torch.zeros(2, dtype=a.dtype))
    a.requires_grad_()
    distance(a, a.detach() + 1).sum().backward()
    with torch.no_grad():
        assert (distance(a - 0.1 * a.grad.sign(), a + 1) != distance(a, a + 1)).all()


def test_training_keeps_each_networks_own_best_epoch():
    net = nn.ModuleDict({"one": Layers(2, (1, 1), torch.Generator().manual_seed(0))})
    held_out = iter(torch.tensor([[1.0, 3.0], [2.0, 2.0], [3.0, 1.0]]))
    seen = []

    def validate():
        seen.append(net["one"].W[0].detach().clone())
        return next(held_out)

    settings = SimpleNamespace(epochs=3, learning_rate=0.1, weight_decay=0, batch_size=8)
    x = torch.ones(64, 1)
    loss = lambda rows: ((net["one"](x[rows]) - 9) ** 2).mean((1, 2))  # noqa: E731
    train(net, loss, validate, torch.arange(64), settings, torch.Generator().manual_seed(0))
    assert torch.equal(net["one"].W[0][0], seen[0][0])
    assert torch.equal(net["one"].W[0][1], seen[2][1])
    assert not torch.equal(seen[0], seen[2])


# --- all of them

BINARY = [
    CFR(epochs=25),
    CFR(distance="mmd", epochs=25),
    SITE(epochs=25),
    CDML(n_folds=2, epochs=25),
]


@pytest.mark.parametrize("method", BINARY, ids=["wass", "mmd", "site", "cdml"])
def test_binary_effect_under_nonlinear_confounding(method):
    X, y, t = nonlinear_data()
    assert abs(OLS1().fit(X, y, treatment=t).effect_ - THETA) > 1
    assert abs(y[t == 1].mean() - y[t == 0].mean() - THETA) > 1
    # The noise alone gives a standard error of 0.5/√(1200·0.16) ≈ 0.036: five of them.
    assert abs(method.fit(X, y, treatment=t).effect_ - THETA) < 0.18


def test_continuous_effect_under_nonlinear_confounding():
    X, y, t = nonlinear_data("continuous")
    assert abs(OLS1().fit(X, y, treatment=t).effect_ - THETA) > 0.8
    method = CDML(n_folds=2, epochs=25).fit(X, y, treatment=t)
    assert abs(method.effect_ - THETA) < 0.2
    # At least that of the noise alone, 0.5/√1200; wider by what the networks miss.
    assert 0.012 < method.stderr_ < 0.06
    low, high = method.conf_int()
    assert low < method.effect_ < high


@pytest.mark.parametrize(
    "method",
    [CFR(epochs=4), CFR(distance="mmd", epochs=4), SITE(epochs=4), CDML(n_folds=2, epochs=4)],
    ids=["wass", "mmd", "site", "cdml"],
)
def test_a_stack_gives_what_its_networks_give_one_by_one(method):
    X, y, t = nonlinear_data(n=300)
    columns = np.column_stack([y, np.sin(y), 3 * y + 10 * X[:, 1]])
    stack = method.fit(X, columns, treatment=t).effect_
    alone = [method.fit(X, column, treatment=t).effect_ for column in columns.T]
    assert stack.shape == (3,)
    assert isinstance(alone[0], float)
    np.testing.assert_allclose(stack, alone, rtol=1e-3)
    assert len({round(e, 3) for e in alone}) == 3


@pytest.mark.parametrize("method", [CFR(), SITE()])
def test_a_continuous_treatment_is_refused(method):
    X, y, t = nonlinear_data("continuous", n=50)
    with pytest.raises(ValueError, match="zeros and ones"):
        method.fit(X, y, treatment=t)


def test_effect_on_the_treated():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 2))
    t = rng.binomial(1, 1 / (1 + np.exp(-2 * X[:, 0]))).astype(float)
    y = t * X[:, 0] + X[:, 1] + 0.1 * rng.standard_normal(1000)
    ate, att = (CFR(target, epochs=15).fit(X, y, treatment=t).effect_ for target in ("ate", "att"))
    assert abs(ate - X[:, 0].mean()) < 0.15
    assert abs(att - X[t == 1, 0].mean()) < 0.15


# --- CFR


@pytest.mark.parametrize(("distance", "of"), [("mmd", mmd), ("wasserstein", wasserstein)])
def test_cfr_brings_the_arms_together(distance, of):
    class Kept(CFR):
        def _prepare(self, net, x, t, y):
            self.kept = net, x, t

    def apart(alpha):
        X, y, t = nonlinear_data(n=400)
        method = Kept(distance=distance, alpha=alpha, epochs=15).fit(X, y, treatment=t)
        net, x, t = method.kept
        with torch.no_grad():
            z = net["representation"](x)
        assert torch.allclose(z.norm(dim=-1), torch.ones(()), atol=1e-5)
        return of(z[:, t == 1], z[:, t == 0]).item()

    assert apart(1.0) < 0.7 * apart(0.0)


# --- SITE


def test_site_chooses_hard_units_by_propensity():
    s = torch.tensor([0.10, 0.45, 0.30, 0.60, 0.80, 0.95, 0.35, 0.70])
    t = torch.tensor([0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0])
    # i = 3 (0.60) and j = 1 (0.45); the control farthest from i is 0, and 4 farthest from that;
    # the treated farthest from j is 5, and 2 farthest from that.
    assert hard_units(s, t) == (3, 1, 0, 4, 5, 2)


def test_site_similarity_of_propensities():
    similarity = propensity_similarity(torch.tensor([0.9, 0.5, 0.1]), torch.tensor([0.9, 0.5, 0.9]))
    np.testing.assert_allclose(similarity, [0.8, 0.5, 0.1], atol=1e-6)


def test_site_loss_is_its_three_parts():
    X, y, t = nonlinear_data(n=60)
    x, t = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(t, dtype=torch.float32)
    y = torch.as_tensor(np.stack([y, y**2]), dtype=torch.float32)
    method = SITE(beta=0.7, gamma=0.3, hidden=4)
    net = method._modules(2, 3, torch.Generator().manual_seed(0))
    method._prepare(net, x, t, y)
    with torch.no_grad():
        net["representation"].W[0][1] *= 2
        got = method._loss(net, x, t, y)
        z, w, b = net["representation"](x), *method.propensity_
        s = 1 / (1 + np.exp(-(x @ w + b).numpy()))
        i, j, k, l, m, n = hard_units(torch.as_tensor(s), t)
        for r in range(2):
            q = z[r].numpy()

            def unit(a):
                return a / max(np.linalg.norm(a), 1e-12)

            def layer(name, a, depth=0, r=r):
                return a @ net[name].W[depth][r].numpy() + net[name].b[depth][r, 0].numpy()

            def score(p, o, q=q):
                apart = np.maximum(layer("apart", unit(abs(q[p] - q[o]))), 0)
                place = np.maximum(layer("place", unit(abs((q[p] + q[o]) / 2 - q.mean(0)))), 0)
                c = layer("score", np.concatenate([unit(apart), unit(place)]))
                return layer("score", np.where(c > 0, c, np.expm1(c)), 1)[0]

            def wanted(p, o):
                return 0.75 * abs((s[p] + s[o]) / 2 - 0.5) - abs(s[p] - s[o]) / 2 + 0.5

            pairs = [(k, l), (m, n), (k, m), (i, m), (j, k)]
            pddm = np.mean([(score(*pair) - wanted(*pair)) ** 2 for pair in pairs])
            mpdm = np.sum(((q[i] + q[m]) / 2 - (q[j] + q[k]) / 2) ** 2)
            twin = factual(heads(net, z), t, y)[r].item() + 0.7 * pddm + 0.3 * mpdm
            assert got[r].item() == pytest.approx(twin, rel=1e-4)
        # A batch with one arm alone has no pairs.
        one = method._loss(net, x[t == 1], t[t == 1], y[:, t == 1])
        assert torch.allclose(one, factual(heads(net, z[:, t == 1]), t[t == 1], y[:, t == 1]))


# --- C-DML


def test_cdml_makes_the_product_of_the_errors_small():
    X, y, t = nonlinear_data("continuous")
    x, c = torch.as_tensor(X, dtype=torch.float32), X[:, 0] ** 2
    seen = torch.as_tensor(np.stack([t, y], -1)[None], dtype=torch.float32)
    true = torch.as_tensor(np.stack([c, (THETA + 2) * c], -1)[None], dtype=torch.float32)

    def products(gamma):
        method = CDML(gamma=gamma, epochs=10)  # too few: there are errors to coordinate
        net = method._coordinated(x, t, seen, torch.Generator().manual_seed(0))
        with torch.no_grad():
            return [(values - net(x)).prod(-1).mean().abs().item() for values in (seen, true)]

    (plain_residuals, plain_errors), (residuals, errors) = products(0.0), products(1.0)
    assert residuals < plain_residuals
    assert errors < 0.5 * plain_errors  # this is plain DML's bias


def test_cdml_does_not_shrink_a_weak_effect_to_zero():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 2))
    t = np.sin(X[:, 0]) + rng.standard_normal(2000)
    y = 0.2 * t + np.sin(X[:, 0]) + rng.standard_normal(2000)
    method = CDML(n_folds=2, epochs=20).fit(X, y, treatment=t)
    assert abs(method.effect_ - 0.2) < 4 / np.sqrt(2000)  # four standard errors
    assert method.effect_ > 0.1
