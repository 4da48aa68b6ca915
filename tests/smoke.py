"""A quick run of the public API, for the lowest supported versions (``make lowest``).

The file's name does not begin with ``test_``, so that ``make test`` does not collect it.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from ddml_fs import DDML, CausalFeatureSelector, EffectClassifier
from ddml_fs.cli import app
from ddml_fs.datasets import make_dense_effect_data, make_domain_data, make_effect_data

KINDS = ("binary", "continuous")


@pytest.fixture(scope="module")
def domain_data():
    return make_domain_data(
        n_domains=3, n_samples=400, n_causal=4, n_spurious=4, n_noise=8, random_state=0
    )


def assert_near(model, truth):
    """The effect is within five standard errors of the truth, and these are small."""
    assert 0 < model.stderr_ < 0.3
    assert abs(model.effect_ - truth) < 5 * model.stderr_


@pytest.mark.parametrize("kind", KINDS)
def test_ridge(kind):
    data = make_dense_effect_data(kind, n_samples=4000, n_features=10, random_state=0)
    model = DDML(nuisance="ridge", score="partially_linear", random_state=0)
    assert_near(model.fit(data.X, data.y, treatment=data.treatment), data.theta)


@pytest.mark.parametrize("kind", KINDS)
def test_mlp(kind):
    data = make_effect_data(kind, n_samples=1500, n_features=12, random_state=0)
    X = pd.DataFrame(data.X).add_prefix("x")
    model = DDML(nuisance="mlp", score="partially_linear", random_state=0)
    assert_near(model.fit(X, data.y, treatment=data.treatment), data.theta)
    low, high = model.conf_int()
    assert low < model.effect_ < high
    assert list(model.roles_.index) == list(X)
    assert np.isfinite(model.influence_).all()
    assert isinstance(model.summary(), pd.DataFrame)


def test_interactive_score():
    data = make_dense_effect_data("binary", n_samples=1500, n_features=10, random_state=0)
    model = DDML(nuisance="mlp", score="interactive", random_state=0)
    assert_near(model.fit(data.X, data.y, treatment=data.treatment), data.theta)


def test_estimators_of_scikit_learn():
    data = make_effect_data("binary", n_samples=1000, n_features=10, random_state=0)
    pair = (
        RandomForestClassifier(50, min_samples_leaf=5, random_state=0),
        RandomForestRegressor(50, min_samples_leaf=5, random_state=0),
    )
    model = DDML(nuisance=pair, score="partially_linear", n_jobs=2, random_state=0)
    assert_near(model.fit(data.X, data.y, treatment=data.treatment), data.theta)


@pytest.mark.parametrize("nuisance", ["auto", "ridge", "shrunken"])
def test_selector(domain_data, nuisance):
    data = domain_data
    selector = CausalFeatureSelector(4, nuisance=nuisance, random_state=0)
    selector.fit(data.X, data.y, sample_domain=data.sample_domain)
    np.testing.assert_array_equal(selector.get_support(), data.causal)
    effects = selector.effects_
    assert (np.sign(effects["effect"][data.causal]) == np.sign(data.theta[data.causal])).all()
    noise = data.roles == "noise"
    assert (effects["effect"][noise].abs() < 5 * effects["stderr"][noise]).all()
    assert selector.transform(data.X).shape == (len(data.y), 4)


def test_selector_in_parallel(domain_data):
    data = domain_data
    one, two = (
        CausalFeatureSelector(nuisance="ridge", n_jobs=n_jobs, random_state=0)
        .fit(data.X, data.y, sample_domain=data.sample_domain)
        .effects_
        for n_jobs in (None, 2)
    )
    pd.testing.assert_frame_equal(one, two)


def test_pipeline(domain_data):
    data = domain_data
    source = data.sample_domain > 0
    selector = CausalFeatureSelector(4, nuisance="ridge", random_state=0)
    model = clone(make_pipeline(StandardScaler(), selector, LogisticRegression()))
    model.fit(data.X[source], data.y[source])
    assert model.score(data.X[source], data.y[source]) > 0.7


def test_classifier(domain_data):
    data = domain_data
    target = data.sample_domain < 0
    model = EffectClassifier().fit(data.X, data.y, sample_domain=data.sample_domain)
    assert model.score(data.X[target], data.y[target]) > 0.7


def test_command_line(tmp_path):
    data = make_dense_effect_data("continuous", n_samples=500, n_features=5, random_state=0)
    frame = pd.DataFrame(data.X).add_prefix("x").assign(t=data.treatment, y=data.y)
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    options = ["--outcome", "y", "--treatment", "t", "--nuisance", "ridge"]
    for command in (["--help"], ["effect", "--help"], ["effect", str(path), *options]):
        run = CliRunner().invoke(app, command)
        assert run.exit_code == 0, run.output
    assert "stderr" in run.output
