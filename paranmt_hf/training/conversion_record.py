"""What a conversion writes down beside an encoder, its `conversion.json`, and the card that is rendered from it."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from paranmt_hf.encoders.families import FAMILIES
from paranmt_hf.evaluation.results import Results
from paranmt_hf.evaluation.sts_data import DEVELOPMENT
from paranmt_hf.hub.licenses import License
from paranmt_hf.hub.markdown import code, escape
from paranmt_hf.hub.model_card import SENT2VEC_CITATION, model_card
from paranmt_hf.training.card import AboutModel, license_text
from paranmt_hf.util.records import from_json, read_json, to_json

CONVERSION_FILE = "conversion.json"
PROGRAM = "[Sent2Vec](https://github.com/epfml/sent2vec)"
# The program's options that a card shows.
SHOWN = ("dim", "epoch", "minCount", "neg", "t", "wordNgrams", "bucket")


@dataclass(frozen=True, kw_only=True)
class ConversionRecord:
    """The content of an encoder's `conversion.json`.

    Attributes:
        source: Name of the file that was converted.
        checksum: `sha256:` and the checksum of its bytes, unpacked.
        bytes: Their number.
        trained: How the program trained it, as the file says: its options, tokens of text, labels.
        settings: What determines the result beside the file: the settings, the checksum of `--text`, the licence.
        order: Words of the longest n-grams that were kept.
        dimension: Size of a sentence vector.
        words: Words with a vector.
        ngrams: Buckets of n-grams with a vector.
        unreachable: Words that no text can hold, because this encoder cuts it otherwise.
        paranmt_hf: Version of this package.
    """

    source: str
    checksum: str
    bytes: int
    trained: dict[str, Any]
    settings: dict[str, Any]
    order: int
    dimension: int
    words: int
    ngrams: int
    unreachable: int
    paranmt_hf: str

    def to_json(self) -> dict[str, Any]:
        """Give the record as JSON values."""
        values: dict[str, Any] = to_json(self)
        return values

    @property
    def license(self) -> License:
        """The licence that the model has, as was stated."""
        stated = from_json(_Stated, self.settings, CONVERSION_FILE).license
        return License(stated.license, stated.license_name, stated.license_link)


def read_conversion(folder: Path) -> ConversionRecord:
    """Read what a conversion wrote down of an encoder."""
    path = folder / CONVERSION_FILE
    values = read_json(path, "the folder of an encoder made by `paranmt convert`")
    record = from_json(ConversionRecord, values, path)
    from_json(_Stated, record.settings, path)
    from_json(_Trained, record.trained, path)
    return record


# What a card reads of trained and settings. These are checked, others may be anything.


@dataclass(frozen=True)
class _License:
    license: str
    license_name: str | None = None
    license_link: str | None = None


@dataclass(frozen=True)
class _Stated:
    license: _License
    cut: str
    precision: str
    text: dict[str, Any] | None


@dataclass(frozen=True)
class _Trained:
    dim: int
    epoch: int
    minCount: int  # noqa: N815 - the program's own names
    neg: int
    t: float
    wordNgrams: int  # noqa: N815
    bucket: int
    tokens: int


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
        f"Trained by its authors with {PROGRAM} on {conversion.trained['tokens']:,} tokens of text that the file does "
        "not name."
    )


def _command(conversion: ConversionRecord) -> str:
    settings = conversion.settings
    words = [
        "paranmt convert",
        shlex.quote(" ".join(conversion.source.split())),
        "--out FOLDER",
        f"--license {settings['license']['license']}",
    ]
    if conversion.order != conversion.trained["wordNgrams"]:
        words.append(f"--order {conversion.order}")
    words += [
        f"--{name} {settings[name]}"
        for name, usual in (("cut", "words"), ("precision", "float32"))
        if settings[name] != usual
    ]
    return " ".join([*words, *(["--text FILE"] if settings["text"] else [])])


def _made(conversion: ConversionRecord) -> str:
    trained = conversion.trained
    options = " ".join(f"-{name} {trained[name]}" for name in SHOWN)
    held = f"{conversion.words:,} words"
    if conversion.ngrams:
        held += f" and {conversion.ngrams:,} buckets of n-grams"
    lines = [
        f"Of its training the file says {code(options)}.",
        f"Converted from {code(conversion.source)} ({conversion.bytes:,} bytes, {code(conversion.checksum)}) with "
        f"paranmt-hf {escape(conversion.paranmt_hf)}: the vectors of {held}, stored as "
        f"{conversion.settings['precision']}.",
    ]
    if conversion.order < trained["wordNgrams"]:
        lines.append(
            f"The model was trained with n-grams of up to {trained['wordNgrams']} words, of which those of more than "
            f"{conversion.order} were left out, so vectors are not those of the program."
        )
    if conversion.settings["text"]:
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
    if conversion.settings["cut"] == "words":
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
