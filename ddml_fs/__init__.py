"""Causal effects and causal feature selection by Disentangled Double Machine Learning."""

import logging

from ddml_fs.audit import ShiftAudit
from ddml_fs.cautions import DDMLWarning
from ddml_fs.classifier import EffectClassifier
from ddml_fs.effect import DDML
from ddml_fs.selector import CausalFeatureSelector
from ddml_fs.version import __version__

__all__ = [
    "DDML",
    "CausalFeatureSelector",
    "DDMLWarning",
    "EffectClassifier",
    "ShiftAudit",
    "__version__",
]

# Applications decide what is shown.
logging.getLogger(__name__).addHandler(logging.NullHandler())
