"""Augment labelled sentences with paraphrases, each of which has the label of its sentence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paranmt_hf.corpus.draws import lottery
from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.job import run_job
from paranmt_hf.corpus.jobs.shards import Manifest
from paranmt_hf.corpus.pairs import plain
from paranmt_hf.encoders.scorer import ScorerConfig
from paranmt_hf.errors import InputError
from paranmt_hf.paraphrase.config import ParaphraseConfig
from paranmt_hf.paraphrase.labelled_file import SUFFIXES, LabelledFile, TableWriter, with_text
from paranmt_hf.paraphrase.paraphrase_job import cut_shards, make_once, result_file
from paranmt_hf.paraphrase.stage import ParaphraseStage
from paranmt_hf.util.files import replacing
from paranmt_hf.util.records import as_json
from paranmt_hf.util.settings import check, setting
from paranmt_hf.util.text_numbers import text_numbers

COMMAND = "augment"


@dataclass(frozen=True)
class AugmentConfig:
    """Which paraphrases of labelled sentences are kept; of each sentence there are at most `ParaphraseConfig.n`."""

    text: str = setting("text", "column of the sentences")
    label: str = setting("label", "column of the labels")
    balance: bool = setting(False, "bring each label to as many rows as the most frequent one has, and no further")
    per_label: int | None = setting(
        None, "most rows of a label, originals included; those that have more keep them all", at_least=1
    )

    def __post_init__(self) -> None:
        check(self)
        if self.balance and self.per_label is not None:
            raise InputError("give either balance, which counts the most frequent label, or per_label")


@dataclass(frozen=True)
class AugmentedFile:
    """A file of labelled sentences and paraphrases.

    Attributes:
        path: The file.
        labels: Of each label the rows that were there (`originals`), those added (`paraphrases`), and those that its
            quota asked for and that were not found (`short`).
        notes: Sentences without a paraphrase, by reason.
        left_out: Paraphrases that are in the file already, as a sentence or as a paraphrase of another one.
        fresh: Whether this call made it.
    """

    path: Path
    labels: dict[str, dict[str, int]]
    notes: dict[str, int] = field(default_factory=dict)
    left_out: int = 0
    fresh: bool = True


def augment(
    file: str | Path,
    out: str | Path,
    *,
    model: str | Path,
    config: AugmentConfig | None = None,
    search: ParaphraseConfig | None = None,
    scorer: ScorerConfig | None = None,
    engine: EngineConfig | None = None,
) -> AugmentedFile:
    """Add paraphrases to labelled sentences.

    Every row stays, in its order and with its label; its paraphrases follow it. A paraphrase that is a sentence of the
    file, case and punctuation aside, or a paraphrase of an earlier choice, is left out, whatever its label.

    Args:
        file: TSV or CSV with a header, JSON lines or Parquet, with a column of text and one of labels.
        out: The new file, in any of these forms, with the columns of text and labels as they are called in `file`,
            `original` (whether the row was there), `index` (of its sentence in `file`, from 0) and `score` (the
            paraphrase score; of originals nothing). Work in progress lies in `<out>.work`.
        model: Folder or Hub id of an encoder-decoder.
        config: Columns and quotas.
        search: How paraphrases are searched, how many of each sentence, and which are good enough.
        scorer: The encoder behind the paraphrase score; the small one of this package if left out.
        engine: Where the work runs.

    Raises:
        InputError: Bad input, or `out` holds something else.
    """
    config, search = config or AugmentConfig(), search or ParaphraseConfig()
    out = result_file(out, SUFFIXES)
    source = LabelledFile(file, config.text, config.label, out=out)
    if taken := {config.text, config.label} & {"original", "index", "score"}:
        raise InputError(f"{file}: the column {taken.pop()!r} has the name of one that is added; rename it")
    engine = (engine or EngineConfig()).resolved()
    stage = ParaphraseStage(str(model), search, scorer or ScorerConfig(), engine.threads)
    identity = as_json({"input": source.identity, "augment": asdict(config), **stage.identity})

    def make(work: Path) -> dict[str, Any]:
        whole = cut_shards(source.batches(), work / "whole", identity)
        quotas = _quotas(whole, config)
        wanting = {label for label, quota in quotas.items() if quota is None or quota > 0}
        cut = cut_shards(_of_labels(whole, wanting), work / "input", identity)
        done = run_job(cut, work / "output", stage, engine)
        chosen = _choose(whole, cut, done, quotas, search.seed)
        figures = _write(whole, done, chosen, source, work / out.name)
        for label, counts in figures["labels"].items():
            quota = quotas[label]
            counts["short"] = 0 if quota is None else max(0, quota - counts["paraphrases"])
        return {**figures, "notes": done.dropped}

    return make_once(AugmentedFile, out, identity, make, command=COMMAND, doing="augmenting")


def _quotas(whole: Manifest, config: AugmentConfig) -> dict[str, int | None]:
    """Say how many paraphrases each label is to get; None for as many as there are."""
    counts: dict[str, int] = {}
    for shard in whole.paths():
        for entry in pq.read_table(shard, columns=["label"])["label"].value_counts().to_pylist():
            counts[str(entry["values"])] = counts.get(str(entry["values"]), 0) + entry["counts"]
    if not config.balance and config.per_label is None:
        return dict.fromkeys(sorted(counts))
    most = config.per_label or max(counts.values())
    return {label: max(0, most - count) for label, count in sorted(counts.items())}


def _of_labels(whole: Manifest, labels: set[str]) -> Iterator[pa.Table]:
    """Read the rows of some labels; one without text is an empty sentence."""
    wanted = pa.array(sorted(labels), pa.string())
    for shard in whole.paths():
        table = pq.read_table(shard)
        table = table.filter(pc.is_in(table["label"].cast(pa.string()), wanted))
        yield with_text(table)


@dataclass(frozen=True)
class _Chosen:
    """Which paraphrases are kept: index of the sentence and rank of each, sorted; how many were there already."""

    keys: np.ndarray
    left_out: int


def _choose(whole: Manifest, cut: Manifest, done: Manifest, quotas: dict[str, int | None], seed: int) -> _Chosen:
    """Choose the paraphrases of each label: the best of each sentence first, sentences in an order drawn by chance.

    A number stands for each text, for all of them at once would not fit into memory where there are many.
    """
    names = {label: number for number, label in enumerate(quotas)}
    known = np.unique(
        np.concatenate(
            [
                # A row may be without text.
                text_numbers(plain(pq.read_table(shard, columns=["source"])["source"].drop_null()))
                for shard in whole.paths()
            ]
        )
    )
    columns: dict[str, list[np.ndarray]] = {name: [] for name in ("index", "rank", "label")}
    numbers = [np.empty(0, np.uint64)]
    candidates = 0
    for before, after in zip(cut.paths(), done.paths(), strict=True):
        rows, found = pq.read_table(before), pq.read_table(after, columns=["index", "rank", "paraphrase"])
        found = found.filter(pc.greater(found["rank"], 0))
        candidates += found.num_rows
        text = plain(found["paraphrase"])
        own = text_numbers(text)
        new = ~_among(own, known) & pc.not_equal(text, "").to_numpy()
        found = found.filter(pa.array(new))
        at = np.searchsorted(rows["index"].to_numpy(), found["index"].to_numpy())
        labels = np.array([names[str(label)] for label in rows["label"].to_pylist()], np.int64)
        columns["index"].append(found["index"].to_numpy())
        columns["rank"].append(found["rank"].to_numpy().astype(np.int64))
        columns["label"].append(labels[at])
        numbers.append(own[new])
    index, rank, label = (np.concatenate([np.empty(0, np.int64), *columns[name]]) for name in columns)
    order = np.lexsort((index, lottery(index, seed), rank))
    # Of equal paraphrases the first in this order stays, whatever its label.
    _, firsts = np.unique(np.concatenate(numbers)[order], return_index=True)
    order = order[np.sort(firsts)]
    kept = []
    for name, number in names.items():
        kept.append(order[label[order] == number][: quotas[name]])
    taken = np.concatenate([np.empty(0, np.int64), *kept])
    keys = np.stack([index[taken], rank[taken]], axis=1)
    return _Chosen(keys[np.lexsort((keys[:, 1], keys[:, 0]))], candidates - len(order))


def _among(numbers: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Tell which numbers [number] are among known ones [known], which are sorted."""
    places = np.minimum(np.searchsorted(known, numbers), max(0, len(known) - 1))
    return known[places] == numbers if len(known) else np.zeros(len(numbers), bool)


def _write(whole: Manifest, done: Manifest, chosen: _Chosen, source: LabelledFile, path: Path) -> dict[str, Any]:
    """Write every row and behind it its paraphrases; returns figures of each label."""
    labels: dict[str, dict[str, int]] = {}
    kind = pq.read_schema(whole.paths()[0]).field("label").type
    columns = {source.text: pa.string(), source.label: kind, "original": pa.bool_(), "index": pa.int64()}
    schema = pa.schema({**columns, "score": pa.float32()})
    paraphrases = _Paraphrases(done, chosen.keys)
    with replacing(path) as aside, TableWriter(aside, schema, path.suffix.lower()) as writer:
        for shard in whole.paths():
            rows = pq.read_table(shard)
            added = paraphrases.up_to(rows["index"][-1].as_py())
            at = pa.array(np.searchsorted(rows["index"].to_numpy(), added["index"].to_numpy()))
            for name, column in (("originals", rows["label"]), ("paraphrases", rows["label"].take(at))):
                for entry in column.value_counts().to_pylist():
                    counts = labels.setdefault(str(entry["values"]), {"originals": 0, "paraphrases": 0})
                    counts[name] += entry["counts"]
            table = pa.table(
                {
                    source.text: pa.chunked_array([*rows["source"].chunks, *added["paraphrase"].chunks]),
                    source.label: pa.chunked_array([*rows["label"].chunks, *rows["label"].take(at).chunks], kind),
                    "original": pa.array([True] * rows.num_rows + [False] * added.num_rows),
                    "index": pa.chunked_array([*rows["index"].chunks, *added["index"].chunks]),
                    "score": pa.chunked_array(
                        [pa.nulls(rows.num_rows, pa.float32()), *added["score"].chunks], pa.float32()
                    ),
                }
            )
            ranks = np.concatenate([np.zeros(rows.num_rows, np.int64), added["rank"].to_numpy()])
            writer.write(table.take(pa.array(np.lexsort((ranks, table["index"].to_numpy())))))
    return {"labels": dict(sorted(labels.items())), "left_out": chosen.left_out}


class _Paraphrases:
    """The chosen paraphrases, read shard by shard in the order of their sentences."""

    def __init__(self, done: Manifest, keys: np.ndarray) -> None:
        self._shards = iter(done.paths())
        # Index and rank as one number, in which ranks have room; sorted, as the keys are.
        self._room = int(keys[:, 1].max(initial=0)) + 1
        self._numbers = keys[:, 0] * self._room + keys[:, 1]
        self._left: pa.Table | None = None

    def up_to(self, last: int) -> pa.Table:
        """Give those of sentences up to an index that were not given before."""
        taken = []
        while True:
            if self._left is None or not self._left.num_rows:
                shard = next(self._shards, None)
                if shard is None:
                    break
                self._left = self._only_chosen(pq.read_table(shard))
                continue
            count = int(np.searchsorted(self._left["index"].to_numpy(), last, side="right"))
            taken.append(self._left.slice(0, count))
            self._left = self._left.slice(count)
            if self._left.num_rows:
                break
        if not taken:
            return pa.table(
                {
                    "index": pa.array([], pa.int64()),
                    "paraphrase": pa.array([], pa.string()),
                    "rank": pa.array([], pa.int32()),
                    "score": pa.array([], pa.float32()),
                }
            )
        return pa.concat_tables(taken)

    def _only_chosen(self, table: pa.Table) -> pa.Table:
        table = table.select(["index", "paraphrase", "rank", "score"])
        index, rank = table["index"].to_numpy(), table["rank"].to_numpy()
        return table.filter(pa.array((rank < self._room) & _among(index * self._room + rank, self._numbers)))
