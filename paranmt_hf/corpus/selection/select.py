"""`paranmt select`: selects rows of a corpus as a new corpus (ParaNMT-50M, section 5.4).

Filters decide in this order: tenths of all rows, ranges of columns, origin, length, identical sides, copies of a pair,
language, evaluation sets, copies of one side, near-duplicates, one hypothesis of a sentence, and at the end the
sample.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa

from paranmt_hf.corpus.release.record import ReleaseRecord, SelectionRecord, identity_of
from paranmt_hf.corpus.release.release import FoundRelease, find_release, read_record, write_release
from paranmt_hf.corpus.release.release_run import Built, write_card
from paranmt_hf.corpus.release.schema import COLUMNS, OPTIONAL
from paranmt_hf.corpus.scoring.alignment import ALIGNMENT, WARNING
from paranmt_hf.corpus.selection.dropped_rows import DroppedRows, dropped_file, dropped_lines
from paranmt_hf.corpus.selection.filters import Filter
from paranmt_hf.corpus.selection.release_filter import ReleaseFilter
from paranmt_hf.corpus.selection.run_filters import FilterRun, ReleaseRows, Verdicts, took_long
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import refuse_inside, replacing, shown_path
from paranmt_hf.util.markers import AlsoWrites, RunOnly
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import as_json, made_with
from paranmt_hf.util.run import result_folder, run
from paranmt_hf.util.wording import counted
from paranmt_hf.util.work import working


class Selected(Built):
    """A finished selection in its folder."""

    @property
    def rows(self) -> int:
        """Number of rows that were kept."""
        return self.record.configs["default"].rows

    @property
    def selection(self) -> SelectionRecord:
        """The corpus that was selected from, and the number of rows that each filter dropped, in order."""
        selection = self.record.selection
        assert selection is not None
        return selection

    def summary(self) -> str:
        """Describe how many rows each filter dropped, and how to load the corpus."""
        lines = [f"{self.folder}: {counted(self.rows, 'pair')}" + ("" if self.fresh else " (was selected already)")]
        lines += dropped_lines(self.selection.rows, [(one.reason, one.dropped) for one in self.selection.filters])
        lines += self.record.config_lines()
        return "\n".join([*lines, f"load it: load_dataset({shown_path(self.folder.resolve())!r})"])

    def to_json(self) -> dict[str, Any]:
        """Return folder, number of kept rows and the selection as JSON values."""
        return {"folder": str(self.folder), "left": self.rows, "selection": as_json(self.selection)}


def select(
    corpus: str | Path,
    out: str | Path,
    config: ReleaseFilter | None = None,
    *,
    keep_dropped: Annotated[str | Path | None, RunOnly, AlsoWrites] = None,
) -> Selected:
    """Select rows of a corpus by score, length, language and more; they become a corpus with the same ids.

    Args:
        corpus: Folder of the corpus, or its id on the Hub, which `@` and a revision may follow.
        out: Folder of the new corpus; its name becomes the name of the corpus.
        config: Which rows are kept.
        keep_dropped: Parquet file for the dropped rows: id, sentences, reason, and the number that decided.
    """
    config, out = config or ReleaseFilter(), result_folder(out)
    found = find_release(corpus)
    rows = ReleaseRows(found.files)
    filters = config.filters(rows.schema, found.record.language)
    _check_filters(filters, rows, found.name)
    source = found.files[0].parents[1]
    if out == source.resolve():
        raise InputError(f"{out} is the corpus that rows are selected from; choose another folder", option="out")
    refuse_inside(out, [source], "out")
    settings = _settings(found, rows, filters)
    checksum = hashlib.sha256(json.dumps(identity_of(settings), sort_keys=True).encode()).hexdigest()
    dropped = dropped_file(keep_dropped, source, out, checksum)

    @contextmanager
    def judged(work: Path) -> Iterator[tuple[Verdicts, list[int]]]:
        """Filter the rows, continuing earlier work; yield the verdicts, and how many rows each filter dropped."""
        with closing(Verdicts(work, rows.rows)) as verdicts:
            FilterRun(rows, filters, {"files": settings["selection"]["files"]}, work).run(verdicts)
            counts = verdicts.counts(len(filters))
            if sum(counts) == rows.rows:
                reasons = [f"{count:,} {one.reason}" for one, count in zip(filters, counts, strict=True) if count]
                raise InputError(f"no row of {found.name} is left of {rows.rows:,}: {', '.join(reasons)}; drop fewer")
            yield verdicts, counts

    def kept(verdicts: Verdicts, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Read columns of the kept rows, and write the dropped rows to their file if there is one."""
        with ExitStack() as stack:
            writer = None
            if dropped is not None:
                aside = stack.enter_context(replacing(dropped))
                writer = DroppedRows(aside, filters, checksum, ranked="rank" in rows.schema.names)
                stack.enter_context(closing(writer))
            progress = stack.enter_context(Progress("select", rows.rows, unit="pairs"))
            for place, table in rows.tables(columns):
                table_verdicts = verdicts.read(place, table.num_rows)
                if writer is not None:
                    writer.add(table, table_verdicts)
                is_kept = table_verdicts["filter"] == 0
                if is_kept.any():
                    yield table if is_kept.all() else table.filter(pa.array(is_kept))
                progress.advance_to(place + table.num_rows)

    def make(work: Path, folder: Path) -> ReleaseRecord:
        with judged(work) as (verdicts, counts):
            optional = OPTIONAL & set(found.record.columns)
            written = write_release(kept(verdicts, rows.schema.names), folder, optional=optional)
        for one, count in zip(settings["selection"]["filters"], counts, strict=True):
            one["dropped"] = count
        made = made_with("pyarrow")
        statistics, warnings = written.statistics.summary(), found.record.warnings
        if statistics.mismatches.get(ALIGNMENT) == 0:
            warnings = [one for one in warnings if not one.startswith(WARNING)]
        record = replace(
            found.record,
            name=out.name,
            title=None,
            options={},
            settings=settings,
            columns=written.schema.names,
            versions={**found.record.versions, **made["versions"]},
            machine=made["machine"],
            paranmt_hf=made["paranmt_hf"],
            configs=written.configs,
            statistics=statistics,
            warnings=warnings,
        )
        write_card(folder, record)
        return record

    # Work may be continued with other filters, because verdicts are kept by the identity of their filter.
    selected = run(
        out,
        identity_of(settings),
        ReleaseRecord,
        make,
        result=Selected,
        command="select",
        holds=took_long,
        read=read_record,
        work_identity={},
    )
    if dropped is not None and not dropped.exists():
        with working(out, "select", {}, took_long) as work, judged(work) as (verdicts, _):
            deque(kept(verdicts, ["reference", "translation"]), maxlen=0)
    return selected


def _check_filters(filters: Sequence[Filter], rows: ReleaseRows, name: str) -> None:
    """Reject a selection without filters, or with filters for which the corpus `name` lacks the columns."""
    if not filters:
        raise InputError("nothing says which rows are kept: give at least one filter, such as `tenths` or `sample`")
    commands = {column.name: column.command for column in COLUMNS}
    for one in filters:
        for column in one.columns:
            if column not in rows.schema.names:
                made = f"it has {', '.join(rows.schema.names)}"
                if column in commands:
                    made = f"`{commands[column].replace('CORPUS', name)}` makes it"
                raise InputError(f"{name} has no column {column}, which decides what is dropped; {made}")
        if one.number in one.columns:
            kind = rows.schema.field(one.number).type
            if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
                raise InputError(f"the column {one.number} of {name} holds no numbers, so it has no ranks or ranges")


def _settings(found: FoundRelease, rows: ReleaseRows, filters: Sequence[Filter]) -> dict[str, Any]:
    """Return everything that determines the result: the settings of the source corpus, and the selection."""
    settings = dict(found.record.settings)
    # The title belongs to the whole corpus, not to a selection.
    settings["release"] = {name: value for name, value in settings["release"].items() if name != "title"}
    selection = {
        "release": found.name,
        "files": dict(found.record.configs["default"].files),
        "rows": rows.rows,
        "scorer": settings["scorer"],
        "filters": [{"reason": one.reason, "settings": dict(one.identity), "dropped": 0} for one in filters],
    }
    if "selection" in settings:
        selection["before"] = settings.pop("selection")
    return as_json({**settings, "selection": selection})
