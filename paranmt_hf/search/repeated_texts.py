"""Find the texts of a file that repeat an earlier one, by each method of `paranmt dedup`."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.reading.normalisation import decode, normalise
from paranmt_hf.corpus.reading.pairs import plain
from paranmt_hf.corpus.reading.splitting import SentenceSplitter, split_rows
from paranmt_hf.corpus.reading.tables import Table
from paranmt_hf.corpus.selection.minhash import BATCH
from paranmt_hf.corpus.selection.near_duplicates import FIRST, CandidateFiles, NearDuplicateSearch, decide
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import refuse
from paranmt_hf.meaning.differences import MEANING_DEFINITION, DifferentDocuments
from paranmt_hf.meaning.mismatch_columns import DEFINITION
from paranmt_hf.search.dedup_config import DedupConfig, Method
from paranmt_hf.search.indexed_vectors import SORTED, encoded
from paranmt_hf.search.inverted_index import SHARD, InvertedIndex, alike
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
from paranmt_hf.util.files import replacing, write_bytes
from paranmt_hf.util.progress import QUIET_SECONDS, Progress
from paranmt_hf.util.records import as_json

# What a method finds: a row that it drops, the earlier row that it is like, and their similarity.
BETWEEN_SIDES = " \u01c0 "  # A letter that looks like a bar
DROPPED = np.dtype([("row", np.int64), ("like", np.int64), ("score", np.float32)])


# Returns the texts with some numbers; texts are numbered from 0, without those that earlier methods dropped.
Read = Callable[[np.ndarray], pa.Array]


class Deduplication:
    """A search for texts of a file that repeat an earlier one.

    The results of each method are kept in the work folder, and serve later runs with other settings.

    Args:
        table: The file.
        columns: Name or number of the column of the texts, or of the columns of pairs, whose sides may change places.
        config: What counts as a repetition.
        encoder: The encoder of `meaning`.
        splitter: How the texts of the file are split into the texts that are compared; None if they are not split.
        against: Other files with their columns; texts that repeat one of theirs are dropped.
    """

    def __init__(
        self,
        table: Table,
        columns: Sequence[str],
        config: DedupConfig,
        encoder: NamedEncoder,
        splitter: SentenceSplitter | None = None,
        against: Sequence[tuple[Table, list[str]]] = (),
    ) -> None:
        self.table, self.columns, self.config, self.encoder = table, list(columns), config, encoder
        self.splitter = splitter
        # The texts of all files are compared, those of the others first, which are never dropped.
        self._sources = [*against, (table, self.columns)]
        # Known once `run` has run:
        self.undecodable = 0  # Number of texts that are not UTF-8
        self.leaked = 0  # Number of dropped texts that repeat one of the other files
        self._inputs = [{**source.identity, "columns": named} for source, named in self._sources]
        split = {} if splitter is None else {"split": splitter.identity}
        others = {"against": self._inputs[:-1]} if against else {}
        identity: dict[str, Any] = {
            "input": {**self._inputs[-1], **split, **others},
            "dedup": asdict(config),
        }
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
        for (source, named), identity in zip(self._sources, self._inputs, strict=True):
            refuse(
                {**source.identity, "columns": named} != identity,
                f"{source.path} has changed since this command began to read it; nothing was written: run the "
                "command again when the file is complete",
                path=source.path,
            )

    def run(self, work: Path, file: Path | None) -> tuple[dict[str, int], KeptTexts]:
        """Run all methods, or read the results that they left in the work folder.

        Args:
            work: Work folder.
            file: Parquet file for the dropped rows; None to write none.

        Returns:
            Number of texts that each method dropped, and which texts are kept.
        """
        texts, bounds = self._stored(work / "stored")
        fixed, self.leaked = bounds[-2], 0
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
                repeats = self._find(method, texts, np.flatnonzero(compared), fixed, folders[method])
                with replacing(path) as aside, aside.open("wb") as opened:
                    np.save(opened, repeats, allow_pickle=False)
            shutil.rmtree(folders[method], ignore_errors=True)
            found[method] = np.load(path, allow_pickle=False)
            compared[found[method]["row"]] = False
        if file is not None:
            names = [str(source.path) for source, _ in self._sources[:-1]]
            with replacing(file) as aside:
                write_dropped(aside, texts, self.splitter is not None, found, self.checksum, names, bounds)
        kept = np.ones(len(texts), bool)
        for rows in found.values():
            kept[rows["row"]] = False
            self.leaked += int((rows["like"] < fixed).sum())
        own = KeptTexts(texts.lines(np.arange(fixed, len(texts))), kept[fixed:])
        return {method: len(rows) for method, rows in found.items()}, own

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

    def _stored(self, folder: Path) -> tuple[StoredSentences, list[int]]:
        """Store the texts of all files in a folder for random access, unless an earlier run did, and open them.

        Returns:
            The texts, and the bounds of each file among them [file + 1].
        """
        complete = folder / "complete"
        if not complete.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            bounds = [0]
            write_sentences(self._texts(bounds), folder, copies=True)
            self.check_unchanged()
            write_bytes(complete, json.dumps({"undecodable": self.undecodable, "bounds": bounds}).encode())
        counted = json.loads(complete.read_bytes())
        self.undecodable = counted["undecodable"]
        return StoredSentences(folder), counted["bounds"]

    def _texts(self, bounds: list[int]) -> Iterator[pa.RecordBatch]:
        """Read the texts of all rows in normal form, with row numbers; a missing or undecodable text becomes empty.

        Args:
            bounds: Receives the number of texts up to the end of each file.
        """
        self.undecodable = 0
        for source, named in self._sources:
            rows = count = 0
            for piece in source.pieces(named):
                raw = piece.columns
                numbers = np.arange(rows, rows + len(raw[0]))
                rows += len(raw[0])
                if self.splitter is not None:
                    split = split_rows({named[0]: raw[0]}, {named[0]: self.splitter})
                    raw, numbers = split.columns, numbers[split.documents]
                texts = [decode(column) for column in raw]
                if source is self.table:
                    lost = [
                        pc.and_(pc.is_null(text), pc.is_valid(cell)) for text, cell in zip(texts, raw, strict=True)
                    ]
                    self.undecodable += pc.sum(reduce(pc.or_, lost)).as_py() or 0
                plain_texts = [normalise(text.fill_null("")) for text in texts]
                count += len(numbers)
                yield pa.record_batch([pa.array(numbers), joined(plain_texts)], names=["id", "sentence"])
            bounds.append(bounds[-1] + count)

    def _find(self, method: Method, texts: StoredSentences, rows: np.ndarray, fixed: int, folder: Path) -> np.ndarray:
        """Find the rows, among the given ones, that a method drops.

        Args:
            method: The method.
            texts: Texts of all rows.
            rows: Rows that are compared, ascending.
            fixed: Number of texts, the first ones, that are never dropped.
            folder: Work folder of the method.

        Returns:
            The dropped rows with the rows that they are like, an array of type `DROPPED`.
        """
        config, count = self.config, len(rows)
        kept = int(np.searchsorted(rows, fixed))

        def read(places: np.ndarray) -> pa.Array:
            return texts.take(rows[places]).cast(pa.string())

        differences = DifferentDocuments(read, language=config.language) if self._needs_same_meaning(method) else None
        if method == "exact" or not count:
            repeats, scores = _exact(read, count)
        elif method == "near":
            repeats, scores = _near(read, count, config, differences, kept, folder)
        else:
            repeats, scores = _alike_in_meaning(read, count, config, differences, kept, folder, self._loaded)
        later = np.flatnonzero(repeats >= 0)
        # Copies among the texts of the other files
        scores, later = scores[later >= kept], later[later >= kept]
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


def joined(sides: list[pa.Array]) -> pa.Array:
    """Return texts [row], or the two sides of pairs one after the other, the one whose letters come first before.

    A pair of which a side is empty is empty, so that it is like no other. Between the sides is a letter, so that it
    counts where a side ends.
    """
    if len(sides) == 1:
        return sides[0]
    letters = [plain(side) for side in sides]
    turned = pc.less(letters[1], letters[0])
    first, second = pc.if_else(turned, sides[1], sides[0]), pc.if_else(turned, sides[0], sides[1])
    is_empty = pc.or_(pc.equal(letters[0], ""), pc.equal(letters[1], ""))
    return pc.if_else(is_empty, "", pc.binary_join_element_wise(first, second, BETWEEN_SIDES))


def _near(
    read: Read, count: int, config: DedupConfig, differences: DifferentDocuments | None, fixed: int, folder: Path
) -> Repeats:
    """Find the texts with much the same word bigrams as an earlier one.

    Args:
        read: Reads texts by their numbers.
        count: Number of texts.
        config: Smallest similarity, and the language.
        differences: Finds texts that do not mean the same and are not alike; None if they may be alike.
        fixed: Number of texts, the first ones, that are never dropped.
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
            repeats = search.repeats(progress, fixed)
        later = np.flatnonzero(repeats >= 0)
        return repeats, search.similarities(repeats[later], later)


def _alike_in_meaning(
    read: Read,
    count: int,
    config: DedupConfig,
    differences: DifferentDocuments | None,
    fixed: int,
    folder: Path,
    encoder: Encoder,
) -> Repeats:
    """Find the texts with much the same vector as an earlier one; other arguments are those of `_near`.

    Only vectors that meet in one of the lists are compared.
    """

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
        repeats = decide(candidates, count, same_claims, progress, fixed)
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
