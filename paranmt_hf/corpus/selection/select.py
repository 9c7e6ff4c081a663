"""`paranmt select`: select rows of a corpus as a new corpus. ParaNMT-50M, section 5.4.

Filters decide in this order: tenths of all rows, ranges of columns, origin, length, identical sides, copies of a pair,
language, evaluation sets, copies of one side, near-duplicates, one hypothesis of a sentence, and last the sample.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa

from paranmt_hf.corpus.release.record import ReleaseRecord, SelectionRecord, identity_of
from paranmt_hf.corpus.release.release import find_release, read_record, write_release
from paranmt_hf.corpus.release.release_run import Built, write_card
from paranmt_hf.corpus.release.schema import COLUMNS, OPTIONAL
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
    """A finished selection."""

    @property
    def rows(self) -> int:
        return self.record.configs["default"].rows

    @property
    def selection(self) -> SelectionRecord:
        """The source of the selection, and the number of rows that each filter dropped, in order of application."""
        found = self.record.selection
        assert found is not None
        return found

    def summary(self) -> str:
        lines = [f"{self.folder}: {counted(self.rows, 'pair')}" + ("" if self.fresh else " (was selected already)")]
        lines += dropped_lines(self.selection.rows, [(one.reason, one.dropped) for one in self.selection.filters])
        lines += self.record.config_lines()
        return "\n".join([*lines, f"load it: load_dataset({shown_path(self.folder.resolve())!r})"])

    def to_json(self) -> dict[str, Any]:
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
        corpus: Its folder, or its id on the Hub, which `@` and a revision may follow.
        out: Folder of the new corpus; its name becomes the name of the corpus.
        config: Which rows are kept.
        keep_dropped: Parquet file for the other rows: id, sentences, reason, and the number that decided.
    """
    config, out = config or ReleaseFilter(), result_folder(out)
    selection = _Selection.of(corpus, config)
    source = selection.rows.files[0].parents[1]
    if out == source.resolve():
        raise InputError(f"{out} is the corpus that rows are selected from; choose another folder", option="out")
    refuse_inside(out, [source], "out")
    file = dropped_file(keep_dropped, source, out, selection.checksum)

    def make(work: Path, folder: Path) -> ReleaseRecord:
        with selection.judged(work) as (verdicts, counts):
            return selection.write(folder, out.name, selection.kept(verdicts, file), counts)

    # The work folder may be continued with other filters: each filter's verdicts count for the same filter.
    selected = run(
        out,
        identity_of(selection.settings),
        ReleaseRecord,
        make,
        result=Selected,
        command="select",
        holds=took_long,
        read=read_record,
        work_identity={},
    )
    if file is not None and not file.exists():
        with working(out, "select", {}, took_long) as work, selection.judged(work) as (verdicts, _):
            for _ in selection.kept(verdicts, file, ["reference", "translation"]):
                pass
    return selected


@dataclass(frozen=True)
class _Selection:
    """Filters, and the corpus that they are applied to."""

    name: str  # Name of the corpus
    rows: ReleaseRows  # Its rows
    record: ReleaseRecord  # Its record
    filters: list[Filter]  # The filters, in order

    @classmethod
    def of(cls, release: str | Path, config: ReleaseFilter) -> _Selection:
        """Find a corpus in a folder or on the Hub, and check its files and columns."""
        corpus = find_release(release)
        rows = ReleaseRows(corpus.files)
        found = cls(corpus.name, rows, corpus.record, config.filters(rows.schema, corpus.record.language))
        if not found.filters:
            raise InputError(
                "nothing says which rows are kept: give at least one filter, such as `tenths` or `sample`"
            )
        commands = {column.name: column.command for column in COLUMNS}
        for one in found.filters:
            for name in one.columns:
                if name not in rows.schema.names:
                    made = f"it has {', '.join(rows.schema.names)}"
                    if name in commands:
                        made = f"`{commands[name].replace('CORPUS', found.name)}` makes it"
                    raise InputError(f"{found.name} has no column {name}, which decides what is dropped; {made}")
            if one.number in one.columns:
                kind = rows.schema.field(one.number).type
                if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
                    raise InputError(
                        f"the column {one.number} of {found.name} holds no numbers, so it has no ranks or ranges"
                    )
        return found

    @property
    def _files(self) -> dict[str, str]:
        """Checksums of the files of the corpus."""
        return dict(self.record.configs["default"].files)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Everything that determines the result: the settings of the source corpus, and the recipe."""
        settings = dict(self.record.settings)
        # The title is that of the whole.
        settings["release"] = {name: value for name, value in settings["release"].items() if name != "title"}
        recipe = [{"reason": one.reason, "settings": dict(one.identity), "dropped": 0} for one in self.filters]
        selection = {
            "release": self.name,
            "files": self._files,
            "rows": self.rows.rows,
            "scorer": settings["scorer"],
            "filters": recipe,
            **({"before": settings.pop("selection")} if "selection" in settings else {}),
        }
        return as_json({**settings, "selection": selection})

    @property
    def checksum(self) -> str:
        """Identifies the selection in the file of dropped rows."""
        return hashlib.sha256(json.dumps(identity_of(self.settings), sort_keys=True).encode()).hexdigest()

    @contextmanager
    def judged(self, work: Path) -> Iterator[tuple[Verdicts, list[int]]]:
        """Filter the rows, continuing earlier work; yields the verdicts and the number of rows each filter dropped."""
        with closing(Verdicts(work, self.rows.rows)) as verdicts:
            FilterRun(self.rows, self.filters, {"files": self._files}, work).run(verdicts)
            counts = verdicts.counts(len(self.filters))
            if sum(counts) == self.rows.rows:
                dropped = zip(self.filters, counts, strict=True)
                reasons = ", ".join(f"{count:,} {one.reason}" for one, count in dropped if count)
                raise InputError(f"no row of {self.name} is left of {self.rows.rows:,}: {reasons}; drop fewer")
            yield verdicts, counts

    def write(self, folder: Path, name: str, rows: Iterator[pa.Table], counts: Sequence[int]) -> ReleaseRecord:
        """Write the corpus of the kept rows, `counts` of which were dropped by each filter."""
        old, selection = self.record, self.settings["selection"]
        written = write_release(rows, folder, optional=OPTIONAL & set(old.columns))
        recipe = [{**one, "dropped": count} for one, count in zip(selection["filters"], counts, strict=True)]
        made = made_with("pyarrow")
        record = replace(
            old,
            name=name,
            title=None,
            options={},
            settings={**self.settings, "selection": {**selection, "filters": recipe}},
            columns=written.schema.names,
            versions={**old.versions, **made["versions"]},
            machine=made["machine"],
            paranmt_hf=made["paranmt_hf"],
            configs=written.configs,
            statistics=written.statistics.summary(),
        )
        write_card(folder, record)
        return record

    def kept(self, verdicts: Verdicts, file: Path | None, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Read columns (default: all) of the kept rows, and write the dropped rows to a file if there is one."""
        schema = self.rows.schema.names
        with ExitStack() as stack:
            dropped = None
            if file is not None:
                aside = stack.enter_context(replacing(file))
                dropped = DroppedRows(aside, self.filters, self.checksum, ranked="rank" in schema)
                stack.enter_context(closing(dropped))
            progress = stack.enter_context(Progress("select", self.rows.rows, unit="pairs"))
            for place, table in self.rows.tables(columns or schema):
                found = verdicts.read(place, table.num_rows)
                if dropped is not None:
                    dropped.add(table, found)
                kept = found["filter"] == 0
                if kept.any():
                    yield table if kept.all() else table.filter(pa.array(kept))
                progress.advance_to(place + table.num_rows)
