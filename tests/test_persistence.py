"""Saved estimators: small, with the version that saved them, by pickle and by skops."""

import copy
import json
import pickle
import warnings
from importlib.metadata import version

import numpy as np
import pandas as pd
import pytest
import skops.io
from make_fixtures import FOLDER, fitted, said_by, table

from ddml_fs import DDML, CausalFeatureSelector
from ddml_fs.persistence import InconsistentVersionWarning, PlainTable
from ddml_fs.version import __version__

NAMES = ["effect", "selector", "classifier", "audit"]
# All types that skops has to be told to trust.
TRUSTED = {
    "effect": [
        "ddml_fs.effect.DDML",
        "ddml_fs.engine.solve.Encoder",
        "ddml_fs.features.Encoding",
        "ddml_fs.nuisances.network.Network",
        "ddml_fs.persistence.PlainTable",
        "ddml_fs.readers.Reader",
        "ddml_fs.sensitivity.Elements",
    ],
    "selector": [
        "ddml_fs.features.Encoding",
        "ddml_fs.persistence.PlainTable",
        "ddml_fs.readers.Reader",
        "ddml_fs.selector.CausalFeatureSelector",
    ],
    "classifier": [
        "ddml_fs.classifier.EffectClassifier",
        "ddml_fs.features.Encoding",
        "ddml_fs.readers.Reader",
    ],
    "audit": [
        "ddml_fs.audit.estimator.ShiftAudit",
        "ddml_fs.audit.forecast.Quality",
        "ddml_fs.features.Encoding",
        "ddml_fs.persistence.PlainTable",
        "ddml_fs.readers.Reader",
        "ddml_fs.selector.CausalFeatureSelector",
    ],
}


@pytest.fixture(scope="module")
def models():
    return fitted()


def assert_same(first, second):
    """The same learned attributes, tables included."""
    assert vars(first).keys() == vars(second).keys()
    for name, value in vars(first).items():
        if isinstance(value, pd.DataFrame):
            pd.testing.assert_frame_equal(value, vars(second)[name])
        elif isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, vars(second)[name])


@pytest.mark.parametrize("name", NAMES)
def test_round_trips(models, name):
    model = models[name]
    by_skops = skops.io.dumps(model)
    assert skops.io.get_untrusted_types(data=by_skops) == TRUSTED[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
        again.append(skops.io.loads(by_skops, trusted=TRUSTED[name]))
    for other in again:
        assert_same(model, other)
        assert said_by(name, other) == said_by(name, model)


@pytest.mark.parametrize("name", NAMES)
def test_files_of_the_fixtures(name):
    """What was saved when the fixtures were made says the same today."""
    said = json.loads((FOLDER / "said.json").read_text())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = pickle.loads((FOLDER / f"{name}.pkl").read_bytes())
    found = [w for w in caught if w.category is InconsistentVersionWarning]
    assert bool(found) == (said["version"] != __version__)
    for part, expected in zip(said_by(name, model), said[name], strict=True):
        np.testing.assert_allclose(part, expected, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_another_version_warns(models, name):
    state = models[name].__getstate__()
    assert state["_ddml_fs_version"] == __version__ == version("ddml-fs")
    model = type(models[name]).__new__(type(models[name]))
    with pytest.warns(InconsistentVersionWarning, match=r"was saved by ddml_fs 0\.0\.1") as caught:
        model.__setstate__(state | {"_ddml_fs_version": "0.0.1"})
    (warning,) = (w.message for w in caught)
    assert warning.estimator_name == type(model).__name__
    assert (warning.original_version, warning.current_version) == ("0.0.1", __version__)
    assert not hasattr(model, "_ddml_fs_version")
    assert_same(models[name], model)
    del state["_ddml_fs_version"]
    with pytest.warns(InconsistentVersionWarning, match="an unknown version"):
        model.__setstate__(state)


def test_pickles_do_not_hold_the_data():
    """An effect keeps a few numbers per row, a selector none; neither keeps a table."""
    rng = np.random.default_rng(0)
    X, t = rng.standard_normal((400, 50)), rng.standard_normal(400)
    y = X[:, 0] + t + rng.standard_normal(400)
    effect = DDML("ridge", random_state=0).fit(X, y, treatment=t)
    assert len(pickle.dumps(effect)) < 200 * len(y) < X.nbytes
    sizes = []
    for n in (100, 400):
        selector = CausalFeatureSelector(3, nuisance="ridge", random_state=0)
        sizes.append(len(pickle.dumps(selector.fit(X[:n], y[:n] > 0))))
    assert sizes[1] < 1.1 * sizes[0]


INDICES = {
    "range": pd.RangeIndex(2, 8, 2, name="row"),
    "text": pd.Index(["a", "b", "c"], name="who"),
    "numbers": pd.Index([4, 2, 9]),
    "dates": pd.date_range("2024-01-01", periods=3).rename("day"),
    "two levels": pd.MultiIndex.from_arrays([["a", "a", "b"], [1, 2, 1]], names=["unit", "time"]),
}


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_plain_tables(index):
    columns = {
        "x": [0.5, np.nan, 2],
        "n": [1, 2, 3],
        "b": [True, False, True],
        "s": ["a", None, ""],
    }
    frame = pd.DataFrame(columns, index=index)
    pd.testing.assert_frame_equal(PlainTable.of(frame).table(), frame, check_freq=False)


def test_tables_that_stay_as_they_are():
    """Types with a meaning of their own are left to pandas."""
    assert PlainTable.of(pd.DataFrame({"a": pd.Categorical(["x", "y"])})) is None
    assert PlainTable.of(pd.DataFrame({"a": [1, 2]}, index=pd.interval_range(0, 2))) is None


def test_effects_keep_the_index_of_the_rows():
    X, y, treated, *_ = table()
    X.index = pd.date_range("2024-01-01", periods=len(X), tz="UTC")
    model = DDML("ridge", n_folds=2, random_state=0).fit(X, y, treatment=treated)
    assert_same(model, pickle.loads(pickle.dumps(model)))
    assert model.residuals_.index.equals(X.index)
