"""Test sets of WMT: SGML as of newstest2008 to newstest2020, XML as of newstest2021 and later."""

import pytest

from paranmt_hf import TextInput
from paranmt_hf.corpus.reading.wmt import WmtSgmlTable, WmtXmlTable
from tests.corpus.reading.bitexts import read
from tests.corpus.reading.translation_units import rows, write_text
from tests.refused import refused

# As newstest2013-src.cs.sgm: no root above the set, "any" for a language.
SOURCE = """<srcset setid="newstest2013" srclang="any">
<doc sysid="ref" docid="a/1" genre="news" origlang="cs">
<hl>
<seg id="1">Titulek</seg>
</hl>
<p>
<seg id="2">Věta s R&D &amp; &quot;uvozovkami&quot;.</seg>
</p>
</doc>
<doc docid="b" genre="news" origlang="en">
<p><seg id="1"> Druhá
věta </seg></p>
</doc>
</srcset>
"""
# As older reference sets: attributes without quotes, names in upper case.
REFERENCE = """<refset setid="newstest2013" srclang=any trglang="en">
<DOC docid="a/1" sysid=ref>
<seg id=1>Headline</seg>
<SEG id=2>A sentence with R&D &amp; &#34;quotes&#34; &lt; 5.</SEG>
</DOC>
<doc docid="b" sysid=ref>
<seg id=1>Second sentence</seg>
</doc>
</refset>
"""
SEGMENTS = [
    ("Titulek", "Headline"),
    ('Věta s R&D & "uvozovkami".', 'A sentence with R&D & "quotes" < 5.'),
    (" Druhá\nvěta ", "Second sentence"),
]


PAIRS = [(source.strip().replace("\n", " "), reference) for source, reference in SEGMENTS]


def sides(folder, source=SOURCE, reference=REFERENCE):
    return write_text(folder / "a.cs.sgm", source), write_text(folder / "a.en.sgm", reference)


def pairs(folder, **given):
    source, reference = sides(folder, **given)
    kept, _ = read(TextInput(source=source, reference=reference).open())
    return [row[1:] for row in kept]


def test_one_side(tmp_path):
    source, reference = map(WmtSgmlTable, sides(tmp_path))
    assert (source.names, reference.names) == (("text",), ("en",))
    assert rows(source, "text") == rows(source, "1") == [(text,) for text, _ in SEGMENTS]
    assert rows(reference, "en") == [(text,) for _, text in SEGMENTS]
    with refused("data", path=tmp_path / "a.en.sgm"):
        reference.pair_of("en")


def test_two_sides_are_aligned_by_document_and_segment(tmp_path):
    assert pairs(tmp_path) == PAIRS
    first, second = REFERENCE.index("<DOC"), REFERENCE.index('<doc docid="b"')
    swapped = REFERENCE[:first] + REFERENCE[second:].replace("</refset>", "") + REFERENCE[first:second]
    assert pairs(tmp_path, reference=swapped) == [PAIRS[2], *PAIRS[:2]]


def test_two_references_are_rows_each(tmp_path):
    again = REFERENCE + REFERENCE.replace("Headline", "Title")
    found = pairs(tmp_path, reference=again)
    assert len(found) == 6
    assert found[3] == ("Titulek", "Title")


@pytest.mark.parametrize("side", ["source", "reference"])
def test_a_segment_that_one_side_lacks(tmp_path, side):
    given = {"source": SOURCE, "reference": REFERENCE}
    given[side] = given[side].replace('<seg id="1">Titulek</seg>', "").replace("<seg id=1>Headline</seg>", "")
    with refused(path=tmp_path / ("a.cs.sgm" if side == "source" else "a.en.sgm")) as error:
        pairs(tmp_path, **given)
    assert "'1'" in str(error.value)
    assert "a/1" in str(error.value)


def test_the_identity_covers_both_sides(tmp_path):
    source, reference = sides(tmp_path)
    text = TextInput(source=source, reference=reference)
    before = text.open().identity
    assert text.open().identity == before
    sides(tmp_path, reference=REFERENCE.replace("Headline", "Title"))
    assert text.open().identity != before


@pytest.mark.parametrize(
    "content", [b"<srcset srclang=cs><doc docid=a></doc></srcset>", b"<refset><seg id=1>\xe9</seg>"]
)
def test_sgml_that_is_refused(tmp_path, content):
    path = tmp_path / "x.sgm"
    path.write_bytes(content)
    with refused(path=path):
        rows(WmtSgmlTable(path), "1")


DATASET = """<?xml version='1.0' encoding='utf-8'?>
<dataset id="newstest2021.cs-en">
  <doc origlang="cs" id="a">
    <src lang="cs">
      <p>
        <seg id="1">Jedna</seg>
        <seg id="2">Dvě &amp; tři</seg>
      </p>
    </src>
    <ref lang="en" translator="A">
      <p>
        <seg id="1">One</seg>
        <seg id="2">Two &amp; three</seg>
      </p>
    </ref>{more}
    <hyp lang="en" system="Online-B">
      <p><seg id="2">2 and 3</seg></p>
      <p><seg id="1">1</seg></p>
    </hyp>
  </doc>
</dataset>
"""


def test_xml(tmp_path):
    table = WmtXmlTable(write_text(tmp_path / "x.xml", DATASET.format(more="")))
    assert table.matches("x.xml", DATASET.encode())
    assert table.names == ("cs", "en", "en/Online-B")
    assert table.pair_of("en") == ("cs", "en")
    assert rows(table, "cs", "en") == [("Jedna", "One"), ("Dvě & tři", "Two & three")]
    assert rows(table, "en", "en/Online-B") == [("One", "1"), ("Two & three", "2 and 3")]


def test_language_of_a_system_as_wmt_format_tools_writes_it(tmp_path):
    text = DATASET.format(more="").replace('<hyp lang="en" system', '<hyp language="en" system')
    assert WmtXmlTable(write_text(tmp_path / "x.xml", text)).names == ("cs", "en", "en/Online-B")


def test_references_by_two_translators(tmp_path):
    second = '<ref lang="en" translator="B"><p><seg id="1">A one</seg></p></ref>'
    table = WmtXmlTable(write_text(tmp_path / "x.xml", DATASET.format(more=second)))
    assert table.names == ("cs", "en/A", "en/B", "en/Online-B")
    assert rows(table, "cs", "en/B") == [("Jedna", "A one"), ("Dvě & tři", None)]
    with refused("columns"):
        table.pair_of("en")


def test_xml_that_is_refused(tmp_path):
    path = write_text(tmp_path / "x.xml", "<dataset><doc></doc></dataset>")
    with refused(path=path):
        WmtXmlTable(path)
