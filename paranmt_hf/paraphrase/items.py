"""The sentences that paraphrasers are evaluated on, with references, and paraphrases of them from files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.draws import text_numbers
from paranmt_hf.corpus.pairs import SIDES, Pairs, PairSelection
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.pair_set import parse_sentence, read_lines
from paranmt_hf.hub.repository import Model
from paranmt_hf.paraphrase.config import ParaphraseEvaluationData
from paranmt_hf.paraphrase.record import ParaphraserRecord
from paranmt_hf.paraphrase.tables import read_tables
from paranmt_hf.util.settings import is_given
from paranmt_hf.util.wording import counted

TSV_SUFFIXES = (".tsv", ".txt")
OUTPUT_SUFFIXES = (".parquet", ".jsonl", ".tsv")
OUTPUT_COLUMNS = ("source", "paraphrase", "rank")
OUTPUT_TYPES = {**dict.fromkeys((*OUTPUT_COLUMNS, "template"), pa.string()), "rank": pa.int32()}


@dataclass(frozen=True)
class ParaphraseItems:
    """Sentences with references.

    Attributes:
        name: Name of the data.
        sources: The sentences [item], all different.
        references: What people wrote for each [item][reference]; empty if nothing is known.
    """

    name: str
    sources: list[str]
    references: list[list[str]]

    @property
    def checksum(self) -> str:
        """SHA-256 of all sentences and references."""
        rows = ("\t".join(row) for row in zip(self.sources, map("\t".join, self.references), strict=True))
        return hashlib.sha256("\n".join(rows).encode()).hexdigest()

    @property
    def has_references(self) -> bool:
        """Whether each sentence has a reference."""
        return bool(self.references) and all(self.references)


def group(name: str, pairs: Iterable[tuple[str, str]]) -> ParaphraseItems:
    """Group pairs of sources and references by source."""
    found: dict[str, dict[str, None]] = {}
    for source, reference in pairs:
        found.setdefault(" ".join(source.split()), {})[" ".join(reference.split())] = None
    return ParaphraseItems(name, list(found), [list(references) for references in found.values()])


@dataclass(frozen=True)
class ParaphraseData:
    """Sentences that paraphrasers are evaluated on, sampled at random by a seed.

    `data` is one TSV file (sentence, reference), which has no direction and nothing held out, or what `Pairs` reads.
    The training of `models` held references out.
    """

    data: Sequence[str | Path]
    config: ParaphraseEvaluationData
    selection: PairSelection
    seed: int = 1
    models: Sequence[Model] = ()

    @property
    def name(self) -> str:
        """Name of the data, without parent folders."""
        return ", ".join(Path(each).name if Path(each).exists() else str(each) for each in self.data)

    @property
    def is_tsv(self) -> bool:
        """Whether the data are one TSV file."""
        return len(self.data) == 1 and Path(self.data[0]).suffix.lower() in TSV_SUFFIXES

    def items(self) -> ParaphraseItems:
        """Read sentences with their references."""
        if self.is_tsv:
            return group(self.name, self.rows())
        key, value = SIDES[::-1] if self.config.direction == "to-reference" else SIDES
        table = self._chosen(key)
        return group(self.name, zip(table[key].to_pylist(), table[value].to_pylist(), strict=True))

    def references(self) -> list[str]:
        """Read the distinct references of pairs; not for TSV files."""
        references = self._chosen(SIDES[0])[SIDES[0]].to_pylist()
        return list(dict.fromkeys(" ".join(reference.split()) for reference in references))

    def rows(self) -> list[tuple[str, str]]:
        """Read rows of a TSV file of two columns."""
        given = [name for name in ("direction", "held_out") if is_given(self.config, name)]
        given += [name for name in PairSelection.__dataclass_fields__ if is_given(self.selection, name)]
        if given:
            raise InputError(
                f"{self.data[0]} holds sentences and references, not pairs to choose from; leave out "
                f"{', '.join(f'`{name}`' for name in given)}"
            )
        path, rows = Path(self.data[0]).expanduser(), []
        for number, line in enumerate(read_lines(path), 1):
            cells, where = line.split("\t"), f"{path}, line {number}"
            if len(cells) != 2:
                raise InputError(
                    f"{where}: expected two sentences with a tab between, found {counted(len(cells), 'column')}"
                )
            rows.append([parse_sentence(cell, where, f"column {place}") for place, cell in enumerate(cells, 1)])
        table = pa.table(dict(zip(SIDES, zip(*rows, strict=True), strict=True)))
        table = self._sampled(iter([table]), SIDES[0])
        return list(zip(*(table[side].to_pylist() for side in SIDES), strict=True))

    def _chosen(self, key: str) -> pa.Table:
        tables = Pairs(self.data, self.selection, seed=self.seed).batches()
        table = self._sampled(self._held_out(tables) if self.config.held_out else tables, key)
        if not table.num_rows:
            more = "held out of training " if self.config.held_out else ""
            raise InputError(f"{self.name}: no pair {more}is left to measure; look at the options that choose")
        return table

    def _sampled(self, tables: Iterator[pa.Table], key: str) -> pa.Table:
        """Keep all rows of the sampled sentences; only these rows are in memory."""
        kept, items = pa.table({side: pa.array([], pa.string()) for side in SIDES}), self.config.items
        for table in tables:
            table = table.select(SIDES).filter(pc.greater(pc.utf8_length(pc.utf8_trim_whitespace(table[key])), 0))
            kept = pa.concat_tables([kept, table]) if kept.num_rows else table
            if items and kept.num_rows:
                numbers = text_numbers(kept[key], salt=f"{self.seed}")
                distinct = np.unique(numbers)
                if len(distinct) > items:
                    kept = kept.filter(pa.array(numbers < distinct[items]))
        return kept

    def _held_out(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Keep the pairs whose reference is held out from training."""
        from paranmt_hf.paraphrase.training_pairs import held_out_keys

        if not self.models:
            raise InputError("`held_out` is about the training of models; name one", option="held_out")
        records = {model.name: ParaphraserRecord.read(model.folder) for model in self.models}
        shares = {name: record.settings.training.held_out for name, record in records.items()}
        if nothing := [name for name, share in shares.items() if not share]:
            raise InputError(
                f"{', '.join(nothing)} was trained with nothing held out; leave out `held_out`, or measure others",
                option="held_out",
            )
        for table in tables:
            # What a smaller share holds out, a larger one does too.
            yield table.filter(pa.array(held_out_keys(table[SIDES[0]], min(shares.values()))))


@dataclass(frozen=True)
class Output:
    """The paraphrases of one sentence, the best first, and the template of each, empty without one."""

    texts: list[str]
    templates: list[str]


def is_outputs(name: str | Path) -> bool:
    """Whether a path is a file of paraphrases rather than a model."""
    path = Path(name).expanduser()
    return path.suffix.lower() in OUTPUT_SUFFIXES and not path.is_dir()


def read_outputs(path: Path) -> dict[str, Output]:
    """Read the paraphrases of each sentence, the best first.

    The file has the columns `source`, `paraphrase` and `rank`, from 1 (0 if a sentence has none), perhaps `template`.
    """
    tables = read_tables(path, OUTPUT_TYPES, OUTPUT_COLUMNS, "expected a file that `paranmt paraphrase text` wrote")
    found: dict[str, list[tuple[int, str, str]]] = {}
    for row in (row for table in tables for row in table.to_pylist()):
        if row["source"]:
            entries = found.setdefault(row["source"], [])
            if row["rank"] and row["paraphrase"]:
                entries.append((int(row["rank"]), row["paraphrase"], row.get("template") or ""))
    # A sentence that is in the input twice has the same paraphrases twice.
    ordered = {source: list(dict.fromkeys(sorted(rows, key=lambda row: row[0]))) for source, rows in found.items()}
    return {
        source: Output([text for _, text, _ in rows], [template for _, _, template in rows])
        for source, rows in ordered.items()
    }
