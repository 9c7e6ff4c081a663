"""`paranmt search`: an index of the distinct sentences of a corpus, and its sentences nearest to queries."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from paranmt_hf.corpus.reading.sentences import open_sentences
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.search.indexed_vectors import IndexConfig, IndexedVectors, encoded, holds_vectors, store_vectors
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.text.text_lists import list_of_texts
from paranmt_hf.util.files import checksum
from paranmt_hf.util.markers import Advanced, Count, Range
from paranmt_hf.util.records import Record, made_with
from paranmt_hf.util.run import Result, result_folder, run
from paranmt_hf.util.wording import counted

# Up to this many sentences, a query is compared with all of them, which takes a fraction of a second.
MAX_EXACT_SENTENCES = 1_000_000
PROBES = 32
REVISION_CHARACTERS = 19
# Up to this size the checksums of all files are checked when an index is opened, which takes about two seconds.
CHECKED_BYTES = 2_000_000_000


@dataclass(frozen=True)
class IndexSettings:
    """Everything that determines an index: the corpus and the encoder by checksum, and how it is searched."""

    corpus: dict[str, Any]
    encoder: dict[str, str]
    search: IndexConfig


@dataclass(frozen=True, kw_only=True)
class IndexRecord(Record):
    """The content of `index.json`."""

    FILE: ClassVar[str] = "index.json"
    KIND: ClassVar[str] = "an index (`paranmt search index`)"

    settings: IndexSettings  # What determines the index
    load: NamedEncoder  # How to find the encoder again
    sentences: int  # Number of distinct sentences
    lines: int  # Number of sentences, copies included
    # Number of lines of the corpus that are not in it, by reason
    dropped: dict[str, int] = field(default_factory=dict)
    # Size in bytes and SHA-256 of each of its files, by name
    files: dict[str, tuple[int, str]] = field(default_factory=dict)


def read_index(folder: Path, most: float = math.inf) -> IndexRecord:
    """Read the record of an index, and check that its files are those that were written.

    Of an index of more bytes than `most` only the sizes of files are checked.
    """
    record = IndexRecord.read(folder)
    whole = sum(size for size, _ in record.files.values()) <= most
    for name, (size, digest) in record.files.items():
        path = folder / name
        present = Path(name).name == name and path.is_file() and path.stat().st_size == size
        if not present or (whole and checksum(path) != digest):
            raise InputError(f"{path} is missing or not the file that was written; make the index again", path=path)
    return record


@dataclass(frozen=True)
class Hit:
    """A sentence that is similar to a query."""

    cosine: float  # Similarity of their vectors, in [-1, 1]
    line: int  # Line of the corpus where the sentence occurs first, from 1
    sentence: str  # The sentence


class SentenceIndex(Result[IndexRecord]):
    """An index of the distinct sentences of a corpus."""

    @classmethod
    def build(
        cls,
        corpus: str | Path,
        out: str | Path,
        *,
        encoder: str | Path | None = None,
        column: str | None = None,
        config: IndexConfig | None = None,
    ) -> Self:
        """Build an index of the distinct sentences of a corpus.

        Args:
            corpus: Text file with one sentence on a line, file with columns (docs/formats.md), or folder of a corpus.
            out: Folder of the index.
            encoder: Folder, Hub id (ID@REVISION for a revision), or file of word vectors; the small encoder of this
                package if left out.
            column: Column of a file, by its name or number, or side of a corpus.
            config: How the sentences are stored and searched.
        """
        out = result_folder(out, IndexRecord, sources=[corpus])
        named, config = NamedEncoder.of(encoder), config or IndexConfig()
        source = open_sentences(corpus, column)
        settings = IndexSettings(source.identity, named.identity, config)

        def make(work: Path, folder: Path) -> IndexRecord:
            counted = store_vectors(folder, source, named, config, max_exact=MAX_EXACT_SENTENCES).counted
            # A kill just before the folder was renamed leaves the record too.
            present = sorted(path for path in folder.iterdir() if path.name != IndexRecord.FILE)
            return IndexRecord(
                settings=settings,
                load=named.found_anywhere,
                sentences=counted.items,
                lines=counted.lines,
                dropped=counted.dropped,
                files={path.name: (path.stat().st_size, checksum(path)) for path in present},
                **made_with("numpy", "torch"),
            )

        return run(
            out,
            settings,
            IndexRecord,
            make,
            result=cls,
            command="search index",
            holds=holds_vectors,
            read=read_index,
            keep_result=True,
        )

    @classmethod
    def from_pretrained(cls, folder: str | Path, *, encoder: str | Path | None = None) -> Self:
        """Open an index for queries.

        Args:
            folder: The index.
            encoder: Encodes the queries; the encoder that made the index if none is named.
        """
        folder = Path(folder).expanduser()
        record = read_index(folder, CHECKED_BYTES)
        made, chosen = record.settings.encoder, record.load if encoder is None else NamedEncoder.of(encoder)
        if chosen.identity["revision"] != made["revision"]:
            names = [
                f"{each['name']} ({str(each['revision'])[:REVISION_CHARACTERS]})" for each in (made, chosen.identity)
            ]
            raise InputError(
                f"{folder} is an index of the encoder {names[0]}, and this is {names[1]}, whose vectors cannot "
                "be compared: name that encoder, or make another index"
            )
        index = cls(folder, replace(record, load=chosen), fresh=False)
        _ = index._encoder, index._indexed
        return index

    @cached_property
    def _encoder(self) -> Encoder:
        return self.record.load.load()

    @cached_property
    def _indexed(self) -> IndexedVectors:
        return IndexedVectors(self.folder)

    def summary(self) -> str:
        """Sentences and what was dropped, in some lines."""
        record = self.record
        state = "" if self.fresh else " (was indexed already)"
        lines = [f"{self.folder}: {counted(record.sentences, 'distinct sentence')} of {record.lines:,}{state}"]
        return "\n".join([*lines, *(f"  dropped  {count:>12,} {reason}" for reason, count in record.dropped.items())])

    def search(self, queries: Iterable[str], *, top: int = 10, probes: int = PROBES) -> list[list[Hit]]:
        """Find the sentences nearest to queries.

        Args:
            queries: Sentences.
            top: Number of hits for each.
            probes: Number of lists that are searched, if the index has lists; more find more, and take longer.

        Returns:
            Hits of each query, the nearest first.
        """
        for name, value in (("top", top), ("probes", probes)):
            if value < 1:
                raise InputError(f"{name} must be at least 1, was {value}", option=name)
        texts = list_of_texts(queries, "queries")
        if not texts:
            return []
        import torch

        from paranmt_hf.search.inverted_index import nearest_in_lists
        from paranmt_hf.search.neighbours import nearest_vectors

        indexed = self._indexed
        vectors, most = torch.from_numpy(encoded(self._encoder, texts)), min(top, len(indexed.sentences))
        if indexed.lists is None:
            found = nearest_vectors(vectors, indexed.vectors, most)
        else:
            found = nearest_in_lists(vectors, indexed.vectors, indexed.lists, most, probes)
        return [self._hits(*row) for row in zip(found.scores.numpy(), found.items.numpy(), strict=True)]

    def _hits(self, scores: np.ndarray, places: np.ndarray) -> list[Hit]:
        known = places >= 0
        items = self._indexed.items(places[known])
        sentences = self._indexed.sentences
        lines, texts = sentences.lines(items).tolist(), sentences.take(items).to_pylist()
        found = zip(scores[known].tolist(), lines, texts, strict=True)
        return [Hit(min(1.0, score), line + 1, sentence) for score, line, sentence in found]


@dataclass(frozen=True)
class SearchResults:
    """Queries, and the hits of each, the nearest first."""

    queries: list[str]
    hits: list[list[Hit]]

    def to_json(self) -> list[dict[str, Any]]:
        found = zip(self.queries, self.hits, strict=True)
        return [{"query": query, "hits": [asdict(hit) for hit in hits]} for query, hits in found]

    def summary(self) -> str:
        """Each query, and below it cosine, line and sentence of its hits."""
        lines = []
        for query, hits in zip(self.queries, self.hits, strict=True):
            lines += [query, *(f"  {hit.cosine:6.3f}  {hit.line:>10,}  {hit.sentence}" for hit in hits)]
        return "\n".join(lines)


def search(
    index: str | Path,
    queries: str | Sequence[str],
    *,
    top: Count = 10,
    probes: Annotated[int, Range(at_least=1), Advanced] = PROBES,
    encoder: str | Path | None = None,
) -> SearchResults:
    """Find the sentences of an index nearest to queries.

    Args:
        index: Folder of an index.
        queries: Sentences; `-` reads them from standard input, one on a line.
        top: Number of hits for each query.
        probes: Number of lists that are searched, if the index has lists; more find more, and take longer.
        encoder: The encoder that made the index, if it is not found where it was: folder, Hub id, or file of word
            vectors.
    """
    wanted: list[str] = []
    try:
        for query in [queries] if isinstance(queries, str) else queries:
            lines = sys.stdin.read().split("\n") if query == "-" else [query]
            wanted += [line.strip() for line in lines if line.strip()]
        # Bytes of a command line that are not UTF-8 become halves of surrogate pairs.
        "".join(wanted).encode()
    except UnicodeError:
        raise InputError("a query is not UTF-8; give text in UTF-8", option="queries") from None
    if not wanted:
        raise InputError("there is no query: give sentences, or - for standard input", option="queries")
    hits = SentenceIndex.from_pretrained(index, encoder=encoder).search(wanted, top=top, probes=probes)
    return SearchResults(wanted, hits)
