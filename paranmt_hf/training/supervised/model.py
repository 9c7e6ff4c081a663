"""A model for a task: an encoder and the head over its vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from paranmt_hf.encoders.loading import load
from paranmt_hf.encoders.saving import save
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import locate
from paranmt_hf.training.supervised.head import Head, load_head, save_head


class SupervisedModel:
    """Predicts scores or classes of sentences or pairs of sentences.

    Args:
        encoder: Gives the vectors.
        head: Reads them.

    Raises:
        InputError: The head reads vectors of another width.
    """

    def __init__(self, encoder: SentenceEncoder, head: Head) -> None:
        width = encoder.get_embedding_dimension()
        if width != head.config.dimension:
            raise InputError(
                f"the head reads vectors of {head.config.dimension} dimensions, and the encoder's have {width}; put a "
                "whole copy of the model in its place"
            )
        self.encoder, self.head = encoder, head

    def predict(self, sentences: Sequence[str], others: Sequence[str] | None = None) -> np.ndarray:
        """Predict the score, as an expectation, or the name of the likeliest class.

        Args:
            sentences: Sentences [item].
            others: The second sentences [item] of a task about pairs.

        Returns:
            Scores [item], float64, of SICK-R in [1, 5]; or names of classes [item].

        Raises:
            InputError: The task is about pairs and there are no others, or the other way round, or the numbers differ.
        """
        found, config = self.probabilities(sentences, others), self.head.config
        if config.values is not None:
            return found @ np.array(config.values)
        return np.array(config.classes)[found.argmax(axis=1)]

    def probabilities(self, sentences: Sequence[str], others: Sequence[str] | None = None) -> np.ndarray:
        """Predict the probability of each class; arguments as for `predict`.

        Returns:
            Probabilities [item, class], float64; the classes' names are `head.config.classes`.
        """
        sides = [sentences] if others is None else [sentences, others]
        config = self.head.config
        if any(isinstance(side, str) for side in sides):
            raise InputError("expected a list of sentences, got a single one; put it into a list")
        if len(sides) != config.sides:
            expected = "two lists of sentences" if config.sides == 2 else "one list of sentences"
            raise InputError(f"a model of {config.task} reads {expected}, got {len(sides)}")
        if len({len(side) for side in sides}) > 1:
            raise InputError(
                f"expected as many first as second sentences, got {len(sides[0]):,} and {len(sides[1]):,}"
            )
        texts = list(dict.fromkeys(sentence for side in sides for sentence in side))
        if not texts:
            return np.empty((0, len(config.classes)))
        row_of = {text: row for row, text in enumerate(texts)}
        vectors = torch.from_numpy(np.asarray(self.encoder.encode(texts, show_progress_bar=False), np.float32))
        with torch.no_grad():
            shares = self.head(*(vectors[[row_of[text] for text in side]] for side in sides))
        return shares.double().exp().numpy()

    def save(self, folder: Path) -> None:
        """Write the encoder as a sentence-transformers model, and the head into `head` there."""
        save(self.encoder, folder)
        save_head(self.head, folder)


def load_supervised(name: str | Path, *, revision: str | None = None) -> SupervisedModel:
    """Load a model that `paranmt supervise` made, without running code of the model's.

    Args:
        name: Folder or Hub id.
        revision: Branch, tag or commit on the Hub.

    Raises:
        InputError: There is no such model, or it is damaged; with the file.
    """
    model = locate(name, revision)
    # First, because any encoder has a folder that loads, but not any has a head.
    head = load_head(model.folder)
    return SupervisedModel(load(model, device="cpu"), head)
