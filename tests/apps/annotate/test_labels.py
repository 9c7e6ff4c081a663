import re

import pytest

from paranmt_hf.apps.annotate.labels import PARAPHRASE, Answer, check_name
from paranmt_hf.apps.annotate.page import PAGE
from paranmt_hf.errors import InputError


def test_six_classes_are_three_labels():
    assert [Answer(strength=strength).paraphrase for strength in (5, 4, 3, 2, 1, 0)] == [3, 3, 2, 1, 1, 1]
    assert Answer().paraphrase is None
    assert len(PARAPHRASE) == 6


def test_done():
    assert not Answer().done and not Answer(strength=3).done and not Answer(fluency=3, note="x").done
    assert Answer(strength=0, fluency=1).done and Answer(skipped=True).done


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"strength": 6}, "strength must be from 0 to 5, or nothing, was 6"),
        ({"strength": True}, "strength must be from 0 to 5"),
        ({"strength": "3"}, "strength must be from 0 to 5, or nothing, was '3'"),
        ({"fluency": 0}, "fluency must be from 1 to 3, or nothing, was 0"),
        ({"fluency": 2.0}, "fluency must be from 1 to 3"),
        ({"skipped": 1}, "skipped must be true or false"),
        ({"skipped": True, "fluency": 1}, "a pair that is skipped has neither"),
        ({"note": "x" * 2001}, "a note must be text of at most 2,000 characters"),
        ({"note": "a\x00"}, "a note must be text"),
        ({"note": "\ud800"}, "a note must be text"),
        ({"revision": -1}, "revision must be a whole number"),
    ],
)
def test_answers_that_are_none(values, message):
    with pytest.raises(InputError, match=message):
        Answer(**values)


def test_names():
    assert check_name("  Ada   Lovelace ") == "Ada Lovelace"
    # One letter or two characters: the same name.
    assert check_name("Jose\u0301") == check_name("Jos\u00e9") == "Jos\u00e9"
    assert check_name("\u674e\u56db") == "\u674e\u56db"
    for name in ("", " ", "=1+1", "a/b", "<b>", "x" * 41, None, 3, "a\x00b", "-x"):
        with pytest.raises(InputError, match="the name of an annotator must have from 1 to 40"):
            check_name(name)


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
