"""A corpus from text without a bitext: into another language and back."""

import pytest
import yaml

from paranmt_hf.corpus.bitext.readers import LineFiles
from paranmt_hf.corpus.build import pivot_of
from paranmt_hf.corpus.translation.translator import TranslatorConfig
from paranmt_hf.errors import InputError
from tests.toys import FakeTranslatorConfig, make, rows_of


@pytest.fixture
def text(tmp_path):
    lines = [f"word {number} a b" for number in range(25)] + ["1 2 3 4 5 6 7", "stumm"]
    (tmp_path / "text.en").write_text("".join(f"{line}\n" for line in lines))
    words = ["word", "a", "b", *map(str, range(25))]
    (tmp_path / "vectors.txt").write_text("".join(f"{w} {n} {n * n % 7} 1\n" for n, w in enumerate(words)))
    return LineFiles({"reference": tmp_path / "text.en"})


def pivoted(text, tmp_path, name="corpus", **changes):
    return make(text, tmp_path / name, tmp_path / "vectors.txt", pivot=FakeTranslatorConfig(name="there"), **changes)


def test_there_and_back(text, tmp_path, monkeypatch):
    made = pivoted(text, tmp_path)
    rows = rows_of(tmp_path / "corpus")
    # Each model turns the words round.
    assert rows[3]["source"] == "b a 3 word"
    assert rows[3]["translation"] == rows[3]["reference"] == "word 3 a b"
    assert [row["id"] for row in rows] == list(range(25))
    assert made.record.dropped == {
        "source over 6 pieces on the way to the pivot language": 1,
        "empty translation on the way to the pivot language": 1,
    }
    assert list(made.record.settings)[:3] == ["text", "pivot", "translator"]
    card = (tmp_path / "corpus" / "README.md").read_text()
    assert "- **pivot**: model `fake`" in card
    assert "translated into another language by the model `fake`, and back by the model `fake`" in card
    assert "the sentence in the language between" in card
    assert "bitext:" not in card
    assert yaml.safe_load(card.split("---\n")[1])["tags"] == ["paraphrase", "back-translation", "paranmt"]
    with pytest.raises(InputError, match="pivot.beam: was 12, now 4"):
        make(text, tmp_path / "corpus", tmp_path / "vectors.txt", pivot=FakeTranslatorConfig(beam=4))


def test_text_without_a_foreign_side_needs_a_pivot(text, tmp_path):
    with pytest.raises(InputError, match="text without a foreign side needs a `pivot` beside the `translator`"):
        make(text, tmp_path / "corpus", tmp_path / "vectors.txt")
    assert not (tmp_path / "corpus").exists()


def test_settings_of_the_way_there():
    back = TranslatorConfig("back", source_language="deu_Latn", target_language="eng_Latn", beam=4, hypotheses=3)
    there = pivot_of("there", back)
    assert (there.name, there.source_language, there.target_language) == ("there", "eng_Latn", "deu_Latn")
    assert (there.beam, there.hypotheses) == (4, 1)
    assert pivot_of("there", TranslatorConfig("back", target_language="eng")).target_language is None
