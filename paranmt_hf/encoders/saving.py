"""Save encoders: stock modules as they are, ours with their code beside the weights."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sentence_transformers import SentenceTransformer
from torch import nn

from paranmt_hf.encoders import modules, ngrams
from paranmt_hf.encoders.contents import MODULES, PREFIX
from paranmt_hf.encoders.modules.average import AverageEmbedding
from paranmt_hf.encoders.modules.lstm import directions_behind
from paranmt_hf.encoders.modules.recurrent import Recurrence
from paranmt_hf.encoders.modules.word import WordEmbedding
from paranmt_hf.text import definitions
from paranmt_hf.util.files import share_weights

# Our modules, whose code lies beside the weights, and the classes that a model may name.
CODE = {
    info.name: importlib.import_module(f"{MODULES}.{info.name}") for info in pkgutil.iter_modules(modules.__path__)
}
CLASSES: dict[str, type] = {
    f"{name}.{kind.__name__}": kind
    for name, module in CODE.items()
    for kind in vars(module).values()
    if isinstance(kind, type) and kind.__module__ == module.__name__ and kind not in (AverageEmbedding, Recurrence)
}


def save(model: SentenceTransformer, folder: Path | str) -> None:
    """Write an encoder so that it loads everywhere: stock modules as they are, ours with their code beside them.

    Args:
        model: The encoder.
        folder: Where to; created if missing.
    """
    device = model.device
    try:
        model.to("cpu")
        with saved_modules(model):
            SentenceTransformer.save(model, str(folder), create_model_card=False, safe_serialization=True)
    finally:
        model.to(device)
    add_code(Path(folder))


@contextmanager
def saved_modules(model: SentenceTransformer) -> Iterator[None]:
    """Put stock modules in the place of ours while a model is written; rows of 8 bits have no stock module."""
    own = dict(model._modules)
    stock = [
        module.stock() if isinstance(module, WordEmbedding) and module.precision != "int8" else module
        for module in directions_behind(list(model))
    ]
    _replace(model, {str(index): module for index, module in enumerate(stock)})
    try:
        yield
    finally:
        _replace(model, own)


def _replace(model: SentenceTransformer, modules: Mapping[str, nn.Module | None]) -> None:
    model._modules.clear()
    model._modules.update(modules)


def add_code(folder: Path) -> None:
    """Make a saved encoder name our modules by the files beside its weights, and write these."""
    share_weights(folder)
    entries = json.loads((folder / "modules.json").read_text(encoding="utf8"))
    own = [entry for entry in entries if entry["type"].startswith("paranmt_hf.")]
    for entry in own:
        entry["type"] = PREFIX + entry["type"].removeprefix(f"{MODULES}.")
    (folder / "modules.json").write_text(json.dumps(entries, indent=2), encoding="utf8")
    if own:
        _write_code(folder)


def _write_code(folder: Path) -> None:
    """Put our modules' code beside the weights."""
    for name, code in code_files().items():
        (folder / name).write_text(code, encoding="utf8")


def code_files() -> dict[str, str]:
    """Name and content of the files that hold our modules' code beside weights, imports turned into relative ones."""
    files = {}
    for name, module in {**CODE, "definitions": definitions, "ngrams": ngrams}.items():
        source = Path(str(module.__file__)).read_text(encoding="utf8")
        relative = re.sub(
            r"from paranmt_hf\.(?:text\.)?(?:encoders\.)?(?:modules\.)?(\w+) import",
            rf"from .{PREFIX}\1 import",
            source,
        )
        files[f"{PREFIX}{name}.py"] = relative
    return files
