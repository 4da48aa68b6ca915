"""Small forests for many problems at once: they are plain trees, and as good as scikit-learn's."""

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from ddml_fs import CausalFeatureSelector
from ddml_fs.engine import forest, latents
from ddml_fs.engine.forest import ForestSettings, bin_inputs, draw_trees, predict_forests
from ddml_fs.engine.plan import make_plan
from ddml_fs.engine.resources import Resources
from ddml_fs.nuisances import resolve_nuisance


def plain_tree(codes, y, new, candidates, settings):
    """One tree, node by node: the split with the lowest sum of squares, the first one of equals."""
    out = np.full(len(new), y.mean())
    best, where = 1e-9, None
    for j in candidates[0]:
        for cut in range(settings.n_bins):
            left = codes[:, j] <= cut
            if min(left.sum(), (~left).sum()) < settings.min_leaf:
                continue
            squares = sum(((y[s] - y[s].mean()) ** 2).sum() for s in (left, ~left))
            gain = ((y - y.mean()) ** 2).sum() - squares
            if gain > best + 1e-9:
                best, where = gain, (j, cut)
    if where is None or len(candidates) == 1:
        return out
    j, cut = where
    for side in (True, False):
        rows, own = (codes[:, j] <= cut) == side, (new[:, j] <= cut) == side
        out[own] = plain_tree(codes[rows], y[rows], new[own], candidates[1:], settings)
    return out


@pytest.mark.parametrize("max_depth", [2, 12])
def test_all_trees_are_plain_trees(max_depth):
    torch.manual_seed(0)
    settings = ForestSettings(3, 4, 0.5, 0.8, n_bins=8, max_depth=max_depth)
    x, x_new = (torch.randn(2, n, 4, dtype=torch.float64) for n in (90, 30))
    y = x[..., 0] * x[..., 1] + 0.5 * torch.randn(2, 90, dtype=torch.float64)
    y[1] = (y[1] > 0).double()
    trees = draw_trees(settings, torch.ones(90), 4, seed=1)
    found = predict_forests(x, y, x_new, trees, settings)
    codes, new = (c.numpy() for c in bin_inputs(x, x_new, settings.n_bins))
    for i in range(2):
        twins = [
            plain_tree(codes[i, r], y[i].numpy()[r], new[i], trees.candidates[:, t], settings)
            for t, r in enumerate(trees.draws.numpy())
        ]
        assert len(np.unique(twins[0])) > max_depth // 2
        np.testing.assert_allclose(found[i], np.mean(twins, 0), atol=1e-9)


def test_bins_hold_equally_many_rows_and_equal_values_share_one():
    x = torch.cat([torch.randn(1, 640, 1), torch.randint(0, 2, (1, 640, 1))], -1)
    codes, new = bin_inputs(x, torch.tensor([[[-9.0, 0.0], [9.0, 1.0]]]), 32)
    assert (torch.bincount(codes[0, :, 0].int()) == 20).all()
    assert len(codes[0, :, 1].unique()) == 2
    assert new[0, :, 0].tolist() == [0, 31]
    assert new[0, :, 1].unique().tolist() == codes[0, :, 1].unique().tolist()


def test_rows_are_drawn_in_proportion_to_their_weights():
    weight = torch.tensor([0.0, 1.0, 3.0, 0.0]).repeat(100)
    draws = draw_trees(ForestSettings(n_trees=50), weight, 9, seed=0).draws
    assert draws.shape == (50, 120)
    share = torch.bincount(draws.flatten() % 4, minlength=4) / draws.numel()
    assert share[0] == share[3] == 0
    assert share[2].item() == pytest.approx(0.75, abs=4 * (0.75 * 0.25 / 6000) ** 0.5)


SURFACES = {
    "smooth": lambda x: x[..., 0] + np.sin(2 * x[..., 1]) + 0.5 * x[..., 0] * x[..., 2],
    "step": lambda x: (x[..., 0] > 0) + 2.0 * (x[..., 1] > 0.5) * (x[..., 2] < 0),
    "noise": lambda x: 0 * x[..., 0],
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("name", SURFACES)
def test_as_good_as_scikit_learns_forests(name, binary, weighted):
    """With the same settings. The weights say which rows count, in training and in the loss."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((4, 2000, 9)).astype("f")
    f = SURFACES[name](X)
    y = f + rng.standard_normal(f.shape)
    if binary:
        y = rng.uniform(size=f.shape) < 1 / (1 + np.exp(1 - 2 * f))
    y = y.astype("f")
    w = np.ones(2000)
    if weighted:
        w = rng.choice([0.25, 1.0, 4.0], 2000)
    settings = latents.RESIDUAL_FOREST
    x, target = torch.from_numpy(X), torch.from_numpy(y)
    trees = draw_trees(settings, torch.from_numpy(w[:1000]), 9, seed=0)
    ours = predict_forests(x[:, :1000], target[:, :1000], x[:, 1000:], trees, settings).numpy()
    options = {"n_estimators": settings.n_trees, "min_samples_leaf": settings.min_leaf}
    options |= {"max_features": settings.max_features, "max_samples": settings.max_samples}
    theirs = []
    for i in range(4):
        model = (RandomForestClassifier if binary else RandomForestRegressor)(**options)
        model.set_params(random_state=i).fit(X[i, :1000], y[i, :1000], sample_weight=w[:1000])
        new = X[i, 1000:]
        theirs.append(model.predict_proba(new)[:, 1] if binary else model.predict(new))
    loss = [
        np.average((y[:, 1000:] - p) ** 2, 1, w[1000:]).mean() for p in (ours, np.stack(theirs))
    ]
    assert loss[0] < 1.03 * loss[1]
    if name != "noise":
        constant = np.average((y[:, 1000:] - y.mean()) ** 2, 1, w[1000:]).mean()
        assert loss[0] < 0.95 * constant


def test_targets_without_variation_and_inputs_without_information():
    settings = ForestSettings(min_leaf=5)
    trees = draw_trees(settings, torch.ones(100), 3, seed=0)
    x, y = torch.ones(2, 100, 3), torch.randn(100)
    found = predict_forests(x, torch.stack([torch.full((100,), 0.3), y]), x, trees, settings)
    torch.testing.assert_close(found[0], torch.full((100,), 0.3))
    torch.testing.assert_close(found[1], y[trees.draws].mean().expand(100))


def test_the_size_of_the_pieces_has_no_effect(monkeypatch):
    torch.manual_seed(0)
    x, y, x_new = torch.randn(5, 200, 4), torch.randn(5, 200), torch.randn(5, 20, 4)
    settings = ForestSettings(min_leaf=5)
    trees = draw_trees(settings, torch.ones(200), 4, seed=0)
    whole = predict_forests(x, y, x_new, trees, settings)
    for rows in (1, 130, 1300):
        monkeypatch.setattr(forest, "ROWS_AT_ONCE", rows)
        torch.testing.assert_close(predict_forests(x, y, x_new, trees, settings), whole)


@pytest.fixture(scope="module")
def table():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((303, 6))
    X[:, 0] = X[:, 0] > 0
    return X, rng.binomial(1, 1 / (1 + np.exp(-2 * X[:, 0] - X[:, 1] + 1)))


def test_forests_of_a_sweep_do_not_depend_on_shards_or_workers(table, monkeypatch):
    """303 rows in 5 folds: not all folds have equally many rows."""
    X, y = table
    options = {"binary_T": [True] + [False] * 5, "label": True, "strata": y}
    plan = make_plan(X, y[:, None].astype(float), np.random.RandomState(0), **options)
    nuisance = resolve_nuisance("shrunken_rf")
    whole = nuisance.predict(plan).of(0, 0, slice(None))
    monkeypatch.setattr(latents, "PROBLEMS_AT_ONCE", 4)
    for resources in (Resources(memory=1e-3), Resources(n_jobs=2), Resources(memory=2e-3)):
        other = nuisance.predict(plan, resources=resources).of(0, 0, slice(None))
        np.testing.assert_allclose(other.m, whole.m, atol=1e-5)
        np.testing.assert_allclose(other.g, whole.g, atol=1e-5)


def test_forests_learn_the_residuals_of_a_network(table):
    """So the sweep differs from that with networks alone, but not by much."""
    X, y = table
    networks, forests = (
        CausalFeatureSelector(2, nuisance=name, random_state=0).fit(X, y).effects_
        for name in ("shrunken", "shrunken_rf")
    )
    gap = (networks["effect"] - forests["effect"]).abs()
    assert (gap > 0).all()
    assert (gap < networks["stderr"]).all()
