"""Sent2Vec: average of the embeddings of words and hashed word n-grams.

Pagliardini, Gupta and Jaggi (2018, arXiv:1703.02507), section 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from paranmt_hf.encoders.modules.average import WEIGHTS_FILE, AverageEmbedding, restore, store
from paranmt_hf.encoders.ngrams import HASHES, NgramTable, blank_tokens
from paranmt_hf.text.definitions import words

CUTS = ("words", "blanks")


class NgramEmbedding(AverageEmbedding):
    """Average of the embeddings of a sentence's words and n-grams.

    An unknown word is left out before n-grams are made, and so is an n-gram whose bucket has no row: neither counts in
    the average. A sentence without any known word is zeros.

    Args:
        units: The words; the first is `[UNK]`. A word's id, of which the hashes of n-grams are made, is its row.
        weight: Vectors [row, dimension]: row 0, the words, and then a row for each of `hashes`.
        precision: See `AverageEmbedding`.
        order: Number of words of the longest n-grams; 1 where there are only words.
        buckets: Number of buckets that n-grams are hashed into.
        hashes: The buckets that have a row [n-gram row], ascending.
        cut: How text is cut into words: `words`, lower-cased as by WORD, or `blanks`, at white space as it is.
    """

    config_keys = ["precision", "order", "buckets", "cut"]

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
        if cut not in CUTS:
            raise ValueError(f"cut must be one of {', '.join(CUTS)}, was {cut!r}")
        ngrams = NgramTable(order, buckets, np.asarray(hashes), len(units))
        super().__init__(units, weight, precision, further=len(ngrams.hashes))
        self.ngrams, self.order, self.buckets, self.cut = ngrams, order, buckets, cut

    @property
    def hashes(self) -> np.ndarray:
        """The buckets that have a row [n-gram row], int64, ascending."""
        return self.ngrams.hashes

    def preprocess(self, inputs: Sequence[Any], prompt: str | None = None, **kwargs: Any) -> dict[str, Any]:
        """Look up the rows of each text's known words and n-grams: `input_ids` [unit] and `offsets` [sentence]."""
        texts = self._prepend_prompt(list(inputs), prompt) if prompt else inputs
        get = self._row_of.get
        split = words if self.cut == "words" else blank_tokens
        found = [[get(word, 0) for word in split(text)] for text in texts]
        offsets = np.cumsum([0, *map(len, found)])
        flat, bounds = self.ngrams.bags(np.array([row for each in found for row in each], np.int32), offsets)
        return {"input_ids": torch.from_numpy(flat).long(), "offsets": torch.from_numpy(bounds[:-1])}

    def stored_as(self, precision: str) -> NgramEmbedding:
        """Make the same encoder that `save` stores in another precision."""
        ngrams = self.ngrams
        return NgramEmbedding(
            self.units,
            self.weight,
            precision,
            order=ngrams.order,
            buckets=ngrams.buckets,
            hashes=ngrams.hashes,
            cut=self.cut,
        )

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write configuration, words and weights (always safetensors); the buckets lie beside the weights."""
        self._save_units(output_path)
        tensors = store(self.weight.cpu(), self.precision)
        save_file({**tensors, HASHES: torch.from_numpy(self.hashes)}, Path(output_path) / WEIGHTS_FILE)

    @classmethod
    def load(cls, model_name_or_path: str, **kwargs: Any) -> NgramEmbedding:
        """Read what `save` wrote, from a folder or the Hub."""
        config, units, stored = cls._read(model_name_or_path, HASHES, **kwargs)
        return cls(units, restore(stored), hashes=stored[HASHES], **config)
