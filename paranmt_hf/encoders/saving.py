"""Save encoders: as stock modules if there are any with the same vectors, otherwise with the code of ours."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense
from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding
from torch import nn

from paranmt_hf.encoders.composition import described
from paranmt_hf.encoders.model_folder import MODULES, write_code
from paranmt_hf.encoders.modules.paranmt_averages import AverageEmbedding, NgramEmbedding, WordEmbedding
from paranmt_hf.encoders.modules.paranmt_combination import OWN, Combination
from paranmt_hf.encoders.modules.paranmt_recurrent import AverageDirections
from paranmt_hf.encoders.modules.paranmt_tables import LARGEST
from paranmt_hf.encoders.prefixes import PrefixLSTM
from paranmt_hf.encoders.vocabulary import UNKNOWN
from paranmt_hf.util.files import share_weights

# The classes of ours that a model may name, as `file.Class`.
CLASSES: dict[str, type[nn.Module]] = {
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
    """Replace the modules of a model by those that are saved, inside a `with` block."""
    for module in model.modules():
        if isinstance(module, AverageEmbedding):
            module.keep_rows()
        # How a tokenizer was loaded is no part of it: a copy has the bytes of the original.
        loaded = getattr(getattr(getattr(module, "tokenizer", None), "tokenizer", None), "init_kwargs", {})
        loaded.pop("is_local", None)
        loaded.pop("local_files_only", None)
    own = dict(model._modules)
    stock = to_stock(model)
    model._modules.clear()
    model._modules.update({str(index): module for index, module in enumerate(stock)})
    try:
        yield
    finally:
        model._modules.clear()
        model._modules.update(own)


def to_stock(modules: Iterable[nn.Module]) -> list[nn.Module]:
    """Convert the modules of an encoder to stock modules with the same vectors, as far as there are any.

    A BLSTM averages its directions and then its words. Both are means, so they may change places: a stock `Dense` of
    fixed weights averages the directions of the sentence vector. If the maximum is pooled they may not.
    """
    stock = _without_prefixes(modules)
    first = stock[0]
    if isinstance(first, Combination):
        stock[0] = Combination([_without_prefixes(part) for part in first.parts], first.mode)  # type: ignore[arg-type]
    elif isinstance(first, WordEmbedding) and first.precision not in LARGEST:
        # Rows of integers have no stock module.
        stock[0] = first.stock()
    if [described(module) for module in stock[2:]] == ["AverageDirections", "Pooling-mean"]:
        width = stock[2].get_embedding_dimension()  # type: ignore[operator]
        mean = Dense(2 * width, width, bias=False, activation_function=nn.Identity(), init_weight=_halves(width))
        stock[2:] = [Pooling(2 * width, pooling_mode="mean"), mean]
    return stock


def _without_prefixes(modules: Iterable[nn.Module]) -> list[nn.Module]:
    return [module.stock() if isinstance(module, PrefixLSTM) else module for module in modules]


def from_stock(modules: Iterable[nn.Module]) -> list[nn.Module]:
    """Undo `to_stock`; other modules are unchanged."""
    own = list(modules)
    first = own[0]
    if isinstance(first, StaticEmbedding):
        table = WordEmbedding.from_stock(first)
        if table is not None and table.units[0] == UNKNOWN:
            own[0] = table
    mean = own[3] if len(own) == 4 else None
    if isinstance(mean, Dense) and described(own[2]) == "Pooling-mean":
        width = mean.out_features
        plain = isinstance(mean.activation_function, nn.Identity) and not mean.bias and not mean.use_residual
        if plain and torch.equal(mean.linear.weight, _halves(width)):
            own[2:] = [AverageDirections(width), Pooling(width, pooling_mode="mean")]
    return own


def _halves(width: int) -> torch.Tensor:
    """Weights [width, 2 x width] that average dimension i of both directions."""
    return torch.eye(width).repeat(1, 2) / 2


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
