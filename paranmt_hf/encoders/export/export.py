"""Export an encoder for another library: `paranmt export`."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from paranmt_hf.encoders.composition import Composition, composition_of
from paranmt_hf.encoders.export.formats import MODEL2VEC, STATIC, TOKENIZERS, Encode, Format, card
from paranmt_hf.encoders.export.onnx import ONNX, TRANSFORMERS_JS
from paranmt_hf.encoders.export.tokenizers import alphabet_of
from paranmt_hf.encoders.families import FAMILIES
from paranmt_hf.encoders.loading import load
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import ASSETS, locate
from paranmt_hf.util.optional import require
from paranmt_hf.util.records import read_json
from paranmt_hf.util.work import finished, folder_aside, refuse_inside, result_folder

# Says beside an export of what it is one.
EXPORT_FILE = "export.json"
# In the order in which a better one is looked for.
FORMATS = {format.name: format for format in (STATIC, TOKENIZERS, MODEL2VEC, ONNX, TRANSFORMERS_JS)}
# How often the sample is encoded to measure the speed.
TIMES = 3
# What every export is checked on, beside the sentences of the embedded sample.
CHECKS = (
    "",
    "A man isn't playing 3.5 guitars; he's listening.",
    "  ",
    "“Ça va?” — l'été, zyxqj \u4e2d_\u0130 n't ’s ., .5",
)


@dataclass(frozen=True)
class Exported:
    """What `export_encoder` wrote.

    Attributes:
        folder: Where it is.
        format: Name of the format.
        encoder: The encoder by the names of the paper, such as `WORD,TRIGRAM`.
        dimension: Dimensions of a sentence vector.
        difference: Largest difference from our vectors, or of model2vec from a cosine of 1; None where the package
            that reads the format is not installed, so that nothing was checked.
        speed: Sentences of the embedded sample a second, as a reader encodes them on this machine; None as above.
        own_speed: Sentences a second of `encode` here.
        alphabet: Number of characters that trigrams of the vocabulary hold; None without trigrams.
    """

    folder: Path
    format: str
    encoder: str
    dimension: int
    difference: float | None
    speed: float | None
    own_speed: float
    alphabet: int | None


def export_encoder(
    model: str | Path, out: str | Path, *, format: str = "static", revision: str | None = None
) -> Exported:
    """Write an encoder for another library, and check that this gives the same vectors.

    Args:
        model: Folder or Hub id of the encoder, or `embedded`.
        out: Folder to write; must not exist, be empty, or hold this export already.
        format: `static` (WORD as a stock sentence-transformers model), `tokenizers` (TRIGRAM as one), `model2vec`
            (WORD or TRIGRAM), `onnx` and `transformers.js` (each of our encoders).
        revision: Branch, tag or commit on the Hub.

    Raises:
        InputError: The format is unknown or does not hold this encoder, a package is missing, or `out` is not free.
    """
    if format not in FORMATS:
        raise InputError(f"format must be one of {', '.join(FORMATS)}, was {format!r}")
    chosen, out = FORMATS[format], result_folder(out)
    if chosen.package is not None:
        require(chosen.package, chosen.package)
    source = locate(str(model), revision)
    refuse_inside(out, source.folder)
    identity = {"format": format, "model": source.name, "revision": source.revision}
    made = finished(out, identity, _read_record, lambda record: record, made="exported")
    encoder = load(source, device="cpu")
    composition = _check(encoder, chosen, source.name)
    titles = [part.family.title for part in composition.parts]
    if made is not None:
        checked = _measure(encoder, out, chosen)
    else:
        with folder_aside(out, doing="write the folder") as aside:
            chosen.write(encoder, aside)
            (aside / "README.md").write_text(card(out.name, chosen, titles, source), encoding="utf8")
            (aside / EXPORT_FILE).write_text(json.dumps(identity, indent=1), encoding="utf8")
            _make_readable(aside)
            checked = _measure(encoder, aside, chosen)
    trigrams = [part.vocabulary.units for part in composition.parts if part.family.units == "trigram"]
    alphabet = {character for units in trigrams for character in alphabet_of(units)}
    return Exported(out, format, composition.title, composition.dimension, *checked, len(alphabet) or None)


def _read_record(folder: Path) -> dict[str, Any]:
    """Read what determined an export."""
    if not (folder / EXPORT_FILE).is_file():
        raise InputError(f"{folder} exists and is not an empty folder; name another one or delete it")
    record = read_json(folder / EXPORT_FILE, "the record of an export; delete the folder")
    if not isinstance(record, dict):
        raise InputError(f"{folder / EXPORT_FILE} is damaged: it holds no object; delete the folder")
    return record


def _check(encoder: SentenceEncoder, format: Format, name: str) -> Composition:
    """Take an encoder apart; refuse what the format cannot hold."""
    composition = composition_of(list(encoder))
    if composition is None:
        raise InputError(
            f"{name} is no encoder of this package ({', '.join(family.title for family in FAMILIES.values())} and "
            "combinations), and only these can be exported"
        )
    if not all(part.family.exported for part in composition.parts):
        raise InputError(
            f"{name} is {composition.title}, which no other library holds: none hashes word n-grams; load it with "
            "paranmt_hf.load, or with sentence-transformers and trust_remote_code=True"
        )
    if not _fits(composition, format):
        better = next(other.name for other in FORMATS.values() if _fits(composition, other))
        raise InputError(
            f"format {format.name} holds {format.holds}, and {name} is {composition.title}; format {better} holds it"
        )
    if not format.holds_settings and (encoder.truncate_dim is not None or encoder.default_prompt_name):
        raise InputError(
            f"{name} has a default prompt or a truncate_dim, which format {format.name} cannot hold; remove them from "
            "its config_sentence_transformers.json"
        )
    if not format.holds_unknown and any(bool(part.table.weight[0].any()) for part in composition.parts):
        other = next(other for other in FORMATS.values() if other.holds_unknown and _fits(composition, other))
        raise InputError(
            f"{name} has a trained vector for unknown units, which {format.name} leaves out; use format {other.name}"
        )
    return composition


def _fits(composition: Composition, format: Format) -> bool:
    """Tell whether a format can hold an encoder."""
    names = [part.family.name for part in composition.parts]
    return not format.families or (len(names) == 1 and names[0] in format.families)


def _make_readable(folder: Path) -> None:
    """Give files the folder's permissions; some versions of safetensors let only their owner read them."""
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(folder.stat().st_mode & 0o666)


def _measure(encoder: SentenceEncoder, folder: Path, format: Format) -> tuple[float | None, float | None, float]:
    """Encode the embedded sample with the export and without.

    Returns:
        The largest difference, and the sentences a second of the export and of `encode`.
    """
    sample = (ASSETS / "sample" / "sample.en").read_text(encoding="utf8").splitlines()
    theirs, ours = format.read(folder), encoder.encode
    own_vectors, own_speed = _timed(ours, sample)
    if theirs is None:
        return None, None, own_speed
    vectors, speed = _timed(theirs, sample)
    difference = max(format.distance(vectors, own_vectors), format.distance(theirs(list(CHECKS)), ours(list(CHECKS))))
    if not difference <= format.tolerance:
        raise RuntimeError(
            f"the {format.name} export gives other vectors than the encoder, by {difference:.1e}; not written"
        )
    return difference, speed, own_speed


def _timed(encode: Encode, sample: list[str]) -> tuple[np.ndarray, float]:
    """Encode sentences, and tell how many in a second at the best of some times."""
    seconds = []
    for _ in range(TIMES):
        start = time.perf_counter()
        vectors = encode(sample)
        seconds.append(time.perf_counter() - start)
    return vectors, len(sample) / min(seconds)
