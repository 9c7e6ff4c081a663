"""Which encoder gives the paraphrase score, by name."""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paranmt_hf.encoders.contents import module_list
from paranmt_hf.encoders.tables import Table, Tables, read_tables
from paranmt_hf.encoders.vocabulary import UNKNOWN, Vocabulary
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import EMBEDDED, Model, locate
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.text.tokens import TokenTable, WordTokenizer
from paranmt_hf.text.word_vectors import WordVectors, knows_any, read_vectors
from paranmt_hf.util.files import checksum
from paranmt_hf.util.settings import check, setting
from paranmt_hf.util.yaml_files import card_header

if TYPE_CHECKING:
    from paranmt_hf.encoders.composition import Composition
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

# So many sentences are encoded without torch. Up to 400,000 would be sooner without it, but how many will come is not
# known, and fewer than a full shard of a large job leave that as fast as it is with torch from its beginning.
FEW = 10_000


@dataclass(frozen=True)
class ScorerConfig:
    """The encoder behind `para_score`."""

    name: str | None = setting(
        None, "encoder folder or Hub id; without it and --vectors, the small encoder of this package"
    )
    revision: str | None = setting(None, "revision of a scorer on the Hub")
    vectors: str | None = setting(
        None, "word-vector text file (GloVe, word2vec, PARAGRAM); the scorer is their average"
    )
    device: str | None = setting(None, "cpu, cuda, cuda:N or mps")

    def __post_init__(self) -> None:
        check(self)
        if self.device is not None and not re.fullmatch(r"cpu|mps|cuda(:\d+)?", self.device):
            raise InputError(f"--scorer-device must be cpu, cuda, cuda:N or mps, was {self.device!r}")
        if self.name and self.vectors:
            raise InputError("give either --scorer or --vectors, not both: a corpus has one paraphrase score")

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
                raise InputError(f"--vectors {self.vectors}: no such file; expected a text file of word vectors")
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

        Raises:
            InputError: It is the English encoder of this package, or its card names other languages.
        """
        advice = (
            "give --scorer an encoder for it, such as sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2, or "
            "word vectors of it with --vectors"
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

        Raises:
            InputError: It has no vector for any of their words.
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
        """Load the encoder.

        Raises:
            InputError: It cannot be found or read, or would need code or pickles from outside.
        """
        _check_device(self.device)
        if self.vectors:
            return FastScorer(tables_of(read_vectors(self.vectors)))
        if self.device in (None, "cpu"):
            # Rows that need no module are read without sentence-transformers, whose import takes seconds.
            tables = read_tables(self.model.folder, module_list(self.model.folder, self.model.name))
            if tables is not None and tables.cuts_words:
                return FastScorer(tables)
        from paranmt_hf.encoders.loading import load

        encoder = load(self._name, revision=self.revision, device=self.device)
        composition = encoder.composition
        if composition is not None and composition.is_bag and composition.cuts_words and encoder.device.type == "cpu":
            return FastScorer(composition)
        return SlowScorer(encoder)


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


def tables_of(vectors: WordVectors) -> Tables:
    """Make the rows of the WORD encoder of word vectors.

    Unknown words share the vector that the file has for them; without one they shorten averages and do not turn them.
    """
    # The name of row 0, where a file has a word of that name.
    known = [row for row, word in enumerate(vectors.words) if word != UNKNOWN]
    weight = np.zeros((len(known) + 1, vectors.matrix.shape[1]), np.float32)
    weight[1:] = vectors.matrix[known]
    if vectors.unknown is not None:
        weight[0] = vectors.unknown
    units = [UNKNOWN, *(vectors.words[row] for row in known)]
    return Tables([Table(Vocabulary("word", units), weight, "float32")], None, {})


class FastScorer:
    """An averaging encoder, which starts from word tokens that were cut already.

    A few sentences are encoded without torch, whose import takes longer than they do; the vectors are the same.

    Args:
        encoder: An encoder whose parts all average words of `text.py`.
    """

    def __init__(self, encoder: Composition | Tables) -> None:
        from paranmt_hf.encoders.fast import FastAverage

        self._average = FastAverage(encoder)
        self._encoded = 0

    def encode(self, sentences: list[str]) -> np.ndarray:
        """Encode sentences into vectors [sentence, dimension], float32."""
        self._count(len(sentences))
        return self._average.encode(sentences)

    def encode_tokens(self, tokens: TokenTable) -> np.ndarray:
        """Encode tokenised sentences into vectors [sentence, dimension], float32."""
        self._count(len(tokens))
        return self._average.encode_tokens(tokens)

    def _count(self, sentences: int) -> None:
        """Import torch, with which gathering is faster, as soon as that pays."""
        self._encoded += sentences
        if self._encoded >= FEW:
            importlib.import_module("torch")


class SlowScorer:
    """Any other encoder."""

    def __init__(self, encoder: SentenceEncoder) -> None:
        self._encoder = encoder

    def encode(self, sentences: list[str]) -> np.ndarray:
        """Encode sentences into vectors [sentence, dimension]."""
        return self._encoder.encode(sentences, batch_size=256, show_progress_bar=False)
