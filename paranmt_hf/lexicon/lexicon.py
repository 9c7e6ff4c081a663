"""A lexicon of word paraphrases: built from a corpus, and looked up.

ParaNMT-50M (arXiv:1711.05732), appendix A.1.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paranmt_hf.corpus.reading.pair_files import languages
from paranmt_hf.corpus.reading.pairs import Pairs, PairSelection
from paranmt_hf.errors import InputError
from paranmt_hf.lexicon.pmi import FOLDER, TABLE, count_word_pairs, merge_runs, pairs_in, runs_of, write_word_pairs
from paranmt_hf.lexicon.word_sets import WORDS, WordSets, write_word_sets
from paranmt_hf.text.definitions import words as tokens_of
from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.text.word_rules import cutter
from paranmt_hf.util.files import checksum, listed, shown_path
from paranmt_hf.util.markers import Cosine, Count, Range, RunOnly
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import Record, made_with
from paranmt_hf.util.run import Result, result_folder, run
from paranmt_hf.util.settings import Settings
from paranmt_hf.util.wording import counted
from paranmt_hf.util.work import clear

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LexiconConfig(Settings):
    """Which sentence pairs and words count, and how much memory counting may take.

    Attributes:
        min_score: Smallest paraphrase score of a pair that counts (appendix A.1).
        max_length: Maximum number of word tokens on either side of a pair that counts (appendix A.1).
        words: Number of words, those in the most sentences.
        min_count: Leave out word pairs that were counted less often.
        memory: GB for counting word pairs; the rest of the program takes about 0.5.
    """

    min_score: Cosine = 0.35
    max_length: Count = 30
    words: Annotated[int, Range(at_least=2, at_most=2**24)] = 100_000
    min_count: Count = 1
    memory: Annotated[float, Range(at_least=0.1), RunOnly] = 2.0


@dataclass(frozen=True)
class LexiconSettings:
    """The input and the settings that determine the content of a lexicon."""

    pairs: dict[str, Any]  # Identity of the selected sentence pairs: their files with checksums, and the selection
    words: int  # Maximum number of words
    min_count: int  # Word pairs that were counted less often are left out
    language: str = ENGLISH  # ISO 639-1 code of the language of the sentences


@dataclass(frozen=True, kw_only=True)
class LexiconRecord(Record):
    """The content of `lexicon.json`."""

    FILE: ClassVar[str] = "lexicon.json"
    KIND: ClassVar[str] = "a lexicon (`paranmt lexicon build`)"

    settings: LexiconSettings  # The input and the settings that determine the lexicon
    pairs: int  # Number of sentence pairs in which words were counted
    words: int  # Number of words
    word_pairs: int  # Number of rows of the table; each pair of words has two rows, one in each order
    files: dict[str, str]  # SHA-256 of each file, in hexadecimal, by its name


Pair = tuple[str, str]
TABLE_COUNT = 10  # Minimum count of the paraphrases in Table 12 of arXiv:1711.05732; Table 13 has no minimum
COLUMNS = ["word", "paraphrase", "count", "pmi", "adjusted_pmi"]


@dataclass(frozen=True)
class WordParaphrase:
    """A paraphrase of a word, with its count and its scores."""

    word: str  # The paraphrase
    # Number of sentence pairs with the word on one side and the paraphrase on the other; a sentence pair counts twice
    # if both words are on both sides.
    count: int
    pmi: float  # Cross-sentence PMI, with the natural logarithm
    adjusted_pmi: float  # `pmi` minus the mean of the PMI within references and the PMI within translations


class Lexicon(Result[LexiconRecord]):
    """A lexicon of word paraphrases in a folder; a query reads only the row groups that may hold its words."""

    @classmethod
    def build(
        cls, data: str | Path | Sequence[str | Path], out: str | Path, *, config: LexiconConfig | None = None
    ) -> Self:
        """Build a lexicon of word paraphrases from a corpus.

        Work in progress is in `OUT.work`; after an interruption the same command continues there.

        Args:
            data: Corpora, files with the columns of a corpus (docs/formats.md), scores and lengths included, or
                corpora on the Hub.
            out: Folder of the lexicon.
            config: Which sentence pairs and words count, and how much memory it may take.
        """
        sources = listed(data)
        config, out = config or LexiconConfig(), result_folder(out, LexiconRecord, sources=sources)
        # Scores are stored in single precision, where the number nearest to 0.35 is below 0.35. A pair with this
        # score must count.
        min_score = float(np.float32(config.min_score))
        pairs = Pairs(sources, PairSelection(min_score=min_score, max_length=config.max_length))
        settings = LexiconSettings(pairs.identity, config.words, config.min_count, _language(pairs.identity))
        return run(
            out,
            settings,
            LexiconRecord,
            lambda work, folder: write_lexicon(_counted(pairs, config), work, folder, config, settings),
            result=cls,
            command="lexicon build",
            holds=WordSets.complete,
        )

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Self:
        """Open a lexicon in a folder; raises `InputError` if the folder holds none or its table is damaged."""
        folder = Path(folder).expanduser()
        lexicon = cls(folder, LexiconRecord.read(folder), fresh=False)
        lexicon._read(TABLE, [])
        return lexicon

    def summary(self) -> str:
        """Return a line with the folder and the numbers of word pairs, words and sentence pairs."""
        counts = f"{counted(self.record.word_pairs // 2, 'pair')} of {counted(self.record.words, 'word')}"
        return f"{shown_path(self.folder)}: {counts}, from {self.record.pairs:,} sentence pairs"

    def nearest(
        self,
        word: str,
        *,
        top: int = 10,
        by: Literal["adjusted_pmi", "pmi"] = "adjusted_pmi",
        min_count: int = TABLE_COUNT,
    ) -> list[WordParaphrase]:
        """Find the paraphrases of a word; ParaNMT-50M (arXiv:1711.05732), Table 12.

        Args:
            word: The word; case is ignored.
            top: Number of paraphrases.
            by: The score that ranks them: `adjusted_pmi` or `pmi`.
            min_count: Leave out paraphrases that were counted less often, whose high scores are random.

        Returns:
            At most `top` paraphrases, the highest score first. Of equal scores the higher count comes first, and of
            equal counts the paraphrase that is first in the order of characters.

        Raises:
            InputError: The text is not a single word, or the lexicon does not know the word.
        """
        chosen = (pc.field("word") == self._known(word)) & (pc.field("count") >= min_count)
        order = [(by, "descending"), ("count", "descending"), ("paraphrase", "ascending")]
        rows = self._read(TABLE, COLUMNS, chosen).sort_by(order).slice(0, top)
        return list(_paraphrases(rows).values())

    def lookup(self, pairs: Collection[Pair]) -> dict[Pair, WordParaphrase]:
        """Look up the counts and scores of given pairs of words.

        Args:
            pairs: Pairs (word, paraphrase), in lower case.

        Returns:
            Count and scores of each pair that the lexicon holds; other pairs are left out.
        """
        words = pa.array({word for word, _ in pairs}, pa.string())
        others = pa.array({other for _, other in pairs}, pa.string())
        chosen = pc.field("word").isin(words) & pc.field("paraphrase").isin(others)
        table = self._read(TABLE, COLUMNS, chosen)
        # The table that was read has every word with every paraphrase, also in pairs that were not asked for.
        keys = pc.binary_join_element_wise(table["word"], table["paraphrase"], " ")
        wanted = pa.array({f"{word} {other}" for word, other in pairs}, pa.string())
        return _paraphrases(table.filter(pc.is_in(keys, wanted)))

    def _known(self, word: str) -> str:
        """Return a word in the form that the lexicon holds; raises `InputError` if the lexicon does not know it."""
        language = self.record.settings.language
        tokens = tokens_of(word) if language == ENGLISH else cutter(language)(word)
        if len(tokens) != 1:
            shown = f"{len(tokens)} words ({' '.join(tokens)})" if tokens else "no word"
            raise InputError(f"{word!r} is {shown}; a lexicon has the paraphrases of single words")
        known = self._read(WORDS, ["word"])["word"]
        if not pc.is_in(pa.array([tokens[0]]), known)[0].as_py():
            raise InputError(
                f"{tokens[0]!r} is not among the {len(known):,} words of {self.folder}; it is in no sentence that "
                "counted, or in too few (--words of `paranmt lexicon build`)"
            )
        return tokens[0]

    def _read(self, name: str, columns: list[str], chosen: pc.Expression | None = None) -> pa.Table:
        """Read columns of a Parquet file of the lexicon.

        With `chosen`, only matching rows are returned, and only row groups that may hold such rows are read.
        """
        try:
            return pq.read_table(self.folder / name, columns=columns, filters=chosen, use_threads=False)
        except (pa.ArrowInvalid, OSError) as error:
            reason = str(error).split("\n")[0]
            raise InputError(
                f"{self.folder} is damaged: {reason}; expected {LexiconRecord.KIND}, copy it again"
            ) from None


def _paraphrases(table: pa.Table) -> dict[Pair, WordParaphrase]:
    """Return the rows of a lexicon by (word, paraphrase), in the order of the rows."""
    found = {}
    for row in table.to_pylist():
        word, other = row["word"], row["paraphrase"]
        found[word, other] = WordParaphrase(other, row["count"], row["pmi"], row["adjusted_pmi"])
    return found


def _language(pairs: Mapping[str, Any]) -> str:
    """Return the language of the sentence pairs; raises `InputError` if they are of several languages."""
    spoken = languages(pairs)
    if len(spoken) > 1:
        raise InputError(
            f"the corpora are of several languages ({', '.join(spoken)}), and a lexicon has words of one; make one "
            "of each"
        )
    return spoken[0] if spoken else ENGLISH


def _counted(pairs: Pairs, config: LexiconConfig) -> Iterator[pa.Table]:
    """Yield tables of the selected sentence pairs; raises `InputError` at the end if there was no pair."""
    kept = 0
    with Progress("words", unit="pairs of sentences") as progress:
        for table in pairs.batches():
            yield table
            kept += table.num_rows
            progress.advance_to(pairs.read)
    if pairs.left_out_by:
        logger.info(pairs.left_out)
    if not kept:
        raise InputError(
            f"none of {pairs.read:,} pairs of sentences counts: expected a paraphrase score of at least "
            f"{config.min_score:g} and at most {config.max_length} word tokens on each side; a pair without a score "
            "does not count. Change `min_score` or `max_length`, or score the corpus (`paranmt score`)"
        )


def write_lexicon(
    tables: Iterator[pa.Table], work: Path, folder: Path, config: LexiconConfig, settings: LexiconSettings
) -> LexiconRecord:
    """Count words and word pairs, and write the files of a lexicon into an empty folder.

    Args:
        tables: The sentence pairs that count, with the columns `reference` and `translation`. They are not read if an
            earlier, interrupted run completed the word sets in `work`.
        work: Folder for the word sets and the runs of counts.
        folder: Empty folder for the lexicon.
        config: Maximum number of words, minimum count, and memory for counting.
        settings: What the record says of the input; its language decides how words are cut.

    Returns:
        The record of the lexicon, which is not written yet.

    Raises:
        InputError: No word pair reaches the minimum count.
    """
    if not WordSets.complete(work):
        write_word_sets(tables, work, config.words, settings.language)
    sets = WordSets(work)
    done = pairs_in(runs_of(work / FOLDER))
    with Progress("word pairs", sets.words.pairs, done=done, unit="pairs of sentences") as bar:
        runs = count_word_pairs(sets, work / FOLDER, int(config.memory * 1e9), bar.advance_to)
    with Progress("lexicon", unit="rows") as bar:
        ranges = merge_runs(runs, len(sets.words))
        rows = write_word_pairs(folder, ranges, sets.words, config.min_count, bar.advance_to)
    if not rows:
        # The work is of no use: a command with another `min_count` starts again.
        clear(work)
        raise InputError(
            f"no two words were counted {counted(config.min_count, 'time')} in {counted(sets.words.pairs, 'pair')} of "
            "sentences; lower `min_count`"
        )
    shutil.copyfile(work / WORDS, folder / WORDS)
    return LexiconRecord(
        settings=settings,
        pairs=sets.words.pairs,
        words=len(sets.words),
        word_pairs=rows,
        files={name: checksum(folder / name) for name in (TABLE, WORDS)},
        **made_with("numpy", "pyarrow"),
    )
