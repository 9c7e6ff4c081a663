"""Which calls of `encode` ask for no more than the vectors of some sentences, as arrays or tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

FAST_OPTIONS = {
    "prompt",
    "prompt_name",
    "batch_size",
    "show_progress_bar",
    "convert_to_numpy",
    "convert_to_tensor",
    "normalize_embeddings",
    "truncate_dim",
    "task",
}


def materialised(inputs: Any) -> Any:  # noqa: ANN401
    """Turn an array or a column of a data set into a list; leave anything else as it is."""
    if isinstance(inputs, np.ndarray):
        return inputs.tolist()
    return list(inputs) if isinstance(inputs, Sequence) and not isinstance(inputs, str | list) else inputs


def is_plain(inputs: Any, options: dict[str, Any]) -> bool:  # noqa: ANN401
    """Tell whether a call asks for nothing that the fast path does not do."""
    usual = {"output_value": "sentence_embedding", "precision": "float32", "device": None, "pool": None}
    usual["chunk_size"] = None
    others = {name: value for name, value in options.items() if name not in FAST_OPTIONS}
    if any(name not in usual or value != usual[name] for name, value in others.items()):
        return False
    if options.get("batch_size", 1) <= 0:
        return False
    return isinstance(inputs, str) or (isinstance(inputs, list) and all(type(text) is str for text in inputs))
