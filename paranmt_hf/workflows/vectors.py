"""Distill word vectors from a model into a file."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from paranmt_hf.corpus.pairs import SIDES, Pairs, SelectionConfig
from paranmt_hf.encoders.distillation import DistillConfig, distill
from paranmt_hf.encoders.loading import load
from paranmt_hf.encoders.vocabulary import count_units, most_frequent
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import check_regular
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
        data: Pairs whose most frequent words are taken first.
        vocabulary: A file with a word in front of each line, most frequent first, plain or `.gz`; its words follow.
        config: The settings.

    Raises:
        InputError: Neither `data` nor `vocabulary` is given, or one cannot be read.
    """
    config = config or DistillConfig()
    if Path(out).expanduser().is_dir():
        raise InputError(
            f"cannot write {out}: it is a folder; name a file in it, such as {Path(out) / 'vectors.txt.gz'}"
        )
    if not Path(out).expanduser().resolve().parent.is_dir():
        raise InputError(f"cannot write {out}: there is no folder {Path(out).parent}; make it first")
    if data is None and vocabulary is None:
        raise InputError("give training data or a vocabulary file (or both), from which the words are taken")
    words: dict[str, None] = {}
    if data is not None:
        pairs = Pairs(list(data), SelectionConfig())
        counts = count_units((table[side] for table in pairs.batches() for side in SIDES), ["word"])
        words |= dict.fromkeys(
            most_frequent("word", counts["word"], config.words, min_count=config.min_count).units[1:]
        )
    if vocabulary is not None:
        words |= dict.fromkeys(_read_words(Path(vocabulary), config.words))
    chosen = list(words)[: config.words]
    encoder = load(model)

    def encode(texts: list[str]) -> np.ndarray:
        return encoder.encode(texts, batch_size=256, show_progress_bar=False)

    vectors = distill(chosen, encode, config)
    write_vectors(Path(out), vectors)
    return vectors


def _read_words(path: Path, limit: int) -> list[str]:
    words: dict[str, None] = {}
    check_regular(path)
    try:
        with gzip.open(path, "rt", encoding="utf8") if path.suffix == ".gz" else path.open(encoding="utf8") as lines:
            for line in lines:
                if fields := line.split():
                    words.setdefault(fields[0])
                if len(words) >= limit:
                    break
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the vocabulary {path}: {error}; expected UTF-8 text, a word a line") from None
    if not words:
        raise InputError(f"the vocabulary {path} is empty; expected a word in front of each line")
    return list(words)
