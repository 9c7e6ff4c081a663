"""The page in a real browser: keys, resuming, two people at the same time, a narrow screen."""

import threading
import time
from collections import defaultdict

import pytest
from filelock import FileLock

from paranmt_hf.apps.annotate.annotate import sample_for_annotation
from paranmt_hf.apps.annotate.answers import AnswerStore, Rating
from paranmt_hf.apps.annotate.sample import AnnotationConfig, AnnotationSample
from paranmt_hf.util.local_page import address, guarded, listen, new_token
from tests.chromium import open_browser

pytestmark = pytest.mark.slow
webdriver = pytest.importorskip("selenium.webdriver")
uvicorn = pytest.importorskip("uvicorn")

from paranmt_hf.apps.annotate.page import annotation_app, presented  # noqa: E402 - needs starlette


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = open_browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.quit()


@pytest.fixture
def judged(release, tmp_path):
    config = AnnotationConfig(per_range=2, ranges=(0.0, 0.3, 0.6, 1.0))
    return sample_for_annotation(release, tmp_path / "judged", config=config).folder


@pytest.fixture
def page(judged):
    """The sample, its store, and the address of the page."""
    sample = AnnotationSample.read(judged)
    token = new_token()
    store = AnswerStore(judged / "answers.json", sample)
    with listen(0) as listening:
        app = guarded(annotation_app(sample, store), token, listening.getsockname()[1])
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield sample, store, address(listening, token)
        server.should_exit = True
        thread.join()


def wait(condition, seconds=60):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "the page did not get there"
        time.sleep(0.01)
    return found


class Person:
    """Somebody at the page; `window` is a tab of the browser."""

    def __init__(self, browser, url, name=None):
        self.browser = browser
        browser.switch_to.new_window("tab")
        self.window = browser.current_window_handle
        browser.get(url)
        if name:
            self.type_name(name)

    def element(self, name):
        self.browser.switch_to.window(self.window)
        return self.browser.find_element("id", name)

    def text(self, name):
        return self.element(name).text

    def shown(self, name):
        return self.element(name).is_displayed()

    def type_name(self, name):
        wait(lambda: self.shown("new-name"))
        self.element("new-name").send_keys(name, "\n")
        wait(lambda: self.shown("rate") or self.shown("end"))

    def press(self, *keys):
        self.browser.switch_to.window(self.window)
        for key in keys:
            webdriver.ActionChains(self.browser).send_keys(key).perform()

    def sentences(self):
        return [self.text(f"sentence-{side}").partition("\n")[2] for side in (0, 1)]

    def at(self, position):
        return wait(lambda: self.text("position") == f"Pair {position} of 6")


@pytest.fixture
def person(browser, page):
    first = browser.current_window_handle

    yield lambda name=None: Person(browser, page[2], name)
    problems = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    for window in browser.window_handles:
        if window != first:
            browser.switch_to.window(window)
            browser.close()
    browser.switch_to.window(first)
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    # Nothing that the content security policy forbids, no error of the script.
    assert not [entry for entry in problems if "responded with a status of" not in entry["message"]]


def stored(store, name):
    return defaultdict(Rating, store.answers().get(name, {}))


def test_a_whole_sample_with_keys_only(page, person):
    sample, store, _ = page
    ada = person("Ada")
    order = presented(sample, "Ada")
    for position, (number, turned) in enumerate(order, 1):
        ada.at(position)
        item = sample.items[number]
        pair = [item.translation, item.reference] if turned else [item.reference, item.translation]
        assert ada.sentences() == pair
        assert "marked" not in ada.element("sentence-0").get_attribute("class")
        assert ada.browser.switch_to.active_element.get_attribute("id") == "strength"
        ada.press(str(position - 1))
        translation = "B" if pair[1] == item.translation else "A"
        wait(lambda: ada.text("fluency-asked") == f"How good is the English of {translation}?")  # noqa: B023
        assert "marked" in ada.element(f"sentence-{'AB'.index(translation)}").get_attribute("class")
        assert ada.browser.switch_to.active_element.get_attribute("id") == "fluency"
        ada.press("213"[position % 3])
    wait(lambda: ada.shown("end"))
    assert ada.text("end-title") == "Everything is rated. Thank you!"
    assert ada.text("count") == "6 of 6 done"
    found = stored(store, "Ada")
    assert [found[number].strength for number, _ in order] == [0, 1, 2, 3, 4, 5]
    assert [found[number].fluency for number, _ in order] == [1, 3, 2, 1, 3, 2]


def test_fast_typing_is_taken_in_order(page, person):
    sample, store, _ = page
    ada = person("Ada")
    ada.press("514233022112")
    wait(lambda: ada.shown("end"))
    found = [stored(store, "Ada")[number] for number, _ in presented(sample, "Ada")]
    assert [(answer.strength, answer.fluency) for answer in found] == [(5, 1), (4, 2), (3, 3), (0, 2), (2, 1), (1, 2)]


def test_back_undo_skip_and_note(page, person):
    sample, store, _ = page
    order = [number for number, _ in presented(sample, "Ada")]
    ada = person("Ada")
    ada.press("5", "3")
    ada.at(2)
    # A digit that is no answer to the question changes nothing.
    ada.press("4", "0")
    wait(lambda: stored(store, "Ada")[order[1]].strength == 4)
    ada.press("s")
    ada.at(3)
    assert stored(store, "Ada")[order[1]].content == (None, None, True, "")
    assert ada.text("count") == "2 of 6 done"
    ada.press("u")
    ada.at(2)
    assert stored(store, "Ada")[order[1]].content == (4, None, False, "")
    ada.press("u", "u")
    ada.at(1)
    assert stored(store, "Ada")[order[0]].content == (5, None, False, "")
    ada.press("2")
    ada.at(2)
    ada.press(webdriver.Keys.ARROW_LEFT)
    ada.at(1)
    assert ada.element("fluency").find_element("css selector", "[value='2']").get_attribute("aria-pressed") == "true"
    # Letters and digits in a note are no keys.
    ada.press("n", "us 3", webdriver.Keys.ESCAPE)
    wait(lambda: stored(store, "Ada")[order[0]].note == "us 3")
    wait(lambda: ada.text("state") == "stored, note stored")
    ada.press(webdriver.Keys.ARROW_UP, "3")
    wait(lambda: stored(store, "Ada")[order[0]].strength == 3)
    assert stored(store, "Ada")[order[0]].content == (3, 2, False, "us 3")
    ada.press("n", " and")
    wait(lambda: stored(store, "Ada")[order[0]].note == "us 3 and")
    ada.press(" more", webdriver.Keys.ESCAPE)
    wait(lambda: stored(store, "Ada")[order[0]].note == "us 3 and more")
    # What was written at once is taken back at once.
    ada.press("u")
    wait(lambda: stored(store, "Ada")[order[0]].content == (3, 2, False, "us 3"))
    ada.press("u", "u")
    wait(lambda: stored(store, "Ada")[order[0]].content == (5, 2, False, ""))


def test_a_note_that_is_begun_while_an_answer_is_on_its_way(page, person, judged):
    sample, store, _ = page
    ada = person("Ada")
    ada.at(1)
    ada.press("5")
    wait(lambda: ada.text("state") == "one of two answers stored")
    # The answer waits, as on a slow line.
    with FileLock(judged / ".answers.json.lock"):
        ada.press("3", "n", "so")
    wait(lambda: ada.text("state").startswith("stored"))
    ada.press(" so", webdriver.Keys.ESCAPE)
    wait(lambda: ada.text("state") == "stored, note stored")
    assert ada.text("position") == "Pair 1 of 6"
    assert stored(store, "Ada")[presented(sample, "Ada")[0][0]].content == (5, 3, False, "so so")
    ada.press(webdriver.Keys.ARROW_RIGHT)
    ada.at(2)
    assert not ada.shown("note-box")


def test_who_comes_back_goes_on(page, person):
    ada = person("Ada")
    ada.press("5", "3", "4")
    ada.at(2)
    wait(lambda: ada.text("state") == "one of two answers stored")
    ada.browser.refresh()
    ada.at(2)
    # The half that is missing is asked for.
    assert ada.browser.switch_to.active_element.get_attribute("id") == "fluency"
    assert ada.text("name") == "Ada"
    again = person()
    wait(lambda: again.shown("people"))
    assert again.text("people") == "Ada\n1 of 6"
    again.element("people").find_element("tag name", "button").click()
    again.at(2)


def test_two_people_at_the_same_time(page, person):
    sample, store, _ = page
    ada, grace = person("Ada"), person("Grace")
    for position in range(1, 7):
        for somebody, strength in ((ada, "5"), (grace, "0")):
            somebody.at(position)
            somebody.press(strength, "3")
    wait(lambda: ada.shown("end") and grace.shown("end"))
    assert {answer.strength for answer in stored(store, "Ada").values()} == {5}
    assert {answer.strength for answer in stored(store, "Grace").values()} == {0}
    assert sum(answer.done for found in store.answers().values() for answer in found.values()) == 12


def test_one_person_in_two_windows(page, person):
    sample, store, _ = page
    one, other = person("Ada"), person("Ada")
    one.press("5")
    wait(lambda: stored(store, "Ada"))
    other.press("0")
    wait(lambda: other.shown("alert"))
    assert other.text("alert").startswith("This pair was answered elsewhere meanwhile")
    pressed = other.element("strength").find_elements("css selector", "[aria-pressed='true']")
    assert [button.get_attribute("value") for button in pressed] == ["5"]
    other.press(webdriver.Keys.ARROW_UP, "0", "1")
    other.at(2)
    assert not other.shown("alert")
    assert stored(store, "Ada")[presented(sample, "Ada")[0][0]].content == (0, 1, False, "")


def test_what_is_not_stored_is_not_shown(page, person, judged):
    sample, store, _ = page
    ada = person("Ada")
    ada.at(1)
    # As a full disk would: the program answers that it cannot.
    store.wait = 0.01
    with FileLock(judged / ".answers.json.lock"):
        ada.press("53")
        wait(lambda: ada.shown("alert"))
    assert "lock" in ada.text("alert")
    assert not ada.element("strength").find_elements("css selector", "[aria-pressed='true']")
    assert stored(store, "Ada") == {}
    # What was typed behind it was dropped, and now it works.
    ada.press("4")
    wait(lambda: not ada.shown("alert"))
    assert stored(store, "Ada")[presented(sample, "Ada")[0][0]].content == (4, None, False, "")


def test_a_name_that_is_none_can_be_corrected(page, person, browser):
    somebody = person()
    browser.get(f"{page[2]}&annotator=%3Cb%3E")
    wait(lambda: somebody.shown("alert"))
    assert "the name of an annotator must have from 1 to 40" in somebody.text("alert")
    somebody.type_name("Ada")
    somebody.at(1)
    assert not somebody.shown("alert") and somebody.text("name") == "Ada"


def test_touch_and_a_narrow_screen(page, person, browser):
    sample, store, _ = page
    ada = person()
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    )
    wait(lambda: ada.shown("new-name"))
    wait(lambda: ada.element("guidelines").get_attribute("open") is None)
    ada.type_name("Ada")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    for button in ada.element("rate").find_elements("css selector", ".question button, .tools button"):
        assert button.size["height"] >= 44 and button.size["width"] >= 44
    ada.element("strength").find_element("css selector", "[value='4']").click()
    wait(lambda: "active" in ada.element("fluency").get_attribute("class"))
    ada.element("fluency").find_element("css selector", "[value='3']").click()
    ada.at(2)
    ada.element("skip").click()
    ada.at(3)
    ada.element("undo").click()
    ada.at(2)
    ada.element("next").click()
    ada.at(3)
    assert len(stored(store, "Ada")) == 2
    ada.element("guidelines").find_element("tag name", "summary").click()
    assert ada.shown("guidelines") and browser.execute_script("return document.documentElement.scrollWidth") <= 390


def test_the_focus_is_visible(page, person):
    ada = person("Ada")
    ada.at(1)
    seen = []
    for _ in range(16):
        ada.press(webdriver.Keys.TAB)
        active = ada.browser.switch_to.active_element
        style = ada.browser.execute_script("return getComputedStyle(arguments[0]).outlineStyle", active)
        seen.append((active.text.split("\n")[0], style))
    assert {style for _, style in seen[:12]} == {"solid"}
    assert [text for text, _ in seen[:9]] == ["0", "1", "2", "3", "4", "5", "1", "2", "3"]
