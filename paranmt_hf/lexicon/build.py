"""`paranmt lexicon`: a lexicon of word paraphrases is built from a corpus, looked up, and evaluated.

ParaNMT-50M (arXiv:1711.05732), appendix A.1, tables 12 and 13.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.bitext.phrases import read_word_scores
from paranmt_hf.corpus.pair_files import languages
from paranmt_hf.corpus.pairs import Pairs, PairSelection
from paranmt_hf.errors import InputError
from paranmt_hf.lexicon.counting import FOLDER, count_word_pairs, merged, runs_of
from paranmt_hf.lexicon.lexicon import (
    TABLE,
    TABLE_COUNT,
    WORDS,
    Lexicon,
    LexiconConfig,
    LexiconRecord,
    LexiconSettings,
    Paraphrase,
)
from paranmt_hf.lexicon.pmi import write_word_pairs
from paranmt_hf.lexicon.word_sets import WordSets, write_word_sets
from paranmt_hf.lexicon.word_similarity import (
    WordSimilarity,
    evaluate_word_scores,
    in_both_orders,
    read_word_pairs,
)
from paranmt_hf.text.word_rules import ENGLISH
from paranmt_hf.util.files import checksum
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import made_with
from paranmt_hf.util.run import clear, result_folder, run
from paranmt_hf.util.settings import Count
from paranmt_hf.util.tables import text_table


def build_lexicon(
    data: str | Path | Sequence[str | Path], out: str | Path, *, config: LexiconConfig | None = None
) -> Lexicon:
    """Build a lexicon of word paraphrases from a corpus.

    Work in progress is in `OUT.work`; after an interruption the same command continues there.

    Args:
        data: Releases, Parquet files with the columns of a release, scores and lengths included, or releases on the
            Hub.
        out: Folder of the lexicon.
        config: Which sentence pairs and words count, and how much memory it may take.
    """
    config, out = config or LexiconConfig(), result_folder(out, LexiconRecord)
    sources = [data] if isinstance(data, str | Path) else list(data)
    # Scores are numbers of single precision, and the one that is nearest to 0.35 lies below it.
    min_score = float(np.float32(config.min_score))
    pairs = Pairs(sources, PairSelection(min_score=min_score, max_length=config.max_length))
    settings = LexiconSettings(pairs.identity, config.words, config.min_count, _language(pairs.identity))
    return run(
        out,
        settings,
        LexiconRecord,
        lambda work, folder: build(lambda: _counted(pairs, config), work, folder, config, settings),
        result=lambda folder, record, fresh: Lexicon(folder, record),
        command="lexicon build",
        holds=holds_word_sets,
    )


def _language(pairs: Mapping[str, Any]) -> str:
    """The language of the pairs; several are refused."""
    spoken = languages(pairs)
    if len(spoken) > 1:
        raise InputError(
            f"the releases are of several languages ({', '.join(spoken)}), and a lexicon has words of one; make one "
            "of each"
        )
    return spoken[0] if spoken else ENGLISH


def _counted(pairs: Pairs, config: LexiconConfig) -> Iterator[pa.Table]:
    """Read the pairs that count, and refuse a corpus that has none."""
    kept = 0
    with Progress("words", unit="pairs of sentences") as progress:
        for table in pairs.batches():
            yield table
            kept += table.num_rows
            progress.advance_to(pairs.read)
    if not kept:
        raise InputError(
            f"none of {pairs.read:,} pairs of sentences counts: expected a paraphrase score of at least "
            f"{config.min_score:g} and at most {config.max_length} word tokens on each side; a pair without a score "
            "does not count. Change `min_score` or `max_length`, or score the release (`paranmt score`)"
        )


@dataclass(frozen=True)
class NearestWords:
    """Paraphrases of words.

    Attributes:
        by_adjusted_pmi: Paraphrases of each word, the best first.
        by_pmi: The same by PMI.
        min_count: How often each was counted at least.
    """

    by_adjusted_pmi: dict[str, list[Paraphrase]]
    by_pmi: dict[str, list[Paraphrase]]
    min_count: int

    def to_json(self) -> dict[str, Any]:
        """The paraphrases as JSON values."""
        both = {"adjusted_pmi": self.by_adjusted_pmi, "pmi": self.by_pmi}
        return {word: {by: [asdict(one) for one in both[by][word]] for by in both} for word in self.by_pmi}

    def summary(self) -> str:
        """Tables of the paraphrases of each word, by both scores next to each other."""
        return "\n\n".join(self._table(word) for word in self.by_pmi)

    def _table(self, word: str) -> str:
        if not self.by_adjusted_pmi[word]:
            return f"{word}: no paraphrase was counted at least {self.min_count:,} times (`min_count`)"
        rows = []
        for left, right in zip(self.by_adjusted_pmi[word], self.by_pmi[word], strict=True):
            scores = f"{left.adjusted_pmi:.2f}", f"{right.pmi:.2f}"
            rows.append((left.word, scores[0], f"{left.count:,}", right.word, scores[1], f"{right.count:,}"))
        return text_table((f"{word}, by adjusted PMI", "", "count", "by PMI", "", "count"), rows, left=(0, 3))


def nearest_words(
    lexicon: str | Path, words: str | Sequence[str], *, top: Count = 10, min_count: int = TABLE_COUNT
) -> NearestWords:
    """Find the paraphrases of words in a lexicon, by adjusted PMI and by PMI (ParaNMT-50M, table 12).

    Args:
        lexicon: Folder of the lexicon.
        words: The words.
        top: Number of paraphrases of each word.
        min_count: Leave out paraphrases that were counted less often.
    """
    opened = Lexicon.open(lexicon)
    words = [words] if isinstance(words, str) else words
    adjusted, plain = (
        {word: opened.nearest(word, top=top, by=by, min_count=min_count) for word in words}
        for by in ("adjusted_pmi", "pmi")
    )
    return NearestWords(adjusted, plain, min_count)


@dataclass(frozen=True)
class LexiconEvaluation:
    """Correlations of a lexicon's scores with word similarities.

    Attributes:
        results: Of PPDB, if it was given, of PMI, and of adjusted PMI.
    """

    results: list[WordSimilarity]

    def to_json(self) -> list[dict[str, Any]]:
        """The results as JSON values."""
        return [asdict(result) for result in self.results]

    def summary(self) -> str:
        """A table of the results."""
        head = ("", "word pairs", "seen", "Spearman x 100")
        rows = [(one.name, f"{one.pairs:,}", f"{one.seen:,}", f"{100 * one.spearman:.1f}") for one in self.results]
        return text_table(head, rows)


def evaluate_lexicon(
    lexicon: Lexicon | str | Path, *, simlex: str | Path, ppdb: str | Path | None = None
) -> LexiconEvaluation:
    """Evaluate a lexicon on SimLex-999 (ParaNMT-50M, arXiv:1711.05732, table 13).

    Args:
        lexicon: Folder of the lexicon.
        simlex: SimLex-999, or another file of word, word and similarity, separated by tabs.
        ppdb: Lexical paraphrases of PPDB as a baseline, plain or .gz.
    """
    opened = lexicon if isinstance(lexicon, Lexicon) else Lexicon.open(lexicon)
    pairs = read_word_pairs(simlex)
    wanted = in_both_orders(pairs)
    results = []
    if ppdb is not None:
        results.append(evaluate_word_scores(pairs, *read_word_scores(ppdb, wanted)))
    rows = opened.lookup(wanted)
    results.append(evaluate_word_scores(pairs, {pair: row.pmi for pair, row in rows.items()}, "PMI"))
    adjusted = {pair: row.adjusted_pmi for pair, row in rows.items()}
    return LexiconEvaluation([*results, evaluate_word_scores(pairs, adjusted, "adjusted PMI")])


def holds_word_sets(work: Path) -> bool:
    """Tell whether a work folder holds what took long to make."""
    return WordSets.complete(work)


def build(
    tables: Callable[[], Iterable[pa.Table]],
    work: Path,
    folder: Path,
    config: LexiconConfig,
    settings: LexiconSettings,
) -> LexiconRecord:
    """Make a lexicon.

    Args:
        tables: Gives the pairs of sentences that count, as tables with the columns `reference` and `translation`.
        work: The work folder, perhaps with what an earlier run left.
        folder: An empty folder for the files of the lexicon.
        config: The settings.
        settings: What determines the lexicon, for its record.
    """
    if not WordSets.complete(work):
        write_word_sets(tables(), work, config.words, settings.language)
    sets = WordSets(work)
    with Progress("word pairs", sets.words.pairs, done=_counted_pairs(work), unit="pairs of sentences") as progress:
        runs = count_word_pairs(sets, work / FOLDER, config.memory_bytes, progress.advance_to)
    with Progress("lexicon", unit="rows") as progress:
        ranges = merged(runs, len(sets.words))
        rows = write_word_pairs(folder, ranges, sets.words, config.min_count, progress.advance_to)
    if not rows:
        # Nothing here is worth keeping for a command with another option.
        clear(work)
        raise InputError(
            f"no two words were counted {config.min_count:,} times in {sets.words.pairs:,} pairs of sentences; "
            "lower `min_count`"
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


def _counted_pairs(work: Path) -> int:
    """Pairs of sentences that an earlier run counted."""
    runs = runs_of(work / FOLDER)
    return runs[-1].last if runs else 0
