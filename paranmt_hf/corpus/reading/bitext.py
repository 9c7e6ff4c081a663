"""Text to translate or to paraphrase: two aligned files, files with columns, or a dataset."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NoReturn

import pyarrow as pa

from paranmt_hf.corpus.reading.arrow_tables import is_saved_dataset
from paranmt_hf.corpus.reading.formats import find_format, open_table
from paranmt_hf.corpus.reading.hub_dataset import HubDataset, split_dataset
from paranmt_hf.corpus.reading.language_tables import LanguageTable, plain_code
from paranmt_hf.corpus.reading.pair_columns import check_names
from paranmt_hf.corpus.reading.plain_text import PlainText
from paranmt_hf.corpus.reading.readers import LineFiles, Reader, TableFiles
from paranmt_hf.corpus.reading.splitting import SentenceSplitter
from paranmt_hf.corpus.reading.tables import Piece, Table, file_identity
from paranmt_hf.corpus.reading.wmt import WmtSgmlTable
from paranmt_hf.errors import InputError, refuse
from paranmt_hf.hub.client import split_revision
from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.util.markers import Advanced
from paranmt_hf.util.settings import Settings


@dataclass(frozen=True)
class TextInput(Settings):
    """Text: two aligned files, or files or a dataset with columns. Text without a foreign side is paraphrased.

    Attributes:
        source: File of the foreign side, one sentence on a line (plain, .gz, .bz2, .xz, .zst), or SGML of WMT.
        reference: File of the other side, aligned with `source`: English, or the language of the corpus.
        data: Files of TMX, XLIFF, PO, TSV, CSV, JSON or Parquet (docs/formats.md); or a dataset, `ID:CONFIG:SPLIT`,
            such as wmt/wmt14:de-en:train. ID is a folder or an id on the Hub, which `@` and a revision may follow;
            CONFIG and SPLIT (default: train) may be left out.
        columns: Columns of `data` by their names or numbers from 1, such as source=cs,reference=en,origin=3; for TMX,
            XLIFF, PO and XML of WMT their names are languages.
        split: The texts are documents, which are split into sentences by the package sentencex (docs/formats.md). A
            document and its translation need equally many sentences, else they are dropped and counted.
        source_language: Language of the documents of the foreign side (ISO 639-1), for `split`.
    """

    source: Path | None = None
    reference: Path | None = None
    data: tuple[str, ...] | None = None
    columns: Mapping[str, str] | None = None
    split: bool = False
    source_language: Annotated[str | None, Advanced] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.source is not None and self.reference is None:
            path = self.source.expanduser()
            if path.is_file() and find_format(path) is not WmtSgmlTable:
                _refuse_bitext("source", path)
            raise InputError("`source` needs `reference`, the other side of the bitext", option="reference")
        if (self.reference is None) == (self.data is None) or (self.data and self.source):
            raise InputError("give the text once: `reference`, with `source` if it is a bitext, or `data`")
        if self.columns and not self.data:
            raise InputError("`columns` is for `data`; `source` and `reference` have one text on a line")
        refuse(
            self.source_language is not None and not self.split,
            "`source_language` is for `split`; leave it out",
            option="source_language",
        )

    def open(self, language: str = ENGLISH) -> Reader:
        """Open the text.

        Args:
            language: Language of `reference` (ISO 639-1), by which it is found in files whose columns are languages,
                and by which documents are split.

        Returns:
            A reader with the columns `source` and `reference`, or `reference` alone, and `origin` if the user names
            it; if documents are split, also `document`.

        Raises:
            InputError: If a file is missing, or the user must say which columns are read.
        """
        reader = self._opened(language)
        if self.split:
            splitters = {"reference": SentenceSplitter(language)}
            if "source" in reader.columns:
                refuse(
                    self.source_language is None,
                    "`split` of a bitext needs the language of the foreign side, such as `source_language` de",
                    option="source_language",
                )
                splitters["source"] = SentenceSplitter(str(self.source_language))
            reader.splitters = splitters
        return reader

    def _opened(self, language: str) -> Reader:
        """Open the text as it is in the files; see `open`."""
        if self.data is None:
            given = {"source": self.source, "reference": self.reference}
            sides = {name: path.expanduser() for name, path in given.items() if path is not None}
            if len(sides) == 2 and {find_format(path) for path in sides.values()} == {WmtSgmlTable}:
                return WmtSgmlPairs(sides["source"], sides["reference"])
            for name, path in sides.items():
                _refuse_bitext(name, path)
            return LineFiles(sides)
        columns = dict(self.columns or {})
        if columns and "reference" not in columns:
            raise InputError("`columns` must name reference, such as reference=text", option="columns")
        check_names(columns, ["source", "reference", "origin"])
        optional = columns.keys() & {"origin"}
        usual = {"source": "source", "reference": "reference"}
        files = [Path(one).expanduser() for one in self.data]
        if len(files) > 1 or files[0].is_file() or is_saved_dataset(files[0]):
            tables = [open_table(file, (columns or usual).values()) for file in files]
            return TableFiles(tables, columns or _usual_columns(tables, language), optional=optional)
        columns = columns or usual
        name, config, split = split_dataset(self.data[0])
        revision = None
        if not Path(name).expanduser().exists():
            name, revision = split_revision(name)
        return HubDataset(name, columns, config=config, split=split, revision=revision, optional=optional)


def _refuse_bitext(option: str, path: Path) -> None:
    """Raise an error if a file holds both sides of a bitext, where `option` expects one side."""
    kind = find_format(path)
    if kind.languages:
        raise InputError(
            f"{path} is {kind.format}, whose columns are languages; give it as `data` {path}, and name its `columns` "
            "if there is a choice",
            option=option,
            path=path,
        )


def _usual_columns(tables: Sequence[Table], language: str) -> dict[str, str]:
    """Find the columns of tables if the user names none; those of the first table count for all.

    Args:
        tables: The tables.
        language: Language of `reference` (ISO 639-1).

    Raises:
        InputError: If a table lacks the columns, or there is a choice.
    """
    chosen = []
    for table in tables:
        if isinstance(table, LanguageTable):
            source, reference = table.pair_of(language)
            chosen.append({"source": source, "reference": reference})
        elif not {"source", "reference"} <= set(table.names):
            _refuse_unnamed(table, language)
    return chosen[0] if chosen else {"source": "source", "reference": "reference"}


def _refuse_unnamed(table: Table, language: str) -> NoReturn:
    """Raise an error about a table without the columns `source` and `reference`, which says how to name them."""
    if isinstance(table, PlainText):
        raise InputError(
            f"{table.path} has one text on each line; give it as `reference`, and the other side of a bitext as "
            "`source`",
            option="data",
            path=table.path,
        )
    texts = table.texts
    # A column of the reference may be called `en`, or `translation.en` as in datasets on the Hub.
    references = [name for name in texts if plain_code(name.rpartition(".")[2]) == language]
    sides = {"source": "NAME", "reference": "NAME"}
    if len(texts) == 2 and len(references) == 1:
        sides = {"source": next(name for name in texts if name not in references), "reference": references[0]}
    named = shlex.quote(",".join(f"{side}={name}" for side, name in sides.items()))
    found = ", ".join(table.names) or f"numbers from 1 to {table.width}"
    raise InputError(
        f"{table.path} has no columns source and reference; its columns are {found}. Name those of the bitext: "
        f"`columns` {named}; of text alone: `columns` reference=NAME",
        option="columns",
        path=table.path,
    )


class WmtSgmlPairs(Reader):
    """Source and reference of each segment in two SGML files of WMT.

    A segment with several references has a row for each of them.
    """

    def __init__(self, source: Path, reference: Path) -> None:
        super().__init__(["source", "reference"])
        self._source, self._reference = WmtSgmlTable(source), WmtSgmlTable(reference)
        self.label = f"{source} and {reference}"

    def source(self) -> dict[str, object]:
        sides = {"source": self._source, "reference": self._reference}
        return {"kind": "sgml", "files": {name: file_identity(table.path) for name, table in sides.items()}}

    def pieces(self) -> Iterator[Piece]:
        sources = {(one.document, one.number): one.text for one in self._source.segments()}
        references = [((one.document, one.number), one.text) for one in self._reference.segments()]
        common = sources.keys() & {key for key, _ in references}
        for document, number in [*sources, *dict(references)]:
            if (document, number) in common:
                continue
            has, lacks = self._source.path, self._reference.path
            if (document, number) not in sources:
                has, lacks = lacks, has
            raise InputError(
                f"{lacks} has no segment {number!r} in document {document!r}, which {has} has; get both files from "
                "the same test set",
                path=lacks,
            )
        rows = [(sources[key], text) for key, text in references]
        columns = [pa.array(side, pa.string()).cast(pa.binary()) for side in zip(*rows, strict=True)]
        yield Piece(columns, f"{self._reference.path}, segment ", 1)
