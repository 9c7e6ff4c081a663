"""Analyses of encoders and word vectors, against hand-worked cases and plain loops."""

from collections import Counter

import numpy as np
import pytest

from paranmt_hf.evaluation.correlation import pearson, spearman
from paranmt_hf.evaluation.pair_set import StsSet
from paranmt_hf.evaluation.sts import evaluate_sts
from paranmt_hf.evaluation.word_weights import WordCounts, counts_by_rank
from paranmt_hf.experiments.paragram_section5 import draw_coverage, measure_coverage, paragram_section5
from paranmt_hf.experiments.paragram_section6 import measure_norms
from paranmt_hf.experiments.paragram_table7 import draw_lengths, longer_side, pearson_by_length
from paranmt_hf.experiments.paragram_table8 import find_neighbours
from paranmt_hf.experiments.sent2vec_figure1 import draw_norms
from paranmt_hf.text.definitions import words
from paranmt_hf.text.word_vectors import WordVectors
from tests.refused import refused


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


def test_lengths_against_a_loop():
    """The pairs of the sets of SemEval 2012 to 2015 alone."""
    sets = [
        random_set("MSRpar", 60, 1),
        random_set("images", 80, 2, "STS14"),
        random_set("plagiarism", 30, 3, "STS16"),
    ]
    results = [evaluate_sts(Seeded(seed), sets, name=f"model {seed}", bootstrap=0) for seed in (3, 4)]
    tables = [pearson_by_length(each, sets, [2, 3, 6], bootstrap=50) for each in results]
    assert [row.name for row in tables[0].rows] == ["<= 2", "3", "4 to 6", ">= 7", "all"]
    assert tables[0].notes[0].endswith("STS12 MSRpar, STS14 images.")
    pairs = [
        (
            max(len(words(left)), len(words(right))),
            gold,
            [result.similarities[sts_set.title][row] for result in results],
        )
        for sts_set in sets[:2]
        for row, (left, right, gold) in enumerate(zip(sts_set.left, sts_set.right, sts_set.gold, strict=True))
    ]
    for model, table in enumerate(tables):
        for row, (low, high) in zip(table.rows, [(0, 2), (3, 3), (4, 6), (7, 99), (0, 99)], strict=True):
            inside = [pair for pair in pairs if low <= pair[0] <= high]
            assert row.items == len(inside) > 1
            expected = pearson([pair[2][model] for pair in inside], [pair[1] for pair in inside])
            assert row.main == pytest.approx(expected)
            assert row.interval[0] <= row.interval[1]
        assert sum(row.items for row in list(table.rows)[:-1]) == 140


def test_lengths_by_hand():
    """Tokens are those of the package: a comma is one."""
    sts_set = StsSet("own", ["a, b", "a", "a b c d", "x"], ["c", "b b", "a", "x"], np.array([1.0, 2, 3, 4]))
    assert longer_side([sts_set]).tolist() == [3, 2, 4, 1]
    result = evaluate_sts(Seeded(1), [sts_set], bootstrap=0)
    table = pearson_by_length(result, [sts_set], [1, 2, 5])
    assert [(row.items, bool(row.values)) for row in table.rows] == [
        (1, False),
        (1, False),
        (2, True),
        (0, False),
        (4, True),
    ]


SPACE = WordVectors(
    ["the", "cat", "kitten", "dog", "nil"], np.array([[1, 1], [1, 0], [4, 1], [0, 2], [0, 0]], np.float32)
)
OTHER = WordVectors(["dog", "cat", "kitten", "rare"], np.array([[1, 0], [0, 3], [1, -1], [1, 1]], np.float32))


def test_neighbours_by_hand():
    common = ["the", "cat", "kitten", "dog", "nil"]
    (one,) = find_neighbours({"one": SPACE}, ["cat"], common, "a list", top=9)
    assert [(row.name, round(row.main, 4)) for row in one.tables["cat"]] == [
        ("kitten", 0.9701),
        ("the", 0.7071),
        ("dog", 0.0),
    ], "neither itself nor a vector of zeros"
    # Only what both spaces have can be near; a word that is asked for need not be common.
    both = {"one": SPACE, "two": OTHER}
    found = find_neighbours(both, ["cat", "rare"], common, "a list", top=1)
    assert found[0].notes[0].startswith("Among the 3 most common words")
    assert [[row.name for row in each.tables["cat"]] for each in found] == [["kitten"], ["dog"]]
    assert found[0].tables["rare"] == []
    assert [row.name for row in found[1].tables["rare"]] == ["cat"], "equally near as dog, and more common"
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in found.summary().splitlines()]
    assert lines[0] == ["cat", "one", "two"] and lines[2] == ["1", "kitten 0.97", "dog 0.00"]
    assert lines[6] == ["1", "no vector", "cat 0.71"]
    some = find_neighbours(both, ["yak", "cat"], common, "", top=1)
    assert [each.tables["yak"] for each in some] == [[], []] and some[0].tables["cat"] == found[0].tables["cat"]
    with refused():
        find_neighbours(both, ["yak", "gnu"], common, "", top=1)
    with refused():
        find_neighbours(both, ["cat"], ["the"], "", top=1)


def test_neighbours_against_a_loop():
    generator = np.random.default_rng(0)
    names = [f"w{number}" for number in range(60)]
    vectors = WordVectors(names, generator.standard_normal((60, 4)).astype(np.float32))
    (found,) = find_neighbours({"one": vectors}, names[:5], names[:40], "", top=7)
    for number, name in enumerate(names[:5]):
        x = vectors.matrix[number].astype(float)
        near = sorted(
            (word for word in names[:40] if word != name),
            key=lambda word: (
                -np.dot(x, vectors.matrix[names.index(word)]) / np.linalg.norm(vectors.matrix[names.index(word)])
            ),
        )
        assert [row.name for row in found.tables[name]] == near[:7]


def test_norms_by_hand():
    vectors = WordVectors(["the", "of", "cat", "yak"], np.array([[0.1, 0], [0.3, -0.4], [3, -4], [6, 8]], np.float32))
    counts = WordCounts({"the": 100, "of": 50, "cat": 2, "dog": 8}, "a text")
    result, drawn = measure_norms("one", vectors, counts, common=3, top=2)
    first, _ = result.tables["Norm"]
    assert (first.name, first.items, first.details["unseen"]) == ("l1", 4, 1)
    assert drawn.norms["l1"] == pytest.approx([0.1, 0.7, 7, 14])
    assert drawn.norms["l2"] == pytest.approx([0.1, 0.5, 5, 10])
    # What was not seen counts 1.
    inverse = [1 / 100, 1 / 50, 1 / 2, 1]
    norms = [0.1, 0.7, 7, 14]
    assert list(first.values.values()) == pytest.approx(
        [spearman(norms, inverse), pearson(norms, inverse), pearson(norms, np.log(inverse))]
    )
    # Yak is none of the three most common ones.
    assert (first.details["largest"], first.details["smallest"]) == (["cat", "of"], ["the", "of"])
    assert drawn.frequencies == pytest.approx(np.array([100, 50, 2, 1]) / 160)


def test_norms_that_are_all_equal():
    vectors = WordVectors(["a", "b"], np.array([[1, 0], [0, 1]], np.float32))
    result, _ = measure_norms("one", vectors, counts_by_rank(["a", "b"], ""), common=9, top=1)
    assert [row.values for row in result.rows] == [{}, {}] and "L1, largest" in result.text()
    with refused():
        measure_norms("one", vectors, WordCounts({"x": 1}, "a list"), common=9, top=1)


def test_coverage_against_a_loop(sets, results):
    counts = WordCounts({"a": 150, "b": 100, "c": 99, "d": 1, ",": 500}, "a text")
    for result in results:
        found = measure_coverage(result, sets, counts)
        rows = found.tables["Set"]
        assert [row.name for row in rows] == ["STS12 one", "STS14 two"]
        for row, sts_set in zip(rows, sets, strict=False):
            seen = Counter(token for text in (*sts_set.left, *sts_set.right) for token in words(text))
            assert row.items == sum(seen.values())
            rare = sum(count for token, count in seen.items() if counts.counts.get(token, 0) < 100)
            assert row["under_trained"] == pytest.approx(rare / row.items)
            assert row["unseen"] == pytest.approx(sum(seen[token] for token in "ef.") / row.items)
            assert row["pearson"] == result.value(sts_set.title)
        shares = [row["under_trained"] for row in rows]
        assert found.value("Correlation") == pytest.approx(spearman(shares, [row["pearson"] for row in rows]))
        assert "5 words, of which 3 were seen 100 times or more" in found.text()


def test_coverage_beside_the_systems_of_a_task(tmp_path):
    """Section 5.1: the share of rare words against the deviation from the 75th percentile."""
    sets = [random_set("MSRpar", 60, 1), random_set("images", 80, 2, "STS14"), random_set("own", 50, 3, None)]
    (tmp_path / "counts.txt").write_text("a 150\nb 1\n")
    (found,) = paragram_section5(Seeded(3), data=sets, training=str(tmp_path / "counts.txt"))
    rows = found.tables["Set"]
    assert [row.values.get("systems") for row in rows] == [pytest.approx(0.576), pytest.approx(0.790), None]
    gaps = [row["pearson"] - row["systems"] for row in rows[:2]]
    assert found.value("Correlation") == pytest.approx(spearman([row["under_trained"] for row in rows[:2]], gaps))
    assert "57.6" in found.text()


def test_sentences_without_words(results):
    nothing = StsSet("none", ["", " "], [" ", ""], np.array([1.0, 2.0]))
    with refused():
        measure_coverage(results[0], [nothing], WordCounts({"a": 1}, ""))


@pytest.mark.slow
def test_pictures(sets, results, tmp_path, drawing):
    counts = WordCounts({"a": 150, "b": 3, "the": 7, "cat": 2, "dog": 1}, "a text")
    draw_lengths([pearson_by_length(each, sets, [4, 6], bootstrap=20) for each in results], tmp_path / "lengths.png")
    covered = [measure_coverage(each, sets, counts) for each in results]
    draw_coverage(covered, tmp_path / "coverage.png", 100)
    norms = [measure_norms(name, space, counts, 9, 1)[1] for name, space in (("one", SPACE), ("two", OTHER))]
    draw_norms(norms, tmp_path / "norms.png")
    for name in ("lengths", "coverage", "norms"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
