"""An encoder that is given by a name: a folder, an id on the Hub, or a file of word vectors."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paranmt_hf.encoders.static_encoder import StaticEncoder
from paranmt_hf.encoders.vocabulary import UNKNOWN, AverageTable, Vocabulary
from paranmt_hf.errors import InputError
from paranmt_hf.hub.client import is_id, perhaps_path, split_revision
from paranmt_hf.hub.repository import (
    ASSETS,
    CARRIED,
    LANGUAGES_OF,
    MULTILINGUAL,
    SMALL,
    Model,
    encoder_for,
    is_carried,
    locate,
)
from paranmt_hf.text.definitions import is_piece
from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.text.tokens import WordTokenizer
from paranmt_hf.text.word_vectors import WordVectors, knows_any, read_vectors
from paranmt_hf.util.files import checksum
from paranmt_hf.util.yaml_files import card_header

if TYPE_CHECKING:
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder


@dataclass(frozen=True)
class NamedEncoder:
    """An encoder that is given by a name, such as that of `para_score`; its files are located when they are needed."""

    # Folder; Hub id, which `@` and a revision may follow; or file of word vectors (GloVe, word2vec, PARAGRAM), which
    # the encoder averages. The names of `CARRIED` are encoders of this package.
    name: str = str(SMALL)

    @classmethod
    def of(cls, name: str | Path | None, language: str = ENGLISH) -> NamedEncoder:
        """Make the encoder of the name that a caller gave; None is the one of this package for a language.

        Args:
            name: The name.
            language: ISO 639-1 code.
        """
        return cls(str(encoder_for(language) if name is None else name))

    @classmethod
    def for_languages(cls, name: str | Path | None, languages: Collection[str]) -> NamedEncoder:
        """Make the encoder of the name that a caller gave, and check that it is for some languages.

        Args:
            name: The name; None is the encoder of this package for the languages.
            languages: ISO 639-1 codes, such as those of corpora; none if they are not known.
        """
        several = ASSETS / MULTILINGUAL if len({*languages}) > 1 else None
        named = cls.of(several if name is None else name, next(iter(languages), ENGLISH))
        for language in languages:
            named.check_language(language)
        return named

    @property
    def is_carried(self) -> bool:
        """Whether it is one of the encoders that this package carries."""
        return is_carried(self.name, "encoder")

    @property
    def _path(self) -> Path | None:
        """The existing file or folder of this name; None if there is none, or the encoder is one of this package."""
        path = Path(self.name).expanduser()
        return path if not self.is_carried and path.exists() else None

    @cached_property
    def vectors(self) -> Path | None:
        """The file of word vectors; None for other kinds of encoders."""
        return self._path if self._path is not None and self._path.is_file() else None

    @cached_property
    def model(self) -> Model:
        """The files of the encoder, from a folder or the Hub; not for a file of word vectors.

        Raises:
            InputError: There is no such encoder.
        """
        if not self.is_carried and self._path is None and not is_id(split_revision(self.name)[0]):
            raise InputError(
                f"no encoder {self.name!r}: expected a folder or a file of word vectors that exists, a Hub id like "
                f"'organisation/name', or one of the package: {', '.join(CARRIED['encoder'])}"
                f"{perhaps_path(self.name, *CARRIED['encoder'])}"
            )
        return locate(self.name)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What determines the vectors, as JSON values: the name of the encoder, and its commit or checksum."""
        if self.vectors:
            return {"name": f"average of {self.vectors.name}", "revision": f"sha256:{checksum(self.vectors)}"}
        suffix = " (an encoder of paranmt-hf)" if self.is_carried else ""
        return {"name": f"{self.model.name}{suffix}", "revision": self.model.revision}

    @property
    def found_anywhere(self) -> NamedEncoder:
        """The same encoder by a name that does not depend on the working directory."""
        return self if self._path is None else NamedEncoder(str(self._path.resolve()))

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """Languages of the encoder (ISO 639-1), by its card or this package; none for word vectors, or if unknown."""
        if self.vectors:
            return ()
        if self.is_carried:
            return LANGUAGES_OF[Path(self.name).name]
        stated = card_header(self.model.folder / "README.md").get("language") or []
        codes = stated if isinstance(stated, list) else [stated]
        return tuple(sorted({str(code).split("-")[0] for code in codes}))

    def check_language(self, language: str) -> None:
        """Reject an encoder whose card, or package, says that it is for another language than that of the corpus.

        Args:
            language: ISO 639-1 code of the language of the corpus.
        """
        known = self.languages
        if not known or {language, "multilingual"} & {*known}:
            return
        carried = " or ".join(name for name, languages in LANGUAGES_OF.items() if language in languages)
        advice = "give an encoder for it, such as what `paranmt distill` makes, or word vectors of it"
        raise InputError(
            f"the encoder {self.model.name} is for {', '.join(known)}, and not for language {language}: "
            f"{f'take {carried} of this package' if carried else advice}, or correct `language`"
        )

    def check_knows(self, sentences: list[str], tokenizer: WordTokenizer) -> None:
        """Reject a file of word vectors that has none of the words of these sentences of the corpus.

        Args:
            sentences: The first sentences of the corpus.
            tokenizer: Splits them into words.
        """
        if not self.vectors:
            return
        (table,) = tokenizer.tables(sentences)
        if not knows_any(self.vectors, table.vocabulary):
            read_vectors(self.vectors, limit=1)  # Raises its own error if the file holds no vectors at all
            shown = ", ".join(map(repr, table.vocabulary[:3]))
            raise InputError(
                f"the word vectors {self.vectors} know none of the {len(table.vocabulary):,} words of the first "
                f"{len(sentences):,} references, such as {shown}; expected vectors of words of their language"
            )

    def load(self) -> Encoder:
        """Load the encoder: an averaging one on the CPU, any other on the best device that torch finds."""
        if self.vectors:
            return StaticEncoder([word_table(read_vectors(self.vectors))])
        static = StaticEncoder.read(self.model)
        if static is not None and static.splits_words and not static.settings.get("default_prompt_name"):
            return static
        from paranmt_hf.encoders.loading import load

        return WithoutProgressBar(load(self.model), 256)


def word_table(vectors: WordVectors) -> AverageTable:
    """Build the table of the WORD encoder from word vectors.

    Unknown words share the vector that the file has for them. If it has none, that is zeros: an unknown word makes the
    average shorter and does not change its direction.
    """
    # Leave out a word with the name of row 0, and words such as `##ing`, which would be read as pieces.
    known = [row for row, word in enumerate(vectors.words) if word != UNKNOWN and not is_piece(word)]
    weight = np.zeros((len(known) + 1, vectors.matrix.shape[1]), np.float32)
    weight[1:] = vectors.matrix[known]
    if vectors.unknown is not None:
        weight[0] = vectors.unknown
    units = [UNKNOWN, *(vectors.words[row] for row in known)]
    return AverageTable(Vocabulary("word", units), weight)


class WithoutProgressBar:
    """Wraps a sentence-transformers encoder so that it encodes with a given batch size and without a progress bar."""

    def __init__(self, encoder: SentenceEncoder, batch_size: int = 128) -> None:
        self._encoder, self._batch_size = encoder, batch_size

    def encode(self, sentences: list[str]) -> np.ndarray:
        """Encode sentences into vectors [sentence, dimension]."""
        return self._encoder.encode(sentences, batch_size=self._batch_size, show_progress_bar=False)
