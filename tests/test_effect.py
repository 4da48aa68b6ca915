"""The estimator as its users meet it."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ddml_fs import DDML
from ddml_fs.baselines import plain_dml
from ddml_fs.datasets import make_dense_effect_data, make_effect_data
from ddml_fs.inference import partially_linear


@pytest.fixture(scope="module")
def fitted(binary_data):
    d = binary_data
    return DDML(random_state=0, n_repeats=3).fit(d.X, d.y, treatment=d.treatment)


def varying_effects(seed, n=4000):
    """Binary treatment whose effect grows with a confounder: ATE 1, ATT above it."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6))
    m = 1 / (1 + np.exp(-X[:, 0]))
    t = (rng.uniform(size=n) < m).astype(float)
    tau = 1 + X[:, 0]
    y = np.sin(X[:, 1]) + X[:, 0] + tau * t + rng.standard_normal(n)
    return X, y, t, tau[t == 1].mean()


# --- Effects ---


@pytest.mark.parametrize("kind", ["binary", "continuous"])
@pytest.mark.parametrize("d", [12, 100])
def test_recovers_the_effect(kind, d):
    """Within 3.5 standard errors, where the naive slope errs by more than thirty."""
    data = make_effect_data(kind, n_samples=4000, n_features=d, random_state=1)
    model = DDML(random_state=1).fit(data.X, data.y, treatment=data.treatment)
    assert abs(model.ate_ - data.theta) < 3.5 * model.stderr_
    v = data.treatment - data.treatment.mean()
    naive = partially_linear(v, data.y - data.y.mean()).theta
    assert abs(naive - data.theta) > 30 * model.stderr_
    # The standard error is that of the true nuisances, up to what the nuisances leave unexplained.
    limit = 1 / np.sqrt(np.sum((data.treatment - data.m) ** 2))
    assert 0.7 * limit < model.stderr_ < 1.3 * limit


@pytest.mark.parametrize(
    "nuisance",
    [
        "rf",
        (LogisticRegression(), LinearRegression()),
        LinearRegression(),
        (HistGradientBoostingClassifier(max_iter=50), HistGradientBoostingRegressor(max_iter=50)),
    ],
    ids=["rf", "pair", "single", "boosting"],
)
def test_nuisance_models_on_the_latents(binary_data, nuisance):
    d = binary_data
    model = DDML(nuisance, random_state=0).fit(d.X, d.y, treatment=d.treatment)
    assert abs(model.ate_ - d.theta) < 4 * model.stderr_


@pytest.mark.parametrize("nuisance", ["mlp", "rf", "ridge"])
def test_interactive_score_when_effects_vary(nuisance):
    X, y, t, att = varying_effects(0, 2000)
    for target, truth in (("ate", 1.0), ("att", att)):
        model = DDML(nuisance, score="interactive", target=target, random_state=0)
        model.fit(X, y, treatment=t)
        assert abs(model.effect_ - truth) < 3.5 * model.stderr_
        assert getattr(model, f"{target}_") == model.effect_
    # The two targets are told apart.
    assert att - 1.0 > 2.5 * model.stderr_


def test_interactive_equals_its_own_predictions():
    X, y, t, _ = varying_effects(1, 1000)
    model = DDML(score="interactive", random_state=0, epochs=15).fit(X, y, treatment=t)
    hat = model.nuisances_
    m = hat["m"].clip(0.01, 0.99)
    score = hat["mu_1"] - hat["mu_0"] + t * (y - hat["mu_1"]) / m
    score -= (1 - t) * (y - hat["mu_0"]) / (1 - m)
    assert model.ate_ == pytest.approx(score.mean())
    assert model.stderr_ == pytest.approx(score.std(ddof=0) / np.sqrt(len(y)))


@pytest.mark.parametrize("kind", ["binary", "continuous"])
def test_dense_confounding_does_not_break_the_gates(kind):
    """Every column a weak confounder: no worse than without gates, nor than plain DML-MLP."""
    errors = {"gates": [], "no gates": [], "DML-MLP": []}
    for seed in range(4):
        d = make_dense_effect_data(kind, n_samples=6000, n_features=50, random_state=seed)
        for name in ("gates", "no gates"):
            model = DDML(gates=name == "gates", random_state=seed)
            errors[name].append(model.fit(d.X, d.y, treatment=d.treatment).ate_ - d.theta)
        limit = 1 / np.sqrt(np.sum((d.treatment - d.m) ** 2))
        mlp = {"hidden_layer_sizes": (32, 32), "early_stopping": True, "random_state": seed}
        models = [
            make_pipeline(StandardScaler(), m)
            for m in (
                MLPClassifier(**mlp) if kind == "binary" else MLPRegressor(**mlp),
                MLPRegressor(**mlp),
            )
        ]
        plain = plain_dml(d.X, d.y, d.treatment, models, random_state=seed)
        errors["DML-MLP"].append(plain.theta - d.theta)
    mae = {name: np.abs(e).mean() for name, e in errors.items()}
    noise = limit / np.sqrt(4)  # of a mean of four errors
    assert mae["gates"] < mae["DML-MLP"] + noise
    assert mae["gates"] < mae["no gates"] + noise


def test_gates_find_the_inputs():
    data = make_effect_data("continuous", n_samples=4000, n_features=100, random_state=2)
    model = DDML(random_state=0).fit(data.X, data.y, treatment=data.treatment)
    roles = model.roles_["role"].to_numpy()
    assert (roles[:5] == "confounder").all()
    assert (roles[10:] == "none").mean() > 0.95
    assert (roles[5:10] == "treatment").sum() >= 2
    # Causes of the treatment alone are weaker confounders than any true one.
    strength = model.roles_["confounder"].to_numpy()
    assert strength[5:10].max() < strength[:5].min()
    assert model.diagnostics()["inputs_kept"] < 20


@pytest.mark.parametrize(("n", "n_folds", "n_treated"), [(8, 2, 4), (30, 5, 5), (60, 2, 2)])
@pytest.mark.parametrize("score", ["partially_linear", "interactive"])
@pytest.mark.filterwarnings("ignore:.*propensities were clipped", "ignore:X predicts")
def test_tiny_data_still_give_a_number(n, n_folds, n_treated, score):
    rng = np.random.default_rng(0)
    X, t = rng.standard_normal((n, 3)), np.zeros(n)
    t[rng.permutation(n)[:n_treated]] = 1
    model = DDML(score=score, n_folds=n_folds, random_state=0, epochs=3)
    model.fit(X, X[:, 0] + t + rng.standard_normal(n), treatment=t)
    assert np.isfinite([model.effect_, model.stderr_]).all()


# --- What is reported ---


def test_summary_and_intervals(fitted):
    table = fitted.summary(0.9)
    assert list(table.index) == ["ATE"]
    assert list(table.columns) == ["effect", "stderr", "z", "pvalue", "5%", "95%"]
    low, high = fitted.conf_int(0.9)
    assert (high - low) / 2 == pytest.approx(1.6449 * fitted.stderr_, rel=1e-4)
    assert fitted.conf_int(0.99)[0] < low < fitted.effect_ < high
    assert fitted.pvalue_ < 1e-6


def test_repeats_are_combined_by_the_median(fitted):
    assert len(fitted.repeats_) == 3
    assert fitted.effect_ == pytest.approx(fitted.repeats_["effect"].median())
    spread = (fitted.repeats_["effect"] - fitted.effect_) ** 2
    stderr = np.sqrt((fitted.repeats_["stderr"] ** 2 + spread).median())
    assert fitted.stderr_ == pytest.approx(stderr)


def test_residuals_give_the_effect_back(fitted):
    r = fitted.residuals_
    nearest = fitted.repeats_["effect"]
    assert (r["v"] @ r["e"]) / (r["v"] @ r["v"]) == pytest.approx(nearest.median(), rel=1e-6)
    np.testing.assert_allclose(r["u"], r["e"] - fitted.effect_ * r["v"])
    assert fitted.influence_.std() / np.sqrt(len(r)) == pytest.approx(
        fitted.repeats_["stderr"][(nearest - fitted.effect_).abs().idxmin()]
    )


def test_diagnostics(fitted, binary_data):
    table = fitted.diagnostics()
    v = fitted.residuals_["v"]
    assert table["unexplained_share"] == pytest.approx(
        np.mean(v**2) / np.var(binary_data.treatment)
    )
    assert table["treatment_loss"] < table["treatment_loss_constant"]
    assert table["outcome_loss"] < table["outcome_loss_constant"]
    assert table["abs_corr_v_u"] < 0.05
    assert 0 < table["propensity_min"] < table["propensity_max"] < 1


def test_represent(fitted, binary_data):
    latents = fitted.represent(binary_data.X)
    assert {k: z.shape for k, z in latents.items()} == dict.fromkeys(("Zc", "Zt", "Zy"), (1500, 8))
    # The latents carry what they are for: linear probes of T on (Zc, Zt) beat a constant.
    probe = LogisticRegression().fit(np.c_[latents.Zc, latents.Zt], binary_data.treatment)
    accuracy = probe.score(np.c_[latents.Zc, latents.Zt], binary_data.treatment)
    assert accuracy > max(binary_data.treatment.mean(), 1 - binary_data.treatment.mean()) + 0.05
    with pytest.raises(ValueError, match="expecting 12 features"):
        fitted.represent(binary_data.X[:, :5])


# --- scikit-learn's conventions ---


def test_seed_decides(binary_data):
    d = binary_data
    effects = [
        DDML(random_state=s, epochs=5).fit(d.X, d.y, treatment=d.treatment).effect_
        for s in (0, 0, 1)
    ]
    assert effects[0] == effects[1] != effects[2]


def test_clone_and_pickle(fitted, binary_data):
    copy = clone(DDML("rf", n_folds=3, random_state=5))
    assert copy.get_params()["nuisance"] == "rf"
    assert not hasattr(copy, "effect_")
    data = pickle.dumps(fitted)
    assert len(data) < 1_000_000
    back = pickle.loads(data)
    assert back.summary().equals(fitted.summary())
    np.testing.assert_array_equal(
        back.represent(binary_data.X).Zc, fitted.represent(binary_data.X).Zc
    )


def test_data_frames_keep_their_names(binary_data):
    d = binary_data
    names = [f"age_{j}" for j in range(12)]
    frame = pd.DataFrame(d.X, columns=names, index=np.arange(1500) + 7)
    model = DDML(random_state=0, epochs=5)
    model.fit(frame, pd.Series(d.y), treatment=pd.Series(d.treatment.astype(bool)))
    assert list(model.feature_names_in_) == names == list(model.roles_.index)
    assert list(model.residuals_.index) == list(frame.index)
    plain = DDML(random_state=0, epochs=5).fit(d.X, d.y, treatment=d.treatment)
    assert plain.effect_ == model.effect_
    with pytest.warns(UserWarning, match="feature names"):
        model.represent(d.X)


def test_not_fitted():
    for call in ("summary", "conf_int", "diagnostics"):
        with pytest.raises(NotFittedError):
            getattr(DDML(), call)()


def test_verbose_shows_a_bar(binary_data, capsys):
    d = binary_data
    DDML(random_state=0, epochs=2, verbose=True).fit(d.X, d.y, treatment=d.treatment)
    assert "DDML" in capsys.readouterr().out
