"""What an error that a person can correct carries."""

import pickle
from pathlib import Path

import pytest

from paranmt_hf.errors import InputError, WriteError, perhaps
from paranmt_hf.hub.client import perhaps_path


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("wordx", ["word", "trigram"], "word"),
        ("Embed", ["embedded", "sample"], "embedded"),
        ("STS", ["sts", "STS12"], "sts"),
        ("bild", {"build": "paranmt build"}, "paranmt build"),
        ("zzz", ["word", "trigram"], None),
        ("word", [], None),
    ],
)
def test_a_similar_name_is_suggested(name, known, meant):
    assert perhaps(name, known) == ("" if meant is None else perhaps(meant, [meant]))
    assert meant is None or repr(meant) in perhaps(name, known)


def test_names_and_files_are_suggested_as_they_are_typed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models" / "word").mkdir(parents=True)
    for name, meant in (("models/wort", "models/word"), ("model", "models"), ("embed", "embedded"), ("zzz", None)):
        assert perhaps_path(name, "embedded") == ("" if meant is None else perhaps(meant, [meant]))
    assert perhaps_path("nowhere/word") == ""


@pytest.mark.parametrize("kind", [InputError, WriteError])
def test_errors_cross_processes_with_their_fields(kind):
    error = kind("a sentence", option="out", path=Path("a"))
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.option, again.path) == (kind, "a sentence", "out", Path("a"))
