"""The score columns against hand-worked cases and brute force."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf.corpus.scoring import scores
from paranmt_hf.corpus.scoring.language import InLanguage, Langid, LanguageConfig, Lingua, in_language
from paranmt_hf.corpus.scoring.scores import cosines, paraphrase_scores, score_pairs
from paranmt_hf.text.definitions import words
from paranmt_hf.text.overlap import trigram_overlap
from paranmt_hf.text.tokens import TokenTable, WordTokenizer
from tests.refused import refused

VOCABULARY = ["a", "cat", "sat", "dog"]
MATRIX = np.array([[1, 0], [0, 2], [2, 2], [0, -1]], np.float32)


def overlap_by_hand(reference: str, translation: str) -> float | None:
    """Count trigrams one by one."""
    left, right = (
        Counter(zip(tokens, tokens[1:], tokens[2:], strict=False)) for tokens in (words(reference), words(translation))
    )
    smaller = min(left.total(), right.total())
    return (left & right).total() / smaller if smaller else None


@pytest.mark.parametrize("size", [1e-45, 1e-30, 1e-25, 1e-20, 1e-7, 1, 1e9, 1e20, 1e37])
@pytest.mark.parametrize("other", [1e-25, 1, 1e25])
def test_cosines_of_very_small_and_large_vectors(size: float, other: float) -> None:
    left = np.array([[size, 0], [size, 0], [size, 0], [0, 0], [1, 1]], np.float32)
    right = np.array([[other, 0], [0, other], [-other, 0], [other, 0], [other, other]], np.float32)
    np.testing.assert_allclose(cosines(left, right), [1, 0, -1, 0, 1], atol=1e-6)
    np.testing.assert_allclose(cosines(left[:1], left[:1]), [1], atol=1e-6)
    three_four = np.array([[3 * size / 4, size]], np.float32)
    if size >= 1e-40:  # below, 32 bits have hardly any digits
        np.testing.assert_allclose(cosines(three_four, right[1:2]), [0.8], atol=1e-4)


@pytest.mark.parametrize(
    ("reference", "translation", "expected"),
    [
        ("a b c d", "a b c e", 1 / 2),  # one of two
        ("a b c", "a b c d e", 1.0),  # the smaller side has one trigram, shared
        ("a b a b a b", "a b a x", 1 / 2),  # aba and bax; aba is shared once
        ("a a a a", "a a a a a a", 1.0),  # two copies against four
        ("A cat's hat", "a cat 's hat", 1.0),
        ("a b", "a b c", None),
        ("x y z", "a b c", 0.0),
    ],
)
def test_trigram_overlap_by_hand(reference: str, translation: str, expected: float | None) -> None:
    assert overlap_by_hand(reference, translation) == expected
    tables = WordTokenizer().tables([reference], [translation])
    assert trigram_overlap(*tables).to_pylist() == ([None] if expected is None else [pytest.approx(expected)])


sentence = st.lists(st.sampled_from(["a", "b", "c", "d'll", "E"]), max_size=9).map(" ".join)


@pytest.mark.slow
@given(st.lists(st.tuples(sentence, sentence), max_size=12))
def test_trigram_overlap_equals_brute_force(pairs: list[tuple[str, str]]) -> None:
    tables = WordTokenizer().tables([left for left, _ in pairs], [right for _, right in pairs])
    expected = [overlap_by_hand(*pair) for pair in pairs]
    assert trigram_overlap(*tables).to_pylist() == [
        None if x is None else pytest.approx(x, abs=1e-6) for x in expected
    ]


long_sentence = st.lists(st.sampled_from(["a", "b"]), max_size=90).map(" ".join)


@given(st.lists(st.tuples(long_sentence, long_sentence), max_size=4))
def test_trigram_overlap_of_long_sentences_equals_brute_force(pairs: list[tuple[str, str]]) -> None:
    tables = WordTokenizer().tables([left for left, _ in pairs], [right for _, right in pairs])
    found = trigram_overlap(*tables).to_pylist()
    assert found == [None if (x := overlap_by_hand(*pair)) is None else pytest.approx(x, abs=1e-6) for pair in pairs]


def test_words_of_a_large_vocabulary_do_not_fit_one_key() -> None:
    generator = np.random.default_rng(0)
    left = [" ".join(map(str, generator.integers(0, 2000, 6))) for _ in range(700)]
    right = [" ".join(reversed(text.split())) if row % 3 else text for row, text in enumerate(left)]
    values = trigram_overlap(*WordTokenizer().tables(left, right), key_bits=16).to_numpy()
    expected = [overlap_by_hand(*pair) for pair in zip(left, right, strict=True)]
    assert values.tolist() == expected
    assert sum(expected) > 700 / 3


def test_cosines_by_hand() -> None:
    left = np.array([[1, 0], [3, 4], [0, 0], [1, 1]], np.float32)
    right = np.array([[0, 2], [3, 4], [1, 0], [-2, -2]], np.float32)
    np.testing.assert_allclose(cosines(left, right), [0, 1, 0, -1], atol=1e-7)


class Sums:
    """Adds up the vectors of the words, one by one."""

    def encode(self, sentences: list[str]) -> np.ndarray:
        rows = [[MATRIX[VOCABULARY.index(word)] for word in words(text) if word in VOCABULARY] for text in sentences]
        return np.array([np.sum(row, axis=0) if row else np.zeros(2) for row in rows], np.float32)


class TokenSums(Sums):
    """The same, from tokens."""

    def encode_tokens(self, tokens: TokenTable) -> np.ndarray:
        bounds = zip(tokens.offsets, tokens.offsets[1:], strict=False)
        return self.encode([" ".join(tokens.vocabulary[id_] for id_ in tokens.ids[slice(*pair)]) for pair in bounds])


@pytest.mark.parametrize("encoder", [Sums(), TokenSums()])
def test_paraphrase_scores_by_hand(encoder: Sums) -> None:
    # a cat / a dog: (1, 2) . (1, -1) / sqrt(5 * 2); and a side without a known word.
    found = score_pairs(pa.array(["a cat", "zebra"]), pa.array(["a dog", "a"]), encoder, WordTokenizer())
    assert found["para_score"].to_pylist() == [pytest.approx(-1 / np.sqrt(10)), 0.0]
    assert found["para_score"].type == pa.float32()


class CountingEncoder:
    """Encodes by length and counts what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, sentences: list[str]) -> np.ndarray:
        self.asked += sentences
        return np.array([[len(sentence), 1] for sentence in sentences], float)


def test_repeated_sentences_are_encoded_once() -> None:
    encoder = CountingEncoder()
    columns = score_pairs(pa.array(["aa", "aa", "b"]), pa.array(["c", "dd", "b"]), encoder, WordTokenizer())
    assert encoder.asked == ["aa", "b", "c", "dd", "b"]
    expected = [3 / np.sqrt(10), 1, 1]
    np.testing.assert_allclose(columns["para_score"].to_numpy(), expected, rtol=1e-6)
    assert columns["reference_length"].to_pylist() == [1, 1, 1]


@pytest.mark.parametrize("encoder", [Sums(), TokenSums()])
def test_scores_do_not_depend_on_the_batch(encoder: Sums) -> None:
    left, right = ["a cat sat", "a dog", "cat"], ["a cat sat down", "dog a dog a", "sat"]
    whole = score_pairs(pa.array(left), pa.array(right), encoder, WordTokenizer())
    for row in range(3):
        single = score_pairs(pa.array(left[row : row + 1]), pa.array(right[row : row + 1]), encoder, WordTokenizer())
        for name, column in whole.items():
            assert column[row] == single[name][0], name


def test_scorer_that_gives_nan_is_an_error() -> None:
    class Broken:
        def encode(self, sentences: list[str]) -> np.ndarray:
            return np.full((len(sentences), 2), np.nan)

    with refused():
        paraphrase_scores(pa.array(["one"]), pa.array(["two"]), Broken())


def test_empty_batch() -> None:
    columns = score_pairs(pa.array([], pa.string()), pa.array([], pa.string()), CountingEncoder(), WordTokenizer())
    assert {len(column) for column in columns.values()} == {0}
    assert scores.cosines(np.empty((0, 2)), np.empty((0, 2))).shape == (0,)


TEXTS = [
    "A man is playing the guitar on a stage in front of many people.",
    "Ein Mann spielt auf einer Bühne mit vielen anderen Musikern Gitarre.",
    "Muž hraje na kytaru na pódiu před mnoha lidmi.",
    "Un homme joue de la guitare dans une grande salle.",
    "THE WHOLE SENTENCE IS WRITTEN IN CAPITAL LETTERS",
    "ÜBERALL GROSSE BUCHSTABEN IN DIESEM SATZ",
    "ΟΛΑ ΤΑ ΓΡΑΜΜΑΤΑ ΕΙΝΑΙ ΚΕΦΑΛΑΙΑ",
    "Он играет на гитаре.",
    "彼はギターを弾いている。",
    "Cafe\u0301 au lait, s'il vous plai\u0302t",
    "yes",
    "",
    " ",
    "12 345, 6",
    "🙂🙂",
    "a" * 3000,
    "the " * 700,
    "Ona je u školi. Она је у школи.",
]


@pytest.fixture(scope="module")
def langid():
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


@pytest.mark.slow
@pytest.mark.parametrize("candidates", [None, ("en", "de", "cs", "sr", "fr")])
def test_equal_to_the_loop_of_py3langid(candidates, langid):
    langid.set_languages(candidates)
    ours = Langid("en", candidates or ())
    generator = np.random.default_rng(4)
    texts = TEXTS + ["".join(map(chr, generator.integers(32, 1200, length))) for length in range(40)]
    found = ours.distribution(pa.array(texts))
    assert found.sum(axis=1) == pytest.approx(1, abs=1e-5)
    for text, row in zip(texts, found, strict=True):
        expected = dict(langid.rank(text))
        assert dict(zip(ours.labels, row.tolist(), strict=True)) == pytest.approx(expected, abs=2e-5), text
    # Where texts lie in a column, and how long the column is, makes no difference.
    padded = pa.array(["x", *texts, "y"]).slice(1, len(texts))
    assert ours.distribution(padded) == pytest.approx(found, abs=1e-6)
    assert ours.distribution(pa.array([], pa.string())).shape == (0, len(ours.labels))


@pytest.mark.slow
def test_equal_on_real_sentences(shared_data, langid):
    import pyarrow.parquet as pq

    langid.set_languages(None)
    file = pq.ParquetFile(shared_data / "pairs" / "machine-translations.parquet")
    texts = next(file.iter_batches(5_000, columns=["translation"]))["translation"]
    ours = Langid("en")
    found = ours.distribution(texts)
    expected = [langid.classify(text) for text in texts.to_pylist()]
    assert [ours.labels[best] for best in found.argmax(axis=1)] == [label for label, _ in expected]
    assert found.max(axis=1) == pytest.approx([probability for _, probability in expected], abs=2e-5)


def rows(*pairs: tuple[str, str]) -> pa.Table:
    return pa.table({name: [pair[side] for pair in pairs] for side, name in enumerate(("reference", "translation"))})


@pytest.mark.parametrize("detector", ["langid", pytest.param("lingua", marks=pytest.mark.slow)])
def test_filter(detector):
    table = rows(
        (TEXTS[0], "A person plays a guitar before a crowd."),
        (TEXTS[0], TEXTS[1]),
        (TEXTS[2], TEXTS[0]),
        # Too short to tell, and nothing at all.
        ("Ja, sehr gerne.", TEXTS[0]),
        ("", "123"),
    )
    config = LanguageConfig(detector=detector, candidates=("en", "de", "cs"))
    verdict = InLanguage(config).judge(table)
    assert verdict.kept.tolist() == [True, False, False, True, True]
    assert (verdict.number[1:3] < 0.02).all() and verdict.number[0] > 0.8
    strict = LanguageConfig(detector=detector, candidates=("en", "de", "cs"), letters=5, probability=0.3)
    assert InLanguage(strict).judge(table).kept.tolist() == [True, False, False, False, True]
    assert InLanguage(config).identity["candidates"] == ("en", "de", "cs")


def test_each_sentence_is_looked_at_once():
    class Counting:
        def probabilities(self, sentences: pa.Array) -> np.ndarray:
            self.seen = sentences.to_pylist()
            return np.array([0.5, 0.01], np.float32)

    model = Counting()
    good, probabilities = in_language(pa.array(["aaaa", "bbbb", "aaaa", "c"]), model, LanguageConfig(letters=2))
    assert model.seen == ["aaaa", "bbbb"]
    assert good.tolist() == [True, False, True, True]
    assert np.isnan(probabilities[3])


def test_unknown_languages():
    with refused():
        Langid("xx")
    with refused():
        Lingua("en", ["xx"])
    with refused():
        Lingua("en", ["en"])
