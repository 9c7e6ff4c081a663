"""Find the texts of a file that repeat an earlier one, by each method of `paranmt dedup`."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.reading.normalisation import decode, normalise
from paranmt_hf.corpus.reading.pairs import plain
from paranmt_hf.corpus.reading.splitting import SentenceSplitter, split_rows
from paranmt_hf.corpus.reading.tables import Table
from paranmt_hf.corpus.selection.minhash import BATCH
from paranmt_hf.corpus.selection.near_duplicates import FIRST, SIMILARITY, CandidateFiles, NearDuplicateSearch, decide
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.meaning.differences import MEANING_DEFINITION, DifferentDocuments
from paranmt_hf.meaning.mismatch_columns import DEFINITION
from paranmt_hf.search.indexed_vectors import SEARCH, SORTED, encoded
from paranmt_hf.search.kept_texts import KeptTexts, write_dropped
from paranmt_hf.search.storage import (
    StoredSentences,
    Vectors,
    normalised,
    spans,
    write_encoded,
    write_in_order,
    write_sentences,
)
from paranmt_hf.text.identity import first_equal, hash_texts
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.text.word_rules import ENGLISH
from paranmt_hf.util.files import replacing, write_bytes
from paranmt_hf.util.markers import Advanced, Count, Range
from paranmt_hf.util.progress import QUIET_SECONDS, Progress
from paranmt_hf.util.records import as_json
from paranmt_hf.util.settings import Settings

Method = Literal["exact", "near", "meaning"]
METHODS: tuple[Method, ...] = ("exact", "near", "meaning")
# What a method finds: a row that it drops, the earlier row that it is like, and their similarity.
DROPPED = np.dtype([("row", np.int64), ("like", np.int64), ("score", np.float32)])


@dataclass(frozen=True)
class DedupConfig(Settings):
    """What counts as a repetition.

    Attributes:
        by: Methods, which run in this order: `exact` finds the same letters and digits, case aside, and always runs;
            `near` finds much the same pairs of neighbouring words; `meaning` finds much the same vector of an encoder.
        similarity: Smallest Jaccard similarity of two texts' sets of word bigrams, for `near`.
        cosine: Smallest cosine of two texts, for `meaning`.
        same_meaning: Drop only texts that mean the same: keep those that differ in a number, a negation, a name, an
            opposite, the order of words and so on (docs/meaning.md). By default `near` drops them, and `meaning` keeps
            them.
        language: Language of the texts, as an ISO 639-1 code; it decides how words are cut, and which
            encoder of this package is used.
        lists: Number of lists of the inverted index of `meaning`; 1 compares each text with all others. By default 1
            for few texts, else the square root of their number.
        probes: Number of lists that each text is compared with, for `meaning`.
    """

    by: tuple[Method, ...] = ("exact", "near")
    similarity: Annotated[float, Range(above=0, at_most=1)] = SIMILARITY
    cosine: Annotated[float, Range(above=0, at_most=1)] = 0.95
    same_meaning: bool | None = None
    language: Annotated[str, Advanced] = ENGLISH
    lists: Annotated[Count | None, SEARCH, Advanced] = None
    probes: Annotated[Count, SEARCH, Advanced] = 8


# Returns the texts with some numbers; texts are numbered from 0, without those that earlier methods dropped.
Read = Callable[[np.ndarray], pa.Array]


class Deduplication:
    """A search for texts of a file that repeat an earlier one.

    The results of each method are kept in the work folder, and serve later runs with other settings.

    Args:
        table: The file.
        column: Name or number of the column of the texts.
        config: What counts as a repetition.
        encoder: The encoder of `meaning`.
        splitter: How the texts of the file are split into the texts that are compared; None if they are not split.
    """

    def __init__(
        self,
        table: Table,
        column: str,
        config: DedupConfig,
        encoder: NamedEncoder,
        splitter: SentenceSplitter | None = None,
    ) -> None:
        self.table, self.column, self.config, self.encoder = table, column, config, encoder
        self.splitter = splitter
        self.undecodable = 0  # Number of texts that are not UTF-8, known once the texts are stored
        self._input = table.identity
        split = {} if splitter is None else {"split": splitter.identity}
        identity: dict[str, Any] = {"input": {**self._input, "column": column, **split}, "dedup": asdict(config)}
        if "meaning" in config.by:
            encoder.check_language(config.language)
            identity["encoder"] = encoder.identity
        if any(self._needs_same_meaning(method) for method in config.by):
            identity["mismatches"] = [DEFINITION, MEANING_DEFINITION]
        self.identity = as_json(identity)

    def _needs_same_meaning(self, method: Method) -> bool:
        """Return whether a method keeps texts that do not mean the same; by default only `meaning` does."""
        return method == "meaning" if self.config.same_meaning is None else self.config.same_meaning

    @property
    def checksum(self) -> str:
        """Checksum of the input and the settings, which the file of dropped rows carries."""
        return _checksum(self.identity)

    @cached_property
    def _loaded(self) -> Encoder:
        """The encoder, loaded on first use."""
        return self.encoder.load()

    def check_unchanged(self) -> None:
        """Raise `InputError` if the file was changed since it was opened, because its rows would be mixed up."""
        if self.table.identity != self._input:
            raise InputError(
                f"{self.table.path} has changed since this command began to read it; nothing was written: run the "
                "command again when the file is complete",
                path=self.table.path,
            )

    def run(self, work: Path, file: Path | None) -> tuple[dict[str, int], KeptTexts]:
        """Run all methods, or read the results that they left in the work folder.

        Args:
            work: Work folder.
            file: Parquet file for the dropped rows; None to write none.

        Returns:
            Number of texts that each method dropped, and which texts are kept.
        """
        texts = self._stored(work / "stored")
        rows_of = texts.lines(np.arange(len(texts)))
        found: dict[str, np.ndarray] = {}
        # A text without a letter or a digit is like none.
        compared = np.empty(len(texts), bool)
        for start, stop in spans(len(texts), BATCH):
            column = texts.take(np.arange(start, stop)).cast(pa.string())
            compared[start:stop] = pc.not_equal(plain(column), "").to_numpy(zero_copy_only=False)
        paths, folders = self._places(work)
        if "meaning" in paths and not paths["meaning"].exists():
            # If the encoder cannot be loaded, the command fails here, before texts are compared.
            _ = self._loaded
        for method, path in paths.items():
            if not path.exists():
                folders[method].mkdir(exist_ok=True)
                repeats = self._find(method, texts, np.flatnonzero(compared), folders[method])
                with replacing(path) as aside, aside.open("wb") as opened:
                    np.save(opened, repeats, allow_pickle=False)
            shutil.rmtree(folders[method], ignore_errors=True)
            found[method] = np.load(path, allow_pickle=False)
            compared[found[method]["row"]] = False
        if file is not None:
            with replacing(file) as aside:
                write_dropped(aside, texts, rows_of if self.splitter else None, found, self.checksum)
        kept = np.ones(len(texts), bool)
        for rows in found.values():
            kept[rows["row"]] = False
        return {method: len(rows) for method, rows in found.items()}, KeptTexts(rows_of, kept)

    def _places(self, work: Path) -> tuple[dict[Method, Path], dict[Method, Path]]:
        """Return the results file and the work folder of each method, by method.

        The name of the results file depends on the settings of the method and of those before it. The name of the work
        folder depends on the methods before it and the encoder alone, so that work such as vectors serves other
        settings of the method.
        """
        before: list[Any] = []
        paths, folders = {}, {}
        for method in self.config.by:
            encoder = self.encoder.identity if method == "meaning" else None
            folders[method] = work / f"{method}-{_checksum([before, encoder])[:16]}"
            before = [*before, method, encoder, self._settings(method)]
            paths[method] = work / f"{method}-{_checksum(before)[:16]}.npy"
        return paths, folders

    def _settings(self, method: Method) -> dict[str, Any]:
        """Return the settings that the results of a method depend on, as JSON values."""
        config = self.config
        settings: dict[str, Any] = {}
        if method == "near":
            settings = {"similarity": config.similarity, "language": config.language}
        elif method == "meaning":
            settings = {"cosine": config.cosine, "lists": config.lists, "probes": config.probes}
        if self._needs_same_meaning(method):
            settings |= {"mismatches": [DEFINITION, MEANING_DEFINITION], "language": config.language}
        return settings

    def _stored(self, folder: Path) -> StoredSentences:
        """Store all texts of the file in a folder for random access, unless an earlier run did, and open them."""
        complete = folder / "complete"
        if not complete.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            write_sentences(self._texts(), folder, copies=True)
            self.check_unchanged()
            write_bytes(complete, str(self.undecodable).encode())
        self.undecodable = int(complete.read_bytes())
        return StoredSentences(folder)

    def _texts(self) -> Iterator[pa.RecordBatch]:
        """Read the texts of all rows in normal form, with row numbers; a missing or undecodable text becomes empty."""
        self.undecodable = 0
        rows = 0
        for piece in self.table.pieces([self.column]):
            raw = piece.columns[0]
            numbers = np.arange(rows, rows + len(raw))
            rows += len(raw)
            if self.splitter is not None:
                split = split_rows({self.column: raw}, {self.column: self.splitter})
                raw, numbers = split.columns[0], numbers[split.documents]
            text = decode(raw)
            self.undecodable += text.null_count - raw.null_count
            yield pa.record_batch([pa.array(numbers), normalise(text.fill_null(""))], names=["id", "sentence"])

    def _find(self, method: Method, texts: StoredSentences, rows: np.ndarray, folder: Path) -> np.ndarray:
        """Find the rows, among the given ones, that a method drops.

        Args:
            method: The method.
            texts: Texts of all rows.
            rows: Rows that are compared, ascending.
            folder: Work folder of the method.

        Returns:
            The dropped rows with the rows that they are like, an array of type `DROPPED`.
        """
        config, count = self.config, len(rows)

        def read(places: np.ndarray) -> pa.Array:
            return texts.take(rows[places]).cast(pa.string())

        differences = DifferentDocuments(read, language=config.language) if self._needs_same_meaning(method) else None
        if method == "exact" or not count:
            repeats, scores = _exact(read, count)
        elif method == "near":
            repeats, scores = _near(read, count, config, differences, folder)
        else:
            repeats, scores = _alike_in_meaning(read, count, config, differences, folder, self._loaded)
        later = np.flatnonzero(repeats >= 0)
        found = np.empty(len(later), DROPPED)
        found["row"] = rows[later]
        found["like"] = rows[repeats[later]]
        found["score"] = scores.clip(-1, 1)
        return found


# The earlier text that each text repeats, -1 for none [text]; and the similarities of the texts that repeat one
# [repeating text].
Repeats = tuple[np.ndarray, np.ndarray]


def _exact(read: Read, count: int) -> Repeats:
    """Find the texts with the same letters and digits as an earlier one.

    Args:
        read: Reads texts by their numbers.
        count: Number of texts.
    """

    def letters_of(places: np.ndarray) -> pa.Array:
        return plain(read(places))

    hashes = [np.empty(0, np.uint64)]
    for start, stop in spans(count, BATCH):
        hashes.append(hash_texts(letters_of(np.arange(start, stop))))
    repeats = first_equal(np.concatenate(hashes), letters_of)
    return repeats, np.ones(np.count_nonzero(repeats >= 0))


def _near(
    read: Read, count: int, config: DedupConfig, differences: DifferentDocuments | None, folder: Path
) -> Repeats:
    """Find the texts with much the same word bigrams as an earlier one.

    Args:
        read: Reads texts by their numbers.
        count: Number of texts.
        config: Smallest similarity, and the language.
        differences: Finds texts that do not mean the same and are not alike; None if they may be alike.
        folder: Work folder of the method.
    """
    for path in folder.iterdir():
        path.unlink()
    with closing(NearDuplicateSearch(folder, config.similarity, config.language, differences=differences)) as search:
        with Progress("cut into words", count, unit="rows", least=QUIET_SECONDS) as progress:
            for start, stop in spans(count, BATCH):
                search.add([read(np.arange(start, stop))])
                progress.advance_to(stop)
        with Progress("compare words", unit="steps", least=QUIET_SECONDS) as progress:
            repeats = search.repeats(progress)
        later = np.flatnonzero(repeats >= 0)
        return repeats, search.similarities(repeats[later], later)


def _alike_in_meaning(
    read: Read, count: int, config: DedupConfig, differences: DifferentDocuments | None, folder: Path, encoder: Encoder
) -> Repeats:
    """Find the texts with much the same vector as an earlier one; other arguments are those of `_near`.

    Only vectors that meet in one of the lists are compared.
    """
    # Imports torch, which the help of the command does not need.
    from paranmt_hf.search.inverted_index import SHARD, InvertedIndex, alike

    def encode(start: int, stop: int) -> np.ndarray:
        return encoded(encoder, read(np.arange(start, stop)).to_pylist())

    def same_claims(earlier: np.ndarray, later: np.ndarray) -> np.ndarray:
        if differences is None:
            return np.ones(len(later), bool)
        return ~differences.between(earlier, later)

    vectors = write_encoded(folder, count, encode, "float16")
    # With few texts, each is compared with all others.
    default = 1 if count <= 10_000 else round(math.sqrt(count))
    lists = InvertedIndex.make(vectors, min(config.lists or default, count))
    write_in_order(vectors, lists.order, folder / SORTED, "float16")
    candidates = CandidateFiles(folder, count)
    signatures = None if differences is None else differences.signatures(count)
    found = alike(Vectors(folder / SORTED), lists, config.probes, config.cosine, FIRST, signatures)
    total = len(lists) * -(-count // SHARD) + candidates.blocks
    with Progress("compare", total, unit="steps", least=QUIET_SECONDS) as progress:
        for earlier, later in found:
            candidates.append(earlier, later)
            progress.advance_to(progress.rows + 1)
        repeats = decide(candidates, count, same_claims, progress)
    later = np.flatnonzero(repeats >= 0)
    cosines = np.empty(len(later))
    for start, stop in spans(len(later), BATCH):
        some = later[start:stop]
        sides = [normalised(vectors.take(places)) for places in (repeats[some], some)]
        cosines[start:stop] = np.einsum("pd,pd->p", *sides)
    return repeats, cosines


def _checksum(values: object) -> str:
    """Return the SHA-256 of JSON values, in hexadecimal."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
