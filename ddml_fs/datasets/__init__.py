"""Data with known truth."""

from ddml_fs.datasets.domains import make_domain_data
from ddml_fs.datasets.effects import make_dense_effect_data, make_effect_data

__all__ = ["make_dense_effect_data", "make_domain_data", "make_effect_data"]
