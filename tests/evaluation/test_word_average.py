"""Averages of word vectors, their weights, and the counts behind them, against hand-worked cases and plain loops."""

import gzip
import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf import InputError
from paranmt_hf.evaluation.baselines import Bleu, Meteor, baseline
from paranmt_hf.evaluation.similarities import pair_similarities
from paranmt_hf.evaluation.sts import evaluate_sts
from paranmt_hf.evaluation.sts_data import read_sts
from paranmt_hf.evaluation.word_averages import WordAverage
from paranmt_hf.evaluation.word_weights import (
    WordCounts,
    WordWeighting,
    counts_by_rank,
    is_count_list,
    read_counts,
    word_weights,
)
from paranmt_hf.text.definitions import words
from paranmt_hf.text.word_vectors import WordVectors
from tests.refused import refused

COUNTS = WordCounts({"the": 6, "cat": 3, "dog": 1}, "a text")


def table(names, width=3, seed=0):
    generator = np.random.default_rng(seed)
    return WordVectors(list(names), generator.standard_normal((len(names), width)).astype(np.float32))


@pytest.mark.parametrize("weighted", [False, True])
def test_against_a_loop(real_sentences, weighted):
    known = sorted({word for sentence in real_sentences[:200] for word in words(sentence)})
    vectors = table(known, 5)
    # Every third word has the weight 0, and does not count.
    weights = np.arange(len(known)) % 3 / 2 if weighted else np.ones(len(known))
    row_of = {word: row for row, word in enumerate(known)}
    sentences = ["", "unheardofword", *real_sentences]
    encoder = WordAverage(vectors, weights if weighted else None)
    for _ in range(2):
        found, counted = encoder.encode(sentences), encoder.known_tokens(sentences)
        assert found.dtype == np.float32
        for sentence, vector, count in zip(sentences, found, counted.tolist(), strict=True):
            rows = [row_of[word] for word in words(sentence) if word in row_of and weights[row_of[word]]]
            expected = (vectors.matrix[rows] * weights[rows, None]).mean(axis=0) if rows else np.zeros(5)
            assert vector == pytest.approx(expected, abs=1e-5)
            assert count == len(rows)


def test_the_component_is_that_of_each_data_set():
    vectors = table("abcdef", 4)
    encoder = WordAverage(vectors, remove_component=True)
    sets = [["a b", "c", "d e a", "b"], ["f", "e f", "a"]]
    for sentences in sets:
        plain = encoder.encode(sentences).astype(np.float64)
        # The first right singular vector; its sign makes no difference.
        direction = np.linalg.svd(plain)[2][0]
        expected = plain - np.outer(plain @ direction, direction)
        found = encoder.fitted(sentences).encode(sentences)
        assert found == pytest.approx(expected, abs=1e-5)
        assert np.abs(found - plain).max() > 0.05
    assert WordAverage(vectors).fitted(sets[0]).encode(sets[0]) == pytest.approx(encoder.encode(sets[0]))
    # An evaluation fits it to the distinct sentences of a set.
    left, right = ["a b", "c", "c"], ["c", "d e a", "b"]
    distinct = encoder.fitted(["a b", "c", "d e a", "b"])
    one, other = (distinct.encode(side).astype(np.float64) for side in (left, right))
    expected = (one * other).sum(axis=1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)
    assert pair_similarities(encoder, left, right, "set").values == pytest.approx(expected, abs=1e-5)


def test_bad_vectors():
    broken = WordVectors(["a", "b"], np.array([[1, 2], [np.nan, 1]], np.float32))
    with refused():
        WordAverage(broken)


def test_weights_by_hand():
    names = ["the", "cat", "dog", "emu"]
    config = WordWeighting()
    assert word_weights("average", names, config).tolist() == [1, 1, 1, 1]
    # p = 0.6, 0.3, 0.1, and 0 for what was not seen.
    sif = word_weights("sif", names, config, counts=COUNTS, sif_a=0.1)
    assert sif == pytest.approx([0.1 / 0.7, 0.1 / 0.4, 0.1 / 0.2, 1])
    inverse = word_weights("inverse-frequency", names, config, counts=COUNTS)
    assert inverse == pytest.approx([1 / 6, 1 / 3, 1, 1])
    assert word_weights("blacklist", names, WordWeighting(blacklist=2), counts=COUNTS).tolist() == [0, 0, 1, 1]
    with refused("blacklist"):
        word_weights("blacklist", names[:2], WordWeighting(blacklist=3), counts=COUNTS)
    scaled = WordWeighting(weighting=("norms",), norms_of="m")
    assert word_weights("norms", names, scaled, norms={"the": 1.0, "cat": 3.0}).tolist() == [1, 3, 2, 2]
    with refused("norms_of"):
        word_weights("norms", names, scaled, norms={"yak": 1.0})


def test_counts():
    assert COUNTS.total == 10
    assert COUNTS.of(["dog", "emu", "the"]).tolist() == [1, 0, 6]
    assert WordCounts({"b": 1, "a": 1, "c": 2}, "").most_frequent(2) == ["c", "a"]
    ranked = counts_by_rank(["the", "cat", "dog", "emu"], "v.txt")
    assert ranked.of(["the", "cat", "dog", "emu", "yak"]) == pytest.approx([4, 2, 4 / 3, 1, 0])
    assert "v.txt (Zipf's law)" in ranked.source
    with refused():
        WordCounts({}, "a text")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_lists_of_counts(tmp_path, pack):
    path = tmp_path / "counts.txt"
    for content, counts in (
        (b"the 6\n\nThe\t1\ncat 3\n", {"the": 7, "cat": 3}),
        # Lists with a line that is wrong.
        (b"the 6\ncaf\xe9 3\n", None),
        (b"the 6\ncat 3\nno count here\n", None),
        (b"the 6\n" * 12 + b"a cat sat\n", None),
        (b"the 0\n", None),
    ):
        path.write_bytes(pack(content))
        assert is_count_list(path)
        if counts:
            assert read_counts(path).counts == counts
        else:
            with refused():
                read_counts(path)
    for text in (b"A sentence of 5\n", b"chapter 1\nIt was a night.\n", b"", b"\n\n", b"a -1\n", b"a 1.5\n"):
        path.write_bytes(pack(text))
        assert not is_count_list(path), text


def test_damaged_lists_of_counts(tmp_path):
    packed = tmp_path / "counts.gz"
    whole = gzip.compress(b"the 6\ncat 3\n" * 1000)
    for content in (whole[:20] + b"\xff" * 5 + whole[25:], whole[:-9]):
        packed.write_bytes(content)
        with refused(path=packed):
            read_counts(packed)
    assert not is_count_list(tmp_path / "nowhere")


@given(st.dictionaries(st.text(string.ascii_lowercase + ".,'é", min_size=1), st.integers(1, 10**18 - 1), min_size=1))
def test_lists_of_counts_round_trip(tmp_path_factory, counts):
    path = tmp_path_factory.mktemp("counts") / "counts.txt"
    path.write_text("".join(f"{word}\t{count}\n" for word, count in counts.items()), encoding="utf8")
    assert is_count_list(path) and read_counts(path).counts == counts


@given(st.binary(max_size=60) | st.from_regex(rb"([a-z]{1,3}[ \t]\d{1,25}\n){1,4}"))
def test_whatever_a_list_holds(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("counts") / "counts.txt"
    path.write_bytes(content)
    is_count_list(path)
    try:
        assert read_counts(path).total > 0
    except InputError as error:
        assert "counts.txt" in str(error)


@pytest.fixture
def no_wordnet(monkeypatch, tmp_path):
    """As on a machine without WordNet."""
    nltk = pytest.importorskip("nltk")
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path / "nltk")])


@pytest.fixture
def wordnet(no_wordnet, tmp_path):
    """Two sets of nouns (car, auto, motor_car; foot), one of adjectives (quick, fast), one irregular plural."""
    folder = tmp_path / "nltk" / "corpora" / "wordnet"
    folder.mkdir(parents=True)
    licence = "  1 This is the licence.\n"
    cars = f"{len(licence):08d} 06 n 03 car 0 auto 0 motor_car 0 000 | a vehicle\n"
    feet = f"{len(licence) + len(cars):08d} 08 n 01 foot 0 000 | part of a leg\n"
    quick = f"{len(licence):08d} 00 a 02 quick 0 fast(p) 0 000 | not slow\n"
    texts = {
        "data.noun": licence + cars + feet,
        "index.noun": licence
        + "".join(f"{word} n 1 0 1 0 {cars[:8]}  \n" for word in ("auto", "car", "motor_car"))
        + f"foot n 1 1 @ 1 0 {feet[:8]}  \n",
        "noun.exc": "feet foot\n",
        "data.adj": licence + quick,
        "index.adj": licence + "".join(f"{word} a 1 0 1 0 {quick[:8]}  \n" for word in ("fast", "quick")),
        "lexnames": "".join(f"{number:02d} name{number} 1\n" for number in range(45)),
    }
    for name in ("data.verb", "index.verb", "data.adv", "index.adv"):
        texts[name] = licence
    for name in ("cntlist.rev", "index.sense", "adj.exc", "adv.exc", "verb.exc"):
        texts[name] = ""
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf8")


def test_bleu():
    pytest.importorskip("sacrebleu")
    same, none, part = Bleu().similarities(["a b c d", "a b", "A b c d"], ["a b c d", "x y", "a b c d e"])
    assert same == pytest.approx(1)
    assert none == 0
    # One way all n-grams match and the brevity penalty is exp(1 - 5/4); the other way 4/5, 3/4, 2/3 and 1/2 match.
    brief, long = 2.718281828 ** (1 - 5 / 4), (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** (1 / 4)
    assert part == pytest.approx((brief + long) / 2)


def test_bleu_does_not_depend_on_the_order():
    pytest.importorskip("sacrebleu")
    left, right = ["The cat sat on it .", "a b c"], ["A cat sat", "c b a c"]
    assert Bleu().similarities(left, right).tolist() == Bleu().similarities(right, left).tolist()


def test_meteor(no_wordnet):
    """nltk's parameters: F = PR / (0.9 P + 0.1 R), penalty 0.5 (chunks / matches) ** 3."""
    pytest.importorskip("nltk")
    meteor = Meteor()
    assert meteor.stages == ("exact", "stem")
    same, none, part = meteor.similarities(["a b c d", "a b", "cats sit"], ["a b c d", "x y", "cat sit down now"])
    assert same == pytest.approx(1 - 0.5 * (1 / 4) ** 3)
    assert none == 0
    # Two matches in one chunk, of two words and of four: precision and recall change places with the direction.
    one_way, other = 1 * 0.5 / (0.9 * 1 + 0.1 * 0.5), 0.5 * 1 / (0.9 * 0.5 + 0.1 * 1)
    assert part == pytest.approx((one_way + other) / 2 * (1 - 0.5 * (1 / 2) ** 3))
    assert meteor.notes == (
        "METEOR: nltk's; the paper's is that of Denkowski & Lavie 2014. Mean of both directions; stages: exact, stem.",
    )


def test_meteor_with_synonyms(wordnet):
    meteor = Meteor()
    assert meteor.stages == ("exact", "stem", "synonym")
    assert meteor.similarities(["a quick car"], ["a fast auto"]) == pytest.approx([1 - 0.5 * (1 / 3) ** 3])
    assert meteor.similarities(["a slow car"], ["a fast auto"])[0] < 0.7
    # `feet` has the base form `foot`, which has no synonym: both words match in one direction, one in the other.
    both, one = 1 - 0.5 * (1 / 2) ** 3, 0.5 * (1 - 0.5)
    assert meteor.similarities(["the foot"], ["the feet"]) == pytest.approx([(both + one) / 2])
    assert meteor.similarities(["unheard"], ["foot"]) == [0]


def test_baselines_by_name(no_wordnet):
    for package, name, kind in (("sacrebleu", "bleu", Bleu), ("nltk", "meteor", Meteor)):
        pytest.importorskip(package)
        assert isinstance(baseline(name), kind)
    with refused("baselines"):
        baseline("rouge")


@pytest.mark.slow
def test_real_data(shared_data, no_wordnet):
    """The figures were recorded when this test was written."""
    for package in ("sacrebleu", "nltk"):
        pytest.importorskip(package)
    sets = [one for one in read_sts(shared_data / "sts") if one.year == "STS13"]
    for name, expected in (("bleu", 33.0), ("meteor", 41.6)):
        result = evaluate_sts(baseline(name), sets, bootstrap=0)
        assert 100 * result.mean == pytest.approx(expected, abs=0.1)
        assert any(note.startswith(name.upper()) for note in result.notes)
