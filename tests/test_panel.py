"""Panels: fixed effects, clusters and small-sample factors are those of pyfixest."""

import numpy as np
import pandas as pd
import pyfixest as pf
import pytest
from sklearn.linear_model import LinearRegression

from ddml_fs import DDML
from ddml_fs.cautions import DDMLWarning
from ddml_fs.inference import clustered_stderr
from ddml_fs.panel import inflation, read_panel, rows_with_company, within
from ddml_fs.scores import PartiallyLinear

SLOPES = 3  # t, x1 and x2
EXACT = pf.MapDemeaner(fixef_tol=1e-12)
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.*singleton fixed")


def draw(seed=0, n_units=60, n_times=8, share=0.7, bend=lambda x: x):
    """An unbalanced panel with a true effect of 1, whose unit and time effects confound."""
    rng = np.random.default_rng(seed)
    unit, time = (a.ravel() for a in np.indices((n_units, n_times)))
    seen = rng.uniform(size=len(unit)) < share
    unit, time = unit[seen], time[seen]
    n = len(unit)
    shared = rng.standard_normal(n_units)[unit] + rng.standard_normal(n_times)[time]
    x = rng.standard_normal((n, 2)) + 0.8 * rng.standard_normal((n_units, 2))[unit]
    t = shared + bend(x[:, 0]) + rng.standard_normal(n)
    noise = rng.standard_normal(n) + 0.5 * rng.standard_normal(n_units)[unit]
    y = t + 2 * shared + bend(x[:, 0]) - 0.5 * x[:, 1] + noise
    return pd.DataFrame(
        {"x1": x[:, 0], "x2": x[:, 1], "t": t, "y": y, "unit": unit, "time": time}
    ).assign(unit=lambda d: "u" + d["unit"].astype(str))


def by_least_squares(frame, ways, cluster=None, weight=None, **options):
    """Effect and standard error from this package's parts, with linear nuisances on all rows."""
    panel, _, _ = read_panel(ways, frame, "t", "auto", weight)
    rows = frame[panel.keep]
    data = within(rows[["y", "t", "x1", "x2"]].to_numpy(), panel.codes, panel.weight)
    clusters = panel.codes[:, :1] if cluster is None else cluster[panel.keep]
    Y, T, X = data[:, 0], data[:, 1], data[:, 2:]
    root = np.sqrt(panel.weight)
    v, e = (a - X @ np.linalg.lstsq(X * root[:, None], a * root, rcond=None)[0] for a in (T, Y))
    moments = PartiallyLinear().of_residuals(v, e, weight=panel.weight)
    stderr = clustered_stderr(moments.influence, clusters)
    return moments.theta, stderr * inflation(panel.codes, clusters, **options), data


@pytest.mark.parametrize("ways", [["unit"], ["unit", "time"]], ids=["one way", "two ways"])
def test_equals_pyfixest(ways):
    frame = draw()
    formula = f"y ~ t + x1 + x2 | {' + '.join(ways)}"
    peer = pf.feols(formula, frame, vcov={"CRV1": "unit"}, demeaner=EXACT)
    theta, stderr, data = by_least_squares(frame, ways, n_slopes=SLOPES)
    assert theta == pytest.approx(peer.coef()["t"], abs=1e-6)
    assert stderr == pytest.approx(peer.se()["t"], abs=1e-6)
    np.testing.assert_allclose(data[:, 0], peer._Y.ravel(), atol=1e-8)
    np.testing.assert_allclose(data[:, 1:], peer._X, atol=1e-8)


@pytest.mark.parametrize("ways", [["unit"], ["unit", "time"]], ids=["one way", "two ways"])
@pytest.mark.parametrize("group", ["unit", "group"])
def test_weights_equal_pyfixest(ways, group):
    frame = draw().assign(w=np.random.default_rng(1).uniform(0.2, 5, len(draw())))
    frame["group"] = np.arange(len(frame)) % 12
    formula = f"y ~ t + x1 + x2 | {' + '.join(ways)}"
    peer = pf.feols(formula, frame, vcov={"CRV1": group}, weights="w", demeaner=EXACT)
    cluster = None if group == "unit" else frame[["group"]].to_numpy()
    given = {"weight": frame["w"], "n_slopes": SLOPES}
    theta, stderr, _ = by_least_squares(frame, ways, cluster, **given)
    assert theta == pytest.approx(peer.coef()["t"], abs=1e-6)
    assert stderr == pytest.approx(peer.se()["t"], abs=1e-6)
    plain = by_least_squares(frame, ways, cluster, n_slopes=SLOPES)[0]
    assert abs(theta - plain) > 1e-3


@pytest.mark.parametrize("ways", [["unit"], ["unit", "time"]], ids=["one way", "two ways"])
def test_integer_weights_are_repeated_rows(ways):
    """In the transformation, and in a whole fit with linear models on the same folds."""
    frame = draw(n_units=40, share=1.0)
    weight = np.random.default_rng(2).integers(0, 4, len(frame))
    copies = frame.loc[np.repeat(frame.index, weight)].reset_index(drop=True)
    panel, _, _ = read_panel(ways, frame, "t", "auto", weight)
    left = within(frame["y"].to_numpy()[panel.keep], panel.codes, panel.weight)
    twin, _, _ = read_panel(ways, copies, "t", "auto")
    repeated = within(copies["y"].to_numpy()[twin.keep], twin.codes)
    np.testing.assert_allclose(np.repeat(left, weight[panel.keep]), repeated, atol=1e-8)
    X, options = ["x1", "x2", "unit", "time"][: 2 + len(ways)], {"random_state": 0}
    given = {"treatment": "t", "fixed_effects": ways}
    weighted, doubled = DDML(LinearRegression(), **options), DDML(LinearRegression(), **options)
    weighted.fit(frame[["t", *X]], frame["y"], sample_weight=weight, **given)
    doubled.fit(copies[["t", *X]], copies["y"], **given)
    assert len(weighted.residuals_) == panel.keep.sum() == (weight > 0).sum()
    assert weighted.effect_ == pytest.approx(doubled.effect_, rel=1e-6)
    factors = [inflation(p.codes, p.codes[:, :1]) for p in (panel, twin)]
    ratio = factors[0] / factors[1]  # more rows, but no more information
    assert weighted.stderr_ == pytest.approx(doubled.stderr_ * ratio, rel=1e-6)
    assert "left out" not in weighted.verdict_


def test_equal_weights_change_nothing():
    frame = draw()
    given = {"treatment": frame["t"], "fixed_effects": frame["unit"]}
    model, twin = DDML("smooth", random_state=0), DDML("smooth", random_state=0)
    model.fit(frame[["x1", "x2"]], frame["y"], **given)
    twin.fit(frame[["x1", "x2"]], frame["y"], sample_weight=np.full(len(frame), 7.0), **given)
    assert twin.effect_ == pytest.approx(model.effect_, rel=1e-12)
    assert twin.stderr_ == pytest.approx(model.stderr_, rel=1e-12)


def test_benchmarks_know_the_weights():
    frame = draw()
    weight = np.random.default_rng(3).uniform(0.2, 5, len(frame))
    X, given = frame[["x1", "x2", "unit"]], {"treatment": frame["t"]}
    known = {"sample_weight": weight, "fixed_effects": "unit"}
    model = DDML("ridge", random_state=0).fit(X, frame["y"], **given, **known)
    short = DDML("ridge", random_state=0).fit(X[["x2", "unit"]], frame["y"], **given, **known)
    table = model.benchmark(X, frame["y"], **given, columns=["x1"])
    assert table["change"].iloc[0] == pytest.approx(short.effect_ - model.effect_)


def test_without_the_small_sample_factor():
    frame = draw()
    ssc = pf.ssc(k_adj=False)
    peer = pf.feols("y ~ t + x1 + x2 | unit", frame, vcov={"CRV1": "unit"}, ssc=ssc)
    _, stderr, _ = by_least_squares(frame, "unit")
    n = len(frame)
    assert stderr == pytest.approx(peer.se()["t"] * np.sqrt((n - 1) / (n - 2)), abs=1e-6)


@pytest.mark.parametrize("ways", [["unit"], ["unit", "time"]], ids=["one way", "two ways"])
def test_clusters_that_do_not_nest_the_units(ways):
    frame = draw().assign(group=np.arange(len(draw())) % 12)
    formula = f"y ~ t + x1 + x2 | {' + '.join(ways)}"
    peer = pf.feols(formula, frame, vcov={"CRV1": "group"}, demeaner=EXACT)
    _, stderr, _ = by_least_squares(frame, ways, frame[["group"]].to_numpy(), n_slopes=SLOPES)
    assert stderr == pytest.approx(peer.se()["t"], abs=1e-6)


def test_rows_that_are_alone_are_left_out():
    frame = draw(n_units=300, n_times=4, share=0.3)
    peer = pf.feols("y ~ t + x1 + x2 | unit + time", frame, vcov={"CRV1": "unit"}, demeaner=EXACT)
    with pytest.warns(DDMLWarning, match=r"^\d+ rows are the only ones of their unit or time"):
        theta, stderr, data = by_least_squares(frame, ["unit", "time"], n_slopes=SLOPES)
    assert len(data) == peer._N < len(frame)
    assert theta == pytest.approx(peer.coef()["t"], abs=1e-6)
    assert stderr == pytest.approx(peer.se()["t"], abs=1e-6)


def test_results_have_the_rows_that_are_kept():
    frame = draw(n_units=300, n_times=4, share=0.3)
    frame.index = [f"row {i}" for i in range(len(frame))]
    size = frame.groupby("unit")["y"].transform("size")
    X = frame[["x1", "x2"]]
    model = DDML("ridge", random_state=0)
    model.fit(X, frame["y"], treatment=frame["t"], fixed_effects=frame["unit"])
    assert model.residuals_.index.tolist() == frame.index[size > 1].tolist()
    assert len(model.influence_) == (size > 1).sum()
    assert f"; {(size == 1).sum()} rows without another row of their unit" in model.verdict_
    model.fit(X.to_numpy(), frame["y"], treatment=frame["t"], fixed_effects=frame["unit"])
    assert model.residuals_.index.tolist() == np.flatnonzero(size > 1).tolist()
    # The rows that are left out have no say.
    kept = frame[size > 1]
    peer = DDML("ridge", random_state=0)
    peer.fit(kept[["x1", "x2"]], kept["y"], treatment=kept["t"], fixed_effects=kept["unit"])
    assert peer.effect_ == model.effect_


def test_all_rows_alone():
    with pytest.raises(ValueError, match="units with two rows or more, got none"):
        DDML("ridge").fit(
            np.eye(30), np.arange(30), treatment=np.arange(30), fixed_effects=range(30)
        )
    assert not rows_with_company(np.arange(5)[:, None]).any()


def test_means_vanish_in_both_ways():
    frame = draw(share=0.4)
    panel, _, _ = read_panel(["unit", "time"], frame, "t", "auto")
    left = within(frame["y"].to_numpy()[panel.keep], panel.codes)
    for way in panel.codes.T:
        assert np.abs(np.bincount(way, left)).max() < 1e-9


@pytest.fixture(scope="module")
def long():
    frame = draw(seed=1, n_units=200, n_times=6, share=1.0)
    return frame.assign(treated=(frame["t"] > frame["t"].mean()).astype(int))


def test_fixed_effects_remove_what_biases_a_plain_effect(long):
    X = long[["x1", "x2"]]
    plain = DDML("smooth", random_state=0).fit(X, long["y"], treatment=long["t"])
    assert abs(plain.effect_ - 1) > 20 * plain.stderr_
    ways = long[["unit", "time"]].to_numpy()
    model = DDML("smooth", random_state=0).fit(
        X, long["y"], treatment=long["t"], fixed_effects=ways
    )
    assert abs(model.effect_ - 1) < 4 * model.stderr_
    assert "Fixed effects of 200 units and of 6 times taken out." in model.verdict_
    assert model.score_ == "partially_linear"
    # With the linear models that are true, the standard error is that of least squares.
    frame = long.assign(when=long["time"])
    peer = pf.feols("y ~ t + x1 + x2 | unit + when", frame, vcov={"CRV1": "unit"})
    assert model.effect_ == pytest.approx(peer.coef()["t"], abs=0.3 * model.stderr_)
    assert model.stderr_ == pytest.approx(peer.se()["t"], rel=0.05)
    low, high = model.conf_int()
    assert (high - low) / model.stderr_ > 2 * 1.96  # Student's t with 199 degrees of freedom


def test_names_are_the_same_as_arrays(long):
    outside = DDML("smooth", random_state=0).fit(
        long[["x1", "x2"]], long["y"], treatment=long["t"], fixed_effects=long["unit"]
    )
    inside = DDML("smooth", random_state=0).fit(
        long[["unit", "x1", "t", "x2"]], long["y"], treatment="t", fixed_effects="unit"
    )
    number = DDML("smooth", random_state=0).fit(
        long[["unit", "x1", "t", "x2"]], long["y"], treatment=2, fixed_effects=["unit"]
    )
    assert inside.effect_ == pytest.approx(outside.effect_, abs=1e-10)
    assert number.effect_ == inside.effect_
    assert inside.feature_names_in_.tolist() == ["x1", "t", "x2"]
    assert inside.residuals_.index.equals(long.index)


def test_folds_and_errors_follow_the_units_or_the_given_clusters(long):
    fixed = {"treatment": long["t"], "fixed_effects": long["unit"]}
    model = DDML("ridge", random_state=0).fit(long[["x1", "x2"]], long["y"], **fixed)
    for train, hold in model.folds_:
        assert not set(long["unit"].iloc[train]) & set(long["unit"].iloc[hold])
    towns = np.arange(len(long)) // 60  # ten units each
    given = DDML("ridge", random_state=0).fit(long[["x1", "x2"]], long["y"], cluster=towns, **fixed)
    for train, hold in given.folds_:
        assert not set(towns[train]) & set(towns[hold])
    expected = clustered_stderr(given.influence_, towns[:, None])
    n = len(long)
    assert given.stderr_ == pytest.approx(expected * np.sqrt((n - 1) / (n - 2)))


def test_unit_means_help_where_confounding_bends():
    frame = draw(seed=2, n_units=300, n_times=6, share=1.0, bend=lambda x: 0.5 * x**2)
    fixed = {"treatment": frame["t"], "fixed_effects": ["unit", "time"]}
    X = frame[["x1", "x2", "unit", "time"]]
    model = DDML("smooth", random_state=0).fit(X, frame["y"], **fixed)
    codes = np.column_stack([pd.factorize(frame[way])[0] for way in ("unit", "time")])
    alone = {name: within(frame[name].to_numpy(), codes) for name in ("x1", "x2", "t", "y")}
    less = DDML("smooth", random_state=0).fit(
        pd.DataFrame(alone)[["x1", "x2"]], alone["y"], treatment=alone["t"], cluster=codes[:, 0]
    )
    assert abs(model.effect_ - 1) < 0.5 * abs(less.effect_ - 1)


def test_networks_name_the_users_columns(long):
    from ddml_fs.nuisances import Network

    model = DDML(Network(epochs=5), random_state=0)
    model.fit(long[["x1", "x2", "t", "unit"]], long["y"], treatment="t", fixed_effects="unit")
    assert model.roles_.index.tolist() == ["x1", "x2"]
    with pytest.raises(AttributeError, match="no latents with fixed_effects"):
        model.represent(long[["x1", "x2", "t"]])


def test_zero_one_treatments_and_other_methods(long):
    X = long[["x1", "x2", "unit"]]
    model = DDML("smooth", random_state=0).fit(
        X, long["y"], treatment=long["treated"], fixed_effects="unit"
    )
    assert model.estimand_ == "partially linear slope"
    row = model.sensitivity(0.0, 0.0)
    assert row["ci_low"] == pytest.approx(model.effect_ - 1.6449 * model.stderr_, rel=1e-3)
    table = model.benchmark(X, long["y"], treatment=long["treated"], columns=["x1"])
    assert table["cf_y"].iloc[0] > 0


@pytest.mark.parametrize("way", ["name", "codes"])
def test_placebos_find_nothing(way):
    """Also where errors depend on one another within units, and where rows are left out."""
    frame = draw(seed=1, n_units=80, n_times=5, share=0.6)
    X, fixed = frame[["x1", "x2", "unit"]], "unit"
    if way == "codes":
        X, fixed = frame[["x1", "x2"]].to_numpy(), pd.factorize(frame["unit"])[0]
    model = DDML("smooth", random_state=0)
    with pytest.warns(DDMLWarning, match="only ones of their unit"):
        model.fit(X, frame["y"], treatment=frame["t"], fixed_effects=fixed)
    assert abs(model.effect_ / model.stderr_) > 5
    table = model.placebo(X, frame["y"], treatment=frame["t"], n=12, fraction=0.8)
    assert table["passed"].all()
    assert (table["mean_z"].abs() < 3.5 / np.sqrt(12)).all()
    with pytest.raises(ValueError, match=f"must have the {len(frame)} rows of fit"):
        model.placebo(X, frame["y"][:-1], treatment=frame["t"][:-1])


def test_placebos_keep_signs_within_units(long):
    X, y, t = long[["x1", "x2", "unit"]], long["y"], long["t"].to_numpy()
    model = DDML("smooth", random_state=0).fit(X, y, treatment=t, fixed_effects="unit")
    made, same = model._with_signs("outcome", y, t, np.random.RandomState(0))
    hat, left = model.nuisances_, model.residuals_
    ratio = (made - hat["g"] + model.effect_ * hat["m"]) / left["u"]
    np.testing.assert_allclose(ratio.abs(), 1, rtol=1e-6)
    assert (ratio.groupby(long["unit"]).std() < 1e-6).all()
    assert 0.3 < (ratio > 0).mean() < 0.7
    assert same is t
    again, permuted = model._with_signs("treatment", y, t, np.random.RandomState(0))
    assert again is y
    np.testing.assert_allclose((permuted - hat["m"]) / left["v"], ratio, rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"score": "interactive"}, "needs score='partially_linear', got 'interactive'"),
        ({"score": "logistic"}, "needs score='partially_linear', got 'logistic'"),
        ({"target": "att"}, "target='att' needs score='interactive'"),
        ({"fixed_effects": "village"}, "must be columns of X, got 'village'"),
        ({"fixed_effects": np.zeros((1200, 3))}, r"\(1200,\) or \(1200, 2\), got \(1200, 3\)"),
        ({"fixed_effects": np.r_[np.nan, np.ones(1199)]}, "known in every row, got 1 missing"),
        ({"treatment": np.repeat(np.arange(200), 6)}, "treatment must vary within units"),
        ({"fixed_effects": np.arange(1200) // 400}, "at least n_folds=5 units, got 3"),
    ],
    ids=["interactive", "logistic", "att", "name", "ways", "missing", "constant", "few"],
)
def test_bad_input(long, change, words):
    given = {"treatment": long["treated"], "fixed_effects": long["unit"]}
    options = {name: change.pop(name) for name in ("score", "target") if name in change}
    with pytest.raises(ValueError, match=words):
        DDML("ridge", **options).fit(long[["x1", "x2"]], long["y"], **(given | change))
