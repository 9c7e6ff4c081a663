import asyncio
import errno
import re
from collections import Counter

import pytest

from paranmt_hf.apps.annotate.answers import AnswerStore, Rating
from tests.apps.annotate.toys import toy_sample

httpx = pytest.importorskip("httpx")
pytest.importorskip("starlette")

from paranmt_hf.apps.annotate.page import PAGE, annotation_app, presented  # noqa: E402 - needs starlette

RATED = {"annotator": "Ada", "strength": 4, "fluency": None, "skipped": False, "note": "", "revision": 0}


@pytest.fixture
def sample(tmp_path):
    return toy_sample(tmp_path, per_range=5)


@pytest.fixture
def store(sample, tmp_path):
    return AnswerStore(tmp_path / "answers.json", sample)


@pytest.fixture
def ask(sample, store):
    def send(method, address, names=(), **options):
        async def work():
            transport = httpx.ASGITransport(annotation_app(sample, store, names))
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:5000") as client:
                return await client.request(method, address, **options)

        return asyncio.run(work())

    return send


def test_the_page_and_its_parts(ask):
    for address, kind, part in (
        ("/", "text/html; charset=utf-8", "<title>Rate paraphrases</title>"),
        ("/annotate.css", "text/css; charset=utf-8", ":focus-visible"),
        ("/annotate.js", "text/javascript; charset=utf-8", "use strict"),
    ):
        answer = ask("GET", address)
        assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
        assert part in answer.text
        # Nothing from elsewhere, and nothing inline, which the content security policy forbids.
        assert (
            "//" not in answer.text.replace("// ", "") and "style=" not in answer.text and "onclick" not in answer.text
        )
    assert ask("GET", "/../pyproject.toml").status_code == 404


def test_what_is_shown_says_nothing_of_score_range_and_corpus(ask, sample):
    answer = ask("GET", "/items?annotator=Ada")
    items = answer.json()["items"]
    assert {key for item in items for key in item} == {"item", "sentences", "translation", "answer"}
    for shown in items:
        item = sample.items[shown["item"]]
        assert shown["sentences"][shown["translation"]] == item.translation
        assert shown["sentences"][1 - shown["translation"]] == item.reference
        assert shown["answer"] == {"strength": None, "fluency": None, "skipped": False, "note": "", "revision": 0}
    assert sorted(shown["item"] for shown in items) == list(range(10))
    assert ask("GET", "/items?annotator=%20ada").json()["items"] == items


def test_each_has_an_order_of_their_own(sample, tmp_path):
    assert presented(sample, "Ada") == presented(sample, "ada") != presented(sample, "Grace")
    names = [f"person {number}" for number in range(300)]
    first = Counter(presented(sample, name)[0][0] for name in names)
    assert set(first) == set(range(10)) and max(first.values()) < 60
    turned = sum(is_turned for name in names for _, is_turned in presented(sample, name))
    assert abs(turned / 3000 - 0.5) < 0.05
    # Of another sample, another order.
    assert presented(toy_sample(tmp_path, per_range=5, seed=9), "Ada") != presented(sample, "Ada")


def test_an_answer_is_stored_before_it_is_confirmed(ask, store):
    answer = ask("PUT", "/answers/3", json=RATED)
    assert answer.status_code == 200
    assert answer.json() == {"answer": {"strength": 4, "fluency": None, "skipped": False, "note": "", "revision": 1}}
    assert store.answers()["Ada"][3].strength == 4
    shown = {item["item"]: item["answer"] for item in ask("GET", "/items?annotator=Ada").json()["items"]}
    assert shown[3] == answer.json()["answer"]
    ask("PUT", "/answers/3", json={**RATED, "annotator": "ADA", "fluency": 1, "revision": 1})
    assert store.answers()["Ada"][3].fluency == 1


def test_progress_of_each(ask, store):
    store.put("Ada", 0, Rating(3, 3))
    store.put("Ada", 1, Rating(skipped=True))
    store.put("Ada", 2, Rating(3))
    assert ask("GET", "/annotators").json() == {
        "annotators": [{"name": "Ada", "rated": 1, "skipped": 1, "pairs": 10}],
        "open": True,
        "pairs": 10,
    }
    names = ["Grace", "ada"]
    values = ask("GET", "/annotators", names).json()
    assert [(found["name"], found["rated"]) for found in values["annotators"]] == [("Grace", 0), ("Ada", 1)]
    assert values["open"] is False


def test_only_those_who_were_named(ask):
    assert ask("GET", "/items?annotator=ADA", ["Ada", "Grace"]).json()["annotator"] == "Ada"
    answer = ask("GET", "/items?annotator=Zoe", ["Ada", "Grace"])
    assert (answer.status_code, answer.json()["error"]) == (400, "this page is for Ada, Grace, not for Zoe")
    assert ask("PUT", "/answers/0", ["Grace"], json=RATED).status_code == 400


def test_another_window_was_faster(ask, store):
    store.put("Ada", 3, Rating(1))
    answer = ask("PUT", "/answers/3", json=RATED)
    assert answer.status_code == 409
    assert answer.json()["answer"] == {"strength": 1, "fluency": None, "skipped": False, "note": "", "revision": 1}
    assert store.answers()["Ada"][3].strength == 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"strength": 6}, "strength must be from 0 to 5, was 6"),
        ({"annotator": None}, "the name of an annotator must have"),
        ({"skipped": "no"}, "skipped must be true or false"),
    ],
)
def test_wrong_answers_are_refused(ask, store, values, message):
    answer = ask("PUT", "/answers/3", json={**RATED, **values})
    assert answer.status_code == 400
    assert message in answer.json()["error"]
    assert store.answers() == {}


def test_wrong_requests_are_refused(ask, store):
    for address in ("/answers/10", "/answers/99999999999999999999"):
        answer = ask("PUT", address, json=RATED)
        assert (answer.status_code, "the sample has the items 0 to 9" in answer.json()["error"]) == (400, True)
    assert ask("PUT", "/answers/-1", json=RATED).status_code == 404
    assert ask("POST", "/answers/1", json=RATED).status_code == 405
    for content, message in (
        (b"{", "an answer must be JSON"),
        (b"\xff", "an answer must be JSON"),
        (b"[]", "must be an object"),
    ):
        answer = ask("PUT", "/answers/1", content=content)
        assert (answer.status_code, message in answer.json()["error"]) == (400, True), content[:10]
    assert ask("GET", "/items").status_code == 400
    assert store.answers() == {}


def test_a_full_disk_is_said(ask, store, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    failed = ask("PUT", "/answers/1", json=RATED)
    assert failed.status_code == 503 and "No space left on device" in failed.json()["error"]


def luminance(color):
    parts = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    darker, lighter = sorted([luminance(one), luminance(other)])
    return (lighter + 0.05) / (darker + 0.05)


def test_contrast_by_day_and_by_night():
    """WCAG 2.2: 4.5 for text (1.4.3), 3 for what shows where a button is (1.4.11)."""
    _, *themes = re.split(r":root {", (PAGE / "annotate.css").read_text())
    assert len(themes) == 2
    for theme in themes:
        colors = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", theme))
        text = [("ink", "card"), ("ink", "ground"), ("ink", "tint"), ("soft", "card"), ("soft", "ground")]
        text += [("accent", "card"), ("on-accent", "accent"), ("alarm", "alarm-tint")]
        for one, other in text:
            assert contrast(colors[one], colors[other]) >= 4.5, (one, other)
        assert contrast(colors["edge"], colors["card"]) >= 3
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
