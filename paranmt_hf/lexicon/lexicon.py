"""A lexicon of word paraphrases: its settings, its record, the paraphrases of a word, and scores of word pairs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paranmt_hf.errors import InputError
from paranmt_hf.text.definitions import words as tokens_of
from paranmt_hf.text.word_rules import ENGLISH, cutter
from paranmt_hf.util.files import shown_path
from paranmt_hf.util.records import Record
from paranmt_hf.util.settings import Count, Range, RunOnly, check

GIGABYTE = 10**9


@dataclass(frozen=True)
class LexiconConfig:
    """Which sentence pairs and words count, and how much memory counting may take.

    Attributes:
        min_score: Smallest paraphrase score of a pair that counts (appendix A.1).
        max_length: Maximum number of word tokens on either side of a pair that counts (appendix A.1).
        words: Number of words, those in the most sentences.
        min_count: Leave out word pairs that were counted less often.
        memory: GB for counting word pairs; the rest of the program takes about 0.5.
    """

    min_score: float = 0.35
    max_length: Count = 30
    words: Annotated[int, Range(at_least=2, at_most=2**24)] = 100_000
    min_count: Count = 1
    memory: Annotated[float, Range(at_least=0.1), RunOnly] = 2.0

    def __post_init__(self) -> None:
        check(self)

    @property
    def memory_bytes(self) -> int:
        """Bytes for counting word pairs."""
        return int(self.memory * GIGABYTE)


TABLE, WORDS = "lexicon.parquet", "words.parquet"


@dataclass(frozen=True)
class LexiconSettings:
    """What determines a lexicon.

    Attributes:
        pairs: The identity of the pairs of sentences, with checksums.
        words: Maximum number of words.
        min_count: Least count of a pair of words.
        language: ISO 639-1 code of the language.
    """

    pairs: dict[str, Any]
    words: int
    min_count: int
    language: str = ENGLISH


@dataclass(frozen=True, kw_only=True)
class LexiconRecord(Record):
    """The content of `lexicon.json`.

    Attributes:
        settings: What determines the lexicon.
        pairs: Number of pairs of sentences that were counted.
        words: Number of words.
        word_pairs: Number of rows, two for each pair of words, one in each order.
        files: SHA-256 of each file.
    """

    FILE: ClassVar[str] = "lexicon.json"
    KIND: ClassVar[str] = "a lexicon (`paranmt lexicon build`)"

    settings: LexiconSettings
    pairs: int
    words: int
    word_pairs: int
    files: dict[str, str]


Score = Literal["adjusted_pmi", "pmi"]
Pair = tuple[str, str]
# Of the paraphrases in Table 12 of arXiv:1711.05732; it counts nowhere else.
TABLE_COUNT = 10
COLUMNS = ["word", "paraphrase", "count", "pmi", "adjusted_pmi"]


@dataclass(frozen=True)
class Paraphrase:
    """A paraphrase of a word.

    Attributes:
        word: The paraphrase.
        count: How often a pair of sentences has the word on one side and this on the other, both ways counted.
        pmi: Cross-sentence PMI, with the natural logarithm.
        adjusted_pmi: The same minus the mean of the PMI within references and within translations.
    """

    word: str
    count: int
    pmi: float
    adjusted_pmi: float


class Lexicon:
    """A lexicon on disk; only the rows that are asked for are read.

    Args:
        folder: The folder.
        record: Its record.
    """

    def __init__(self, folder: Path, record: LexiconRecord) -> None:
        self.folder, self.record = folder, record
        self._path = folder / TABLE
        try:
            with pq.ParquetFile(self._path) as file:
                metadata = file.metadata
        except (pa.ArrowInvalid, OSError) as error:
            raise self._damaged(error) from None
        if metadata.num_rows != record.word_pairs:
            raise InputError(
                f"{self._path} has {metadata.num_rows:,} rows, but the record says {record.word_pairs:,}; copy the "
                "lexicon again"
            )
        statistics = [metadata.row_group(group).column(0).statistics for group in range(metadata.num_row_groups)]
        self._limits = [(found.min, found.max) if found and found.has_min_max else None for found in statistics]

    @classmethod
    def open(cls, path: str | Path) -> Lexicon:
        """Open a lexicon."""
        folder = Path(path).expanduser()
        return cls(folder, LexiconRecord.read(folder))

    def summary(self) -> str:
        """What the lexicon holds, in one line."""
        counts = f"{self.record.word_pairs // 2:,} pairs of {self.record.words:,} words"
        return f"{shown_path(self.folder)}: {counts}, from {self.record.pairs:,} sentence pairs"

    def nearest(
        self, word: str, *, top: int = 10, by: Score = "adjusted_pmi", min_count: int = TABLE_COUNT
    ) -> list[Paraphrase]:
        """Find the paraphrases of a word; ParaNMT-50M (arXiv:1711.05732), Table 12.

        Args:
            word: The word; upper case counts for nothing.
            top: Number of paraphrases.
            by: The score that ranks them: `adjusted_pmi` or `pmi`.
            min_count: Paraphrases that were counted less often are left out. They have high scores by chance.

        Returns:
            The paraphrases of the highest scores, at most `top`; of equal ones first those that were counted more
            often, then in the order of their characters.
        """
        if by not in get_args(Score):
            raise InputError(f"by must be one of {', '.join(get_args(Score))}, was {by!r}")
        if top < 1 or min_count < 1:
            raise InputError(f"top and min_count must be at least 1, were {top!r} and {min_count!r}")
        token = self._known(word)
        parts = [
            table.filter(pc.and_(pc.equal(table["word"], token), pc.greater_equal(table["count"], min_count)))
            for table in self._tables([token])
        ]
        if not parts:
            return []
        found = pa.concat_tables(parts).sort_by(
            [(by, "descending"), ("count", "descending"), ("paraphrase", "ascending")]
        )
        return _paraphrases(found.slice(0, top))

    def lookup(self, pairs: Collection[Pair]) -> dict[Pair, Paraphrase]:
        """Look up pairs of words.

        Args:
            pairs: A word and a paraphrase each, in lower case.

        Returns:
            What is known of each pair that was ever counted; the others are not there.
        """
        words, others = (sorted({pair[side] for pair in pairs}) for side in (0, 1))
        numbers = [{word: number for number, word in enumerate(side)} for side in (words, others)]
        wanted = np.array([numbers[0][word] * len(others) + numbers[1][other] for word, other in pairs], np.int64)
        found: dict[Pair, Paraphrase] = {}
        for table in self._tables(words):
            left, right = (
                pc.fill_null(pc.index_in(table[name], pa.array(side, pa.string())), -1).to_numpy()
                for name, side in (("word", words), ("paraphrase", others))
            )
            hits = (left >= 0) & (right >= 0)
            hits[hits] = np.isin(left[hits].astype(np.int64) * len(others) + right[hits], wanted)
            chosen = table.filter(pa.array(hits))
            for word, row in zip(chosen["word"].to_pylist(), _paraphrases(chosen), strict=True):
                found[word, row.word] = row
        return found

    def _known(self, word: str) -> str:
        """Bring a word into the form in which the lexicon has it."""
        language = self.record.settings.language
        tokens = tokens_of(word) if language == ENGLISH else cutter(language)(word)
        if len(tokens) != 1:
            shown = f"{len(tokens)} words ({' '.join(tokens)})" if tokens else "no word"
            raise InputError(f"{word!r} is {shown}; a lexicon has the paraphrases of single words")
        try:
            known = pq.read_table(self.folder / WORDS, columns=["word"], use_threads=False)["word"]
        except (pa.ArrowInvalid, OSError) as error:
            raise self._damaged(error) from None
        if not pc.is_in(pa.array([tokens[0]]), known)[0].as_py():
            raise InputError(
                f"{tokens[0]!r} is not among the {len(known):,} words of {self.folder}; it is in no sentence that "
                "counted, or in too few (`words`)"
            )
        return tokens[0]

    def _tables(self, words: Collection[str]) -> Iterator[pa.Table]:
        """Read the row groups that may hold some words."""
        ordered = sorted(words)
        try:
            with pq.ParquetFile(self._path) as file:
                for group, limits in enumerate(self._limits):
                    if limits is not None:
                        next_word = bisect_left(ordered, limits[0])
                        if next_word == len(ordered) or ordered[next_word] > limits[1]:
                            continue
                    yield file.read_row_group(group, columns=COLUMNS, use_threads=False)
        except (pa.ArrowInvalid, OSError) as error:
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> InputError:
        reason = str(error).split("\n")[0]
        return InputError(f"{self.folder} is damaged: {reason}; expected {LexiconRecord.KIND}, copy it again")


def _paraphrases(table: pa.Table) -> list[Paraphrase]:
    rows = table.drop_columns("word").rename_columns({"paraphrase": "word"})
    return [Paraphrase(**row) for row in rows.to_pylist()]
