"""How an encoder came to be: which record lies beside it, and which card follows from that. One entry for each way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paranmt_hf.evaluation.results import Results
from paranmt_hf.hub.licenses import License
from paranmt_hf.training.card import AboutModel, folder_card, model_record
from paranmt_hf.training.conversion_record import (
    CONVERSION_FILE,
    ConversionRecord,
    conversion_card,
    converted_card,
    missing_of,
)
from paranmt_hf.training.record import TRAINING_FILE, TrainingRecord
from paranmt_hf.training.sent2vec.card import missing_of_sent2vec, own_sent2vec_card, sent2vec_card
from paranmt_hf.training.sent2vec.record import Sent2VecRecord, is_sent2vec


@dataclass(frozen=True)
class Origin:
    """A way in which encoders come to be.

    Attributes:
        file: Name of the record beside the encoder.
        read: Reads the record of a folder; it has the `dimension` of sentence vectors.
        card: Makes what `model_card` takes of name, folder, record, what people say, and results.
        own_card: Renders the card that was written into the folder: of folder, name and record.
        missing: Says what a reader of the card would miss: of record, what people say, and results.
    """

    file: str
    read: Callable[[Path], Any]
    card: Callable[[str, Path, Any, AboutModel | None, Results | None], dict[str, Any]]
    own_card: Callable[[Path, str, Any], str]
    missing: Callable[[Any, AboutModel, Results | None], list[str]]


def _missing(training: TrainingRecord, about: AboutModel, results: Results | None) -> list[str]:
    """What a reader of a trained encoder's card would miss, in sentences."""
    missing = []
    if results is None:
        missing.append("results: paranmt evaluate sts FOLDER --data STS --json FILE, then --results FILE")
    if not about.commands and (training.mean_of or training.rotated or "init_from" in training.inputs):
        missing.append("the commands of the models it came from: --about FILE with 'commands'")
    for name in ("summary", "data", "license_text"):
        if not getattr(about, name):
            missing.append(f"words of your own on the {name.replace('_', ' ')}: --about FILE with {name!r}")
    return missing


TRAINED = Origin(TRAINING_FILE, TrainingRecord.read, model_record, folder_card, _missing)
OF_SENTENCES = Origin(TRAINING_FILE, Sent2VecRecord.read, sent2vec_card, own_sent2vec_card, missing_of_sent2vec)
CONVERTED = Origin(CONVERSION_FILE, ConversionRecord.read, conversion_card, converted_card, missing_of)


def origin_of(folder: Path) -> Origin:
    """Tell how the encoder in a folder came to be."""
    if (folder / CONVERSION_FILE).exists():
        return CONVERTED
    return OF_SENTENCES if is_sent2vec(folder) else TRAINED


def stated_license(folder: str | Path) -> License | None:
    """Licence that the record of an encoder states; None where none does.

    Raises:
        InputError: The record is damaged.
    """
    folder = Path(folder).expanduser()
    return ConversionRecord.read(folder).license if origin_of(folder) is CONVERTED else None
