"""What a conversion writes down beside an encoder, its `conversion.json`, and the card that is rendered from it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from paranmt_hf.encoders.families import FAMILIES
from paranmt_hf.encoders.sent2vec_bin import Sent2VecBinSettings
from paranmt_hf.evaluation.results import Results
from paranmt_hf.hub.publish import About
from paranmt_hf.training.card import encoder_card, encoder_values
from paranmt_hf.util.records import Record
from paranmt_hf.util.settings import ByContent, Count, check

CONVERSION_FILE = "conversion.json"
# The program's options that a card shows.
SHOWN = ("dim", "epoch", "minCount", "neg", "t", "wordNgrams", "bucket")


@dataclass(frozen=True)
class ConvertConfig:
    """What is kept of a model of the Sent2Vec program, and how.

    Attributes:
        order: Number of words of the longest n-grams to keep; None for all. 1 keeps the words alone, whose average is
            another vector than the program's for a model that has n-grams.
        cut: How the encoder cuts text: `words`, lower-cased and with punctuation apart, for raw text; or `blanks`, at
            white space as the program does, for text that was tokenised as the model's training text was.
        precision: How numbers are stored: as they are, or in half or a quarter of the space.
        text: Keep only n-grams that occur in this file of sentences, for a smaller model.
    """

    order: Count | None = None
    cut: Literal["words", "blanks"] = "words"
    precision: Literal["float32", "float16", "int8"] = "float32"
    # What counts is its content, see `ConversionSettings`.
    text: Annotated[str | None, ByContent] = None

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class ConversionSettings:
    """What determines a converted encoder, next to the file that was converted.

    Attributes:
        config: What is kept of the model.
        text: The identity of `config.text`, with its checksum.
        license: The licence of the model, as `License` reads it.
    """

    config: ConvertConfig
    text: dict[str, Any] | None
    license: str


@dataclass(frozen=True, kw_only=True)
class ConversionRecord(Record):
    """The content of an encoder's `conversion.json`.

    Attributes:
        settings: What determines it, next to the file.
        source: Name of the file that was converted.
        checksum: `sha256:` and the checksum of its bytes, unpacked.
        bytes: Their number.
        trained: How the program trained it, as the file says.
        labels: Number of labels in the file, which are left out.
        order: Number of words of the longest n-grams that were kept.
        dimension: Size of a sentence vector.
        words: Number of words with a vector.
        ngrams: Number of buckets of n-grams with a vector.
        unreachable: Number of words that no text can hold, because this encoder cuts it otherwise.
    """

    FILE: ClassVar[str] = CONVERSION_FILE
    KIND: ClassVar[str] = "an encoder made by `paranmt encoder convert`"

    settings: ConversionSettings
    source: str
    checksum: str
    bytes: int
    trained: Sent2VecBinSettings
    labels: int
    order: int
    dimension: int
    words: int
    ngrams: int
    unreachable: int

    @property
    def license(self) -> str:
        """The licence of the model."""
        return self.settings.license

    @property
    def title(self) -> str:
        """Name of the kind of encoder in the papers."""
        return "WORD" if self.order == 1 and self.settings.config.cut == "words" else "Sent2Vec"


def converted_values(
    name: str, folder: Path, conversion: ConversionRecord, about: About | None = None, results: Results | None = None
) -> dict[str, Any]:
    """Collect the values of the card; see `encoder_values`."""
    return encoder_values(
        "converted",
        name,
        folder,
        conversion.to_json(),
        about or About(conversion.license),
        results,
        commands=[_command(conversion)],
        # The file does not say in which language its text was.
        languages=[],
        limits=FAMILIES["word" if conversion.order == 1 else "sent2vec"].limits,
        options=" ".join(f"-{option} {getattr(conversion.trained, option)}" for option in SHOWN),
    )


def write_conversion_card(folder: Path, name: str, conversion: ConversionRecord) -> None:
    """Write the card of a converted encoder into its folder."""
    card = encoder_card(converted_values(name, folder, conversion))
    (folder / "README.md").write_text(card, encoding="utf8")


def _command(conversion: ConversionRecord) -> str:
    settings, config = conversion.settings, conversion.settings.config
    words = ["paranmt encoder convert", shlex.quote(" ".join(conversion.source.split())), "--out FOLDER"]
    words.append(f"--license {shlex.quote(settings.license)}")
    if conversion.order != conversion.trained.wordNgrams:
        words.append(f"--order {conversion.order}")
    words += [f"--cut {config.cut}"] if config.cut != "words" else []
    words += [f"--precision {config.precision}"] if config.precision != "float32" else []
    return " ".join([*words, *(["--text FILE"] if settings.text else [])])
