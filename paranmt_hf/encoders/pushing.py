"""`push_to_hub` of encoders: publishes the folder that an encoder came from, or a new one with what is known."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Unpack

from paranmt_hf.errors import InputError
from paranmt_hf.hub.push import PushOptions, is_copy, push_folder
from paranmt_hf.util.records import Record, made_with

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from paranmt_hf.hub.repository import Model

LOADER = "paranmt_hf.load"


@dataclass(frozen=True)
class Origin:
    """The encoder that another one was made from: its name, and the commit or checksum of its files."""

    name: str
    revision: str


@dataclass(frozen=True)
class MadeSettings:
    """The record of how an encoder was made, as far as it is known."""

    origin: Origin | None = None  # The encoder that `load` read; None if it was not loaded


@dataclass(frozen=True, kw_only=True)
class MadeRecord(Record):
    """The content of the `made.json` of an encoder that was made or changed in Python."""

    FILE: ClassVar[str] = "made.json"
    KIND: ClassVar[str] = "an encoder made in Python"

    settings: MadeSettings
    families: list[str]  # Names of the families of its parts
    mode: str  # How they are combined: `add` or `concatenate`
    cut: list[str]  # The ways in which its parts split text: `words` or `blanks`
    dimension: int  # Dimension of a sentence vector
    parameters: int  # Number of weights


def push_encoder(
    encoder: SentenceTransformer, source: Model | None, repo_id: str, **options: Unpack[PushOptions]
) -> str:
    """Publish an encoder of this package from memory.

    Args:
        encoder: The encoder.
        source: The model that it was loaded from; None if it was not loaded.
        repo_id: Where to: ORGANISATION/NAME or USER/NAME.
        options: Those of `PushOptions`.

    Returns:
        The address of the commit on the Hub.
    """
    # Imported here, because the command line imports this module for its record, without torch.
    from paranmt_hf.encoders.saving import save

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / Path(repo_id).name
        save(encoder, folder)
        if source is not None and is_copy(folder, source.folder, LOADER):
            return push_folder(source.folder, repo_id, **options)
        _record(encoder, source).write(folder)
        try:
            return push_folder(folder, repo_id, **options)
        except InputError as error:
            if str(folder) not in str(error):
                raise
            reason = str(error).replace(str(folder), "FOLDER")
            raise InputError(
                f"this encoder was made or changed in Python, so save it into a FOLDER first: {reason}",
                option=error.option,
            ) from error


def _record(encoder: SentenceTransformer, source: Model | None) -> MadeRecord:
    """Describe an encoder in memory, and the model that it was loaded from."""
    from paranmt_hf.encoders.composition import take_apart

    composition = take_apart(encoder)
    return MadeRecord(
        settings=MadeSettings(None if source is None else Origin(source.name, source.revision)),
        families=[part.family.name for part in composition.parts],
        mode=composition.mode,
        cut=sorted({part.cut for part in composition.parts}),
        dimension=encoder.get_embedding_dimension(),
        parameters=sum(weight.numel() for weight in encoder.parameters()),
        **made_with("torch", "sentence-transformers"),
    )
