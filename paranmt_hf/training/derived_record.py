"""The record of an encoder that was made from others: what training wrote down of one of them, and how it was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import Model
from paranmt_hf.training.record import TRAINING_FILE
from paranmt_hf.util.files import shown_path
from paranmt_hf.util.records import Identity, read_json
from paranmt_hf.util.work import finished

if TYPE_CHECKING:
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder


@dataclass(frozen=True)
class DerivedEncoder:
    """An encoder that was made from others.

    Attributes:
        folder: Its folder.
        description: What it is.
        fresh: Whether this call made it; otherwise it was there already.
    """

    folder: Path
    description: str
    fresh: bool

    def load(self) -> SentenceEncoder:
        """Load the encoder."""
        from paranmt_hf.encoders.loading import load

        return load(self.folder, device="cpu")

    def summary(self) -> str:
        """What it is, and how to load it."""
        folder = shown_path(self.folder)
        return f"{folder}: {self.description}\nload it: paranmt_hf.load({folder!r})"


def training_values(model: Model) -> dict[str, Any]:
    """Read what training wrote down of a model, as it stands there; nothing where there is none.

    Raises:
        InputError: It is damaged.
    """
    file = model.folder / TRAINING_FILE
    values = read_json(file, "what training wrote down of a model") if file.is_file() else {}
    if not isinstance(values, dict):
        raise InputError(f"{file} is damaged: expected an object; copy or train the model again")
    return values


def basis_of(values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON values
    """Read which rotation a model's dimensions have: its own, or that of what it was trained from; None for none."""
    return values.get("rotated") or values.get("basis")


def is_made(out: Path, identity: Identity, made: str) -> bool:
    """Tell whether the encoder in a folder was made in this very way.

    Args:
        out: The folder; it may not be there.
        identity: How it is made, under `mean_of` or `rotated`.
        made: What a message calls that, such as `averaged`.

    Raises:
        InputError: Something else is in the folder.
    """
    (key,) = identity
    return finished(out, identity, partial(_read_derived, key=key), lambda record: record, made=made) is not None


def _read_derived(folder: Path, key: str) -> dict[str, Any]:
    """Read how the encoder in a folder was made, from under that key of its record."""
    refusal = InputError(f"{folder} is there already; choose another --out or move it away")
    if not (folder / TRAINING_FILE).is_file():
        raise refusal
    record = read_json(folder / TRAINING_FILE, "the record of an encoder made from others")
    if not isinstance(record, dict) or key not in record:
        raise refusal
    return {key: record[key]}
