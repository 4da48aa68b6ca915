"""The same seed gives the same effects, whatever the workers, the devices and the order of rows."""

from dataclasses import replace

import numpy as np
import pytest

from ddml_fs import DDML, CausalFeatureSelector, ShiftAudit
from ddml_fs.datasets import make_domain_data, make_effect_data
from ddml_fs.engine.folds import Fold
from ddml_fs.engine.plan import make_plan
from ddml_fs.engine.resources import Resources
from ddml_fs.nuisances import Network, resolve_nuisance
from ddml_fs.scores import PartiallyLinear

NETWORK = Network(epochs=3)


@pytest.fixture(scope="module")
def data():
    return make_effect_data("continuous", n_samples=160, n_features=10, random_state=0)


@pytest.fixture(scope="module")
def domains():
    return make_domain_data(n_samples=120, n_causal=3, n_spurious=2, n_noise=3, random_state=0)


def effect(data, nuisance, columns=slice(None), **options):
    model = DDML(nuisance, random_state=0, **options)
    model.fit(data.X[:, columns], data.y, treatment=data.treatment)
    return np.array([model.effect_, model.stderr_])


@pytest.mark.parametrize("nuisance", [NETWORK, "gp"], ids=["mlp", "gp"])
def test_workers_and_devices(data, nuisance):
    """Repeated splits are several problems, so that there is something to share."""
    first = effect(data, nuisance, n_repeats=2)
    assert np.array_equal(first, effect(data, nuisance, n_repeats=2))
    for options in ({"n_jobs": 1}, {"n_jobs": 2}, {"device": ["cpu", "cpu"]}):
        again = effect(data, nuisance, n_repeats=2, **options)
        np.testing.assert_allclose(again, first, rtol=1e-9)


@pytest.mark.parametrize(
    "options",
    [{"n_jobs": 2}, {"memory_budget": 0.004}],
    ids=["workers", "shards"],
)
def test_sweeps(domains, options):
    """Problems in other shards are other matrix products: equal up to rounding.

    Lists of devices are in ``test_sweep.py``.
    """
    d = domains
    first, again = (
        CausalFeatureSelector(3, nuisance=Network(epochs=2), random_state=0, **given).fit(
            d.X, d.y, sample_domain=d.sample_domain
        )
        for given in ({}, options)
    )
    for column in ("effect", "stderr", "score"):
        np.testing.assert_allclose(again.effects_[column], first.effects_[column], atol=1e-5)
    assert np.array_equal(again.support_, first.support_)


@pytest.mark.parametrize("kind", [CausalFeatureSelector, ShiftAudit])
def test_estimators_with_default_settings(domains, kind):
    d = domains
    tables = []
    for n_jobs in (1, 2):
        model = kind(random_state=0, n_jobs=n_jobs).fit(d.X, d.y, sample_domain=d.sample_domain)
        table = model.effects_ if kind is CausalFeatureSelector else model.features_
        tables.append(table.select_dtypes("number").to_numpy(dtype=float))
    np.testing.assert_allclose(tables[1], tables[0], rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("nuisance", ["ridge", "smooth", "gp", NETWORK], ids=str)
def test_order_of_rows_with_the_same_folds(data, nuisance):
    rng = np.random.RandomState(0)
    T, y = data.treatment[:, None], data.y[:, None]
    plan = make_plan(data.X, y, rng, treatments=T, binary_T=[False], n_folds=3)
    order = rng.permutation(len(y))
    place = np.argsort(order)  # where each row has gone
    folds = [Fold(place[f.fit], place[f.valid], place[f.hold], f.seed) for f in plan.folds]
    mixed = replace(plan, X=data.X[order], T=T[order], Y=y[order], folds=folds)
    found = []
    for given in (plan, mixed):
        hat = resolve_nuisance(nuisance).predict(given, arms=False, resources=Resources()).of(0)
        found.append(PartiallyLinear().moments(given.T[:, 0], given.Y[:, 0], hat).theta)
    assert found[1] == pytest.approx(found[0], rel=1e-5)


def test_order_of_rows_changes_the_folds(data):
    """Folds are drawn by position: another order is another split, and no other conclusion."""
    order = np.random.default_rng(0).permutation(len(data.y))
    theta, stderr = effect(data, "smooth")
    model = DDML("smooth", random_state=0)
    model.fit(data.X[order], data.y[order], treatment=data.treatment[order])
    assert model.effect_ != theta
    assert abs(model.effect_ - theta) < 2 * stderr


@pytest.mark.parametrize("nuisance", ["ridge", "gp"])
def test_order_of_columns(data, nuisance):
    """Models without random weights of the columns do not depend on it."""
    columns = np.random.default_rng(0).permutation(data.X.shape[1])
    again = effect(data, nuisance, columns)
    np.testing.assert_allclose(again, effect(data, nuisance), rtol=1e-4)
