"""The texts that people give to the methods of encoders: columns of other libraries, and what is no text."""

import unicodedata

import datasets
import numpy as np
import pyarrow as pa
import pytest

from paranmt_hf import SentenceIndex, StaticEncoder, load
from paranmt_hf.text.text_lists import list_of_texts, with_whole_characters
from tests.refused import refused

TEXTS = ["A man plays the guitar.", "It rains.", "", "A dog runs."]
ENCODERS = ["load", "static"]


@pytest.fixture(scope="module")
def encoders():
    return {"load": load(), "static": StaticEncoder.from_pretrained()}


@pytest.fixture(scope="module")
def vectors(encoders):
    """Of each text by itself."""
    return np.stack([encoders["static"].encode(text) for text in TEXTS])


def of_pandas(make):
    """A column of pandas 3.1; one that was sorted or filtered has an index of its own."""
    return make(pytest.importorskip("pandas"))


GIVEN = {
    "list": lambda: TEXTS,
    "tuple": lambda: tuple(TEXTS),
    "generator": lambda: (text for text in TEXTS),
    "keys": lambda: dict.fromkeys(TEXTS).keys(),
    "numpy": lambda: np.array(TEXTS),
    "numpy objects": lambda: np.array(TEXTS, object),
    "numpy strings of any length": lambda: np.array(TEXTS, np.dtypes.StringDType()),
    "pandas": lambda: of_pandas(lambda pandas: pandas.DataFrame({"text": TEXTS}, index=[7, 3, 9, 1])["text"]),
    "pandas, objects": lambda: of_pandas(lambda pandas: pandas.Series(TEXTS, dtype=object)),
    "pandas, categories": lambda: of_pandas(lambda pandas: pandas.Series(TEXTS, dtype="category")),
    "pandas, a label": lambda: of_pandas(lambda pandas: pandas.Series(TEXTS, index=["columns", "b", "c", "d"])),
    "pandas, an index": lambda: of_pandas(lambda pandas: pandas.Index(TEXTS)),
    "polars": lambda: pytest.importorskip("polars").DataFrame({"text": TEXTS})["text"],
    "pyarrow": lambda: pa.array(TEXTS),
    "pyarrow, large": lambda: pa.array(TEXTS, pa.large_string()),
    "pyarrow, views": lambda: pa.array(TEXTS, pa.string_view()),
    "pyarrow, dictionary": lambda: pa.array(TEXTS).dictionary_encode(),
    "pyarrow, chunks": lambda: pa.table({"text": pa.chunked_array([TEXTS[:1], TEXTS[1:]])})["text"],
    "datasets": lambda: datasets.Dataset.from_dict({"text": TEXTS})["text"],
    "datasets, streamed": lambda: datasets.Dataset.from_dict({"text": TEXTS}).to_iterable_dataset()["text"],
}


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_a_column_gives_a_vector_for_each_text_in_order(encoders, vectors, name, given):
    np.testing.assert_allclose(encoders[name].encode(given()), vectors, atol=1e-6)


NONE = {
    "none": (lambda: ["a", None, "b"], 1),
    "nan": (lambda: ["a", "b", float("nan")], 2),
    "nan of pandas": (lambda: of_pandas(lambda pandas: pandas.Series(["a", None], index=[5, 6])), 1),
    "objects of pandas": (lambda: of_pandas(lambda pandas: pandas.Series(["a", pandas.NA], dtype="string")), 1),
    "null of polars": (lambda: pytest.importorskip("polars").Series(["a", None]), 1),
    "null of pyarrow": (lambda: pa.array(["a", None]), 1),
    "null of datasets": (lambda: datasets.Dataset.from_dict({"text": ["a", None]})["text"], 1),
    "bytes": (lambda: [b"a"], 0),
    "number": (lambda: ["a", 3], 1),
    "lists": (lambda: [["a", "b"]], 0),
    "two dimensions": (lambda: np.array([TEXTS]), 0),
    "rows": (lambda: [{"text": "a"}], 0),
    "many": (lambda: [*["a"] * 1234, None], 1234),
}


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize(("given", "place"), NONE.values(), ids=NONE)
def test_what_is_no_text_is_refused_with_its_index(encoders, name, given, place):
    with refused("sentences"):
        encoders[name].encode(given())


TABLES = {
    "dict": lambda: {"a": "A man plays.", "b": "It rains."},
    "set": lambda: {"A man plays.", "It rains."},
    "pandas": lambda: of_pandas(lambda pandas: pandas.DataFrame({"text": TEXTS})),
    "polars": lambda: pytest.importorskip("polars").DataFrame({"text": TEXTS}),
    "pyarrow": lambda: pa.table({"text": TEXTS}),
    "datasets": lambda: datasets.Dataset.from_dict({"text": TEXTS}),
    "none": lambda: None,
    "number": lambda: 3,
    "bytes": lambda: b"a text",
    "array without a dimension": lambda: np.array("a text"),
}


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("given", TABLES.values(), ids=TABLES)
def test_a_table_or_a_dict_is_no_list_of_texts(encoders, name, given):
    with refused("sentences"):
        encoders[name].encode(given())


HALVES = {
    "cut \ud83d": "cut \ufffd",
    "\ude00 cut": "\ufffd cut",
    "a\ud83db": "a\ufffdb",
    "\ud83d\ud83d\ude00\ude00": "\ufffd\U0001f600\ufffd",
    "whole \U0001f600": "whole \U0001f600",
}


@pytest.mark.parametrize("name", ENCODERS)
def test_half_a_surrogate_pair_is_a_replacement_character(encoders, name):
    assert with_whole_characters([*HALVES, *TEXTS]) == [*HALVES.values(), *TEXTS]
    found = encoders[name].encode([*HALVES, *TEXTS])
    np.testing.assert_array_equal(found, encoders[name].encode([*HALVES.values(), *TEXTS]))
    assert found[0].any()
    single = encoders[name].encode("cut \ud83d")
    np.testing.assert_allclose(single, found[0], atol=1e-6)
    # So many characters that they are averaged in columns.
    many = encoders[name].encode(["A man is cut \ud83d"] * 3000)
    np.testing.assert_allclose(many[2999], encoders[name].encode("A man is cut \ufffd"), atol=1e-6)


def test_queries_of_an_index(tmp_path):
    (tmp_path / "lines.txt").write_text("A man plays the guitar.\nIt rains.\n", encoding="utf8")
    index = SentenceIndex.build(tmp_path / "lines.txt", tmp_path / "index")
    column = pa.array(["rain", "guitar"])
    assert [hits[0].line for hits in index.search(column, top=1)] == [2, 1]
    for given in ("rain", {"rain": 1}, ["rain", None]):
        with refused("queries"):
            index.search(given)


@pytest.mark.parametrize("name", ENCODERS)
def test_probabilities_of_columns(encoders, name):
    first, second = TEXTS[:2], ["Someone plays the guitar.", "A dog sleeps."]
    expected = encoders[name].probability(first, second)
    assert expected[0] > expected[1]
    found = encoders[name].probability(pa.array(first), (text for text in second))
    np.testing.assert_array_equal(found, expected)
    for option, given in (("first", [[None, "a"], second]), ("second", [first, {"a": "b", "c": "d"}])):
        with refused(option):
            encoders[name].probability(*given)


@pytest.mark.parametrize("name", ENCODERS)
def test_accents_of_their_own_give_the_same_vectors(encoders, name):
    composed = ["Zo\u00eb's caf\u00e9 is na\u00efve.", "A r\u00e9sum\u00e9 of \u00c5ngstr\u00f6m"]
    apart = [unicodedata.normalize("NFD", text) for text in composed]
    np.testing.assert_array_equal(encoders[name].encode(apart), encoders[name].encode(composed))


def test_lists_are_not_copied():
    texts = ["a", "b"]
    assert list_of_texts(texts, "texts") == texts
