"""Encoders as modules of torch: those of plain tables, and every other kind from its folder."""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from sentence_transformers.sentence_transformer.modules import LSTM, StaticEmbedding, WordEmbeddings
from sentence_transformers.sentence_transformer.modules.word_embeddings import TransformersTokenizerWrapper

from paranmt_hf.encoders.composition import composition_of
from paranmt_hf.encoders.contents import MODULES, PREFIX, model_settings
from paranmt_hf.encoders.damage import fault
from paranmt_hf.encoders.families import FILES
from paranmt_hf.encoders.modules.combination import Combination
from paranmt_hf.encoders.modules.lstm import directions_before
from paranmt_hf.encoders.modules.ngram import NgramEmbedding
from paranmt_hf.encoders.modules.trigram import TrigramEmbedding
from paranmt_hf.encoders.modules.word import WordEmbedding
from paranmt_hf.encoders.saving import CLASSES
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.encoders.tables import Table, Tables
from paranmt_hf.encoders.vocabulary import UNKNOWN
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import Model, readable

# A letter of Linear B.
UNSEEN = "\U00010000"


def check_dtype(dtype: torch.dtype) -> None:
    """Refuse a precision in which no rows are read.

    Raises:
        InputError: It is neither torch.float32 nor torch.float16.
    """
    if dtype not in (torch.float32, torch.float16):
        raise InputError(f"dtype must be torch.float32 or torch.float16, was {dtype}")


def encoder_of(
    tables: Tables, source: Model, *, device: str | None = None, dtype: torch.dtype | None = None
) -> SentenceEncoder:
    """Make the encoder of plain tables, which shares their memory.

    Args:
        tables: Its rows.
        source: Where they were found.
        device: Torch device; the CPU if left out.
        dtype: Precision in which the fast path reads rows; torch.float32 if left out.
    """
    parts = [_average(part) for part in tables.parts]
    modules = parts if tables.mode is None else [Combination([[part] for part in parts], tables.mode)]
    return _encoder(modules, tables.settings, source, device or "cpu", dtype)


def _average(table: Table) -> torch.nn.Module:
    units, ngrams = table.vocabulary.units, table.vocabulary.ngrams
    if ngrams is None:
        kind = WordEmbedding if table.vocabulary.kind == "word" else TrigramEmbedding
        return kind(units, table.rows, table.precision)
    return NgramEmbedding(
        units,
        table.rows,
        table.precision,
        order=ngrams.order,
        buckets=ngrams.buckets,
        hashes=ngrams.hashes,
        cut=table.cut,
    )


def load_modules(
    model: Model, entries: list[dict[str, str]], *, device: str | None, dtype: torch.dtype | None
) -> SentenceEncoder:
    """Load an encoder of any kind.

    Args:
        model: Where it is.
        entries: Its modules, as `module_list` reads them.
        device: Torch device; the best one at hand if left out, the CPU for averaging encoders.
        dtype: Precision in which the fast path reads rows; torch.float32 if left out.

    Raises:
        InputError: It cannot be read, or would need code from outside.
    """
    with readable(model) as folder:
        chain = [_load_module(model, folder, entry) for entry in entries]
    try:
        own = directions_before([own_module(chain[0]), *chain[1:]])
    except ValueError as error:
        raise _unreadable(model, entries[0], error) from error
    composition = composition_of(own)
    settings = model_settings(model.folder, model.name)
    if device is None and composition is not None and composition.is_bag:
        device = "cpu"
    # Stock modules stay where they do not make one of our encoders.
    encoder = _encoder(own if composition else chain, settings, model, device, dtype)
    if entries[0]["type"].rpartition(".")[2] in FILES:
        _check_encodes(encoder, model)
    return encoder


def _encoder(
    modules: Sequence[torch.nn.Module],
    settings: dict[str, Any],
    model: Model,
    device: str | None,
    dtype: torch.dtype | None,
) -> SentenceEncoder:
    try:
        encoder = SentenceEncoder(modules=modules, device=device, **settings)
    except (ValueError, TypeError) as error:
        reason = str(error).strip().split("\n")[0]
        raise InputError(
            f"{model.name}: its modules or settings (modules.json, config_sentence_transformers.json) do not fit "
            f"together: {reason}"
        ) from error
    encoder.fast_dtype, encoder.source = dtype or torch.float32, model
    return encoder.eval()


def _check_encodes(encoder: SentenceEncoder, model: Model) -> None:
    """Encode words that are known and one that is not: files that are whole may be those of several models.

    Raises:
        InputError: Its modules do not fit together.
    """
    words, first = [UNSEEN], encoder[0]
    parts: list[Any] = list(first.parts) if isinstance(first, Combination) else [encoder]
    try:
        for part in parts:
            words += _check_words(list(part))
        encoder.encode(words, show_progress_bar=False)
        encoder.forget_fast_path()
    except Exception as error:  # the tokenizers' errors have no class of their own
        reason = str(error).strip().split("\n")[0]
        raise InputError(
            f"{model.name}: its files do not belong together, it cannot encode a sentence: {reason}; put a whole copy "
            "of the model in its place"
        ) from error


def _check_words(chain: Sequence[torch.nn.Module]) -> list[str]:
    """Compare a table of words with what is before and after it, and give its last word.

    Raises:
        ValueError: It has fewer rows than there are words, or another width than the LSTM: torch does not notice.
    """
    table = chain[0]
    if not isinstance(table, WordEmbeddings) or not isinstance(table.tokenizer, TransformersTokenizerWrapper):
        return []
    tokenizer, (rows, width) = table.tokenizer.tokenizer, table.emb_layer.weight.shape
    if len(tokenizer) > rows:
        raise ValueError(f"tokenizer.json has {len(tokenizer):,} words for {rows:,} rows of weights")
    if len(chain) > 1 and isinstance(chain[1], LSTM) and chain[1].encoder.input_size != width:
        raise ValueError(f"the LSTM reads {chain[1].encoder.input_size} dimensions, and words have {width}")
    return [str(tokenizer.convert_ids_to_tokens(len(tokenizer) - 1))]


def _load_module(model: Model, folder: Path, entry: dict[str, str]) -> torch.nn.Module:
    """Load a module of a model from its readable files; no code of the model's runs, and nothing is fetched."""
    kind = _resolve(entry["type"], model.name)
    try:
        return kind.load(  # type: ignore[attr-defined]
            str(folder),
            subfolder=entry["path"],
            local_files_only=True,
            trust_remote_code=False,
            # A configuration may ask for others.
            model_kwargs={"use_safetensors": True},
        )
    except Exception as error:
        reason = ValueError(str(error).replace(str(folder), str(model.folder)))
        raise _unreadable(model, entry, reason) from error


def own_module(module: torch.nn.Module) -> torch.nn.Module:
    """Make WORD of the stock module that it is saved as; leave any other module as it is."""
    if isinstance(module, StaticEmbedding):
        own = WordEmbedding.from_stock(module)
        if own is not None and own.units[0] == UNKNOWN:
            return own
    return module


def _unreadable(model: Model, entry: dict[str, str], error: Exception) -> InputError:
    """Say which file keeps a module from being read, or what is wrong with all of its files together."""
    folder, kind = model.folder / entry["path"], entry["type"].rpartition(".")[2]
    if (found := fault(folder, kind)) is not None:
        return InputError(f"{model.name}: {found}; put a whole copy of the model in its place")
    reason = str(error).strip().split("\n")[0]
    files = " and ".join(FILES.get(kind, ())) or "the files"
    return InputError(f"{model.name}: cannot read its module {entry['type']} from {files} in {folder}: {reason}")


def _resolve(reference: str, name: str) -> type:
    """Find a module's class by its name in `modules.json`, without running code from the model."""
    for own, kind in CLASSES.items():
        if reference in (f"{PREFIX}{own}", f"{MODULES}.{own}"):
            return kind
    if re.fullmatch(r"sentence_transformers(\.\w+)+", reference):
        path, _, kind_name = reference.rpartition(".")
        try:
            found = getattr(importlib.import_module(path), kind_name, None)
        except ImportError:
            found = None
        if isinstance(found, type) and issubclass(found, torch.nn.Module):
            return found
        raise InputError(f"{name}: this sentence-transformers has no module {reference}; upgrade it")
    raise InputError(
        f"{name} needs the module {reference}, which is code of the model's own and is not run; load it with "
        "SentenceTransformer(..., trust_remote_code=True) if you trust it"
    )
