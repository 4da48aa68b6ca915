"""Causal effects by Disentangled Double Machine Learning."""

from ddml_fs.effect import DDML

__all__ = ["DDML"]
__version__ = "0.1.0"
