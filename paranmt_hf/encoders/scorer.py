"""Which encoder gives the paraphrase score, by name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from paranmt_hf.encoders.static_encoder import StaticEncoder
from paranmt_hf.encoders.vocabulary import UNKNOWN, AverageTable, Vocabulary
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import EMBEDDED, Model, locate
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.text.tokens import WordTokenizer
from paranmt_hf.text.word_vectors import WordVectors, knows_any, read_vectors
from paranmt_hf.util.files import checksum
from paranmt_hf.util.settings import Advanced, check
from paranmt_hf.util.yaml_files import card_header

if TYPE_CHECKING:
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder


@dataclass(frozen=True)
class ScorerConfig:
    """The encoder behind `para_score`.

    Attributes:
        name: Folder or Hub id of an encoder (default: the small encoder of this package).
        revision: Revision of an encoder on the Hub.
        vectors: Text file of word vectors (GloVe, word2vec, PARAGRAM), whose average is the encoder.
        device: cpu, cuda, cuda:N or mps.
    """

    name: str | None = None
    revision: Annotated[str | None, Advanced] = None
    vectors: str | None = None
    device: Annotated[str | None, Advanced] = None

    def __post_init__(self) -> None:
        check(self)
        if self.device is not None and not re.fullmatch(r"cpu|mps|cuda(:\d+)?", self.device):
            raise InputError(f"device must be cpu, cuda, cuda:N or mps, was {self.device!r}")
        if self.name and self.vectors:
            raise InputError("give either the `name` of an encoder or `vectors`, not both")

    @property
    def _name(self) -> str:
        return self.name or EMBEDDED

    @cached_property
    def model(self) -> Model:
        """The scorer's files."""
        return locate(self._name, self.revision)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What determines the scores, as JSON values."""
        if self.vectors:
            if not Path(self.vectors).is_file():
                raise InputError(f"vectors {self.vectors}: no such file; expected a text file of word vectors")
            return {
                "name": f"average of {Path(self.vectors).name}",
                "revision": f"sha256:{checksum(Path(self.vectors))}",
            }
        if self._name == EMBEDDED:
            return {"name": f"{self.model.name} (the encoder of paranmt-hf)", "revision": self.model.revision}
        return {"name": self.model.name, "revision": self.model.revision}

    def check_language(self, language: str) -> None:
        """Refuse an encoder of another language.

        Args:
            language: ISO 639-1 code of that of the corpus.
        """
        advice = (
            "give a scorer for it, such as sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2, or "
            "word vectors of it"
        )
        if self.vectors or language == "en":
            return
        if self._name == EMBEDDED:
            raise InputError(
                f"the small encoder of this package is for English, not for language {language}: {advice}"
            )
        known = _stated_languages(self.model.folder / "README.md")
        if known and not {language, "multilingual"} & known:
            raise InputError(
                f"the scorer {self.model.name!r} is for {', '.join(sorted(known))}, as its card says, and not for "
                f"{language}: {advice}"
            )

    def check_knows(self, sentences: list[str], tokenizer: WordTokenizer | None = None) -> None:
        """Refuse a file of word vectors that is not for this text.

        Args:
            sentences: Some of the corpus.
            tokenizer: Cuts them into words; without it as in English.
        """
        if not self.vectors:
            return
        table = (tokenizer or WordTokenizer()).tables(sentences)[0]
        if not knows_any(self.vectors, table.vocabulary):
            # What is wrong with a file that is none is said first.
            read_vectors(self.vectors, limit=1)
            shown = ", ".join(map(repr, table.vocabulary[:3]))
            raise InputError(
                f"--vectors {self.vectors} knows none of the {len(table.vocabulary):,} words of the first "
                f"{len(sentences):,} references, such as {shown}; expected vectors of words of their language"
            )

    def load(self) -> Encoder:
        """Load the encoder."""
        _check_device(self.device)
        if self.vectors:
            return StaticEncoder([word_table(read_vectors(self.vectors))])
        if self.device in (None, "cpu"):
            static = StaticEncoder.read(self.model)
            if static is not None and static.splits_words and not static.settings.get("default_prompt_name"):
                return static
        from paranmt_hf.encoders.loading import load

        return BatchScorer(load(self.model, device=self.device))


def _stated_languages(card: Path) -> set[str]:
    """Languages that the header of a model's card names; none where it names none."""
    stated = card_header(card).get("language") or []
    return {str(code) for code in (stated if isinstance(stated, list) else [stated])}


def _check_device(device: str | None) -> None:
    """Refuse a device that is not there."""
    if device is None or device == "cpu":
        return
    import torch

    number = int(device.partition(":")[2] or 0)
    there = torch.backends.mps.is_available() if device == "mps" else number < torch.cuda.device_count()
    if not there:
        raise InputError(
            f"--scorer-device {device}: torch sees {torch.cuda.device_count()} GPUs here; leave it out, or give cpu"
        )


def word_table(vectors: WordVectors) -> AverageTable:
    """Make the table of the WORD encoder of word vectors.

    Unknown words share the vector that the file has for them; without one they shorten averages and do not turn them.
    """
    # Row 0 has this name, which a word of a file may have too.
    known = [row for row, word in enumerate(vectors.words) if word != UNKNOWN]
    weight = np.zeros((len(known) + 1, vectors.matrix.shape[1]), np.float32)
    weight[1:] = vectors.matrix[known]
    if vectors.unknown is not None:
        weight[0] = vectors.unknown
    units = [UNKNOWN, *(vectors.words[row] for row in known)]
    return AverageTable(Vocabulary("word", units), weight)


class BatchScorer:
    """An encoder of sentence-transformers with the batch size of a scorer."""

    def __init__(self, encoder: SentenceEncoder) -> None:
        self._encoder = encoder

    def encode(self, sentences: list[str]) -> np.ndarray:
        """Encode sentences into vectors [sentence, dimension]."""
        return self._encoder.encode(sentences, batch_size=256, show_progress_bar=False)
