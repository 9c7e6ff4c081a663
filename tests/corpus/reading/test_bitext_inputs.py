"""Bitexts of every format as the input of commands."""

import gzip

import pytest

from paranmt_hf import ReleaseConfig, TextInput, import_pairs
from paranmt_hf.corpus.reading.formats import open_table
from paranmt_hf.corpus.reading.readers import LineFiles
from paranmt_hf.corpus.reading.sentences import open_sentences
from tests.corpus.reading.bitexts import read
from tests.corpus.reading.translation_units import write_text
from tests.refused import refused
from tests.toys import LOCAL, RELEASE, write_vectors

TMX = (
    '<tmx version="1.4"><header srclang="en"/><body>'
    '<tu><tuv xml:lang="en"><seg>dog</seg></tuv><tuv xml:lang="cs"><seg>pes</seg></tuv></tu>'
    '<tu><tuv xml:lang="en"><seg>cat</seg></tuv></tu>'
    '<tu><tuv xml:lang="cs"><seg>dům</seg></tuv><tuv xml:lang="en"><seg>house</seg></tuv></tu></body></tmx>'
)
XLIFF = (
    '<xliff version="1.2"><file source-language="cs" target-language="en"><body><trans-unit id="1">'
    "<source>pes</source><target>dog</target></trans-unit></body></file></xliff>"
)
PO = 'msgid ""\nmsgstr "Language: cs\\n"\n\nmsgid "dog"\nmsgstr "pes"\n'
WMT = (
    '<dataset id="x"><doc id="a"><src lang="cs"><p><seg id="1">pes</seg></p></src>'
    '<ref lang="en" translator="A"><p><seg id="1">dog</seg></p></ref></doc></dataset>'
)
# As the alignments of OPUS.
LINKS = (
    '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE cesAlign PUBLIC "-//CES//DTD XML cesAlign//EN" "">\n'
    '<cesAlign version="1.0"><linkGrp fromDoc="cs/a.xml.gz" toDoc="en/a.xml.gz"/></cesAlign>'
)


def pairs(path, columns=None, language="en"):
    kept, _ = read(TextInput(data=(str(path),), columns=columns).open(language))
    return [row[1:] for row in kept]


@pytest.mark.parametrize(("name", "content"), [("a.tmx", TMX), ("a.xlf", XLIFF), ("a.po", PO), ("a.xml", WMT)])
def test_a_bitext_in_one_file(tmp_path, name, content):
    assert pairs(write_text(tmp_path / name, content))[0] == ("pes", "dog")


def test_packed_and_by_its_columns(tmp_path):
    path = tmp_path / "a.tmx.gz"
    path.write_bytes(gzip.compress(TMX.encode()))
    assert pairs(path) == [("pes", "dog"), ("dům", "house")]
    assert pairs(path, language="cs") == [("dog", "pes"), ("house", "dům")]
    assert pairs(path, {"source": "cs", "reference": "en"}) == [("pes", "dog"), ("dům", "house")]
    text = TextInput(data=(str(path),)).open()
    rows, report = read(text)
    # Row 1 has no Czech.
    assert [row[0] for row in rows] == [0, 2]
    assert report.dropped == {"empty": 1}
    assert "sha256" in text.identity["files"][0]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        # As the WMT and OPUS datasets of the Hub have it.
        ("a.jsonl", '{"translation": {"cs": "pes", "en": "dog"}}'),
        ("a.csv", "en,cs,score\ndog,pes,0.5\ncat,ko\u010dka,0.25\n"),
        ("a.tsv", "1.2\tpes a d\u016fm\ta dog, a house\n"),
    ],
)
def test_the_columns_of_a_bitext_must_be_named(tmp_path, name, content):
    path = write_text(tmp_path / name, content)
    with refused("columns", path=path):
        TextInput(data=(str(path),)).open()


def test_no_file_of_several_leaves_a_choice(tmp_path):
    first = write_text(tmp_path / "a.tmx", TMX)
    second = write_text(tmp_path / "b.tmx", TMX.replace('"en"><seg>dog', '"en-US"><seg>dog'))
    with refused("columns", path=second):
        TextInput(data=(str(first), str(second))).open()


def test_text_alone_is_not_data(tmp_path):
    path = write_text(tmp_path / "a.en", "dog\n")
    with refused("data", path=path):
        TextInput(data=(str(path),)).open()


def test_sentences_of_one_column(tmp_path):
    path = write_text(tmp_path / "a.tmx", TMX)
    assert [row[1] for row in read(open_sentences(path, "en"))[0]] == ["dog", "cat", "house"]
    with refused("column", path=path):
        open_sentences(path)
    side = write_text(tmp_path / "a.sgm", '<refset trglang="en"><doc docid=a><seg id=1>dog</seg></doc></refset>')
    assert [row[1] for row in read(open_sentences(side))[0]] == ["dog"]


def test_one_file_is_not_two_sides(tmp_path):
    path = write_text(tmp_path / "a.tmx", TMX)
    lines = write_text(tmp_path / "a.en", "dog\n")
    with refused("source", path=path):
        TextInput(source=path, reference=path).open()
    with refused("source", path=path):
        TextInput(source=path)
    with refused("reference", path=path):
        TextInput(source=lines, reference=path).open()
    with refused(path=path):
        LineFiles({"a": path})


def test_links_without_sentences(tmp_path):
    path = write_text(tmp_path / "a.xml", LINKS)
    with refused(path=path) as error:
        open_table(path)
    assert "Moses" in str(error.value)


def test_a_bitext_is_no_pairs_of_one_language(tmp_path):
    path = write_text(tmp_path / "a.tmx", TMX)
    with refused("columns", path=path):
        import_pairs(path, tmp_path / "out", release=ReleaseConfig(license="cc-by-4.0"))


@pytest.mark.slow
def test_names_above_short_phrases(tmp_path):
    # `reference` and `translation` are names even where the rows look like a list of words.
    path = write_text(tmp_path / "a.tsv", "reference\ttranslation\nsmall dog\tlittle dog\n")
    vectors = write_vectors(tmp_path / "vectors.txt", ["dog"])
    built = import_pairs(path, tmp_path / "out", scorer=vectors, release=RELEASE, engine=LOCAL)
    assert built.record.statistics.rows == 1
