"""Whether line 1 of TSV has names or is a row, and whether quotes are text."""

import logging

import pytest

from paranmt_hf.corpus.reading.formats import open_table
from paranmt_hf.corpus.reading.readers import TableFiles
from tests.corpus.reading.bitexts import read, write
from tests.refused import refused

SENTENCES = ["A man is riding a horse .\tA person rides a horse .", "Two dogs run on the grass .\tDogs are running ."]

NAMED = [
    # Of MRPC, SICK, PAWS, QQP of GLUE, and what pandas writes with its numbers of rows.
    ("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", ["1\t702876\t702977\tA dog runs\tThe dog runs"]),
    ("pair_ID\tsentence_A\tsentence_B", ["1\tA dog runs\tThe dog runs", "2\tno\tyes"]),
    ("id\tsentence1\tsentence2\tlabel", ["1\ta\tb\t0"]),
    ("score\tsentence1\tsentence2", ["3.5\ta\tb"]),
    ("Satz\tUmformulierung\tNote", ["ein Hund\tder Hund\t4.5"]),
    ("\tleft\tright", ["0\ta\tb", "1\tc\td"]),
    ("\t0\t1", ["0\ta\tb", "1\tc\td"]),
    ("sentence_A\tsentence_B", ["a dog\tthe dog"]),
    ("reference\ttranslation\tlabel\tlabel", ["a dog\tthe dog\t1\t0"]),
    ("#1 String\t#2 String", ["a dog\tthe dog"]),
    ("věta_1\tvěta_2", SENTENCES),
    ("source\ttarget", SENTENCES),
    ("English\tGerman", SENTENCES),
    ("source\ttarget", ["一个戴着硬帽子的人在跳舞。\t一个戴着硬帽的人在跳舞。"] * 3),
    ("Frage\tUmformulierung", SENTENCES * 10),
]
ROWS = [
    ("a dog\tthe dog", ["a cat\tthe cat"]),
    ("source\ttarget", ["origin\tspring", "aim\tgoal"]),
    ("sentence\tphrase", []),
    ("iphone4\tiphone5", ["a phone\tthe phone"]),
    ("big\tlarge", ["small\tlittle"] * 30),
    ("Hello\tHi", ["Good morning to all of you\tHello to you all", "Yes\tYeah"] * 20),
    ("Yes.\tYeah.", SENTENCES * 20),
    ("one dog\ttwo dogs\t0.5", ["a\tb\t1"]),
    ("one dog\ttwo dogs\tn/a", ["a\tb\t1"]),
    ("1\t2", ["3\t4"]),
    ("word\tword", ["text\ttext", "a\tb"]),
    ("same\tsame", SENTENCES * 20),
]


CASES = [(*case, True) for case in NAMED] + [(*case, False) for case in ROWS]


@pytest.mark.parametrize(("first", "below", "named"), CASES)
def test_whether_line_1_has_names(tmp_path, first, below, named):
    path = write(tmp_path / "t.tsv", first, *below)
    assert open_table(path).names == (tuple(first.split("\t")) if named else ())
    assert read(TableFiles([path], {"a": "2"}))[1].read == len(below) + (not named)


def test_columns_that_the_user_names_are_in_line_1(tmp_path, caplog):
    path = write(tmp_path / "t.tsv", "big\tlarge", "small\tlittle")
    caplog.set_level(logging.INFO)
    assert read(TableFiles([path], {"a": "1"}))[0] == [(0, "big"), (1, "small")]
    assert read(TableFiles([path], {"a": "large", "b": "big"}))[0] == [(0, "little", "small")]
    assert [str(path) in record.getMessage() for record in caplog.records] == [True, True]


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        # MRPC, PAWS and STS-B: quotes are text, wherever they are.
        ('"Yes" , he said .\t" no\n', [('"Yes" , he said .', '" no')]),
        ('"Hello .\tHi ."\n"A"\t"B"\n', [('"Hello .', 'Hi ."'), ('"A"', '"B"')]),
        ('"A quote ."\tno quote .\n', [('"A quote ."', "no quote .")]),
        ('a 5" pipe\tb\n"c ""d"""\te\n', [('a 5" pipe', "b"), ('"c ""d"""', "e")]),
        # Quotes of a program that quotes: one field needs them, or all text has them.
        ('"c ""d"""\te\n"f"\tg\n', [('c "d"', "e"), ("f", "g")]),
        ('"c\td"\te\n', [("c d", "e")]),
        ('"c\nd"\te\r\nf\tg\r\n', [("c d", "e"), ("f", "g")]),
        ('"c"\t"e"\n"f"\t"g"\n', [("c", "e"), ("f", "g")]),
    ],
)
def test_quotes(tmp_path, content, rows):
    (tmp_path / "t.tsv").write_bytes(content.encode())
    found, _ = read(TableFiles([tmp_path / "t.tsv"], {"a": "1", "b": "2"}))
    assert [row[1:] for row in found] == rows


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("quoted", [False, True])
def test_blank_lines_are_dropped_and_counted(tmp_path, end, quoted):
    text = '"a\tdog"' if quoted else "a dog"
    lines = ["text\tscore", f"{text}\t1", "", "cat\t2", "", ""]
    (tmp_path / "t.tsv").write_bytes("".join(line + end for line in lines).encode())
    rows, report = read(TableFiles([tmp_path / "t.tsv"], {"t": "text", "n": "score"}, numbers=["n"]))
    assert rows == [(0, "a dog", 1.0), (2, "cat", 2.0)]
    assert report.dropped == {"empty": 3}


def test_a_mark_of_utf8_and_ends_of_windows_are_no_part_of_names(tmp_path):
    (tmp_path / "t.csv").write_bytes("\ufefftext;score\r\nVerfügung, neu;1\r\n".encode())
    table = open_table(tmp_path / "t.csv")
    assert (table.names, table.texts) == (("text", "score"), ("text",))
    rows, _ = read(TableFiles([table], {"t": "text", "n": "score"}, numbers=["n"]))
    assert rows == [(0, "Verfügung, neu", 1.0)]


def test_rows_that_are_not_utf8_are_counted(tmp_path):
    for name, content in {
        "t.tsv": b"left\tright\tn\ncaf\xe9\tx\t1\ny\tz\t2\n",
        "t.csv": b"left,right,n\ncaf\xe9,x,1\ny,z,2\n",
        "t.jsonl": b'{"left": "caf\xe9", "right": "x"}\n{"left": "y", "right": "z"}\n',
    }.items():
        (tmp_path / name).write_bytes(content)
        rows, report = read(TableFiles([tmp_path / name], {"a": "left", "b": "right"}))
        assert (rows, report.dropped) == ([(1, "y", "z")], {"undecodable": 1}), name


def test_paths_missing_values_and_surrogates_of_json(tmp_path):
    """The layout of WMT on the Hub, nulls, missing keys, numbers as text, and half a surrogate pair of JavaScript."""
    path = write(
        tmp_path / "t.jsonl",
        '{"translation": {"cs": "pes", "en": "dog"}, "n": 1}',
        '{"translation": {"cs": null, "en": "cat"}, "n": 2}',
        '{"translation": {"en": "no Czech"}, "n": 3}',
        '{"translation": null, "n": 4}',
        '{"n": "0.5", "translation": {"en": "half \\ud83d pair", "cs": "\\ud83d\\ude42"}}',
        "",
    )
    found = TableFiles([path], {"s": "translation.cs", "r": "translation.en", "n": "n"}, numbers=["n"])
    rows, report = read(found)
    assert rows == [(0, "pes", "dog", 1.0), (4, "🙂", "half \ufffd pair", 0.5)]
    assert report.dropped == {"empty": 4}


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("prompt,completion\nA dog runs,The dog runs\n", ("prompt", "completion")),
        ("big,large\nsmall,little\n", ()),
        # As the translated STS benchmark has them.
        ("Ein Hund rennt.,Der Hund rennt.,4.5\nEin Hund.,Eine Katze.,1.0\n", ()),
        ("text\nA dog runs\n", ("text",)),
    ],
)
def test_names_of_csv(tmp_path, content, names):
    (tmp_path / "t.csv").write_text(content)
    assert open_table(tmp_path / "t.csv").names == names


def test_a_blank_line_1_is_refused(tmp_path):
    for name in ("t.csv", "t.tsv"):
        (tmp_path / name).write_text("\nleft,right\ta\n")
        with refused(path=tmp_path / name):
            open_table(tmp_path / name)
