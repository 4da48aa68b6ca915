"""Data with known truth, and benchmarks."""

from ddml_fs.datasets.amazon import fetch_amazon_reviews, fetch_multi_domain_sentiment
from ddml_fs.datasets.crashes import load_crashes
from ddml_fs.datasets.domains import make_domain_data
from ddml_fs.datasets.effects import make_dense_effect_data, make_effect_data
from ddml_fs.datasets.ihdp import fetch_ihdp
from ddml_fs.datasets.jobs import fetch_jobs
from ddml_fs.datasets.shifts import fetch_shift
from ddml_fs.datasets.twins import fetch_twins

__all__ = [
    "fetch_amazon_reviews",
    "fetch_ihdp",
    "fetch_jobs",
    "fetch_multi_domain_sentiment",
    "fetch_shift",
    "fetch_twins",
    "load_crashes",
    "make_dense_effect_data",
    "make_domain_data",
    "make_effect_data",
]
