"""The estimator as its users meet it."""

import pickle
import threading

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from threadpoolctl import threadpool_info

from ddml_fs import DDML
from ddml_fs.baselines import plain_dml
from ddml_fs.datasets import make_dense_effect_data, make_effect_data
from ddml_fs.nuisances import Network, OnLatents, Ridge, Stacked
from ddml_fs.scores import PartiallyLinear


@pytest.fixture(scope="module")
def fitted(binary_data):
    d = binary_data
    model = DDML("mlp", score="partially_linear", random_state=0, n_repeats=3)
    return model.fit(d.X, d.y, treatment=d.treatment)


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
    model = DDML("mlp", score="partially_linear", random_state=1)
    model.fit(data.X, data.y, treatment=data.treatment)
    assert abs(model.effect_ - data.theta) < 3.5 * model.stderr_
    v = data.treatment - data.treatment.mean()
    naive = PartiallyLinear().of_residuals(v, data.y - data.y.mean()).theta
    assert abs(naive - data.theta) > 30 * model.stderr_
    # The standard error is that of the true nuisances, up to what the nuisances leave unexplained.
    limit = 1 / np.sqrt(np.sum((data.treatment - data.m) ** 2))
    assert 0.7 * limit < model.stderr_ < 1.3 * limit


@pytest.mark.parametrize(
    "nuisance",
    [
        "rf",
        OnLatents(LogisticRegression(), LinearRegression()),
        OnLatents(LinearRegression(), LinearRegression()),
        OnLatents(
            HistGradientBoostingClassifier(max_iter=50), HistGradientBoostingRegressor(max_iter=50)
        ),
    ],
    ids=["rf", "pair", "single", "boosting"],
)
def test_nuisance_models_on_the_latents(binary_data, nuisance):
    d = binary_data
    model = DDML(nuisance, score="partially_linear", random_state=0)
    model.fit(d.X, d.y, treatment=d.treatment)
    assert abs(model.effect_ - d.theta) < 4 * model.stderr_


@pytest.mark.parametrize("nuisance", ["mlp", "rf", "smooth", Ridge(shrinkage=1.0), "stacked"])
def test_interactive_score_when_effects_vary(nuisance):
    X, y, t, att = varying_effects(0, 2000)
    for target, truth in (("ate", 1.0), ("att", att)):
        model = DDML(nuisance, target=target, random_state=0).fit(X, y, treatment=t)
        assert model.estimand_ == target.upper()
        assert abs(model.effect_ - truth) < 3.5 * model.stderr_
        assert getattr(model, f"{target}_") == model.effect_
    # The two targets are told apart.
    assert att - 1.0 > 2.5 * model.stderr_


def test_interactive_equals_its_own_predictions():
    X, y, t, _ = varying_effects(1, 1000)
    model = DDML(Network(epochs=15), random_state=0).fit(X, y, treatment=t)
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
        d = make_dense_effect_data(kind, n_samples=1500, n_features=50, random_state=seed)
        for name in ("gates", "no gates"):
            network = Network(gates=name == "gates")
            model = DDML(network, score="partially_linear", random_state=seed)
            errors[name].append(model.fit(d.X, d.y, treatment=d.treatment).effect_ - d.theta)
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
    model = DDML("mlp", random_state=0).fit(data.X, data.y, treatment=data.treatment)
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
@pytest.mark.parametrize("nuisance", [Network(epochs=3), "stacked"], ids=["mlp", "stacked"])
@pytest.mark.filterwarnings("ignore:.*propensities were clipped", "ignore:X predicts")
def test_tiny_data_still_give_a_number(n, n_folds, n_treated, score, nuisance):
    rng = np.random.default_rng(0)
    X, t = rng.standard_normal((n, 3)), np.zeros(n)
    t[rng.permutation(n)[:n_treated]] = 1
    model = DDML(nuisance, score=score, n_folds=n_folds, random_state=0)
    model.fit(X, X[:, 0] + t + rng.standard_normal(n), treatment=t)
    assert np.isfinite([model.effect_, model.stderr_]).all()


# --- What is reported ---


def test_summary_and_intervals(fitted):
    table = fitted.summary(0.9)
    assert list(table.index) == ["partially linear slope"]
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
        DDML(Network(epochs=5), random_state=s).fit(d.X, d.y, treatment=d.treatment).effect_
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
    model = DDML(Network(epochs=5), random_state=0)
    model.fit(frame, pd.Series(d.y), treatment=pd.Series(d.treatment.astype(bool)))
    assert list(model.feature_names_in_) == names == list(model.roles_.index)
    assert list(model.residuals_.index) == list(frame.index)
    plain = DDML(Network(epochs=5), random_state=0).fit(d.X, d.y, treatment=d.treatment)
    assert plain.effect_ == model.effect_
    with pytest.warns(UserWarning, match="feature names"):
        model.represent(d.X)


def test_not_fitted():
    for call in ("summary", "conf_int", "diagnostics"):
        with pytest.raises(NotFittedError):
            getattr(DDML(), call)()


def test_verbose_shows_a_bar(binary_data, capsys):
    d = binary_data
    DDML(Network(epochs=2), random_state=0, verbose=True).fit(d.X, d.y, treatment=d.treatment)
    assert "DDML: " in capsys.readouterr().err


# --- What the effect is called, and what is said about it ---


def test_results_carry_the_name_of_what_they_estimate():
    """With effects that vary, the partially linear slope is not the ATE and is not called so."""
    X, y, t, _ = varying_effects(0, 2000)
    slope = DDML("smooth", score="partially_linear", random_state=0).fit(X, y, treatment=t)
    assert slope.estimand_ == slope.summary().index[0] == "partially linear slope"
    assert not hasattr(slope, "ate_")
    ate = DDML("smooth", random_state=0).fit(X, y, treatment=t)
    assert (ate.estimand_, ate.score_, ate.ate_) == ("ATE", "interactive", ate.effect_)
    att = DDML("smooth", target="att", random_state=0).fit(X, y, treatment=t)
    assert att.estimand_ == "ATT"
    assert not hasattr(att, "ate_")
    label = (y > 0).astype(float)
    odds = DDML("ridge", score="logistic", random_state=0).fit(X, label, treatment=t)
    assert odds.estimand_ == "log-odds slope"


def test_pure_noise_has_no_role():
    rng = np.random.default_rng(0)
    X, t, y = rng.standard_normal((1500, 6)), rng.standard_normal(1500), rng.standard_normal(1500)
    model = DDML("mlp", random_state=0).fit(X, y + t, treatment=t)
    assert (model.roles_["role"] == "none").all()


def test_roles_of_few_columns():
    """One confounder, one cause of each alone, three of noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 6))
    t = np.sin(2 * X[:, 0]) + X[:, 1] + rng.standard_normal(3000)
    y = t + 2 * np.abs(X[:, 0]) + 2 * X[:, 2] + rng.standard_normal(3000)
    roles = DDML("mlp", random_state=0).fit(X, y, treatment=t).roles_["role"]
    assert roles.tolist()[:3] == ["confounder", "treatment", "outcome"]
    assert (roles.iloc[3:] == "none").all()


@pytest.mark.parametrize("offset", [1e8, 1.7e12])
@pytest.mark.parametrize("nuisance", ["mlp", "ridge", "smooth"])
def test_a_confounder_with_a_large_offset_is_not_lost(offset, nuisance):
    """Such as a time in milliseconds: without it the slope would be about 1.5."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 3))
    t = X[:, 0] + rng.standard_normal(2000)
    y = t + X[:, 0] + rng.standard_normal(2000)
    X[:, 0] += offset
    model = DDML(nuisance, random_state=0).fit(X, y, treatment=t)
    assert model.effect_ == pytest.approx(1, abs=4 * model.stderr_)


def test_a_copy_of_the_outcome_is_told(binary_data):
    d = binary_data
    frame = pd.DataFrame(d.X[:, :3], columns=list("abc")).assign(total=3 * d.y + 7)
    with pytest.warns(UserWarning, match=r"X contains the outcome, or nearly: 'total';"):
        DDML("ridge", random_state=0).fit(frame, d.y, treatment=d.treatment)


def test_verdict(binary_data):
    d = binary_data
    rng = np.random.default_rng(0)
    tossed = rng.integers(0, 2, len(d.X)).astype(float)
    model = DDML("smooth", random_state=0).fit(d.X, d.y, treatment=tossed)
    assert "no reason for doubt" in model.verdict_
    model.fit(d.X, d.y, treatment=d.treatment)
    assert "confounding that is not linear, the interval may be too short" in model.verdict_
    t = (6 * d.X[:, 0] + rng.logistic(size=len(d.X)) > 0).astype(float)
    with pytest.warns(UserWarning, match="propensities were clipped"):
        model.set_params(nuisance="mlp").fit(d.X, d.y, treatment=t)
    assert "weak overlap" in model.verdict_
    noise = DDML(
        (LogisticRegression(C=1e6), DecisionTreeRegressor(random_state=0)),
        score="partially_linear",
        random_state=0,
    ).fit(d.X, rng.standard_normal(len(d.X)), treatment=d.treatment)
    assert "outcome predicts held-out rows worse than a constant" in noise.verdict_


# --- One fit after another, and two at once ---


def state(estimator):
    """Names of all that a fit leaves behind."""
    return {name for name in vars(estimator) if name.endswith("_")}


def test_a_refit_leaves_nothing_of_the_earlier_fit(binary_data, continuous_data):
    """Everything that an effect can have, and then the least."""
    b, c = binary_data, continuous_data
    frame = pd.DataFrame(b.X, columns=[f"a{j}" for j in range(12)])
    model = DDML(Stacked([Network(epochs=2), "ridge"]), random_state=0)
    model.fit(frame, b.y, treatment=b.treatment)
    assert {"ate_", "roles_", "nuisance_weights_", "feature_names_in_"} <= state(model)
    model.set_params(nuisance="ridge").fit(c.X, c.y, treatment=c.treatment)
    fresh = DDML("ridge", random_state=0).fit(c.X, c.y, treatment=c.treatment)
    assert state(model) == state(fresh)
    assert model.summary().equals(fresh.summary())


def test_threads_are_what_they_were_with_two_fits_at_once(binary_data):
    """Also when one fit begins and ends within another."""
    d = binary_data
    before = torch.get_num_threads()
    pools = [pool["num_threads"] for pool in threadpool_info()]
    effects = {}

    def fit(name, nuisance):
        effects[name] = DDML(nuisance, random_state=0).fit(d.X, d.y, treatment=d.treatment).effect_

    nuisances = {"long": Network(epochs=8), "short": "ridge", "other": Network(epochs=3)}
    threads = [threading.Thread(target=fit, args=item) for item in nuisances.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert torch.get_num_threads() == before
    assert [pool["num_threads"] for pool in threadpool_info()] == pools
    for name, nuisance in nuisances.items():
        alone = DDML(nuisance, random_state=0).fit(d.X, d.y, treatment=d.treatment)
        assert effects[name] == pytest.approx(alone.effect_, abs=1e-6)


# --- Every parameter counts ---

CHANGES = {
    "nuisance": "smooth",
    "score": "partially_linear",
    "target": "att",
    "n_folds": 3,
    "n_repeats": 2,
    "clip": 0.3,
    "random_state": 1,
}


def test_every_parameter_has_an_effect(binary_data):
    """Workers, the device and the progress bar change how the estimate is made, all others it."""
    d = binary_data
    default = DDML("ridge", random_state=0)
    effect = default.fit(d.X, d.y, treatment=d.treatment).effect_
    parameters = default.get_params(deep=False)
    assert len(parameters) <= 14
    assert parameters.keys() == CHANGES.keys() | {"n_jobs", "device", "verbose"}
    for name, value in CHANGES.items():
        changed = clone(default).set_params(**{name: value})
        assert changed.fit(d.X, d.y, treatment=d.treatment).effect_ != effect


@pytest.mark.parametrize("nuisance", ["smooth", "boosting", Network(epochs=2)])
def test_workers_change_nothing_but_the_time(binary_data, nuisance):
    d = binary_data
    effects = [
        DDML(nuisance, n_repeats=2, n_jobs=n, random_state=0)
        .fit(d.X, d.y, treatment=d.treatment)
        .effect_
        for n in (None, 2)
    ]
    assert effects[0] == pytest.approx(effects[1], abs=1e-6)
