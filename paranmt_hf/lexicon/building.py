"""A lexicon from pairs of sentences, step by step in a work folder; each step that is complete is not done again."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa

from paranmt_hf.errors import InputError
from paranmt_hf.lexicon.config import LexiconConfig
from paranmt_hf.lexicon.counting import FOLDER, count_word_pairs, runs_of
from paranmt_hf.lexicon.merging import merged
from paranmt_hf.lexicon.record import TABLE, WORDS, LexiconRecord, LexiconSettings
from paranmt_hf.lexicon.word_sets import WordSets, write_word_sets
from paranmt_hf.lexicon.writing import write_word_pairs
from paranmt_hf.util.files import checksum
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import made_with
from paranmt_hf.util.run import clear


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
    with Progress("word pairs", sets.words.pairs, done=_counted(work), unit="pairs of sentences") as progress:
        runs = count_word_pairs(sets, work / FOLDER, config.memory_bytes, progress.advance_to)
    with Progress("lexicon", unit="rows") as progress:
        ranges = merged(runs, len(sets.words))
        rows = write_word_pairs(folder, ranges, sets.words, config.min_count, progress.advance_to)
    if not rows:
        # Nothing here is worth keeping for a command with another option.
        clear(work)
        raise InputError(
            f"no two words were counted {config.min_count:,} times in {sets.words.pairs:,} pairs of sentences; "
            "lower --min-count"
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


def _counted(work: Path) -> int:
    """Pairs of sentences that an earlier run counted."""
    runs = runs_of(work / FOLDER)
    return runs[-1].last if runs else 0
