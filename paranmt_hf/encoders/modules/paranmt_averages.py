"""Modules of averaging encoders: WORD and TRIGRAM (ParaNMT-50M, Wieting & Gimpel 2018, section 4), and Sent2Vec.

Sent2Vec: Pagliardini, Gupta and Jaggi (2018, arXiv:1703.02507), section 2.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save_file
from sentence_transformers.base.modules.input_module import InputModule
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from torch import nn

from .paranmt_tables import (
    CONFIG_FILE,
    HASHES,
    HUB_KEYS,
    VOCABULARY_FILE,
    WEIGHTS_FILE,
    NgramTable,
    blank_tokens,
    can_hold,
    check_precision,
    load_json,
    read_rows,
    restore,
    store,
    unequal,
)
from .paranmt_text import character_ngrams, rows_of_word, vocabulary_of, word_tokenizer, words


class AverageEmbedding(InputModule):
    """A table with a row for each unit; the vector of a sentence is the mean of its units' rows.

    Row 0 belongs to the units without a row of their own. It is zeros unless it was trained, so that an unknown unit
    makes the vector shorter and does not change its direction. The vector of a sentence without units is zeros.

    Args:
        units: Unit of each row; the first is `[UNK]`.
        weight: Vectors [row, dimension].
        precision: How `save` stores the rows: `float32`, `float16`, or `int8` or `int4` with a scale for each row. In
            memory they are float32. If this would round the rows, for example because they were trained, `save` stores
            float32; `stored_as` rounds them.
        further: Number of rows behind those of the units.
    """

    config_keys = ["precision"]
    config_file_name = CONFIG_FILE
    # Name of the tensor in the file of weights that has an entry for each row behind those of the units; None without
    further_tensor: str | None = None
    # Texts of any length are read to their end.
    max_seq_length = math.inf

    def __init__(
        self, units: Sequence[str], weight: torch.Tensor | np.ndarray, precision: str = "float32", *, further: int = 0
    ) -> None:
        super().__init__()
        check_precision(precision, np.shape(weight)[1])
        if len(units) + further != len(weight):
            raise ValueError(unequal(len(units), further, len(weight)))
        self.units = list(units)
        self.precision = precision
        self.embedding = nn.EmbeddingBag.from_pretrained(torch.as_tensor(weight).float(), freeze=False, mode="mean")
        self._row_of = {unit: row for row, unit in enumerate(self.units)}

    def split(self, text: str) -> list[str]:
        """Split one text into units."""
        raise NotImplementedError

    def preprocess(self, inputs: Sequence[Any], prompt: str | None = None, **kwargs: Any) -> dict[str, Any]:
        """Look up the rows of each text's units.

        Returns:
            `input_ids` [unit], the rows of all texts one after another, and `offsets` [text], where each text begins.
        """
        texts = self._prepend_prompt(list(inputs), prompt) if prompt else inputs
        rows, bounds = self._look_up(texts)
        return {"input_ids": torch.from_numpy(rows).long(), "offsets": torch.from_numpy(bounds[:-1])}

    def _rows(self, text: str) -> list[int]:
        """Return the row of each unit of one text."""
        return [self._row_of.get(unit, 0) for unit in self.split(text)]

    def _look_up(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of all texts one after another [unit], int32, and their bounds [text + 1], int64."""
        rows: list[int] = []
        bounds = [0]
        for text in texts:
            rows += self._rows(text)
            bounds.append(len(rows))
        return np.array(rows, np.int32), np.array(bounds, np.int64)

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Add `sentence_embedding` [sentence, dimension], the mean of each sentence's rows, to the features."""
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
        """Return a copy whose rows are rounded to what `save` stores in this precision."""
        return type(self)(self.units, self._rounded(precision), precision)

    def _rounded(self, precision: str) -> np.ndarray:
        """Return the rows [row, dimension], float32, as they are after being stored in this precision."""
        check_precision(precision, self.get_embedding_dimension())
        return restore(store(self.weight.float().cpu().numpy(), precision))

    def keep_rows(self) -> None:
        """Set `precision` to float32 if it would round the rows, for example because they were trained."""
        if not can_hold(self.weight.float().cpu().numpy(), self.precision):
            self.precision = "float32"

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write configuration, vocabulary and weights (always safetensors)."""
        self.keep_rows()
        self.save_config(output_path)
        vocabulary = json.dumps(self.units, ensure_ascii=False)
        (Path(output_path) / VOCABULARY_FILE).write_text(vocabulary, encoding="utf8", newline="\n")
        save_file(self._tensors(), Path(output_path) / WEIGHTS_FILE)

    def _tensors(self) -> dict[str, np.ndarray]:
        """Return the tensors that `save` writes, by name."""
        # Through float32, because numpy has no bfloat16.
        return store(self.weight.float().cpu().numpy(), self.precision)

    @classmethod
    def load(cls, model_name_or_path: str, **kwargs: Any) -> AverageEmbedding:
        """Read what `save` wrote, from a folder or the Hub."""
        hub = {key: kwargs[key] for key in kwargs if key in HUB_KEYS}
        config = cls.load_config(model_name_or_path, **hub)
        paths = []
        for name in (VOCABULARY_FILE, WEIGHTS_FILE):
            path = cls.load_file_path(model_name_or_path, name, **hub)
            if path is None:
                raise ValueError(f"{model_name_or_path} has no {name}, so it is not an averaging encoder")
            paths.append(Path(path))
        units = load_json(paths[0], list)
        rows, hashes = read_rows(paths[1], units, cls.further_tensor)
        further: dict[str, Any] = {} if hashes is None else {"hashes": hashes}
        return cls(units, rows, **config, **further)


class WordEmbedding(AverageEmbedding):
    """WORD: a sentence is the average of the vectors of its words.

    Units such as `##ing` are pieces of words: a word without a row is read as pieces, each of which counts in the
    average. An encoder that is WORD alone, with rows of floating-point numbers, is saved as a stock module (see
    `stock`); this module itself is saved as a part of a combination, or with integer rows.
    """

    def split(self, text: str) -> list[str]:
        """Split one text into word tokens."""
        return words(text)

    def _rows(self, text: str) -> list[int]:
        """Return the rows of one text's words; of a word without a row, those of its pieces."""
        rows: list[int] = []
        for word in self.split(text):
            rows += rows_of_word(word, self._row_of.get)
        return rows

    def stock(self) -> StaticEmbedding:
        """Return the stock module with the same vectors, which loads without this package."""
        weight = self.weight.half() if self.precision == "float16" else self.weight
        return StaticEmbedding(word_tokenizer(self.units), embedding_weights=weight)

    @classmethod
    def from_stock(cls, module: StaticEmbedding) -> WordEmbedding | None:
        """Build the module from a stock module that `stock` made; None for other stock modules."""
        units = vocabulary_of(module.tokenizer)
        if units is None:
            return None
        weight = module.embedding.weight.data
        return cls(units, weight, "float16" if weight.dtype == torch.float16 else "float32")


class TrigramEmbedding(AverageEmbedding):
    """TRIGRAM: a sentence is the average of the vectors of its character trigrams, blanks between words included."""

    def split(self, text: str) -> list[str]:
        """Split one text into character trigrams."""
        return character_ngrams(text)


class NgramEmbedding(AverageEmbedding):
    """Sent2Vec: a sentence is the average of the vectors of its words and hashed word n-grams.

    An unknown word is left out before n-grams are made, and so is an n-gram whose bucket has no row: neither counts in
    the average. A sentence without any known word is zeros.

    Args:
        units: The words; the first is `[UNK]`. The row of a word is its id, from which n-grams are hashed.
        weight: Vectors [row, dimension]: row 0, the words, and then a row for each of `hashes`.
        precision: See `AverageEmbedding`.
        order: Number of words of the longest n-grams; 1 where there are only words.
        buckets: Number of buckets that n-grams are hashed into.
        hashes: The buckets that have a row [n-gram row], ascending.
        cut: How text is cut into words: `words`, lower-cased as by WORD, or `blanks`, at white space only and with
            case.
    """

    config_keys = ["precision", "order", "buckets", "cut"]
    further_tensor = HASHES

    def __init__(
        self,
        units: Sequence[str],
        weight: torch.Tensor | np.ndarray,
        precision: str = "float32",
        *,
        order: int,
        buckets: int,
        hashes: torch.Tensor | np.ndarray,
        cut: str = "words",
    ) -> None:
        ngrams = NgramTable(order, buckets, np.asarray(hashes), len(units))
        super().__init__(units, weight, precision, further=len(ngrams.hashes))
        self.ngrams = ngrams
        self.order = order
        self.buckets = buckets
        self.cut = cut

    @property
    def hashes(self) -> np.ndarray:
        """The buckets that have a row [n-gram row], int64, ascending."""
        return self.ngrams.hashes

    def _look_up(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of all texts' known words and n-grams [unit], int32, and their bounds [text + 1], int64."""
        return self.ngrams.bags(*super()._look_up(texts))

    def split(self, text: str) -> list[str]:
        """Split one text into words."""
        return words(text) if self.cut == "words" else blank_tokens(text)

    def stored_as(self, precision: str) -> NgramEmbedding:
        """Return a copy whose rows are rounded to what `save` stores in this precision."""
        return NgramEmbedding(
            self.units,
            self._rounded(precision),
            precision,
            order=self.order,
            buckets=self.buckets,
            hashes=self.hashes,
            cut=self.cut,
        )

    def _tensors(self) -> dict[str, np.ndarray]:
        return {**super()._tensors(), HASHES: self.hashes}
