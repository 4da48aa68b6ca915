"""A report in a browser: sorting, searching, small screens, dark mode, and no network."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from ddml_fs import CausalFeatureSelector
from ddml_fs.audit import ShiftAudit
from ddml_fs.datasets import make_domain_data
from ddml_fs.report import write_report

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (BROWSER and DRIVER), reason="needs a browser: apt-get install chromium chromium-driver"
)

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update"
)
EVIL = "<script>document.title='run'</script>"
LONG = "a_column_with_a_name_that_is_much_too_long_for_the_table_{}"


@pytest.fixture(scope="module")
def audit():
    data = make_domain_data(
        n_samples=150, n_domains=4, n_causal=4, n_spurious=3, n_noise=5, random_state=0
    )
    rows = data.sample_domain > 0
    names = [EVIL, *(LONG.format(j) for j in range(1, 6)), *(f"x{j}" for j in range(6, 12))]
    X = pd.DataFrame(data.X[rows], columns=names)
    audit = ShiftAudit(selector=CausalFeatureSelector(), random_state=0).fit(
        X, data.y[rows], sample_domain=data.sample_domain[rows]
    )
    audit.selector_.set_params(n_features_to_select=5)  # so that the filter has something to hide
    return audit


@pytest.fixture(scope="module")
def address(audit, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    command = "ddml-fs audit " + "--option value " * 20
    return write_report(path, audit=audit, title=f"Report of {EVIL}", command=command).as_uri()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in FLAGS.split():
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('browser')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=DRIVER)
    try:
        driver = webdriver.Chrome(options=options, service=service)
    except Exception as error:  # a browser that does not start here is no fault of the report
        pytest.skip(f"the browser does not start: {str(error).splitlines()[0]}")
    yield driver
    driver.quit()


@pytest.fixture
def page(browser, address):
    """The report, freshly opened on a wide and light screen."""
    show(browser, 1280)
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(address)
    return browser


def show(browser, width, scheme="light"):
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def column(page, name):
    """Texts of a column in the order of the rows, those that are hidden left out."""
    script = """
        const heads = [...document.querySelectorAll("#table thead button")];
        const at = heads.findIndex((head) => head.textContent === arguments[0]);
        return [...document.querySelectorAll("#table tbody tr")]
            .filter((row) => !row.hidden).map((row) => row.cells[at].textContent);
    """
    return page.execute_script(script, name)


def head(page, name):
    return page.find_element("xpath", f"//table[@id='table']//th[button[text()='{name}']]")


def press(page, name):
    head(page, name).find_element("tag name", "button").click()


def test_no_request_and_no_error(page, address):
    page.find_element("css selector", ".copy").click()
    press(page, "effect")
    sent = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    requests = [
        m["params"]["request"]["url"] for m in sent if m["method"] == "Network.requestWillBeSent"
    ]
    assert [url for url in requests if url != address] == []
    assert page.get_log("browser") == []


def test_names_do_not_run(page):
    assert page.title == f"Report of {EVIL}"
    assert EVIL in column(page, "feature")


def test_sort_by_number_and_back(page, audit):
    effect = audit.selector_.effects_["effect"]
    press(page, "effect")
    rising = column(page, "feature")
    assert rising == list(effect.sort_values().index)
    assert head(page, "effect").get_attribute("aria-sort") == "ascending"
    assert head(page, "rank").get_attribute("aria-sort") == "none"
    press(page, "effect")
    assert column(page, "feature") == rising[::-1]
    assert head(page, "effect").get_attribute("aria-sort") == "descending"


def test_sort_by_text_with_the_keyboard(page):
    from selenium.webdriver.common.keys import Keys

    head(page, "feature").find_element("tag name", "button").send_keys(Keys.ENTER)
    names = [name for name in column(page, "feature") if name.startswith("x")]
    assert names == ["x6", "x7", "x8", "x9", "x10", "x11"]


def test_search(page):
    page.find_element("id", "search").send_keys("X1")
    assert sorted(column(page, "feature")) == ["x10", "x11"]
    assert page.find_element("id", "count").text == "2 of 12 features"
    page.find_element("id", "search").send_keys("zzz")
    assert column(page, "feature") == []


def test_selected_only(page, audit):
    page.find_element("id", "only").click()
    effects = audit.selector_.effects_
    chosen = effects[effects["selected"]].sort_values("rank")
    assert 0 < len(chosen) < len(effects)
    assert column(page, "feature") == list(chosen.index)
    press(page, "rank")  # once more: it is sorted by rank at first
    assert column(page, "feature") == list(chosen.index)[::-1]


@pytest.mark.parametrize("width", [360, 1280])
def test_page_does_not_scroll_sideways(page, width):
    show(page, width)
    page.execute_script("for (const part of document.querySelectorAll('details')) part.open = true")
    size = page.execute_script(
        "const e = document.documentElement; return [e.scrollWidth, e.clientWidth, innerWidth]"
    )
    assert size[0] <= size[1]
    assert size[2] == width
    outside = page.execute_script("""
        return [...document.querySelectorAll("body *")]
            .filter((e) => !e.closest(".box, pre, svg"))
            .filter((e) => e.getBoundingClientRect().right > innerWidth + 0.5)
            .map((e) => e.outerHTML);
    """)
    assert outside == []


def test_text_of_figures_is_inside(page):
    show(page, 360)
    assert len(page.find_elements("css selector", "figure svg text")) > 50
    clipped = page.execute_script("""
        return [...document.querySelectorAll("figure svg")].flatMap((svg) => {
          const frame = svg.getBoundingClientRect();
          return [...svg.querySelectorAll("text")].filter((text) => {
            const box = text.getBoundingClientRect();
            return box.left < frame.left - 1 || box.right > frame.right + 1
              || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
          }).map((text) => text.textContent);
        });
    """)
    assert clipped == []


def luminance(colour):
    """Relative luminance of "rgb(r, g, b)"."""
    parts = np.array([float(c) for c in colour[colour.index("(") + 1 : -1].split(",")[:3]]) / 255
    linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(page, scheme):
    show(page, 1280, scheme)
    colours = page.execute_script("""
        const paper = getComputedStyle(document.body).backgroundColor;
        const of = (where, what) => getComputedStyle(document.querySelector(where))[what];
        return [paper, of("body", "color"), of(".muted", "color"), of("figure svg text", "fill")];
    """)
    paper, *inks = map(luminance, colours)
    assert (paper < 0.05) == (scheme == "dark")
    for ink in inks:
        low, high = sorted((ink, paper))
        assert (high + 0.05) / (low + 0.05) > 4.5


def test_print_is_light_and_shows_the_whole_table(page):
    show(page, 760)
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": features})
    paper, *size = page.execute_script("""
        const box = document.querySelector(".tall");
        return [getComputedStyle(document.body).backgroundColor,
                box.scrollWidth - box.clientWidth, box.scrollHeight - box.clientHeight];
    """)
    assert luminance(paper) == pytest.approx(1)
    assert max(size) <= 1


def test_copy_says_what_it_did(page):
    button = page.find_element("css selector", ".copy")
    page.set_script_timeout(5)
    button.click()
    done = page.execute_async_script(
        "const [button, end] = arguments;"
        "const look = () => button.textContent === 'Copy' ? setTimeout(look, 20) "
        ": end(button.textContent); look();",
        button,
    )
    assert done in ("Copied", "Selected")
