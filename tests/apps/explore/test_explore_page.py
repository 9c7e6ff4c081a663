"""The page of `paranmt explore page` and the file of `paranmt explore report` in a real browser."""

import re
import subprocess
import sys

import pytest

from tests.chromium import open_browser

pytestmark = pytest.mark.slow


@pytest.fixture
def address(made):
    command = [sys.executable, "-m", "paranmt_hf.cli", "explore", "page", str(made)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        yield process.stderr.readline().split()[1]
        process.terminate()


@pytest.fixture
def browser(tmp_path):
    browser = open_browser(tmp_path / "profile")
    yield browser
    browser.quit()


def wait_for(browser, pattern):
    from selenium.webdriver.support.wait import WebDriverWait

    def found(browser):
        return re.search(pattern, browser.find_element("id", "status").text)

    return WebDriverWait(browser, 60).until(found)


def shown_ids(browser):
    return re.findall(r"\bid (\d+)", browser.find_element("id", "rows").text)


def fill(browser, name, value):
    element = browser.find_element("name", name)
    element.clear()
    element.send_keys(value)


FILTERS = [{"min.para_score": "0.5"}, {"text": "a", "max.para_score": "0.7"}, {"text": "zzzz"}]


def test_page_and_report_show_the_same(browser, address, made, tmp_path):
    from paranmt_hf.apps.explore.explore import write_report

    # All rows of this release are in its sample.
    write_report(made, tmp_path / "report.html")
    found = []
    for url in (address, (tmp_path / "report.html").as_uri()):
        browser.get(url)
        wait_for(browser, r"^60 of 60 pairs")
        assert browser.title == "corpus"
        of_this = []
        for values in FILTERS:
            for name, value in values.items():
                fill(browser, name, value)
            wait_for(browser, r"^\d+ of 60 pairs")
            expected = "no" if values.get("text") == "zzzz" else "some"
            wait_for(browser, r"^0 of" if expected == "no" else r"^[1-5]\d? of")
            browser.find_element("css selector", "#sort option[value='para_score descending']").click()
            wait_for(browser, r"pairs")
            of_this.append((re.match(r"\d+", browser.find_element("id", "status").text)[0], shown_ids(browser)))
            browser.find_element("css selector", "[type=reset]").click()
            wait_for(browser, r"^60 of 60")
        found.append(of_this)
        assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert found[0] == found[1]
    assert found[0][0][0] not in ("0", "60")


def test_a_range_is_dragged_over_a_histogram(browser, address):
    from selenium.webdriver import ActionChains

    browser.get(address)
    wait_for(browser, r"^60 of 60")
    chart = browser.find_element("css selector", "svg.chart")
    half = chart.size["width"] // 2
    ActionChains(browser).move_to_element_with_offset(chart, 2, 0).click_and_hold().move_by_offset(
        half, 0
    ).release().perform()
    wait_for(browser, r"^(?!60)\d+ of 60")
    low = float(browser.find_element("name", "min.para_score").get_attribute("value"))
    assert 0.4 <= low <= 0.6
    assert browser.find_element("css selector", "#command code").text.startswith("paranmt select ")


def test_tabs_and_a_narrow_screen(browser, address):
    browser.get(address)
    wait_for(browser, r"^60 of 60")
    browser.find_element("id", "tab-examples").click()
    wait_for(browser, r"^60 of 60")
    assert "(0.4, 0.6]" in browser.find_element("id", "ranges").text
    browser.find_element("id", "tab-statistics").click()
    assert "Dropped, by reason" in browser.find_element("id", "statistics").text
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.refresh()
    wait_for(browser, r"^60 of 60")
    assert browser.execute_script("return document.documentElement.scrollWidth") == 390
    assert not browser.find_element("id", "form").is_displayed()


def test_a_kept_source_is_shown(browser, tmp_path):
    from paranmt_hf.apps.explore.explore import write_report
    from paranmt_hf.corpus.release.release_run import ReleaseConfig
    from tests.toys import scored_release

    columns = {"reference": ["a dog", "a cat"], "translation": ["the dog", "the cat"], "source": ["pes", "kočka"]}
    release = ReleaseConfig(license="mit", keep_source=True)
    made = scored_release(tmp_path / "with-source", {**columns, "para_score": [0.5, 0.9]}, release)
    write_report(made, tmp_path / "report.html", encoder="none")
    browser.get((tmp_path / "report.html").as_uri())
    wait_for(browser, r"^2 of 2")
    assert [each.text for each in browser.find_elements("css selector", "#rows .source")] == ["pes", "kočka"]


def test_without_the_token_nothing_is_shown(browser, address):
    browser.get(address.partition("?")[0])
    assert (
        browser.find_element("tag name", "body").text == "open the address that the command printed: it holds a token"
    )
