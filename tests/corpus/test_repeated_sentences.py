"""A build translates a source sentence once, however often it occurs in the bitext."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from paranmt_hf import EngineConfig
from paranmt_hf.corpus.jobs import job
from paranmt_hf.corpus.reading.readers import LineFiles
from tests.toys import FakeTranslatorConfig, bytes_of, make, rows_of, write_vectors

# A shard has 10 rows. Of the 60 rows, 24 repeat an earlier one, most of them one in another shard.
SOURCES = [f"wort {number}" for number in range(30)] + ["ja b", "nein a b", "stumm", "ja b", "lang 2 3 4 5 6 7", "x"]
SOURCES += [*SOURCES[:15], "ja b", "nein a b", "JA B UND C", "ja b", "wort 3", "stumm", "lang 2 3 4 5 6 7"]
SOURCES += ["ja b", "JA B UND C"]


@pytest.fixture
def bitext(tmp_path):
    (tmp_path / "text.de").write_text("".join(f"{line}\n" for line in SOURCES))
    (tmp_path / "text.en").write_text("".join(f"word {number} c\n" for number in range(len(SOURCES))))
    return LineFiles({"source": tmp_path / "text.de", "reference": tmp_path / "text.en"})


@pytest.fixture
def vectors(tmp_path):
    return write_vectors(tmp_path / "vectors.txt", ["wort", "word", "a", "b", "c", *map(str, range(60))])


def expected() -> dict[int, str]:
    """Translations by the id of their row, as the translator makes them without any memory."""
    kept = {number: line for number, line in enumerate(SOURCES) if line != "stumm" and len(line.split()) <= 6}
    cased = {number: line.capitalize() if line.isupper() else line for number, line in kept.items()}
    return {number: " ".join(line.split()[::-1]) for number, line in cased.items()}


def test_each_sentence_once_and_in_order(bitext, vectors, tmp_path):
    log = tmp_path / "log"
    built = make(bitext, tmp_path / "corpus", vectors, translator=FakeTranslatorConfig(log=str(log)))
    seen = log.read_text().splitlines()
    assert len(SOURCES) == 60
    assert len(seen) == len(set(seen)) == len(set(SOURCES)) == 36
    rows = rows_of(tmp_path / "corpus")
    assert {row["id"]: row["translation"] for row in rows} == expected()
    assert [row["id"] for row in rows] == sorted(expected())
    np.testing.assert_allclose([row["translation_score"] for row in rows][:2], [-0.06, -0.06])
    # Dropped rows are counted as often as they occur.
    assert built.record.dropped == {"source over 6 pieces": 2, "empty translation": 2}
    assert built.record.capitals == 2
    assert not (tmp_path / "corpus.work").exists()


def test_shards_of_any_size_give_the_same_rows(bitext, vectors, tmp_path):
    make(bitext, tmp_path / "ten" / "corpus", vectors)
    make(bitext, tmp_path / "one" / "corpus", vectors, engine=EngineConfig("local", 1, 1, shard_rows=1000))
    assert rows_of(tmp_path / "ten" / "corpus") == rows_of(tmp_path / "one" / "corpus")


@pytest.mark.parametrize("done", [0, 1, 2, 5])
def test_killed_build_translates_no_finished_shard_again(done, bitext, vectors, tmp_path, killed_after):
    """Killed among the repeated sentences (2 shards) or among the others (6 shards)."""
    make(bitext, tmp_path / "whole" / "corpus", vectors)
    log = tmp_path / "log"
    translator = FakeTranslatorConfig(log=str(log))
    given = bitext, tmp_path / "corpus", vectors
    killed_after(done, make, *given, kind=job, name="run_shard", translator=translator)
    make(*given, translator=translator)
    assert bytes_of(tmp_path / "whole" / "corpus") == bytes_of(tmp_path / "corpus")
    assert set(Counter(log.read_text().splitlines()).values()) == {1}


def test_no_second_pass_without_repeats(vectors, tmp_path):
    """1 repeat among 200 rows is not worth loading the model once more; it is translated with its shard."""
    lines = [f"wort {number}" for number in range(199)] + ["wort 7"]
    for side in ("de", "en"):
        (tmp_path / f"text.{side}").write_text("".join(f"{line}\n" for line in lines))
    text = LineFiles({"source": tmp_path / "text.de", "reference": tmp_path / "text.en"})
    log = tmp_path / "log"
    make(text, tmp_path / "corpus", vectors, translator=FakeTranslatorConfig(log=str(log)))
    assert log.read_text().splitlines() == lines


def test_text_for_a_pivot(vectors, tmp_path):
    """Of 40 sentences 4 are different; each goes to the pivot language and back once."""
    text, log = tmp_path / "text.en", Path(tmp_path / "log")
    text.write_text("word 1 a\nword 2 b\nword 3 c\na b c\n" * 10)
    there, back = (FakeTranslatorConfig(name=name, log=str(log)) for name in ("there", "back"))
    make(LineFiles({"reference": text}), tmp_path / "corpus", vectors, translator=back, pivot=there)
    forth = ["word 1 a", "word 2 b", "word 3 c", "a b c"]
    assert log.read_text().splitlines() == forth + [" ".join(line.split()[::-1]) for line in forth]
    rows = rows_of(tmp_path / "corpus")
    assert [row["translation"] for row in rows] == forth * 10
