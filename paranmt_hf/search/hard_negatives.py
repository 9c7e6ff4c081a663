"""`paranmt negatives`: a dataset of pairs with hard negatives, for sentence-transformers. Not in the papers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.reading.pair_files import languages
from paranmt_hf.corpus.reading.pairs import SIDES, Pairs, PairSelection
from paranmt_hf.corpus.release.release import write_files
from paranmt_hf.corpus.release.release_card import size_category
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.hub.cards import render
from paranmt_hf.search.indexed_vectors import IndexedVectors, holds_vectors, index_sentences
from paranmt_hf.search.ranked_negatives import NOBODY, FoundNegatives, HardNegativesConfig, find_negatives
from paranmt_hf.search.storage import ITEMS, Counted, spans, write_sentences
from paranmt_hf.text.identity import first_equal, keys_of
from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.training.inputs import sentences_of
from paranmt_hf.util.files import checksum, listed, replacing, source_name, write_bytes
from paranmt_hf.util.markers import Group, Prefixed
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import Record, as_json, made_with
from paranmt_hf.util.run import Result, result_folder, run
from paranmt_hf.util.wording import counted
from paranmt_hf.util.work import continue_with

if TYPE_CHECKING:
    from datasets import Dataset

SENTENCES, PAIRS = "sentences", "pairs.npy"


@dataclass(frozen=True, kw_only=True)
class NegativesRecord(Record):
    """The record of a dataset of pairs with hard negatives, the file `negatives.json` in its folder."""

    FILE: ClassVar[str] = "negatives.json"
    KIND: ClassVar[str] = "pairs with hard negatives (`paranmt negatives`)"

    source: str  # Names of the corpora or files, without their folders
    encoder: str  # Name of the encoder
    rows: int  # Number of pairs with negatives, the rows of the dataset
    sentences: int  # Number of distinct sentences among which negatives were searched
    cosines: dict[str, float]  # Mean cosine of the anchor with each other column, by the name of the column
    left_out: dict[str, int]  # Number of pairs that were left out, by reason
    rejected: dict[str, int]  # Number of sentences inside the ranks that were not taken, by the first reason
    files: dict[str, str]  # SHA-256 of each file, in hexadecimal, by its path in the folder

    @property
    def card(self) -> str:
        """Text of the dataset card, `README.md`."""
        sums = hashlib.sha256(" ".join(self.files.values()).encode()).hexdigest()
        train = {"split": "train", "path": "data/train-*.parquet"}
        header = {
            "task_categories": ["sentence-similarity"],
            "size_categories": [size_category(self.rows)],
            "tags": ["sentence-transformers", "hard-negatives", "paranmt"],
            "configs": [{"config_name": "default", "data_files": [train]}],
            # `datasets` takes a folder with the name and the card of a cached one for the cached one, so the card
            # must differ where the files do.
            "dataset_info": {"config_name": "default", "description": f"rows of sha256 {sums}"},
        }
        return render("negatives", header, {**vars(self), "chosen": self.identity["negatives"]})


class HardNegatives(Result[NegativesRecord]):
    """A dataset of pairs with hard negatives in a folder."""

    def load(self) -> Dataset:
        """Load the pairs as a dataset, which a trainer of sentence-transformers takes."""
        from datasets import load_dataset

        return load_dataset(str(self.folder), split="train")

    def summary(self) -> str:
        """Describe what the dataset holds, what was left out, and how to load it."""
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
    columns: Mapping[str, str] | None = None,
    config: HardNegativesConfig | None = None,
    selection: Annotated[PairSelection | None, Group(), Prefixed] = None,
    exclude: str | Path | None = None,
) -> HardNegatives:
    """Find hard negatives for pairs: sentences that are similar to the reference, and no paraphrases of it.

    The dataset has the columns anchor (the reference), positive (the translation) and negative_1 to negative_n, which
    losses of sentence-transformers take. A negative is a sentence of any pair, from either side. These are never
    negatives, as in training: copies of the reference, sentences that are paired with a copy, and sentences that are
    paired with one of those.

    Args:
        data: Corpora, Parquet files with the columns reference and translation, or datasets on the Hub. Pairs
            with a column label are paraphrases where it is 1; the others are left out.
        out: Folder of the dataset: Parquet files, a card, and the record `negatives.json`.
        encoder: Folder, Hub id (ID@REVISION for a revision), or file of word vectors; that of this
            package for the language of the pairs if left out.
        columns: Columns of `data` with other names: reference=sentence1,translation=sentence2,label=is_duplicate.
        config: Which sentences become negatives.
        selection: Which pairs.
        exclude: Folder of STS sets; pairs with one of their sentences are left out.
    """
    sources = listed(data)
    out = result_folder(out, NegativesRecord, sources=sources)
    config = config or HardNegativesConfig()
    unwanted = sentences_of(exclude) if exclude is not None else set()
    pairs = Pairs(sources, selection or PairSelection(), unwanted, columns=columns, seed=config.seed)
    named = NamedEncoder.for_languages(encoder, languages(pairs.identity) or [ENGLISH])
    identity = as_json({"data": pairs.identity, "encoder": named.identity, "negatives": asdict(config)})

    def make(work: Path, folder: Path) -> NegativesRecord:
        # With other margins or ranks, only the vectors of an earlier run are kept.
        continue_with(work, identity, keep={SENTENCES}, holds=lambda work: False)
        store = work / SENTENCES
        write = partial(_write_sentences, pairs)
        # Up to a quarter of a million sentences, each anchor is compared with all of them.
        stored = index_sentences(store, write, named, config, max_exact=250_000)
        found = find_negatives(stored, np.load(store / PAIRS), config, work)
        kept = np.flatnonzero(found.items[:, 0] != NOBODY)
        if not len(kept):
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in (found.left_out | found.rejected).items())
            raise InputError(f"no pair has negatives: {reasons}; lower the margins, or give more pairs")
        columns = ["anchor", "positive", *(f"negative_{place}" for place in range(1, config.number + 1))]
        files = _write(kept, columns, found, stored, folder, scores=config.scores)
        means = found.cosines[kept].mean(axis=0, dtype=np.float64).tolist()
        record = NegativesRecord(
            settings=identity,
            source=", ".join(map(source_name, sources)),
            encoder=str(named.identity["name"]),
            rows=len(kept),
            sentences=len(stored.sentences),
            cosines=dict(zip(columns[1:], means, strict=True)),
            left_out={name: count for name, count in (stored.counted.dropped | found.left_out).items() if count},
            rejected={name: count for name, count in found.rejected.items() if count},
            files={path.relative_to(folder).as_posix(): checksum(path) for path in files},
            **made_with("numpy", "pyarrow"),
        )
        write_bytes(folder / "README.md", record.card.encode())
        return record

    stored = {"lists": config.lists, "precision": config.precision}
    return run(
        out,
        identity,
        NegativesRecord,
        make,
        result=HardNegatives,
        command="negatives",
        holds=holds_vectors,
        work_identity={**identity, "negatives": stored},
    )


def _write_sentences(pairs: Pairs, folder: Path) -> Counted:
    """Store the sentences of pairs, and the items of each pair.

    The sentences of pair p are the rows 2p and 2p + 1. Sentences with the same key, as training compares them, are one
    item, whose first row is encoded. The file `PAIRS` has the items of each pair [pair, side], int32.
    """
    parts: list[np.ndarray] = []
    stored = write_sentences(_rows(pairs, parts), folder, copies=True)
    if not stored.items:
        raise InputError(f"there are no pairs: {pairs.left_out}; choose other pairs")
    repeats = first_equal(np.concatenate(parts))
    first = repeats < 0
    items = np.flatnonzero(first)
    # The item of each row is the item of the first row with the same key.
    item = (np.cumsum(first, dtype=np.int32) - 1)[np.where(first, np.arange(len(first)), repeats)]
    write_bytes(folder / ITEMS, items.astype(np.int64).tobytes())
    with replacing(folder / PAIRS) as aside, aside.open("wb") as file:
        np.save(file, item.reshape(-1, 2), allow_pickle=False)
    left_out = {reason.removeprefix("pairs "): count for reason, count in pairs.left_out_by.items()}
    return Counted(len(first), len(items), left_out)


def _rows(pairs: Pairs, keys: list[np.ndarray]) -> Iterator[pa.RecordBatch]:
    """Yield the sentences of pairs, the two of a pair one after the other, and append their keys to `keys`."""
    count = 0
    for table in pairs.batches():
        sides = [pa.concat_arrays(table[side].chunks) for side in SIDES]
        keys.append(keys_of(*sides).T.ravel())
        order = np.arange(2 * table.num_rows).reshape(2, -1).T.ravel()
        sentences = pa.concat_arrays(sides).take(pa.array(order))
        yield pa.record_batch([pa.array(count + np.arange(len(order))), sentences], names=["id", "sentence"])
        count += len(order)


def _write(
    kept: np.ndarray, columns: list[str], found: FoundNegatives, stored: IndexedVectors, folder: Path, *, scores: bool
) -> list[Path]:
    """Write the dataset as Parquet files, and return their paths.

    Args:
        kept: Indices of the pairs that have negatives, the rows of the dataset.
        columns: Names of the columns of sentences: anchor, positive and the negatives.
        found: Negatives of all pairs.
        stored: Sentences of the pairs.
        folder: Folder of the dataset.
        scores: Whether the column `scores` is written too.
    """
    schema = pa.schema([pa.field(name, pa.string(), nullable=False) for name in columns])
    if scores:
        schema = schema.append(pa.field("scores", pa.list_(pa.float32()), nullable=False))
    sentences = stored.sentences

    def tables(progress: Progress) -> Iterator[pa.Table]:
        for start, stop in spans(len(kept), 20_000):
            pairs = kept[start:stop]
            texts = [sentences.rows(2 * pairs), sentences.rows(2 * pairs + 1)]
            texts += [sentences.take(items) for items in found.items[pairs].T]
            arrays: list[pa.Array] = [text.cast(pa.string()) for text in texts]
            if scores:
                arrays.append(pa.array(list(found.cosines[pairs]), pa.list_(pa.float32())))
            yield pa.table(arrays, schema=schema)
            progress.advance_to(stop)

    with Progress("write", len(kept), unit="pairs") as progress:
        return write_files(tables(progress), folder / "data", schema)
