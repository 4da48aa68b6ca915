"""Plots of fitted estimators: functions that return Axes, and display classes.

They need matplotlib: ``pip install 'ddml-fs[plot]'``.
"""

from ddml_fs.plotting.by_domain import DomainEffectsDisplay, plot_effects_by_domain
from ddml_fs.plotting.checks import (
    GroupsDisplay,
    PlaceboDisplay,
    SensitivityDisplay,
    plot_groups,
    plot_placebo,
    plot_sensitivity,
)
from ddml_fs.plotting.curve import CurveDisplay, ForecastDisplay, plot_curve, plot_forecast
from ddml_fs.plotting.dose import DoseDisplay, plot_dose
from ddml_fs.plotting.effects import EffectsDisplay, plot_effects
from ddml_fs.plotting.maps import ShiftDisplay, StabilityDisplay, plot_shift, plot_stability
from ddml_fs.plotting.single import OverlapDisplay, RolesDisplay, plot_overlap, plot_roles

__all__ = [
    "CurveDisplay",
    "DomainEffectsDisplay",
    "DoseDisplay",
    "EffectsDisplay",
    "ForecastDisplay",
    "GroupsDisplay",
    "OverlapDisplay",
    "PlaceboDisplay",
    "RolesDisplay",
    "SensitivityDisplay",
    "ShiftDisplay",
    "StabilityDisplay",
    "plot_curve",
    "plot_dose",
    "plot_effects",
    "plot_effects_by_domain",
    "plot_forecast",
    "plot_groups",
    "plot_overlap",
    "plot_placebo",
    "plot_roles",
    "plot_sensitivity",
    "plot_shift",
    "plot_stability",
]
