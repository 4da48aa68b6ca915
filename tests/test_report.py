"""Reports: one file with all findings, escaped, and verdicts in plain sentences."""

import re
import sys
import warnings
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from ddml_fs import DDML, CausalFeatureSelector
from ddml_fs.audit import ShiftAudit
from ddml_fs.datasets import make_domain_data, make_effect_data
from ddml_fs.report import write_report
from ddml_fs.report.figures import VARIABLES, themed
from ddml_fs.report.tables import cell, facts_of, feature_table, table_of
from ddml_fs.report.verdicts import assumptions, differing, of_domains, verdicts, weak_overlap

EVIL = "<script>alert('x')</script> & \"$y$\""


@pytest.fixture(scope="module")
def data():
    data = make_domain_data(
        n_samples=200, n_domains=4, n_causal=4, n_spurious=3, n_noise=3, random_state=0
    )
    rows = data.sample_domain > 0
    names = [EVIL, *(f"x{j}" for j in range(1, 10))]
    X = pd.DataFrame(data.X[rows], columns=names)
    y = data.y[rows]
    flip = np.random.default_rng(0).random(len(y)) < 0.02
    X["after"] = np.where(flip, 1 - y, y)  # a leak
    return SimpleNamespace(X=X, y=y, domain=data.sample_domain[rows])


@pytest.fixture(scope="module")
def audit(data):
    return ShiftAudit(random_state=0).fit(data.X, data.y, sample_domain=data.domain)


@pytest.fixture(scope="module")
def single(data):
    """A selector of one domain with a number given."""
    return CausalFeatureSelector(2, random_state=0).fit(data.X[["x1", "x2", "x3"]], data.y)


@pytest.fixture(scope="module")
def effect():
    data = make_effect_data("continuous", n_samples=500, n_features=10, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few rows
        return DDML("ridge", random_state=0).fit(data.X, data.y, treatment=data.treatment)


@pytest.fixture(scope="module")
def page(audit, effect, data, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    written = write_report(
        path,
        audit=audit,
        effect=effect,
        title=f"Report of {EVIL}",
        data=data.X,
        notes=[EVIL],
        command=f"ddml-fs audit {EVIL}",
    )
    assert written == path
    return path.read_text(encoding="utf-8")


class Reader(HTMLParser):
    """Names of tags, ids, text outside of scripts, and addresses."""

    VOID = ("meta", "input", "br", "hr", "img", "link")

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.ids, self.addresses, self.open = [], [], [], []
        self.text, self.errors = "", []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "xlink:href", "action", "data"):
                self.addresses.append(value)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.errors.append(tag)

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.text += data


def test_page_is_well_formed_and_has_no_address_outside(page):
    found = Reader(page)
    assert found.errors == []
    assert found.open == []
    assert len(found.ids) == len(set(found.ids))
    assert [a for a in found.addresses if not a.startswith("#")] == []
    assert {a[1:] for a in found.addresses} <= set(found.ids)
    assert "http" not in re.sub(r'(xmlns(:\w+)?="http[^"]*"|http-equiv)', "", page)


def test_names_are_escaped_everywhere(page):
    found = Reader(page)
    assert found.tags.count("script") == 1
    assert "<script>alert" not in page
    assert EVIL in found.text  # it is shown, as text


def test_page_has_every_part(page, audit, effect):
    text = " ".join(Reader(page).text.split())
    for sentence in audit.verdicts_:
        assert " ".join(sentence.split()) in text
    assert " ".join(effect.verdict_.split()) in text
    for part in ("Verdicts", "Possible leaks", "Features", "Figures", "Data", "Assumptions"):
        assert re.search(f"<h2[^>]*>{part}</h2>", page)
    assert page.count("<svg") == 7  # by domain, effects, stability, curve, shift, forecast, overlap
    assert "800" in text
    assert "random_state" in text
    assert "scikit-learn" in text
    assert f"{effect.effect_:.4g}" in text


def test_leaks_come_first_and_have_a_row(page, audit):
    assert list(audit.leaks_.index) == ["after"]
    assert page.index('id="leaks"') < page.index('id="features"')
    table = feature_table(audit.selector_, audit)
    at = {name: i for i, name in enumerate(table.names)}
    last = table.rows[-1]
    assert last[at["feature"]].text == "after"
    assert last[at["verdict"]].text == "leak"
    assert last[at["effect"]].text == ""
    assert last[at["selected"]].value == 0


def test_table_of_features_has_the_numbers_of_the_selector(audit):
    selector = audit.selector_
    table = feature_table(selector, audit)
    at = {name: i for i, name in enumerate(table.names)}
    effects = selector.effects_.sort_values("rank")
    assert len(table.rows) == len(effects) + 1
    for row, (name, given) in zip(table.rows, effects.iterrows(), strict=False):
        assert row[at["feature"]].text == name
        assert row[at["rank"]].value == given["rank"]
        assert row[at["effect"]].value == pytest.approx(given["effect"])
        assert row[at["low"]].value == pytest.approx(selector.conf_int().loc[name, "low"])
        assert row[at["selected"]].value == given["selected"]
        assert row[at["verdict"]].text == audit.features_.loc[name, "verdict"]


def test_colours_of_figures_follow_the_page(page):
    figures = "".join(re.findall(r"<svg.*?</svg>", page, re.DOTALL))
    assert "var(--blue)" in figures
    assert "currentColor" in figures
    assert not set(re.findall(r"#[0-9a-f]{6}\b", figures)) & set(VARIABLES)


def test_themed_leaves_text_alone():
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="9"><text style="fill: #0072b2" id="a">'
        'id="b" #0072b2</text></svg>'
    )
    out = themed(svg, "f", "title")
    assert 'id="b" #0072b2</text>' in out.replace("&quot;", '"')
    assert 'id="f-a"' in out
    assert "fill: var(--blue)" in out
    assert "width" not in out


@pytest.mark.parametrize(
    ("given", "n_figures"),
    [(("selector",), 1), (("effect",), 1), (("audit",), 6), (("selector", "effect"), 2)],
)
def test_any_subset(given, n_figures, single, audit, effect, tmp_path):
    everything = {"selector": single, "audit": audit, "effect": effect}
    parts = {name: everything[name] for name in given}
    text = write_report(tmp_path / "a.html", **parts).read_text(encoding="utf-8")
    assert text.count("<svg") == n_figures
    assert ('id="table"' in text) == (given != ("effect",))
    found = Reader(text)
    assert found.errors == []
    for name in given:
        assert f"{name} = {type(parts[name]).__name__}" in found.text


def test_code_given_is_shown_instead(single, tmp_path):
    text = write_report(tmp_path / "a.html", selector=single, code="print('again')").read_text()
    assert "print(&#39;again&#39;)" in text
    assert "import write_report" not in text


def test_bad_input(single, tmp_path):
    with pytest.raises(ValueError, match="needs a selector, an audit or an effect, got none"):
        write_report(tmp_path / "a.html")
    with pytest.raises(NotFittedError):
        write_report(tmp_path / "a.html", selector=CausalFeatureSelector())
    with pytest.raises(ValueError, match="in a folder that exists, got a file in a folder that"):
        write_report(tmp_path / "no" / "a.html", selector=single)
    with pytest.raises(ValueError, match="got a folder"):
        write_report(tmp_path, selector=single)
    with pytest.raises(TypeError, match="data must be a DataFrame or a mapping"):
        write_report(tmp_path / "a.html", selector=single, data=3)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_without_a_package(package, single, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"need {package}, .* 'ddml-fs\[report\]'"):
        write_report(tmp_path / "a.html", selector=single)
    assert list(tmp_path.iterdir()) == []


def effects_of(instability, tau_low, selected):
    names = [f"x{j}" for j in range(len(instability))]
    columns = {"instability": instability, "tau_low": tau_low, "selected": selected}
    return pd.DataFrame(columns, index=names)


def test_verdict_on_features_that_differ():
    effects = effects_of([0.9, 0.8, 0.9, 0.1], [0.2, 0.1, 0.0, 0.3], [True, False, True, True])
    assert list(differing(effects)) == [True, True, False, False]
    found = of_domains(effects, 5)
    assert found.warning
    assert found.text == (
        "2 features differ in effect between domains (x0, x1): do not ship a model that leans on "
        "them. 1 of them is selected."
    )


def test_verdict_on_one_feature_that_differs():
    found = of_domains(effects_of([0.9, 0.1], [0.2, 0.0], [True, True]), 2)
    assert found.text == (
        "1 feature differs in effect between domains (x0): do not ship a model that leans on it. "
        "It is selected."
    )
    none = of_domains(effects_of([0.1], [0.0], [True]), 3)
    assert not none.warning
    assert none.text.startswith("No feature's effect differs much between the 3 domains")


def test_verdicts_of_a_selector(single, audit):
    texts = [v.text for v in verdicts(single)]
    assert "2 of 3 features are selected." in texts
    assert any(text.startswith("There is one domain") for text in texts)
    found = verdicts(audit.selector_)
    assert found[0].warning
    assert "do not ship a model" in found[0].text
    curve, number = audit.selector_.curve_, audit.selector_.n_features_auto_
    gain = 1 - curve["loss"][curve["n_features"] == number].item()
    assert any(f"{gain:.3f} in left-out domains" in v.text for v in found)


def test_verdicts_of_an_audit_are_its_own(audit):
    found = verdicts(audit.selector_, audit)
    assert [v.text for v in found] == audit.verdicts_
    assert [v.warning for v in found[:3]] == [True, True, False]
    assert "may know the label" in found[0].text
    assert "do not ship" in found[1].text


def test_verdicts_of_an_effect(effect):
    first, second = verdicts(effect=effect)
    low, high = effect.conf_int()
    assert f"from {low:.4g} to {high:.4g}" in first.text
    assert second.text == effect.verdict_
    assert (
        second.warning == weak_overlap(effect) == (effect.diagnostics()["unexplained_share"] < 0.05)
    )


def test_weak_overlap():
    def made(score, **figures):
        table = {"unexplained_share": 0.5, "share_beyond_clip": 0.0} | figures
        return SimpleNamespace(score_=score, diagnostics=lambda: pd.Series(table))

    assert not weak_overlap(made("interactive"))
    assert weak_overlap(made("interactive", share_beyond_clip=0.2))
    assert not weak_overlap(made("partially_linear", share_beyond_clip=0.2))
    assert weak_overlap(made("partially_linear", unexplained_share=0.01))


def test_assumptions(single, audit, effect):
    one = assumptions(single)
    assert any("With one domain" in s for s in one)
    many = assumptions(audit.selector_, audit)
    assert any("log-odds" in s for s in many)
    assert any("A new domain differs" in s for s in many)
    assert any("(overlap)" in s for s in assumptions(effect=effect))


@pytest.mark.parametrize(
    ("value", "name", "text"),
    [
        (0.12345, "", "0.123"),
        (12345.6, "", "12346"),
        (float("nan"), "", ""),
        (1e-9, "qvalue", "<0.0001"),
        (0.25, "base_rate", "25.0%"),
        (np.bool_(True), "", "yes"),
        (np.int64(7), "", "7"),
        (None, "", ""),
        ("a", "", "a"),
    ],
)
def test_cell(value, name, text):
    assert cell(value, name).text == text


def test_facts_of_data():
    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["u", None, "v"], "c": [True, False, True]})
    facts, tables = facts_of(frame)
    assert dict(facts)["rows"] == "3"
    assert dict(facts)["columns"].startswith("3 (")
    assert dict(facts)["missing values"] == "1"
    assert tables == []
    facts, tables = facts_of({"file": "a.csv", "shops": pd.DataFrame({"rows": [3]}, index=["s"])})
    assert facts == [("file", "a.csv")]
    assert tables[0][0] == "shops"
    assert [c.text for c in tables[0][1].rows[0]] == ["s", "3"]


def test_index_of_a_table_is_text():
    table = table_of(pd.DataFrame({"rows": [5]}, index=[1997]), index="year")
    assert table.rows[0][0].value is None
    assert table.numeric == [False, True]
