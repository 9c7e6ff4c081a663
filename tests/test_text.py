"""The definition of a token, and the fast path against it."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf.text import words
from paranmt_hf.tokens import WordTokenizer, ngram_starts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It's fine.", ["it", "'s", "fine", "."]),
        ("don't can’t I'd've", ["do", "n't", "ca", "n't", "i", "'d", "'ve"]),
        ("We'll, they're; I'm", ["we", "'ll", ",", "they", "'re", ";", "i", "'m"]),
        ("do n't 's", ["do", "n't", "'s"]),
        ("costs 3.5, not 1,000.", ["costs", "3.5", ",", "not", "1,000", "."]),
        ("well-known (U.S.) a_b", ["well", "-", "known", "(", "u", ".", "s", ".", ")", "a", "_", "b"]),
        ("'tis n'tx", ["'", "tis", "n", "'", "tx"]),
        ("Příliš ŽLUŤOUČKÝ", ["příliš", "žluťoučký"]),
        ("", []),
        ("   ", []),
    ],
)
def test_words_by_hand(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def sentences_of(tokenizer: WordTokenizer, column: list[str]) -> list[list[str]]:
    table = tokenizer.tables(column)[0]
    return [
        [table.vocabulary[token] for token in table.ids[start:stop]]
        for start, stop in zip(table.offsets[:-1], table.offsets[1:], strict=True)
    ]


@given(st.lists(st.text(), max_size=8))
def test_fast_path_equals_definition_on_any_text(column: list[str]) -> None:
    column = [text.encode("utf8", "replace").decode("utf8") for text in column]
    assert sentences_of(WordTokenizer(), column) == [words(text) for text in column]


def test_forgetting_changes_nothing() -> None:
    column = [f"word{number % 7} can't {number}" for number in range(50)]
    tokenizer = WordTokenizer(capacity=3)
    for start in range(0, 50, 10):
        assert sentences_of(tokenizer, column[start : start + 10]) == [
            words(text) for text in column[start : start + 10]
        ]
    assert len(tokenizer._chunks) <= 3 + 30


def test_tables_share_one_vocabulary() -> None:
    left, right = WordTokenizer().tables(["a b"], pa.chunked_array([["b"], ["a c"]]))
    assert left.vocabulary is right.vocabulary
    assert left.ids.tolist() == [0, 1]
    assert right.ids.tolist() == [1, 0, 2]
    assert right.offsets.tolist() == [0, 1, 3]
    assert right.lengths.tolist() == [1, 2]


def test_sliced_column() -> None:
    column = pa.array(["x y", "a b c", "d"]).slice(1)
    table = WordTokenizer().tables(column)[0]
    assert table.lengths.tolist() == [3, 1]
    assert [table.vocabulary[token] for token in table.ids] == ["a", "b", "c", "d"]


def test_ngrams_stay_inside_sentences() -> None:
    table = WordTokenizer().tables(["a b c d", "e f", "g h i", ""])[0]
    starts, rows = ngram_starts(table, 3)
    assert starts.tolist() == [0, 1, 6]
    assert rows.tolist() == [0, 0, 2]
    assert ngram_starts(WordTokenizer().tables([])[0], 3)[0].dtype == np.int64


def test_fast_path_equals_definition_on_real_text(shared_data) -> None:
    for name in ("news/news.en", "multi30k/val.cs"):
        column = (shared_data / "bitext" / name).read_text(encoding="utf8").split("\n")[:3000]
        assert sentences_of(WordTokenizer(), column) == [words(text) for text in column]
