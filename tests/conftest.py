"""Shared fixtures."""

import pytest
import torch

from ddml_fs.datasets import make_effect_data


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Two workers of pytest share two cores."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def binary_data():
    return make_effect_data("binary", n_samples=1500, n_features=12, random_state=0)


@pytest.fixture(scope="session")
def continuous_data():
    return make_effect_data("continuous", n_samples=1500, n_features=12, random_state=0)
