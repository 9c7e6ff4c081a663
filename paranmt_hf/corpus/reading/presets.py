"""Presets: file layouts of known datasets, and what their authors state about licence and labels."""

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

    files: str  # Which files have this layout, for error messages
    # How the fields of a line are separated:
    # - "tab": by tabs; quotes are text
    # - "quoted tab", "comma": by tabs or commas; quotes hold a field together, with line ends too
    # - "parquet": the fields are columns of Parquet
    # - "phrases": by ` ||| `
    form: Separation
    fields: Sequence[str]  # Names of the fields in order; for Parquet the columns that a file must have
    # Name of the field for each column of pairs: `reference`, `translation` and perhaps `label`. If sentences come in
    # sets, every two sentences of which are a pair: `set` and `sentence`
    columns: Mapping[str, str]
    header: bool = False  # Whether the first line holds the names of the fields
    optional_fields: int = 0  # How many fields at the end of a line may be missing
    # Regular expression that the first field of a file without a header matches, to tell layouts apart. Its group
    # `language`, if there is one, captures the code of the language
    first_field: str | None = None
    hidden_labels: bool = False  # Whether some pairs are not paraphrases, and the files do not say which

    @property
    def in_sets(self) -> bool:
        """Whether the files hold sets of sentences rather than pairs."""
        return "set" in self.columns

    @property
    def labelled(self) -> bool:
        """Whether the files have labels."""
        return "label" in self.columns


@dataclass(frozen=True)
class Preset:
    """A known dataset of paraphrases: what its files look like, and what its authors state."""

    name: str  # Name of the preset on the command line
    title: str  # Name of the dataset in texts for people
    homepage: str  # Address from which the dataset can be fetched
    paper: str  # Authors and year of its paper
    languages: Sequence[str]  # Languages of the sentences
    license_stated: str  # The licence in the words of the authors
    made_by: MadeBy  # Who wrote the second sentences
    description: str  # Where the pairs come from, for the card of the corpus
    layouts: Sequence[Layout]  # All layouts that files of the dataset have
    license: str | None = None  # The licence as an identifier, as `license` of a corpus; None if none is stated
    # For each label of the files, 1 if it means a paraphrase and 0 if it means none; labels not listed are undecided
    labels: Mapping[float, int] = field(default_factory=dict)
    label_meaning: str | None = None  # What the column `label` means, for the card of the corpus
    score: str | None = None  # The feature of PPDB that becomes the column `ppdb_score`
    placeholder: str | None = None  # Text that the files have in place of a sentence that was not translated
    bytes_literals: bool = False  # Whether texts may be literals `b'...'`, from a Python 2 script that ran on Python 3

    @property
    def of_phrases(self) -> bool:
        """Whether the dataset holds phrases rather than sentences."""
        return self.layouts[0].form == "phrases"


def preset_names() -> list[str]:
    """Return the names of all presets, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def read_preset(name: str) -> Preset:
    """Read the preset of a name.

    Raises:
        InputError: If there is no such preset.
    """
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
    """Find the layout of a file, by its columns if it is Parquet, else by its first line.

    Raises:
        InputError: If the file fits no layout of the preset.
    """
    parquet = path.suffix == ".parquet"
    layouts = [layout for layout in preset.layouts if (layout.form == "parquet") == parquet]
    for layout in layouts:
        fields = _first_fields(layout, path)
        if layout.form == "parquet":
            fits = set(layout.fields) <= set(fields)
        elif layout.header:
            fits = fields == list(layout.fields)
        else:
            fits = 0 <= len(layout.fields) - len(fields) <= layout.optional_fields
            fits = fits and (layout.first_field is None or bool(re.fullmatch(layout.first_field, fields[0])))
        if fits:
            return layout
    expected = " or ".join(map(_described, layouts)) or "no Parquet files"
    found = ", ".join(_first_fields(layouts[0], path)) if layouts else "one"
    raise InputError(
        f"{path} fits no layout of the preset {preset.name}: expected {expected}; found {brief(found)}. Choose "
        f"another preset ({preset.homepage} has the files), or name the columns yourself with `columns`",
        option="preset",
        path=path,
    )


def language_of_file(layout: Layout, path: Path) -> str | None:
    """Return the language code in the first field of a file; None if this layout has none there."""
    if layout.first_field is None or "(?P<language>" not in layout.first_field:
        return None
    match = re.fullmatch(layout.first_field, _first_fields(layout, path)[0])
    return match and match["language"]


def _first_fields(layout: Layout, path: Path) -> list[str]:
    """Return the fields of the first line of a file, or the names of the columns of a Parquet file."""
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
    """Describe a layout for the error of a file that does not fit."""
    if layout.form == "parquet":
        return f"the columns {', '.join(layout.fields)}"
    form = "commas" if layout.form == "comma" else "tabs"
    head = "a first line with the names" if layout.header else f"{len(layout.fields)} fields"
    shown = (layout.first_field or "").replace("(?P<language>[a-z]{2})", "[a-z]{2}")
    like = f", the first one like {shown}" if shown else ""
    return f"{head} {', '.join(layout.fields)} and {form} between them{like} ({layout.files})"


def read_fields(layout: Layout, path: Path) -> Iterator[dict[str, pa.Array]]:
    """Read the columns that a layout names from a file, block by block.

    Yields:
        For each column of the layout, such as `reference` or `label`, the values of consecutive rows: text as bytes;
        labels of Parquet may be numbers. A field that a line lacks is null.
    """
    if layout.form == "parquet":
        table: Table = open_table(path)
        columns = layout.columns
    else:
        heading = Heading(len(layout.fields), tuple(layout.fields) if layout.header else (), ())
        if layout.form == "tab" and (layout.optional_fields or not has_quoted_fields(path)):
            table = TabSeparated(path, heading, layout.optional_fields)
        else:
            table = CommaSeparated(path, Form(DELIMITERS[layout.form]), heading)
        columns = {name: str(layout.fields.index(theirs) + 1) for name, theirs in layout.columns.items()}
    numbers = [columns["label"]] if layout.form == "parquet" and layout.labelled else []
    for piece in table.pieces(list(columns.values()), numbers=numbers):
        yield dict(zip(columns, piece.columns, strict=True))
