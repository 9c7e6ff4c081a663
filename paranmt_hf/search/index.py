"""`paranmt search`: an index of the distinct sentences of a corpus, and a search for those nearest to queries."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from paranmt_hf.corpus.reading.sentences import SENTENCE, open_sentences
from paranmt_hf.corpus.reading.splitting import SentenceSplitter
from paranmt_hf.corpus.release.record import language_of
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError, refuse
from paranmt_hf.search.indexed_vectors import (
    IndexConfig,
    IndexedVectors,
    encoded,
    holds_vectors,
    index_sentences,
    write_source,
)
from paranmt_hf.text.languages import ENGLISH, check_language
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.text.text_lists import list_of_texts
from paranmt_hf.util.markers import Advanced, Count, Range
from paranmt_hf.util.records import Record, made_with
from paranmt_hf.util.run import Result, result_folder, run
from paranmt_hf.util.wording import counted

PROBES = 32  # Default number of lists that each query is compared with


@dataclass(frozen=True)
class IndexSettings:
    """The input and the settings that determine an index."""

    corpus: dict[str, Any]  # Identity of the corpus, with checksums
    encoder: dict[str, str]  # Identity of the encoder: its name, and its revision or checksum
    search: IndexConfig  # How sentences are stored and searched


@dataclass(frozen=True, kw_only=True)
class IndexRecord(Record):
    """The record of an index, the file `index.json` in its folder."""

    FILE: ClassVar[str] = "index.json"
    KIND: ClassVar[str] = "an index (`paranmt search index`)"

    settings: IndexSettings  # The input and the settings that determine the index
    load: NamedEncoder  # Where to find the encoder, which encodes the queries
    sentences: int  # Number of distinct sentences
    lines: int  # Number of sentences of the corpus, copies included
    # Number of lines of the corpus that are not in the index, by reason
    dropped: dict[str, int] = field(default_factory=dict)
    # Size of each file of the index in bytes, by its name
    files: dict[str, int] = field(default_factory=dict)


def read_index(folder: Path) -> IndexRecord:
    """Read the record of an index; raises `InputError` if a file of the index is missing or has another size."""
    record = IndexRecord.read(folder)
    for name, size in record.files.items():
        path = folder / Path(name).name
        if not path.is_file() or path.stat().st_size != size:
            raise InputError(f"{path} is missing or not the file that was written; make the index again", path=path)
    return record


@dataclass(frozen=True)
class Hit:
    """A sentence of an index that is similar to a query."""

    cosine: float  # Cosine of the sentence and the query, in [-1, 1]
    line: int  # Line of the corpus, from 1, where the sentence occurs first; of a document that was split, its line
    sentence: str


class SentenceIndex(Result[IndexRecord]):
    """An index of the distinct sentences of a corpus, in a folder, which finds the sentences nearest to queries."""

    @classmethod
    def build(
        cls,
        corpus: str | Path,
        out: str | Path,
        *,
        encoder: str | Path | None = None,
        column: str | None = None,
        split: bool = False,
        language: str | None = None,
        config: IndexConfig | None = None,
    ) -> Self:
        """Build an index of the distinct sentences of a corpus.

        Args:
            corpus: Text file with one sentence on a line, file with columns (docs/formats.md), or folder of a corpus.
            out: Folder of the index.
            encoder: Folder, Hub id (ID@REVISION for a revision), or file of word vectors; if left out, the encoder of
                this package for the language.
            column: Column of a file with columns, by its name or number; may be left out if only one has text. For a
                corpus `reference` (default) or `translation`.
            split: The texts are documents, which are split into sentences by the package sentencex (docs/formats.md).
                A hit has the line of its document.
            language: Language of the texts (ISO 639-1); that of a corpus, else `en`, if left out.
            config: How the sentences are stored and searched.
        """
        out = result_folder(out, IndexRecord, sources=[corpus])
        spoken, config = language_of(corpus), config or IndexConfig()
        if language is not None:
            check_language(language)
        refuse(
            spoken is not None and language not in (None, spoken),
            f"{corpus} is a corpus in {spoken}; leave `language` out",
            option="language",
        )
        spoken = language or spoken
        named = NamedEncoder.for_languages(encoder, [] if spoken is None else [spoken])
        source = open_sentences(corpus, column)
        if split:
            source.splitters = {SENTENCE: SentenceSplitter(spoken or ENGLISH)}
        settings = IndexSettings(source.identity, named.identity, config)

        def make(work: Path, folder: Path) -> IndexRecord:
            write = partial(write_source, source)
            # Up to a million sentences there are no lists by default: a query is compared with all of them in a
            # fraction of a second.
            counted = index_sentences(folder, write, named, config, max_exact=1_000_000).counted
            # An earlier run that was killed just before the folder was renamed has left its record too.
            present = sorted(path for path in folder.iterdir() if path.name != IndexRecord.FILE)
            return IndexRecord(
                settings=settings,
                load=named.found_anywhere,
                sentences=counted.items,
                lines=counted.lines,
                dropped=counted.dropped,
                files={path.name: path.stat().st_size for path in present},
                **made_with("numpy"),
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
            folder: Folder of the index.
            encoder: Where to find the encoder that made the index: folder, Hub id, or file of word vectors; where it
                was then if left out.

        Raises:
            InputError: The folder is no complete index, or the encoder is not the one that made it.
        """
        folder = Path(folder).expanduser()
        record = read_index(folder)
        made = record.settings.encoder
        chosen = record.load if encoder is None else NamedEncoder.of(encoder)
        if chosen.identity["revision"] != made["revision"]:
            raise InputError(
                f"{folder} is an index of the encoder {made['name']} ({made['revision']}), and this is "
                f"{chosen.identity['name']} ({chosen.identity['revision']}), whose vectors cannot be compared: name "
                "that encoder, or make another index"
            )
        index = cls(folder, replace(record, load=chosen), fresh=False)
        _ = index._encoder, index._indexed
        return index

    @cached_property
    def _encoder(self) -> Encoder:
        """The encoder of the queries, loaded on first use."""
        return self.record.load.load()

    @cached_property
    def _indexed(self) -> IndexedVectors:
        """The sentences and vectors of the index, opened on first use."""
        return IndexedVectors(self.folder)

    def summary(self) -> str:
        """Say how many distinct sentences the index has, and how many lines were dropped, by reason."""
        record = self.record
        state = "" if self.fresh else " (was indexed already)"
        lines = [f"{self.folder}: {counted(record.sentences, 'distinct sentence')} of {record.lines:,}{state}"]
        return "\n".join([*lines, *(f"  dropped  {count:>12,} {reason}" for reason, count in record.dropped.items())])

    def search(self, queries: Iterable[str], *, top: int = 10, probes: int = PROBES) -> list[list[Hit]]:
        """Find the sentences nearest to each query.

        Args:
            queries: Sentences.
            top: Maximum number of hits for each query.
            probes: Number of lists that each query is compared with, if the index has lists; more lists find more of
                the nearest sentences, and take longer.

        Returns:
            Hits of each query, the nearest first.
        """
        for name, value in (("top", top), ("probes", probes)):
            if value < 1:
                raise InputError(f"{name} must be at least 1, was {value}", option=name)
        texts = list_of_texts(queries, "queries")
        if not texts:
            return []
        found = self._indexed.nearest(encoded(self._encoder, texts), top, probes)
        sentences, hits = self._indexed.sentences, []
        for scores, places in zip(found.scores, found.items, strict=True):
            items = self._indexed.items(places[places >= 0])
            cosines = np.minimum(scores[places >= 0], 1).tolist()
            lines = (sentences.lines(items) + 1).tolist()
            hits.append(list(map(Hit, cosines, lines, sentences.take(items).to_pylist())))
        return hits


@dataclass(frozen=True)
class SearchResults:
    """Queries, and the sentences of an index that are nearest to each."""

    queries: list[str]
    hits: list[list[Hit]]  # Hits of each query, the nearest first

    def to_json(self) -> list[dict[str, Any]]:
        """Return each query with its hits as JSON values."""
        pairs = zip(self.queries, self.hits, strict=True)
        return [{"query": query, "hits": [asdict(hit) for hit in hits]} for query, hits in pairs]

    def summary(self) -> str:
        """Return the lines of each query: the query, and below it the cosine, line and sentence of each hit."""
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
        top: Maximum number of hits for each query.
        probes: Number of lists that each query is compared with, if the index has lists; more lists find more of the
            nearest sentences, and take longer.
        encoder: The encoder that made the index, if it is not found where it was: folder, Hub id, or file of word
            vectors.
    """
    wanted: list[str] = []
    try:
        for query in [queries] if isinstance(queries, str) else queries:
            text = sys.stdin.read() if query == "-" else query
            # Bytes of the command line that are not UTF-8 arrive as lone surrogates, which this refuses.
            text.encode()
            wanted += [line.strip() for line in text.split("\n") if line.strip()]
    except UnicodeError:
        raise InputError("a query is not UTF-8; give text in UTF-8", option="queries") from None
    if not wanted:
        raise InputError("there is no query: give sentences, or - for standard input", option="queries")
    hits = SentenceIndex.from_pretrained(index, encoder=encoder).search(wanted, top=top, probes=probes)
    return SearchResults(wanted, hits)
