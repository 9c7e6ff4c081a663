"""`paranmt dedup`: drop texts of a file that repeat an earlier one in letters, word bigrams, or meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar

from paranmt_hf.corpus.reading.formats import open_table
from paranmt_hf.corpus.reading.plain_text import PlainText
from paranmt_hf.corpus.reading.splitting import SentenceSplitter
from paranmt_hf.corpus.reading.tables import Table
from paranmt_hf.corpus.selection.dropped_rows import dropped_file, dropped_lines
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError, refuse
from paranmt_hf.search.dedup_config import METHODS, DedupConfig
from paranmt_hf.search.repeated_texts import Deduplication
from paranmt_hf.search.storage import WRITTEN
from paranmt_hf.util.files import result_file
from paranmt_hf.util.markers import AlsoWrites, RunOnly
from paranmt_hf.util.packed import PACKED, unpacked_name
from paranmt_hf.util.records import FileRecord, Record, made_with
from paranmt_hf.util.run import Result, result_folder, run
from paranmt_hf.util.wording import counted
from paranmt_hf.util.work import working


@dataclass(frozen=True, kw_only=True)
class DedupRecord(Record):
    """The record of a dataset without repetitions, the file `dedup.json` in its folder."""

    FILE: ClassVar[str] = "dedup.json"
    KIND: ClassVar[str] = "texts without repetitions (`paranmt dedup`)"

    rows: int  # Number of rows that were read
    # Number of rows, or of sentences of split documents, that each method dropped, in the order in which they ran
    dropped: dict[str, int]
    undecodable: int  # Number of rows whose text is not UTF-8; they are all kept
    sentences: int | None = None  # Number of sentences of split documents; None if they were not split
    leaked: int = 0  # Number of dropped texts that repeat one of the other files
    emptied: int = 0  # Number of documents that were dropped because all their sentences were


@dataclass(frozen=True, kw_only=True)
class DedupFileRecord(FileRecord, DedupRecord):
    """The record of a single file without repetitions, which lies next to it."""


class Deduplicated(Result[DedupRecord]):
    """A file or a dataset without repetitions."""

    def summary(self) -> str:
        """Say how many rows were kept, and how many each method dropped."""
        rows, dropped, sentences = self.record.rows, self.record.dropped, self.record.sentences
        texts = rows if sentences is None else sentences
        left = f"{texts - sum(dropped.values()):,} of {counted(texts, 'row' if sentences is None else 'sentence')}"
        if sentences is not None:
            left += f", in {rows - self.record.emptied:,} of {counted(rows, 'document')}"
        lines = [f"{self.folder}: {left}{'' if self.fresh else ' (was made already)'}"]
        lines += dropped_lines(texts, dropped.items())
        if count := self.record.leaked:
            lines.append(f"  {count:,} of them repeat a text of the other files")
        if count := self.record.undecodable:
            lines.append(f"{counted(count, 'text')} not in UTF-8: compared with none, and kept")
        return "\n".join(lines)


def text_columns(table: Table, column: str | None, second_column: str | None) -> list[str]:
    """Return the columns of the texts of a file: one, or two for pairs; a text file has one."""
    if isinstance(table, PlainText) and second_column is None:
        return [table.text_column(None)]
    columns = [table.text_column(column)]
    if second_column is not None:
        columns.append(table.text_column(second_column, "second_column"))
        refuse(columns[0] == columns[1], "`second_column` is `column`; name another one", option="second_column")
    return columns


def dedup(
    file: str | Path,
    out: str | Path,
    *,
    column: str | None = None,
    second_column: str | None = None,
    against: Sequence[str | Path] = (),
    split: bool = False,
    config: DedupConfig | None = None,
    encoder: str | Path | None = None,
    keep_dropped: Annotated[str | Path | None, RunOnly, AlsoWrites] = None,
) -> Deduplicated:
    """Drop the texts of a file that repeat an earlier one; the others keep their order and their format.

    Each method sees what those before it kept, and drops a text if and only if it is like an earlier one that the
    method keeps. A text without a letter or a digit is like none. With `same_meaning`, texts that differ in a
    number, a negation, an opposite, the order of words and so on (docs/same-meaning.md) are not alike.

    Args:
        file: Text file with a sentence or document on each line; TSV, CSV, JSON lines, JSON or Parquet
            (docs/formats.md); or a folder that `Dataset.save_to_disk` wrote.
        out: The new file, whose name ends as that of `file` does, or the new folder.
        column: Column of the texts, by its name or number, unless it is the only one of text.
        second_column: Column of the second texts, if rows are pairs; pairs whose sides have changed places are alike.
        against: Files with the same columns, such as other splits of the data: texts that repeat one of theirs are
            dropped, too.
        split: The texts are documents, which are split into sentences by the package sentencex (docs/formats.md), and
            written without those that repeat an earlier one; a document of which none is left is dropped.
        config: What counts as a repetition.
        encoder: Encoder of `meaning`: folder, Hub id, or file of word vectors; that of this package for the language
            of the texts if left out.
        keep_dropped: Parquet file for the dropped rows: line, text, method, similarity, and the line they are like;
            with `split` for the dropped sentences, with their numbers in their documents.
    """
    named = [name for name in (column, second_column) if name is not None]
    table = open_table(file, named)
    table.check_writable()
    is_text = isinstance(table, PlainText)
    if is_text and column is not None:
        raise InputError(
            f"{table.path} is a text file, which has no columns; leave `column` out", option="column", path=table.path
        )
    kind: type[DedupRecord]
    if table.path.is_dir():
        kind, out = DedupRecord, result_folder(out, DedupRecord, sources=[table.path])
    else:
        suffix = table.path.suffix.lower()
        if not is_text and suffix in PACKED:
            # The whole suffix must be kept, such as `.csv.gz`: `.gz` alone would be text to the next command.
            suffix = Path(unpacked_name(table.path)).suffix.lower() + suffix
        kind, out = DedupFileRecord, result_file(out, [suffix] if suffix else [])
    config = config or DedupConfig()
    config = replace(config, by=tuple(method for method in METHODS if method in ("exact", *config.by)))
    columns = text_columns(table, column, second_column)
    refuse(
        split and second_column is not None,
        "documents have one column of text; leave `second_column` out",
        option="second_column",
    )
    others = []
    for path in against:
        other = open_table(path, named)
        refuse(
            other.path.resolve() == table.path.resolve(),
            f"{path} is the file itself",
            option="against",
            path=other.path,
        )
        others.append((other, text_columns(other, column, second_column)))
    splitter = SentenceSplitter(config.language) if split else None
    search = Deduplication(table, columns, config, NamedEncoder.of(encoder, config.language), splitter, others)
    dropped = dropped_file(keep_dropped, table.path, out, search.checksum)

    def make(work: Path, path: Path) -> DedupRecord:
        counts, texts = search.run(work, dropped)
        kept = texts.of_rows
        if splitter is not None:
            # In a row that is another one now, the new text could not be written.
            search.check_unchanged()
        table.write(path, kept, None if splitter is None else texts.new_texts(columns[0], splitter))
        search.check_unchanged()
        return kind(
            settings=search.identity,
            rows=len(kept),
            dropped=counts,
            undecodable=search.undecodable,
            leaked=search.leaked,
            sentences=None if splitter is None else len(texts.kept),
            emptied=0 if splitter is None else int((~kept).sum()),
            **made_with("numpy", "pyarrow"),
        )

    # The work depends on the input alone, because results of a method are used again when other settings change.
    work_identity = {"input": search.identity["input"]}
    made = run(
        out,
        search.identity,
        kind,
        make,
        result=Deduplicated,
        command="dedup",
        holds=_took_long,
        work_identity=work_identity,
    )
    if dropped is not None and not dropped.exists():
        with working(out, "dedup", work_identity, _took_long) as work:
            search.run(work, dropped)
    return made


def _took_long(work: Path) -> bool:
    """Return whether a work folder holds vectors or results of a method, which took long to compute."""
    return any(work.glob("*.npy")) or any(work.rglob(WRITTEN))
