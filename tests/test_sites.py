"""Sites that keep their rows: files of sums give what the pooled rows give."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from typer.testing import CliRunner

from ddml_fs import CausalFeatureSelector, GaussianNoise, collect_site, read_blocks
from ddml_fs.cli import app
from ddml_fs.datasets import make_domain_data
from ddml_fs.sites import merge_sites, read_site


@pytest.fixture(scope="module")
def frame():
    data = make_domain_data(3, 400, 4, 2, 4, n_targets=0, random_state=0)
    frame = pd.DataFrame(data.X, columns=[f"c{j}" for j in range(10)])
    frame["flag"] = (frame["c9"] > 0).astype(float)
    return frame.assign(
        label=np.array(["no", "yes"])[data.y],
        number=frame["c0"] - frame["c1"] + np.random.RandomState(0).standard_normal(len(frame)),
        site=np.array(["", "north", "south", "west"])[data.sample_domain],
    )


def collect(frame, folder, y="label", **options):
    """One file per site."""
    files = []
    for site, part in frame.groupby("site"):
        X = part.drop(columns=["label", "number", "site"])
        files.append(collect_site(X, part[y], folder / f"{site}.npz", site=site, **options))
    return files


@pytest.mark.parametrize("y", ["label", "number"])
@pytest.mark.parametrize("options", [{}, {"covariates": "all", "ranking": "tstat"}])
def test_files_give_what_pooled_rows_give(frame, tmp_path, y, options):
    files = collect(frame, tmp_path, y)
    apart = CausalFeatureSelector.from_sites(files, 4, random_state=0, **options)
    blocks = read_blocks(frame, y, "site", columns=[*(f"c{j}" for j in range(10)), "flag"])
    pooled = CausalFeatureSelector(
        4, nuisance="ridge", scale="mean", random_state=0, **options
    ).fit(blocks)
    np.testing.assert_allclose(
        apart.effects_.astype(float), pooled.effects_.astype(float), rtol=1e-8, atol=1e-10
    )
    np.testing.assert_array_equal(apart.ranking_, pooled.ranking_)
    assert list(apart.domains_) == ["north", "south", "west"]
    assert "effect[south]" in apart.effects_
    shown = apart.transform(frame[list(apart.feature_names_in_)])
    assert shown.shape == (len(frame), 4)


def test_files_hold_no_rows_and_no_pickles(frame, tmp_path):
    (path, *_) = collect(frame, tmp_path)
    with np.load(path, allow_pickle=False) as file:
        shapes = {name: file[name].shape for name in file.files}
    assert max(np.prod(shape, dtype=int) for shape in shapes.values()) == 5 * 11 * 12 // 2
    assert path.stat().st_size < 20_000


def test_names_of_arrays_and_columns(frame, tmp_path):
    X = frame[["c0", "c1"]]
    collect_site(X.to_numpy(), frame["label"], tmp_path / "a.npz", site="a")
    collect_site(X.assign(y=frame["label"]), "y", tmp_path / "b.npz", site="b")
    assert read_site(tmp_path / "a.npz")[0].names == ["x0", "x1"]
    assert read_site(tmp_path / "b.npz")[0].names == ["c0", "c1"]


def test_files_must_match(frame, tmp_path):
    X, y = frame[["c0", "c1", "c2"]], frame["label"]
    first = collect_site(X, y, tmp_path / "first.npz", site="first")

    def fit(*files):
        return CausalFeatureSelector.from_sites(files, 2)

    def other(X=X, y=y, site="other", **options):
        return collect_site(X, y, tmp_path / "other.npz", site=site, **options)

    for options, words in (
        ({"X": X[["c0", "c1"]]}, "other.npz must have the columns of the first file, got 'c2' mis"),
        ({"X": X.assign(more=1.0 * (X["c0"] > 1))}, "got 'more' more"),
        ({"X": X[["c1", "c0", "c2"]]}, "another order"),
        ({"y": frame["number"]}, "must have labels in y as the first file, got numbers"),
        ({"n_folds": 4}, r"must have the folds and the seed \(5, 0\)"),
        ({"site": "first"}, "which another file is of too"),
    ):
        with pytest.raises(ValueError, match=words):
            fit(first, other(**options))
    with pytest.raises(ValueError, match="n_folds must be that of the files"):
        CausalFeatureSelector.from_sites([first], 2, n_folds=3)
    with pytest.raises(ValueError, match="list of files"):
        CausalFeatureSelector.from_sites(first, 2)
    (tmp_path / "text.npz").write_text("no")
    with pytest.raises(ValueError, match=r"text.npz is no file of collect_site"):
        fit(first, tmp_path / "text.npz")
    with pytest.raises(FileNotFoundError):
        fit(first, tmp_path / "none.npz")
    data = dict(np.load(first)) | {"version": 7}
    np.savez(tmp_path / "new.npz", **data)
    with pytest.raises(ValueError, match="must have version 1, got 7"):
        fit(tmp_path / "new.npz")


def test_few_rows_are_refused(frame, tmp_path):
    X, y, out = frame[["c0", "c1"]], frame["label"], tmp_path / "a.npz"
    rare = np.where(np.arange(len(y)) < 20, "yes", "no")
    with pytest.raises(ValueError, match="class 'yes' must have at least 5 rows in every fold"):
        collect_site(X, rare, out, site="a")
    with pytest.raises(ValueError, match="column 'ill' must differ from its usual value"):
        collect_site(X.assign(ill=1.0 * (np.arange(len(X)) < 12)), y, out, site="a")
    with pytest.raises(ValueError, match="the table must have at least 5 rows in every fold"):
        collect_site(X[:20], frame["number"][:20], out, site="a")
    with pytest.raises(ValueError, match=r"must end in \.npz"):
        collect_site(X, y, tmp_path / "a.csv", site="a")
    with pytest.raises(ValueError, match="random_state is the seed of noise"):
        collect_site(X, y, out, site="a", random_state=0)
    with pytest.raises(ValueError, match="column 'c0' must hold finite numbers"):
        collect_site(X.assign(c0=np.nan), y, out, site="a")


def test_commands(frame, tmp_path):
    files, run = [], CliRunner().invoke
    for site, part in frame.groupby("site"):
        table, file = tmp_path / f"{site}.csv", tmp_path / f"{site}.npz"
        part.assign(name=[f"{site} {i}" for i in range(len(part))]).to_csv(table, index=False)
        options = ["--label", "label", "--site", site, "--out", str(file), "--drop", "number,site"]
        done = run(app, ["site", str(table), *options, "--json"])
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["rows"] == len(part)
        files.append(str(file))
    done = run(app, ["pool", *files, "--n-features", "4", "--json"])
    direct = CausalFeatureSelector.from_sites(collect(frame, tmp_path), 4, random_state=0)
    assert set(json.loads(done.stdout)["selected"]) == set(direct.get_feature_names_out())
    done = run(app, ["pool", *files, "--n-features", "auto"])
    assert done.exit_code == 2
    assert "choose a number, a share or 'fdr'" in done.output


# --- Noise ---


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_noise_is_calibrated(epsilon):
    """The two normal distributions that a row tells apart differ by as much as allowed."""
    s = GaussianNoise(epsilon, 1e-5, low=0, high=1).multiplier
    delta = norm.cdf(0.5 / s - epsilon * s) - np.exp(epsilon) * norm.cdf(-0.5 / s - epsilon * s)
    assert delta == pytest.approx(1e-5, rel=1e-3)
    if epsilon <= 1:  # never more noise than by the classical formula
        assert s <= np.sqrt(2 * np.log(1.25 / 1e-5)) / epsilon


@pytest.mark.parametrize("label", [True, False])
def test_no_row_moves_the_sums_by_more_than_the_sensitivity(label):
    """Rows at the corners of the bounds, for sums before noise."""
    rng = np.random.RandomState(0)
    P, most = 6, 0.0
    bound = GaussianNoise.sensitivity(P, label)
    for _ in range(200):
        u = rng.choice([-1.0, 1.0], P) if rng.rand() < 0.5 else rng.uniform(-1, 1, P)
        own = rng.permutation([1.0, 0.0, 0.0]) if label else [rng.choice([-1, 1]), 1]
        z = np.r_[u * P**-0.25, own]
        most = max(most, np.linalg.norm(np.outer(z, z)[np.triu_indices(len(z))]))
    assert most <= bound + 1e-12
    assert most > 0.99 * bound


def test_noise_has_the_stated_size():
    rng = np.random.RandomState(0)
    X, y = rng.uniform(0, 1, (2000, 3)), rng.binomial(1, 0.5, 2000)
    noise = GaussianNoise(1.0, low=0, high=1)
    draws = [noise.cell(X, y, [0, 1], np.random.default_rng(i)) for i in range(300)]
    sd = noise.multiplier * noise.sensitivity(3, True)
    counts = np.array([draw.classes[1][0] for draw in draws])
    assert counts.mean() == pytest.approx(y.sum(), abs=4 * sd / np.sqrt(300))
    assert counts.std() == pytest.approx(sd, rel=0.15)


@pytest.mark.parametrize("y", ["label", "number"])
def test_little_noise_changes_little(frame, tmp_path, y):
    wide = pd.concat([frame] * 30)
    noise = GaussianNoise(500.0, 1e-3, low=-6.0, high=6.0, y_low=-12.0, y_high=12.0)
    exact = CausalFeatureSelector.from_sites(collect(wide, tmp_path, y), 4)
    noisy = CausalFeatureSelector.from_sites(
        collect(wide, tmp_path, y, noise=noise, random_state=0), 4
    )
    std = exact.effects_["std_effect"]
    assert np.abs(noisy.effects_["std_effect"] - std).max() < 0.1 * std.abs().max()
    assert not np.allclose(noisy.effects_["std_effect"], std, atol=1e-12)


def test_noise_needs_bounds(frame, tmp_path):
    with pytest.raises(ValueError, match="noise needs low and high, the bounds"):
        collect(frame, tmp_path, noise=GaussianNoise(1.0))
    with pytest.raises(ValueError, match="noise needs low, high, y_low and y_high"):
        collect(frame, tmp_path, "number", noise=GaussianNoise(1.0, low=0, high=1))
    with pytest.raises(ValueError, match="low must be below high"):
        collect(frame, tmp_path, noise=GaussianNoise(1.0, low=1, high=1))
    with pytest.raises(ValueError, match="epsilon must be a number"):
        collect(frame, tmp_path, noise=GaussianNoise(0.0, low=0, high=1))


def test_sums_of_sites_are_those_of_all_rows(frame, tmp_path):
    products, n_folds = merge_sites(collect(frame, tmp_path))
    total = products.table().pooled(np.ones(15, bool))
    X = frame[[*(f"c{j}" for j in range(10)), "flag"]].to_numpy()
    np.testing.assert_allclose(total.S[:11, :11] / len(X), np.cov(X.T, ddof=0), atol=1e-10)
    assert n_folds == 5
