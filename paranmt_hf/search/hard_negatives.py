"""`paranmt negatives`: pairs with hard negatives, as a dataset for sentence-transformers. Not in the papers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.pairs import SIDES, Pairs, PairSelection
from paranmt_hf.corpus.release import MAX_SHARD_BYTES, RollingWriter
from paranmt_hf.corpus.release_card import size_category
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.hub.cards import render
from paranmt_hf.search.indexed_vectors import (
    COUNTED,
    SEARCH,
    IndexConfig,
    IndexedVectors,
    holds_vectors,
    index_sentences,
    write_counted,
)
from paranmt_hf.search.storage import ITEMS, Counted, Precision, StoredSentences, spans, write_sentences
from paranmt_hf.text.tokens import keys_of
from paranmt_hf.training.inputs import sentences_of
from paranmt_hf.util.files import checksum, replacing, source_name, sweep, write_bytes
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import Identity, Record, as_json, made_with
from paranmt_hf.util.run import Result, result_folder, run
from paranmt_hf.util.settings import Cosine, Count, Group, Range, Seed, Share
from paranmt_hf.util.wording import counted

if TYPE_CHECKING:
    from datasets import Dataset

PAIRS = "pairs.npy"
WRITE_ROWS = 20_000
Rank = Annotated[int, Range(at_least=1, at_most=1000)]


@dataclass(frozen=True)
class HardNegativesConfig(IndexConfig):
    """Which sentences become negatives, and how they are searched.

    Attributes:
        number: Negatives of each pair; pairs with fewer are left out.
        first_rank: First rank of a negative among the sentences that are most similar to the anchor, false negatives
            not counted.
        last_rank: Last rank of a negative.
        max_score: Largest cosine of a negative and the anchor.
        min_score: Smallest cosine of a negative and the anchor.
        margin: A negative's cosine is at least this much below the positive's.
        relative_margin: A negative's cosine is at least this share of the positive's below it.
        sampling: Negatives of a pair: those of the first ranks (top), or random ones of the ranks that are left.
        scores: Add the column `scores`: the cosines of the anchor with the positive and with each negative.
        seed: Decides random negatives, and the sample of `max_pairs`.
        precision: Number format of the stored vectors; float16 takes half the space.
        probes: Number of lists that are searched for each anchor, if there are lists.
    """

    number: Annotated[int, Range(at_least=1, at_most=100)] = 3
    first_rank: Rank = 1
    last_rank: Rank = 50
    max_score: Cosine | None = None
    min_score: Cosine | None = None
    margin: Annotated[float, Range(at_least=0, at_most=2)] = 0.0
    relative_margin: Share = 0.05
    sampling: Literal["top", "random"] = "top"
    scores: bool = False
    seed: Seed = 1
    precision: Annotated[Precision, SEARCH] = "float16"
    probes: Annotated[Count, SEARCH] = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.last_rank - self.first_rank + 1 < self.number:
            raise InputError(
                f"the ranks from {self.first_rank} to {self.last_rank} hold fewer than {self.number} negatives; raise "
                "`last_rank`",
                option="last_rank",
            )

    @property
    def columns(self) -> list[str]:
        """The columns of text, with the names of sentence-transformers."""
        return ["anchor", "positive", *(f"negative_{place}" for place in range(1, self.number + 1))]


@dataclass(frozen=True, kw_only=True)
class NegativesRecord(Record):
    """The content of `negatives.json`."""

    FILE: ClassVar[str] = "negatives.json"
    KIND: ClassVar[str] = "pairs with hard negatives (`paranmt negatives`)"

    source: str  # Names of the data, without folders
    encoder: str
    rows: int  # Pairs with negatives
    sentences: int  # Distinct sentences, among which negatives were searched
    cosines: dict[str, float]  # Mean cosine of the anchor with each other column
    left_out: dict[str, int]  # Numbers of pairs that are left out, by reason
    # Numbers of sentences of the ranks that are no negatives of a pair, by the first reason
    rejected: dict[str, int]
    files: dict[str, str]  # Checksums


class HardNegatives(Result[NegativesRecord]):
    """Pairs with hard negatives."""

    def load(self) -> Dataset:
        """Load the dataset for a trainer."""
        from datasets import load_dataset

        return load_dataset(str(self.folder), split="train")

    def summary(self) -> str:
        """What the dataset holds, what was left out, and how to load it."""
        record, state = self.record, "" if self.fresh else " (were made already)"
        lines = [f"{self.folder}: {counted(record.rows, 'pair')} with negatives of {record.encoder}{state}"]
        lines += [f"  left out  {count:>12,} {reason}" for reason, count in record.left_out.items()]
        lines += [f"  rejected  {count:>12,} {reason}" for reason, count in record.rejected.items()]
        lines.append("  mean cosine with the anchor")
        lines += [f"  {name:<12} {cosine:9.3f}" for name, cosine in record.cosines.items()]
        return "\n".join([*lines, f"load it: load_dataset({str(self.folder)!r}, split='train')"])


def hard_negatives(
    data: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    encoder: str | Path | None = None,
    config: HardNegativesConfig | None = None,
    selection: Annotated[PairSelection | None, Group()] = None,
    exclude: str | Path | None = None,
) -> HardNegatives:
    """Find hard negatives for pairs: sentences that are similar to the reference, and no paraphrases of it.

    The dataset has the columns anchor (the reference), positive (the translation) and negative_1 to negative_n, which
    losses of sentence-transformers take. A negative is any sentence of the pairs, on either side. Excluded are copies
    of the reference, what these are paired with, and what those are paired with, as in training.

    Args:
        data: Releases, Parquet files with the columns reference and translation, or datasets on the Hub.
        out: Folder of the dataset: Parquet files, a card, and the record `negatives.json`.
        encoder: Folder, Hub id (ID@REVISION for a revision), or file of word vectors; the small encoder of this
            package if left out.
        config: Which sentences become negatives.
        selection: Which pairs.
        exclude: Folder of STS sets; pairs with one of their sentences are left out.
    """
    sources = [data] if isinstance(data, str | Path) else list(data)
    out = result_folder(out, NegativesRecord, sources=sources)
    config, named = config or HardNegativesConfig(), NamedEncoder.of(encoder)
    unwanted = sentences_of(exclude) if exclude is not None else set()
    pairs = Pairs(sources, selection or PairSelection(), unwanted, seed=config.seed)
    identity = as_json({"data": pairs.identity, "encoder": named.identity, "negatives": asdict(config)})
    source = ", ".join(map(source_name, sources))

    def make(work: Path, folder: Path) -> NegativesRecord:
        return _make(pairs, named, config, work, folder, identity, source)

    return run(out, identity, NegativesRecord, make, result=HardNegatives, command="negatives", holds=holds_vectors)


def _make(
    pairs: Pairs,
    encoder: NamedEncoder,
    config: HardNegativesConfig,
    work: Path,
    folder: Path,
    identity: Identity,
    source: str,
) -> NegativesRecord:
    # Imports torch, which the help of the command does not need.
    from paranmt_hf.search.ranked_negatives import MAX_EXACT_SENTENCES, find_negatives

    store = work / "sentences"
    _store_sentences(pairs, store)
    stored = index_sentences(store, encoder, config, max_exact=MAX_EXACT_SENTENCES)
    found = find_negatives(stored, np.load(store / PAIRS, mmap_mode="r"), config, work)
    kept = np.flatnonzero(found.items[:, 0] >= 0)
    if not len(kept):
        raise InputError(
            f"no pair has {counted(config.number, 'negative')}: "
            + ", ".join(f"{count:,} {reason}" for reason, count in (found.left_out | found.rejected).items())
            + "; lower the margins, raise `last_rank`, or give more pairs"
        )
    files = _write(kept, found.items, found.cosines, stored, config, folder)
    means = found.cosines[kept].mean(axis=0, dtype=np.float64).tolist()
    record = NegativesRecord(
        settings=identity,
        source=source,
        encoder=str(encoder.identity["name"]),
        rows=len(kept),
        sentences=len(stored.sentences),
        cosines=dict(zip(config.columns[1:], means, strict=True)),
        left_out=stored.counted.dropped | found.left_out,
        rejected=found.rejected,
        files={path.relative_to(folder).as_posix(): checksum(path) for path in files},
        **made_with("numpy", "pyarrow", "torch"),
    )
    write_bytes(folder / "README.md", _card(record, config).encode())
    return record


def _store_sentences(pairs: Pairs, folder: Path) -> None:
    """Store all sentences, those of pair p in the rows 2p and 2p + 1; the distinct ones of them are the items.

    Sentences with the same key are one item, as in training: the first of them is encoded.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / COUNTED).exists():
        return
    sweep(folder)
    parts: list[np.ndarray] = []
    stored = write_sentences(_rows(pairs, parts), folder, copies=True)
    if not stored.items:
        raise InputError(f"there are no pairs: {pairs.left_out}; choose other pairs")
    keys = np.concatenate(parts)
    _, first, item = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(first), np.int32)
    number[order] = np.arange(len(first), dtype=np.int32)
    write_bytes(folder / ITEMS, first[order].astype(np.int64).tobytes())
    with replacing(folder / PAIRS) as aside, aside.open("wb") as file:
        np.save(file, number[item].reshape(-1, 2), allow_pickle=False)
    left_out = {reason.removeprefix("pairs "): count for reason, count in pairs.left_out_by.items()}
    write_counted(folder, Counted(len(keys), len(first), left_out))


def _rows(pairs: Pairs, keys: list[np.ndarray]) -> Iterator[pa.RecordBatch]:
    """Read the sentences, those of a pair one after the other, and append their keys."""
    count = 0
    for table in pairs.batches():
        sides = [pa.concat_arrays(table[side].chunks) for side in SIDES]
        keys.append(keys_of(*sides).T.ravel())
        order = np.arange(2 * table.num_rows).reshape(2, -1).T.ravel()
        sentences = pa.concat_arrays(sides).take(pa.array(order))
        yield pa.record_batch([pa.array(count + np.arange(len(order))), sentences], names=["id", "sentence"])
        count += len(order)


def _write(
    kept: np.ndarray,
    items: np.ndarray,
    cosines: np.ndarray,
    stored: IndexedVectors,
    config: HardNegativesConfig,
    folder: Path,
) -> list[Path]:
    fields = [pa.field(name, pa.string(), nullable=False) for name in config.columns]
    fields += [pa.field("scores", pa.list_(pa.float32()), nullable=False)] if config.scores else []
    writer = RollingWriter(folder / "data", pa.schema(fields), MAX_SHARD_BYTES)
    sentences: StoredSentences = stored.sentences
    with Progress("write", len(kept), unit="pairs") as progress:
        for start, stop in spans(len(kept), WRITE_ROWS):
            pairs = kept[start:stop]
            columns = [sentences.rows(2 * pairs), sentences.rows(2 * pairs + 1)]
            columns += [sentences.take(items[pairs, place]) for place in range(config.number)]
            columns = [column.cast(pa.string()) for column in columns]
            if config.scores:
                bounds = np.arange(len(pairs) + 1, dtype=np.int32) * cosines.shape[1]
                columns.append(pa.ListArray.from_arrays(bounds, cosines[pairs].ravel()))
            writer.write(pa.table(columns, schema=writer.schema))
            progress.advance_to(stop)
    return writer.close()


def _card(record: NegativesRecord, config: HardNegativesConfig) -> str:
    header = {
        "task_categories": ["sentence-similarity"],
        "size_categories": [size_category(record.rows)],
        "tags": ["sentence-transformers", "hard-negatives", "paranmt"],
        "configs": [{"config_name": "default", "data_files": [{"split": "train", "path": "data/train-*.parquet"}]}],
    }
    return render(
        "negatives", header, {**vars(record), "chosen": record.identity["negatives"], "scores": config.scores}
    )
