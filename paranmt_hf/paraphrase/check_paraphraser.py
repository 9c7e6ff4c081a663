"""What is checked of a paraphraser before it is published: that folder, record and what goes are one model."""

from __future__ import annotations

import inspect
import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paranmt_hf.errors import InputError
from paranmt_hf.hub.publish import files_of
from paranmt_hf.hub.repository import Model, locate
from paranmt_hf.hub.upload import Content, Parcel, stage
from paranmt_hf.training.record import TRAINING_FILE
from paranmt_hf.util.records import from_json, read_json

if TYPE_CHECKING:
    from paranmt_hf.paraphrase.loading import EncoderDecoder
    from paranmt_hf.paraphrase.record import ParaphraserRecord

CODE_FILE = "modeling_paranmt_lstm.py"
# Files of encoder-decoders of transformers and of their tokenizers.
OF_MODELS = (
    r"config\.json|generation_config\.json|model(-\d+-of-\d+)?\.safetensors|model\.safetensors\.index\.json|"
    r"(tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab)\.json|merges\.txt|"
    r"(spiece|source|target|sentencepiece(\.bpe)?)\.(model|spm)"
)
OF_PARAPHRASERS = re.compile(f"{OF_MODELS}|{re.escape(TRAINING_FILE)}")
# Sentences whose paraphrases tell whether a folder and what goes of it are one model.
PROBE = ["a man is playing a guitar .", "it is 3.5 km to the town ."]


def is_paraphraser(folder: Path) -> bool:
    """Tell whether a folder says that `paranmt train-paraphraser` made it."""
    return kind_of(folder) == "paraphraser"


def kind_of(folder: Path) -> Any:  # noqa: ANN401 - whatever stands there
    """What the record in a folder says that it is about; None where none says so."""
    try:
        values = json.loads((folder / TRAINING_FILE).read_text(encoding="utf8"))
    except (OSError, ValueError, RecursionError):
        return None
    return values.get("kind") if isinstance(values, dict) else None


def belongs_to_a_paraphraser(path: str) -> bool:
    """Tell whether a file of a repository is one of those that a published paraphraser may consist of."""
    return path == CODE_FILE or bool(OF_PARAPHRASERS.fullmatch(path))


def paraphraser_files(folder: Path, own: bool) -> dict[str, Content]:
    """Collect the files of a paraphraser that go.

    Args:
        folder: The paraphraser.
        own: Whether it needs code of this package, which is that of this version and not what lies in the folder.
    """
    from paranmt_hf.paraphrase import modeling_paranmt_lstm

    files: dict[str, Content] = {path: folder / path for path in files_of(folder) if OF_PARAPHRASERS.fullmatch(path)}
    if own:
        files[CODE_FILE] = inspect.getsource(modeling_paranmt_lstm).encode()
    return files


def load_checked(folder: Path, record: ParaphraserRecord) -> EncoderDecoder:
    """Load a paraphraser, and compare it with its record.

    Raises:
        InputError: It cannot be loaded, is another model than its record says, holds weights that are no numbers, or
            names code that is not this package's.
    """
    from paranmt_hf.paraphrase.loading import read_model

    own = read_model(locate(folder))
    refuse_other_figures(
        folder,
        record,
        {
            "model_type": own.model.config.model_type,
            "parameters": sum(weight.numel() for weight in own.model.parameters()),
            "pieces": len(own.tokenizer),
        },
    )
    refuse_other_weights(folder, own.model)
    refuse_other_code(folder, [CODE_FILE])
    return own


def refuse_other_figures(folder: Path, record: Any, found: Mapping[str, Any]) -> None:  # noqa: ANN401 - of either kind
    """Refuse a model of other figures than those that stand under the same names in its record."""
    for name, value in found.items():
        if value != (said := getattr(record, name)):
            raise InputError(
                f"{folder} holds a model with the {name} {value}, its {TRAINING_FILE} says {said}; they do not belong "
                "together"
            )


def refuse_other_weights(folder: Path, model: Any) -> None:  # noqa: ANN401 - a model of transformers
    """Refuse a model with weights that are no numbers."""
    if not all(bool(weight.isfinite().all()) for weight in model.parameters()):
        raise InputError(f"{folder} holds weights that are no numbers; train it again")


@dataclass(frozen=True)
class _Coded:
    auto_map: dict[str, Any] | None = None


def refuse_other_code(folder: Path, own: Sequence[str]) -> None:
    """Refuse configurations that name code, which `trust_remote_code=True` would run, in other files than `own`."""
    modules = tuple(f"{name.removesuffix('.py')}." for name in own)
    for name in ("config.json", "tokenizer_config.json", "generation_config.json"):
        path = folder / name
        if not path.is_file():
            continue
        named = from_json(_Coded, read_json(path, "settings of a model"), path).auto_map or {}
        for code in named.values():
            if not str(code).startswith(modules):
                raise InputError(
                    f"{path} names the code {code!r}, which is not this package's and is not published; remove it"
                )


def check_whole_paraphraser(parcel: Parcel, own: EncoderDecoder, folder: Path) -> None:
    """Load what goes as a reader would, and compare its paraphrases with those of the folder.

    Raises:
        InputError: They differ.
    """
    from paranmt_hf.paraphrase.config import ParaphraseConfig
    from paranmt_hf.paraphrase.loading import read_model
    from paranmt_hf.paraphrase.search import search

    config = ParaphraseConfig(beams=2, n=2, max_length=20)
    with tempfile.TemporaryDirectory() as staged:
        stage(parcel, Path(staged))
        sent = read_model(Model(folder.name, Path(staged), ""))
        found = [search(model, model.cut(PROBE), config) for model in (own, sent)]
    if found[0] != found[1]:
        raise InputError(f"{folder} gives other paraphrases than its published files would; train or copy it again")
