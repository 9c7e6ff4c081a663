"""Reading of models of transformers from safetensors, without messages; errors are one sentence."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer
from transformers import logging as transformers_logging

from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import Model, without_pickles
from paranmt_hf.util.wording import counted


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence transformers in a `with` block: progress bars, reports of loading, and advice to install sacremoses.

    Marian models need no sacremoses here.
    """
    level, bars = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*sacremoses")
            yield
    finally:
        transformers_logging.set_verbosity(level)
        if bars:
            transformers_logging.enable_progress_bar()


@contextlib.contextmanager
def loadable(files: Model, failed: str) -> Iterator[Path]:
    """Give a `with` block a folder with the files of a model that loaders may read, and convert its errors.

    Args:
        files: The model.
        failed: What an error means, after the folder: `has no readable tokenizer`.
    """
    with without_pickles(files) as folder:
        try:
            with quiet():
                yield folder
        # If a folder holds no model or a damaged one, the libraries raise errors of many classes.
        except Exception as error:
            reason = " ".join(str(error).replace(str(folder), str(files.folder)).split())[:300]
            raise InputError(f"{str(files.folder)!r} {failed}: {reason}", path=files.folder) from error


def read_configuration(files: Model, expected: str) -> tuple[Any, Any]:
    """Read the configuration and the tokenizer of an encoder-decoder.

    Args:
        files: The model.
        expected: Description of the right model, the end of an error about any other.
    """
    if (files.folder / "modules.json").is_file():
        raise InputError(f"{str(files.folder)!r} holds an encoder of sentences; {expected}", path=files.folder)
    with loadable(files, f"has no readable configuration and tokenizer, {expected}") as folder:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    if not getattr(config, "is_encoder_decoder", False):
        raise InputError(
            f"{str(files.folder)!r} is a {config.model_type} model, not an encoder-decoder; {expected}",
            path=files.folder,
        )
    # Otherwise "</s>" in a sentence would become the special token.
    tokenizer.split_special_tokens = True
    return config, tokenizer


def read_encoder_decoder(files: Model, dtype: torch.dtype, what: str) -> Any:  # noqa: ANN401 - there is no common type
    """Read the model of an encoder-decoder, for inference.

    Args:
        files: The model.
        dtype: Type that the weights are converted to.
        what: What the model is, for errors: `translation model`.
    """
    with loadable(files, f"cannot be read as a {what}") as folder:
        model, report = AutoModelForSeq2SeqLM.from_pretrained(
            folder,
            dtype=dtype,
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            output_loading_info=True,
        )
    absent = sorted(report["missing_keys"])
    if absent:
        # transformers would fill missing weights with random numbers.
        raise InputError(
            f"{str(files.folder)!r} lacks {counted(len(absent), 'weight')} of the model, such as {absent[0]!r}"
        )
    broken = next((name for name, weight in model.state_dict().items() if not bool(weight.isfinite().all())), None)
    if broken is not None:
        # With infinities or NaN among its weights, a model generates empty or arbitrary text.
        raise InputError(
            f"{files.folder} holds weights that are not finite, such as {broken!r}; train the model or get it again",
            path=files.folder,
        )
    return model.eval()


def check_tokens(config: Any, name: str, path: Path, value: Any = None) -> None:  # noqa: ANN401 - transformers'
    """Reject special tokens that are not ids of the vocabulary of a model.

    Args:
        config: Configuration of the model, with the size of its vocabulary.
        name: Name of the entry, such as `eos_token_id`.
        path: File of the entry, for the error.
        value: The entry, an id or a list of ids; None for the entry of this name in `config`.
    """
    value = getattr(config, name, None) if value is None else value
    ids = value if isinstance(value, list | tuple) else [value]
    size = int(getattr(config, "decoder_vocab_size", None) or config.vocab_size)
    if not ids or not all(isinstance(each, int) and 0 <= each < size for each in ids):
        raise InputError(f"{path}: {name!r} must be a token from 0 to {size - 1:,}, was {value!r}", path=path)
