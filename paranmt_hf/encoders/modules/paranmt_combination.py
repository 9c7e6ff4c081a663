"""Combinations of encoders, added or concatenated and trained jointly. ParaNMT-50M, section 4 (WORD+TRIGRAM, ...)."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from sentence_transformers.base.modules.input_module import InputModule
from sentence_transformers.sentence_transformer import modules as stock
from torch import nn

from .paranmt_averages import TrigramEmbedding, WordEmbedding
from .paranmt_recurrent import MODULES
from .paranmt_tables import HUB_KEYS, PARTS_FILE, read_parts

# The modules that a combination may hold: ours by the names of their classes, and the names of stock ones.
OWN = {kind.__name__: kind for kind in (WordEmbedding, TrigramEmbedding, *MODULES)}
STOCK = ("WordEmbeddings", "LSTM", "Pooling", "Dense")


class Combination(InputModule):
    """Several encoders of the same sentence; the result is the sum of their vectors, or the vectors side by side.

    Args:
        parts: The modules of each encoder, in order; the first module of each reads text.
        mode: `add` (the paper's `+`; equal dimensions) or `concatenate` (the paper's comma).
    """

    config_keys = ["mode"]
    config_file_name = "combination_config.json"
    # Texts of any length are read to their end.
    max_seq_length = math.inf

    def __init__(self, parts: Sequence[Sequence[nn.Module]], mode: str = "concatenate") -> None:
        super().__init__()
        self.parts = nn.ModuleList([nn.Sequential(*part) for part in parts])
        self.mode = mode
        widths = self.dimensions
        if mode == "add" and len(set(widths)) > 1:
            raise ValueError(f"encoders that are added need equal dimensions, were {widths}")

    @property
    def dimensions(self) -> list[int]:
        """Number of dimensions of each part's sentence vector."""
        return [part[-1].get_embedding_dimension() for part in self.parts]  # type: ignore[index]

    def preprocess(self, inputs: Sequence[Any], prompt: str | None = None, **kwargs: Any) -> dict[str, Any]:
        """Preprocess the texts for each part; names of a part's features end with its index, as in `input_ids_0`."""
        features: dict[str, Any] = {}
        for number, part in enumerate(self.parts):
            read = part[0].preprocess(list(inputs), prompt=prompt)  # type: ignore[index]
            for name, value in read.items():
                features[f"{name}_{number}"] = value
        # By this feature the trainer of sentence-transformers recognises a text column.
        return {"input_ids": features["input_ids_0"], **features}

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Encode with each part, and add the combined `sentence_embedding` [sentence, dimension] to the features."""
        vectors = []
        for number, part in enumerate(self.parts):
            suffix = f"_{number}"
            part_features = {}
            for name, value in features.items():
                if name.endswith(suffix):
                    part_features[name.removesuffix(suffix)] = value
            vectors.append(part(part_features)["sentence_embedding"])
        if self.mode == "add":
            features["sentence_embedding"] = torch.stack(vectors).sum(dim=0)
        else:
            features["sentence_embedding"] = torch.cat(vectors, dim=1)
        return features

    def get_embedding_dimension(self) -> int:
        """Number of dimensions of a sentence vector."""
        return self.dimensions[0] if self.mode == "add" else sum(self.dimensions)

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write each module into a folder of its own, and the list of these folders."""
        self.save_config(output_path)
        listed = []
        for number, part in enumerate(self.parts):
            folders = []
            for step, module in enumerate(list(part)):  # type: ignore[call-overload]
                name = type(module).__name__
                folder = Path(output_path) / f"{number}_{step}_{name}"
                folder.mkdir(parents=True, exist_ok=True)
                module.save(str(folder), safe_serialization=True)
                folders.append({"folder": folder.name, "type": name})
            listed.append(folders)
        (Path(output_path) / PARTS_FILE).write_text(json.dumps(listed, indent=2), encoding="utf8", newline="\n")

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **kwargs: Any) -> Combination:
        """Read what `save` wrote, from a folder or the Hub."""
        hub = {key: kwargs[key] for key in kwargs if key in HUB_KEYS}
        config = cls.load_config(model_name_or_path, subfolder=subfolder, **hub)
        path = cls.load_file_path(model_name_or_path, PARTS_FILE, subfolder=subfolder, **hub)
        if path is None:
            raise ValueError(f"{model_name_or_path} has no {PARTS_FILE}, so it is not a combination of encoders")
        parts = []
        for listed in read_parts(Path(path)):
            modules = []
            for folder, name in listed:
                if name not in OWN and name not in STOCK:
                    raise ValueError(f"a combination holds {', '.join([*OWN, *STOCK])}, not {name!r}")
                # Only classes of these two lists are used, so no code of the model runs.
                kind: Any = OWN.get(name) or getattr(stock, name)
                inside = f"{subfolder}/{folder}" if subfolder else folder
                modules.append(kind.load(model_name_or_path, subfolder=inside, **hub))
            parts.append(modules)
        return cls(parts, config["mode"])
