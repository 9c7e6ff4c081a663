"""Load encoders without a flag and without running code of the model's."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import torch
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

from paranmt_hf.encoders.composition import composition_of
from paranmt_hf.encoders.damage import damage, fault
from paranmt_hf.encoders.families import FILES
from paranmt_hf.encoders.modules.lstm import directions_before
from paranmt_hf.encoders.modules.word import WordEmbedding
from paranmt_hf.encoders.saving import CLASSES, MODULES, PREFIX, SETTINGS
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.encoders.vocabulary import UNKNOWN
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import EMBEDDED, Model, locate, readable


def load(
    name: str | Path | Model | None = EMBEDDED,
    *,
    revision: str | None = None,
    device: str | None = None,
    dtype: torch.dtype = torch.float32,
) -> SentenceEncoder:
    """Load any of our encoders, or another model of stock sentence-transformers modules.

    No code from the model runs: a module class outside `sentence_transformers` and this package is refused.

    Args:
        name: Folder, Hub id, or what `locate` found; `embedded`, or None, is the small encoder that the package
            carries.
        revision: Branch, tag or commit on the Hub.
        device: Torch device; the best one at hand if left out, the CPU for averaging encoders.
        dtype: torch.float16 reads the rows of averaging encoders in half precision, which is faster.

    Raises:
        InputError: There is no such model, or it would need code or pickles from outside.
    """
    if dtype not in (torch.float32, torch.float16):
        raise InputError(f"dtype must be torch.float32 or torch.float16, was {dtype}")
    model = locate(EMBEDDED if name is None else name, revision)
    entries = _module_list(model.folder, model.name)
    with readable(model) as folder:
        chain = [_load_module(model, folder, entry) for entry in entries]
    try:
        own = directions_before([own_module(chain[0]), *chain[1:]])
    except ValueError as error:
        raise _unreadable(model, entries[0], error) from error
    composition = composition_of(own)
    settings = _settings(model.folder, model.name)
    if device is None and composition is not None and composition.is_bag:
        device = "cpu"
    try:
        # Stock modules stay where they do not make one of our encoders.
        encoder = SentenceEncoder(modules=own if composition else chain, device=device, **settings)
    except (ValueError, TypeError) as error:
        reason = str(error).strip().split("\n")[0]
        raise InputError(
            f"{model.name}: its modules or settings (modules.json, config_sentence_transformers.json) do not fit "
            f"together: {reason}"
        ) from error
    encoder.fast_dtype, encoder.source = dtype, model
    return encoder.eval()


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


def _settings(folder: Path, name: str) -> dict[str, Any]:
    path = folder / "config_sentence_transformers.json"
    if not path.is_file():
        return {}
    if (reason := damage(path)) is not None:
        raise InputError(f"{name}: {path} is damaged ({reason}); put a whole copy of the model in its place")
    settings = json.loads(path.read_text(encoding="utf8"))
    truncate = settings.get("truncate_dim")
    if truncate is not None and not (isinstance(truncate, int) and truncate > 0):
        raise InputError(f"{name}: truncate_dim in {path} must be a whole number above 0, was {truncate!r}")
    return {name: settings[name] for name in SETTINGS if name in settings}


def _module_list(folder: Path, name: str) -> list[dict[str, str]]:
    """Read `modules.json`."""
    try:
        entries = json.loads((folder / "modules.json").read_text(encoding="utf8"))
        listed = [{key: str(entry[key]) for key in ("name", "path", "type")} for entry in entries]
    except (OSError, ValueError, TypeError, KeyError):
        listed = []
    if not listed:
        raise InputError(
            f"{name} is no sentence encoder: expected a readable modules.json, as a SentenceTransformer saves it"
        )
    for entry in listed:
        if entry["path"] not in ("", ".") and not re.fullmatch(r"[\w-]+", entry["path"]):
            raise InputError(f"{name}: modules.json names the path {entry['path']!r}, which is no plain folder name")
    return listed


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
