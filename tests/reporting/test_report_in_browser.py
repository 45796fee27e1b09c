"""The report in a real browser: it is drawn, it can be clicked, and nothing complains."""

import os
import shutil

import numpy as np
import pytest
from sklearn.datasets import load_digits

import widemargin
from widemargin import MarginClassifier

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
DRIVER = shutil.which("chromedriver")

pytestmark = pytest.mark.skipif(
    BROWSER is None or DRIVER is None,
    reason="no browser: install Debian's chromium and chromium-driver to run this test",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    folder = tmp_path_factory.mktemp("profile")
    for word in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        f"--user-data-dir={folder}",
    ):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(DRIVER, log_output=os.devnull)
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_page_load_timeout(60)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A report on pictures whose class names would be scripts, if they were not escaped."""
    X, y = load_digits(return_X_y=True)
    names = np.array(
        ["<script>window.hacked=1</script>", '"><img src=x onerror="window.hacked=1">']
        + [f"digit {i}" for i in range(2, 10)]
    )
    model = MarginClassifier(C=0.01).fit(X[:300], names[y[:300]])
    path = tmp_path_factory.mktemp("page") / "report.html"
    widemargin.report(
        model, X[300:700], names[y[300:700]], path=path, image_shape=(8, 8), learning_curve=True
    )
    return path.as_uri()


def _opened(browser, page, width=1200, height=900, scheme="light"):
    phone = width < 500
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wanted = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": wanted})
    browser.get(page)
    return browser


def _background(browser):
    return browser.execute_script("return getComputedStyle(document.body).backgroundColor")


def _click(browser, selector):
    element = browser.find_element("css selector", selector)
    browser.execute_script(
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element
    )
    element.click()


def _quiet(browser):
    assert browser.get_log("browser") == []
    assert browser.execute_script("return window.hacked") is None


def test_the_page_opens_without_an_error_and_runs_nothing_of_the_data(browser, page):
    _opened(browser, page)
    _quiet(browser)
    assert browser.title
    assert len(browser.find_elements("css selector", "svg.chart")) >= 5
    for image in browser.find_elements("css selector", "img"):
        assert image.get_property("naturalWidth") == 8


def test_the_switch_changes_light_and_dark(browser, page):
    for scheme, first in (("light", "Dark"), ("dark", "Light")):
        _opened(browser, page, scheme=scheme)
        button = browser.find_element("id", "theme")
        before = _background(browser)
        assert button.text == first
        _click(browser, "#theme")
        assert _background(browser) != before
        assert button.text != first
        _click(browser, "#theme")
        assert _background(browser) == before
    _quiet(browser)


def test_sections_fold_and_unfold(browser, page):
    _opened(browser, page)
    parts = browser.find_elements("css selector", "section > details")
    inside = browser.find_element("css selector", "#margins .inside")
    assert inside.is_displayed()
    _click(browser, "#margins summary")
    assert not inside.is_displayed()
    _click(browser, "#margins summary")
    assert inside.is_displayed()
    _click(browser, "#fold")
    assert not any(part.get_property("open") for part in parts)
    _click(browser, "#fold")
    assert all(part.get_property("open") for part in parts)
    _quiet(browser)


def test_links_lead_to_their_sections_and_open_them(browser, page):
    _opened(browser, page)
    _click(browser, "#fold")
    links = browser.find_elements("css selector", "nav a")
    assert len(links) >= 8
    for link in links:
        link.click()
        key = link.get_attribute("href").split("#")[1]
        part = browser.find_element("css selector", f"#{key} > details")
        assert part.get_property("open")
    _quiet(browser)


def test_numbers_behind_a_chart_can_be_read(browser, page):
    _opened(browser, page)
    table = browser.find_element("css selector", "#margins figure table")
    assert not table.is_displayed()
    _click(browser, "#margins figure summary")
    assert table.is_displayed()
    _quiet(browser)


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [("desktop", 1200, "light"), ("desktop-dark", 1200, "dark"), ("phone", 390, "light")],
)
def test_the_page_fits_the_screen(browser, page, tmp_path, name, width, scheme):
    _opened(browser, page, width=width, scheme=scheme)
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    assert wide <= width
    smallest = browser.execute_script(
        "return Math.min(...[...document.querySelectorAll('p, td, figcaption')]"
        ".map(e => parseFloat(getComputedStyle(e).fontSize)))"
    )
    assert smallest >= 12
    path = os.path.join(os.environ.get("WIDEMARGIN_SCREENSHOTS", tmp_path), f"report-{name}.png")
    assert browser.save_screenshot(path)
    assert os.path.getsize(path) > 10_000
    _quiet(browser)


def test_texts_can_be_read_on_their_background(browser, page):
    script = """
    const lum = c => { const [r, g, b] = c.match(/[0-9.]+/g).slice(0, 3).map(v => {
        v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const card = getComputedStyle(document.querySelector('section')).backgroundColor;
    return ['p', 'figcaption', '.tile span', 'th', '.chart text'].map(s => {
        const e = document.querySelector(s), style = getComputedStyle(e);
        const a = lum(s.startsWith('.chart') ? style.fill : style.color), b = lum(card);
        return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); });
    """
    for scheme in ("light", "dark"):
        _opened(browser, page, scheme=scheme)
        assert min(browser.execute_script(script)) >= 4.5  # WCAG 2, level AA
