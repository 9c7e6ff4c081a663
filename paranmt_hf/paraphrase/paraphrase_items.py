"""Sentences on which paraphrasers are measured: out of pairs or a TSV file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.pairs import SIDES, Pairs, PairSelection
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.data_configs import ItemsConfig
from paranmt_hf.evaluation.generation.items import Items, group, read_two_columns
from paranmt_hf.util.settings import is_given
from paranmt_hf.util.text_numbers import text_numbers

if TYPE_CHECKING:
    from paranmt_hf.hub.repository import Model

TSV = (".tsv", ".txt")


def name_of(data: Sequence[str | Path]) -> str:
    """Name data without their folders."""
    return ", ".join(Path(each).name if Path(each).exists() else str(each) for each in data)


def is_tsv(data: Sequence[str | Path]) -> bool:
    """Whether data are one TSV file."""
    return len(data) == 1 and Path(data[0]).suffix.lower() in TSV


def read_items(
    data: Sequence[str | Path],
    config: ItemsConfig,
    selection: PairSelection | None = None,
    models: Sequence[Model] = (),
) -> Items:
    """Read sentences with their references.

    Args:
        data: One TSV file (sentence, reference), or what `Pairs` reads.
        config: Which of them; a TSV file has no direction and nothing held out.
        selection: Which pairs, by their columns.
        models: Whose training held references out.

    Raises:
        InputError: The data cannot be read, or nothing is left of them.
    """
    if is_tsv(data):
        table = _rows_of_tsv(data, config, selection)
        return _grouped(data, table, *SIDES)
    key, value = SIDES[::-1] if config.direction == "to-reference" else SIDES
    return _grouped(data, _chosen(data, key, config, selection, models), key, value)


def read_references(
    data: Sequence[str | Path],
    config: ItemsConfig,
    selection: PairSelection | None = None,
    models: Sequence[Model] = (),
) -> Items:
    """Read the distinct references of pairs, one sentence each, for `read_items`' arguments; no TSV file."""
    return _grouped(data, _chosen(data, SIDES[0], config, selection, models), SIDES[0], SIDES[0])


def drawn_rows(
    data: Sequence[str | Path], config: ItemsConfig, selection: PairSelection | None = None
) -> list[list[str]]:
    """Read the drawn rows of a TSV file with two columns, for `read_items`' arguments.

    Returns:
        Both columns.
    """
    table = _rows_of_tsv(data, config, selection)
    return [table[side].to_pylist() for side in SIDES]


def _rows_of_tsv(data: Sequence[str | Path], config: ItemsConfig, selection: PairSelection | None) -> pa.Table:
    given = [name for name in ("direction", "held_out") if is_given(config, name)]
    given += [name for name in PairSelection.__dataclass_fields__ if selection and is_given(selection, name)]
    if given:
        raise InputError(
            f"{data[0]} holds sentences and references, no pairs to choose from; leave out "
            f"{', '.join('--' + name.replace('_', '-') for name in given)}"
        )
    rows = read_two_columns(Path(data[0]).expanduser())
    tables: Iterator[pa.Table] = iter([pa.table(dict(zip(SIDES, zip(*rows, strict=True), strict=True)))])
    return _drawn(tables, SIDES[0], config)


def _chosen(
    data: Sequence[str | Path],
    key: str,
    config: ItemsConfig,
    selection: PairSelection | None,
    models: Sequence[Model],
) -> pa.Table:
    tables = Pairs(data, selection or PairSelection(), seed=config.seed).batches()
    table = _drawn(_held_out(tables, models) if config.held_out else tables, key, config)
    if not table.num_rows:
        more = "held out of training " if config.held_out else ""
        raise InputError(f"{name_of(data)}: no pair {more}is left to measure; look at the options that choose")
    return table


def _grouped(data: Sequence[str | Path], table: pa.Table, key: str, value: str) -> Items:
    return group(name_of(data), zip(table[key].to_pylist(), table[value].to_pylist(), strict=True))


def _drawn(tables: Iterator[pa.Table], key: str, config: ItemsConfig) -> pa.Table:
    """Keep all rows of so many sentences; memory is that of these rows."""
    kept: pa.Table | None = None
    for table in tables:
        table = table.select(SIDES).filter(pc.greater(pc.utf8_length(pc.utf8_trim_whitespace(table[key])), 0))
        kept = table if kept is None else pa.concat_tables([kept, table])
        if config.items and kept.num_rows:
            numbers = text_numbers(kept[key], salt=f"{config.seed}")
            distinct = np.unique(numbers)
            if len(distinct) > config.items:
                kept = kept.filter(pa.array(numbers < distinct[config.items]))
    return kept if kept is not None else pa.table({side: pa.array([], pa.string()) for side in SIDES})


def _held_out(tables: Iterator[pa.Table], models: Sequence[Model]) -> Iterator[pa.Table]:
    """Keep the pairs whose reference no model was trained on."""
    from paranmt_hf.paraphrase.piece_store import held_out_keys
    from paranmt_hf.paraphrase.record import read_paraphraser

    if not models:
        raise InputError("--held-out is about the training of models; name one")
    shares = {model.name: read_paraphraser(model.folder).settings["training"]["held_out"] for model in models}
    if nothing := [name for name, share in shares.items() if not share]:
        raise InputError(
            f"{', '.join(nothing)} was trained with --held-out 0; leave --held-out out, or measure others"
        )
    for table in tables:
        # What a smaller share holds out, a larger one does too.
        yield table.filter(pa.array(held_out_keys(table[SIDES[0]], min(shares.values()))))
