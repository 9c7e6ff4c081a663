"""`paranmt select`: some rows of a release become a release of their own. ParaNMT-50M, section 5.4.

Filters decide in this order: tenths of all rows, ranges of columns, origin, length, identical sides, copies of a pair,
language, evaluation sets, copies of one side, near-duplicates, one hypothesis of a sentence, and last the sample. Work
in progress lies in `<out>.work`.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa

from paranmt_hf.corpus.record import RELEASE_RECORD, ReleaseRecord, SelectionRecord, identity_of
from paranmt_hf.corpus.release import fetch_release, read_record, release_files, write_release
from paranmt_hf.corpus.release_run import Built, ReleaseConfig, write_card
from paranmt_hf.corpus.schema import COLUMNS, OPTIONAL
from paranmt_hf.corpus.selection.filters import Filter
from paranmt_hf.corpus.selection.release_filter import ReleaseFilter
from paranmt_hf.corpus.selection.run_filters import (
    DroppedRows,
    Judging,
    ReleaseRows,
    Verdicts,
    selection_of,
    took_long,
)
from paranmt_hf.errors import InputError
from paranmt_hf.hub.client import is_id, split_revision
from paranmt_hf.util.files import replacing, result_file
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import as_json, from_json, made_with, to_json
from paranmt_hf.util.run import result_folder, run, work_folder, working
from paranmt_hf.util.settings import RunOnly

logger = logging.getLogger(__name__)
COMMAND = "select"


class Selected(Built):
    """A finished selection."""

    @property
    def rows(self) -> int:
        """Number of rows that are left."""
        return self.record.configs["default"].rows

    @property
    def selection(self) -> SelectionRecord:
        """What it was selected from, and what each filter dropped, in the order in which they decided."""
        found = self.record.selection
        if found is None:
            raise ValueError(f"{self.folder} was not selected")
        return found

    def summary(self) -> str:
        """What each filter dropped, and what is left."""
        lines = [f"{self.folder}: {self.rows:,} pairs" + ("" if self.fresh else " (was selected already)")]
        left = self.selection.rows
        lines += [f"  {'dropped':>12} {'left':>12}", f"  {'':>12} {left:>12,}"]
        for one in self.selection.filters:
            left -= one.dropped
            lines.append(f"  {one.dropped:>12,} {left:>12,}  {one.reason}")
        for name, config in self.record.configs.items():
            lines.append(f"  {name:<9}{config.rows:>12,} pairs {config.file_bytes:>15,} bytes")
        return "\n".join([*lines, f"load it: load_dataset({self.folder.name!r}) in {self.folder.parent}"])

    def to_json(self) -> dict[str, Any]:
        """Counts and recipe as JSON values."""
        return {"folder": str(self.folder), "left": self.rows, "selection": to_json(self.selection)}


@dataclass(frozen=True)
class _Source:
    """A release to select from: its name, rows, record, and the checksums of its files."""

    name: str
    rows: ReleaseRows
    record: ReleaseRecord

    @property
    def files(self) -> dict[str, str]:
        return dict(self.record.configs["default"].files)


def select(
    release: str | Path,
    out: str | Path,
    config: ReleaseFilter | None = None,
    *,
    keep_dropped: Annotated[str | Path | None, RunOnly] = None,
) -> Selected:
    """Select rows of a release by score, length, language and more; they become a release with the same ids.

    Args:
        release: A release: its folder, or its id on the Hub, which `@` and a revision may follow.
        out: Folder of the new release; its name is that of the corpus.
        config: Which rows are kept.
        keep_dropped: Parquet file for the other rows: id, sentences, reason, and the number that decided.
    """
    config, out = config or ReleaseFilter(), result_folder(out)
    source = _open(release)
    if out == source.rows.files[0].resolve().parents[1]:
        raise InputError(f"--out {out} is the release that rows are selected from; choose another --out")
    filters = config.filters(source.rows.schema, source.record.language)
    if not filters:
        raise InputError("nothing says which rows are kept: give at least one filter, such as --tenths or --sample")
    _check_columns(filters, source)
    wanted = _settings(source, filters)
    file = _dropped_file(keep_dropped, out, wanted)

    def make(work: Path, folder: Path) -> ReleaseRecord:
        with _judged(source, filters, work) as (verdicts, counts):
            return _write(source, filters, counts, wanted, verdicts, folder, file, name=out.name)

    # What is judged already counts for other filters too, so each filter answers for its own settings.
    selected = run(
        out,
        identity_of(wanted),
        ReleaseRecord,
        make,
        result=Selected,
        command=COMMAND,
        holds=took_long,
        read=read_record,
        work_identity={},
    )
    if file is not None and not file.exists():
        with working(out, COMMAND, {}, took_long) as work, _judged(source, filters, work) as (verdicts, _):
            for _ in _kept(source, filters, wanted, verdicts, file, every=False):
                pass
    return selected


@contextmanager
def _judged(source: _Source, filters: Sequence[Filter], work: Path) -> Iterator[tuple[Verdicts, list[int]]]:
    """Filter the rows, continuing what a work folder holds: the verdicts, and numbers of dropped rows by filter."""
    with Verdicts(work, source.rows.rows) as verdicts:
        Judging(source.rows, filters, {"files": source.files}, work).run(verdicts)
        counts = verdicts.counts(len(filters))
        _check_left(source, filters, counts)
        yield verdicts, counts


def _open(release: str | Path) -> _Source:
    """Find a release in a folder or on the Hub, and check its files against its record."""
    folder = Path(release).expanduser()
    name, revision = split_revision(str(release))
    if folder.exists() or not is_id(name):
        record = read_record(folder, ["default"])
        return _Source(folder.resolve().name, ReleaseRows(release_files(folder)), record)
    fetched = fetch_release(name, revision, "default")
    if fetched is None:
        raise InputError(f"dataset {name!r} is not a release of this program; bring it in with `paranmt build` first")
    files, _ = fetched
    return _Source(name, ReleaseRows(files), ReleaseRecord.parse(files[0].parents[1], f"dataset {name!r}"))


def _check_columns(filters: Sequence[Filter], source: _Source) -> None:
    """Refuse columns that are not there, and text where numbers are asked for."""
    schema = source.rows.schema
    commands = {column.name: column.command for column in COLUMNS}
    for one in filters:
        for name in one.columns:
            if name not in schema.names:
                command = commands.get(name, "").replace("RELEASE", source.name)
                made = f"`{command}` makes it" if name in commands else f"it has {', '.join(schema.names)}"
                raise InputError(f"{source.name} has no column {name}, which decides what is dropped; {made}")
        if one.number in one.columns and not _is_number(schema.field(one.number).type):
            raise InputError(
                f"the column {one.number} of {source.name} holds no numbers, so it has no ranks or ranges"
            )


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _settings(source: _Source, filters: Sequence[Filter]) -> dict[str, Any]:
    """What determines the release: all that determined the one it is selected from, and the recipe."""
    settings = dict(source.record.settings)
    # The title is that of the whole.
    settings["release"] = {name: value for name, value in settings["release"].items() if name != "title"}
    selection = {
        "release": source.name,
        "files": source.files,
        "rows": source.rows.rows,
        "scorer": settings["scorer"],
        "filters": [{"reason": one.reason, "settings": dict(one.identity), "dropped": 0} for one in filters],
        **({"before": settings.pop("selection")} if "selection" in settings else {}),
    }
    return as_json({**settings, "selection": selection})


def _checksum(wanted: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(identity_of(wanted), sort_keys=True).encode()).hexdigest()


def _dropped_file(path: str | Path | None, out: Path, wanted: Mapping[str, Any]) -> Path | None:
    """Check that the dropped rows may be written where they are to be."""
    if path is None:
        return None
    file = Path(path).expanduser().resolve()
    if file.is_relative_to(out) or file.is_relative_to(work_folder(out)):
        raise InputError(f"{path} is inside the release {out}; name a file elsewhere", option="keep_dropped")
    result_file(file, [".parquet"], option="keep_dropped")
    if (selection := selection_of(file)) is not None and selection != _checksum(wanted):
        raise InputError(
            f"{file} holds rows that another selection dropped; choose another --keep-dropped or delete it"
        )
    return file


def _check_left(source: _Source, filters: Sequence[Filter], counts: Sequence[int]) -> None:
    if sum(counts) == source.rows.rows:
        told = ", ".join(f"{count:,} {one.reason}" for one, count in zip(filters, counts, strict=True) if count)
        raise InputError(f"no row of {source.name} is left of {source.rows.rows:,}: {told}; drop fewer")


def _write(
    source: _Source,
    filters: Sequence[Filter],
    counts: Sequence[int],
    wanted: Mapping[str, Any],
    verdicts: Verdicts,
    folder: Path,
    file: Path | None,
    *,
    name: str,
) -> ReleaseRecord:
    """Write the release into a folder, and the dropped rows into their file."""
    old = source.record
    release = from_json(ReleaseConfig, wanted["release"], RELEASE_RECORD)
    written = write_release(
        _kept(source, filters, wanted, verdicts, file, every=True),
        folder,
        optional=OPTIONAL & set(old.columns),
        seed=release.seed,
    )
    recipe = [{**one, "dropped": count} for one, count in zip(wanted["selection"]["filters"], counts, strict=True)]
    made = made_with("pyarrow")
    record = replace(
        old,
        name=name,
        title=None,
        settings={**wanted, "selection": {**wanted["selection"], "filters": recipe}},
        columns=written.schema.names,
        versions={**old.versions, **made["versions"]},
        machine=made["machine"],
        paranmt_hf=made["paranmt_hf"],
        configs=written.configs,
        statistics=written.statistics.summary(),
    )
    write_card(folder, record)
    return record


def _kept(
    source: _Source,
    filters: Sequence[Filter],
    wanted: Mapping[str, Any],
    verdicts: Verdicts,
    file: Path | None,
    *,
    every: bool,
) -> Iterator[pa.Table]:
    """Read the rows that are kept, writing the others into their file on the way.

    Args:
        source: The rows.
        filters: What dropped them.
        wanted: The recipe.
        verdicts: What the filters said.
        file: For the dropped rows, or None.
        every: Whether all columns are read, and not only those of the file.
    """
    columns = source.rows.schema.names if every else ["reference", "translation"]
    with ExitStack() as stack:
        dropped = None
        if file is not None:
            aside = stack.enter_context(replacing(file))
            ranked = "rank" in source.rows.schema.names
            dropped = stack.enter_context(DroppedRows(aside, filters, _checksum(wanted), ranked=ranked))
        progress = stack.enter_context(Progress("select", source.rows.rows, unit="pairs"))
        for place, table in source.rows.tables(columns):
            codes = verdicts.codes(place, table.num_rows)
            if dropped is not None:
                dropped.add(table, codes, verdicts.numbers(place, table.num_rows))
            kept = codes == 0
            if kept.any():
                yield table if kept.all() else table.filter(pa.array(kept))
            progress.advance_to(place + table.num_rows)
