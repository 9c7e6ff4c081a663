"""`paranmt search`: an index of a corpus, and its sentences nearest to queries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from paranmt_hf.corpus.bitext.readers import Report
from paranmt_hf.corpus.sentence_file import SentenceFile
from paranmt_hf.encoders.scorer import ScorerConfig
from paranmt_hf.errors import InputError
from paranmt_hf.search.space import Space, SpaceConfig, encoded, prepare
from paranmt_hf.util.files import write_bytes
from paranmt_hf.util.records import from_json, read_json
from paranmt_hf.util.work import (
    as_json,
    finished,
    keep_identity,
    locked,
    put_in_place,
    remove,
    remove_leftover,
    result_folder,
    work_folder,
)
from paranmt_hf.version import __version__

INDEX_RECORD = "index.json"
# Up to so many sentences a query is compared with all of them: that takes a fraction of a second.
MOST_EXACT = 1_000_000
PROBES = 32


@dataclass(frozen=True)
class IndexRecord:
    """The content of `index.json`.

    Attributes:
        version: Version of this package that wrote it.
        settings: What determined the index: `corpus`, `encoder` with its checksum, `search`.
        load: How the encoder is found again: fields of `ScorerConfig`.
        sentences: Number of distinct sentences.
        lines: Number of sentences, copies included.
        dropped: Lines of the corpus that are not in it, by reason.
        files: Its files and their sizes in bytes.
    """

    version: str
    settings: dict[str, Any]
    load: dict[str, str | None]
    sentences: int
    lines: int
    dropped: dict[str, int] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Encoder:
    name: str
    revision: str


@dataclass(frozen=True)
class _Settings:
    encoder: _Encoder


@dataclass(frozen=True)
class _Shown:
    """What is read of the settings; others may be anything."""

    settings: _Settings


@dataclass(frozen=True)
class Indexed:
    """A finished index: its folder, its record, and whether this call made it."""

    folder: Path
    record: IndexRecord
    fresh: bool


@dataclass(frozen=True)
class Hit:
    """A sentence near to a query.

    Attributes:
        cosine: Similarity of their vectors, from -1 to 1.
        line: Where the sentence first stands in the corpus, from 1.
        sentence: The sentence.
    """

    cosine: float
    line: int
    sentence: str


def holds_vectors(folder: Path) -> bool:
    """Tell whether a work folder holds vectors, which take long to make."""
    return any(folder.rglob("vectors.json")) or any(folder.rglob("lists.json"))


def build_index(
    corpus: str | Path,
    out: str | Path,
    *,
    encoder: ScorerConfig | None = None,
    column: str | None = None,
    config: SpaceConfig | None = None,
) -> Indexed:
    """Make an index of the distinct sentences of a corpus.

    Args:
        corpus: A text file with one sentence on a line, a Parquet file, or the folder of a release.
        out: Folder of the index. Work in progress lies in `<out>.work`; the same call goes on with it.
        encoder: Gives the vectors; the small encoder of this package if left out.
        column: Which column of Parquet, or which side of a release.
        config: How the sentences are stored and searched.

    Raises:
        InputError: Bad input, or `out` was made with other settings.
    """
    out = result_folder(out)
    encoder, config = encoder or ScorerConfig(), config or SpaceConfig()
    source = SentenceFile(corpus, column)
    identity = as_json({"corpus": source.identity, "encoder": encoder.identity, "search": asdict(config)})
    if (found := _found(out, identity)) is not None:
        return found
    with locked(work_folder(out), "search", worth=holds_vectors):
        if (found := _found(out, identity)) is not None:
            return found
        work = work_folder(out)
        keep_identity(work, identity, worth=holds_vectors, doing="indexing")
        space = prepared(work / "index", source, encoder, config, most_exact=MOST_EXACT)
        present = sorted(path for path in (work / "index").iterdir() if path.name != INDEX_RECORD)
        files = {path.name: path.stat().st_size for path in present}
        counted = space.counted
        record = IndexRecord(
            __version__, identity, _how_to_load(encoder), counted.items, counted.lines, counted.dropped, files
        )
        write_bytes(work / "index" / INDEX_RECORD, (json.dumps(asdict(record), indent=1) + "\n").encode())
        put_in_place(work / "index", out)
        remove(work)
    return Indexed(out, record, fresh=True)


def prepared(
    folder: Path,
    source: SentenceFile,
    encoder: ScorerConfig,
    config: SpaceConfig,
    *,
    most_exact: int,
    copies: bool = False,
) -> Space:
    """Make what is searched of a corpus, or go on with it; arguments as of `prepare`."""
    report = Report()
    return prepare(
        folder,
        lambda: source.batches(report),
        encoder.load,
        config,
        most_exact=most_exact,
        copies=copies,
        dropped=lambda: dict(report.dropped),
    )


def _how_to_load(encoder: ScorerConfig) -> dict[str, str | None]:
    """Say how an encoder is found again from any folder; a folder by its whole path."""
    found = {"name": encoder.name, "revision": encoder.revision, "vectors": encoder.vectors}
    return {
        key: str(Path(value).expanduser().resolve()) if value and Path(value).expanduser().exists() else value
        for key, value in found.items()
    }


def _found(out: Path, identity: dict[str, Any]) -> Indexed | None:
    record = finished(out, identity, read_index, lambda record: record.settings, made="indexed")
    if record is None:
        return None
    remove_leftover(out, "search")
    return Indexed(out, record, fresh=False)


def read_index(folder: Path) -> IndexRecord:
    """Read the record of an index, and check that its files are there and whole.

    Raises:
        InputError: It is no index, or damaged.
    """
    path = folder / INDEX_RECORD
    if not path.is_file():
        raise InputError(f"{folder} is no index: it holds no {INDEX_RECORD}; make one with `paranmt search index`")
    values = read_json(path, "the record of an index")
    record = from_json(IndexRecord, values, path)
    from_json(_Shown, values, path)
    for name, size in record.files.items():
        if Path(name).name != name or not (folder / name).is_file() or (folder / name).stat().st_size != size:
            raise InputError(f"{folder / name} is missing or not of its size; make the index again")
    return record


class SentenceIndex:
    """An index that is open for queries.

    Args:
        folder: Where `build_index` put it.
        encoder: Encodes the queries; if left out, the one that made the index, from where it was found then.

    Raises:
        InputError: It is no index, or of another encoder.
    """

    def __init__(self, folder: str | Path, *, encoder: ScorerConfig | None = None) -> None:
        self.folder = Path(folder).expanduser()
        self.record = read_index(self.folder)
        made = self.record.settings["encoder"]
        chosen = encoder or from_json(ScorerConfig, self.record.load, self.folder / INDEX_RECORD)
        if chosen.identity["revision"] != made["revision"]:
            raise InputError(
                f"{self.folder} is an index of the encoder {made['name']} ({_brief(made['revision'])}), and "
                f"this is {chosen.identity['name']} ({_brief(chosen.identity['revision'])}), whose vectors do not "
                "compare: name that encoder, or make another index"
            )
        self._space, self._encoder = Space(self.folder), chosen.load()

    def search(self, queries: Sequence[str], *, top: int = 10, probes: int = PROBES) -> list[list[Hit]]:
        """Find the sentences nearest to queries.

        Args:
            queries: Sentences.
            top: Hits for each.
            probes: Lists that are looked into, where the index has lists; more find more, and take longer.

        Returns:
            Hits of each query, the nearest first.

        Raises:
            InputError: `top` or `probes` is below 1.
        """
        for name, value in (("top", top), ("probes", probes)):
            if value < 1:
                raise InputError(f"{name} must be at least 1, was {value}")
        if not queries:
            return []
        import torch

        from paranmt_hf.search import exact, lists

        space = self._space
        vectors = torch.from_numpy(encoded(self._encoder, list(queries)))
        if space.lists is None:
            found = exact.nearest(vectors, space.vectors, min(top, len(space.sentences)))
        else:
            found = lists.nearest(vectors, space.vectors, space.lists, min(top, len(space.sentences)), probes)
        # Where lists hold fewer sentences there is minus infinity.
        if not bool((found.scores < torch.inf).all()):
            raise InputError(f"{self.folder} is damaged: a vector holds a number that is not finite; make it again")
        return [self._hits(*row) for row in zip(found.scores.numpy(), found.items.numpy(), strict=True)]

    def _hits(self, scores: np.ndarray, places: np.ndarray) -> list[Hit]:
        there = places >= 0
        items = self._space.items(places[there])
        sentences = self._space.sentences
        found = zip(
            scores[there].tolist(), sentences.lines(items).tolist(), sentences.take(items).to_pylist(), strict=True
        )
        return [Hit(min(1.0, score), line + 1, sentence) for score, line, sentence in found]


def _brief(revision: object) -> str:
    return str(revision)[:19]


def read_queries(path: Path) -> list[str]:
    """Read queries, one on a line.

    Raises:
        InputError: There are none, or a line is no query: too long, or not UTF-8.
    """
    report = Report()
    found = [text for _, column in SentenceFile(path).batches(report) for text in column.to_pylist()]
    if spoilt := {reason: count for reason, count in report.dropped.items() if reason != "empty"}:
        told = ", ".join(f"{count:,} {reason}" for reason, count in spoilt.items())
        raise InputError(f"{path}: expected a query in UTF-8 on each line, but of {report.read:,} lines {told}")
    if not found:
        raise InputError(f"{path} holds no sentence to search for")
    return found
