"""Shared fixtures."""

import os

# Two workers of pytest share two cores. More threads would wait for each other, up to ten times as
# long as they work. This comes before the libraries that read it.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import pytest
import torch

from ddml_fs.datasets import make_effect_data


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Torch, too, uses one thread per worker of pytest."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def binary_data():
    return make_effect_data("binary", n_samples=1500, n_features=12, random_state=0)


@pytest.fixture(scope="session")
def continuous_data():
    return make_effect_data("continuous", n_samples=1500, n_features=12, random_state=0)
