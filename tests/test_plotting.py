"""Plots show the numbers of the fitted estimators, and refuse what they cannot show."""

import sys
import warnings
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy.special import expit
from sklearn.exceptions import NotFittedError

from ddml_fs import DDML, CausalFeatureSelector
from ddml_fs import plotting as plots
from ddml_fs.audit import ShiftAudit
from ddml_fs.datasets import make_domain_data, make_effect_data
from ddml_fs.plotting.dose import fit_curve
from ddml_fs.plotting.labels import name_points
from ddml_fs.plotting.reading import units
from ddml_fs.plotting.style import COLOURS, LONGEST, shorten, shorten_all
from ddml_fs.rows import read_rows

mpl.use("Agg")

LONG = "a_column_with_a_name_that_is_much_too_long_for_any_plot_{}"


@pytest.fixture(autouse=True)
def closed():
    yield
    from matplotlib import pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module")
def data():
    data = make_domain_data(
        n_samples=200, n_domains=4, n_causal=4, n_spurious=3, n_noise=3, random_state=0
    )
    rows = data.sample_domain > 0
    scale = np.linspace(0.1, 20, 10)
    X = pd.DataFrame(data.X[rows] * scale, columns=[f"x{j}" for j in range(10)])
    return SimpleNamespace(X=X, y=data.y[rows], domain=data.sample_domain[rows], roles=data.roles)


@pytest.fixture(scope="module")
def audit(data):
    return ShiftAudit(random_state=0).fit(data.X, data.y, sample_domain=data.domain)


@pytest.fixture(scope="module")
def selector(audit):
    return audit.selector_


@pytest.fixture(scope="module")
def numbers():
    """A selector of numbers, given alone and from one domain."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 3)), columns=["bent", "straight", "copy"])
    X["copy"] = (X["straight"] > 0).astype(int)
    # The bend is at a quartile, where the curve can have one.
    y = np.abs(X["bent"] - X["bent"].median()) * 2 + X["straight"] + rng.normal(size=400) * 0.3
    return CausalFeatureSelector(2, random_state=0).fit(X, y), X, y


@pytest.fixture(scope="module", params=["binary", "continuous"])
def effect(request):
    data = make_effect_data(request.param, n_samples=600, n_features=12, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few rows and weak overlap
        return DDML("mlp", random_state=0).fit(data.X, data.y, treatment=data.treatment)


def axes():
    return Figure(layout="constrained").subplots()


def test_effects_are_those_of_the_selector_per_sd_and_per_unit(selector):
    per_sd = plots.EffectsDisplay.from_estimator(selector, n_features=4).table
    table = selector.effects_.sort_values("rank").head(4)
    np.testing.assert_allclose(per_sd["effect"], table["std_effect"])
    assert list(per_sd.index) == list(table.index)
    assert list(per_sd["selected"]) == list(table["selected"])
    raw = plots.EffectsDisplay.from_estimator(selector, n_features=4, per="unit")
    for joint, name in ((False, ""), (True, "joint_")):
        interval = selector.conf_int(joint=joint).loc[table.index]
        np.testing.assert_allclose(raw.table[[f"{name}low", f"{name}high"]], interval)
    assert (per_sd["joint_low"] < per_sd["low"]).all()
    assert "per unit" in raw.ax_.get_xlabel().replace("\n", " ")
    drawn = raw.ax_.collections[-1].get_offsets()
    assert set(np.round(drawn[:, 0], 6)) <= set(np.round(raw.table["effect"], 6))


def test_units_are_standard_deviations(selector, data):
    np.testing.assert_allclose(units(selector.effects_), data.X.std(ddof=0), rtol=1e-5)


def test_axes_say_log_odds(audit, selector):
    def label(ax):
        return ax.get_xlabel().replace("\n", " ")

    assert label(plots.plot_effects(audit)) == "effect on the log-odds per standard deviation"
    told = CausalFeatureSelector(scale="log_odds").__dict__ | {"effects_": selector.effects_}
    assert "log-odds" in plots.effects.effect_label(SimpleNamespace(**told))


def test_effects_that_are_unknown_are_left_out(data):
    X = data.X.assign(sum=data.X["x0"] / data.X["x0"].std() + data.X["x1"] / data.X["x1"].std())
    with pytest.warns(match="unknown"):
        selector = CausalFeatureSelector(3, random_state=0).fit(X, data.y)
    unknown = selector.effects_.index[selector.effects_["df"] == 0]
    assert len(unknown)
    shown = plots.EffectsDisplay.from_estimator(selector).table
    assert set(shown.index) == set(X.columns) - set(unknown)


def test_effects_by_domain_of_an_audit_start_with_those_that_move(audit, data):
    display = plots.DomainEffectsDisplay.from_estimator(audit, per="unit")
    moves = audit.features_.loc[display.mean.index, "effect_moves"].to_numpy()
    assert moves.any()
    assert (np.diff(moves.astype(int)) <= 0).all()
    np.testing.assert_allclose(display.mean, audit.features_.loc[display.mean.index, "effect"])
    one = display.table[(display.table["feature"] == "x1") & (display.table["domain"] == 2)]
    table = audit.domain_effects_
    other = table[(table["feature"] == "x1") & (table["domain"] == 2)]
    columns = ["effect", "low", "high"]
    np.testing.assert_allclose(one[columns], other[columns])
    assert len(display.table) == 4 * len(display.mean)


def test_a_wide_interval_does_not_squeeze_the_others():
    table = pd.DataFrame(
        {
            "feature": np.repeat(list("abcde"), 4),
            "domain": list(range(4)) * 5,
            "effect": 0.5,
            "low": 0.2,
            "high": 0.8,
        }
    )
    mean = pd.Series(0.5, index=list("abcde"))
    everything = plots.DomainEffectsDisplay(table, mean, "effect").plot().ax_.get_xlim()
    assert everything[0] < 0
    assert everything[1] > 0.8
    table.loc[3, ["effect", "high"]] = 6.0, 12.0
    ax = plots.DomainEffectsDisplay(table, mean, "effect").plot().ax_
    assert ax.get_xlim()[1] < 3
    drawn = np.vstack([c.get_offsets() for c in ax.collections if len(c.get_offsets())])
    assert drawn[:, 0].max() == 6  # beyond the axes
    assert 2.5 * 0.8 in np.round(drawn[:, 0], 6)  # the arrow at its end
    mean["a"] = 4.0  # means are always shown
    assert plots.DomainEffectsDisplay(table, mean, "effect").plot().ax_.get_xlim()[1] > 4


def test_effects_by_domain_of_a_selector(selector):
    display = plots.DomainEffectsDisplay.from_estimator(selector, features=["x2", "x0"])
    effects = selector.effects_
    assert list(display.mean.index) == ["x2", "x0"]
    np.testing.assert_allclose(display.mean, effects.loc[["x2", "x0"], "std_effect"])
    row = display.table[(display.table["feature"] == "x0") & (display.table["domain"] == 3)]
    unit = effects.loc["x0", "std_effect"] / effects.loc["x0", "effect"]
    assert row["effect"].item() == pytest.approx(effects.loc["x0", "effect[3]"] * unit)


def test_curve_marks_the_chosen_number(audit, selector):
    display = plots.CurveDisplay.from_estimator(audit)
    np.testing.assert_allclose(display.table["gain"], 1 - selector.curve_["loss"])
    assert display.chosen == selector.n_features_auto_
    assert display.measure == "held-out AUC"
    assert str(display.chosen) in display.ax_.get_legend().get_texts()[0].get_text()


def test_stability_map_shades_what_counts_as_unstable(selector):
    display = plots.StabilityDisplay.from_estimator(selector)
    table, edge = display.table, display.ax_.lines[0].get_xydata()
    above = table["tau"] > np.interp(table["size"], *edge.T)
    assert (above == (table["instability"] >= 0.5)).all()
    assert above.any()
    assert not above.all()


def test_shift_tells_effects_from_means(audit):
    display = plots.ShiftDisplay.from_estimator(audit)
    texts = [t.get_text() for t in display.ax_.get_legend().get_texts()]
    moves = audit.features_["effect_moves"] & ~audit.features_["mean_moves"]
    assert f"effect moves ({moves.sum()})" in texts
    names = {t.get_text() for t in display.ax_.texts}
    assert names
    either = audit.features_["effect_moves"] | audit.features_["mean_moves"]
    assert names <= set(audit.features_.index[either])


def test_forecast(audit):
    ax = plots.plot_forecast(audit)
    assert [t.get_text() for t in ax.get_yticklabels()] == [
        f"{name} ({n})" for name, n in audit.forecast_["n_features"].items()
    ]
    drawn = ax.collections[1].get_offsets()[:, 0]
    np.testing.assert_allclose(drawn, audit.forecast_["auc"])


def test_overlap(effect):
    display = plots.OverlapDisplay.from_estimator(effect)
    diagnostics = effect.diagnostics()
    assert display.binary == ("propensity_min" in diagnostics)
    assert display.unexplained == pytest.approx(diagnostics["unexplained_share"])
    if display.binary:
        assert set(np.round(display.table["treatment"], 6)) == {0.0, 1.0}
        assert display.clip == 0.01
    else:
        assert display.clip is None


def test_roles_have_two_weights(effect):
    display = plots.RolesDisplay.from_estimator(effect, n_features=5)
    roles = effect.roles_.loc[display.table.index]
    np.testing.assert_allclose(display.table["treatment"], roles["confounder"] + roles["treatment"])
    np.testing.assert_allclose(display.table["outcome"], roles["confounder"] + roles["outcome"])
    assert (roles["role"].eq("none") <= (roles[["treatment", "outcome"]].sum(axis=1) < 0.2)).all()


def test_dose_finds_the_bend(numbers):
    selector, X, y = numbers
    curve = plots.DoseDisplay.from_estimator(selector, "bent", X, y).table
    truth = 2 * np.abs(curve["value"] - X["bent"].median())
    assert np.abs(curve["effect"] - truth).max() < 0.25
    straight = plots.DoseDisplay.from_estimator(selector, "straight", X, y).table
    inside = (straight["low"] <= straight["line"]) & (straight["line"] <= straight["high"])
    assert inside.mean() > 0.8
    median = np.median(X["bent"])
    assert np.interp(median, curve["value"], curve["effect"]) == pytest.approx(0, abs=0.1)


@pytest.mark.parametrize("label", [False, True])
def test_band_of_a_dose_covers(label):
    covered = []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        rest = rng.normal(size=(500, 2))
        x = rng.normal(size=500) + 0.7 * rest[:, 0]
        index = np.abs(x) + 0.8 * rest[:, 0] - 1
        y = index + rng.normal(size=500)
        if label:
            y = (rng.random(500) < expit(index)).astype(float)

        def basis(x):
            return np.column_stack([x, np.maximum(x, 0)])

        curve = fit_curve(x, basis, rest, read_rows(np.empty((500, 1))), y, label)
        truth = np.abs(curve["value"]) - abs(np.median(x))
        inside = (curve["low"] <= truth) & (truth <= curve["high"])
        covered.append(inside.iloc[[0, 20, 80, 100]].mean())
    assert 0.89 < np.mean(covered) < 0.99


def test_dose_of_labels_with_domains_agrees_with_the_straight_effect(audit, data):
    feature = data.X.columns[data.roles == "causal"][0]
    curve = plots.DoseDisplay.from_estimator(audit, feature, data.X, data.y, data.domain)
    inside = (curve.table["low"] <= curve.table["line"]) & (
        curve.table["line"] <= curve.table["high"]
    )
    assert inside.mean() > 0.6
    assert "log-odds" in curve.label


def test_dose_of_an_audit_that_left_out_a_leak(data):
    X = data.X[["x0", "x1", "x2"]].assign(leak=data.y + 0.0)[["leak", "x0", "x1", "x2"]]
    curves = []
    for given in (X, X.to_numpy()):
        audit = ShiftAudit(random_state=0).fit(given, data.y, sample_domain=data.domain)
        name = audit.selector_.effects_.index[0]
        assert len(audit.selector_.effects_) == 3
        display = plots.DoseDisplay.from_estimator(audit, name, given, data.y, data.domain)
        curves.append(display.table)
    np.testing.assert_allclose(curves[0], curves[1])
    alone = CausalFeatureSelector(2, random_state=0)
    alone.fit(X[["x0", "x1", "x2"]], data.y, sample_domain=data.domain)
    same = plots.DoseDisplay.from_estimator(alone, "x0", X.iloc[:, 1:], data.y, data.domain)
    np.testing.assert_allclose(same.table["effect"], curves[0]["effect"])


def test_dose_of_dates_groups_classes_and_missing_values(numbers):
    _, X, y = numbers
    X = X.assign(day=pd.date_range("2020-01-01", periods=len(X)), copy=3.0)
    X.loc[::4, "straight"] = np.nan
    classes = np.digitize(y, [0.5, 2])
    selector = CausalFeatureSelector(2, random_state=0).fit(X, classes)
    day = plots.DoseDisplay.from_estimator(selector, "day", X, classes)
    assert day.ax_.get_xlabel() == "day, in days since 1970"
    assert day.table["value"].between(18262, 18262 + len(X)).all()
    missing = plots.DoseDisplay.from_estimator(selector, "straight", X, classes)
    assert missing.table["line"].isna().all()  # the effect is of value and indicator together
    assert missing.ax_.get_legend_handles_labels()[1] == ["curve, with 95 % band", "deciles"]
    assert "log-odds" in missing.label
    with pytest.raises(ValueError, match="got 'copy'"):  # constant
        plots.plot_dose(selector, "copy", X, classes)
    groups = ["first", "second", "second", "day"]
    selector = CausalFeatureSelector(2, groups=groups, random_state=0).fit(X, y)
    curve = plots.DoseDisplay.from_estimator(selector, "first", X, y).table
    assert curve["effect"].iloc[[0, -1]].min() > 1
    assert plots.plot_dose(selector, "day", X, y).get_xlabel() == "day, in days since 1970"


def test_dose_is_for_numbers(numbers):
    selector, X, y = numbers
    with pytest.raises(ValueError, match="a number with more than two values, got 'copy'"):
        plots.plot_dose(selector, "copy", X, y)
    with pytest.raises(ValueError, match="names of features, got 'nothing'"):
        plots.plot_dose(selector, "nothing", X, y)


def test_functions_draw_on_the_axes_given_and_return_them(audit, data):
    from matplotlib import pyplot as plt

    for function in (
        plots.plot_effects,
        plots.plot_effects_by_domain,
        plots.plot_curve,
        plots.plot_stability,
        plots.plot_shift,
        plots.plot_forecast,
    ):
        ax = axes()
        assert function(audit, ax=ax) is ax
    ax = axes()
    assert plots.plot_dose(audit, "x0", data.X, data.y, data.domain, ax=ax) is ax
    assert plt.get_fignums() == []


def test_displays_can_be_drawn_again(selector):
    display = plots.EffectsDisplay.from_estimator(selector)
    ax = axes()
    assert display.plot(ax) is display
    assert display.ax_ is ax
    assert display.figure_ is ax.figure


def test_not_fitted():
    for function in (plots.plot_effects, plots.plot_curve, plots.plot_shift):
        with pytest.raises(NotFittedError):
            function(CausalFeatureSelector())
    with pytest.raises(NotFittedError):
        plots.plot_overlap(DDML())


def test_what_is_missing_is_said(numbers, selector, effect):
    alone = numbers[0]
    with pytest.raises(ValueError, match="only with n_features_to_select='auto'"):
        plots.plot_curve(alone)
    with pytest.raises(ValueError, match="at least 2 domains, got 1"):
        plots.plot_stability(alone)
    with pytest.raises(ValueError, match="at least 2 domains, got 1"):
        plots.plot_effects_by_domain(alone)
    with pytest.raises(ValueError, match="needs forecast_, which a fitted ShiftAudit has"):
        plots.plot_forecast(selector)
    with pytest.raises(ValueError, match="needs effects_"):
        plots.plot_effects(effect)
    with pytest.raises(ValueError, match="per must be"):
        plots.plot_effects(selector, per="row")
    with pytest.raises(ValueError, match="n_features must be"):
        plots.plot_effects(selector, n_features=0)
    with pytest.raises(ValueError, match="got 'y'; there are"):
        plots.plot_effects_by_domain(selector, features=["y"])


def test_without_matplotlib(selector, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'ddml-fs\[plot\]'"):
        plots.plot_effects(selector)


def wide_selector(n_features=400, n_domains=12):
    """What plots read of a selector of many features with long names."""
    rng = np.random.default_rng(0)
    effect = rng.normal(0, 0.3, n_features)
    tau = np.abs(rng.normal(0, 0.2, n_features))
    names = [LONG.format(j) for j in range(n_features)]
    names[0], names[1] = "$\\alpha$ costs 3 $", "<b>two\nlines</b>"
    order = np.argsort(-np.abs(effect))
    rank = np.empty(n_features, dtype=int)
    rank[order] = np.arange(1, n_features + 1)
    effects = pd.DataFrame(
        {
            "effect": effect,
            "std_effect": effect,
            "stderr": 0.1,
            "df": 1,
            "tau": tau,
            "tau_low": 0.0,
            "instability": tau / np.sqrt(tau**2 + effect**2 + 0.01),
            "rank": rank,
            "selected": rank <= 30,
            **{f"effect[{d}]": effect + rng.normal(0, tau) for d in range(n_domains)},
        },
        index=names,
    )

    class Selector(CausalFeatureSelector):
        effects_ = effects.copy()
        domains_ = np.arange(n_domains)

        def conf_int(self, joint=False):
            half = 0.3 if joint else 0.2
            return pd.DataFrame({"low": effect - half, "high": effect + half}, index=names)

        def __sklearn_is_fitted__(self):
            return True

    return Selector(scale="log_odds")


@pytest.mark.parametrize("name", ["effects", "effects_by_domain", "stability"])
def test_nothing_is_clipped_with_many_features_and_long_names(name):
    ax = getattr(plots, f"plot_{name}")(wide_selector())
    figure = ax.figure
    figure.draw_without_rendering()
    low, high = ax.get_xlim()
    ticks = [t for t in ax.get_xticklabels() if low <= t.get_position()[0] <= high]
    texts = [*ax.texts, *ax.get_legend().get_texts(), ax.xaxis.label, ax.yaxis.label, *ticks]
    if name != "stability":
        texts += ax.get_yticklabels()
    for text in (t for t in texts if t.get_text()):
        box = text.get_window_extent()
        assert figure.bbox.x0 <= box.x0, text
        assert box.x1 <= figure.bbox.x1, text
        assert figure.bbox.y0 <= box.y0, text
        assert box.y1 <= figure.bbox.y1, text
    assert all(len(t.get_text()) <= LONGEST + 2 for t in ax.get_yticklabels())


def test_names_of_points_do_not_overlap():
    ax = axes()
    rng = np.random.default_rng(0)
    x, y = rng.random(300), rng.random(300)
    ax.scatter(x[:50], y[:50])
    texts = name_points(ax, x[:50], y[:50], [LONG.format(j) for j in range(50)], np.arange(50))
    assert 2 <= len(texts) <= 8
    boxes = [text.get_window_extent() for text in texts]
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[i + 1 :])


def test_many_points_at_one_place_are_named_once():
    ax = axes()
    ax.scatter([0.5] * 5, [0.5] * 5)
    texts = name_points(ax, np.full(5, 0.5), np.full(5, 0.5), list("abcde"), np.arange(5))
    assert texts[0].get_text() == "a"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("age", "age"),
        (3, "3"),
        ("a\nb\tc", "a b c"),
        ("5 $ or $x$", r"5 \$ or \$x\$"),
        ("x" * 28, "x" * 28),
        ("a" * 30 + "b" * 30, "a" * 14 + "…" + "b" * 13),
    ],
)
def test_shorten(name, shown):
    assert shorten(name) == shown


def test_names_that_differ_look_different():
    names = [f"RELATED_FACTOR_({j})-PERSON_LEVEL" for j in range(1, 4)]
    short = shorten_all([*names, "age", "age"])
    assert len(set(short)) == 4
    assert all(f"({j})" in text for j, text in enumerate(short[:3], 1))
    assert max(map(len, short)) <= LONGEST


def test_colours_differ_in_greyscale_or_shape():
    rgb = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in COLOURS])
    grey = rgb @ [0.299, 0.587, 0.114]
    assert len(set(plots.by_domain.MARKERS)) == len(COLOURS)
    assert np.ptp(grey) > 60


@pytest.fixture(scope="module")
def people():
    """A 0/1 treatment whose effect grows with age."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.normal(40, 10, 3000), "noise": rng.standard_normal(3000)})
    T = (rng.random(3000) < expit((X["age"] - 40) / 10)).astype(int)
    y = 0.1 * (X["age"] - 20) * T + X["age"] / 10 + rng.standard_normal(3000)
    return X, y, T, DDML("smooth", random_state=0).fit(X, y, treatment=T)


def test_sensitivity_contours_end_where_no_effect_remains(people):
    X, y, T, effect = people
    benchmarks = effect.benchmark(X, y, treatment=T, columns=["age"])
    display = plots.SensitivityDisplay.from_estimator(effect, benchmarks=benchmarks)
    for i, j in ((0, 0), (10, 30), (59, 59)):
        row = effect.sensitivity(display.cf[i], display.cf[j])
        assert display.bound[i, j] == pytest.approx(row["low"])
    assert display.bound[0, 0] == effect.effect_
    assert display.cf[-1] >= min(benchmarks["cf_y"].max(), 0.999)
    assert "age" in [text.get_text() for text in display.ax_.texts]
    assert plots.plot_sensitivity(effect, ax=display.ax_) is display.ax_


def test_names_of_benchmarks_do_not_hide_one_another(people):
    """Six points in one corner, one far away: all have a name, apart from points and numbers."""
    effect = people[3]
    names = ["age", "education", "marriage", "race", "earnings", "town", "all of them"]
    x = [0.001, 0.0012, 0.0, 0.0005, 0.002, 0.0001, 0.01]
    y = [0.002, 0.0, 0.001, 0.0012, 0.0031, 0.0001, 0.4]
    benchmarks = pd.DataFrame({"cf_d": x, "cf_y": y}, index=names)
    ax = plots.plot_sensitivity(effect, benchmarks=benchmarks)
    ax.figure.canvas.draw()
    texts = {text.get_text(): text for text in ax.texts if text.get_text()}
    assert set(names) <= set(texts)
    boxes = [text.get_window_extent() for text in texts.values()]
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:i])
    at = ax.transData.transform(benchmarks.to_numpy())
    assert not any(texts[name].get_window_extent().contains(*p) for name in names for p in at)


def test_groups_along_a_number_and_by_name(people):
    X, _, _, effect = people
    display = plots.GroupsDisplay.from_estimator(effect, X["age"], n_bins=5)
    line = display.ax_.lines[0]
    np.testing.assert_allclose(line.get_ydata(), effect.by(X["age"], n_bins=5)["effect"])
    assert (np.diff(line.get_ydata()) > 0).all()
    assert display.ax_.get_xlabel() == "age"
    old = pd.Series(np.where(X["age"] > 40, "old", "young"), name="group")
    ax = plots.plot_groups(effect, old)
    assert {text.get_text() for text in ax.get_yticklabels()} == {"old", "young"}


def test_placebos_are_marks_around_zero(people):
    X, y, T, effect = people
    table = effect.placebo(X, y, treatment=T, n=3, fraction=0.3)
    ax = plots.plot_placebo(effect, table)
    drawn = [line.get_xdata() for line in ax.lines[:2]]
    np.testing.assert_allclose(drawn, np.stack(table["z"]))
