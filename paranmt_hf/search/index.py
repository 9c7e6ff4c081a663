"""An index of the distinct sentences of a corpus, and its sentences nearest to queries."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from paranmt_hf.corpus.bitext.readers import Report
from paranmt_hf.corpus.sentences import SentenceFile
from paranmt_hf.encoders.scorer import ScorerConfig
from paranmt_hf.errors import InputError
from paranmt_hf.search.storage import (
    VECTORS,
    WRITTEN,
    Batch,
    Counted,
    Precision,
    Sentences,
    Vectors,
    normalised,
    write_in_order,
    write_sentences,
    write_vectors,
)
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.util.files import write_bytes
from paranmt_hf.util.records import from_json, read_json
from paranmt_hf.util.settings import check, seed_setting, setting
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

if TYPE_CHECKING:
    from paranmt_hf.search.inverted_index import InvertedIndex

Method = Literal["auto", "exact", "lists"]
COUNTED, LISTED, SORTED = "sentences.json", "lists.json", "sorted.npy"


@dataclass(frozen=True)
class SpaceConfig:
    """How sentences are stored and searched."""

    method: Method = setting(
        "auto", "exact: compare with all; lists: look into the nearest lists (default: exact for few sentences)"
    )
    lists: int | None = setting(None, "number of lists (default: 2 x square root of the sentences)", at_least=1)
    precision: Precision = setting("float32", "of the stored vectors; float16 takes half the room")
    seed: int = seed_setting(1, "decides where the lists are")

    def __post_init__(self) -> None:
        check(self)
        if self.lists is not None and self.method == "exact":
            raise InputError("an exact search has no lists: leave out --lists, or give --method lists")

    def count(self, sentences: int, most_exact: int) -> int | None:
        """Number of lists for so many sentences; None where the search is exact."""
        if self.method == "exact" or (self.method == "auto" and self.lists is None and sentences <= most_exact):
            return None
        return min(sentences, self.lists or round(2 * math.sqrt(sentences)))


class Space:
    """What is searched.

    Attributes:
        counted: How many sentences were read, taken and dropped.
        sentences: The sentences; their numbers are items.
        lists: Where the vectors lie, unless they lie in the order of the items.
        vectors: Their vectors; their numbers are places.

    Args:
        folder: Where `prepare` put everything.
    """

    def __init__(self, folder: Path) -> None:
        self.counted = _counted(folder)
        self.sentences = Sentences(folder)
        self.lists: InvertedIndex | None = None
        if (folder / LISTED).exists():
            # Torch is loaded only now, so that the help of the commands needs none.
            from paranmt_hf.search.inverted_index import InvertedIndex

            self.lists = InvertedIndex.read(folder)
        self.vectors = Vectors(folder / (VECTORS if self.lists is None else SORTED))

    def items(self, places: np.ndarray) -> np.ndarray:
        """Turn places of vectors into items."""
        return places if self.lists is None else self.lists.order[places]


def prepare(
    folder: Path,
    batches: Callable[[], Iterable[Batch]],
    encoder: Callable[[], Encoder],
    config: SpaceConfig,
    *,
    most_exact: int,
    copies: bool = False,
    dropped: Callable[[], dict[str, int]] = dict,
) -> Space:
    """Make what is searched, or go on with it.

    Args:
        folder: Where it is made; it must belong to these arguments.
        batches: Reads the sentences.
        encoder: Loads the encoder.
        config: How they are stored and searched.
        most_exact: Up to so many sentences an `auto` search is exact.
        copies: Whether copies of a sentence are items of their own.
        dropped: Says, when all were read, what was left out, by reason.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob(".*.tmp"):
        # What a kill left in the middle of writing a file.
        path.unlink()
    if not (folder / COUNTED).exists():
        counted = write_sentences(batches(), folder, copies=copies)
        if not counted.items:
            raise InputError(
                "there is no sentence to search in: every line was dropped, as empty, too long or no UTF-8"
            )
        write_bytes(folder / COUNTED, json.dumps(asdict(replace(counted, dropped=dropped()))).encode())
    items = _counted(folder).items
    if not (folder / LISTED).exists():
        vectors = _vectors(folder, items, encoder, config.precision)
        count = config.count(items, most_exact)
        if count is None:
            return Space(folder)
        _sort(folder, vectors, count, config)
    # The vectors in the order of the items, of which the sorted ones are a copy.
    for name in (VECTORS, WRITTEN):
        (folder / name).unlink(missing_ok=True)
    return Space(folder)


def _counted(folder: Path) -> Counted:
    path = folder / COUNTED
    return from_json(Counted, read_json(path, "how many sentences there are"), path)


def _vectors(folder: Path, items: int, encoder: Callable[[], Encoder], precision: Precision) -> Vectors:
    """Write the vectors of the sentences that have none yet."""
    sentences, loaded = Sentences(folder), None

    def encode(start: int, stop: int) -> np.ndarray:
        nonlocal loaded
        loaded = loaded or encoder()
        return encoded(loaded, sentences.take(np.arange(start, stop)).to_pylist())

    return write_vectors(folder, items, encode, precision)


def encoded(encoder: Encoder, sentences: list[str]) -> np.ndarray:
    """Encode sentences into vectors [sentence, dimension] of length 1, or 0 for one without a known word."""
    vectors = np.asarray(encoder.encode(sentences))
    if not np.isfinite(vectors).all():
        where = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise InputError(f"the encoder gave a vector that is not finite for {sentences[where]!r}; choose another one")
    return normalised(vectors)


def _sort(folder: Path, vectors: Vectors, count: int, config: SpaceConfig) -> None:
    """Put the vectors into lists, and write them in that order."""
    from paranmt_hf.search.inverted_index import InvertedIndex

    lists = InvertedIndex.make(vectors, count, config.seed)
    lists.save(folder)
    write_in_order(vectors, lists.order, folder / SORTED, config.precision)
    write_bytes(folder / LISTED, json.dumps({"lists": count}).encode())


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
    """Read the record of an index, and check that its files are there and whole."""
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
        """
        for name, value in (("top", top), ("probes", probes)):
            if value < 1:
                raise InputError(f"{name} must be at least 1, was {value}")
        if not queries:
            return []
        import torch

        from paranmt_hf.search import inverted_index
        from paranmt_hf.search.neighbours import nearest

        space = self._space
        vectors = torch.from_numpy(encoded(self._encoder, list(queries)))
        if space.lists is None:
            found = nearest(vectors, space.vectors, min(top, len(space.sentences)))
        else:
            found = inverted_index.nearest(vectors, space.vectors, space.lists, min(top, len(space.sentences)), probes)
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
    """Read queries, one on a line."""
    report = Report()
    found = [text for _, column in SentenceFile(path).batches(report) for text in column.to_pylist()]
    if spoilt := {reason: count for reason, count in report.dropped.items() if reason != "empty"}:
        told = ", ".join(f"{count:,} {reason}" for reason, count in spoilt.items())
        raise InputError(f"{path}: expected a query in UTF-8 on each line, but of {report.read:,} lines {told}")
    if not found:
        raise InputError(f"{path} holds no sentence to search for")
    return found
