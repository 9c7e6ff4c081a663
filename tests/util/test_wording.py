"""Words of messages: counts, values and suggestions."""

import pytest

from paranmt_hf.hub.client import perhaps_path
from paranmt_hf.util.wording import brief, counted, in_words, perhaps


@pytest.mark.parametrize(
    ("count", "nouns", "text"),
    [
        (0, ["pair"], "0 pairs"),
        (1, ["pair"], "1 pair"),
        (2000, ["pair"], "2,000 pairs"),
        (1, ["sentence has", "sentences have"], "1 sentence has"),
        (2, ["sentence has", "sentences have"], "2 sentences have"),
    ],
)
def test_counts_have_their_noun(count, nouns, text):
    assert counted(count, *nouns) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "none"),
        (False, "false"),
        ((), "[]"),
        ({}, "none"),
        ([1, None, "a"], "[1, none, 'a']"),
        ({"a": True, "b": 0.5}, "a=true,b=0.5"),
    ],
)
def test_values_have_no_words_of_python(value, text):
    assert in_words(value) == brief(value) == text


def test_long_values_are_shortened():
    assert len(brief("x" * 1000)) < 70


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("wordx", ["word", "trigram"], "word"),
        ("Smal", ["small", "sample"], "small"),
        ("STS", ["sts", "STS12"], "sts"),
        ("bild", {"build": "paranmt build"}, "paranmt build"),
        ("zzz", ["word", "trigram"], None),
        ("word", [], None),
        ("word", ["word"], None),
    ],
)
def test_a_similar_name_is_suggested(name, known, meant):
    assert (repr(meant) in perhaps(name, known)) == bool(perhaps(name, known)) == (meant is not None)


def test_names_and_files_are_suggested_as_they_are_typed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models" / "word").mkdir(parents=True)
    for name, meant in (("models/wort", "models/word"), ("model", "models"), ("smal", "small")):
        assert repr(meant) in perhaps_path(name, "small")
    assert perhaps_path("zzz", "small") == perhaps_path("nowhere/word") == ""
