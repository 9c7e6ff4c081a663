"""TRIGRAM: average of character-trigram embeddings. ParaNMT-50M (Wieting & Gimpel 2018), section 4."""

from __future__ import annotations

from paranmt_hf.encoders.modules.average import AverageEmbedding
from paranmt_hf.text.definitions import character_ngrams


class TrigramEmbedding(AverageEmbedding):
    """Average of character-trigram embeddings, blanks between words included."""

    @staticmethod
    def split(text: str) -> list[str]:
        """Cut one text into character trigrams."""
        return character_ngrams(text)
