"""Tables that are read in blocks: what can be read, and that it is read as a whole."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ddml_fs import CausalFeatureSelector
from ddml_fs.blocks import read_blocks
from ddml_fs.datasets import make_domain_data

pa = pytest.importorskip("pyarrow")
ROOT = Path(__file__).resolve().parents[1]


def ridge(**options):
    options = {"nuisance": "ridge", "scale": "mean", "random_state": 0} | options
    return CausalFeatureSelector(4, **options)


@pytest.fixture(scope="module")
def frame():
    data = make_domain_data(3, 200, 4, 2, 4, n_targets=1, random_state=0)
    frame = pd.DataFrame(data.X, columns=[f"c{j}" for j in range(10)])
    frame["flag"] = frame["c9"] > 0
    return frame.assign(bought=np.array(["no", "yes"])[data.y], site=data.sample_domain)


@pytest.fixture(scope="module")
def expected(frame):
    source = frame[frame["site"] > 0]
    X = source.drop(columns=["bought", "site"]).to_numpy(float)
    blocks = read_blocks(X, source["bought"].to_numpy(), source["site"].to_numpy())
    return ridge().fit(blocks)


def sources(frame, folder):
    """The same table in all kinds of containers."""
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    path = folder / "rows.parquet"
    frame.to_parquet(path, row_group_size=150)
    parts = folder / "parts"
    parts.mkdir()
    for i in range(3):
        frame.iloc[i::3].to_parquet(parts / f"{i}.parquet")
    yield "path", path
    yield "text", str(path)
    yield "file", pq.ParquetFile(path)
    yield "dataset", ds.dataset(path)
    yield "table", pa.Table.from_pandas(frame)
    yield "frame", frame


def test_every_container_gives_the_same(frame, expected, tmp_path):
    for name, source in sources(frame, tmp_path):
        selector = ridge().fit(source, "bought", "site")
        np.testing.assert_allclose(selector.scores_, expected.scores_, atol=1e-9, err_msg=name)
        assert list(selector.feature_names_in_) == list(frame.columns[:11])
        assert list(selector.domains_) == [1, 2, 3]
        selector.set_output(transform="pandas")
        shown = selector.transform(frame[frame.columns[:11]].astype(float))
        assert list(shown) == list(selector.get_feature_names_out())


def test_a_folder_of_files(frame, tmp_path):
    """Files are read in the order of their names; hive folders are a column."""
    ordered = frame.sort_values("site", kind="stable")
    for site, part in ordered.groupby("site"):
        folder = tmp_path / f"site={site}"
        folder.mkdir()
        part.drop(columns="site").to_parquet(folder / "rows.parquet")
    selector = ridge().fit(tmp_path, y="bought", sample_domain="site")
    direct = ridge().fit(ordered, "bought", "site")
    np.testing.assert_allclose(selector.scores_, direct.scores_, atol=1e-9)


def test_dask(frame, expected):
    dd = pytest.importorskip("dask.dataframe")
    selector = ridge().fit(dd.from_pandas(frame, npartitions=4), "bought", "site")
    np.testing.assert_allclose(selector.scores_, expected.scores_, atol=1e-9)


def test_memory_maps(frame, expected, tmp_path):
    source = frame[frame["site"] > 0]
    np.save(tmp_path / "X.npy", source.drop(columns=["bought", "site"]).to_numpy(np.float32))
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    y, site = source["bought"].to_numpy(), source["site"].to_numpy()
    selector = ridge().fit(read_blocks(X, y, site, rows_per_block=64))
    np.testing.assert_allclose(selector.scores_, expected.scores_, atol=1e-6)


def test_columns_are_chosen(frame):
    blocks = read_blocks(frame, "bought", "site", columns=["c1", "c2", "c3", "c0"])
    assert list(ridge().fit(blocks).feature_names_in_) == ["c1", "c2", "c3", "c0"]


def test_blocks_fit_into_the_budget(frame):
    sizes = []
    blocks = read_blocks(pd.concat([frame] * 40), "bought", "site")
    for X, *_ in blocks.read(0.001):
        sizes.append(len(X))
    assert max(sizes) * X.shape[1] * 8 < 1e6 / 4
    assert sum(sizes) == 40 * (frame["site"] > 0).sum()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"c1": "text"}, "column 'c1' must hold numbers or truth values"),
        ({"c1": np.nan}, "column 'c1' must hold finite numbers"),
        ({"bought": None}, "the label must be known in every row"),
        ({"site": None}, "the domain must be known in every row"),
        ({"site": -1}, "X must have rows of a source domain"),
    ],
)
def test_bad_columns(frame, change, words):
    with pytest.raises(ValueError, match=words):
        ridge().fit(frame.assign(**change), "bought", "site")


def test_bad_sources(frame, tmp_path):
    with pytest.raises(ValueError, match="did you mean 'bought'"):
        ridge().fit(frame, "bougth", "site")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        ridge().fit(tmp_path / "none.parquet", "y")
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="is not Parquet"):
        ridge().fit(tmp_path / "rows.csv", "b")
    with pytest.raises(TypeError, match="must be a path to Parquet"):
        ridge().fit([1, 2], "y")
    with pytest.raises(TypeError, match="names of columns"):
        read_blocks(frame, frame["bought"])
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(TypeError, match="names of columns"):
        ridge().fit(tmp_path / "rows.parquet", frame["bought"])
    with pytest.raises(ValueError, match="one value per row"):
        read_blocks(np.ones((5, 2)), np.ones(4))
    with pytest.raises(ValueError, match="blocks have their own labels"):
        ridge().fit(read_blocks(frame, "bought", "site"), frame["bought"])
    with pytest.raises(ValueError, match="other than label and domain"):
        read_blocks(frame, "bought", columns=["bought"])


MEASURE = """
import sys
from pathlib import Path
from ddml_fs import CausalFeatureSelector
CausalFeatureSelector(5, nuisance="ridge", memory_budget=0.1).fit(sys.argv[1], "y")
status = Path("/proc/self/status").read_text()  # unlike rusage, without the parent's memory
print(int(status.split("VmHWM:")[1].split()[0]) / 1e6)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured as Linux reports it")
def test_a_large_row_group_is_not_read_at_once(tmp_path):
    """0.2 GB of numbers in one row group, with a budget of half of that."""
    import pyarrow.parquet as pq

    rng = np.random.RandomState(0)
    n = 250_000
    columns = {f"x{j}": rng.standard_normal(n) for j in range(100)}
    pq.write_table(pa.table(columns | {"y": rng.standard_normal(n)}), tmp_path / "rows.parquet")
    del columns
    argv = [sys.executable, "-c", MEASURE, str(tmp_path / "rows.parquet")]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, cwd=ROOT)
    assert float(done.stdout) < 0.75  # GB, of which libraries are 0.4
