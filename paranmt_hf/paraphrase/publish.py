"""What is checked of a paraphraser before it is published: folder, record and published files must be one model."""

from __future__ import annotations

import inspect
import re
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paranmt_hf.errors import InputError
from paranmt_hf.hub.check_folder import files_of
from paranmt_hf.hub.repository import Model, locate
from paranmt_hf.hub.upload import Content, Parcel, stage
from paranmt_hf.paraphrase.record import ParaphraserRecord
from paranmt_hf.paraphrase.templates import CONTROLLED_TYPE, TEMPLATES_FILE
from paranmt_hf.util.records import from_json, read_json

if TYPE_CHECKING:
    from paranmt_hf.paraphrase.loading import ControlledNetwork, EncoderDecoder

LSTM_TYPE, LSTM_CODE, CONTROLLED_CODE = "paranmt-lstm", "modeling_paranmt_lstm.py", "modeling_paranmt_controlled.py"
# Files of code by `model_type`.
CODE = {LSTM_TYPE: (LSTM_CODE,), CONTROLLED_TYPE: (CONTROLLED_CODE, LSTM_CODE)}
# The folder of the parse generator, as `loading.py` has it, which needs torch.
INNER = "parse-generator/"
CODE_PATHS = tuple(f"{place}{name}" for place in ("", INNER) for name in CODE[CONTROLLED_TYPE])
# Files of encoder-decoders of transformers and of their tokenizers.
_OF_MODELS = (
    r"config\.json|generation_config\.json|model(-\d+-of-\d+)?\.safetensors|model\.safetensors\.index\.json|"
    r"(tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab)\.json|merges\.txt|"
    r"(spiece|source|target|sentencepiece(\.bpe)?)\.(model|spm)"
)
_FILES = re.compile(
    rf"({re.escape(INNER)})?({_OF_MODELS})|{re.escape(TEMPLATES_FILE)}|{re.escape(ParaphraserRecord.FILE)}"
)
# Sentences whose paraphrases show whether a folder and its published files are one model; trees of them, roughly.
_SENTENCES = ["a man is playing a guitar .", "it is 3.5 km to the town ."]
_TREES = ["(S(NP)(VP))", "(S(NP)(VP(NP)))"]


def is_paraphraser(folder: Path) -> bool:
    """Tell whether `paranmt paraphrase train` made a folder."""
    return (folder / ParaphraserRecord.FILE).is_file()


def belongs_to_a_paraphraser(path: str) -> bool:
    """Tell whether a file of a repository can be one of a published paraphraser."""
    return path in CODE_PATHS or bool(_FILES.fullmatch(path))


def paraphraser_files(folder: Path, record: ParaphraserRecord) -> dict[str, Content]:
    """Collect the files that are published; code is that of this version of the package, not that in the folder."""
    files: dict[str, Content] = {path: folder / path for path in files_of(folder) if _FILES.fullmatch(path)}
    for place in ("", INNER) if record.parses else ("",):
        for name in CODE.get(record.model_type, ()):
            files[f"{place}{name}"] = _source(name)
    return files


def _source(name: str) -> bytes:
    from paranmt_hf.paraphrase import modeling_paranmt_controlled, modeling_paranmt_lstm

    module = modeling_paranmt_controlled if name == CONTROLLED_CODE else modeling_paranmt_lstm
    return inspect.getsource(module).encode()


def load_checked(folder: Path, record: ParaphraserRecord) -> EncoderDecoder | ControlledNetwork:
    """Load a paraphraser, and refuse one that differs from its record, is not finite, or names other code."""
    model = _read(locate(folder), controlled=record.parses is not None)
    *parses, main = _models(model)
    found: dict[str, Any] = {
        "model_type": main.model.config.model_type,
        "parameters": model.parameters,
        "pieces": len(main.tokenizer),
    }
    wanted = {name: getattr(record, name) for name in found}
    if record.parses is not None:
        found |= {"tree_tokens": len(parses[0].tokenizer), "templates": len(model.templates)}  # type: ignore[union-attr]
        wanted |= {"tree_tokens": record.parses.tree_tokens, "templates": record.parses.templates}
    for name, value in found.items():
        if value != wanted[name]:
            raise InputError(
                f"{folder} holds a model with the {name} {value}, its {record.FILE} says {wanted[name]}; they do not "
                "belong together"
            )
    if not all(bool(weight.isfinite().all()) for own in _models(model) for weight in own.model.parameters()):
        raise InputError(f"{folder} holds weights that are not finite; train it again")
    for place in (folder, folder / INNER) if record.parses else (folder,):
        _refuse_other_code(place, CODE[CONTROLLED_TYPE])
    return model


def _read(files: Model, *, controlled: bool) -> EncoderDecoder | ControlledNetwork:
    from paranmt_hf.paraphrase.loading import read_model, read_network

    return read_network(files) if controlled else read_model(files)


def _models(model: EncoderDecoder | ControlledNetwork) -> list[EncoderDecoder]:
    from paranmt_hf.paraphrase.loading import ControlledNetwork

    return [model.parses, model.paraphrases] if isinstance(model, ControlledNetwork) else [model]


@dataclass(frozen=True)
class _Coded:
    auto_map: dict[str, Any] | None = None


def _refuse_other_code(folder: Path, known: Collection[str]) -> None:
    """Refuse configurations that name code of others, which `trust_remote_code=True` would run."""
    modules = tuple(f"{name.removesuffix('.py')}." for name in known)
    for name in ("config.json", "tokenizer_config.json", "generation_config.json"):
        path = folder / name
        if not path.is_file():
            continue
        named = from_json(_Coded, read_json(path, "settings of a model"), path).auto_map or {}
        for code in named.values():
            if not str(code).startswith(modules):
                raise InputError(
                    f"{path} names the code {code!r}, which is not of this package and is not published; remove it",
                    path=path,
                )


def check_published(parcel: Parcel, model: EncoderDecoder | ControlledNetwork, folder: Path) -> None:
    """Load the published files as a reader would, and compare what they generate with what the folder generates."""
    controlled = len(_models(model)) > 1
    with tempfile.TemporaryDirectory() as staged:
        stage(parcel, Path(staged))
        sent = _read(Model(folder.name, Path(staged), ""), controlled=controlled)
        same = _generated(model) == _generated(sent)
    if not same:
        raise InputError(f"{folder} gives other paraphrases than its published files would; train or copy it again")


def _generated(model: EncoderDecoder | ControlledNetwork) -> object:
    from paranmt_hf.paraphrase.config import ParaphraseConfig
    from paranmt_hf.paraphrase.loading import ControlledNetwork

    config = ParaphraseConfig(beams=2, n=2, max_length=20)
    if not isinstance(model, ControlledNetwork):
        return model.search(model.cut(_SENTENCES), config)
    parses, paraphrases = model.parses, model.paraphrases
    templates = model.templates.most_frequent(len(_SENTENCES))
    asked = parses.cut_controls((templates * len(_SENTENCES))[: len(_SENTENCES)])
    trees = parses.search(parses.cut(_TREES), config, asked)
    controls = [[*candidates[0], parses.ends[0]] for candidates in trees]
    return model.templates.counts, trees, paraphrases.search(paraphrases.cut(_SENTENCES), config, controls)
