"""How problems are packed, and what they may see."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from ddml_fs.datasets import make_effect_data
from ddml_fs.engine.folds import make_folds
from ddml_fs.engine.memory import make_ceiling
from ddml_fs.engine.network import RoleNetwork, Sizes
from ddml_fs.engine.objective import OUTCOMES, LossSettings, Objective
from ddml_fs.engine.plan import batch_size_for, group_by_shape, make_plan, make_shards
from ddml_fs.engine.predictions import Predictions
from ddml_fs.engine.rdo import ORTHOGONALITY
from ddml_fs.engine.resources import Resources
from ddml_fs.engine.run import run
from ddml_fs.engine.solve import Settings, column_rises
from ddml_fs.engine.stack import Stack, scales_by_fold
from ddml_fs.engine.train import FlatAdamW, Schedule, training_step
from ddml_fs.scores import residual_on_residual, residuals

SHORT = replace(Settings(), final=Schedule(epochs=12, peak=2e-2))
COLUMNS = (0, 3, 7)


def plan_of(X, T, y, own, binary, n_folds=3):
    return make_plan(
        X,
        y[:, None],
        np.random.RandomState(0),
        treatments=T,
        own=own,
        binary_T=binary,
        n_folds=n_folds,
    )


@pytest.fixture(scope="module")
def mixed():
    """X with a binary column 3, and a plan whose treatments are three columns and one beside X."""
    data = make_effect_data("binary", n_samples=600, n_features=10, random_state=1)
    X = data.X.copy()
    X[:, 3] = X[:, 3] > 0
    T = np.column_stack([X[:, COLUMNS], data.treatment])
    return plan_of(X, T, data.y, [*COLUMNS, -1], [False, True, False, True])


def stack_of(plan, members=None, **options):
    members = np.arange(plan.n_problems) if members is None else members
    X = torch.as_tensor(plan.X).to(options.get("dtype", torch.float32))
    return Stack(plan, members, X, **options)


def effects(plan, predictions):
    """One effect per fold and treatment, from the held-out rows."""
    out = np.empty((len(plan.folds), plan.T.shape[1]))
    for k, fold in enumerate(plan.folds):
        for f in range(plan.T.shape[1]):
            hat, rows = predictions.of(f=f), fold.hold
            v, e = residuals(plan.T[rows, f], hat.m[rows], plan.Y[rows, 0], hat.g[rows])
            out[k, f] = residual_on_residual(v, e)
    return out


def test_packing_does_not_change_effects(mixed):
    together = effects(mixed, run(mixed, SHORT))
    small = Resources(memory=0.004)  # one treatment per shard
    shard = make_ceiling(mixed, SHORT, small.memory, detail=True).shard
    assert len(make_shards(mixed, SHORT.sizes, memory=shard / 1e9, detail=True)) == 4
    np.testing.assert_allclose(
        together, effects(mixed, run(mixed, SHORT, resources=small)), atol=1e-4
    )
    order = np.array([2, 0, 3, 1])
    shuffled = mixed.part(order, [0])
    np.testing.assert_allclose(
        together[:, order], effects(shuffled, run(shuffled, SHORT)), atol=1e-4
    )
    one = mixed.part([1], [0])
    np.testing.assert_allclose(together[:, [1]], effects(one, run(one, SHORT)), atol=1e-4)


def test_own_column_is_no_covariate(mixed):
    predictions = run(mixed, SHORT)
    summary = predictions.networks[0]
    assert not summary.keep[0]
    assert summary.rise[0].max() == 0
    # A column that equals the treatment is predicted perfectly if it leaks: it must not be.
    rows = mixed.folds[0].hold
    T = mixed.X[rows, 0]
    assert np.mean((T - predictions.of(f=0).m[rows]) ** 2) > 0.2 * np.var(T)


@pytest.mark.parametrize("part", ["hold", "valid"])
def test_held_out_rows_are_never_seen(mixed, part):
    """Changing rows outside the training changes neither the scaling nor the trained weights."""
    rows = getattr(mixed.folds[0], part)
    other_X, other_y, other_t = mixed.X.copy(), mixed.Y[:, 0].copy(), mixed.T[:, 3].copy()
    other_X[rows] += 5.0
    other_y[rows] -= 7.0
    other_t[rows] = 1 - other_t[rows]
    weights = []
    for x, y, t in ((mixed.X, mixed.Y[:, 0], mixed.T[:, 3]), (other_X, other_y, other_t)):
        stack = stack_of(plan_of(x, t[:, None], y, [-1], [True]), [0], dtype=torch.float64)
        net = RoleNetwork(stack, Sizes())
        objective = Objective(net, stack, Sizes(), LossSettings())
        optimizer = FlatAdamW(net, 0.01)
        for batch in stack.epoch(stack.generators()):
            training_step(net, objective, optimizer, batch, 1e-2)
        weights.append(net.W_1.detach().clone())
    torch.testing.assert_close(*weights, rtol=0, atol=1e-12)


def test_predictions_of_hold_do_not_depend_on_their_outcomes(mixed):
    hold = mixed.folds[0].hold
    y, t = mixed.Y[:, 0].copy(), mixed.T[:, 3].copy()
    y[hold], t[hold] = 100.0, 1.0
    exact = replace(SHORT, dtype=torch.float64)
    plans = (
        plan_of(mixed.X, a[:, None], b, [-1], [True])
        for a, b in ((mixed.T[:, 3], mixed.Y[:, 0]), (t, y))
    )
    plain, changed = (run(plan, exact).of() for plan in plans)
    np.testing.assert_allclose(plain.m[hold], changed.m[hold], atol=1e-9)
    np.testing.assert_allclose(plain.g[hold], changed.g[hold], atol=1e-9)


def test_problems_of_a_fold_share_rows_and_vectors(mixed):
    assert group_by_shape(mixed) == [[0, 1, 2]]
    stack = stack_of(mixed)
    assert (stack.G, stack.p, stack.P) == (3, 4, 12)
    assert stack.T.shape == (4, 600)  # three columns and one vector, each held once
    assert stack.Y.shape == (1, 600)
    assert next(stack.epoch(stack.generators())).x.shape == (3, stack.B, 10)


def test_unequal_folds_go_to_separate_stacks(mixed):
    folds = mixed.folds + make_folds(600, 10, np.random.RandomState(0))
    groups = group_by_shape(replace(mixed, folds=folds))
    assert sorted(k for group in groups for k in group) == list(range(13))
    for group in groups:
        sizes = {len(folds[k].fit) for k in group}
        assert len({(batch_size_for(n), n // batch_size_for(n)) for n in sizes}) == 1


@pytest.mark.parametrize("offset", [1e8, 1.7e12])
def test_offsets_do_not_drown_what_varies(mixed, offset):
    """Covariates, treatment and outcome with an offset that single precision cannot hold."""
    moved = plan_of(
        mixed.X + offset,
        mixed.T[:, :1] + offset,
        mixed.Y[:, 0] + offset,
        [0],
        [False],
    )
    plain = mixed.part([0], [0])
    hats = [run(plan, SHORT).of() for plan in (plain, moved)]
    # What is left is the rounding of the offset itself in double precision.
    np.testing.assert_allclose(hats[1].m - offset, hats[0].m, atol=0.02)
    np.testing.assert_allclose(hats[1].g - offset, hats[0].g, atol=0.1)


@pytest.mark.parametrize("form", ORTHOGONALITY)
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_training_step_runs_on_meta(mixed, form, outcome):
    """No value of a tensor is read and none is tied to the CPU, or this would raise."""
    stack = stack_of(mixed, device="meta")
    net = RoleNetwork(stack, Sizes())
    objective = Objective(net, stack, Sizes(), LossSettings(outcome, 0.1, 0.1, form))
    optimizer = FlatAdamW(net, 0.01)
    batch = stack.batch(torch.zeros(stack.G, stack.B, dtype=torch.long))
    training_step(net, objective, optimizer, batch, 1e-2, torch.ones(3, device="meta"))
    assert {w.device.type for w in net.parameters()} == {"meta"}
    assert {state.device.type for state in optimizer.mean + optimizer.square} == {"meta"}


def test_each_problem_stops_on_its_own(mixed):
    """A problem that cannot be learned keeps an early epoch, whatever its neighbours do."""
    noise = np.random.RandomState(5).standard_normal(600)
    T = np.column_stack([mixed.T[:, 3], noise])
    plan = make_plan(
        mixed.X,
        np.column_stack([mixed.Y[:, 0], noise[::-1]]),
        np.random.RandomState(0),
        treatments=T,
        binary_T=[True, False],
        n_folds=3,
    )
    predictions, hold = run(plan, SHORT), plan.folds[0].hold
    y = mixed.Y[hold, 0]
    assert np.mean((y - predictions.of(c=0, f=0).g[hold]) ** 2) < 0.6 * np.var(y)
    hopeless = predictions.of(c=1, f=1).m[hold]
    assert np.mean((noise[hold] - hopeless) ** 2) < 1.25 * np.var(noise[hold])


def test_flat_adamw_equals_torch(mixed):
    """With gradients that are set to zero outside the masks, which here happens by hooks."""
    nets = []
    for flat in (True, False):
        stack = stack_of(mixed, dtype=torch.float64)
        net = RoleNetwork(stack, Sizes())
        objective = Objective(net, stack, Sizes(), LossSettings(lambda_dis=0.1))
        twin = None if flat else torch.optim.AdamW(net.parameters(), weight_decay=0.05)
        optimizer = FlatAdamW(net, 0.05) if flat else None
        for module in () if flat else (net, net.Psi):
            for name, mask in module.masks.items():
                module.get_parameter(name).register_hook(lambda g, mask=mask: g * mask)
        for i, batch in enumerate(stack.epoch(stack.generators())):
            rate = 1e-2 / (1 + i)
            if flat:
                training_step(net, objective, optimizer, batch, rate)
            else:
                twin.zero_grad()
                objective(batch).sum().backward()
                twin.param_groups[0]["lr"] = rate
                twin.step()
        nets.append(net.state_dict())
    for name, value in nets[0].items():
        torch.testing.assert_close(value, nets[1][name], rtol=0, atol=1e-10)


def test_rises_are_those_of_networks_without_the_column(mixed):
    """The rank-one correction equals rows of the first layer set to zero."""
    stack = stack_of(mixed, dtype=torch.float64)
    net = RoleNetwork(stack, Sizes())
    objective = Objective(net, stack, Sizes(), LossSettings())
    rise = column_rises(net, objective, stack)
    rows, weight = stack.rows("hold")
    batch = stack.batch(rows)
    with torch.no_grad():
        before = torch.stack(objective.errors(batch))
        net.W_1[:, 4] = 0
        after = torch.stack(objective.errors(batch))
    torch.testing.assert_close(rise[4], (after - before) * weight, rtol=0, atol=1e-10)


def test_scales_equal_those_of_each_fold():
    """Also of columns that are constant in a fold, or vary little beside their mean."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((90, 70))
    X[:, 1], X[:, 2], X[:, 3] = 7.0, 5 + 1e-7 * X[:, 2], np.arange(90) < 1
    X[4, 65] = 1e9
    folds = make_folds(90, 3, rng)
    assert any(not X[fold.fit, 3].any() for fold in folds)
    for fold, (mean, sd) in zip(folds, scales_by_fold(X, folds), strict=True):
        rows = X[fold.fit]
        slow = np.where(np.ptp(rows, axis=0) > 0, rows.std(0, ddof=1), 1.0)
        np.testing.assert_allclose(mean, rows.mean(0), rtol=1e-8, atol=1e-14)
        np.testing.assert_allclose(sd, slow, rtol=1e-8)


def test_predictions_of_many_problems_are_put_as_one_by_one():
    rng = np.random.RandomState(0)
    X, Y = rng.standard_normal((23, 4)), rng.standard_normal((23, 2))
    plan = make_plan(X, Y, rng, binary_T=np.zeros(4, bool), n_folds=3, n_repeats=2)
    problems = rng.permutation(plan.n_problems)
    n = max(len(fold.hold) for fold in plan.folds)
    values = rng.standard_normal((2, len(problems), n))
    at_once, one_by_one = (Predictions.empty(plan, arms=False) for _ in range(2))
    at_once.put(plan, problems, values)
    for i, own in zip(problems, values.transpose(1, 0, 2), strict=True):
        one_by_one.put(plan, i, own[:, : len(plan.folds[plan.problem(i)[0]].hold)])
    np.testing.assert_array_equal(at_once.m, one_by_one.m)
    np.testing.assert_array_equal(at_once.g, one_by_one.g)
