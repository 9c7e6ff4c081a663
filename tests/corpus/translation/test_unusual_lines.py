"""Lines without a letter, and lines in capitals."""

import pyarrow as pa
import pytest

from paranmt_hf.corpus.reading.readers import Report
from paranmt_hf.corpus.translation.translator import Translations, translate_table
from paranmt_hf.corpus.translation.unusual_lines import in_sentence_case, with_letters


def test_rows_without_a_letter_are_dropped_and_counted():
    columns = {"id": [0, 1, 2, 3, 4], "source": ["a", "-", "b", "12", "č"], "reference": ["x", "y", "...", "3", "я"]}
    report = Report(read=5, kept=5)
    (batch,) = with_letters([pa.record_batch(columns)], report)
    assert batch["id"].to_pylist() == [0, 4]
    assert report.as_dict() == {"read": 5, "kept": 2, "dropped": {"without a letter": 3}}
    alone = pa.record_batch({"id": [0, 1], "reference": ["…", "x"]})
    assert next(with_letters([alone], Report()))["id"].to_pylist() == [1]
    entities = pa.record_batch({"id": [0, 1, 2], "reference": ["&nbsp;", "&mdash; &#8230;", "Tom &amp; I"]})
    assert next(with_letters([entities], Report()))["id"].to_pylist() == [2]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("DVA MUŽI BĚŽÍ.", "Dva muži běží."),
        ("STOP - 100 KM!", "Stop - 100 km!"),
        ("ДОБРЫЙ ДЕНЬ", "Добрый день"),
        ("DVA MUŽI &amp; PES", "Dva muži &amp; pes"),
        ("NATO", "NATO"),
        ("A B C", "A B C"),
        ("NATO a EU", "NATO a EU"),
        ("Dva Muži", "Dva Muži"),
        ("IBM和DELL", "IBM和DELL"),
        ("...", "..."),
    ],
)
def test_lines_in_capitals(line, expected):
    assert in_sentence_case(pa.array([line])).to_pylist() == [expected]


class Echo:
    identity = {"name": "echo"}

    def translate(self, sentences):
        return Translations([f"{sentence}!" for sentence in sentences], [0.0] * len(sentences))


def test_a_translator_reads_the_case_of_sentences():
    table, dropped = translate_table(pa.table({"id": [0], "source": ["DVA MUŽI"], "reference": ["TWO MEN"]}), Echo())
    assert table.select(["source", "reference", "translation"]).to_pylist() == [
        {"source": "DVA MUŽI", "reference": "TWO MEN", "translation": "Dva muži!"}
    ]
    assert dropped == {}
