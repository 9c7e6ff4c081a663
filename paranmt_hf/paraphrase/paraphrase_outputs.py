"""Files of paraphrases, as `paranmt paraphrase` writes them, read as what was made of each sentence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.generation.figures import Output
from paranmt_hf.util.files import check_regular

SUFFIXES = (".parquet", ".jsonl", ".tsv")
NEEDED = ("source", "paraphrase", "rank")
TEMPLATE = "template"
TYPES = {"source": pa.string(), "paraphrase": pa.string(), "rank": pa.int32(), TEMPLATE: pa.string()}


def is_outputs(name: str | Path) -> bool:
    """Whether something is a file of paraphrases, not a model."""
    path = Path(name).expanduser()
    return path.suffix.lower() in SUFFIXES and not path.is_dir()


def read_outputs(path: Path) -> dict[str, Output]:
    """Read what was made of each sentence, the best first.

    Args:
        path: A file with the columns `source`, `paraphrase` and `rank`, from 1; a sentence with rank 0 has none. It
            may have the column `template`.

    Raises:
        InputError: It cannot be read or lacks a column.
    """
    check_regular(path)
    try:
        table = _read(path)
        if missing := [name for name in NEEDED if name not in table.column_names]:
            raise InputError(
                f"{path} has no column {', '.join(missing)}; it has {', '.join(table.column_names)}. Expected a file "
                "that `paranmt paraphrase` wrote"
            )
        table = pa.table({name: _column(table, name) for name in TYPES if name in table.column_names})
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        reason = str(error).split("\n")[0]
        raise InputError(f"cannot read {path}: {reason}; expected a file that `paranmt paraphrase` wrote") from None
    found: dict[str, list[tuple[int, str, str]]] = {}
    for source, text, rank, template in _rows(table):
        if source:
            entries = found.setdefault(source, [])
            if rank and text:
                entries.append((rank, text, template))
    # Lines that stand in the input twice have the same paraphrases twice.
    ordered = {source: list(dict.fromkeys(sorted(rows, key=lambda row: row[0]))) for source, rows in found.items()}
    return {
        source: Output([text for _, text, _ in rows], [template for _, _, template in rows])
        for source, rows in ordered.items()
    }


def _rows(table: pa.Table) -> Iterator[tuple[str | None, str | None, int | None, str]]:
    templates = table[TEMPLATE].to_pylist() if TEMPLATE in table.column_names else [None] * table.num_rows
    columns = (table[name].to_pylist() for name in NEEDED)
    for source, text, rank, template in zip(*columns, templates, strict=True):
        yield source, text, rank, template or ""


def _column(table: pa.Table, name: str) -> pa.ChunkedArray:
    """Take a column as the program writes it; whether text is UTF-8, Parquet and JSON only say."""
    (place, *others) = [index for index, other in enumerate(table.column_names) if other == name]
    if others:
        raise pa.ArrowInvalid(f"it has {len(others) + 1} columns {name}")
    table[place].validate(full=True)
    return table[place].cast(TYPES[name])


def _read(path: Path) -> pa.Table:
    if path.suffix.lower() == ".parquet":
        return pq.read_table(path)
    if path.suffix.lower() == ".jsonl":
        return pyarrow.json.read_json(path)
    return pyarrow.csv.read_csv(
        path,
        parse_options=pyarrow.csv.ParseOptions(delimiter="\t", quote_char=False),
        # Only what is empty is missing: `null` and `NA` are words.
        convert_options=pyarrow.csv.ConvertOptions(column_types=TYPES, strings_can_be_null=True, null_values=[""]),
    )
