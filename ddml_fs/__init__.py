"""Causal effects and causal feature selection by Disentangled Double Machine Learning."""

import logging
from importlib import import_module
from typing import TYPE_CHECKING

from ddml_fs.version import __version__

if TYPE_CHECKING:
    from ddml_fs.audit import ShiftAudit
    from ddml_fs.blocks import read_blocks
    from ddml_fs.cautions import DDMLWarning
    from ddml_fs.classifier import EffectClassifier
    from ddml_fs.effect import DDML
    from ddml_fs.privacy import GaussianNoise
    from ddml_fs.selector import CausalFeatureSelector
    from ddml_fs.sites import collect_site

__all__ = [
    "DDML",
    "CausalFeatureSelector",
    "DDMLWarning",
    "EffectClassifier",
    "GaussianNoise",
    "ShiftAudit",
    "__version__",
    "collect_site",
    "read_blocks",
]

MODULES = {
    "DDML": "ddml_fs.effect",
    "CausalFeatureSelector": "ddml_fs.selector",
    "DDMLWarning": "ddml_fs.cautions",
    "EffectClassifier": "ddml_fs.classifier",
    "GaussianNoise": "ddml_fs.privacy",
    "ShiftAudit": "ddml_fs.audit",
    "collect_site": "ddml_fs.sites",
    "read_blocks": "ddml_fs.blocks",
}

# Applications decide what is shown.
logging.getLogger(__name__).addHandler(logging.NullHandler())


def __getattr__(name):
    """Import the public classes when they are asked for: torch takes seconds."""
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(MODULES[name]), name)
    return value


def __dir__():
    return sorted(__all__)
