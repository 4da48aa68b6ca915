"""What fitted estimators show in notebooks, and what they offer for convenience."""

import re
import sys
from html.parser import HTMLParser
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_html_repr

from ddml_fs import DDML, CausalFeatureSelector, EffectClassifier
from ddml_fs.display import bar_picture, interval_picture, name_cell, number
from ddml_fs.plotting import plot_effects

BAD_NAME = '<b>age & "sex"</b>'


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((600, 12)), columns=[BAD_NAME, *"abcdefghijk"])
    X["town"] = rng.choice(["York", "Ely"], 600)
    y = (X[BAD_NAME] + 0.5 * X["a"] + rng.logistic(size=600) > 0).astype(int)
    return X, y, np.repeat(["north", "<south>", "west"], 200)


@pytest.fixture(scope="module")
def selector(table):
    return CausalFeatureSelector(random_state=0).fit(*table)


@pytest.fixture(scope="module")
def effect(table):
    X = table[0][list("abc")]
    rng = np.random.default_rng(1)
    t = 0.1 * X["a"] + rng.standard_normal(600)
    y = 2 * t + X["a"] + rng.standard_normal(600)
    return DDML("ridge", random_state=0).fit(X, y, treatment=t)


@pytest.fixture(scope="module")
def classifier(table):
    return EffectClassifier().fit(*table)


class Balance(HTMLParser):
    """Fails where an element is closed that is not open; collects the elements."""

    EMPTY = ("line", "rect", "circle", "input", "br", "hr", "img", "meta", "path", "link")

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.EMPTY:
            assert self.open.pop() == tag


def own_html(estimator):
    """The summary, without scikit-learn's diagram; checked to be well-formed."""
    html = without_ids(estimator._repr_mimebundle_()["text/html"])
    assert html == without_ids(estimator._repr_html_())
    diagram = without_ids(estimator_html_repr(estimator))
    details = f"<details><summary>Parameters</summary>{diagram}</details>"
    assert html.count(details) == 1
    own = html.replace(details, "")
    parser = Balance()
    parser.feed(own)
    assert not parser.open
    assert "script" not in parser.seen
    assert not re.search(r"background:\s*(#fff|white)", own)  # readable on a dark page
    return own


def without_ids(html):
    """scikit-learn numbers its diagrams."""
    return re.sub(r"sk-(container|estimator)-id-\d+", "", html)


def test_effect_shows_interval_and_verdict(effect):
    html = own_html(effect)
    low, high = effect.conf_int()
    assert f"<b>partially linear slope {number(effect.effect_)}</b>" in html
    assert f"95 % interval {number(low)} to {number(high)}" in html
    assert "p &lt; 0.001" in html
    assert "no reason for doubt" in html
    assert "600 rows, 3 columns, partially linear score" in html


def test_selector_shows_the_best_features(selector):
    html = own_html(selector)
    best = selector.effects_.sort_values("rank").head(10)
    names = re.findall(r'<span title="([^"]*)">', html)
    assert len(names) == 10
    assert names[0] == "&lt;b&gt;age &amp; &quot;sex&quot;&lt;/b&gt;"
    assert names[1:] == [str(name) for name in best.index[1:]]
    assert BAD_NAME not in html
    chosen = int(selector.effects_["selected"].sum())
    assert f"{chosen} of 13 features selected" in html
    assert "3 domains (&lt;south&gt;, north, west)" in html
    assert html.count(">selected<") == best["selected"].sum()
    ends = selector.conf_int().loc[BAD_NAME]
    assert f"{number(ends['low'])} to {number(ends['high'])}" in html
    assert "and 3 more in <code>effects_</code>" in html


def test_classifier_shows_the_largest_weights(classifier):
    html = own_html(classifier)
    names = re.findall(r'<span title="([^"]*)">', html)
    assert names[:2] == ["&lt;b&gt;age &amp; &quot;sex&quot;&lt;/b&gt;", "a"]
    assert "13 of 13 columns have weights" in html
    assert number(classifier.coef_[0, 0]) in html


def test_classifier_names_levels_and_classes(table):
    X, y, _ = table
    three = EffectClassifier().fit(X[["a", "town"]], y + (X["a"] > 1))
    html = own_html(three)
    assert "town = York" in html
    assert "<th" in html
    assert ">class</th>" in html


@pytest.mark.parametrize("estimator", [DDML(), CausalFeatureSelector(), EffectClassifier()])
def test_unfitted_estimators_show_the_diagram(estimator):
    html = estimator._repr_mimebundle_()["text/html"]
    assert without_ids(html) == without_ids(estimator_html_repr(estimator))


def test_text_display_has_no_html(selector):
    with config_context(display="text"):
        assert not hasattr(selector, "_repr_html_")
        assert selector._repr_mimebundle_() == {"text/plain": repr(selector)}


def test_pipeline_shows_its_diagram(table):
    X, y, domain = table
    pipe = make_pipeline(CausalFeatureSelector(2, random_state=0), LogisticRegression())
    with config_context(enable_metadata_routing=False):  # other libraries may have turned it on
        pipe.fit(X.iloc[:, :5], y, causalfeatureselector__sample_domain=domain)
    html = pipe._repr_mimebundle_()["text/html"]
    assert "CausalFeatureSelector" in html
    assert "features selected" not in html


def test_wrong_parameters_after_fit_show_the_diagram(table, selector):
    wrong = clone(selector).set_params(n_features_to_select=3).fit(*table)
    wrong.set_params(n_features_to_select=1000)
    assert "features selected" not in wrong._repr_html_()
    assert "CausalFeatureSelector" in wrong._repr_html_()


def test_constant_columns_and_few_features(table):
    X, y, _ = table
    frame = X[["a", "b"]].assign(c=1.0)
    html = own_html(CausalFeatureSelector(1, random_state=0).fit(frame, y))
    assert "1 of 3 features selected" in html
    assert "one domain" in html
    assert "more in" not in html


def test_pictures_are_to_scale():
    shapes = interval_picture(1.0, 0.0, 2.0, (0.0, 2.0))
    assert 'cx="80.0"' in shapes  # the middle of 160 pixels
    assert 'x1="4.0" x2="156.0"' in shapes
    assert 'width="38.0"' in bar_picture(-1.0, 2.0)
    assert 'x="42.0"' in bar_picture(-1.0, 2.0)  # to the left of 80


def test_long_names_are_cut():
    cell = name_cell("x" * 100)
    assert "x" * 39 + "…" in cell
    assert "x" * 41 not in cell.split(">")[1]


# --- Convenience ---


def test_support_and_importances(selector):
    assert selector.support_.tolist() == selector.get_support().tolist()
    importances = selector.feature_importances_
    assert importances.shape == (13,)
    assert importances.sum() == pytest.approx(1)
    assert importances.min() == 0
    assert (selector.scores_ < 0).any()
    positive = selector.scores_ > 0
    ratio = importances[positive] / selector.scores_[positive]
    np.testing.assert_allclose(ratio, ratio[0])
    for name in ("support_", "feature_importances_"):
        assert not hasattr(CausalFeatureSelector(), name)


def test_importances_without_a_positive_score(table):
    X, y, _ = table
    found = CausalFeatureSelector(1, ranking=lambda t: -np.ones(len(t)), random_state=0)
    assert found.fit(X[["a", "b"]], y).feature_importances_.tolist() == [0, 0]


@pytest.fixture
def calls(monkeypatch):
    """Stands for the module of plots, and notes the calls."""
    noted = []
    module = ModuleType("ddml_fs.plotting")
    for name in ("effects", "effects_by_domain", "curve", "stability", "overlap", "roles"):

        def plot(estimator, name=name, **options):
            noted.append((name, estimator, options))
            return "axes"

        setattr(module, f"plot_{name}", plot)
    monkeypatch.setitem(sys.modules, "ddml_fs.plotting", module)
    monkeypatch.setattr("ddml_fs.plotting", module)
    return noted


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("effects", "effects"),
        ("domains", "effects_by_domain"),
        ("curve", "curve"),
        ("stability", "stability"),
    ],
)
def test_selector_plots(selector, calls, kind, name):
    assert selector.plot(kind, ax="given") == "axes"
    assert calls == [(name, selector, {"ax": "given"})]


def test_plot_options_are_passed(selector, calls):
    selector.plot(n_features=3)
    assert calls == [("effects", selector, {"ax": None, "n_features": 3})]


def test_effect_plots(effect, calls):
    assert effect.plot() == effect.plot("roles") == "axes"
    assert [call[0] for call in calls] == ["overlap", "roles"]


def test_plot_of_an_unknown_kind(selector, effect):
    with pytest.raises(ValueError, match=r"kind must be one of .*, got 'pie'"):
        selector.plot("pie")
    with pytest.raises(ValueError, match=r"kind must be one of .*, got 'pie'"):
        effect.plot("pie")
    with pytest.raises(NotFittedError):
        DDML().plot()


def test_plot_draws(selector):
    pytest.importorskip("matplotlib")
    ours, theirs = selector.plot(n_features=5), plot_effects(selector, n_features=5)
    assert type(ours) is type(theirs)
    assert ours.get_xlim() == theirs.get_xlim()
