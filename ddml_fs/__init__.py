"""Causal effects and causal feature selection by Disentangled Double Machine Learning."""

from ddml_fs.classifier import EffectClassifier
from ddml_fs.effect import DDML
from ddml_fs.selector import CausalFeatureSelector

__all__ = ["DDML", "CausalFeatureSelector", "EffectClassifier"]
__version__ = "0.1.0"
