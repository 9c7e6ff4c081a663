"""Presets: file layouts of known datasets, and their authors' statements."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from paranmt_hf.corpus.reading.comma_separated import CommaSeparated, Form
from paranmt_hf.corpus.reading.formats import open_table
from paranmt_hf.corpus.reading.heading import Heading
from paranmt_hf.corpus.reading.lines import read_blocks
from paranmt_hf.corpus.reading.tab_separated import TabSeparated, has_quoted_fields
from paranmt_hf.corpus.reading.tables import Table
from paranmt_hf.corpus.release.schema import MadeBy
from paranmt_hf.errors import InputError
from paranmt_hf.util.parquet import read_schema
from paranmt_hf.util.wording import brief, perhaps
from paranmt_hf.util.yaml_files import read_yaml

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "presets"
Separation = Literal["tab", "quoted tab", "comma", "parquet", "phrases"]


@dataclass(frozen=True)
class Layout:
    """One layout of the files of a dataset."""

    files: str  # Which files have it, for people
    # How fields are separated: by tabs, where quotes are text; by tabs or commas, where quotes hold a field together,
    # line ends too; columns of Parquet; or ` ||| `
    form: Separation
    fields: Sequence[str]  # Names of the fields in order; of Parquet those that are needed
    # The field of `reference`, `translation` and, if there is one, `label`; or of `set` and `sentence`, where
    # sentences come in sets and every two of a set are a pair
    columns: Mapping[str, str]
    header: bool = False  # Whether the first line holds the names
    may_lack: int = 0  # Number of fields at the end that may be missing
    # Regular expression of the first field, if there is no header that identifies the layout; its group `language`, if
    # it has one, is the code of the language
    first_field: str | None = None
    hidden_labels: bool = False  # Whether some of the pairs are not paraphrases, and the files do not mark them

    @property
    def in_sets(self) -> bool:
        return "set" in self.columns

    @property
    def labelled(self) -> bool:
        return "label" in self.columns


@dataclass(frozen=True)
class Preset:
    """A dataset of paraphrases."""

    name: str  # Its name on the command line
    title: str  # Its name for people
    homepage: str  # Where it is
    paper: str  # Who made it
    languages: Sequence[str]  # Its languages
    license_stated: str  # Its licence in the words of its authors
    made_by: MadeBy  # Who wrote the second sentences
    description: str  # Where its pairs come from, for the card
    layouts: Sequence[Layout]  # Its layouts
    license: str | None = None  # The licence, as `license` of a corpus; None if the authors state none
    # Which label means a paraphrase (1) and which means none (0); any other means neither
    labels: Mapping[float, int] = field(default_factory=dict)
    label_meaning: str | None = None  # What the column `label` means, for the card
    score: str | None = None  # The feature of PPDB that becomes a column
    placeholder: str | None = None  # Text in place of a sentence that was not translated
    bytes_literals: bool = False  # Whether texts may be written as `b'...'`, by a script for Python 2 that ran on 3

    @property
    def of_phrases(self) -> bool:
        """Whether it holds phrases rather than sentences."""
        return self.layouts[0].form == "phrases"


def preset_names() -> list[str]:
    """Names of the presets."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def read_preset(name: str) -> Preset:
    """Read a preset."""
    if name not in preset_names():
        raise InputError(
            f"`preset` must be one of {', '.join(preset_names())}, not {name!r}{perhaps(name, preset_names())}; for "
            "another data set name its columns with `columns`",
            option="preset",
        )
    values: dict[str, Any] = read_yaml(FOLDER / f"{name}.yaml", "a preset")
    return Preset(name, **{**values, "layouts": [Layout(**layout) for layout in values["layouts"]]})


DELIMITERS: dict[Separation, str] = {"tab": "\t", "quoted tab": "\t", "comma": ","}


def find_layout(preset: Preset, path: Path) -> Layout:
    """Find the layout that a file has."""
    parquet = path.suffix == ".parquet"
    layouts = [layout for layout in preset.layouts if (layout.form == "parquet") == parquet]
    for layout in layouts:
        fields = _found(layout, path)
        if layout.form == "parquet":
            fits = set(layout.fields) <= set(fields)
        elif layout.header:
            fits = fields == list(layout.fields)
        else:
            fits = 0 <= len(layout.fields) - len(fields) <= layout.may_lack
            fits = fits and (layout.first_field is None or bool(re.fullmatch(layout.first_field, fields[0])))
        if fits:
            return layout
    expected = " or ".join(map(_described, layouts)) or "no Parquet files"
    found = ", ".join(_found(layouts[0], path)) if layouts else "one"
    raise InputError(
        f"{path} fits no layout of the preset {preset.name}: expected {expected}; found {brief(found)}. Choose "
        f"another preset ({preset.homepage} has the files), or name the columns yourself with `columns`",
        option="preset",
        path=path,
    )


def spoken_in(layout: Layout, path: Path) -> str | None:
    """Language code of a file, if its first field names it."""
    if layout.first_field is None or "(?P<language>" not in layout.first_field:
        return None
    found = re.fullmatch(layout.first_field, _found(layout, path)[0])
    return found and found["language"]


def _found(layout: Layout, path: Path) -> list[str]:
    """Fields of the first line, or columns of a Parquet file."""
    if layout.form == "parquet":
        return list(read_schema(path).names)
    line = next(read_blocks(path)).partition(b"\n")[0]
    text = line.removesuffix(b"\r").decode("utf8", "replace")
    if layout.form == "tab":
        return text.split("\t")
    try:
        return next(csv.reader([text], delimiter=DELIMITERS[layout.form]), [])
    except csv.Error:
        return [text]


def _described(layout: Layout) -> str:
    if layout.form == "parquet":
        return f"the columns {', '.join(layout.fields)}"
    form = "commas" if layout.form == "comma" else "tabs"
    head = "a first line with the names" if layout.header else f"{len(layout.fields)} fields"
    shown = (layout.first_field or "").replace("(?P<language>[a-z]{2})", "[a-z]{2}")
    like = f", the first one like {shown}" if shown else ""
    return f"{head} {', '.join(layout.fields)} and {form} between them{like} ({layout.files})"


def read_fields(layout: Layout, path: Path) -> Iterator[dict[str, pa.Array]]:
    """Read the columns that a layout names from a file.

    Text is returned as bytes; Parquet may also give numbers. A field that a line lacks is null.
    """
    if layout.form == "parquet":
        table: Table = open_table(path)
        columns = layout.columns
    else:
        heading = Heading(len(layout.fields), tuple(layout.fields) if layout.header else (), ())
        if layout.form == "tab" and (layout.may_lack or not has_quoted_fields(path)):
            table = TabSeparated(path, heading, layout.may_lack)
        else:
            table = CommaSeparated(path, Form(DELIMITERS[layout.form]), heading)
        columns = {name: str(layout.fields.index(field) + 1) for name, field in layout.columns.items()}
    numbers = [columns["label"]] if layout.form == "parquet" and layout.labelled else []
    for piece in table.pieces(list(columns.values()), numbers=numbers):
        yield dict(zip(columns, piece.columns, strict=True))
