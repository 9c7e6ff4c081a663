"""Where a head's sentence vectors come from: an encoder that is trained with it, or vectors that stay as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
import torch
from torch import nn

from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.tokens import Bags
from paranmt_hf.training.optimizers import leave_first_row

if TYPE_CHECKING:
    from paranmt_hf.training.trainer import Reading

# Sentences that are encoded at once without gradients.
BLOCK = 1000
Centre = Literal["zero", "initial"]


class Source(Protocol):
    """Gives vectors of sentences by their index.

    Attributes:
        tables: Embeddings that are trained, one parameter [row, dimension] for each.
        dense: Compositional parameters that are trained, of each part of an encoder.
        centres: What penalties pull those of each part towards, unless the settings say it.
    """

    tables: list[nn.Parameter]
    dense: list[list[nn.Parameter]]
    centres: list[Centre]

    def vectors(self, sentences: np.ndarray) -> torch.Tensor:
        """Encode sentences [sentence] in training: [sentence, dimension], with gradients."""
        ...

    def all_vectors(self, sentences: np.ndarray) -> torch.Tensor:
        """Encode sentences [sentence] in use: [sentence, dimension], without gradients."""
        ...


class FixedVectors:
    """Vectors that stay as they are.

    Args:
        matrix: Vectors [sentence, dimension].
    """

    def __init__(self, matrix: torch.Tensor) -> None:
        self._matrix = matrix
        self.tables: list[nn.Parameter] = []
        self.dense: list[list[nn.Parameter]] = []
        self.centres: list[Centre] = []

    def vectors(self, sentences: np.ndarray) -> torch.Tensor:
        """See `Source`."""
        return self._matrix[torch.from_numpy(sentences)]

    def all_vectors(self, sentences: np.ndarray) -> torch.Tensor:
        """See `Source`."""
        return self.vectors(sentences)


class TrainedEncoder:
    """An encoder under training, over sentences that were cut into rows once.

    Only the rows of the sentences' units are kept in its tables meanwhile. The others have no gradient and, where
    tables are pulled back to where they began, no penalty: with them there the result would be the same, and a step
    would take as long as the whole table.

    Args:
        model: The encoder; `put_back` makes it whole again.
        readings: How its parts get their features.
        bags: All sentences as rows, for each reader.
    """

    def __init__(self, model: SentenceEncoder, readings: Sequence[Reading], bags: Mapping[str, Bags]) -> None:
        self._model, self._readings = model, readings
        # Row 0 keeps its place: it is for unknown units, and sequences are padded with it.
        self._used = {name: np.union1d([0], own.rows) for name, own in bags.items()}
        self._bags = {
            name: Bags(np.searchsorted(self._used[name], own.rows).astype(np.int32), own.offsets)
            for name, own in bags.items()
        }
        lengths = [np.diff(own.offsets) for own in bags.values()]
        self._lengths = np.max(lengths, axis=0)
        self._whole = [(reading, reading.table.weight.data) for reading in readings]
        self.tables: list[nn.Parameter] = []
        for reading, weight in self._whole:
            rows = torch.from_numpy(self._used[reading.reader])
            self.tables.append(nn.Parameter(weight[rows]))
            reading.table.weight = self.tables[-1]
            if not bool(weight[0].any()):
                leave_first_row(self.tables[-1])
        self.dense = [list(reading.weights) for reading in readings]
        self.centres = [reading.centre for reading in readings]

    def vectors(self, sentences: np.ndarray) -> torch.Tensor:
        """See `Source`."""
        self._model.train()
        return self._forward(sentences)

    @torch.no_grad()
    def all_vectors(self, sentences: np.ndarray) -> torch.Tensor:
        """See `Source`; sorted by length, so that little is computed for padding."""
        self._model.eval()
        order = np.argsort(-self._lengths[sentences], kind="stable")
        ordered = sentences[order]
        parts = [self._forward(ordered[start : start + BLOCK]) for start in range(0, len(ordered), BLOCK)]
        return torch.cat(parts)[torch.from_numpy(np.argsort(order))]

    def _forward(self, sentences: np.ndarray) -> torch.Tensor:
        features: dict[str, torch.Tensor] = {}
        for reading in self._readings:
            bags = self._bags[reading.reader].take(sentences)
            for name, value in reading.features(bags.rows, bags.offsets).items():
                features[name + reading.suffix] = value
        vectors: torch.Tensor = self._model(features)["sentence_embedding"]
        return vectors

    def put_back(self) -> None:
        """Make the encoder whole again, its trained rows in their places."""
        for reading, weight in self._whole:
            weight[torch.from_numpy(self._used[reading.reader])] = reading.table.weight.data
            reading.table.weight = nn.Parameter(weight)
        self._model.eval()
        self._model.forget_average()
