"""Distill word vectors from a model into a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from paranmt_hf.corpus.reading import SIDES, Pairs, SelectionConfig
from paranmt_hf.encoders.distillation import DistillConfig, distill
from paranmt_hf.encoders.loading import load
from paranmt_hf.encoders.vocabulary import count_units, most_frequent
from paranmt_hf.errors import InputError
from paranmt_hf.vectors import WordVectors, write_vectors


def distill_vectors(
    model: str | Path,
    out: str | Path,
    *,
    data: Sequence[str | Path] | None = None,
    vocabulary: str | Path | None = None,
    config: DistillConfig | None = None,
) -> WordVectors:
    """Let a SentenceTransformer encode words one by one, and write a word-vector file.

    Args:
        model: Folder or Hub id.
        out: The file, in the text format of GloVe; `.gz` compresses it.
        data: Pairs whose most frequent words are taken.
        vocabulary: Or a file with a word in front of each line, most frequent first.
        config: The settings.

    Raises:
        InputError: Neither or both of `data` and `vocabulary` are given, or one cannot be read.
    """
    config = config or DistillConfig()
    if (data is None) == (vocabulary is None):
        raise InputError("give the words once: either as training data or as a vocabulary file")
    if vocabulary is not None:
        words = _read_words(Path(vocabulary), config.words)
    else:
        pairs = Pairs(list(data or ()), SelectionConfig())
        counts = count_units((table[side] for table in pairs.batches() for side in SIDES), ["word"])
        words = most_frequent("word", counts["word"], config.words).units[1:]
    encoder = load(model)

    def encode(texts: list[str]) -> np.ndarray:
        return encoder.encode(texts, batch_size=256, show_progress_bar=False)

    vectors = distill(words, encode, config)
    write_vectors(Path(out), vectors)
    return vectors


def _read_words(path: Path, limit: int) -> list[str]:
    words: dict[str, None] = {}
    try:
        with path.open(encoding="utf8") as lines:
            for line in lines:
                if fields := line.split():
                    words.setdefault(fields[0])
                if len(words) >= limit:
                    break
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the vocabulary {path}: {error}; expected UTF-8 text, a word a line") from None
    if not words:
        raise InputError(f"the vocabulary {path} is empty; expected a word in front of each line")
    return list(words)
