"""Data with known truth, and benchmarks."""

from ddml_fs.datasets.amazon import fetch_amazon_reviews, fetch_multi_domain_sentiment
from ddml_fs.datasets.domains import make_domain_data
from ddml_fs.datasets.effects import make_dense_effect_data, make_effect_data

__all__ = [
    "fetch_amazon_reviews",
    "fetch_multi_domain_sentiment",
    "make_dense_effect_data",
    "make_domain_data",
    "make_effect_data",
]
