"""Averaging encoders as plain arrays: WORD, TRIGRAM, their combinations, and Sent2Vec, read without torch.

What is read here is certain to be one of them and whole. Anything else, and anything that is wrong with one of them,
is left to `module_loading.py`, which reads every kind of encoder and says what is wrong.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from paranmt_hf.encoders.contents import MODULES, PREFIX, model_settings
from paranmt_hf.encoders.families import WEIGHTS, Kind
from paranmt_hf.encoders.ngrams import HASHES, NgramTable
from paranmt_hf.encoders.vocabulary import Vocabulary
from paranmt_hf.text.definitions import vocabulary_of

_STOCK = "sentence_transformers."
# The kinds of modules, by their names in `modules.json`; the stock one has moved between releases.
_TYPES = {
    f"{where}{file}.{kind}": kind
    for where in (PREFIX, f"{MODULES}.")
    for file, kind in (
        ("word", "WordEmbedding"),
        ("trigram", "TrigramEmbedding"),
        ("ngram", "NgramEmbedding"),
        ("combination", "Combination"),
    )
} | {
    f"{_STOCK}{where}.StaticEmbedding": "StaticEmbedding"
    for where in (
        "models",
        "models.StaticEmbedding",
        "sentence_transformer.modules",
        "sentence_transformer.modules.static_embedding",
    )
}
_COMBINED = {"WordEmbedding", "TrigramEmbedding"}
_SIMILARITIES = (None, "cosine", "dot", "euclidean", "manhattan")


@dataclass(frozen=True)
class Table:
    """One averaging encoder.

    Attributes:
        vocabulary: The unit of each row.
        rows: Vectors [row, dimension], float32.
        precision: How `save` stores the rows: `float32`, `float16` or `int8`.
        cut: How text is cut into words: `words`, as `text.py` says, or `blanks`, at white space as it is.
    """

    vocabulary: Vocabulary
    rows: np.ndarray
    precision: str
    cut: str = "words"


@dataclass(frozen=True)
class Tables:
    """An encoder that averages and does nothing else.

    Attributes:
        parts: Its parts; of a single encoder itself.
        mode: How several are combined, `add` or `concatenate`; None for an encoder that is no combination.
        settings: The settings of the whole encoder; see `contents.SETTINGS`.
    """

    parts: list[Table]
    mode: str | None
    settings: dict[str, Any]

    @property
    def dimension(self) -> int:
        """Dimensions of a sentence vector."""
        widths = [part.rows.shape[1] for part in self.parts]
        return widths[0] if self.mode == "add" else sum(widths)

    @property
    def cuts_words(self) -> bool:
        """Whether the words of all parts are those of `text.py`."""
        return all(part.cut == "words" for part in self.parts)


def read_tables(folder: Path, entries: list[dict[str, str]]) -> Tables | None:
    """Read an encoder that averages and does nothing else.

    Args:
        folder: Its folder, as `locate` has checked it.
        entries: Its modules, as `module_list` reads them.

    Returns:
        None where it is another kind of encoder, or anything about it is unusual.
    """
    kind = _TYPES.get(entries[0]["type"])
    if len(entries) > 1 or kind is None:
        return None
    inner = folder / entries[0]["path"]
    try:
        mode, parts = _read_combination(inner) if kind == "Combination" else (None, [_read_table(inner, kind)])
        return Tables(parts, mode, _usual_settings(folder))
    except Exception:  # noqa: BLE001 - the tokenizers' errors have no class of their own
        return None


def _expect(usual: bool) -> None:
    """Leave what is not as usual to the general way."""
    if not usual:
        raise ValueError


def _read_json(path: Path) -> Any:  # noqa: ANN401 - whatever is there
    return json.loads(path.read_text(encoding="utf8"))


def _usual_settings(folder: Path) -> dict[str, Any]:
    settings = model_settings(folder, "")
    prompts = settings.get("prompts", {})
    _expect(isinstance(prompts, dict) and all(isinstance(prompt, str | None) for prompt in prompts.values()))
    # Of a default prompt sentence-transformers warns.
    _expect(settings.get("default_prompt_name") is None)
    _expect(settings.get("similarity_fn_name") in _SIMILARITIES)
    return settings


def _read_combination(folder: Path) -> tuple[str, list[Table]]:
    config = _read_json(folder / "combination_config.json")
    _expect(set(config) == {"mode"} and config["mode"] in ("add", "concatenate"))
    parts = []
    for (entry,) in _read_json(folder / "parts.json"):
        name, kind = entry["folder"], entry["type"]
        _expect(kind in _COMBINED and name.replace("_", "").isalnum())
        parts.append(_read_table(folder / name, kind))
    _expect(bool(parts) and (config["mode"] == "concatenate" or len({part.rows.shape[1] for part in parts}) == 1))
    return config["mode"], parts


def _read_table(folder: Path, kind: str) -> Table:
    if kind == "StaticEmbedding":
        return _read_stock(folder)
    path = folder / "average_config.json"
    config = {"precision": "float32", **(_read_json(path) if path.is_file() else {})}
    _expect(config["precision"] in ("float32", "float16", "int8"))
    units, stored = _read_json(folder / "vocabulary.json"), load_file(folder / WEIGHTS)
    _expect(isinstance(units, list) and all(isinstance(unit, str) for unit in units))
    # JSON may hold halves of characters, which no text does.
    "".join(units).encode()
    if kind != "NgramEmbedding":
        _expect(set(config) == {"precision"})
        words: Kind = "word" if kind == "WordEmbedding" else "trigram"
        return _table(Vocabulary(words, units), _restored(stored), config["precision"])
    cut = config.setdefault("cut", "words")
    _expect(set(config) == {"precision", "order", "buckets", "cut"} and cut in ("words", "blanks"))
    ngrams = NgramTable(config["order"], config["buckets"], stored[HASHES], len(units))
    return _table(Vocabulary("ngram", units, ngrams), _restored(stored), config["precision"], cut)


def _read_stock(folder: Path) -> Table:
    """Read WORD as it is saved alone."""
    units = vocabulary_of(Tokenizer.from_file(str(folder / "tokenizer.json")))
    _expect(units is not None)
    stored = load_file(folder / WEIGHTS)
    rows = stored["embedding.weight"]
    _expect(len(stored) == 1 and rows.dtype in (np.float32, np.float16))
    return _table(Vocabulary("word", units or []), rows, rows.dtype.name)


def _restored(stored: dict[str, np.ndarray]) -> np.ndarray:
    """Turn what was written into rows [row, dimension]; `int8` has a scale for each."""
    rows = stored["embedding.weight"]
    if rows.dtype != np.int8:
        _expect(rows.dtype in (np.float32, np.float16))
        return rows
    scale = stored["embedding.scale"]
    _expect(scale.shape == rows.shape[:1] and scale.dtype == np.float32)
    return rows.astype(np.float32) * scale[:, None]


def _table(vocabulary: Vocabulary, rows: np.ndarray, precision: str, cut: str = "words") -> Table:
    further = 0 if vocabulary.ngrams is None else len(vocabulary.ngrams.hashes)
    _expect(rows.ndim == 2 and len(rows) == len(vocabulary) + further)
    return Table(vocabulary, np.require(rows, np.float32, ["C", "A", "W"]), precision, cut)
