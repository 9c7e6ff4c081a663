"""A model for a supervised task: a sentence encoder, and a classifier over its vectors.

PARAGRAM-PHRASE (Wieting et al. 2016, arXiv:1511.08198), section 4.4; for pairs the layers of Tai et al. (2015,
arXiv:1503.00075), section 4.2.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from paranmt_hf.encoders.loading import load
from paranmt_hf.encoders.saving import save
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.errors import InputError, refuse
from paranmt_hf.hub.push import PushedFromFolder
from paranmt_hf.hub.repository import locate
from paranmt_hf.supervised.config import CONFIG_FILE, HEAD_FOLDER, WEIGHTS_FILE
from paranmt_hf.text.text_lists import list_of_texts
from paranmt_hf.util.files import share_weights
from paranmt_hf.util.records import from_json, read_json
from paranmt_hf.util.wording import counted


@dataclass(frozen=True)
class HeadConfig:
    """The task, the classes and the sizes of a head.

    Attributes:
        task: The task that it was trained on.
        classes: Name of each class.
        values: The score that each class stands for, where predictions are expectations of scores; else None.
        sides: Number of sentences of an item: 1 or 2.
        dimension: Dimensions of a sentence vector.
        projection: Dimensions that a linear layer maps it to first; None for no such layer.
        hidden: Width of the sigmoid layer.
    """

    task: str
    classes: list[str]
    values: list[float] | None
    sides: int
    dimension: int
    projection: int | None
    hidden: int


class Head(nn.Module):
    """A sigmoid layer and a softmax over features of sentence vectors.

    For two sentences with the vectors u and v the features are |u - v| and u * v, for one sentence its vector u. With
    `projection`, a linear layer first maps the vectors to another width (table 6).

    Args:
        config: Sizes of its layers, and its classes.
    """

    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        self.config = config
        self.project = nn.Linear(config.dimension, config.projection) if config.projection else None
        features = (config.projection or config.dimension) * config.sides
        self.hidden = nn.Linear(features, config.hidden)
        self.output = nn.Linear(config.hidden, len(config.classes))

    def forward(self, *sides: torch.Tensor) -> torch.Tensor:
        """Predict the classes of items.

        Args:
            sides: Sentence vectors [item, dimension], one tensor for each side.

        Returns:
            Logarithms of the classes' probabilities [item, class].
        """
        vectors = sides if self.project is None else tuple(self.project(side) for side in sides)
        first = vectors[0]
        if len(vectors) == 2:
            first = torch.cat([(first - vectors[1]).abs(), first * vectors[1]], dim=1)
        logits: torch.Tensor = self.output(torch.sigmoid(self.hidden(first)))
        return logits.log_softmax(dim=1)

    def save(self, folder: Path) -> None:
        """Write the configuration as JSON and the weights as safetensors, into the folder `head` inside `folder`."""
        inner = folder / HEAD_FOLDER
        inner.mkdir()
        (inner / CONFIG_FILE).write_text(
            f"{json.dumps(asdict(self.config), indent=2)}\n", encoding="utf8", newline="\n"
        )
        save_file({name: weight.contiguous() for name, weight in self.state_dict().items()}, inner / WEIGHTS_FILE)
        share_weights(inner)

    @classmethod
    def load(cls, folder: Path) -> Head:
        """Read what `save` wrote.

        Raises:
            InputError: A file is missing or damaged, or a weight is not finite.
        """
        path = folder / HEAD_FOLDER / CONFIG_FILE
        config = from_json(HeadConfig, read_json(path, "the folder of a model made by `paranmt supervise`"), path)
        # On the device `meta` it takes no memory until weights are loaded: a damaged configuration may name any width.
        with torch.device("meta"):
            head = cls(config)
        weights = path.with_name(WEIGHTS_FILE)
        try:
            head.load_state_dict(load_file(weights), assign=True)
            for name, weight in head.state_dict().items():
                broken = not bool(weight.float().isfinite().all())
                message = f"{weights}: {name!r} holds a number that is not finite; train the model again"
                refuse(broken, message, path=weights)
        except (SafetensorError, OSError, RuntimeError) as error:
            reason = str(error).strip().split("\n")[-1].strip()
            raise InputError(f"cannot read {weights}: {reason}; copy the whole model again", path=weights) from None
        return head.float().eval()


def new_head(config: HeadConfig, seed: int) -> Head:
    """Create a head with random weights, which the seed determines."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Head(config)


class SupervisedModel(PushedFromFolder):
    """A sentence encoder and a head, which predict scores or classes of sentences or of pairs of sentences.

    Args:
        encoder: The encoder.
        head: The head, for vectors of its dimension.
    """

    def __init__(self, encoder: SentenceEncoder, head: Head) -> None:
        width = encoder.get_embedding_dimension()
        refuse(
            width != head.config.dimension,
            f"the head reads vectors of {head.config.dimension} dimensions, and the encoder's have {width}; copy the "
            "whole model again",
        )
        self.encoder, self.head = encoder, head

    def predict(self, sentences: Iterable[str], others: Iterable[str] | None = None) -> np.ndarray:
        """Predict the score of each item, or the name of its most probable class.

        Args:
            sentences: Sentences [item].
            others: The second sentences [item] of a task about pairs.

        Returns:
            For a similarity task scores [item], float64, such as SICK-R's in [1, 5]; for others names of classes
            [item].
        """
        shares = self.probabilities(sentences, others)
        if self.head.config.values is not None:
            return shares @ np.array(self.head.config.values)
        return np.array(self.head.config.classes)[shares.argmax(axis=1)]

    def probabilities(self, sentences: Iterable[str], others: Iterable[str] | None = None) -> np.ndarray:
        """Predict the probability of each class; arguments as in `predict`.

        Returns:
            Probabilities [item, class], float64; the names of the classes are `head.config.classes`.
        """
        sides = [list_of_texts(sentences, "sentences")]
        if others is not None:
            sides.append(list_of_texts(others, "others"))
        config = self.head.config
        expected = f"a model of {config.task} reads {counted(config.sides, 'list')} of sentences, got {len(sides)}"
        refuse(len(sides) != config.sides, expected)
        sizes = " and ".join(f"{len(side):,}" for side in sides)
        refuse(len(sides[0]) != len(sides[-1]), f"expected as many first as second sentences, got {sizes}")
        if not sides[0]:
            return np.empty((0, len(config.classes)))
        # Encode each distinct sentence once, because one is often compared with many.
        places: dict[str, int] = {}
        rows = []
        for side in sides:
            rows.append([places.setdefault(sentence, len(places)) for sentence in side])
        encoded = np.asarray(self.encoder.encode(list(places), show_progress_bar=False), np.float32)
        vectors = [encoded[side] for side in rows]
        with torch.no_grad():
            shares = self.head(*map(torch.from_numpy, vectors))
        return shares.double().exp().numpy()

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the encoder as a sentence-transformers model, and the head into the folder `head` inside it."""
        folder = Path(folder)
        save(self.encoder, folder)
        self.head.save(folder)

    @classmethod
    def from_pretrained(cls, name: str | Path, *, revision: str | None = None) -> SupervisedModel:
        """Load a model of `paranmt supervise` without running custom code.

        Args:
            name: Folder or Hub id.
            revision: Branch, tag or commit on the Hub.
        """
        model = locate(name, revision)
        # Load the head first: an encoder without a head would load, and the error is about the head.
        head = Head.load(model.folder)
        found = cls(load(model, device="cpu"), head)
        found.files = model
        return found
