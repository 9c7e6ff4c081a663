"""Average of the vectors of a sentence's units, the base of WORD and TRIGRAM."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers.base.modules.input_module import InputModule
from torch import nn

VOCABULARY_FILE = "vocabulary.json"
WEIGHTS_FILE = "model.safetensors"
PRECISIONS = ("float32", "float16", "int8")


class AverageEmbedding(InputModule):
    """A table with a row for each unit; a sentence is the mean of its units' rows.

    ParaNMT-50M (Wieting & Gimpel 2018), section 4. Row 0 belongs to the units without a row of their own; it is zeros
    unless it was trained, so that an unknown unit shortens the vector and does not turn it. A sentence without units
    is zeros.

    Args:
        units: Unit of each row; the first is `[UNK]`.
        weight: Vectors [row, dimension].
        precision: How `save` stores the rows: `float32`, `float16`, or `int8` with a scale for each row. In memory
            they are float32.
        further: Number of rows behind those of the units.
    """

    config_keys = ["precision"]
    config_file_name = "average_config.json"
    # Texts of any length are read to their end.
    max_seq_length = math.inf

    def __init__(
        self,
        units: Sequence[str],
        weight: torch.Tensor | np.ndarray,
        precision: str = "float32",
        *,
        further: int = 0,
    ) -> None:
        super().__init__()
        if precision not in PRECISIONS:
            raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, was {precision!r}")
        if len(units) + further != len(weight):
            raise ValueError(_unequal(len(units), further, len(weight)))
        self.units = list(units)
        self.precision = precision
        self.embedding = nn.EmbeddingBag.from_pretrained(torch.as_tensor(weight).float(), freeze=False, mode="mean")
        self._row_of = {unit: row for row, unit in enumerate(self.units)}

    @staticmethod
    def split(text: str) -> list[str]:
        """Cut one text into units."""
        raise NotImplementedError

    def preprocess(self, inputs: Sequence[Any], prompt: str | None = None, **kwargs: Any) -> dict[str, Any]:
        """Look up the rows of each text's units: `input_ids` [unit] and `offsets` [sentence]."""
        texts = self._prepend_prompt(list(inputs), prompt) if prompt else inputs
        get = self._row_of.get
        rows = [[get(unit, 0) for unit in self.split(text)] for text in texts]
        offsets = np.cumsum([0, *(len(row) for row in rows[:-1])])
        flat = torch.tensor([row for each in rows for row in each], dtype=torch.long)
        return {"input_ids": flat, "offsets": torch.from_numpy(offsets)}

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Average the rows: adds `sentence_embedding` [sentence, dimension]."""
        features["sentence_embedding"] = self.embedding(features["input_ids"], features["offsets"])
        return features

    def get_embedding_dimension(self) -> int:
        """Number of dimensions of a sentence vector."""
        return self.embedding.embedding_dim

    @property
    def weight(self) -> torch.Tensor:
        """The table [row, dimension], float32."""
        return self.embedding.weight.data

    def stored_as(self, precision: str) -> AverageEmbedding:
        """Make the same encoder that `save` stores in another precision."""
        return type(self)(self.units, self.weight, precision)

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write configuration, vocabulary and weights (always safetensors)."""
        self._save_units(output_path)
        save_file(store(self.weight.cpu(), self.precision), Path(output_path) / WEIGHTS_FILE)

    def _save_units(self, output_path: str) -> None:
        self.save_config(output_path)
        vocabulary = json.dumps(self.units, ensure_ascii=False)
        (Path(output_path) / VOCABULARY_FILE).write_text(vocabulary, encoding="utf8")

    @classmethod
    def load(cls, model_name_or_path: str, **kwargs: Any) -> AverageEmbedding:
        """Read what `save` wrote, from a folder or the Hub."""
        config, units, stored = cls._read(model_name_or_path, **kwargs)
        return cls(units, restore(stored), **config)

    @classmethod
    def _read(
        cls, name: str, further: str | None = None, **kwargs: Any
    ) -> tuple[dict[str, Any], list[str], dict[str, torch.Tensor]]:
        """Read the configuration, the units and the tensors of an encoder.

        Args:
            name: Folder, or id at the Hub.
            further: Name of the tensor that has an entry for each row behind those of the units, if there are any.
            **kwargs: Where in the folder, and how to reach the Hub.
        """
        kwargs = {key: kwargs[key] for key in kwargs if key in HUB_KEYS}
        config = cls.load_config(name, **kwargs)
        path = cls.load_file_path(name, VOCABULARY_FILE, **kwargs)
        if path is None:
            raise ValueError(f"{name} has no {VOCABULARY_FILE}, so it is no averaging encoder")
        units = json.loads(Path(path).read_text(encoding="utf8"))
        wrong = [unit for unit in units if not isinstance(unit, str)] if isinstance(units, list) else [units]
        if wrong:
            raise ValueError(f"{path} must be a list of texts, and holds {wrong[0]!r}")
        try:
            "".join(units).encode()
        except UnicodeEncodeError as error:
            # JSON may hold halves of characters, which no text does.
            raise ValueError(f"{path} holds half of a character ({error.object[error.start]!r})") from error
        weights = cls.load_file_path(name, WEIGHTS_FILE, **kwargs)
        if weights is None:
            raise ValueError(f"{name} has no {WEIGHTS_FILE}")
        stored = load_file(weights)
        if further is not None and further not in stored:
            raise ValueError(f"{weights} has no tensor {further}")
        more, rows = (len(stored[further]) if further else 0), len(stored["embedding.weight"])
        if len(units) + more != rows:
            raise ValueError(f"{path} and {weights} do not belong together: {_unequal(len(units), more, rows)}")
        return config, units, stored


def _unequal(units: int, further: int, rows: int) -> str:
    more = f" and {further} more" if further else ""
    return f"a vocabulary of {units} units needs as many rows{more}, was {rows} rows"


HUB_KEYS = ("subfolder", "token", "cache_folder", "revision", "local_files_only")


def store(weight: torch.Tensor, precision: str) -> dict[str, torch.Tensor]:
    """Turn a table [row, dimension] into what is written; `int8` keeps each row's largest magnitude as 127."""
    if precision == "int8":
        scale = (weight.abs().amax(dim=1) / 127).clamp(min=torch.finfo(torch.float32).tiny)
        rows = torch.round(weight / scale[:, None]).clamp(-127, 127)
        return {"embedding.weight": rows.to(torch.int8), "embedding.scale": scale}
    return {"embedding.weight": weight.to(getattr(torch, precision)).contiguous()}


def restore(stored: dict[str, torch.Tensor]) -> torch.Tensor:
    """Turn what was written into a table [row, dimension], float32."""
    weight = stored["embedding.weight"]
    if weight.is_floating_point():
        return weight.float()
    scale = stored.get("embedding.scale")
    if weight.dtype != torch.int8 or scale is None or scale.shape != weight.shape[:1]:
        found = "none" if scale is None else f"the shape {list(scale.shape)}"
        raise ValueError(
            f"rows of {weight.dtype} are read as int8 with embedding.scale, a number for each of {len(weight)} rows; "
            f"found {found}"
        )
    return weight.float() * scale.float()[:, None]
