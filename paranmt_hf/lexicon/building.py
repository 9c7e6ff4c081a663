"""A lexicon from pairs of sentences, step by step in a work folder; each step that is complete is not done again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from paranmt_hf.errors import InputError
from paranmt_hf.lexicon.config import LexiconConfig
from paranmt_hf.lexicon.counting import FOLDER, count_word_pairs, runs_of
from paranmt_hf.lexicon.merging import merged
from paranmt_hf.lexicon.record import LANGUAGE, RECORD, TABLE, WORDS, LexiconRecord
from paranmt_hf.lexicon.word_sets import WordSets, write_word_sets
from paranmt_hf.lexicon.writing import write_word_pairs
from paranmt_hf.text.word_rules import ENGLISH
from paranmt_hf.util.files import checksum, write_bytes, writing
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import to_json
from paranmt_hf.util.work import clear
from paranmt_hf.version import __version__

RESULT = "result"


def is_worth(work: Path) -> bool:
    """Tell whether what lies in a work folder took long to make."""
    return WordSets.complete(work)


def build(
    tables: Callable[[], Iterable[pa.Table]], work: Path, config: LexiconConfig, identity: dict[str, Any]
) -> Path:
    """Make a lexicon.

    Args:
        tables: Gives the pairs of sentences that count, as tables with the columns `reference` and `translation`.
        work: A folder that this has for itself, perhaps with what an earlier run left there.
        config: The settings.
        identity: What determines the result, for its record; under `language` the ISO 639-1 code of another language
            than English.

    Returns:
        The folder of the lexicon, in the work folder.

    Raises:
        InputError: No pair of words was counted often enough.
    """
    if not WordSets.complete(work):
        write_word_sets(tables(), work, config.words, identity.get(LANGUAGE, ENGLISH))
    sets = WordSets(work)
    with Progress("word pairs", sets.words.pairs, done=_counted(work), unit="pairs of sentences") as progress:
        runs = count_word_pairs(sets, work / FOLDER, config.memory_bytes, progress.advance_to)
    result = work / RESULT
    shutil.rmtree(result, ignore_errors=True)
    with writing(result):
        result.mkdir()
    with Progress("lexicon", unit="rows") as progress:
        ranges = merged(runs, len(sets.words))
        rows = write_word_pairs(result, ranges, sets.words, config.min_count, progress.advance_to)
    if not rows:
        # Nothing here is worth keeping for a command with another option.
        clear(work)
        raise InputError(
            f"no two words were counted {config.min_count:,} times in {sets.words.pairs:,} pairs of sentences; "
            "lower --min-count"
        )
    with writing(result / WORDS):
        shutil.copyfile(work / WORDS, result / WORDS)
    files = {name: checksum(result / name) for name in (TABLE, WORDS)}
    record = LexiconRecord(identity, sets.words.pairs, len(sets.words), rows, files, __version__)
    write_bytes(result / RECORD, f"{json.dumps(to_json(record), indent=1)}\n".encode())
    return result


def _counted(work: Path) -> int:
    """Pairs of sentences that an earlier run counted."""
    runs = runs_of(work / FOLDER)
    return runs[-1].last if runs else 0
