"""PO files as GNU gettext 0.21, Poedit 3 and Django write them."""

import pytest

from paranmt_hf.corpus.reading.po import PoTable
from tests.corpus.reading.translation_units import rows, write_text
from tests.refused import refused

HEADER = """# Czech translation.
msgid ""
msgstr ""
"Project-Id-Version: x 1.0\\n"
"Language: {language}\\n"
"Content-Type: text/plain; charset={charset}\\n"
"Plural-Forms: {plurals}\\n"

"""
CZECH = "nplurals=3; plural=(n==1) ? 0 : (n>=2 && n<=4) ? 1 : 2;"
MESSAGES = """#: a.c:10
msgid "Open a file"
msgstr "Otevřít soubor"

#, fuzzy
#| msgid "Close"
msgid "Close it"
msgstr "Zavřít"

msgctxt "menu"
msgid "Print \\"all\\"\\n"
"of it"
msgstr ""
"Vytisknout\\n"
"vše"

msgid "Untranslated"
msgstr ""

#~ msgid "Gone"
#~ msgstr "Pryč"
"""
PLURALS = """msgid "one file"
msgid_plural "%d files"
msgstr[0] "jeden soubor"
msgstr[1] "%d soubory"
msgstr[2] "%d souborů"
"""


def catalogue(path, messages, language="cs", charset="UTF-8", plurals=CZECH):
    header = HEADER.format(language=language, charset=charset, plurals=plurals)
    return PoTable(write_text(path, header + messages, "utf-8" if charset == "CHARSET" else charset))


def test_messages(tmp_path):
    table = catalogue(tmp_path / "cs.po", MESSAGES)
    assert table.names == ("en", "cs")
    assert table.pair_of("en") == ("cs", "en")
    assert rows(table, "en", "cs") == [
        ("Open a file", "Otevřít soubor"),
        ("Close it", None),
        ('Print "all"\nof it', "Vytisknout\nvše"),
        ("Untranslated", None),
    ]


def test_plurals(tmp_path):
    expected = [("one file", "jeden soubor"), ("%d files", "%d soubory"), ("%d files", "%d souborů")]
    assert rows(catalogue(tmp_path / "cs.po", PLURALS), "en", "cs") == expected
    # Of Arabic, form 0 is for zero and form 1 for one; Japanese has one form for all numbers.
    arabic = catalogue(tmp_path / "ar.po", PLURALS, "ar", plurals="nplurals=3; plural=n==0 ? 0 : n==1 ? 1 : 2;")
    assert [source for source, _ in rows(arabic, "en", "ar")] == ["%d files", "one file", "%d files"]
    one = PLURALS.split("msgstr[1]")[0]
    japanese = catalogue(tmp_path / "ja.po", one, "ja", plurals="nplurals=1; plural=0;")
    assert rows(japanese, "en", "ja") == [("%d files", "jeden soubor")]
    # Of a template.
    template = catalogue(tmp_path / "x.pot", PLURALS, "cs", "CHARSET", plurals="nplurals=INTEGER; plural=EXPRESSION;")
    assert rows(template, "en", "cs") == expected


def test_another_character_set(tmp_path):
    assert rows(catalogue(tmp_path / "cs.po", MESSAGES, charset="ISO-8859-2"), "cs")[0] == ("Otevřít soubor",)


def test_languages_of_the_columns(tmp_path):
    assert catalogue(tmp_path / "a.po", PLURALS, "pt_BR").pair_of("pt") == ("en", "pt_BR")
    # Keys in place of English.
    assert catalogue(tmp_path / "b.po", PLURALS, "en").names == ("msgid", "en")
    assert catalogue(tmp_path / "c.po", PLURALS, "").pair_of("en") == ("msgstr", "en")
    # As Poedit writes it.
    german = MESSAGES.replace("#: a.c", "#: a.c")
    path = write_text(
        tmp_path / "d.po",
        (
            HEADER.format(language="cs", charset="UTF-8", plurals=CZECH).rstrip("\n")
            + '\n"X-Source-Language: de\\n"\n\n'
            + german
        ),
    )
    assert PoTable(path).names == ("de", "cs")


@pytest.mark.parametrize(
    "text", ['msgid "a\nmsgstr "b"\n', 'msgid "a"\nmsgstr "b"\nmsgstr\n', 'msgid ""\nmsgstr "charset=x-none"\n']
)
def test_what_is_refused(tmp_path, text):
    path = write_text(tmp_path / "x.po", text)
    with refused(path=path):
        PoTable(path)
