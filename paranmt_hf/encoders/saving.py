"""Save encoders: as stock modules if there are any with the same vectors, otherwise with the code of our modules."""

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

# Our modules, by the names that `modules.json` has for them next to weights: `file.Class`.
CLASSES: dict[str, type[nn.Module]] = {
    f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}": kind
    for kind in (*OWN.values(), NgramEmbedding, Combination)
}


def save(model: SentenceTransformer, folder: Path | str) -> None:
    """Write an encoder into a folder so that sentence-transformers loads it with or without this package."""
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
        # Drop the options by which a tokenizer was loaded, so that a copy of a model has the bytes of the original.
        loaded = getattr(getattr(getattr(module, "tokenizer", None), "tokenizer", None), "init_kwargs", {})
        loaded.pop("is_local", None)
        loaded.pop("local_files_only", None)
    replaced = dict(model._modules)
    stock = to_stock(model)
    model._modules.clear()
    model._modules.update({str(index): module for index, module in enumerate(stock)})
    try:
        yield
    finally:
        model._modules.clear()
        model._modules.update(replaced)


def to_stock(modules: Iterable[nn.Module]) -> list[nn.Module]:
    """Convert the modules of an encoder to stock modules with the same vectors, as far as there are any.

    A BLSTM averages its directions and then its words. Both are means, so the order does not matter: the stock form
    pools the words first, and a `Dense` module of fixed weights averages the directions of the sentence vector. With a
    maximum over the words the order matters, so those modules stay.
    """
    stock = _without_prefixes(modules)
    first = stock[0]
    if isinstance(first, Combination):
        stock[0] = Combination([_without_prefixes(part) for part in first.parts], first.mode)  # type: ignore[arg-type]
    elif isinstance(first, WordEmbedding) and first.precision not in LARGEST:
        # No stock module holds integer rows, so those stay ours.
        stock[0] = first.stock()
    if [described(module) for module in stock[2:]] == ["AverageDirections", "Pooling-mean"]:
        width = stock[2].get_embedding_dimension()  # type: ignore[operator]
        mean = Dense(2 * width, width, bias=False, activation_function=nn.Identity(), init_weight=_halves(width))
        stock[2:] = [Pooling(2 * width, pooling_mode="mean"), mean]
    return stock


def _without_prefixes(modules: Iterable[nn.Module]) -> list[nn.Module]:
    """Return the modules with each `PrefixLSTM` replaced by the stock LSTM."""
    return [module.stock() if isinstance(module, PrefixLSTM) else module for module in modules]


def from_stock(modules: Iterable[nn.Module]) -> list[nn.Module]:
    """Undo `to_stock`: convert the stock modules that it made to ours, and leave others unchanged."""
    converted = list(modules)
    first = converted[0]
    if isinstance(first, StaticEmbedding):
        table = WordEmbedding.from_stock(first)
        if table is not None and table.units[0] == UNKNOWN:
            converted[0] = table
    mean = converted[3] if len(converted) == 4 else None
    if isinstance(mean, Dense) and described(converted[2]) == "Pooling-mean":
        width = mean.out_features
        plain = isinstance(mean.activation_function, nn.Identity) and not mean.bias and not mean.use_residual
        if plain and torch.equal(mean.linear.weight, _halves(width)):
            converted[2:] = [AverageDirections(width), Pooling(width, pooling_mode="mean")]
    return converted


def _halves(width: int) -> torch.Tensor:
    """Return the weights [width, 2 x width] that average dimension i of the two directions of a BLSTM."""
    return torch.eye(width).repeat(1, 2) / 2


def add_code(folder: Path) -> None:
    """Write the code of our modules next to the weights of a saved encoder, and refer to it in `modules.json`.

    Encoders of stock modules alone get no code.
    """
    share_weights(folder)
    path = folder / "modules.json"
    entries = json.loads(path.read_text(encoding="utf8"))
    ours = [entry for entry in entries if entry["type"].startswith(f"{MODULES}.")]
    for entry in ours:
        entry["type"] = entry["type"].removeprefix(f"{MODULES}.")
    path.write_text(json.dumps(entries, indent=2), encoding="utf8", newline="\n")
    if ours:
        write_code(folder)
