"""Bad input gets one sentence that says what was wrong, what was got and what is allowed."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression, LogisticRegression

from ddml_fs import DDML
from ddml_fs.cautions import DDMLWarning
from ddml_fs.nuisances import Boosting, Forest, GaussianProcess, Network, Ridge, Stacked

N = 200


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 4))
    t = (X[:, 0] + rng.standard_normal(N) > 0).astype(float)
    return {"X": X, "y": X[:, 0] + t + rng.standard_normal(N), "treatment": t}


def bad(data, **changes):
    new = {k: np.array(v, dtype=float) for k, v in data.items()}
    for name, change in changes.items():
        new[name] = change(new[name])
    return new


def set_at(value):
    def change(a):
        a.flat[3] = value
        return a

    return change


CASES = {
    "infinite X": (dict(X=set_at(np.inf)), r"X must be finite, got 1 infinite"),
    "NaN in y": (dict(y=set_at(np.nan)), r"^y must be known in every row, got 1 missing; drop"),
    "NaN in treatment": (
        dict(treatment=set_at(np.nan)),
        r"^treatment must be known in every row, got 1 missing; drop these rows.$",
    ),
    "constant treatment": (
        dict(treatment=lambda t: t * 0 + 1),
        r"treatment must vary, .* value 1 ",
    ),
    "constant y": (dict(y=lambda y: y * 0), r"y must vary, got the single value 0"),
    "two values not 0/1": (dict(treatment=lambda t: t + 1), r"coded 0/1, got 1 and 2"),
    "treatment among X": (
        dict(treatment=lambda t: np.arange(N) * 1.0, X=lambda X: np.c_[X, np.arange(N) * 2.0 + 1]),
        r"X must not determine the treatment",
    ),
    "short y": (dict(y=lambda y: y[:-1]), r"y must have one value per row of X \(200\), got 199"),
    "short treatment": (dict(treatment=lambda t: t[:-2]), r"treatment must have .* got 198"),
    "no column": (dict(X=lambda X: X[:, :0]), r"X must have at least one column, got none"),
    "flat X": (dict(X=lambda X: X[:, 0]), r"X must be a numeric table of two dimensions"),
    "matrix y": (dict(y=lambda y: np.c_[y, y]), r"y must be one numeric value per row"),
}


@pytest.mark.parametrize("case", list(CASES))
def test_bad_data(data, case):
    changes, message = CASES[case]
    with pytest.raises(ValueError, match=message):
        DDML().fit(**bad(data, **changes))


def test_more_folds_than_the_smallest_arm(data):
    data["treatment"] = np.r_[np.ones(3), np.zeros(N - 3)]
    with pytest.raises(ValueError, match=r"at most the size of the smallest arm \(3\), got 5"):
        DDML().fit(**data)


def test_too_few_rows(data):
    few = {k: np.r_[v[:6], v[-6:]] for k, v in data.items()}
    few["treatment"] = np.arange(12) % 2.0
    with pytest.raises(ValueError, match=r"at least 4 rows per fold \(20 for n_folds=5\), got 12"):
        DDML().fit(**few)


OPTIONS = {
    "score": "plr",
    "target": "late",
    "nuisance": "gbm",
    "n_folds": 1,
    "n_repeats": 0,
    "clip": 0.6,
    "device": "abacus",
}
OF_NETWORKS = {
    "outcome": "both",
    "orthogonality": "none",
    "hidden": 2.5,
    "epochs": 0,
    "lambda_dis": -1.0,
    "batch_size": "big",
    "shrinkage": -1.0,
}


@pytest.mark.parametrize("name", list(OPTIONS))
def test_bad_options(data, name):
    with pytest.raises(ValueError, match=rf"{name}.*must be .*got"):
        DDML(**{name: OPTIONS[name]}).fit(**data)


@pytest.mark.parametrize("name", list(OF_NETWORKS))
def test_bad_options_of_networks(data, name):
    network = Network(**{name: OF_NETWORKS[name]})
    for nuisance in (network, Forest(network=network), Stacked([network, "ridge"])):
        with pytest.raises(ValueError, match=rf"{name}.*must be .*got"):
            DDML(nuisance).fit(**data)


BAD_NUISANCES = {
    "boosting": (Boosting(max_iter=0), "max_iter must be an integer"),
    "gp": (GaussianProcess(max_rows=100), "at most max_rows=100 rows, got 200"),
    "ridge": (Ridge(shrinkage=-1), "shrinkage must be a number"),
    "one candidate": (Stacked(["ridge"]), "at least 2 nuisances, got 1"),
    "unknown candidate": (Stacked(["ridge", "tree"]), "nuisance must be one of .* got 'tree'"),
}


@pytest.mark.parametrize("case", list(BAD_NUISANCES))
def test_bad_nuisances(data, case):
    nuisance, words = BAD_NUISANCES[case]
    with pytest.raises(ValueError, match=words):
        DDML(nuisance).fit(**data)


def test_parameters_without_an_effect_raise(data):
    with pytest.raises(ValueError, match="clip needs score='interactive'"):
        DDML("ridge", score="partially_linear", clip=0.05).fit(**data)
    with pytest.raises(ValueError, match="device is for networks"):
        DDML("ridge", device="cpu").fit(**data)
    DDML("ridge", clip=0.05).fit(**data)


@pytest.mark.parametrize("device", ["cuda", "cuda:1", "mps"])
def test_device_that_is_not_there(data, device):
    if (torch.cuda if device.startswith("cuda") else torch.backends.mps).is_available():
        pytest.skip(f"this machine has {device}")
    with pytest.raises(ValueError, match=f"one that this machine has, got '{device}'"):
        DDML("mlp", device=device).fit(**data)


def test_one_covariate_is_enough(data):
    X = data["X"][:, :1]
    effect = DDML("mlp", random_state=0).fit(X, data["y"], treatment=data["treatment"])
    assert abs(effect.effect_ - 1) < 4 * effect.stderr_
    with pytest.raises(ValueError, match="a covariate besides the treatment"):
        DDML("mlp").fit(X, data["y"], treatment=0)


def test_outcome_needs_a_regressor(data):
    with pytest.raises(ValueError, match="must be a regressor"):
        DDML(LogisticRegression()).fit(**data)
    with pytest.raises(ValueError, match="pair"):
        DDML((LinearRegression(),) * 3).fit(**data)
    with pytest.raises(ValueError, match="scikit-learn estimators"):
        DDML(("rf", "rf")).fit(**data)
    with pytest.raises(ValueError, match="treatment must be a regressor"):
        DDML((LogisticRegression(), LinearRegression())).fit(
            data["X"], data["y"], treatment=data["X"][:, 1] ** 2
        )


def test_scores_that_do_not_fit_the_treatment(data):
    continuous = {**data, "treatment": data["X"][:, 1] + np.linspace(0, 1, N) ** 2}
    with pytest.raises(ValueError, match="needs a 0/1 treatment"):
        DDML(score="interactive").fit(**continuous)
    with pytest.raises(ValueError, match="target='att' needs score='interactive'"):
        DDML(target="att").fit(**continuous)
    with pytest.raises(ValueError, match="target='att' needs score='interactive'"):
        DDML(score="partially_linear", target="att").fit(**data)


def test_treatment_is_keyword_only(data):
    with pytest.raises(TypeError):
        DDML().fit(data["X"], data["y"], data["treatment"])


def test_almost_perfectly_predicted_treatment_warns(data):
    """A smooth bend of a column is no linear function of X, but leaves nothing to learn from."""
    X = data["X"]
    treatment = np.tanh(X[:, 0]) + 1e-3 * np.random.default_rng(1).standard_normal(N)
    X = np.c_[X, np.tanh(X[:, 0]) * 3 + 0.01 * X[:, 1] ** 2]
    with pytest.warns(UserWarning, match="predicts the treatment almost perfectly"):
        DDML("mlp", random_state=0).fit(X, data["y"], treatment=treatment)


def test_clipped_propensities_warn(data):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3))
    t = (8 * X[:, 0] + rng.logistic(size=600) > 0).astype(float)
    y = X[:, 1] + t + rng.standard_normal(600)
    with pytest.warns(UserWarning, match=r"% of the propensities were clipped to \[0.05, 0.95\]"):
        DDML(score="interactive", clip=0.05, random_state=0).fit(X, y, treatment=t)


def test_constant_column_is_harmless(data):
    data["X"] = np.c_[data["X"], np.ones(N)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DDMLWarning)  # 200 rows are few
        model = DDML(Network(epochs=5), score="partially_linear", random_state=0).fit(**data)
    assert np.isfinite(model.effect_)
