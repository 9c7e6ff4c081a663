"""Files of paraphrases are read back; what cannot be one is said."""

import pytest

from paranmt_hf.errors import InputError
from paranmt_hf.paraphrase.items import read_outputs

LINE = b'{"source":"a dog","rank":1,"paraphrase":"dogs"}\n'


def test_the_best_comes_first(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(LINE.replace(b"1", b"2").replace(b"dogs", b"hounds") + LINE)
    assert read_outputs(tmp_path / "a.jsonl")["a dog"].texts == ["dogs", "hounds"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (LINE.replace(b"dogs", b"d\xff"), "UTF8"),
        (LINE.replace(b"a dog", b"\xff"), "UTF8"),
        (LINE.replace(b"rank", b"r\xff"), "utf-8"),
        (LINE.replace(b"1", b'"first"'), "first"),
        (LINE.replace(b"1", b"1.5"), "truncated"),
        (LINE.replace(b'"dogs"', b"[3]"), "list"),
    ],
)
def test_values_that_are_no_paraphrases(tmp_path, content, message):
    (tmp_path / "a.jsonl").write_bytes(content)
    with pytest.raises(InputError, match=rf"^cannot read .*a.jsonl: .*{message}.*; expected a file that `para"):
        read_outputs(tmp_path / "a.jsonl")


def test_a_column_that_is_there_twice(tmp_path):
    (tmp_path / "a.tsv").write_text("source\tparaphrase\tparaphrase\trank\na\tb\tc\t1\n")
    with pytest.raises(InputError, match=r"^cannot read .*a.tsv: it has 2 columns paraphrase; expected a file"):
        read_outputs(tmp_path / "a.tsv")
