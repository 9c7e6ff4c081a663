"""XLIFF files of versions 1.2 and 2.0, as translation tools write them."""

from paranmt_hf.corpus.reading.xliff import XliffTable
from tests.corpus.reading.translation_units import rows, write_text
from tests.refused import refused


def version_1(*units, languages='source-language="en" target-language="cs"'):
    """As Okapi and Weblate write version 1.2."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2">'
        f'<file original="a.html" {languages} datatype="html"><header/><body>{"".join(units)}</body></file></xliff>'
    )


def version_2(*units, languages='srcLang="en" trgLang="cs"'):
    return (
        f'<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" {languages}>'
        f'<file id="f1">{"".join(units)}</file></xliff>'
    )


def trans_unit(source, target=None, state=""):
    given = "" if target is None else f"<target{state}>{target}</target>"
    return f'<trans-unit id="1"><source>{source}</source>{given}</trans-unit>'


def read(tmp_path, text):
    table = XliffTable(write_text(tmp_path / "x.xlf", text))
    assert table.matches("x", text.encode())
    assert table.names == ("en", "cs")
    assert table.source_language == "en"
    assert table.pair_of("cs") == ("en", "cs")
    return rows(table, "en", "cs")


def test_version_1(tmp_path):
    units = [trans_unit("dog", "pes"), f"<group id='g'><group>{trans_unit('cat', 'kočka')}</group></group>"]
    assert read(tmp_path, version_1(*units)) == [("dog", "pes"), ("cat", "kočka")]


def test_untranslated_units_of_version_1(tmp_path):
    units = [
        trans_unit("a"),
        trans_unit("b", ""),
        trans_unit("c", "c", ' state="new"'),
        trans_unit("d", "d", ' state="needs-translation"'),
        trans_unit("e", "é", ' state="needs-review-translation"'),
        trans_unit("f", "ef", ' state="final"'),
    ]
    expected = [("a", None), ("b", None), ("c", None), ("d", None), ("e", "é"), ("f", "ef")]
    assert read(tmp_path, version_1(*units)) == expected


def test_inline_elements_of_version_1(tmp_path):
    source = (
        'A <g id="1">bold <x id="2"/>word</g><x id="3" ctype="lb"/>and<ph id="4">{0}</ph> <mrk mtype="x">more</mrk>.'
    )
    assert read(tmp_path, version_1(trans_unit(source, "x"))) == [("A bold word and more.", "x")]


def test_proposals_are_not_the_translation(tmp_path):
    unit = (
        '<trans-unit id="1"><source>dog</source><target>pes</target>'
        "<alt-trans><source>dogs</source><target>psi</target></alt-trans><note>a note</note></trans-unit>"
    )
    assert read(tmp_path, version_1(unit)) == [("dog", "pes")]


def test_segments_of_version_1(tmp_path):
    # As SDL Trados writes .sdlxliff: the sentences of a unit are marked on both sides, inside inline elements too.
    def unit(second):
        return (
            '<trans-unit id="1"><source>One. Two.</source><seg-source><mrk mtype="seg" mid="1">One.</mrk> '
            '<g id="2"><mrk mtype="seg" mid="2">Two.</mrk></g></seg-source><target><mrk mtype="seg" mid="1">Jedna.'
            f'</mrk> <g id="2"><mrk mtype="seg" mid="{second}">Dvě.</mrk></g></target></trans-unit>'
        )

    assert read(tmp_path, version_1(unit("2"))) == [("One.", "Jedna."), ("Two.", "Dvě.")]
    assert read(tmp_path, version_1(unit("3"))) == [("One. Two.", "Jedna. Dvě.")]


def test_version_2(tmp_path):
    unit = (
        '<group id="g"><unit id="1"><segment><source>One <pc id="1">bold</pc>.</source>'
        '<target>Jedna <pc id="1">tučná</pc>.</target></segment><ignorable><source> </source></ignorable>'
        '<segment state="final"><source>Two<ph id="2" subType="xlf:lb" type="fmt"/>lines.</source>'
        '<target>Dva<ph id="2" subType="xlf:lb" type="fmt"/>řádky.</target></segment></unit></group>'
    )
    assert read(tmp_path, version_2(unit)) == [("One bold.", "Jedna tučná."), ("Two lines.", "Dva řádky.")]


def test_untranslated_segments_of_version_2(tmp_path):
    segments = (
        '<segment state="initial"><source>a</source><target>a</target></segment><segment><source>b</source></segment>'
        "<segment><source>c</source><target>cé</target></segment>"
    )
    assert read(tmp_path, version_2(f'<unit id="1">{segments}</unit>')) == [("a", None), ("b", None), ("c", "cé")]


def test_proposals_of_version_2(tmp_path):
    # The module of candidates of version 2.0 has elements of the core in it.
    unit = (
        '<unit id="1"><mtc:matches xmlns:mtc="urn:oasis:names:tc:xliff:matches:2.0"><mtc:match ref="#1">'
        "<source>dogs</source><target>psi</target></mtc:match></mtc:matches>"
        "<segment><source>dog</source><target>pes</target></segment></unit>"
    )
    assert read(tmp_path, version_2(unit)) == [("dog", "pes")]


def test_several_files_in_one(tmp_path):
    unit = "<body>{}</body></file>"
    text = (
        '<xliff version="1.2"><file source-language="en-US" target-language="cs">'
        + unit.format(trans_unit("dog", "pes"))
        + '<file source-language="en-US" target-language="de">'
        + unit.format(trans_unit("cat", "Katze"))
        + "</xliff>"
    )
    table = XliffTable(write_text(tmp_path / "x.xlf", text))
    assert table.names == ("en-US", "cs", "de")
    assert rows(table, "en", "cs", "de") == [("dog", "pes", None), ("cat", None, "Katze")]


def test_a_file_that_does_not_say_its_target_language(tmp_path):
    text = version_2("<unit id='1'><segment><source>dog</source></segment></unit>", languages='srcLang="en"')
    table = XliffTable(write_text(tmp_path / "x.xlf", text))
    assert table.names == ("en", "target")
    assert rows(table, "en", "target") == [("dog", None)]


def test_a_file_without_languages(tmp_path):
    path = write_text(tmp_path / "x.xlf", version_1(languages=""))
    with refused(path=path):
        XliffTable(path)
