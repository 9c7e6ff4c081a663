"""Answers, and the file that stores them."""

import errno
import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from paranmt_hf import InputError
from paranmt_hf.apps.annotate.answers import AnswerStore, Outdated, Rating, annotator_name
from paranmt_hf.errors import WriteError
from tests.apps.annotate.toys import toy_sample
from tests.refused import refused

PAGE = Path(__file__).parents[3] / "paranmt_hf" / "assets" / "annotate"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "answers.json"


def test_what_is_stored_is_there_after_opening_again(sample, path):
    store = AnswerStore(path, sample)
    stored = store.put("Ada", 2, Rating(strength=4))
    assert (stored.revision, stored.strength, stored.fluency) == (1, 4, None)
    assert stored.changed.endswith("+00:00")
    stored = store.put("Ada", 2, replace(stored, fluency=3, note="two\nlines", changed=""))
    store.put("Grace", 0, Rating(skipped=True))
    # Everything is in the one file.
    assert [found.name for found in path.parent.glob("answers*")] == ["answers.json"]
    store = AnswerStore(path, sample)
    assert store.answers()["Ada"] == {2: stored}
    assert {name: list(found) for name, found in store.answers().items()} == {"Ada": [2], "Grace": [0]}


def test_an_answer_that_was_changed_meanwhile_is_not_overwritten(sample, path):
    one, other = AnswerStore(path, sample), AnswerStore(path, sample)
    first = one.put("Ada", 0, Rating(strength=1))
    second = other.put("Ada", 0, replace(first, strength=2))
    with pytest.raises(Outdated) as error:
        one.put("Ada", 0, replace(first, strength=3))
    assert error.value.stored == second
    with pytest.raises(Outdated):
        one.put("Ada", 1, Rating(strength=3, revision=7))
    assert one.answers()["Ada"] == {0: second}


def test_several_annotators_at_the_same_time(sample, path):
    def rate(name):
        store = AnswerStore(path, sample)
        for item in range(4):
            stored = store.put(name, item, Rating(strength=item))
            store.put(name, item, replace(stored, fluency=1))

    people = [threading.Thread(target=rate, args=(name,)) for name in ("Ada", "Grace", "Zoe")]
    for person in people:
        person.start()
    for person in people:
        person.join()
    store = AnswerStore(path, sample)
    answers = store.answers()
    assert {name: [answer.strength for answer in found.values()] for name, found in answers.items()} == {
        name: [0, 1, 2, 3] for name in ("Ada", "Grace", "Zoe")
    }
    assert all(answer.revision == 2 and answer.fluency == 1 for found in answers.values() for answer in found.values())


def test_items_of_the_sample_alone(sample, path):
    store = AnswerStore(path, sample)
    for item in (-1, 4, "0"):
        with refused():
            store.put("Ada", item, Rating(strength=1))
    assert store.answers() == {}


def test_one_person_however_the_name_is_written(sample, path):
    store = AnswerStore(path, sample)
    store.put(store.name("Ada  Lovelace"), 0, Rating(strength=1))
    assert store.name("ADA lovelace") == "Ada Lovelace"
    assert store.name("Ada") == "Ada"


def test_answers_to_another_sample_are_refused(sample, path, tmp_path):
    AnswerStore(path, sample).put("Ada", 0, Rating(strength=1))
    before = path.read_bytes()
    with pytest.raises(InputError) as caught:
        AnswerStore(path, toy_sample(tmp_path, per_range=1))
    assert caught.value.path == path and path.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [
        "no answers",
        "[]",
        '{"sample": "x"}',
        '{"sample": "x", "answers": {"Ada": {"0": {"strength": "x"}}}}',
        '{"sample": "x", "answers": {"Ada": {"0": {"strength": 9}}}}',
    ],
)
def test_other_and_damaged_files_are_refused_and_stay(sample, path, content):
    path.write_text(content)
    with refused(path=path):
        AnswerStore(path, sample)
    assert path.read_text() == content


def test_a_disk_that_takes_nothing(sample, path, monkeypatch):
    store = AnswerStore(path, sample)
    store.put("Ada", 0, Rating(strength=1))

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with refused(path=path, kind=WriteError):
        store.merge([("Ada", item, Rating(note="x" * 2000)) for item in range(1, 4)], replace=False)
    assert list(store.answers()["Ada"]) == [0]


def test_six_classes_are_three_labels():
    assert [Rating(strength=strength).paraphrase for strength in (5, 4, 3, 2, 1, 0)] == [3, 3, 2, 1, 1, 1]
    assert Rating().paraphrase is None


def test_done():
    assert not Rating().done and not Rating(strength=3).done and not Rating(fluency=3, note="x").done
    assert Rating(strength=0, fluency=1).done and Rating(skipped=True).done


@pytest.mark.parametrize(
    "values",
    [
        *({"strength": 6}, {"strength": True}, {"strength": "3"}, {"fluency": 0}, {"fluency": 2.0}, {"skipped": 1}),
        *({"skipped": True, "fluency": 1}, {"note": "x" * 2001}, {"note": "a\x00"}, {"note": "\ud800"}),
        {"revision": -1},
    ],
)
def test_answers_that_are_none(values):
    with pytest.raises(InputError):
        Rating(**values)


def test_names():
    assert annotator_name("  Ada   Lovelace ") == "Ada Lovelace"
    # One letter or two characters: the same name.
    assert annotator_name("Jose\u0301") == annotator_name("Jos\u00e9") == "Jos\u00e9"
    assert annotator_name("\u674e\u56db") == "\u674e\u56db"
    for name in ("", " ", "=1+1", "a/b", "<b>", "x" * 41, None, 3, "a\x00b", "-x"):
        with refused():
            annotator_name(name)


def test_the_page_offers_these_labels():
    page = (PAGE / "annotate.html").read_text(encoding="utf8")
    _, strength, fluency, _ = re.split(r'<div class="question"|<div class="note"', page)
    for question, values in ((strength, "012345"), (fluency, "123")):
        assert re.findall(r'value="(\d)"', question) == list(values)
        assert re.findall(r'aria-keyshortcuts="(\d)"', question) == list(values)
        # What a class is called, it is called in the guidelines too.
        names = re.findall(r"<kbd>\d</kbd> ([^<]+)</button>", question)
        assert len(names) == len(values)
        for value, name in zip(values, names, strict=True):
            assert f"<dt><kbd>{value}</kbd> {name}</dt>" in page
