"""`paranmt dedup`: drop repeated texts of a file, by their letters, their word bigrams, or their meaning."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.reading.formats import open_table
from paranmt_hf.corpus.reading.normalisation import decode, normalise
from paranmt_hf.corpus.reading.pairs import plain
from paranmt_hf.corpus.reading.plain_text import PlainText
from paranmt_hf.corpus.reading.tables import Table
from paranmt_hf.corpus.scoring.differences import Differences
from paranmt_hf.corpus.scoring.mismatch_columns import DEFINITION
from paranmt_hf.corpus.selection.duplicates import (
    COSINE,
    JACCARD,
    Likeness,
    NearDuplicateSearch,
    cut_between,
    decide_pairs,
)
from paranmt_hf.corpus.selection.minhash import BATCH, FIRST, CandidateFiles
from paranmt_hf.corpus.selection.run_filters import dropped_file, dropped_lines
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.search.dropped_texts import DROPPED, dropped_rows, write_dropped
from paranmt_hf.search.indexed_vectors import SEARCH, encoded
from paranmt_hf.search.storage import (
    WRITTEN,
    StoredSentences,
    Vectors,
    normalised,
    spans,
    write_encoded,
    write_in_order,
    write_sentences,
)
from paranmt_hf.text.identity import first_equal, hash_texts
from paranmt_hf.text.word_rules import ENGLISH
from paranmt_hf.util.files import replacing, result_file, write_bytes
from paranmt_hf.util.markers import Advanced, AlsoWrites, Count, Range, RunOnly
from paranmt_hf.util.packed import PACKED, plain_name
from paranmt_hf.util.progress import QUIET_SECONDS, Progress
from paranmt_hf.util.records import FileRecord, Record, as_json, made_with
from paranmt_hf.util.run import Result, result_folder, run
from paranmt_hf.util.settings import Settings
from paranmt_hf.util.wording import counted
from paranmt_hf.util.work import working

Method = Literal["exact", "near", "meaning"]
METHODS: tuple[Method, ...] = ("exact", "near", "meaning")
MAX_EXACT_ROWS = 10_000  # Up to this many texts are compared with all others
STORED, SORTED = "stored", "sorted.npy"


@dataclass(frozen=True)
class DedupConfig(Settings):
    """What counts as a repetition.

    Attributes:
        by: Methods, which run in this order: `exact`, the same letters and digits, case aside, which always runs;
            `near`, much the same pairs of neighbouring words; `meaning`, much the same vector of an encoder.
        similarity: Of `near`: smallest Jaccard similarity of the sets of word bigrams.
        cosine: Of `meaning`: smallest cosine.
        keep_differing: Keep texts that differ in a number, a unit, a negation, a name or an address. By default `near`
            drops them, and `meaning` keeps them.
        language: Language of the texts, as an ISO 639-1 code; it decides how words are cut.
        lists: Of `meaning`: number of lists of an inverted index; 1 compares all texts. By default 1 for few texts,
            else the square root of their number.
        probes: Number of lists that are searched for each text.
    """

    by: tuple[Method, ...] = ("exact", "near")
    similarity: Annotated[float, Range(above=0, at_most=1)] = JACCARD
    cosine: Annotated[float, Range(above=0, at_most=1)] = COSINE
    keep_differing: bool | None = None
    language: Annotated[str, Advanced] = ENGLISH
    lists: Annotated[Count | None, SEARCH, Advanced] = None
    probes: Annotated[Count, SEARCH, Advanced] = 8


@dataclass(frozen=True, kw_only=True)
class DedupRecord(Record):
    """The record of a dataset without repetitions."""

    FILE: ClassVar[str] = "dedup.json"
    KIND: ClassVar[str] = "texts without repetitions (`paranmt dedup`)"

    rows: int  # Rows that were read
    dropped: dict[str, int]  # Rows that each method dropped, in the order of application
    undecodable: int  # Rows whose text is not UTF-8; they are all kept


@dataclass(frozen=True, kw_only=True)
class DedupFileRecord(FileRecord, DedupRecord):
    """The record of a file without repetitions."""


class Deduplicated(Result[DedupRecord]):
    """A file or a dataset without repetitions."""

    def summary(self) -> str:
        """Count the rows that each method dropped."""
        rows, dropped, state = self.record.rows, self.record.dropped, "" if self.fresh else " (was made already)"
        head = f"{self.folder}: {rows - sum(dropped.values()):,} of {counted(rows, 'row')}{state}"
        lines = [head, *dropped_lines(rows, dropped.items())]
        if count := self.record.undecodable:
            lines.append(f"{counted(count, 'text')} not in UTF-8: compared with none, and kept")
        return "\n".join(lines)


def dedup(
    file: str | Path,
    out: str | Path,
    *,
    column: str | None = None,
    config: DedupConfig | None = None,
    encoder: str | Path | None = None,
    keep_dropped: Annotated[str | Path | None, RunOnly, AlsoWrites] = None,
) -> Deduplicated:
    """Drop the texts of a file that repeat an earlier one; the others keep their order and their format.

    Each method sees what those before it kept, and drops a text if and only if it is like an earlier one that the
    method keeps. A text without a letter or a digit is like none. With `keep_differing`, texts that differ in a
    number, a unit, a negation, a name or an address are not alike.

    Args:
        file: Text file with a sentence or document on each line; TSV, CSV, JSON lines, JSON or Parquet
            (docs/formats.md); or a folder that `Dataset.save_to_disk` wrote.
        out: The new file, whose name ends as that of `file` does, or the new folder.
        column: Column of the texts, by its name or number, unless it is the only one of text.
        config: What counts as a repetition.
        encoder: Encoder of `meaning`: folder, Hub id, or file of word vectors; the small encoder of this package if
            left out.
        keep_dropped: Parquet file for the dropped rows: line, text, method, similarity, and the line they are like.
    """
    table, config = open_table(file, [] if column is None else [column]), config or DedupConfig()
    table.check_writable()
    if isinstance(table, PlainText) and column is not None:
        raise InputError(
            f"{table.path} is a text file, which has no columns; leave `column` out", option="column", path=table.path
        )
    folder = table.path.is_dir()
    suffix = table.path.suffix.lower()
    if not isinstance(table, PlainText) and suffix in PACKED:
        # `.csv.gz`, since `.gz` alone would be text to the next command.
        suffix = Path(plain_name(table.path)).suffix.lower() + suffix
    suffixes = [suffix] if suffix else []
    out = result_folder(out, DedupRecord, sources=[table.path]) if folder else result_file(out, suffixes)
    config = replace(config, by=tuple(method for method in METHODS if method in ("exact", *config.by)))
    search = _Deduplication(table, table.text_column(column), config, NamedEncoder.of(encoder))
    dropped = dropped_file(keep_dropped, table.path, out, search.checksum)

    kind: type[DedupRecord] = DedupRecord if folder else DedupFileRecord

    def make(work: Path, path: Path) -> DedupRecord:
        counts, kept = search.run(work, dropped)
        table.write(path, kept)
        search.check_unchanged()
        return kind(
            settings=search.identity,
            rows=len(kept),
            dropped=counts,
            undecodable=search.undecodable,
            **made_with("numpy", "pyarrow"),
        )

    # What each method found serves others of its settings too.
    input = {"input": search.identity["input"]}
    made = run(
        out, search.identity, kind, make, result=Deduplicated, command="dedup", holds=_holds, work_identity=input
    )
    if dropped is not None and not dropped.exists():
        with working(out, "dedup", input, _holds) as work:
            search.run(work, dropped)
    return made


def _holds(work: Path) -> bool:
    """Whether a work folder holds what took long."""
    return any(work.glob("*.npy")) or any(work.rglob(WRITTEN))


class _Deduplication:
    """Finds the repetitions of a file; each method keeps what it found in the work folder."""

    def __init__(self, table: Table, column: str, config: DedupConfig, encoder: NamedEncoder) -> None:
        self.table, self.column, self.config, self.encoder = table, column, config, encoder
        self.undecodable = 0  # Texts that are not UTF-8
        self._input = table.identity
        self._loaded: Any = None
        by_meaning = "meaning" in config.by
        if by_meaning:
            encoder.check_language(config.language)
        self.identity = as_json(
            {
                "input": {**self._input, "column": column},
                "dedup": asdict(config),
                **({"encoder": encoder.identity} if by_meaning else {}),
                **({"mismatches": DEFINITION} if any(map(self._keeps_differing, METHODS)) else {}),
            }
        )

    def _keeps_differing(self, method: Method) -> bool:
        """Whether a method keeps texts that differ: `meaning` does by default."""
        keeps = self.config.keep_differing
        return method in self.config.by and (method == "meaning" if keeps is None else keeps)

    @property
    def checksum(self) -> str:
        """Identifies the work in the file of dropped rows."""
        return hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()

    def run(self, work: Path, file: Path | None) -> tuple[dict[str, int], np.ndarray]:
        """Find the repetitions, and write them into a file; returns counts for each method, and kept rows [row]."""
        texts = self._stored(work / STORED)
        methods: dict[Method, Callable[[StoredSentences, np.ndarray, Path], np.ndarray]] = {
            "exact": _exact,
            "near": self._near,
            "meaning": self._meaning,
        }
        compared, found = _worded(texts), {}
        names = {method: f"{method}-{self._key(method)}" for method in self.config.by}
        if "meaning" in names and not (work / f"{names['meaning']}.npy").exists():
            # An encoder that cannot be loaded is refused before texts are compared.
            self._loaded = self.encoder.load()
        for method in self.config.by:
            # Vectors serve every cosine.
            path, folder = work / f"{names[method]}.npy", work / f"{method}-{self._key(method, own=False)}"
            if not path.exists():
                folder.mkdir(exist_ok=True)
                repeats = methods[method](texts, np.flatnonzero(compared), folder)
                with replacing(path) as aside, aside.open("wb") as opened:
                    np.save(opened, repeats, allow_pickle=False)
            shutil.rmtree(folder, ignore_errors=True)
            found[method] = np.load(path, allow_pickle=False)
            compared[found[method]["row"]] = False
        if file is not None:
            with replacing(file) as aside:
                write_dropped(aside, texts, found, self.checksum)
        kept = np.ones(len(texts), bool)
        for rows in found.values():
            kept[rows["row"]] = False
        return {method: len(rows) for method, rows in found.items()}, kept

    def _key(self, method: Method, *, own: bool = True) -> str:
        """Identifies the work of a method by the settings of those before it, its encoder, and its own settings."""
        config = self.config
        settings: dict[Method, dict[str, Any]] = {
            "exact": {},
            "near": {"similarity": config.similarity, "language": config.language},
            "meaning": {"cosine": config.cosine, "lists": config.lists, "probes": config.probes},
        }
        differing = {"mismatches": DEFINITION, "language": config.language}
        used = [
            {name: settings[name] | (differing if self._keeps_differing(name) else {})}
            for name in config.by[: config.by.index(method) + own]
        ]
        named = [self.encoder.identity] if method == "meaning" else []
        return hashlib.sha256(json.dumps([used, named], sort_keys=True).encode()).hexdigest()[:16]

    def _stored(self, folder: Path) -> StoredSentences:
        """Store all texts, so that any of them can be read."""
        complete = folder / "complete"
        if not complete.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            write_sentences(_numbered(self._texts()), folder, copies=True)
            self.check_unchanged()
            write_bytes(complete, str(self.undecodable).encode())
        self.undecodable = int(complete.read_bytes())
        return StoredSentences(folder)

    def _texts(self) -> Iterator[pa.Array]:
        """Read the texts of all rows, as the corpus stores them; empty where one is missing or not UTF-8."""
        self.undecodable = 0
        for piece in self.table.pieces([self.column]):
            raw = piece.columns[0]
            text = decode(raw)
            self.undecodable += text.null_count - raw.null_count
            yield normalise(text.fill_null(""))

    def check_unchanged(self) -> None:
        """Reject a file that was changed or replaced since it was opened: its rows would be mixed up."""
        if self.table.identity != self._input:
            raise InputError(
                f"{self.table.path} has changed since this command began to read it; nothing was written: run the "
                "command again when the file is complete",
                path=self.table.path,
            )

    def _near(self, texts: StoredSentences, rows: np.ndarray, folder: Path) -> np.ndarray:
        for path in folder.iterdir():
            path.unlink()
        likeness, language = Likeness(self.config.similarity), self.config.language
        differences = self._differences(texts, rows) if self._keeps_differing("near") else None
        with closing(NearDuplicateSearch(folder, likeness, language, differences=differences)) as search:
            with Progress("cut into words", len(rows), unit="rows", least=QUIET_SECONDS) as progress:
                for start, stop in spans(len(rows), BATCH):
                    search.add([texts.take(rows[start:stop]).cast(pa.string())])
                    progress.advance_to(stop)
            with Progress("compare words", unit="steps", least=QUIET_SECONDS) as progress:
                repeats = search.repeats(progress)
            later = np.flatnonzero(repeats >= 0)
            return dropped_rows(rows[later], rows[repeats[later]], search.similarities(repeats[later], later))

    def _meaning(self, texts: StoredSentences, rows: np.ndarray, folder: Path) -> np.ndarray:
        def encode(start: int, stop: int) -> np.ndarray:
            return encoded(self._loaded, texts.take(rows[start:stop]).to_pylist())

        if not len(rows):
            return np.empty(0, DROPPED)
        vectors, count = write_encoded(folder, len(rows), encode, "float16"), self.config.lists
        if count is None:
            count = 1 if len(rows) <= MAX_EXACT_ROWS else round(math.sqrt(len(rows)))
        differences = self._differences(texts, rows) if self._keeps_differing("meaning") else None
        repeats = self._in_lists(vectors, min(count, len(rows)), folder, differences)
        later = np.flatnonzero(repeats >= 0)
        parts = [
            np.einsum("pd,pd->p", *(normalised(vectors.take(some[start:stop])) for some in (repeats[later], later)))
            for start, stop in spans(len(later), BATCH)
        ]
        return dropped_rows(rows[later], rows[repeats[later]], np.concatenate([np.empty(0), *parts]))

    def _differences(self, texts: StoredSentences, rows: np.ndarray) -> Differences:
        return Differences(lambda some: texts.take(rows[some]).cast(pa.string()), language=self.config.language)

    def _in_lists(self, vectors: Vectors, count: int, folder: Path, differences: Differences | None) -> np.ndarray:
        """For each vector the first earlier kept one that is like it, -1 if it is kept [vector]."""
        # Imports torch, which the help of the command does not need.
        from paranmt_hf.search.inverted_index import SHARD, InvertedIndex, alike

        lists = InvertedIndex.make(vectors, count)
        write_in_order(vectors, lists.order, folder / SORTED, "float16")
        for path in folder.glob("pairs-*"):
            path.unlink()
        pairs, repeats = CandidateFiles(folder, len(vectors)), np.full(len(vectors), -1, np.int64)
        signatures = differences.signatures(len(vectors)) if differences else None
        found = alike(Vectors(folder / SORTED), lists, self.config.probes, self.config.cosine, FIRST, signatures)
        with Progress("compare", count * -(-len(vectors) // SHARD), unit="lists", least=QUIET_SECONDS) as progress:
            for earlier, later in found:
                pairs.append(earlier, later)
                progress.advance_to(progress.rows + 1)
        for block in pairs.blocks():
            for earlier, later in cut_between(*block):
                if differences:
                    # Texts that are decided and were dropped need no comparison.
                    open_ = repeats[earlier] < 0
                    open_[open_] = ~differences.between(earlier[open_], later[open_])
                    earlier, later = earlier[open_], later[open_]  # noqa: PLW2901
                decide_pairs(earlier, later, repeats)
        return repeats


def _numbered(columns: Iterator[pa.Array]) -> Iterator[pa.RecordBatch]:
    read = 0
    for column in columns:
        ids = pa.array(np.arange(read, read + len(column)))
        read += len(column)
        yield pa.record_batch([ids, column], names=["id", "sentence"])


def _worded(texts: StoredSentences) -> np.ndarray:
    """Mark the texts [row] that have a letter or a digit."""
    found = np.empty(len(texts), bool)
    for start, stop in spans(len(texts), BATCH):
        column = texts.take(np.arange(start, stop)).cast(pa.string())
        found[start:stop] = pc.not_equal(plain(column), "").to_numpy(zero_copy_only=False)
    return found


def _exact(texts: StoredSentences, rows: np.ndarray, folder: Path) -> np.ndarray:
    def letters_of(some: np.ndarray) -> pa.Array:
        return plain(texts.take(rows[some]).cast(pa.string()))

    hashes = [hash_texts(letters_of(np.arange(start, stop))) for start, stop in spans(len(rows), BATCH)]
    repeats = first_equal(np.concatenate([np.empty(0, np.uint64), *hashes]), letters_of)
    later = np.flatnonzero(repeats >= 0)
    return dropped_rows(rows[later], rows[repeats[later]], np.ones(len(later)))
