"""Analyses of encoders and word vectors, against hand-worked cases and plain loops."""

from collections import Counter

import numpy as np
import pytest

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.analysis.lengths import longer_side, pearson_by_length
from paranmt_hf.evaluation.analysis.neighbours import find_neighbours
from paranmt_hf.evaluation.analysis.norms import measure_norms
from paranmt_hf.evaluation.analysis.pictures import draw_coverage, draw_lengths, draw_norms
from paranmt_hf.evaluation.analysis.under_trained import measure_coverage, read_references
from paranmt_hf.evaluation.correlation import pearson, spearman
from paranmt_hf.evaluation.pair_set import StsSet
from paranmt_hf.evaluation.sts import evaluate_sts
from paranmt_hf.evaluation.word_counts import WordCounts, counts_by_rank
from paranmt_hf.text.definitions import words
from paranmt_hf.text.word_vectors import WordVectors


class Seeded:
    """Encodes each sentence as numbers that its letters decide."""

    def __init__(self, seed):
        self.seed = seed

    def encode(self, sentences):
        seeds = [[self.seed, *sentence.encode()] for sentence in sentences]
        return np.array([np.random.default_rng(seed).standard_normal(3) for seed in seeds])


def random_set(name, pairs, seed, year="STS12"):
    generator = np.random.default_rng(seed)

    def side():
        return [" ".join(generator.choice(list("abcdef,."), generator.integers(1, 13))) for _ in range(pairs)]

    return StsSet(name, side(), side(), generator.integers(0, 6, pairs).astype(np.float64), year)


@pytest.fixture(scope="module")
def sets():
    alone = StsSet("STSB-dev", ["a", "b", "a b"], ["b", "b", "c"], np.array([1.0, 5.0, 2.0]))
    return [random_set("one", 60, 1), random_set("two", 80, 2, "STS14"), alone]


@pytest.fixture(scope="module")
def results(sets):
    return [evaluate_sts(Seeded(seed), sets, name=f"model {seed}", bootstrap=0) for seed in (3, 4)]


def test_lengths_against_a_loop(sets, results):
    table = pearson_by_length(results, sets, up_to=[2, 3, 6], bootstrap=50)
    assert [each.label for each in table.bins] == ["<= 2", "3", "4 to 6", ">= 7", "all"]
    assert table.sets == ["STS12 one", "STS14 two"], "the benchmark is drawn from the yearly sets"
    pairs = [
        (max(len(words(left)), len(words(right))), gold, [result.sets[number].similarities[row] for result in results])
        for number, sts_set in enumerate(sets[:2])
        for row, (left, right, gold) in enumerate(zip(sts_set.left, sts_set.right, sts_set.gold, strict=True))
    ]
    for each, (low, high) in zip(table.bins, [(0, 2), (3, 3), (4, 6), (7, 99), (0, 99)], strict=True):
        inside = [pair for pair in pairs if low <= pair[0] <= high]
        assert each.pairs == len(inside) > 1
        for model in range(2):
            expected = pearson([pair[2][model] for pair in inside], [pair[1] for pair in inside])
            assert each.pearson[model] == pytest.approx(expected)
            assert each.intervals[model][0] <= each.intervals[model][1]
    assert sum(each.pairs for each in table.bins[:-1]) == 140
    text = table.write()
    assert text.split("\n")[0].split() == ["Longer", "side", "Pairs", "model", "3", "model", "4"]
    assert table.to_json()["bins"][0]["pearson"] == table.bins[0].pearson


def test_lengths_by_hand():
    """Tokens are those of the package: a comma is one."""
    sts_set = StsSet("own", ["a, b", "a", "a b c d", "x"], ["c", "b b", "a", "x"], np.array([1.0, 2, 3, 4]))
    assert longer_side([sts_set]).tolist() == [3, 2, 4, 1]
    result = evaluate_sts(Seeded(1), [sts_set], bootstrap=0)
    table = pearson_by_length([result], [sts_set], up_to=[1, 2, 5])
    assert [(each.pairs, each.pearson[0] is None) for each in table.bins] == [
        (1, True),
        (1, True),
        (2, False),
        (0, True),
        (4, False),
    ]
    for edges in ([], [0, 2], [3, 3], [4, 2]):
        with pytest.raises(InputError, match="--up-to must be whole numbers from 1 that ascend"):
            pearson_by_length([result], [sts_set], up_to=edges)


SPACE = WordVectors(
    ["the", "cat", "kitten", "dog", "nil"], np.array([[1, 1], [1, 0], [4, 1], [0, 2], [0, 0]], np.float32)
)
OTHER = WordVectors(["dog", "cat", "kitten", "rare"], np.array([[1, 0], [0, 3], [1, -1], [1, 1]], np.float32))


def test_neighbours_by_hand():
    common = ["the", "cat", "kitten", "dog", "nil"]
    table = find_neighbours([("one", SPACE)], ["cat"], common, "a list", top=9)
    assert [(each.word, round(each.cosine, 4)) for each in table.words[0].neighbours[0]] == [
        ("kitten", 0.9701),
        ("the", 0.7071),
        ("dog", 0.0),
    ], "neither itself nor a vector of zeros"
    # Only what both spaces have can be near; a word that is asked for need not be common.
    table = find_neighbours([("one", SPACE), ("two", OTHER)], ["cat", "rare"], common, "a list", top=1)
    assert table.common == 3
    assert [[each.word for each in space] for space in table.words[0].neighbours] == [["kitten"], ["dog"]]
    assert table.words[1].neighbours[0] is None
    assert [each.word for each in table.words[1].neighbours[1]] == ["cat"], "equally near as dog, and more common"
    text = table.write("markdown")
    assert "| cat | one | two |" in text and "| 1 | kitten 0.97 | dog 0.00 |" in text and "not known" in text
    some = find_neighbours([("one", SPACE), ("two", OTHER)], ["yak", "cat"], common, "", top=1)
    assert some.words[0].neighbours == [None, None] and some.words[1] == table.words[0]
    with pytest.raises(InputError, match="^yak gnu: no vector in one, two; ask for other words"):
        find_neighbours([("one", SPACE), ("two", OTHER)], ["yak", "gnu"], common, "", top=1)
    with pytest.raises(InputError, match="none of the 1 most common words has a vector in all of one, two"):
        find_neighbours([("one", SPACE), ("two", OTHER)], ["cat"], ["the"], "", top=1)


def test_neighbours_against_a_loop():
    generator = np.random.default_rng(0)
    names = [f"w{number}" for number in range(60)]
    vectors = WordVectors(names, generator.standard_normal((60, 4)).astype(np.float32))
    table = find_neighbours([("one", vectors)], names[:5], names[:40], "", top=7)
    for number, found in enumerate(table.words):
        x = vectors.matrix[number].astype(float)
        near = sorted(
            (word for word in names[:40] if word != names[number]),
            key=lambda word: (
                -np.dot(x, vectors.matrix[names.index(word)]) / np.linalg.norm(vectors.matrix[names.index(word)])
            ),
        )
        assert [each.word for each in found.neighbours[0]] == near[:7]


def test_norms_by_hand():
    vectors = WordVectors(["the", "of", "cat", "yak"], np.array([[0.1, 0], [0.3, -0.4], [3, -4], [6, 8]], np.float32))
    counts = WordCounts({"the": 100, "of": 50, "cat": 2, "dog": 8}, "a text")
    table = measure_norms([("one", vectors, counts)], "a text", common=3, top=2)
    one = table.vectors[0]
    assert (one.words, one.unseen) == (4, 1)
    assert one.norms["l1"] == pytest.approx([0.1, 0.7, 7, 14]) and one.norms["l2"] == pytest.approx([0.1, 0.5, 5, 10])
    # What was not seen counts 1.
    inverse = [1 / 100, 1 / 50, 1 / 2, 1]
    first = one.figures[0]
    assert (first.norm, first.spearman) == ("l1", pytest.approx(spearman([0.1, 0.7, 7, 14], inverse)))
    assert first.pearson == pytest.approx(pearson([0.1, 0.7, 7, 14], inverse))
    assert first.pearson_log == pytest.approx(pearson([0.1, 0.7, 7, 14], np.log(inverse)))
    # Yak is none of the three most common ones.
    assert (first.largest, first.smallest) == (["cat", "of"], ["the", "of"])
    assert one.frequencies == pytest.approx(np.array([100, 50, 2, 1]) / 160)
    assert table.write().split("\n")[1].split()[:5] == ["one", "L1", "4", "1", "100.0"]
    assert list(table.to_json()["vectors"][0]) == ["name", "words", "unseen", "figures"]


def test_norms_that_are_all_equal():
    vectors = WordVectors(["a", "b"], np.array([[1, 0], [0, 1]], np.float32))
    table = measure_norms([("one", vectors, counts_by_rank(["a", "b"], ""))], "", common=9, top=1)
    assert table.vectors[0].figures[1].spearman is None
    with pytest.raises(InputError, match="none of the 2 words of one occurs in a list; is it of that language"):
        measure_norms([("one", vectors, WordCounts({"x": 1}, "a list"))], "", common=9, top=1)


def test_coverage_against_a_loop(sets, results):
    counts = WordCounts({"a": 150, "b": 100, "c": 99, "d": 1, ",": 500}, "a text")
    table = measure_coverage(results, sets, counts)
    assert [each.title for each in table.sets] == ["STS12 one", "STS14 two"]
    assert (table.words, table.trained_words) == (5, 3)
    for each, sts_set in zip(table.sets, sets, strict=False):
        seen = Counter(token for text in (*sts_set.left, *sts_set.right) for token in words(text))
        assert each.tokens == sum(seen.values())
        rare = sum(count for token, count in seen.items() if counts.counts.get(token, 0) < 100)
        assert each.under_trained == pytest.approx(rare / each.tokens)
        assert each.unseen == pytest.approx(sum(seen[token] for token in "ef.") / each.tokens)
        assert each.pearson == [result.sets[sets.index(sts_set)].pearson for result in results]
    shares = [each.under_trained for each in table.sets]
    for model in range(2):
        assert table.spearman[model] == pytest.approx(spearman(shares, [each.pearson[model] for each in table.sets]))
    assert "5 words, of which 3 were seen 100 times or more" in table.write()
    assert measure_coverage([], sets[2:], counts).sets[0].tokens == 7, "without models too"


def test_coverage_beside_references(sets, results, tmp_path):
    path = tmp_path / "references.tsv"
    path.write_text("STS12 one\t50.5\n\nSTS14 two\t20\nSTS15 x\t1\n")
    references = read_references(path)
    assert references == {"STS12 one": 0.505, "STS14 two": 0.2, "STS15 x": 0.01}
    counts = WordCounts({"a": 150}, "a text")
    table = measure_coverage(results, sets, counts, references=references)
    shares = [each.under_trained for each in table.sets]
    gaps = [each.pearson[0] - each.reference for each in table.sets]
    assert table.spearman[0] == pytest.approx(spearman(shares, gaps))
    assert "Reference" in table.write().split("\n")[0] and "50.5" in table.write()
    with pytest.raises(InputError, match="no reference is of one of the sets STS12 one, STS14 two; it has other"):
        measure_coverage(results, sets, counts, references={"other": 0.5})
    for text, message in (
        ("STS12 one 50\n", "line 1: expected a set such as"),
        ("a\tb\n", "line 1: expected Pearson"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            read_references(path)


def test_sentences_without_words():
    nothing = StsSet("none", ["", " "], [" ", ""], np.array([1.0, 2.0]))
    with pytest.raises(InputError, match="none has no word at all"):
        measure_coverage([], [nothing], WordCounts({"a": 1}, ""))


def test_pictures(sets, results, tmp_path):
    pytest.importorskip("matplotlib")
    counts = WordCounts({"a": 150, "b": 3, "the": 7, "cat": 2, "dog": 1}, "a text")
    draw_lengths(pearson_by_length(results, sets, bootstrap=20), tmp_path / "lengths.png")
    draw_coverage(measure_coverage(results, sets, counts, references={"STS12 one": 0.5}), tmp_path / "coverage.png")
    norms = measure_norms([("one", SPACE, counts), ("two", OTHER, counts)], "", common=9, top=1)
    draw_norms(norms, tmp_path / "norms.png", norm="l1")
    for name in ("lengths", "coverage", "norms"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
