"""TMX files as OPUS, translation tools and gettext's converters write them."""

import tracemalloc

import pytest

from paranmt_hf import InputError
from paranmt_hf.corpus.reading.tmx import TmxTable
from tests.corpus.reading.translation_units import rows, write_text
from tests.refused import refused

# As the exports of OPUS (TMX 1.4): one language before the other in the order of their codes, no document type.
OPUS = """<?xml version="1.0" encoding="UTF-8" ?>
<tmx version="1.4">
<header creationdate="Mon Feb 12 21:10:25 2018"
          srclang="en"
          adminlang="en"
          o-tmf="unknown"
          segtype="sentence"
          creationtool="Uplug"
          creationtoolversion="unknown"
          datatype="PlainText" />
  <body>
    <tu>
      <tuv xml:lang="cs"><seg>Dobrý den.</seg></tuv>
      <tuv xml:lang="en"><seg>Good &amp; fine day.</seg></tuv>
    </tu>
    <tu>
      <tuv xml:lang="en"><seg>Thanks.</seg></tuv>
      <tuv xml:lang="cs"><seg>Díky.</seg></tuv>
    </tu>
  </body>
</tmx>
"""


def memory(*units, header='srclang="en"'):
    return f'<tmx version="1.4"><header {header}/><body>{"".join(units)}</body></tmx>'


def unit(attributes="", **texts):
    variants = "".join(
        f'<tuv xml:lang="{language.replace("_", "-")}"><seg>{text}</seg></tuv>'
        for language, given in texts.items()
        for text in ([given] if isinstance(given, str) else given)
    )
    return f"<tu {attributes}>{variants}</tu>"


def test_a_file_of_opus(tmp_path):
    table = TmxTable(write_text(tmp_path / "x.tmx", OPUS))
    assert table.names == ("cs", "en")
    assert table.source_language == "en"
    assert rows(table, "cs", "en") == [("Dobrý den.", "Good & fine day."), ("Díky.", "Thanks.")]
    assert rows(table, "en") == [("Good & fine day.",), ("Thanks.",)]
    assert rows(table, "2", "1")[1] == ("Thanks.", "Díky.")


# Translation tools on Windows write UTF-16; the encoding is in the mark at the start.
@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_other_encodings(tmp_path, encoding):
    text = OPUS.replace(' encoding="UTF-8"', "")
    table = TmxTable(write_text(tmp_path / "x.tmx", text, encoding))
    assert TmxTable.matches("x", (tmp_path / "x.tmx").read_bytes())
    assert rows(table, "cs")[0] == ("Dobrý den.",)


def test_the_format_is_found_by_the_root(tmp_path):
    assert TmxTable.matches(
        "x", b'<?xml version="1.0"?>\n<!-- a note -->\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">'
    )
    assert TmxTable.matches("x", b'<!DOCTYPE tmx [<!ENTITY a "b">]><tmx>')
    assert not TmxTable.matches("x.tmx", b"<tmxfile>")
    assert not TmxTable.matches("x.tmx", b"plain text")


def test_the_source_language_is_what_the_file_says(tmp_path):
    three = unit(cs="pes", de="Hund", en="dog")
    path = tmp_path / "x.tmx"
    for header, units, source in [
        ('srclang="de"', [three], "de"),
        ('srclang="*all*"', [three], None),
        ('srclang="en"', [unit('srclang="CS"', cs="pes", de="Hund", en="dog")], "cs"),
        ('srclang="de"', [three, unit('srclang="cs"', cs="pes", en="dog")], None),
    ]:
        table = TmxTable(write_text(path, memory(*units, header=header)))
        assert table.source_language == source
        if source is None:
            with refused("columns", path=path):
                table.pair_of("en")
        else:
            assert table.pair_of("en") == (source, "en")


def test_the_other_of_two_languages_is_the_foreign_one(tmp_path):
    # English was translated, and the corpus is English all the same.
    table = TmxTable(write_text(tmp_path / "x.tmx", memory(unit(en="dog", cs="pes"), header='srclang="en"')))
    assert table.pair_of("en") == ("cs", "en")
    assert table.pair_of("cs") == ("en", "cs")
    with refused("columns"):
        table.pair_of("de")
    alone = TmxTable(write_text(tmp_path / "y.tmx", memory(unit(en="dog"))))
    with pytest.raises(InputError):
        alone.pair_of("en")


def test_codes_of_regions(tmp_path):
    path = write_text(tmp_path / "x.tmx", memory(unit(cs="pes", en_US="dog"), unit(CS="kočka", en_us="cat")))
    table = TmxTable(path)
    assert table.names == ("cs", "en-US")
    assert rows(table, "cs", "en") == rows(table, "CS", "en_us") == [("pes", "dog"), ("kočka", "cat")]
    assert table.pair_of("en") == ("cs", "en-US")
    next_to = TmxTable(write_text(path, memory(unit(en="lift", en_US="elevator"))))
    assert rows(next_to, "en", "en-US") == [("lift", "elevator")]
    # Neither may be chosen for the user, on any side: the rows of the other would be lost.
    both = TmxTable(write_text(path, memory(unit(cs="pes", en="dog"), unit(cs="dům", en_US="house"))))
    for language in ("en", "cs"):
        with refused("columns", path=path):
            both.pair_of(language)
    several = TmxTable(write_text(path, memory(unit(en_GB="lift", en_US="elevator"))))
    with refused("columns", path=path):
        rows(several, "en")


def test_the_attribute_lang_of_version_1_1(tmp_path):
    text = memory('<tu><tuv lang="EN"><seg>dog</seg></tuv><tuv lang="CS"><seg>pes</seg></tuv></tu>')
    assert rows(TmxTable(write_text(tmp_path / "x.tmx", text)), "cs", "en") == [("pes", "dog")]


def test_several_texts_of_a_language_are_rows_each(tmp_path):
    path = write_text(tmp_path / "x.tmx", memory(unit(cs="pes", en=["dog", "hound"]), unit(cs="a", en="b")))
    assert rows(TmxTable(path), "cs", "en") == [("pes", "dog"), ("pes", "hound"), ("a", "b")]


def test_a_unit_without_a_language(tmp_path):
    path = write_text(
        tmp_path / "x.tmx", memory(unit(cs="pes", en="dog"), unit(cs="a"), unit(en="b"), unit(en="", cs="c"))
    )
    assert rows(TmxTable(path), "cs", "en") == [("pes", "dog"), ("a", None), (None, "b"), ("c", "")]


def test_inline_codes_are_no_text(tmp_path):
    seg = (
        '<bpt i="1" x="1">&lt;b&gt;</bpt>Click<ept i="1">&lt;/b&gt;</ept> <hi type="term">here</hi>'
        '<ph>&lt;br/&gt;</ph>now<it pos="begin">{\\i <sub>a note</sub></it>, <ut>\\par</ut>please.'
    )
    path = write_text(tmp_path / "x.tmx", memory(unit(en=seg, cs="x")))
    assert rows(TmxTable(path), "en") == [("Click here now, please.",)]


def test_properties_and_notes_are_no_text(tmp_path):
    text = memory(
        '<tu><note>a note</note><prop type="x">a property</prop>'
        '<tuv xml:lang="en"><prop type="y">p</prop><seg>dog</seg></tuv></tu>'
    )
    assert rows(TmxTable(write_text(tmp_path / "x.tmx", text)), "en") == [("dog",)]


@pytest.mark.parametrize(
    "text",
    [
        OPUS[:-40],
        OPUS.replace("&amp;", "&"),
        OPUS.replace(' xml:lang="cs"', ""),
        '<tmx version="1.4"><header srclang="en"/><body/></tmx>',
        memory(unit(en="&undefined;")),
        memory("<a>" * 300 + "</a>" * 300, unit(en="dog")),
    ],
)
def test_what_is_refused(tmp_path, text):
    path = write_text(tmp_path / "x.tmx", text)
    with refused(path=path):
        rows(TmxTable(path), "en")


def test_no_other_file_is_read(tmp_path):
    write_text(tmp_path / "secret", "secret")
    for declared in ('<!ENTITY a SYSTEM "secret">', f'<!ENTITY a SYSTEM "{(tmp_path / "secret").as_uri()}">'):
        path = write_text(tmp_path / "x.tmx", f"<!DOCTYPE tmx [{declared}]>" + memory(unit(en="&a;")))
        with pytest.raises(InputError):
            rows(TmxTable(path), "en")


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path):
    peaks = []
    for count in (20_000, 60_000):
        units = [unit(cs=f"věta {number}", en=f"sentence {number}") for number in range(count)]
        table = TmxTable(write_text(tmp_path / "x.tmx", memory(*units)))
        tracemalloc.start()
        assert sum(len(piece.columns[0]) for piece in table.pieces(["cs", "en"])) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]
