"""The shared trunk: what a problem reads of it, and effects beside those of separate encoders."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import expit
from scipy.stats import spearmanr
from torch.nn.functional import hardswish

from ddml_fs import DDML, CausalFeatureSelector
from ddml_fs.engine import shared as engine_shared
from ddml_fs.engine import start as engine_start
from ddml_fs.engine.network import RoleNetwork, Sizes
from ddml_fs.engine.objective import LossSettings, Objective
from ddml_fs.engine.plan import WIDE, bytes_of_problem, make_plan, make_shards
from ddml_fs.engine.resources import Resources
from ddml_fs.engine.run import run
from ddml_fs.engine.solve import Settings
from ddml_fs.engine.start import RidgeStart
from ddml_fs.engine.train import FlatAdamW, Schedule, training_step
from ddml_fs.engine.trunk import TrunkStack, make_trunk, n_projections, trunk_of_shard
from ddml_fs.nuisances import Forest, Network, Ridge, shrunken_network

SIZES = Sizes(H=4, Z=3)
SHORT = Settings(
    sizes=SIZES,
    loss=LossSettings("direct"),
    screen=None,
    final=Schedule(epochs=4, peak=2e-2),
    trunk=True,
    shrinkage=1.0,
)
QUICK = Resources(detail=False)


@pytest.fixture(scope="module")
def plan():
    """Blocks of one, two and three columns, a column that is no covariate, and one beside X."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((200, 30)) + 0.5 * rng.standard_normal((200, 1)) + 7
    X[:, 3] = X[:, 3] > 7
    y = X[:, 0] - X[:, 3] * X[:, 1] + rng.standard_normal(200)
    block, covariates = np.arange(30), np.ones(30, bool)
    block[5], block[7:9], covariates[9] = 4, 6, False
    own = np.array([0, 3, 4, 7, 9, -1])
    return make_plan(
        X,
        y[:, None],
        np.random.RandomState(0),
        treatments=np.column_stack([X[:, own[:-1]], rng.standard_normal(200)]),
        own=own,
        binary_T=own == 3,
        block=block,
        covariates=covariates,
        n_folds=3,
    )


def trunk_stack(plan, members=None, **options):
    members = np.arange(plan.n_problems) if members is None else members
    trunks = [make_trunk(plan, k) for k in range(len(plan.folds))]
    return TrunkStack(plan, members, trunk_of_shard(plan, members, trunks.__getitem__), **options)


def test_first_layer_equals_the_one_without_the_columns(plan):
    """The slow twin: the columns of the treatment's block deleted from X and from W."""
    stack = trunk_stack(plan, dtype=torch.float64)
    net = RoleNetwork(stack, SIZES)
    batch = stack.batch(stack.rows("hold")[0])
    Z = net.Phi(batch.x, batch.own).detach()
    for i in range(plan.n_problems):
        k, _, f = plan.problem(i)
        trunk, rows = make_trunk(plan, k), plan.folds[k].hold
        inputs = plan.inputs(f)
        assert inputs.sum() == 29 - len(plan.block_of(f))
        S = (plan.X[rows][:, inputs] - trunk.mean[inputs]) @ trunk.W[inputs].astype(float)
        g, j = divmod(i, net.p)
        h = hardswish(torch.as_tensor(S) @ net.W_1[g, :, j] + net.b_1[g, 0, j])
        plain = (h @ net.W_2[i] + net.b_2[i]).detach()
        torch.testing.assert_close(Z[i, : len(rows)], plain, rtol=0, atol=1e-5)


def test_values_of_the_treatment_do_not_reach_its_network(plan):
    """Other values of the treatment's block in the held-out rows, with the same projections."""
    rng, trunks = np.random.RandomState(1), [make_trunk(plan, k) for k in range(3)]
    for f, own in enumerate(plan.own[:-1]):
        X = plan.X.copy()
        same = plan.block == plan.block[own]
        X[:, same] = 3 * rng.standard_normal((200, same.sum())) - 1
        changed = replace(plan, X=X)
        moved = [t._replace(S=(X - t.mean).astype(np.float32) @ t.W) for t in trunks]
        latents = []
        for p, made in ((plan, trunks), (changed, moved)):
            members = np.array([f + k * 6 for k in range(3)])
            stack = TrunkStack(p, members, trunk_of_shard(p, members, made.__getitem__))
            batch = stack.batch(stack.rows("hold")[0])
            latents.append(RoleNetwork(stack, SIZES).Phi(batch.x, batch.own).detach())
        torch.testing.assert_close(*latents, rtol=0, atol=2e-5)


def test_a_treatment_that_the_projections_contain_is_not_predicted():
    """One column is all of the outcome's direction; if it leaked, m would be perfect."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((600, 40))
    plan = make_plan(X, X[:, :1], rng, binary_T=[False] * 40, n_folds=3)
    corr = np.corrcoef(make_trunk(plan, 0).S[:, -1], X[:, 0])[0, 1]
    assert abs(corr) > 0.7
    m = run(plan.part([0], [0]), replace(SHORT, shrinkage=0.0)).of().m
    assert np.mean((X[:, 0] - m) ** 2) > 0.9 * np.var(X[:, 0])


def test_projections_come_from_the_rows_of_the_fit(plan):
    """Held-out and validation rows change neither the projections nor their scale."""
    other = replace(plan, X=plan.X.copy(), Y=plan.Y.copy())
    for part in ("hold", "valid"):
        rows = getattr(plan.folds[0], part)
        other.X[rows], other.Y[rows] = 5.0, -7.0
    trunk, same, fit = make_trunk(plan, 0), make_trunk(other, 0), plan.folds[0].fit
    np.testing.assert_allclose(trunk.W, same.W, atol=1e-6)
    np.testing.assert_allclose(trunk.S[fit].std(0), 1, atol=1e-4)
    assert not trunk.W[9].any()  # no covariate
    assert trunk.S.shape == (200, n_projections(plan))


def test_components_are_those_of_a_plain_decomposition():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((300, 20)) @ rng.standard_normal((20, 60))
    plan = make_plan(X, X[:, :1], rng, binary_T=[False] * 60, n_folds=3)
    fit = plan.folds[0].fit
    A = (X[fit] - X[fit].mean(0)) / X[fit].std(0)
    U = np.linalg.svd(A, full_matrices=False)[0][:, :5] * np.sqrt(len(fit))
    r = np.abs(U.T @ make_trunk(plan, 0).S[fit, :5] / len(fit))
    np.testing.assert_allclose(np.diag(r), 1, atol=1e-2)


def test_training_step_runs_on_meta(plan):
    stack = trunk_stack(plan, device="meta")
    net = RoleNetwork(stack, SIZES)
    objective = Objective(net, stack, SIZES, LossSettings("direct", 0.1, 0.1))
    batch = stack.batch(torch.zeros(stack.G, stack.B, dtype=torch.long))
    optimizer = FlatAdamW(net, 0.01)
    training_step(net, objective, optimizer, batch, 1e-2)
    assert {w.device.type for w in net.parameters()} == {"meta"}
    assert optimizer.mean[0].shape == net.W_1.shape
    assert optimizer.mean[0].device.type == "meta"


def test_packing_does_not_change_predictions(plan):
    """One shard, one treatment per shard, two threads, and the treatments in another order."""
    whole = run(plan, SHORT, resources=QUICK)
    small = replace(QUICK, memory=1e-3)
    assert len(make_shards(plan, SIZES, memory=1e-6, by_fold=True, n_inputs=17)) == 18
    for other in (small, replace(small, n_jobs=2)):
        hat = run(plan, SHORT, resources=other)
        np.testing.assert_allclose(hat.m, whole.m, atol=1e-5)
        np.testing.assert_allclose(hat.g, whole.g, atol=1e-5)
    order = np.array([4, 0, 5, 2, 1, 3])
    hat = run(plan.part(order, [0]), SHORT, resources=QUICK)
    np.testing.assert_allclose(hat.m, whole.m[:, :, order], atol=1e-5)
    hat = run(plan.part(np.array([4, 5]), [0]), SHORT, resources=QUICK)  # nothing is subtracted
    np.testing.assert_allclose(hat.m, whole.m[:, :, 4:], atol=1e-5)


def test_shards_hold_no_more_than_they_need(plan):
    part = engine_shared.Shared(plan, SHORT).of(np.array([1, 4]))
    assert part.base.shape == (2, 2, 200)
    assert part.trunk.own.shape == (1, 200)  # one of the two treatments is no column of X
    assert part.base.dtype == part.trunk.own.dtype == np.float32
    # A problem with a trunk is as large for 5000 columns as for 500.
    fold, sizes = plan.folds[0], Sizes()
    wide = bytes_of_problem(fold, 5000, sizes, 16)
    assert bytes_of_problem(fold, n_projections(plan), sizes, 16) < wide / 5


@pytest.mark.parametrize("memory", [1.0, 1e-3])
def test_each_fold_is_factored_once(plan, monkeypatch, memory):
    made = []
    fit = engine_start.WideFit
    monkeypatch.setattr(
        engine_start, "WideFit", lambda plan, k, *a: made.append(k) or fit(plan, k, *a)
    )
    run(plan, replace(SHORT, trunk=False), resources=replace(QUICK, memory=memory))
    assert made == [0, 1, 2]


def test_base_of_a_large_offset_keeps_its_digits(plan):
    """Starts are relative to the means of the targets, so that single precision is enough."""
    numbers = np.arange(30) != 3
    moved = replace(plan, X=plan.X + 1e8 * numbers, T=plan.T + 1e8 * ~plan.binary_T, Y=plan.Y - 1e9)
    bases = [RidgeStart(p, 1.0).of(np.arange(plan.n_problems)) for p in (plan, moved)]
    np.testing.assert_allclose(*bases, atol=1e-4)


@pytest.fixture(scope="module")
def wide():
    """More columns than rows, most of them 0, and a label that some of them change."""
    rng = np.random.RandomState(0)
    X = (rng.random_sample((200, 220)) < 0.1).astype(float)
    X[:, :40] = rng.standard_normal((200, 40)) + rng.standard_normal((200, 1))
    index = X[:, :4].sum(1) - X[:, 4:8].sum(1) + X[:, 100:110].sum(1) - 1
    return X, rng.binomial(1, expit(index))


def test_effects_agree_with_separate_encoders(wide):
    tables = [
        CausalFeatureSelector(
            5, nuisance=shrunken_network().set_params(trunk=trunk), random_state=0
        ).fit(*wide)
        for trunk in (True, False)
    ]
    a, b = (s.effects_["std_effect"] for s in tables)
    assert spearmanr(a, b)[0] > 0.9
    low, high = (np.array([s.conf_int()[side] for s in tables]) for side in ("low", "high"))
    assert np.mean(low.max(0) <= high.min(0)) > 0.95
    assert np.abs(a - b).max() > 0  # another first layer


def test_without_shrinkage_the_trunk_learns_what_is_not_linear():
    """An interaction of common factors confounds; ridge regressions miss it."""
    rng = np.random.RandomState(0)
    factors = rng.standard_normal((800, 2))
    X = factors @ rng.standard_normal((2, 60)) + 0.5 * rng.standard_normal((800, 60))
    bend = factors[:, 0] * factors[:, 1]
    t = bend + rng.standard_normal(800)
    y = t + 2 * bend + rng.standard_normal(800)
    plan = make_plan(
        X, y[:, None], np.random.RandomState(0), treatments=t[:, None], binary_T=[False], n_folds=3
    )
    found = []
    for nuisance in (Ridge(), Network(gates=False, trunk=True, lambda_dis=0.0, epochs=25)):
        hat = nuisance.predict(plan, resources=QUICK).of()
        v, e = t - hat.m, y - hat.g
        found.append(v @ e / (v @ v) - 1)
    assert found[0] > 0.8  # the bias that stays if nothing is learned
    assert abs(found[1]) < 0.35


def test_auto_is_for_wide_sweeps():
    rng = np.random.RandomState(0)
    for D, found in ((WIDE, False), (WIDE + 1, True)):
        X = rng.standard_normal((20, D))
        plan = make_plan(X, X[:, :1], rng, binary_T=[False] * D, n_folds=2)
        assert shrunken_network().settings_for(plan, QUICK).trunk is found
        assert not shrunken_network().settings_for(plan).trunk  # roles are asked for
        assert not Network().settings_for(plan, QUICK).trunk  # has gates
        assert not shrunken_network().set_params(trunk=False).settings_for(plan, QUICK).trunk


def test_forests_read_the_latents_of_a_trunk(plan):
    network = shrunken_network().set_params(trunk=True)
    hat = Forest(network=network).predict(plan.part([0, 5], [0]), resources=QUICK)
    assert np.isfinite(hat.m).all()
    assert np.isfinite(hat.g).all()


def test_what_a_trunk_cannot_do_raises(wide):
    X, y = wide
    for network, text in (
        (Network(trunk=True), "trunk=True is not for gates"),
        (Network(trunk="yes"), "trunk must be one of"),
    ):
        with pytest.raises(ValueError, match=text):
            CausalFeatureSelector(5, nuisance=network).fit(X, y)
    with pytest.raises(ValueError, match="trunk=True is for sweeps"):
        DDML(Network(gates=False, trunk=True)).fit(X[:, :5], X[:, 6], treatment=X[:, 7])
