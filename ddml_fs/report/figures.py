"""Figures of a report: inline SVG whose colours follow the page, light or dark."""

import io
import warnings
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from typing import Any

from ddml_fs.plotting import (
    CurveDisplay,
    DomainEffectsDisplay,
    EffectsDisplay,
    ForecastDisplay,
    OverlapDisplay,
    RolesDisplay,
    ShiftDisplay,
    StabilityDisplay,
)
from ddml_fs.plotting.curve import MEASURES
from ddml_fs.plotting.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PAPER,
    PURPLE,
    SKY,
    VERMILLION,
    row_height,
)

WIDTH = 5.0  # inches; at the width of a phone, letters are still large enough
INK = "#1f2328"
VARIABLES = {
    INK: "currentColor",
    PAPER: "var(--paper)",
    BLUE: "var(--blue)",
    VERMILLION: "var(--vermillion)",
    GREEN: "var(--green)",
    PURPLE: "var(--purple)",
    SKY: "var(--sky)",
    ORANGE: "var(--orange)",
    GREY: "var(--grey)",
}
STYLE: dict = {
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
}
FONTS = "'DejaVu Sans', Verdana, Geneva, sans-serif"
SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"


@dataclass(frozen=True)
class Picture:
    """A figure of a report: its name, title, caption and SVG."""

    name: str
    title: str
    caption: str
    svg: str


def draw(name: str, title: str, caption: str, display: Any, estimator: Any, **options) -> Picture:
    """Draw a display of an estimator as SVG."""
    import matplotlib
    from matplotlib.figure import Figure

    each = options.pop("each", None)  # inches of a row, in plots with one row per feature
    stream = io.StringIO()
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        # The browser has the letters that matplotlib's font may lack.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure = Figure(figsize=(WIDTH, options.pop("height", 3.2)), layout="constrained")
        ax = display.from_estimator(estimator, ax=figure.subplots(), **options).ax_
        if each is not None:
            figure.set_size_inches(WIDTH, row_height(len(ax.get_yticks()), each))
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return Picture(name, title, caption, themed(stream.getvalue(), name, title))


def themed(text: str, name: str, title: str) -> str:
    """An SVG for a page: colours as variables, names of parts of its own, scaled by the page."""
    ET.register_namespace("", SVG)
    ET.register_namespace("xlink", XLINK)
    root = ET.fromstring(text.encode())
    for metadata in root.findall(f"{{{SVG}}}metadata"):
        root.remove(metadata)
    for element in root.iter():
        for key, value in element.attrib.items():
            if key == "id":
                value = f"{name}-{value}"
            elif key == f"{{{XLINK}}}href" and value.startswith("#"):
                value = f"#{name}-{value[1:]}"
            elif key != "aria-label":
                value = value.replace("url(#", f"url(#{name}-").replace("'DejaVu Sans'", FONTS)
                for colour, variable in VARIABLES.items():
                    value = value.replace(colour, variable)
            element.set(key, value)
    for key in ("width", "height"):
        root.attrib.pop(key, None)
    root.set("role", "img")
    root.set("aria-label", title)
    return ET.tostring(root, encoding="unicode")


def pictures(selector: Any = None, audit: Any = None, effect: Any = None) -> list[Picture]:
    """All figures that the given estimators allow."""
    out = []
    if selector is not None:
        out += of_selector(selector, audit)
    if audit is not None:
        out += of_audit(audit)
    if effect is not None:
        caption = OVERLAP[effect.score_ == "interactive"]
        out.append(draw("overlap", "Overlap", caption, OverlapDisplay, effect))
        if hasattr(effect, "roles_"):
            caption = "What the networks use each covariate for. The strongest has the weight 1."
            title = "Roles of the covariates"
            out.append(draw("roles", title, caption, RolesDisplay, effect, each=0.24))
    return out


OVERLAP = {
    True: "An effect can be estimated where the two groups overlap. Dotted lines: propensities "
    "beyond are clipped.",
    False: "The effect rests on what the covariates leave of the treatment.",
}


def of_selector(selector: Any, audit: Any) -> list[Picture]:
    """Effects, the number of features, and with several domains what differs between them."""
    teller = selector if audit is None else audit
    bands = "The joint intervals hold for all features together."
    out = [
        draw(
            "effects",
            "Effects of the best features",
            bands if selector.has_joint_intervals else "Each interval holds for its feature alone.",
            EffectsDisplay,
            teller,
            each=0.24,
        )
    ]
    if len(selector.domains_) > 1:
        first = "best" if audit is None else "most suspicious"
        out.append(
            draw(
                "by-domain",
                "Effects by domain",
                f"The ten {first} features. Marks far apart: the effect differs between domains.",
                DomainEffectsDisplay,
                teller,
                each=0.26 + 0.04 * min(len(selector.domains_), 8),
            )
        )
        out.append(
            draw(
                "stability",
                "Stability map",
                "Shaded: the spread between domains is large beside the effect. For small effects, "
                "chance can do that.",
                StabilityDisplay,
                teller,
                height=3.9,
            )
        )
    if hasattr(selector, "curve_") and selector.curve_["loss"].notna().any():
        caption = "Mean over the parts of the data that were left out, one at a time."
        title = "Gain against the number of features"
        out.append(draw("curve", title, caption, CurveDisplay, teller))
    return out


def of_audit(audit: Any) -> list[Picture]:
    """What shifts, and the forecast."""
    out = []
    if len(audit.domains_) > 1:
        caption = "A correct model stays correct when a mean shifts, but not when an effect does."
        title = "Shift of effects and of means"
        out.append(draw("shift", title, caption, ShiftDisplay, audit, height=3.9))
    if any(name in audit.forecast_ for name in MEASURES):
        caption = f"With {audit.level:.0%} intervals. In brackets: the number of features."
        title = "What to expect in a new domain"
        out.append(draw("forecast", title, caption, ForecastDisplay, audit, height=2.3))
    return out
