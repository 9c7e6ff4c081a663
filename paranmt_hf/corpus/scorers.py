"""Which encoder gives the paraphrase score, by name."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from paranmt_hf.corpus.scores import Encoder, WordAverage
from paranmt_hf.errors import InputError
from paranmt_hf.models import Model, locate
from paranmt_hf.vectors import fingerprint, read_vectors

STAND_IN = "stand-in"
# Chosen on STS 2017 track 5.
FREQUENCY = 1e-2


@dataclass(frozen=True)
class ScorerConfig:
    """The encoder behind `para_score`."""

    scorer: str | None = field(
        default=None,
        metadata={"help": "SentenceTransformer folder or Hub id; without it and --vectors, a small stand-in"},
    )
    scorer_revision: str | None = field(default=None, metadata={"help": "revision of a scorer on the Hub"})
    vectors: str | None = field(
        default=None,
        metadata={"help": "word-vector text file (GloVe, word2vec, PARAGRAM); the scorer is their average"},
    )
    scorer_device: str | None = field(default=None, metadata={"help": "torch device of the scorer"})

    def __post_init__(self) -> None:
        if self.scorer and self.vectors:
            raise InputError("give either --scorer or --vectors, not both: a corpus has one paraphrase score")

    @cached_property
    def model(self) -> Model:
        """The scorer's files."""
        return locate(self.scorer or "embedded", self.scorer_revision)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What determines the scores, as JSON values."""
        if self.vectors:
            if not Path(self.vectors).is_file():
                raise InputError(f"--vectors {self.vectors}: no such file; expected a text file of word vectors")
            return {"name": f"average of {Path(self.vectors).name}", "revision": f"sha256:{fingerprint(self.vectors)}"}
        if self.scorer is None:
            name = f"{STAND_IN} (average of the embedded translator's piece embeddings)"
            return {"name": name, "revision": self.model.revision}
        return {"name": self.model.name, "revision": self.model.revision}

    def load(self) -> Encoder:
        """Load the encoder.

        Raises:
            InputError: It cannot be found or read, or would need code or pickles from outside.
        """
        if self.vectors:
            vectors = read_vectors(self.vectors)
            return WordAverage(vectors.words, vectors.matrix)
        if self.scorer is None:
            return PieceAverage(self.model.folder)
        return SentenceTransformerScorer(self.model, self.scorer_device)


class PieceAverage:
    """Stand-in scorer: weighted average of a small translator's target-piece embeddings.

    It needs nothing beyond what the package carries. Pearson 0.71 on STS 2017 track 5, which is of the kind of text
    that the translator knows; on other text it sees little more than which pieces two sentences share.

    Args:
        folder: A Marian model with `target.spm`, `vocab.json` and `model.safetensors`.
    """

    def __init__(self, folder: Path) -> None:
        import sentencepiece
        from safetensors.numpy import load_file

        self._pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "target.spm"))
        matrix = load_file(folder / "model.safetensors")["model.shared.weight"].astype(np.float32)
        count = self._pieces.get_piece_size()
        probabilities = np.exp([self._pieces.get_score(number) for number in range(count)])
        # Frequent pieces count less: Arora et al. 2017, "A simple but tough-to-beat baseline", equation 3.
        weights = FREQUENCY / (FREQUENCY + probabilities)
        weights[[self._pieces.unk_id(), self._pieces.eos_id()]] = 0
        self._matrix = matrix[:count] * weights[:, None].astype(np.float32)

    def encode(self, sentences: list[str]) -> np.ndarray:
        """Encode sentences into vectors [sentence, dimension], float32."""
        rows = self._pieces.encode(sentences)
        return np.stack([self._matrix[row].sum(axis=0) for row in rows])


class SentenceTransformerScorer:
    """Any sentence-transformers model; no code from the model runs, no pickle is read."""

    def __init__(self, model: Model, device: str | None = None) -> None:
        _check_modules(model)
        from sentence_transformers import SentenceTransformer

        try:
            self._model = SentenceTransformer(
                str(model.folder), device=device, local_files_only=True, model_kwargs={"use_safetensors": True}
            )
        except Exception as error:
            raise InputError(
                f"{model.name} cannot be loaded as a SentenceTransformer: {type(error).__name__}: {_first_line(error)}"
            ) from error

    def encode(self, sentences: list[str]) -> np.ndarray:
        """Encode sentences into vectors [sentence, dimension]."""
        return self._model.encode(sentences, batch_size=256, show_progress_bar=False, convert_to_numpy=True)


def _check_modules(model: Model) -> None:
    """Refuse what is no SentenceTransformer, and one whose modules are code of its own."""
    try:
        modules = json.loads((model.folder / "modules.json").read_text(encoding="utf8"))
        types = [str(module["type"]) for module in modules]
    except (OSError, ValueError, TypeError, KeyError):
        raise InputError(
            f"{model.name} cannot be loaded as a SentenceTransformer: it has no readable modules.json; a plain "
            "transformers model has no sentence vectors of its own"
        ) from None
    if foreign := [kind for kind in types if not kind.startswith("sentence_transformers.")]:
        raise InputError(
            f"{model.name} needs code of its own ({', '.join(foreign)}), which is not run; choose another scorer"
        )


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
