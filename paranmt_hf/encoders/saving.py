"""Save encoders: stock modules unchanged, ours with their code; large tables row by row."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer
from torch import nn

from paranmt_hf.encoders.model_folder import MODULES, code_files
from paranmt_hf.encoders.modules.paranmt_averages import NgramEmbedding, TrigramEmbedding, WordEmbedding
from paranmt_hf.encoders.modules.paranmt_combination import Combination
from paranmt_hf.encoders.modules.paranmt_recurrent import (
    AverageDirections,
    IdentityRNN,
    LastStateRNN,
    MaxPooling,
    PeepholeLSTM,
)
from paranmt_hf.encoders.modules.paranmt_tables import HASHES, SCALE, WEIGHT, store
from paranmt_hf.encoders.sequences import directions_behind
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import share_weights

# The classes that a model may name, as `file.Class`.
CLASSES: dict[str, type] = {
    f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}": kind
    for kind in (
        *(WordEmbedding, TrigramEmbedding, NgramEmbedding, Combination),
        *(AverageDirections, MaxPooling, LastStateRNN, IdentityRNN, PeepholeLSTM),
    )
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
    """Replace our modules by stock ones while a model is saved; rows of int8 have no stock module."""
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
    """Write the code of our modules next to the weights of a saved encoder, and refer to it in `modules.json`."""
    share_weights(folder)
    path = folder / "modules.json"
    entries = json.loads(path.read_text(encoding="utf8"))
    own = [entry for entry in entries if entry["type"].startswith(f"{MODULES}.")]
    for entry in own:
        entry["type"] = entry["type"].removeprefix(f"{MODULES}.")
    path.write_text(json.dumps(entries, indent=2), encoding="utf8")
    if own:
        for name, code in code_files().items():
            (folder / name).write_text(code, encoding="utf8")


# The tensors of an encoder by name, with their types as safetensors and as numpy name them; wider types come first,
# so that each begins where its numbers may.
TYPES = {"float32": ("F32", np.float32), "float16": ("F16", np.float16), "int8": ("I8", np.int8)}
BUCKETS_AT_ONCE, LARGEST_HALF = 2**20, 65504.0  # Buckets that are written at once, and the largest value of 16 bits


class RowFile:
    """Writes a table of known size row by row, stored as `AverageEmbedding` does; the header is written last.

    `hashes` are the buckets that have a row, ascending; a number for all below it; None for an encoder without
    n-grams.
    """

    def __init__(
        self, path: Path, rows: int, dimension: int, precision: str, hashes: np.ndarray | int | None = None
    ) -> None:
        self._precision, self._hashes, self._scales = precision, hashes, [np.empty(0, np.float32)]
        sizes: list[tuple[str, str, list[int], int]] = []
        if hashes is not None:
            sizes.append((HASHES, "I64", [hashes if isinstance(hashes, int) else len(hashes)], 8))
        if precision == "int8":
            sizes.append((SCALE, "F32", [rows], 4))
        kind, self._type = TYPES[precision]
        sizes.append((WEIGHT, kind, [rows, dimension], np.dtype(self._type).itemsize))
        head, self._starts, end = {}, {}, 0
        for name, type_name, shape, width in sizes:
            start, end = end, end + width * int(np.prod(shape, dtype=object))
            head[name] = {"dtype": type_name, "shape": shape, "data_offsets": [start, end]}
            self._starts[name] = start
        encoded = json.dumps({"__metadata__": {"format": "pt"}, **head}).encode()
        encoded += b" " * (-len(encoded) % 8)
        self._begin = 8 + len(encoded)
        self._file = path.open("wb")
        self._file.write(len(encoded).to_bytes(8, "little") + encoded)
        self._file.seek(self._begin + self._starts[WEIGHT])

    def write(self, rows: np.ndarray) -> None:
        """Append rows [row, dimension], float32."""
        if self._precision == "float16" and len(rows) and (largest := float(np.abs(rows).max())) > LARGEST_HALF:
            raise InputError(
                f"a vector has the value {largest:g}, and float16 ends at {LARGEST_HALF:,.0f}; choose `precision` "
                "float32"
            )
        stored = store(rows, self._precision)
        self._file.write(stored[WEIGHT].tobytes())
        if SCALE in stored:
            self._scales.append(stored[SCALE])

    def close(self) -> None:
        """Write the header, and close the file."""
        if HASHES in self._starts:
            self._file.seek(self._begin + self._starts[HASHES])
            for part in _parts(self._hashes):
                self._file.write(part.astype("<i8").tobytes())
        if SCALE in self._starts:
            self._file.seek(self._begin + self._starts[SCALE])
            self._file.write(np.concatenate(self._scales).tobytes())
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def __enter__(self) -> RowFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self.close()
        else:
            self._file.close()


def _parts(hashes: np.ndarray | int | None) -> Iterator[np.ndarray]:
    """Yield the n-gram buckets (given, or all below a number) in blocks."""
    count = hashes if isinstance(hashes, int) else 0 if hashes is None else len(hashes)
    for start in range(0, count, BUCKETS_AT_ONCE):
        stop = min(start + BUCKETS_AT_ONCE, count)
        yield np.arange(start, stop) if isinstance(hashes, int) else hashes[start:stop]  # type: ignore[index]
