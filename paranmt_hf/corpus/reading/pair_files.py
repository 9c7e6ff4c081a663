"""Files of pairs: their kind, and checksums that identify them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from paranmt_hf.corpus.reading.phrases import first_line, holds_sentences, is_rule
from paranmt_hf.corpus.record import RELEASE_RECORD, ReleaseRecord
from paranmt_hf.corpus.release import read_record
from paranmt_hf.errors import InputError
from paranmt_hf.text.word_rules import ENGLISH
from paranmt_hf.util.files import checksum

logger = logging.getLogger(__name__)
PARQUET = b"PAR1"
NO_PHRASES = {".csv", ".json", ".jsonl"}  # Forms of pairs of sentences that could be taken for a list of words


@dataclass(frozen=True)
class PairFiles:
    """Parquet files, and their identity as JSON values.

    `released` tells whether they belong to a release, so that their columns are those of `schema`.
    """

    files: list[Path]
    identity: Any
    released: bool


def checksums(release: Path, files: Sequence[Path], subset: str) -> dict[str, str]:
    """Checksum of each file of a config of a release by its relative path; from the record if there is one."""
    if (release / RELEASE_RECORD).is_file():
        config = read_record(release, [subset]).configs[subset]
        return dict(config.files)
    return {file.relative_to(release).as_posix(): checksum(file) for file in files}


def language_of(release: Path) -> dict[str, str]:
    """Entry `language` of the identity of a release; empty for English or without a record."""
    if not (release / RELEASE_RECORD).is_file():
        return {}
    language = ReleaseRecord.read(release).language
    return {} if language == ENGLISH else {"language": language}


def check_phrases(path: Path) -> None:
    """Reject a file that does not hold phrases or words."""
    first = first_line(path)
    if NO_PHRASES.intersection(map(str.lower, path.suffixes)) or first.startswith(("{", "[{")):
        raise InputError(
            f"{path} is CSV or JSON; expected a file of PPDB, or a list of words and their paraphrases. Write "
            "pairs as TSV or Parquet, and make a release of them first (`paranmt import`)"
        )
    if holds_sentences(path):
        raise InputError(
            f"{path} seems to hold single sentences; expected pairs, such as a release, a file of PPDB, or a list "
            "with a word and its paraphrases on each line. For single sentences there is `paranmt train-sent2vec`"
        )
    if not is_rule(first):
        # Any text looks like a list, so log how it is read.
        logger.info(f"{path} is read as a list: on each line a word, and behind it its paraphrases")


def describe(file: Path) -> str:
    """Identify a Parquet file by its name and content; copies are equal, whatever their dates."""
    size, rows = file.stat().st_size, pq.read_metadata(file).num_rows
    return f"{file.name} {size} bytes, {rows} rows, sha256:{checksum(file)}"


def is_parquet(path: Path) -> bool:
    """Whether a file begins with the Parquet signature."""
    if path.is_file():
        with path.open("rb") as file:
            return file.read(len(PARQUET)) == PARQUET
    return False


def is_release(source: str) -> bool | None:
    """Whether a source is the folder of a release; None if it is neither a file nor a folder."""
    path = Path(source).expanduser()
    if not path.exists():
        return None
    return path.is_dir() and ((path / RELEASE_RECORD).exists() or not any(path.glob("*.parquet")))


def languages(data: Mapping[str, Any]) -> list[str]:
    """ISO 639-1 codes of the languages in an identity of pairs; empty for English alone."""
    # A release has a name or a revision on the Hub; other datasets have a kind.
    releases = [
        source
        for source in data["sources"]
        if isinstance(source, Mapping) and "kind" not in source and source.keys() & {"release", "revision"}
    ]
    named = {str(source.get("language", ENGLISH)) for source in releases}
    # Of text, which `paranmt distill` names.
    named |= {str(data["language"])} if "language" in data else set()
    return [] if named <= {ENGLISH} else sorted(named)
