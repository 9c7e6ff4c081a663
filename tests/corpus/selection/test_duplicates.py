"""Exact copies against a dictionary, and near-duplicates against brute force: the first row is kept."""

from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest

from paranmt_hf.corpus.reading.evaluation_sets import EvaluationSentences
from paranmt_hf.corpus.scoring.differences import Differences
from paranmt_hf.corpus.selection import decontamination, duplicates, minhash
from paranmt_hf.corpus.selection.decontamination import EvaluationText, NotInEvaluation
from paranmt_hf.corpus.selection.duplicates import (
    SIDES,
    FirstCopies,
    FirstOfLike,
    Likeness,
    NearDuplicateSearch,
    decide_pairs,
    unit_vectors,
)
from paranmt_hf.corpus.selection.minhash import BATCH, MinHash, Shingler, jaccard
from paranmt_hf.text.definitions import words
from paranmt_hf.util.progress import Progress
from tests.refused import refused

pytest.importorskip("duckdb")


def judged(one, table, work, size):
    """What a filter keeps, and the ids of the rows that dropped ones repeat."""
    work.mkdir()
    one.prepare(lambda: (table.slice(start, 900) for start in range(0, len(table), 900)), work)
    verdicts = [one.judge(table.slice(start, size)) for start in range(0, len(table), size)]
    kept = np.concatenate([verdict.kept for verdict in verdicts])
    return kept, np.concatenate([verdict.number for verdict in verdicts])[~kept]


@pytest.mark.parametrize("compared", ["pair", "reference", "translation"])
def test_the_first_copy_by_id_is_kept(tmp_path, compared):
    random = np.random.default_rng(2)
    sides = [[f"word {number}" for number in random.integers(0, 40, 3000)] for _ in range(2)]
    # Equal when joined, and not as pairs; and upper case counts.
    sides[0][:3], sides[1][:3] = ["a b", "a", "A"], ["c", "b c", "b c"]
    table = pa.table({"id": np.arange(3000) * 2 + 5, "reference": sides[0], "translation": sides[1]})
    first: dict[tuple[str, ...], int] = {}
    keys = zip(*(table[name].to_pylist() for name in SIDES[compared]), strict=True)
    rows = list(zip(table["id"].to_pylist(), keys, strict=True))
    for row, key in rows:
        first.setdefault(key, row)
    kept, numbers = judged(FirstCopies(compared), table, tmp_path / "work", 333)
    assert kept.tolist() == [first[key] == row for row, key in rows]
    assert numbers.tolist() == [first[key] for row, key in rows if first[key] != row] and 0 < kept.sum() < len(kept)


def test_nothing_is_repeated_and_nothing_is_there(tmp_path):
    table = pa.table({"id": [3, 4], "reference": ["a", "a"], "translation": ["b", "c"]})
    assert judged(FirstCopies("pair"), table, tmp_path / "work", 1)[0].all()
    FirstCopies("pair").prepare(lambda: iter(()), tmp_path)


def test_without_duckdb(monkeypatch, tmp_path):
    monkeypatch.setattr("paranmt_hf.util.optional.available", lambda package: False)
    with pytest.raises(Exception, match=r"pip install 'paranmt-hf\[select\]'"):
        FirstCopies("pair").prepare(lambda: iter(()), tmp_path)


SENTENCES = [
    "The old man walks slowly down the long road to the sea.",
    "Two dogs play in the snow.",
    "The old man walks slowly down the long road to the lake.",
    "the old man walks slowly, down the long road to the sea",
    "Nothing like the others at all.",
    "Two dogs play in the snow!",
]
TABLE = pa.table({"id": [10, 20, 30, 40, 50, 60], "reference": SENTENCES, "translation": SENTENCES[::-1]})


class Lengths:
    """An encoder for which sentences of as many characters are alike."""

    identity = {"name": "lengths"}

    def load(self):
        return self

    def encode(self, sentences: list[str]) -> np.ndarray:
        return np.eye(80, dtype=np.float32)[[len(sentence) for sentence in sentences]]


@pytest.mark.parametrize("size", [1, 4, 6])
def test_near_duplicates_by_hand(tmp_path, size):
    kept, firsts = judged(FirstOfLike("reference", Likeness()), TABLE, tmp_path / "work", size)
    assert kept.tolist() == [True, True, False, False, True, False] and firsts.tolist() == [10, 10, 20]
    # Of pairs both sides count.
    assert judged(FirstOfLike("pair", Likeness(0.9)), TABLE, tmp_path / "pairs", size)[0].all()


def test_an_encoder_decides(tmp_path):
    one = FirstOfLike("reference", Likeness(exhaustive=True), encoder=Lengths())
    kept, firsts = judged(one, TABLE, tmp_path / "work", 6)
    # The fourth has as many characters as the first.
    assert kept.tolist() == [True, True, True, False, True, False] and firsts[1] == 20
    assert one.identity["encoder"] == {"name": "lengths"} and one.identity["exhaustive"]


ROOMS = [
    f"The meeting of the team is on {day} at {hour} in room {room} of the main building."
    for day in ("Monday", "Friday")
    for hour in ("8 am", "9 am", "8 pm")
    for room in range(8, 18)
]


def test_files_of_a_comparison_by_claims_do_not_stay(tmp_path):
    texts = pa.array(SENTENCES)
    sizes = []
    for name, differences in (("plain", None), ("claims", Differences(lambda places: texts.take(pa.array(places))))):
        (tmp_path / name).mkdir()
        with closing(NearDuplicateSearch(tmp_path / name, Likeness(), differences=differences)) as search:
            search.add([texts])
            repeats = search.repeats(Progress("compare"))
        assert repeats.tolist() == [-1, -1, 0, 0, -1, 1]
        sizes.append(sum(path.stat().st_size for path in (tmp_path / name).iterdir()))
    assert sizes[0] == sizes[1]


@pytest.mark.slow
@pytest.mark.parametrize("compared", ["reference", "pair"])
@pytest.mark.parametrize("encoder", [None, Lengths()])
def test_sentences_of_one_template_are_kept(tmp_path, compared, encoder):
    # A sentence that says the same in other words, of each; none is like only one of the first.
    again = [room.replace("The meeting of the team", "The team meeting") for room in ROOMS[:50]]
    sentences = [*ROOMS, *again]
    columns = {"id": range(len(sentences)), "reference": sentences, "translation": sentences}
    likeness = Likeness(0.5) if encoder is None else Likeness(exhaustive=True)
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    one = FirstOfLike(compared, likeness, encoder=encoder, keep_differing=True)
    kept, firsts = judged(one, table, tmp_path / "work", 40)
    assert kept[: len(ROOMS)].all()
    if encoder is None:
        assert not kept[len(ROOMS) :].any()
        assert firsts.tolist() == list(range(len(again)))
    dropped = FirstOfLike(compared, likeness, encoder=encoder)
    assert judged(dropped, table, tmp_path / "all", 40)[0].sum() < len(ROOMS)
    assert one.identity != dropped.identity


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


def shingles(document: tuple[str, ...]) -> set[tuple[int, tuple[str, ...]]]:
    tokens = [words(sentence) for sentence in document]
    pairs = {(side, pair) for side, own in enumerate(tokens) for pair in zip(own, own[1:], strict=False)}
    return pairs | {(side, tuple(own)) for side, own in enumerate(tokens) if len(own) == 1}


def first_is_kept(alike: np.ndarray) -> np.ndarray:
    """For each document the first that is kept and like it, or -1, one after the other."""
    repeats = np.full(len(alike), -1)
    for later in range(len(alike)):
        found = [earlier for earlier in range(later) if alike[later, earlier] and repeats[earlier] < 0]
        repeats[later] = found[0] if found else -1
    return repeats


def find(documents, folder, likeness=None, batch=100, encoder=None) -> np.ndarray:
    folder.mkdir()
    found = NearDuplicateSearch(folder, likeness or Likeness(), encoder=encoder)
    for start in range(0, len(documents), batch):
        found.add([pa.array(column) for column in zip(*documents[start : start + batch], strict=True)])
    assert len(found) == len(documents)
    return found.repeats(Progress("compare"))


@pytest.mark.slow
@pytest.mark.parametrize("sides", [1, 2])
def test_equal_to_brute_force(sides, tmp_path):
    documents = documents_of(300, sides, 1)
    sets = [shingles(document) for document in documents]
    alike = [[bool(a and b) and len(a & b) / len(a | b) >= 0.7 for a in sets] for b in sets]
    expected = first_is_kept(np.array(alike))
    assert 30 < (expected >= 0).sum() < 250
    # With these documents MinHash misses no pair.
    assert find(documents, tmp_path / "work").tolist() == expected.tolist()


@pytest.mark.slow
def test_batches_and_parts_of_a_sort_make_no_difference(tmp_path, monkeypatch):
    documents = documents_of(600, 1, 3)
    whole = find(documents, tmp_path / "whole", batch=600)
    assert (whole >= 0).any()
    for module, name, value in (
        *((minhash, "SORTED_AT_ONCE", 100), (minhash, "BLOCK", 64)),
        *((minhash, "_READ", 37), (duplicates, "_COMPARED", 11)),
    ):
        monkeypatch.setattr(module, name, value)
    assert find(documents, tmp_path / "parts", batch=7).tolist() == whole.tolist()


class Bags:
    """An encoder whose vectors count words."""

    def encode(self, sentences: list[str]) -> np.ndarray:
        vectors = np.zeros((len(sentences), len(WORDS)), np.float32)
        for row, sentence in enumerate(sentences):
            for word in words(sentence):
                vectors[row, WORDS.index(word)] += 1
        return vectors


def test_all_cosines_equal_brute_force(tmp_path, monkeypatch):
    monkeypatch.setattr(duplicates, "_ROWS", 50)
    documents = documents_of(300, 1, 5)
    vectors = unit_vectors(Bags().encode([document[0] for document in documents]))
    expected = first_is_kept(vectors @ vectors.T >= 0.901)
    assert (expected >= 0).sum() > 50
    found = find(documents, tmp_path / "work", Likeness(0.901, exhaustive=True), encoder=Bags())
    assert found.tolist() == expected.tolist()


def test_candidates_that_an_encoder_decides_are_alike(tmp_path):
    documents = documents_of(300, 2, 6)
    found = find(documents, tmp_path / "work", encoder=Bags())
    sides = [unit_vectors(Bags().encode(list(side))) for side in zip(*documents, strict=True)]
    vectors = unit_vectors(np.hstack(sides))
    later = np.flatnonzero(found >= 0)
    assert len(later) > 50
    assert ((vectors[later] * vectors[found[later]]).sum(axis=1) > 0.9495).all()
    assert (found[found[later]] == -1).all()


def test_a_chain_by_hand():
    """1 is like 0, 2 is like 1 alone: so 2 is kept, because 1 is not."""
    repeats = np.full(6, -1, np.int64)
    decide_pairs(np.array([0, 1, 2, 0, 3]), np.array([1, 2, 3, 5, 5]), repeats)
    assert repeats.tolist() == [-1, 0, -1, 2, -1, 0]


def test_empty_documents_and_sides(tmp_path):
    assert find([("",), ("",), ("a b",), ("",)], tmp_path / "work").tolist() == [-1] * 4
    (tmp_path / "none").mkdir()
    assert NearDuplicateSearch(tmp_path / "none", Likeness()).repeats(Progress("compare")).tolist() == []
    # A pair is not like the pair turned round.
    documents = [("a man eats", "two dogs"), ("two dogs", "a man eats"), ("a man eats", "two dogs")]
    assert find(documents, tmp_path / "sides").tolist() == [-1, -1, 0]


def test_similarity_by_hand():
    left = Shingler().sets([pa.array(["a b c d", "one", "one two", ""])])
    right = Shingler().sets([pa.array(["a b c e", "One", "two one", ""])])
    # ab bc cd with ab bc ce: two of four.
    assert jaccard(left, right).tolist() == [0.5, 1.0, 0.0, 1.0]
    assert np.diff(left.offsets).tolist() == [3, 1, 1, 0]
    with pytest.raises(AssertionError):
        Shingler().sets([pa.array(["a"] * (BATCH + 1))])


def test_minhash_estimates_similarity():
    """The share of equal minima estimates the Jaccard similarity: 40 of 79 word pairs, 19 each on one side alone."""
    sets = Shingler().sets([pa.array([" ".join(map(str, range(60))), " ".join(map(str, range(20, 80)))])])
    keys = MinHash(2000, 1).keys(sets)
    assert (keys[:, 0] == keys[:, 1]).mean() == pytest.approx(39 / 79, abs=0.035)


def plain(sentence: str) -> tuple[str, ...]:
    return tuple(token for token in words(sentence) if any(map(str.isalnum, token)))


def brute_force(sentences: list[str], evaluation: list[str], ngram: int, min_words: int) -> list[bool]:
    whole = {plain(sentence) for sentence in evaluation if len(plain(sentence)) >= min_words}
    runs = {plain(text)[at : at + ngram] for text in evaluation for at in range(len(plain(text)) - ngram + 1)}
    found = []
    for sentence in sentences:
        tokens = plain(sentence)
        shared = any(tokens[at : at + ngram] in runs for at in range(len(tokens) - ngram + 1))
        found.append(tokens in whole or shared)
    return found


def random_sentences(count: int, seed: int, vocabulary: str) -> list[str]:
    generator = np.random.default_rng(seed)
    parts = vocabulary.split()
    return [" ".join(generator.choice(parts, generator.integers(0, 18))) for _ in range(count)]


VOCABULARY = "the The cat dog , . - naïve"


@pytest.mark.slow
@pytest.mark.parametrize(("ngram", "min_words"), [(2, 1), (4, 3), (8, 4), (30, 1)])
def test_copies_of_evaluation_text_equal_brute_force(ngram, min_words):
    evaluation = random_sentences(60, 1, VOCABULARY)
    sentences = random_sentences(2_000, 2, f"{VOCABULARY} it's")
    text = EvaluationText(evaluation, ngram=ngram, min_words=min_words)
    expected = brute_force(sentences, evaluation, ngram, min_words)
    assert 0 < sum(expected) < len(sentences)
    assert text.found_in(pa.array(sentences)).tolist() == expected
    # Batches make no difference.
    parts = [text.found_in(pa.array(sentences[at : at + 7])) for at in range(0, len(sentences), 7)]
    assert np.concatenate(parts).tolist() == expected


def test_words_decide_when_hashes_are_equal(monkeypatch):
    zeros = lambda self, starts, ends: np.zeros(len(starts), np.uint64)  # noqa: E731
    monkeypatch.setattr(decontamination._RunHashes, "of", zeros)
    text = EvaluationText(["k l m n", "five six seven eight"])
    found = text.found_in(
        pa.array(["n m l k", "K, L m n!", "k l m n k", "Five six, seven eight.", "five six seven n"])
    )
    assert found.tolist() == [False, True, False, True, False]


def test_what_does_not_count():
    """Case, punctuation, white space and the kind of apostrophe do not."""
    text = EvaluationText(["It's a dog - isn't it?"])
    assert text.found_in(pa.array(["it\u2019s  A DOG, ISN'T IT", "it is a dog isn't it"])).tolist() == [True, False]


def test_filter():
    table = pa.table({"reference": ["The cat sat down.", "x"], "translation": ["A cat sat.", "the cat sat down"]})
    found = EvaluationSentences(["the cat sat down"], ["sets/cats.txt"], {"sets/cats.txt": 1}, {})
    one = NotInEvaluation(found, EvaluationText(found.texts))
    assert one.judge(table).kept.tolist() == [False, False]
    assert one.judge(table.slice(0, 0)).kept.tolist() == []
    assert one.identity["sentences"] == found.checksum
    assert one.explain(table) == [("the cat sat down", "sets/cats.txt")] * 2


def test_each_dropped_row_names_the_sentence_that_it_shares():
    """A whole sentence before one that shares eight words; the reference's before the translation's."""
    run = "one two three four five six seven eight"
    evaluation = ["nobody saw the dog", f"zero {run} nine", f"before {run}", run]
    text = EvaluationText(evaluation)
    sides = pa.array([f"so {run} ten", f"{run}!", f"it was zero {run}", "the dog saw nobody", "Nobody saw the dog"])
    named = [text.sentences[item] if item >= 0 else None for item in text.items_of(sides).tolist()]
    assert named[1:] == [run, named[2], None, "nobody saw the dog"] and run in named[0] and run in named[2]


def test_nothing_to_find():
    with refused():
        EvaluationText(["one two three", "..."])
    text = EvaluationText(["one two three four"])
    assert text.found_in(pa.array([], pa.string())).tolist() == []
    assert text.found_in(pa.array(["", "?!"])).tolist() == [False, False]
