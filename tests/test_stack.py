"""How problems are packed, and what they may see."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from ddml_fs.datasets import make_effect_data
from ddml_fs.engine.losses import ORTHOGONALITY, residual_on_residual, residuals
from ddml_fs.engine.network import Network, Sizes
from ddml_fs.engine.objective import OUTCOMES, Objective, Weights
from ddml_fs.engine.plan import Problem, batch_size_for, group_by_shape, make_folds
from ddml_fs.engine.run import Settings, run
from ddml_fs.engine.stack import Stack
from ddml_fs.engine.train import FlatAdamW, Schedule, training_step

SHORT = replace(Settings(), final=Schedule(epochs=12, peak=2e-2))


@pytest.fixture(scope="module")
def mixed():
    """X with a binary column 3, an outcome, and problems that take columns and a vector in turn."""
    data = make_effect_data("binary", n_samples=600, n_features=10, random_state=1)
    X = data.X.copy()
    X[:, 3] = X[:, 3] > 0
    folds = make_folds(600, 3, np.random.RandomState(0))
    problems = []
    for k, fold in enumerate(folds):
        for j in (0, 3, 7):
            problems.append(Problem(fold, j, data.y, j == 3, seed=10 * k + j))
        problems.append(Problem(fold, data.treatment, data.y, True, seed=10 * k + 9))
    return X, data, problems


def effects(X, problems, solutions):
    """One effect a problem, from its held-out rows."""
    out = []
    for problem, solution in zip(problems, solutions, strict=True):
        rows = problem.fold.hold
        t = problem.treatment
        T = t[rows] if isinstance(t, np.ndarray) else X[rows, t]
        v, e = residuals(T, solution.m, problem.outcome[rows], solution.g)
        out.append(residual_on_residual(v, e))
    return np.array(out)


def test_packing_does_not_change_effects(mixed):
    X, _, problems = mixed
    together = effects(X, problems, run(problems, X, SHORT))
    one_by_one = [s for p in problems for s in run([p], X, SHORT)]
    np.testing.assert_allclose(together, effects(X, problems, one_by_one), atol=1e-4)
    order = np.random.RandomState(0).permutation(len(problems))
    shuffled = run([problems[i] for i in order], X, SHORT)
    back = [shuffled[i] for i in np.argsort(order)]
    np.testing.assert_allclose(together, effects(X, problems, back), atol=1e-4)


def test_own_column_is_no_covariate(mixed):
    X, _, problems = mixed
    solution = run([problems[0]], X, SHORT)[0]
    assert not solution.detail.keep[0]
    assert solution.detail.strength[0].max() == 0
    # A column that equals the treatment is predicted perfectly if it leaks: it must not be.
    T = X[problems[0].fold.hold, 0]
    assert np.mean((T - solution.m) ** 2) > 0.2 * np.var(T)


@pytest.mark.parametrize("part", ["hold", "valid"])
def test_held_out_rows_are_never_seen(mixed, part):
    """Changing rows outside the training changes neither the scaling nor the trained weights."""
    X, data, _ = mixed
    fold = make_folds(600, 3, np.random.RandomState(0))[0]
    rows = getattr(fold, part)
    other_X, other_y, other_t = X.copy(), data.y.copy(), data.treatment.copy()
    other_X[rows] += 5.0
    other_y[rows] -= 7.0
    other_t[rows] = 1 - other_t[rows]
    weights = []
    for x, y, t in ((X, data.y, data.treatment), (other_X, other_y, other_t)):
        stack = Stack([Problem(fold, t, y, True, 0)], torch.as_tensor(x).float())
        net = Network(stack, stack.keep, Sizes())
        objective = Objective(net, stack, Sizes(), Weights())
        optimizer = FlatAdamW(net, 0.01)
        for batch in stack.epoch(stack.generators()):
            training_step(net, objective, optimizer, batch, 1e-2)
        weights.append(net.W_1.detach().clone())
    assert torch.equal(*weights)


def test_predictions_of_hold_do_not_depend_on_their_outcomes(mixed):
    X, data, _ = mixed
    fold = make_folds(600, 3, np.random.RandomState(0))[0]
    y, t = data.y.copy(), data.treatment.copy()
    y[fold.hold], t[fold.hold] = 100.0, 1.0
    plain = run([Problem(fold, data.treatment, data.y, True, 0)], X, SHORT)[0]
    changed = run([Problem(fold, t, y, True, 0)], X, SHORT)[0]
    np.testing.assert_array_equal(plain.m, changed.m)
    np.testing.assert_array_equal(plain.g, changed.g)


def test_problems_of_a_fold_share_rows_and_vectors(mixed):
    X, _, problems = mixed
    assert [len(s) for s in group_by_shape(problems)] == [12]
    stack = Stack(problems, torch.as_tensor(X).float())
    assert (stack.G, stack.p, stack.P) == (3, 4, 12)
    assert stack.T.shape == (4, 600)  # three columns and one vector, each held once
    assert stack.Y.shape == (1, 600)
    assert next(stack.epoch(stack.generators())).x.shape == (3, stack.B, 10)


def test_unequal_folds_go_to_separate_stacks(mixed):
    _, data, _ = mixed
    folds = make_folds(600, 3, np.random.RandomState(0)) + make_folds(
        600, 10, np.random.RandomState(0)
    )
    problems = [Problem(f, data.treatment, data.y, True, i) for i, f in enumerate(folds)]
    groups = group_by_shape(problems)
    assert sorted(i for g in groups for i in g) == list(range(13))
    for group in groups:
        sizes = {len(problems[i].fold.fit) for i in group}
        assert len({(batch_size_for(n), n // batch_size_for(n)) for n in sizes}) == 1


@pytest.mark.parametrize("form", ORTHOGONALITY)
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_training_step_runs_on_meta(mixed, form, outcome):
    """No value of a tensor is read and none is tied to the CPU, or this would raise."""
    X, _, problems = mixed
    stack = Stack(problems, torch.as_tensor(X).float(), device="meta")
    net = Network(stack, stack.keep, Sizes())
    objective = Objective(net, stack, Sizes(), Weights(outcome, 0.1, 0.1, form))
    optimizer = FlatAdamW(net, 0.01)
    batch = stack.batch(torch.zeros(stack.G, stack.B, dtype=torch.long))
    training_step(net, objective, optimizer, batch, 1e-2, torch.ones(3, device="meta"))
    assert {w.device.type for w in net.parameters()} == {"meta"}
    assert net.W_1.grad.shape == net.W_1.shape


def test_each_problem_stops_on_its_own(mixed):
    """A problem that cannot be learned keeps an early epoch, whatever its neighbours do."""
    X, data, _ = mixed
    fold = make_folds(600, 3, np.random.RandomState(0))[0]
    noise = np.random.RandomState(5).standard_normal(600)
    learnable = Problem(fold, data.treatment, data.y, True, 1)
    hopeless = Problem(fold, noise, noise[::-1].copy(), False, 2)
    solutions = run([learnable, hopeless], X, SHORT)
    hold = fold.hold
    assert np.mean((data.y[hold] - solutions[0].g) ** 2) < 0.6 * np.var(data.y[hold])
    assert np.mean((noise[hold] - solutions[1].m) ** 2) < 1.25 * np.var(noise[hold])


def test_flat_adamw_equals_torch(mixed):
    X, _, problems = mixed
    nets = []
    for flat in (True, False):
        stack = Stack(problems, torch.as_tensor(X), dtype=torch.float64)
        net = Network(stack, stack.keep, Sizes())
        objective = Objective(net, stack, Sizes(), Weights(lambda_dis=0.1))
        twin = None if flat else torch.optim.AdamW(net.parameters(), weight_decay=0.05)
        optimizer = FlatAdamW(net, 0.05) if flat else None
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
