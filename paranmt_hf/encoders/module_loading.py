"""From the folder of an encoder to its modules."""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence

import torch
from sentence_transformers.sentence_transformer.modules import LSTM, StaticEmbedding, WordEmbeddings
from sentence_transformers.sentence_transformer.modules.word_embeddings import TransformersTokenizerWrapper

from paranmt_hf.encoders.composition import composition_of
from paranmt_hf.encoders.families import FILES
from paranmt_hf.encoders.model_folder import AGAIN, MODULES, check_module, model_settings, module_list
from paranmt_hf.encoders.modules.paranmt_averages import WordEmbedding
from paranmt_hf.encoders.modules.paranmt_combination import Combination
from paranmt_hf.encoders.modules.paranmt_tables import NOT_FINITE
from paranmt_hf.encoders.saving import CLASSES
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.encoders.sequences import directions_before
from paranmt_hf.encoders.stock_table import read_stock_table
from paranmt_hf.encoders.vocabulary import UNKNOWN
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import SETTINGS_FILE, Model
from paranmt_hf.text.definitions import vocabulary_of

UNSEEN = "\U00010000"  # A letter of Linear B, which no vocabulary has
VALUES_AT_ONCE = 2**22  # Weights that are checked at once


def load_modules(model: Model, device: str | None = None) -> SentenceEncoder:
    """Load an encoder of any kind; arguments as in `load`."""
    entries, settings = module_list(model.folder, model.name), model_settings(model.folder, model.name)
    kinds = [_resolve(entry["type"], model.name) for entry in entries]
    try:
        for entry, kind in zip(entries, kinds, strict=True):
            check_module(model.folder / entry["path"], kind.__name__)
    except ValueError as error:
        raise InputError(f"{model.name}: {error}; {AGAIN}") from error
    chain = [_load_module(model, entry, kind) for entry, kind in zip(entries, kinds, strict=True)]
    try:
        own = directions_before([own_module(chain[0]), *chain[1:]])
    except ValueError as error:
        raise _unreadable(model, entries[0], kinds[0], error) from error
    composition = composition_of(own)
    if device is None and composition is not None and composition.is_bag:
        device = "cpu"
    for module in chain:
        if isinstance(module, StaticEmbedding):
            # In float16 a text without tokens would be no number once it is normalised.
            module.float()
    try:
        # Stock modules stay if they do not make one of our encoders.
        encoder = SentenceEncoder(modules=own if composition else chain, device=device, **settings)
    except (ValueError, TypeError) as error:
        reason = _first_line(error)
        raise InputError(
            f"{model.name}: its modules or settings (modules.json, {SETTINGS_FILE}) do not fit together: {reason}"
        ) from error
    encoder.source = model
    encoder.loaded_weights, encoder.loaded_settings = encoder.tensors_checksum(), encoder.settings
    encoder.eval()
    if kinds[0].__name__ in FILES:
        _check_encodes(encoder, model)
    return encoder


def own_module(module: torch.nn.Module) -> torch.nn.Module:
    """Convert the stock module of WORD to ours; other modules are returned unchanged."""
    if isinstance(module, StaticEmbedding):
        own = WordEmbedding.from_stock(module)
        if own is not None and own.units[0] == UNKNOWN:
            return own
    return module


def _resolve(reference: str, name: str) -> type:
    """Find a module's class by its name in `modules.json`, without running code of the model."""
    if (own := CLASSES.get(reference.removeprefix(f"{MODULES}."))) is not None:
        return own
    if re.fullmatch(r"sentence_transformers(\.\w+)+", reference):
        path, _, kind_name = reference.rpartition(".")
        try:
            found = getattr(importlib.import_module(path), kind_name, None)
        except ImportError:
            found = None
        if isinstance(found, type) and issubclass(found, torch.nn.Module):
            return found
        raise InputError(f"{name}: this version of sentence-transformers has no module {reference}; upgrade it")
    raise InputError(
        f"{name} needs the module {reference}, which is code of the model and does not run; load it with "
        "SentenceTransformer(..., trust_remote_code=True) if you trust it"
    )


def _load_module(model: Model, entry: dict[str, str], kind: type) -> torch.nn.Module:
    """Load a module of a checked folder; no code of the model runs, and nothing is downloaded."""
    try:
        module: torch.nn.Module
        if kind is StaticEmbedding:
            module = read_stock_table(model.folder / entry["path"])
        else:
            module = kind.load(  # type: ignore[attr-defined]
                str(model.folder),
                subfolder=entry["path"],
                local_files_only=True,
                trust_remote_code=False,
                # A configuration may ask for pickles.
                model_kwargs={"use_safetensors": True},
            )
    except Exception as error:  # the tokenizers' errors have no class of their own
        raise _unreadable(model, entry, kind, error) from error
    for name, weight in module.named_parameters():
        # In parts, which bounds the memory of the comparison.
        if not all(bool(part.isfinite().all()) for part in weight.detach().flatten().split(VALUES_AT_ONCE)):
            path = model.folder / entry["path"] / "model.safetensors"
            raise InputError(f"{model.name}: {NOT_FINITE.format(path=path, name=name)}")
    return module


def _unreadable(model: Model, entry: dict[str, str], kind: type, error: Exception) -> InputError:
    """Name the files of a module that cannot be built from them, although each is intact."""
    files = " and ".join(FILES.get(kind.__name__, ())) or "the files"
    return InputError(
        f"{model.name}: cannot read its module {entry['type']} from {files} in {model.folder / entry['path']}: "
        f"{_first_line(error)}"
    )


def _check_encodes(encoder: SentenceEncoder, model: Model) -> None:
    """Encode known words and an unknown one, because intact files may belong to several models."""
    words, first = [UNSEEN], encoder[0]
    parts = [list(part) for part in first.parts] if isinstance(first, Combination) else [list(encoder)]  # type: ignore[call-overload]
    try:
        for part in parts:
            words += _check_words(part)
        encoder.encode(words, show_progress_bar=False)
    except Exception as error:  # the tokenizers' errors have no class of their own
        raise InputError(
            f"{model.name}: its files do not belong together, it cannot encode a sentence: {_first_line(error)}; "
            f"{AGAIN}"
        ) from error


def _check_words(chain: Sequence[torch.nn.Module]) -> list[str]:
    """Compare a table of words with its tokenizer and the LSTM, which torch does not, and return its last word."""
    table = chain[0]
    if not isinstance(table, WordEmbeddings) or not isinstance(table.tokenizer, TransformersTokenizerWrapper):
        return []
    tokenizer, (rows, width) = table.tokenizer.tokenizer, table.emb_layer.weight.shape
    # A tokenizer of this package has a word for each row; others may leave rows free.
    if len(tokenizer) > rows or (len(tokenizer) < rows and vocabulary_of(tokenizer._tokenizer) is not None):
        raise ValueError(f"tokenizer.json has {len(tokenizer):,} words for {rows:,} rows of weights")
    if len(chain) > 1 and isinstance(chain[1], LSTM) and chain[1].encoder.input_size != width:
        raise ValueError(f"the LSTM reads {chain[1].encoder.input_size} dimensions, and words have {width}")
    return [str(tokenizer.convert_ids_to_tokens(len(tokenizer) - 1))]


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
