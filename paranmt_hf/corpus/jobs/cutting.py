"""Rows of any source, cut into the shards of a job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from paranmt_hf.corpus.jobs.shards import Manifest, write_shard
from paranmt_hf.util.progress import Progress


def cut_into_shards(
    tables: Iterable[pa.Table],
    folder: Path,
    identity: Mapping[str, Any],
    rows: int,
    *,
    unit: str = "pairs",
    extra: Callable[[], dict[str, Any]] = dict,
) -> Manifest:
    """Cut rows into shards, or find them cut; an interrupted cut, which is quick, starts again.

    Args:
        tables: The rows, with the same columns everywhere; read only where they are not cut yet.
        folder: Folder of the shards.
        identity: What determines the rows, as JSON values.
        rows: Rows of a shard; only the last has fewer.
        unit: What a row is.
        extra: Says, when all rows have been read, what else the manifest keeps.

    Returns:
        The manifest; it has no shards where there are no rows.
    """
    manifest = Manifest.of_input(folder, {**identity, "rows_per_shard": rows})
    if manifest.complete:
        return manifest
    with Progress("read", unit=unit) as progress:
        for shard in _regrouped(tables, rows):
            name = f"shard-{len(manifest.shards):06d}.parquet"
            manifest.shards[name] = write_shard(shard, folder / name)
            progress.advance_to(manifest.rows)
    manifest.extra, manifest.complete = extra(), True
    manifest.save()
    return manifest


def _regrouped(tables: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    waiting: list[pa.Table] = []
    held = 0
    for table in tables:
        waiting.append(table)
        held += table.num_rows
        if held < rows:
            continue
        whole = pa.concat_tables(waiting)
        full = held // rows * rows
        for start in range(0, full, rows):
            yield whole.slice(start, rows).combine_chunks()
        waiting, held = [whole.slice(full)], held - full
    if held:
        yield pa.concat_tables(waiting).combine_chunks()
