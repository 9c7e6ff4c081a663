"""Save encoders: stock modules unchanged, ours with their code."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sentence_transformers import SentenceTransformer
from torch import nn

from paranmt_hf.encoders.model_folder import MODULES, write_code
from paranmt_hf.encoders.modules.paranmt_averages import AverageEmbedding, NgramEmbedding, WordEmbedding
from paranmt_hf.encoders.modules.paranmt_combination import OWN, Combination
from paranmt_hf.encoders.modules.paranmt_tables import LARGEST
from paranmt_hf.encoders.sequences import directions_behind
from paranmt_hf.util.files import share_weights

# The classes that a model may name, as `file.Class`.
CLASSES: dict[str, type] = {
    f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}": kind
    for kind in (*OWN.values(), NgramEmbedding, Combination)
}


def save(model: SentenceTransformer, folder: Path | str) -> None:
    """Write an encoder into a folder so that it loads everywhere."""
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
    """Replace our modules by stock ones while a model is saved; rows of integers have no stock module."""
    own = dict(model._modules)
    for module in model.modules():
        if isinstance(module, AverageEmbedding):
            module.keep_rows()
    stock = [
        module.stock() if isinstance(module, WordEmbedding) and module.precision not in LARGEST else module
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
    """Write the code of our modules next to the weights of a saved encoder, and refer to it in `modules.json`."""
    share_weights(folder)
    path = folder / "modules.json"
    entries = json.loads(path.read_text(encoding="utf8"))
    own = [entry for entry in entries if entry["type"].startswith(f"{MODULES}.")]
    for entry in own:
        entry["type"] = entry["type"].removeprefix(f"{MODULES}.")
    path.write_text(json.dumps(entries, indent=2), encoding="utf8", newline="\n")
    if own:
        write_code(folder)
