"""What a conversion writes down beside an encoder, its `conversion.json`, and the card that is rendered from it."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from paranmt_hf.encoders.families import FAMILIES
from paranmt_hf.encoders.sent2vec_bin import Sent2VecBinSettings
from paranmt_hf.evaluation.results import Results
from paranmt_hf.evaluation.sts_data import DEVELOPMENT
from paranmt_hf.hub.licenses import License
from paranmt_hf.hub.markdown import code, escape
from paranmt_hf.hub.model_card import SENT2VEC_CITATION, model_card
from paranmt_hf.training.card import AboutModel, license_text
from paranmt_hf.util.records import Record, to_json
from paranmt_hf.util.settings import ByContent, Count, check

CONVERSION_FILE = "conversion.json"
PROGRAM = "[Sent2Vec](https://github.com/epfml/sent2vec)"
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
        license: The licence of the model.
    """

    config: ConvertConfig
    text: dict[str, Any] | None
    license: License


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
    def license(self) -> License:
        """The licence of the model."""
        return self.settings.license

    @property
    def title(self) -> str:
        """Name of the kind of encoder in the papers."""
        return "WORD" if self.order == 1 and self.settings.config.cut == "words" else "Sent2Vec"


def conversion_card(
    name: str,
    folder: Path,
    conversion: ConversionRecord,
    about: AboutModel | None = None,
    results: Results | None = None,
) -> dict[str, Any]:
    """Put the record of a card together; arguments and result as of `model_record`."""
    modules = json.loads((folder / "modules.json").read_text(encoding="utf8"))
    stock = all(entry["type"].startswith("sentence_transformers.") for entry in modules)
    license = conversion.license
    if about is None:
        about = AboutModel(license.id, license.name, license.link)
    said = {key: value for key, value in asdict(about).items() if value is not None}
    family = FAMILIES["word" if conversion.order == 1 else "sent2vec"]
    stored: dict[str, Any] = {"bytes": sum(path.stat().st_size for path in folder.rglob("*.safetensors"))}
    stored |= {"mean": None, "development": None}
    if results is not None:
        stored |= {"mean": results.mean, "development": results.value(DEVELOPMENT)}
    return {
        "name": name,
        **said,
        "summary": about.summary or _summary(conversion),
        "data": about.data or _data(conversion),
        "commands": list(about.commands) or [_command(conversion)],
        "license_text": about.license_text or license_text(about),
        "made": _made(conversion),
        "reading": _reading(conversion, stock),
        "citation": SENT2VEC_CITATION,
        # The file does not say in which language its text was.
        "languages": [],
        "stock": stock,
        "limits": family.limits,
        "results": None if results is None else results.to_json(),
        "precisions": {"as stored": stored},
        "speed": None if results is None or results.speed is None else to_json(results.speed),
    }


def write_conversion_card(folder: Path, name: str, conversion: ConversionRecord) -> None:
    """Write the card of a converted encoder into its folder."""
    (folder / "README.md").write_text(converted_card(folder, name, conversion), encoding="utf8")


def converted_card(folder: Path, name: str, conversion: ConversionRecord) -> str:
    """Render the card that `write_conversion_card` writes."""
    return model_card(conversion_card(name, folder, conversion))


def _summary(conversion: ConversionRecord) -> str:
    units = "words" if conversion.order == 1 else f"words and n-grams of up to {conversion.order} words"
    return (
        f"Sent2Vec sentence encoder of {conversion.dimension} dimensions: the average of the vectors of {units}. "
        f"Converted from {code(conversion.source)}, a model of the program {PROGRAM} (Pagliardini, Gupta and Jaggi, "
        "NAACL 2018)."
    )


def _data(conversion: ConversionRecord) -> str:
    return (
        f"Trained by its authors with {PROGRAM} on {conversion.trained.tokens:,} tokens of text that the file does "
        "not name."
    )


def _command(conversion: ConversionRecord) -> str:
    settings, config = conversion.settings, conversion.settings.config
    words = [
        "paranmt encoder convert",
        shlex.quote(" ".join(conversion.source.split())),
        "--out FOLDER",
        f"--license {settings.license.id}",
    ]
    if conversion.order != conversion.trained.wordNgrams:
        words.append(f"--order {conversion.order}")
    words += [
        f"--{name} {value}"
        for name, value, usual in (("cut", config.cut, "words"), ("precision", config.precision, "float32"))
        if value != usual
    ]
    return " ".join([*words, *(["--text FILE"] if settings.text else [])])


def _made(conversion: ConversionRecord) -> str:
    trained = conversion.trained
    options = " ".join(f"-{name} {getattr(trained, name)}" for name in SHOWN)
    held = f"{conversion.words:,} words"
    if conversion.ngrams:
        held += f" and {conversion.ngrams:,} buckets of n-grams"
    lines = [
        f"Of its training the file says {code(options)}.",
        f"Converted from {code(conversion.source)} ({conversion.bytes:,} bytes, {code(conversion.checksum)}) with "
        f"paranmt-hf {escape(conversion.paranmt_hf)}: the vectors of {held}, stored as "
        f"{conversion.settings.config.precision}.",
    ]
    if conversion.order < trained.wordNgrams:
        lines.append(
            f"The model was trained with n-grams of up to {trained.wordNgrams} words, of which those of more than "
            f"{conversion.order} were left out, so vectors are not those of the program."
        )
    if conversion.settings.text:
        lines.append(
            "Only n-grams of a given text were kept: sentences with others have another vector than the program gives."
        )
    elif conversion.order > 1:
        lines.append(
            "N-grams share buckets by a hash, and those that were never met in training have the random vectors that "
            "training began with, as in the program."
        )
    return "\n\n".join(lines)


def _reading(conversion: ConversionRecord, stock: bool) -> str:
    if conversion.settings.config.cut == "words":
        first = (
            "Text is lower-cased and cut into words by this package, and not by what the authors cut their text with: "
            f"{conversion.unreachable:,} of the {conversion.words:,} words are never met for that reason."
        )
    else:
        first = (
            "Text is cut at white space and nothing else: it must be lower-cased and tokenised as the text that the "
            "model was trained on."
        )
    if stock:
        return f"{first} Words that are not in the vocabulary count, but have vectors of zeros, which turn no vector."
    return f"{first} Words that are not in the vocabulary are left out, before n-grams are made."


def missing_of(conversion: ConversionRecord, about: AboutModel, results: Results | None) -> list[str]:
    """What a reader of a converted encoder's card would miss, in sentences."""
    missing = []
    if results is None:
        missing.append("results: paranmt evaluate sts FOLDER --data STS --json FILE, then --results FILE")
    if not about.data:
        missing.append("words of your own on the data that its authors trained it on: --about FILE with 'data'")
    return missing
