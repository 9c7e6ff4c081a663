"""Presets: how the files of a known data set are laid out, and what its authors say of it.

A preset is a file of `assets/presets/`, and no code: the columns of each layout, how they are separated, which labels
mean a paraphrase, and the licence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from paranmt_hf.corpus.schema import MadeBy
from paranmt_hf.errors import InputError
from paranmt_hf.util.yaml_files import read_yaml

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "presets"
Form = Literal["tab", "quoted tab", "comma", "parquet", "phrases"]


@dataclass(frozen=True)
class Layout:
    """One layout of the files of a data set.

    Attributes:
        files: Which files have it, for people.
        form: How fields are separated: by tabs, where quotes are text; by tabs or commas, where quotes hold a field
            together, line ends too; columns of Parquet; or ` ||| `.
        fields: Names of the fields in order; of Parquet those that are needed.
        columns: The field of `reference`, `translation` and, where there is one, `label`; or of `set` and `sentence`,
            where sentences come in sets and every two of a set are a pair.
        header: Whether the first line holds the names.
        may_lack: So many fields at the end may be missing.
        first_field: Regular expression of the first field, where there is no header to know the layout by; its group
            `language`, if it has one, is the code of the language.
        hidden_labels: Whether some of the pairs are no paraphrases, and the files do not say which.
    """

    files: str
    form: Form
    fields: Sequence[str]
    columns: Mapping[str, str]
    header: bool = False
    may_lack: int = 0
    first_field: str | None = None
    hidden_labels: bool = False

    def position(self, column: str) -> int:
        """Index of the field that a column is, from 0."""
        return list(self.fields).index(self.columns[column])

    @property
    def in_sets(self) -> bool:
        """Whether sentences come in sets."""
        return "set" in self.columns

    @property
    def labelled(self) -> bool:
        """Whether pairs have labels."""
        return "label" in self.columns


@dataclass(frozen=True)
class Preset:
    """A data set of paraphrases.

    Attributes:
        name: Its name on the command line.
        title: Its name for people.
        homepage: Where it is.
        paper: Who made it.
        languages: Its languages.
        license_stated: What its authors say of its licence.
        made_by: Who wrote the second sentences.
        description: Where its pairs come from, for the card.
        layouts: Its layouts.
        license: Identifier of the licence on the Hub; None where the authors state none.
        license_name: Name of one that the Hub does not list.
        license_link: Address of its text.
        labels: Which label means a paraphrase (1) and which means none (0); any other means neither.
        label_meaning: What the column `label` means, for the card.
        score: The feature of PPDB that becomes a column.
    """

    name: str
    title: str
    homepage: str
    paper: str
    languages: Sequence[str]
    license_stated: str
    made_by: MadeBy
    description: str
    layouts: Sequence[Layout]
    license: str | None = None
    license_name: str | None = None
    license_link: str | None = None
    labels: Mapping[float, int] = field(default_factory=dict)
    label_meaning: str | None = None
    score: str | None = None

    @property
    def of_phrases(self) -> bool:
        """Whether it holds phrases, which `corpus/phrases/` reads."""
        return self.layouts[0].form == "phrases"


def preset_names() -> list[str]:
    """Names of the presets."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def read_preset(name: str) -> Preset:
    """Read a preset.

    Raises:
        InputError: There is none of this name.
    """
    if name not in preset_names():
        raise InputError(
            f"--preset must be one of {', '.join(preset_names())}, not {name!r}; for another data set name its "
            "columns with --columns"
        )
    values: dict[str, Any] = read_yaml(FOLDER / f"{name}.yaml", "a preset")
    return Preset(name, **{**values, "layouts": [Layout(**layout) for layout in values["layouts"]]})
