"""The benchmark of blocks of rows."""

import numpy as np
import pytest

from benchmarks.blocks import in_blocks, in_memory, write_file


def test_both_ways_agree(tmp_path):
    """As the benchmark claims for large files."""
    pytest.importorskip("pyarrow")
    path = str(tmp_path / "rows.parquet")
    write_file(path, 3000, 25)
    blocks, memory = in_blocks(path), in_memory(path)
    for name in ("effect", "stderr"):
        np.testing.assert_allclose(blocks[name], memory[name], rtol=0, atol=1e-6)
    assert (blocks["rank"].to_numpy() == memory["rank"].to_numpy()).all()
