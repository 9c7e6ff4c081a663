"""Documents become sentences, and nothing of them is lost."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf import TextInput
from paranmt_hf.corpus.reading.readers import Report
from paranmt_hf.corpus.reading.sentences import SentenceSources
from paranmt_hf.corpus.reading.splitting import SentenceSplitter, split_rows
from tests.refused import refused
from tests.toys import make, rows_of, write_vectors

pytest.importorskip("sentencex")
ENGLISH, CZECH = SentenceSplitter("en"), SentenceSplitter("cs")


@pytest.mark.parametrize(
    ("language", "parts"),
    [
        ("en", ["Dr. Smith paid $3.50 at 5 p.m. on Monday. ", '"Really?" she asked.  ', "Yes!"]),
        ("en", ["A title\n\n", "It begins\nhere. ", "It ends."]),
        ("en", ["  A dog runs. ", "A cat\n"]),
        ("de", ["Am 3. Mai kam z. B. Herr Dr. Müller. ", "Er ging."]),
        # Without our rule, sentencex begins a sentence at "října".
        ("cs", ["Od 3. října přišel např. pan Dr. Novák. ", "Odešel."]),
        ("cs", ["Je jich 3.\n\n", "říjen nebyl."]),
        ("ja", ["今日は天気です。", "明日は雨。"]),
        ("hi", ["नमस्ते। ", "आप कैसे हैं।"]),
        # Without rules of its own, a language is split as a related one, or English.
        ("sw", ["Habari. ", "Nzuri."]),
        ("en", [""]),
        ("en", [" \n\n "]),
        ("en", ["..."]),
    ],
)
def test_by_hand(language, parts):
    assert SentenceSplitter(language).split("".join(parts)) == parts


PIECES = ["A", "i", "ř", "Dr", "3", "U.S", "p.m", ". ", ".", "?", "! ", "…", "\n", "\n\n", "\r", " ", "\u2028"]
PIECES += ['"', "“", "”", "(", ")", "[1]", "1)", "a) ", "* ", "。", "।", "😀", "\0", "\u200b", "é"]


@given(st.lists(st.sampled_from(PIECES)).map("".join), st.sampled_from(["en", "cs", "de", "fr", "ja", "ar", "my"]))
def test_the_parts_are_the_document(document, language):
    parts = SentenceSplitter(language).split(document)
    assert "".join(parts) == document
    assert all(part.strip() for part in parts) or parts == [document]


def test_long_documents():
    # sentencex 1.0.32 alone loses line ends of this one.
    document = "A dog runs.\n\n" * 5000
    parts = ENGLISH.split(document)
    assert "".join(parts) == document
    assert len(parts) == 5000
    assert ENGLISH.split("A\xa0dog runs. It barks.") == ["A\xa0dog runs. ", "It barks."]
    assert ENGLISH.split("x" * 2_000_000) == ["x" * 2_000_000]
    assert len(CZECH.split("3. ř " * 100_000)) == 1


def test_remaining_sentences():
    document = "\tOne.  Two. \n\nThree. Four.\r"
    for kept, left in [
        ([1, 0, 0, 1], "\tOne.  Four.\r"),
        ([0, 1, 1, 0], "\tTwo. \n\nThree.\r"),
        ([0, 0, 0, 1], "\tFour.\r"),
        ([1, 1, 1, 1], document),
    ]:
        assert ENGLISH.remaining(document, np.array(kept, bool)) == left


def test_rows():
    documents = [b"A. B.", None, b"caf\xe9. x.", b"", b"C."]
    columns = {"text": pa.array(documents, pa.binary()), "url": pa.array(list("vwxyz"))}
    found = split_rows(columns, {"text": SentenceSplitter("fr")})
    # "A." and "B." may be initials of a name, so they are one sentence.
    assert found.columns[0].to_pylist() == [b"A. B.", None, b"caf\xe9. x.", b"", b"C."]
    columns["text"] = pa.array([b"It is. He is.", *documents[1:]], pa.binary())
    found = split_rows(columns, {"text": SentenceSplitter("fr")})
    assert found.columns[0].to_pylist() == [b"It is. ", b"He is.", None, b"caf\xe9. x.", b"", b"C."]
    assert found.columns[1].to_pylist() == list("vvwxyz")
    assert found.documents.tolist() == [0, 0, 1, 2, 3, 4] and not found.unequal.any()


def test_sources(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(b"One runs. Two run.\n\ncaf\xe9\n" + b"x" * 1001 + b". Three run.\n")
    sources, report = SentenceSources([path], splitter=ENGLISH), Report()
    found = [sentence for batch in sources.batches(report) for sentence in batch.to_pylist()]
    assert found == ["One runs.", "Two run.", "Three run."]
    # A long document is no long sentence.
    assert (report.read, report.dropped) == (6, {"empty": 1, "undecodable": 1, "over-long": 1})
    (identity,) = sources.identity
    assert identity["split"] == {"sentence": ENGLISH.identity}
    assert ENGLISH.identity.keys() == {"sentencex", "rules", "language"}
    assert SentenceSources([path]).identity != sources.identity
    (tmp_path / "text.de").write_bytes(path.read_bytes())
    with refused("split"):
        SentenceSources([path], translations=[tmp_path / "text.de"], splitter=ENGLISH)


def test_both_sides_of_a_bitext(tmp_path):
    (tmp_path / "a.cs").write_text("Od 3. října pes běží. Kočka spí.\nPrší.\nJeden. Dva.\n", encoding="utf8")
    (tmp_path / "a.en").write_text("On 3 October a dog runs. A cat sleeps.\nIt rains. A lot.\nOne. Two.\n")
    given = {"source": tmp_path / "a.cs", "reference": tmp_path / "a.en", "split": True}
    reader, report = TextInput(**given, source_language="cs").open(), Report()
    rows = [row for batch in reader.batches(report) for row in batch.to_pylist()]
    assert [(row["id"], row["document"], row["reference"]) for row in rows] == [
        (0, 0, "On 3 October a dog runs."),
        (1, 0, "A cat sleeps."),
        (3, 2, "One."),
        (4, 2, "Two."),
    ]
    assert [row["source"] for row in rows] == ["Od 3. října pes běží.", "Kočka spí.", "Jeden.", "Dva."]
    assert (report.read, list(report.dropped.values())) == (5, [1])
    with refused("source_language"):
        TextInput(**given).open()
    with refused("source_language"):
        TextInput(reference=tmp_path / "a.en", source_language="cs")
    # Text alone needs no other language.
    batches = TextInput(reference=tmp_path / "a.en", split=True).open().batches(Report())
    assert [row["document"] for batch in batches for row in batch.to_pylist()] == [0, 0, 1, 1, 2, 2]


def test_the_document_is_a_column_of_the_corpus(tmp_path):
    vectors = write_vectors(tmp_path / "vectors.txt", ["it", "rains", "a", "lot"])
    (tmp_path / "a.en").write_text("It rains. A lot.\nA.\n")
    (tmp_path / "a.de").write_text("Es gießt. Viel.\nEin.\n")
    text = TextInput(source=tmp_path / "a.de", reference=tmp_path / "a.en", split=True, source_language="de")
    made = make(text.open(), tmp_path / "out", vectors)
    rows = rows_of(tmp_path / "out")
    assert [(row["id"], row["document"], row["reference"]) for row in rows] == [
        (0, 0, "It rains."),
        (1, 0, "A lot."),
        (2, 1, "A."),
    ]
    assert made.record.settings["bitext"]["split"]["source"]["language"] == "de"


@pytest.mark.parametrize("language", ["th", "lo", "km"])
def test_languages_without_marks(language):
    with refused("split"):
        SentenceSplitter(language)


def test_an_unknown_language():
    with refused():
        SentenceSplitter("english")
