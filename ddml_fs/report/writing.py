"""write_report: what fitted estimators found, as one HTML file."""

import base64
import hashlib
from collections.abc import Sequence
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.utils.validation import check_is_fitted

from ddml_fs.estimate import summary_table
from ddml_fs.plotting.reading import effect_label
from ddml_fs.report.figures import pictures
from ddml_fs.report.tables import (
    facts_of,
    feature_table,
    settings_of,
    table_of,
    versions,
)
from ddml_fs.report.verdicts import assumptions, verdicts

FOLDER = Path(__file__).parent
QUESTIONS = {
    "audit": "Which features leak the outcome, which have effects that differ between domains, and "
    "how well will a model do in a new domain?",
    "selector": "Which features have an effect on the outcome, and which should a model for a new "
    "domain use?",
    "effect": "What is the effect of the treatment on the outcome?",
}


def write_report(
    path: str | PathLike,
    *,
    selector: Any = None,
    audit: Any = None,
    effect: Any = None,
    title: str = "",
    data: Any = None,
    notes: Sequence[str] = (),
    command: str = "",
    code: str = "",
) -> Path:
    """Write a report of what fitted estimators found: one HTML file that needs no network.

    Parameters
    ----------
    path : str or path
        The file; it is replaced where it exists.
    selector : CausalFeatureSelector, optional
    audit : ShiftAudit, optional
        Its selector is reported too, unless another one is given.
    effect : DDML, optional
        At least one of the three must be given, and all that are given must be fitted.
    title : str, default=""
        Title of the page.
    data : DataFrame or mapping, optional
        What is told of the data. A DataFrame is counted; a mapping is shown as it is, and its
        values that are DataFrames as tables.
    notes : sequence of str, default=()
        What was done with the data before, one sentence each.
    command, code : str, default=""
        The command, and the Python code, that make the report again. Without code, what the
        estimators' settings tell.

    Returns
    -------
    path : Path

    Examples
    --------
    >>> import tempfile
    >>> from ddml_fs import CausalFeatureSelector
    >>> from ddml_fs.datasets import make_domain_data
    >>> from ddml_fs.report import write_report
    >>> data = make_domain_data(n_samples=300, n_causal=5, n_spurious=5, n_noise=10, random_state=0)
    >>> selector = CausalFeatureSelector(5, random_state=0)
    >>> _ = selector.fit(data.X, data.y, sample_domain=data.sample_domain)
    >>> path = write_report(f"{tempfile.mkdtemp()}/report.html", selector=selector)
    >>> path.read_text(encoding="utf-8").count("<svg")
    3
    """
    path = Path(path)
    given = {"audit": audit, "selector": selector, "effect": effect}
    given = {name: estimator for name, estimator in given.items() if estimator is not None}
    if not given:
        raise ValueError("write_report needs a selector, an audit or an effect, got none of them.")
    for estimator in given.values():
        check_is_fitted(estimator)
    if path.is_dir() or not path.parent.is_dir():
        what = "a folder" if path.is_dir() else "a file in a folder that does not exist"
        raise ValueError(f"path must be a file in a folder that exists, got {what}: {path}.")
    notes = [notes] if isinstance(notes, str) else list(notes)
    page = render(given, title=title, data=data, notes=notes, command=command, code=code)
    path.write_text(page, encoding="utf-8")
    return path


def render(given: dict, *, title: str, data: Any, notes: list, command: str, code: str) -> str:
    """The page as text."""
    try:
        import matplotlib  # noqa: F401, the figures need it
        from jinja2 import Environment, FileSystemLoader
    except ImportError as error:
        raise ImportError(
            f"Reports need {error.name}, which is not installed; pip install 'ddml-fs[report]'."
        ) from None
    audit, effect = given.get("audit"), given.get("effect")
    selector = given.get("selector", getattr(audit, "selector_", None))
    parts = {"selector": selector, "audit": audit, "effect": effect}
    script = (FOLDER / "page.js").read_text(encoding="utf-8")
    environment = Environment(loader=FileSystemLoader(FOLDER), autoescape=True)
    facts, tables = facts_of(data)
    leaks = None
    if audit is not None and len(audit.leaks_):
        leaks = table_of(audit.leaks_, index="feature")
    return environment.get_template("page.html.j2").render(
        title=title or default_title(given),
        questions=[QUESTIONS[name] for name in given],
        verdicts=verdicts(**parts),
        assumptions=assumptions(**parts),
        pictures=pictures(**parts),
        features=None if selector is None else feature_table(selector, audit),
        unit=None if selector is None else effect_label(audit or selector, "unit"),
        facts=facts + counts_of(**parts, data=data),
        tables=tables + domains_of(audit),
        findings=findings_of(audit, effect),
        leaks=leaks,
        reading=None if selector is None else table_of(selector.encoding_, index="column"),
        notes=notes,
        settings=[(type(e).__name__, settings_of(e)) for e in given.values()],
        versions=versions(),
        date=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        command=command,
        code=code or code_of(given),
        style=(FOLDER / "page.css").read_text(encoding="utf-8"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def default_title(given: dict) -> str:
    """A title that says which kinds of findings the page has."""
    names = {"audit": "Shift audit", "selector": "Feature selection", "effect": "Effect"}
    return " and ".join([names[name] for name in given][:2])


def counts_of(selector: Any, audit: Any, effect: Any, data: Any) -> list:
    """How many rows, features and domains there are, as far as the data do not tell."""
    out = []
    if audit is not None and data is None:
        out.append(("rows", f"{int(audit.base_rates_['rows'].sum()):,}"))
    if effect is not None and not out and data is None:
        out.append(("rows", f"{int(effect.diagnostics()['n_samples']):,}"))
    if selector is not None:
        n = len(selector.effects_) if audit is None else len(audit.features_)
        out.append(("features", f"{n:,}"))
        names = [str(name) for name in selector.domains_]
        if len(names) > 1:
            shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
            out.append(("domains", f"{len(names)} ({shown})"))
        else:
            out.append(("domains", "1"))
    return out


def domains_of(audit: Any) -> list:
    """Title and table of the domains."""
    if audit is None:
        return []
    rate = "base rates" if "base_rate" in audit.base_rates_ else "means of the outcome"
    title = f"Domains with their rows and {rate}, with 95 % intervals"
    return [(title, table_of(audit.base_rates_, index="domain"))]


def findings_of(audit: Any, effect: Any) -> list:
    """Titles and tables of the findings beside the features."""
    out = []
    if audit is not None:
        out.append(("Forecast for a new domain", table_of(audit.forecast_, index="features")))
    if effect is not None:
        out.append(("Effect", table_of(summary_table(effect), index="estimand")))
        out.append(("Diagnostics", table_of(readable(effect.diagnostics()), index="figure")))
        losses = effect.nuisance_losses_
        out.append(("Held-out losses of the nuisance models", table_of(losses, index="model")))
    return out


def readable(series: pd.Series) -> pd.DataFrame:
    """Named figures as a table."""
    return series.rename(lambda name: str(name).replace("_", " ")).to_frame("value")


def code_of(given: dict) -> str:
    """Python code from the estimators' settings."""
    calls = {
        "audit": "fit(X, y, sample_domain=domain)",
        "selector": "fit(X, y, sample_domain=domain)",
        "effect": "fit(X, y, treatment=treatment)",
    }
    names = sorted({type(e).__name__ for e in given.values()})
    lines = [f"from ddml_fs import {', '.join(names)}", "from ddml_fs.report import write_report"]
    lines += [f"\n{name} = {e!r}\n{name}.{calls[name]}" for name, e in given.items()]
    arguments = ", ".join(f"{name}={name}" for name in given)
    return "\n".join([*lines, f'\nwrite_report("report.html", {arguments})'])
