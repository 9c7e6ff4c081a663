"""`paranmt search mine`: pairs of sentences with about the same meaning, in one corpus or between two."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.stages import ScoreStage
from paranmt_hf.corpus.reading.readers import Reader, Report
from paranmt_hf.corpus.reading.sentences import open_sentences
from paranmt_hf.corpus.release.record import language_of, written_by
from paranmt_hf.corpus.release.release_run import Built, ReleaseConfig, holds_shards, make_release
from paranmt_hf.corpus.release.schema import MadeBy
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError, refuse
from paranmt_hf.meaning.differences import MEANING_DEFINITION, MeaningReader
from paranmt_hf.meaning.mismatch_columns import DEFINITION
from paranmt_hf.search.indexed_vectors import (
    SEARCH,
    WRITE_ROWS,
    IndexConfig,
    IndexedVectors,
    holds_vectors,
    index_sentences,
    write_pairs,
    write_source,
)
from paranmt_hf.search.inverted_index import compare_lists
from paranmt_hf.search.neighbours import (
    LOWEST,
    ItemPairs,
    Neighbours,
    compare_all,
    margin_scores,
    mean_similarity,
    pairs_of,
    restore_neighbours,
    save_neighbours,
)
from paranmt_hf.search.storage import spans
from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.util.files import refuse_inside, resolved, shown_path
from paranmt_hf.util.markers import Advanced, Cosine, Count, Group, PythonOnly, Range, Without
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import FileRecord, Identity, as_json, made_with
from paranmt_hf.util.run import Result, result_folder, run
from paranmt_hf.util.wording import counted
from paranmt_hf.util.work import work_folder

MAX_EXACT_SENTENCES = 250_000  # Up to this number of sentences, each is compared with every other one by default
CHECKPOINT_SECONDS = 60.0


@dataclass(frozen=True)
class MineConfig(IndexConfig):
    """Which pairs are mined, and how they are searched.

    Attributes:
        top: Number of nearest neighbours of each sentence that it may be paired with.
        min_score: Smallest cosine of a pair.
        pairing: Whether one sentence of a pair must be a neighbour of the other (`any`), or each of the other
            (`mutual`).
        margin: Score by which pairs are ranked: the cosine (`none`), or the cosine divided by (`ratio`) or minus
            (`distance`) the mean cosine of both sentences with their neighbours (Artetxe & Schwenk 2019, section 3.1).
        margin_neighbours: Number of neighbours of each sentence in this mean, k in the paper.
        min_margin: Smallest margin score of a pair.
        max_pairs: Maximum number of pairs; the best ones are kept.
        copies: Treat copies of a sentence as different sentences, which are paired with each other.
        probes: Number of lists that each sentence is compared with, if there are lists.
        same_meaning: Leave out pairs that differ in a number, a negation, a name, an opposite and the like (English;
            docs/same-meaning.md).
    """

    top: Annotated[int, Range(at_least=1, at_most=1000), SEARCH] = 10
    min_score: Cosine = 0.8
    pairing: Annotated[Literal["any", "mutual"], SEARCH] = "any"
    margin: Literal["none", "ratio", "distance"] = "none"
    margin_neighbours: Annotated[int, Range(at_least=1, at_most=1000), PythonOnly] = 4
    min_margin: float | None = None
    max_pairs: Count | None = None
    copies: Annotated[bool, SEARCH] = False
    probes: Annotated[Count, SEARCH] = 16
    same_meaning: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.min_margin is not None and self.margin == "none":
            raise InputError("min_margin needs the margin ratio or distance; cosines have `min_score`")
        if self.margin != "none" and self.margin_neighbours > self.top:
            raise InputError(
                f"margin_neighbours {self.margin_neighbours} is above top {self.top}, the number of neighbours"
            )


@dataclass(frozen=True, kw_only=True)
class MinedRecord(FileRecord):
    """The record of a file of mined pairs, which lies next to it."""

    KIND: ClassVar[str] = "a file of mined pairs (`paranmt search mine`)"

    pairs: int  # Number of pairs


class MinedPairs(Result[MinedRecord]):
    """Mined pairs in a Parquet file, the best first.

    The columns are the sentences, `first` and `second`; their `cosine`; their `margin` score, unless pairs are ranked
    by the cosine; and the lines of the sentences in their files, from 1, `first_line` and `second_line`.
    """

    def summary(self) -> str:
        """Return the number of pairs, the best three pairs, and how to load the file."""
        lines = [f"{self.folder}: {counted(self.record.pairs, 'pair')}{'' if self.fresh else ' (was mined already)'}"]
        best = next(pq.ParquetFile(self.folder).iter_batches(3, columns=["cosine", "first", "second"]), None)
        for pair in [] if best is None else best.to_pylist():
            lines.append(f"  {pair['cosine']:.3f}  {pair['first']}  |  {pair['second']}")
        return "\n".join([*lines, f"load it: Dataset.from_parquet({shown_path(self.folder)!r})"])


def mine_pairs(
    first: str | Path,
    out: str | Path,
    *,
    second: str | Path | None = None,
    column: str | None = None,
    second_column: str | None = None,
    encoder: str | Path | None = None,
    config: MineConfig | None = None,
    made_by: MadeBy = "unknown",
    release: Annotated[ReleaseConfig | None, Without("keep_source")] = None,
    engine: Annotated[EngineConfig | None, Group(), Advanced] = None,
) -> Built | MinedPairs:
    """Find pairs of sentences with the same meaning, in a corpus or between two, and release them.

    Args:
        first: Text file with one sentence on a line, file with columns (docs/formats.md), or folder of a corpus.
        out: Folder of the corpus; or `NAME.parquet`, a file of pairs alone.
        second: Another corpus, for pairs between the two.
        column: Column of a file, by its name or number, or side of a corpus.
        second_column: The same of the second corpus.
        encoder: Encoder, also the scorer of a corpus: folder, Hub id (ID@REVISION for a revision), or file of word
            vectors; that of this package for the language if left out.
        config: Which pairs are mined.
        made_by: Who wrote the sentences; the card says so.
        release: Licence and form of the corpus; its language is that of the sentences.
        engine: Where the score columns are computed.
    """
    refuse_inside(resolved(out), [path for path in (first, second) if path is not None], "out")
    if second is None and second_column is not None:
        raise InputError("`second_column` is a column of `second`; name that corpus too", option="second_column")
    sources = [open_sentences(first, column)]
    if second is not None:
        sources.append(open_sentences(second, second_column, option="second_column"))
    spoken = language_of(first)
    release = release or ReleaseConfig(language=spoken or ENGLISH)
    refuse(
        spoken not in (None, release.language),
        f"{first} is a corpus in {spoken}; give it as `language`",
        option="language",
    )
    is_file = Path(out).suffix == ".parquet"
    of_second = None if second is None else language_of(second)
    # Text files do not say their language, so a file of their pairs takes any encoder.
    own = None if is_file and encoder is not None else release.language
    known = [code for code in (own, spoken, of_second) if code is not None]
    named = NamedEncoder.for_languages(encoder, known)
    mining = Mining(sources, named, config or MineConfig())
    if is_file:
        return mining.run(Path(out))
    if Path(out).suffix in (".tsv", ".csv", ".jsonl", ".json", ".txt"):
        raise InputError(
            f"{out} is no folder: pairs alone go into a .parquet file, all else into the folder of a corpus; name one",
            option="out",
        )
    out = result_folder(out)
    release.check_license()
    identity = as_json(mining.identity)
    if made_by != "unknown":
        identity["pairs"]["made_by"] = made_by
    if models := written_by([(first, column), (second, second_column)], release.license):
        identity["pairs"]["written_by"] = models
    return make_release(
        lambda report: _rows(mining.pairs(work_folder(out)), report),
        out,
        identity,
        [ScoreStage(mining.encoder, language=release.language)],
        release,
        engine,
        command="search mine",
        holds=lambda work: holds_shards(work) or holds_vectors(work),
    )


def _rows(pairs: Path, report: Report) -> Iterator[pa.Table]:
    """Convert a file of mined pairs to rows of a corpus, whose ids are the ranks of the pairs, from 0.

    `report` counts the rows as they are read.
    """
    with pq.ParquetFile(pairs) as file:
        for batch in file.iter_batches(columns=["first", "second"]):
            ids = np.arange(report.read, report.read + batch.num_rows)
            report.read += batch.num_rows
            report.kept += batch.num_rows
            columns = [pa.array(ids), batch["first"], batch["second"], pa.repeat("mined", batch.num_rows)]
            yield pa.table(columns, names=["id", "reference", "translation", "origin"])


class Mining:
    """The search for pairs in one corpus, or between two, by an encoder."""

    def __init__(self, sources: list[Reader], encoder: NamedEncoder, config: MineConfig) -> None:
        self.encoder, self.config, self._sources = encoder, config, sources

    @cached_property
    def identity(self) -> Identity:
        """Everything that determines the pairs: files, encoder and settings, with checksums."""
        files = [source.identity for source in self._sources]
        pairs: Identity = {"kind": "mined", "files": files, "mining": asdict(self.config)}
        if self.config.same_meaning:
            pairs["mismatches"] = [DEFINITION, MEANING_DEFINITION]
        return as_json({"pairs": pairs, "scorer": self.encoder.identity})

    @property
    def _identity_of_vectors(self) -> Identity:
        """Everything that determines the vectors. Mining with other settings can use vectors of the same identity."""
        identity = self.identity
        names = [*(entry.name for entry in fields(IndexConfig)), "copies"]
        settings = {name: getattr(self.config, name) for name in names}
        return {"files": identity["pairs"]["files"], "scorer": identity["scorer"], "search": settings}

    def run(self, out: Path) -> MinedPairs:
        """Mine pairs into the Parquet file `out`, with a record next to it."""
        identity = self.identity

        def make(work: Path, file: Path) -> MinedRecord:
            return MinedRecord(settings=identity, pairs=self._mine(work, file), **made_with("numpy"))

        return run(
            out,
            identity,
            MinedRecord,
            make,
            result=MinedPairs,
            command="search mine",
            holds=holds_vectors,
            work_identity=self._identity_of_vectors,
        )

    def pairs(self, work: Path) -> Path:
        """Mine pairs into a Parquet file in a work folder, unless it is there already, and return its path."""
        folder = work / f"mining-{_checksum(self._identity_of_vectors)}"
        path = folder / f"pairs-{_checksum(self.identity)}.parquet"
        if not path.exists():
            folder.mkdir(exist_ok=True)
            self._mine(folder, path)
        return path

    def _mine(self, work: Path, path: Path) -> int:
        """Mine pairs into the Parquet file `path`, and return their number."""
        from paranmt_hf.search.neighbours import ItemPairs

        first, second = self._stored(work)
        pairs, margins = self._pairs(work, first, second)
        items = first.items(pairs.first), second.items(pairs.second)
        if first is second:
            items = np.minimum(*items), np.maximum(*items)
        pairs = ItemPairs(*items, pairs.cosine)
        kept = self._kept(pairs, margins, first, second)
        score = pairs.cosine if margins is None else margins
        order = kept[np.lexsort((pairs.second[kept], pairs.first[kept], -score[kept]))][: self.config.max_pairs]
        if not len(order):
            option = "min_score" if self.config.min_margin is None else "min_margin"
            margin = "" if self.config.min_margin is None else f" and min_margin {self.config.min_margin:g}"
            raise InputError(
                f"no two sentences reach min_score {self.config.min_score:g}{margin}; lower `{option}`, or choose "
                "another `encoder`",
                option=option,
            )
        write_pairs(path, pairs.take(order), None if margins is None else margins[order], (first, second))
        return len(order)

    def _stored(self, work: Path) -> tuple[IndexedVectors, IndexedVectors]:
        """Encode the corpora in a work folder; inside one corpus, both results are the same.

        Only the last corpus, in which neighbours are searched, may get lists.
        """

        def stored(name: str, source: Reader, config: IndexConfig, max_exact: int) -> IndexedVectors:
            write = partial(write_source, source, copies=self.config.copies)
            return index_sentences(work / name, write, self.encoder, config, max_exact=max_exact)

        if len(self._sources) == 1:
            only = stored("first", self._sources[0], self.config, MAX_EXACT_SENTENCES)
            return only, only
        first = stored("first", self._sources[0], replace(self.config, lists=0), MAX_EXACT_SENTENCES)
        # Two corpora are compared exactly up to as many comparisons as one corpus.
        most = MAX_EXACT_SENTENCES**2 // len(first.sentences)
        return first, stored("second", self._sources[1], self.config, most)

    def _pairs(self, work: Path, first: IndexedVectors, second: IndexedVectors) -> tuple[ItemPairs, np.ndarray | None]:
        """Find the neighbours of all sentences, and pair them.

        Returns:
            Pairs of places of vectors; and their margin scores [pair], or None if pairs are ranked by the cosine.
        """
        config = self.config
        within = first is second
        # The means of margins need all neighbours, also those below `min_score`.
        at_least = config.min_score if config.margin == "none" else LOWEST
        # No sentence can have more neighbours than there are other sentences.
        count, others = len(first.sentences), len(second.sentences)
        repeats = within and second.lists is not None
        forward = Neighbours(count, min(config.top, max(1, others - within)), at_least=at_least, repeats=repeats)
        backward = forward if within else Neighbours(others, min(config.top, count), at_least=at_least)
        self._compare(work, first, second, forward, backward)
        pairs = pairs_of(forward, backward, mutual=config.pairing == "mutual", at_least=config.min_score)
        if config.margin == "none":
            return pairs, None
        means = [mean_similarity(found, config.margin_neighbours) for found in (forward, backward)]
        return pairs, margin_scores(pairs, means[0], means[1], config.margin)

    def _compare(
        self, work: Path, first: IndexedVectors, second: IndexedVectors, forward: Neighbours, backward: Neighbours
    ) -> None:
        """Fill in the neighbours of both sides, continuing from the last checkpoint in the work folder."""
        tables = {"forward": forward} if first is second else {"forward": forward, "backward": backward}
        search = json.dumps({**asdict(self.config), "min_margin": None, "max_pairs": None, "pairing": None})
        checkpoint = work / "neighbours.safetensors"
        done = restore_neighbours(checkpoint, tables, search)
        sides = first.vectors, second.vectors
        if second.lists is None:
            steps = compare_all(*sides, forward, backward, done=done)
        else:
            steps = compare_lists(*sides, second.lists, self.config.probes, forward, backward, done=done)
        total, saved = len(first.sentences), time.monotonic()
        with Progress("compare", total) as progress:
            for share in steps:
                done += 1
                progress.advance_to(int(share * total))
                if share == 1 or time.monotonic() - saved >= CHECKPOINT_SECONDS:
                    save_neighbours(checkpoint, done, tables, search)
                    saved = time.monotonic()

    def _kept(
        self, pairs: ItemPairs, margins: np.ndarray | None, first: IndexedVectors, second: IndexedVectors
    ) -> np.ndarray:
        """Return the indices of the pairs that reach `min_margin`, without pairs of equal sentences (except `copies`).

        With `same_meaning` they are without pairs that differ in meaning, too.
        """
        kept = np.ones(len(pairs), bool)
        if margins is not None and self.config.min_margin is not None:
            kept = margins >= np.float32(self.config.min_margin)

        def sides_of(some: np.ndarray) -> Iterator[tuple[np.ndarray, pa.Array, pa.Array]]:
            for start, stop in spans(len(some), WRITE_ROWS):
                part = some[start:stop]
                sides = first.sentences.take(pairs.first[part]), second.sentences.take(pairs.second[part])
                yield part, sides[0].cast(pa.string()), sides[1].cast(pa.string())

        if first is not second and not self.config.copies:
            # Only pairs with a cosine near 1 can be equal sentences.
            for part, *sides in sides_of(np.flatnonzero(kept & (pairs.cosine > 0.999))):
                kept[part] = ~pc.equal(*sides).to_numpy(zero_copy_only=False)
        if self.config.same_meaning:
            reader = MeaningReader()
            for part, *sides in sides_of(np.flatnonzero(kept)):
                kept[part] = reader.column(*sides).to_numpy() == 0
        return np.flatnonzero(kept)


def _checksum(identity: Identity) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of an identity, for names of files."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
