"""Sentences that occur several times: which they are, and that a translator is given each of them once."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from paranmt_hf.corpus.translation.repeats import KnownTranslations, repeated_texts
from paranmt_hf.corpus.translation.translator import Translations
from tests.corpus.translation.letters import ReversingTranslator


def found(columns: list[list[str]], folder, **options) -> list[list[str]]:
    arrays = [pa.array(column, pa.string()) for column in columns]
    options = {"least_share": 0.0, **options}
    return [texts.to_pylist() for texts in repeated_texts(lambda: iter(arrays), folder, **options)]


class TestRepeatedTexts:
    def test_by_hand(self, tmp_path):
        """Each once, where its first copy is; columns without a first copy are skipped."""
        columns = [["b", "a", "x"], ["y"], ["c", "a", "c", "b"], ["a", "c"]]
        assert found(columns, tmp_path) == [["b", "a"], ["c"]]
        assert list(tmp_path.iterdir()) == []

    def test_the_most_frequent_are_taken(self, tmp_path):
        columns = [["b", "a", "x"], ["c", "a", "c", "b"], ["a", "c", "c"]]
        assert found(columns, tmp_path, most=1) == [["c"]]
        assert found(columns, tmp_path, most=2) == [["a"], ["c"]]

    def test_few_repeats_are_not_worth_it(self, tmp_path):
        """3 of 10 rows repeat an earlier one."""
        columns = [["a", "a", "b", "b", "a", "v", "w", "x", "y", "z"]]
        assert found(columns, tmp_path, least_share=0.3) == [["a", "b"]]
        assert found(columns, tmp_path, least_share=0.31) == []
        # Only the repeats of `a`, 2 of 10, are saved if one text is taken.
        assert found(columns, tmp_path, least_share=0.3, most=1) == []

    @pytest.mark.parametrize("columns", [[], [[]], [["a"]], [["a"], [], ["b"]]])
    def test_nothing(self, columns, tmp_path):
        assert found(columns, tmp_path) == []

    @pytest.mark.parametrize("hashes_at_once", [1, 7, 100, 10_000])
    def test_any_number_of_hashes_at_once(self, hashes_at_once, tmp_path):
        numbers = np.random.default_rng(2).zipf(1.5, 600) % 200
        columns = [[f"text {number}" for number in part] for part in np.split(numbers, 6)]
        counts = Counter(text for column in columns for text in column)
        expected = [text for text, count in counts.items() if count > 1]
        texts = found(columns, tmp_path, hashes_at_once=hashes_at_once)
        assert [text for part in texts for text in part] == expected
        most = found(columns, tmp_path, hashes_at_once=hashes_at_once, most=20)
        assert most == found(columns, tmp_path, most=20)
        assert len(sum(most, [])) == 20


class Counting:
    """Gives a sentence backwards; with several hypotheses also itself. It remembers what it was given."""

    identity = {"max_source_tokens": 10}

    def __init__(self, several: bool = False) -> None:
        self.several, self.given = several, []

    def translate(self, sentences):
        self.given += sentences
        texts = [text for sentence in sentences for text in [sentence[::-1], sentence][: 1 + self.several]]
        owners = np.repeat(np.arange(len(sentences)), 2) if self.several else None
        return Translations(texts, np.array([-len(text) for text in texts], np.float32), owners)


def table(rows: list[tuple[str, str | None, float]]) -> pa.Table:
    source, translation, score = zip(*rows, strict=True)
    return pa.table({"source": source, "translation": translation, "translation_score": pa.array(score, pa.float32())})


class TestKnownTranslations:
    KNOWN = table([("ab", "known", -0.5), ("long", None, np.nan), ("cd", "", np.nan)])

    def test_by_hand(self):
        inner = Counting()
        result = KnownTranslations(inner, self.KNOWN).translate(["xy", "ab", "long", "z", "ab", "cd"])
        assert result.texts == ["yx", "known", None, "z", "known", ""]
        assert result.scores.dtype == np.float32
        np.testing.assert_array_equal(result.scores, np.float32([-2, -0.5, np.nan, -1, -0.5, np.nan]))
        assert result.owners is None
        assert inner.given == ["xy", "z"]

    def test_several_hypotheses(self):
        known = table([("ab", "one", -0.5), ("ab", "two", -0.7), ("cd", "only", -0.1)])
        inner = Counting(several=True)
        result = KnownTranslations(inner, known).translate(["cd", "xy", "ab"])
        assert result.texts == ["only", "yx", "xy", "one", "two"]
        assert result.owners.tolist() == [0, 1, 1, 2, 2]
        np.testing.assert_allclose(result.scores, [-0.1, -2, -2, -0.5, -0.7])
        assert inner.given == ["xy"]

    @pytest.mark.parametrize("sentences", [[], ["ab", "ab"], ["x"]])
    def test_all_or_none_known(self, sentences):
        result = KnownTranslations(Counting(), self.KNOWN).translate(sentences)
        assert result.texts == ["known" if sentence == "ab" else sentence for sentence in sentences]

    def test_equal_to_a_translator_that_knows_nothing(self):
        rng = np.random.default_rng(5)
        sentences = ["".join(rng.choice(list("abc"), rng.integers(1, 12))) for _ in range(300)]
        expected = ReversingTranslator().translate(sentences)
        distinct = sorted({sentence for sentence, count in Counter(sentences).items() if count > 1})
        ahead = ReversingTranslator().translate(distinct)
        inner = ReversingTranslator()
        known = table(list(zip(distinct, ahead.texts, ahead.scores.tolist(), strict=True)))
        result = KnownTranslations(inner, known).translate(sentences)
        assert result.texts == expected.texts
        np.testing.assert_array_equal(result.scores, expected.scores)
        seen = sum(len(batch) for batch in inner.batches)
        assert seen == sum(1 for text in set(sentences) - set(distinct) if len(text) < 10)
