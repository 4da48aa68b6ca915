"""How fitted estimators look in notebooks: HTML with inline styles, for light and dark pages."""

from html import escape

import numpy as np
from sklearn import get_config
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

N_SHOWN = 10  # rows of a table
WIDTH, HEIGHT = 160, 14  # of a picture in a row, in pixels
COLOUR = "#4c8dd6"  # readable on white and on black
CELL = "padding:2px 8px;text-align:left;white-space:nowrap"
LONGEST_NAME = 40  # characters


class HTMLRepr:
    """Shows a summary of a fitted estimator in notebooks, above scikit-learn's diagram.

    An estimator that is not fitted has only the diagram, and so does a pipeline.
    """

    def _html_summary(self):
        """The summary of the fit as HTML."""
        raise NotImplementedError

    def _html(self):
        diagram = estimator_html_repr(self)
        try:
            check_is_fitted(self)
            summary = self._html_summary()
        except (NotFittedError, ValueError):  # parameters may have been changed to wrong ones
            return diagram
        return (
            f'<div style="font-family:sans-serif;font-size:13px;line-height:1.5">{summary}'
            f"<details><summary>Parameters</summary>{diagram}</details></div>"
        )

    @property
    def _repr_html_(self):
        if get_config()["display"] != "diagram":
            raise AttributeError("_repr_html_ needs sklearn.set_config(display='diagram').")
        return self._html

    def _repr_mimebundle_(self, **kwargs):
        bundle = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            bundle["text/html"] = self._html()
        return bundle


def number(value):
    """A number with three significant digits.

    Examples
    --------
    >>> number(0.12345), number(-12345.6), number(0.0), number(float("nan")), number(-np.inf)
    ('0.123', '-12346', '0', '–', '-∞')
    """
    if np.isnan(value):
        return "–"
    if np.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.3g}"


def pvalue(p):
    """A p-value in words.

    Examples
    --------
    >>> pvalue(0.03214), pvalue(1e-9)
    ('p = 0.032', 'p < 0.001')
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def name_cell(name):
    """A name, escaped; a long one is cut, and whole where the mouse points at it."""
    name = str(name)
    short = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
    return f'<span title="{escape(name)}">{escape(short)}</span>'


def svg(shapes, title):
    """A picture in a row of a table."""
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{escape(title)}" '
        f'style="vertical-align:middle">{shapes}</svg>'
    )


def interval_picture(value, low, high, limits):
    """A dot with its interval, and a line at 0.

    Parameters
    ----------
    value, low, high : float
    limits : pair of float
        Ends of the axis.
    """
    start, end = limits
    scale = (WIDTH - 8) / ((end - start) or 1.0)

    def x(a):
        return f"{4 + (a - start) * scale:.1f}"

    middle = HEIGHT / 2
    strength = 1 if low > 0 or high < 0 else 0.45
    shapes = (
        f'<line x1="{x(0)}" x2="{x(0)}" y1="0" y2="{HEIGHT}" stroke="currentColor" opacity="0.35"/>'
        f'<g opacity="{strength}"><line x1="{x(low)}" x2="{x(high)}" y1="{middle}" y2="{middle}" '
        f'stroke="{COLOUR}" stroke-width="2"/>'
        f'<circle cx="{x(value)}" cy="{middle}" r="3.5" fill="{COLOUR}"/></g>'
    )
    return svg(shapes, f"{number(value)}, from {number(low)} to {number(high)}")


def bar_picture(value, largest):
    """A bar from the middle to the right or, for a negative value, to the left."""
    length = (WIDTH / 2 - 4) * min(abs(value) / (largest or 1.0), 1.0)
    left = WIDTH / 2 - (length if value < 0 else 0)
    shapes = (
        f'<rect x="{left:.1f}" y="2" width="{length:.1f}" height="{HEIGHT - 4}" fill="{COLOUR}"/>'
        f'<line x1="{WIDTH / 2}" x2="{WIDTH / 2}" y1="0" y2="{HEIGHT}" stroke="currentColor" '
        'opacity="0.35"/>'
    )
    return svg(shapes, number(value))


def share_picture(value, largest):
    """A bar from the left."""
    length = (WIDTH / 2 - 4) * float(np.clip(value / (largest or 1.0), 0, 1))
    return (
        f'<svg width="{WIDTH // 2}" height="{HEIGHT}" role="img" aria-label="{number(value)}" '
        f'style="vertical-align:middle"><rect x="0" y="3" width="{length:.1f}" '
        f'height="{HEIGHT - 6}" fill="{COLOUR}"/></svg>'
    )


def table_html(heads, rows):
    """A table; cells are HTML already."""
    border = "border-bottom:1px solid currentColor"
    head = "".join(f'<th style="{CELL};{border}">{escape(h)}</th>' for h in heads)
    body = "".join(
        "<tr>" + "".join(f'<td style="{CELL}">{cell}</td>' for cell in row) + "</tr>"
        for row in rows
    )
    return (
        '<table style="border-collapse:collapse;background:transparent;color:inherit;'
        'font-size:13px;margin:4px 0">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def effect_html(effect):
    """Summary of a fitted :class:`~ddml_fs.DDML`: effect, interval, p-value and verdict."""
    low, high = effect.conf_int()
    limits = min(low, 0.0), max(high, 0.0)
    return (
        f'<div style="font-size:15px"><b>{escape(effect.estimand_)} {number(effect.effect_)}</b>, '
        f"95 % interval {number(low)} to {number(high)}, {escape(pvalue(effect.pvalue_))} "
        f"{interval_picture(effect.effect_, low, high, limits)}</div>"
        f"<div>{escape(effect.verdict_.removeprefix(f'{effect.estimand_}. '))}</div>"
        f'<div style="opacity:0.75">{len(effect.residuals_)} rows, {effect.n_features_in_} '
        f"columns, {escape(effect.score_.replace('_', ' '))} score</div>"
    )


def selector_html(selector):
    """Summary of a fitted :class:`~ddml_fs.CausalFeatureSelector`: the best features."""
    ends = selector.conf_int()
    table = selector.effects_.assign(low=ends["low"].to_numpy(), high=ends["high"].to_numpy())
    shown = table.sort_values("rank", kind="stable").head(N_SHOWN)
    shown = shown[shown["stderr"].notna()]  # constant columns have none
    # Effects of one standard deviation share an axis.
    unit = np.where(shown["effect"] == 0, 1.0, shown["std_effect"] / shown["effect"])
    low, high = (shown[end].to_numpy() * unit for end in ("low", "high"))
    known = np.concatenate([end[np.isfinite(end)] for end in (low, high, shown["std_effect"])])
    limits = min(0.0, known.min(initial=0.0)), max(0.0, known.max(initial=0.0))
    low, high = np.clip(low, *limits), np.clip(high, *limits)  # infinite ends
    rows = [
        [
            str(int(row["rank"])),
            name_cell(name),
            number(row["effect"]),
            f"{number(row['low'])} to {number(row['high'])}",
            interval_picture(row["std_effect"], low[i], high[i], limits),
            share_picture(row["score"], shown["score"].max()),
            "selected" if row["selected"] else "",
        ]
        for i, (name, row) in enumerate(shown.iterrows())
    ]
    heads = ["rank", "feature", "effect", "95 % interval", "per standard deviation", "score", ""]
    return (
        f"<div><b>{int(table['selected'].sum())} of {len(table)} features selected</b>"
        f"{domains_text(selector.domains_)}</div>{table_html(heads, rows)}{more(len(table))}"
    )


def audit_html(audit):
    """Summary of a fitted :class:`~ddml_fs.ShiftAudit`: the verdicts, and suspicious features."""
    said = "".join(f"<li>{escape(sentence)}</li>" for sentence in audit.verdicts_)
    shown = audit.features_[audit.features_["verdict"].isin(["leak", "effect moves"])]
    rows = [
        [
            name_cell(name),
            row["leak"] or row["verdict"],
            number(row["alone"]),
            "" if np.isnan(row["effect"]) else number(row["effect"]),
            "" if np.isnan(row["tau"]) else number(row["tau"]),
        ]
        for name, row in shown.head(N_SHOWN).iterrows()
    ]
    heads = ["feature", "verdict", "alone", "effect", "spread τ"]
    table = table_html(heads, rows) + more(len(shown), "features_") if rows else ""
    return f"<ul>{said}</ul>{table}"


def domains_text(domains):
    """The domains in words, escaped."""
    if len(domains) < 2:
        return ", one domain"
    names = ", ".join(str(d) for d in domains[:N_SHOWN])
    dots = ", …" if len(domains) > N_SHOWN else ""
    return escape(f", {len(domains)} domains ({names}{dots})")


def more(n, where="effects_"):
    """A line that says how many rows are not shown."""
    if n <= N_SHOWN:
        return ""
    return f'<div style="opacity:0.75">and {n - N_SHOWN} more in <code>{where}</code></div>'


def classifier_html(classifier, names, spread):
    """Summary of a fitted :class:`~ddml_fs.EffectClassifier`: the largest weights.

    Parameters
    ----------
    classifier : EffectClassifier
    names : list of str
        Names of the columns of ``coef_``.
    spread : array of shape (n_columns,)
        Standard deviations of these columns.
    """
    weights = classifier.coef_ * spread
    best = np.abs(weights).argmax(0)
    largest = weights[best, np.arange(weights.shape[1])]
    order = np.argsort(-np.abs(largest), kind="stable")[:N_SHOWN]
    several = len(weights) > 1
    rows = []
    for j in order:
        row = [name_cell(names[j]), number(classifier.coef_[best[j], j])]
        row += [number(largest[j]), bar_picture(largest[j], np.abs(largest).max())]
        rows.append([*row, name_cell(classifier.classes_[best[j]])] if several else row)
    heads = [
        "column",
        "log-odds per unit",
        "per standard deviation",
        "",
        *(["class"] if several else []),
    ]
    used = int((classifier.coef_ != 0).any(0).sum())
    classes = ", ".join(str(c) for c in classifier.classes_[:N_SHOWN])
    return (
        f"<div><b>{used} of {len(names)} columns have weights</b>, classes {escape(classes)}, "
        f"penalty {', '.join(number(p) for p in classifier.penalty_)}</div>"
        f"{table_html(heads, rows)}{more(len(names), 'coef_')}"
    )
