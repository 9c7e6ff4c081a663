"""Sent2Vec as an encoder: the average by hand, the fast path against the slow one, saving in every way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer

import paranmt_hf
from paranmt_hf import EncoderConfig, SentenceEncoder, export_encoder
from paranmt_hf.encoders.modules.paranmt_averages import NgramEmbedding
from paranmt_hf.encoders.modules.paranmt_tables import NgramTable, blank_tokens, ngram_buckets
from paranmt_hf.encoders.saving import save
from paranmt_hf.encoders.units import count_units
from paranmt_hf.encoders.vocabulary import most_frequent
from paranmt_hf.hub.repository import ASSETS
from tests.encoders.toys import SENTENCES, WORDS, rows
from tests.refused import refused


def buckets_of(words: list[int], order: int, buckets: int) -> list[int]:
    """The buckets of one sentence's n-grams, one after the other."""
    found = []
    for start, word in enumerate(words):
        hashed = word
        for other in words[start + 1 : start + order]:
            hashed = (hashed * 116049371 + other) % 2**64
            found.append(hashed % buckets)
    return found


def offsets_of(sentences: list[list[int]]) -> np.ndarray:
    return np.cumsum([0, *map(len, sentences)])


def test_worked_by_hand() -> None:
    """3 and 5 become 3 * 116049371 + 5 = 348148118, whose remainder by 100 is 18; then 348148118 * 116049371 + 7."""
    buckets, bounds = ngram_buckets(np.array([3, 5, 7], np.int32), np.array([0, 3]), 3, 100)
    three = (348148118 * 116049371 + 7) % 100
    assert buckets.tolist() == [18, three, (5 * 116049371 + 7) % 100]
    assert bounds.tolist() == [0, 3]


@given(
    st.lists(st.lists(st.integers(1, 30_000_000), max_size=7), max_size=5),
    st.integers(1, 5),
    st.integers(1, 2**31 - 1),
)
def test_columns_are_sentences_one_by_one(sentences: list[list[int]], order: int, buckets: int) -> None:
    """Large ids overflow 64 bits from the third word on, which must wrap round."""
    rows = np.array([row for sentence in sentences for row in sentence], np.int32)
    found, bounds = ngram_buckets(rows, offsets_of(sentences), order, buckets)
    expected = [buckets_of(sentence, order, buckets) for sentence in sentences]
    assert found.dtype == np.int64
    assert [found[bounds[i] : bounds[i + 1]].tolist() for i in range(len(sentences))] == expected


@given(st.lists(st.lists(st.integers(0, 9), max_size=7), max_size=5), st.integers(2, 4), st.sampled_from([50, 2**30]))
def test_bags_are_known_words_and_then_known_ngrams(sentences: list[list[int]], order: int, buckets: int) -> None:
    """Every second bucket has a row; of many buckets rows are searched, of few they are in a table."""
    known = [[row for row in sentence if row] for sentence in sentences]
    hashes = sorted({bucket for sentence in known for bucket in buckets_of(sentence, order, buckets)})[::2]
    table = NgramTable(order, buckets, np.array(hashes, np.int64), 10)
    rows = np.array([row for sentence in sentences for row in sentence], np.int32)
    found, bounds = table.bags(rows, offsets_of(sentences))
    row_of = {bucket: 10 + place for place, bucket in enumerate(hashes)}
    for index, sentence in enumerate(known):
        ngrams = [row_of[bucket] for bucket in buckets_of(sentence, order, buckets) if bucket in row_of]
        assert found[bounds[index] : bounds[index + 1]].tolist() == sentence + ngrams


BUCKETS = 40


def module(order: int = 2, cut: str = "words", precision: str = "float32", seed: int = 1) -> NgramEmbedding:
    """Words of the toys with rows for every second bucket."""
    hashes = np.arange(0, BUCKETS if order > 1 else 0, 2)
    weight = rows([*WORDS, *map(str, hashes)], 4, seed)
    made = NgramEmbedding(WORDS, weight, order=order, buckets=BUCKETS, hashes=hashes, cut=cut)
    return made.stored_as(precision)


def encoder(*args: object, **options: object) -> SentenceEncoder:
    return SentenceEncoder(modules=[module(*args, **options)], device="cpu", similarity_fn_name="cosine").eval()  # type: ignore[arg-type]


def slow(made: SentenceEncoder, sentences: list[str]) -> np.ndarray:
    return SentenceTransformer.encode(made, sentences)


def test_by_hand() -> None:
    """An unknown word is left out before pairs are made; of the two pairs one has a bucket with a row."""
    made = encoder()
    table = made[0].weight.numpy()
    ids = [WORDS.index(word) for word in ("the", "sat", "cat")]
    places = [len(WORDS) + bucket // 2 for bucket in buckets_of(ids, 2, BUCKETS) if bucket % 2 == 0]
    assert places == [len(WORDS) + (116049371 * 1 + 3) % BUCKETS // 2]
    np.testing.assert_allclose(made.encode("The xyzzy sat cat"), table[[*ids, *places]].mean(axis=0), atol=1e-6)
    assert not made.encode("xyzzy").any()


def test_blanks_leave_text_as_it_is() -> None:
    """White space of ASCII parts words, as in the authors' program; a no-break space and case stay."""
    assert blank_tokens(" The\tcat.\u00a0sat\x00is\r\n ") == ["The", "cat.\u00a0sat", "is"]
    made = encoder(cut="blanks")
    table = made[0].weight.numpy()
    np.testing.assert_allclose(made.encode("The cat. is"), table[WORDS.index("is")], atol=1e-6)


@pytest.mark.parametrize("cut", ["words", "blanks"])
def test_fast_path_equals_slow_on_real_text(cut: str) -> None:
    """The sample of the package; half of its words are known, and a third of its buckets."""
    sentences = (ASSETS / "sample" / "sample.en").read_text(encoding="utf8").splitlines()
    counts = count_units([pa.array(sentences)], ["word"])["word"]
    units = most_frequent("word", counts, len(counts) // 2).units
    hashes = np.arange(0, 3000, 3)
    weight = rows([*units, *map(str, hashes)], 8)
    table = NgramEmbedding(units, weight, order=3, buckets=3000, hashes=hashes, cut=cut)
    made = SentenceEncoder(modules=[table], device="cpu").eval()
    vectors = made.encode(sentences)
    assert made.average is not None and vectors.any(axis=1).mean() > 0.9
    assert ((made.known_tokens(sentences) > 0) == vectors.any(axis=1)).all()
    np.testing.assert_allclose(vectors, slow(made, sentences), atol=1e-6)


@settings(max_examples=15)
@given(
    st.lists(
        st.lists(st.sampled_from([*WORDS, "x", "\t", "\u00a0"]), max_size=8).map(" ".join), min_size=1, max_size=5
    )
)
def test_fast_path_equals_slow_on_any_words(sentences: list[str]) -> None:
    for made in (encoder(3), encoder(3, "blanks")):
        np.testing.assert_allclose(made.encode(sentences), slow(made, sentences), atol=1e-6)


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
def test_saved_and_loaded(precision: str, tmp_path: Path) -> None:
    """In another precision it is read back as it was rounded, with and without this package's loader."""
    made = encoder(3, "blanks").stored_as(precision)
    save(made, tmp_path)
    found = paranmt_hf.load(tmp_path)
    tolerance = {"float32": 0.0, "float16": 2e-3, "int8": 2e-2}[precision]
    np.testing.assert_allclose(found.encode(SENTENCES), made.encode(SENTENCES), atol=tolerance)
    read = found[0]
    assert (read.order, read.buckets, read.cut, read.precision) == (3, BUCKETS, "blanks", precision)
    np.testing.assert_array_equal(read.hashes, made[0].hashes)
    plain = SentenceTransformer(str(tmp_path), trust_remote_code=True, device="cpu")
    np.testing.assert_allclose(plain.encode(SENTENCES), found.encode(SENTENCES), atol=1e-6)


def test_what_else_takes_it(tmp_path: Path) -> None:
    """No other library, and no training on pairs."""
    save(encoder(), tmp_path / "one")
    for format in ("static", "onnx"):
        with refused("model"):
            export_encoder(tmp_path / "one", tmp_path / "export", format=format)
    with refused():
        EncoderConfig(model="word,sent2vec")
