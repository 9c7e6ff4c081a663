"""Near-duplicates against brute force: every two documents compared, the first stays."""

import numpy as np
import pyarrow as pa
import pytest

from paranmt_hf.corpus.selection import minhash, near_duplicates
from paranmt_hf.corpus.selection.minhash import BATCH, MinHash, Shingler, chance_found, jaccard
from paranmt_hf.corpus.selection.near_duplicates import Likeness, NearDuplicateSearch, resolve, unit_vectors
from paranmt_hf.text.definitions import words

WORDS = "the a man woman dog cat plays eats sees near under house garden small big red two three , .".split()


def documents_of(count: int, sides: int, seed: int) -> list[tuple[str, ...]]:
    """Random documents, many of which are others with some words changed, and a few of which are empty."""
    generator = np.random.default_rng(seed)
    made: list[tuple[str, ...]] = []
    for _ in range(count):
        if made and generator.random() < 0.6:
            tokens = [side.split() for side in made[generator.integers(len(made))]]
            for side in tokens:
                if side and generator.random() < 0.8:
                    side[generator.integers(len(side))] = str(generator.choice(WORDS))
        else:
            tokens = [generator.choice(WORDS, generator.integers(0, 25)).tolist() for _ in range(sides)]
        made.append(tuple(" ".join(side) for side in tokens))
    return made


def shingle_set(sentence: str, unit: str, size: int) -> set[tuple[str, ...]]:
    pieces = tuple(words(sentence)) if unit == "word" else tuple(sentence.lower())
    if len(pieces) < size:
        return {pieces} if pieces else set()
    return {pieces[start : start + size] for start in range(len(pieces) - size + 1)}


def document_set(document: tuple[str, ...], unit: str, size: int) -> set[tuple[int, tuple[str, ...]]]:
    return {(side, part) for side, sentence in enumerate(document) for part in shingle_set(sentence, unit, size)}


def first_stays(alike: np.ndarray) -> np.ndarray:
    """For each document the first that stays and is like it, or -1, one after the other."""
    repeats = np.full(len(alike), -1)
    for later in range(len(alike)):
        found = [earlier for earlier in range(later) if alike[later, earlier] and repeats[earlier] < 0]
        repeats[later] = found[0] if found else -1
    return repeats


def brute_force(documents: list[tuple[str, ...]], likeness: Likeness) -> np.ndarray:
    sets = [document_set(document, likeness.unit, likeness.size) for document in documents]
    alike = [[bool(a and b) and len(a & b) / len(a | b) >= likeness.similarity for a in sets] for b in sets]
    return first_stays(np.array(alike))


def find(documents: list[tuple[str, ...]], likeness: Likeness, folder, batch: int = 100, encoder=None) -> np.ndarray:
    folder.mkdir()
    found = NearDuplicateSearch(folder, likeness, encoder)
    for start in range(0, len(documents), batch):
        found.add([pa.array(column) for column in zip(*documents[start : start + batch], strict=True)])
    assert len(found) == len(documents)
    return found.repeats()


@pytest.mark.parametrize(("unit", "size"), [("word", 1), ("word", 2), ("character", 4)])
@pytest.mark.parametrize("sides", [1, 2])
def test_equal_to_brute_force(unit, size, sides, tmp_path):
    documents = documents_of(300, sides, 1)
    # So many bands of one row that no pair that is alike is missed, and buckets small enough to be compared whole.
    likeness = Likeness(unit=unit, size=size, similarity=0.7, bands=60, rows=3)
    expected = brute_force(documents, likeness)
    assert 30 < (expected >= 0).sum() < 250
    assert find(documents, likeness, tmp_path / "work").tolist() == expected.tolist()


def test_batches_and_parts_of_a_sort_make_no_difference(tmp_path, monkeypatch):
    documents = documents_of(600, 1, 3)
    whole = find(documents, Likeness(), tmp_path / "whole", batch=600)
    assert (whole >= 0).any()
    monkeypatch.setattr(minhash, "SORTED_AT_ONCE", 100)
    monkeypatch.setattr(minhash, "BLOCK", 64)
    monkeypatch.setattr(minhash, "_READ", 37)
    monkeypatch.setattr(near_duplicates, "_COMPARED", 11)
    assert find(documents, Likeness(), tmp_path / "parts", batch=7).tolist() == whole.tolist()


class Bags:
    """An encoder whose vectors count words."""

    def encode(self, sentences: list[str]) -> np.ndarray:
        vectors = np.zeros((len(sentences), len(WORDS)), np.float32)
        for row, sentence in enumerate(sentences):
            for word in words(sentence):
                vectors[row, WORDS.index(word)] += 1
        return vectors


def test_all_cosines_equal_brute_force(tmp_path, monkeypatch):
    monkeypatch.setattr(near_duplicates, "_ROWS", 50)
    documents = documents_of(300, 1, 5)
    likeness = Likeness(cosine=0.901, exhaustive=True)
    vectors = unit_vectors(Bags().encode([document[0] for document in documents]))
    expected = first_stays(vectors @ vectors.T >= 0.901)
    assert (expected >= 0).sum() > 50
    assert find(documents, likeness, tmp_path / "work", encoder=Bags()).tolist() == expected.tolist()


def test_candidates_that_an_encoder_decides_are_alike(tmp_path):
    documents = documents_of(300, 2, 6)
    found = find(documents, Likeness(cosine=0.95), tmp_path / "work", encoder=Bags())
    sides = [unit_vectors(Bags().encode(list(side))) for side in zip(*documents, strict=True)]
    vectors = unit_vectors(np.hstack(sides))
    later = np.flatnonzero(found >= 0)
    assert len(later) > 50
    assert ((vectors[later] * vectors[found[later]]).sum(axis=1) > 0.9495).all()
    assert (found[found[later]] == -1).all()


def test_a_chain_by_hand():
    """1 is like 0, 2 is like 1 alone: so 2 stays, because 1 does not."""
    repeats = np.full(6, -1, np.int64)
    resolve(np.array([0, 1, 2, 0, 3]), np.array([1, 2, 3, 5, 5]), repeats)
    assert repeats.tolist() == [-1, 0, -1, 2, -1, 0]


def test_no_documents_and_empty_documents(tmp_path):
    assert find([("",), ("",), ("a b",), ("",)], Likeness(), tmp_path / "work").tolist() == [-1] * 4
    (tmp_path / "none").mkdir()
    assert NearDuplicateSearch(tmp_path / "none", Likeness()).repeats().tolist() == []


def test_sides_are_apart(tmp_path):
    """A pair is not like the pair turned round."""
    documents = [("a man eats", "two dogs"), ("two dogs", "a man eats"), ("a man eats", "two dogs")]
    assert find(documents, Likeness(), tmp_path / "work").tolist() == [-1, -1, 0]


def test_similarity_by_hand():
    shingler = Shingler("word", 2)
    left = shingler.sets([pa.array(["a b c d", "one", "one two", ""])])
    right = shingler.sets([pa.array(["a b c e", "One", "two one", ""])])
    # ab bc cd with ab bc ce: two of four.
    assert jaccard(left, right).tolist() == [0.5, 1.0, 0.0, 1.0]
    assert np.diff(left.offsets).tolist() == [3, 1, 1, 0]


def test_minhash_estimates_similarity():
    """The share of equal minima is the Jaccard similarity, give or take."""
    sets = Shingler("word", 1).sets([pa.array([" ".join(map(str, range(60))), " ".join(map(str, range(20, 80)))])])
    keys = MinHash(2000, 1, 3).keys(sets)
    assert (keys[0 : len(keys), 0] == keys[:, 1]).mean() == pytest.approx(40 / 80, abs=0.035)


def test_chance_found_by_hand():
    assert chance_found(0.8, 16, 5) == pytest.approx(1 - (1 - 0.32768) ** 16)
    assert chance_found(1.0, 1, 64) == 1


def test_wrong_settings():
    with pytest.raises(ValueError, match=f"at most {BATCH} documents"):
        Shingler("word", 1).sets([pa.array(["a"] * (BATCH + 1))])
