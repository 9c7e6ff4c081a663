"""Distill word vectors from models into a file."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.reading.pairs import Pairs, PairSelection
from paranmt_hf.corpus.reading.sentences import SentenceSources
from paranmt_hf.distillation.reduction import (
    VectorsConfig,
    check_reduction,
    encode_words,
    reduce_alone,
    reduce_in_context,
)
from paranmt_hf.encoders.named_encoder import WithoutProgressBar
from paranmt_hf.encoders.units import count_units, lookup
from paranmt_hf.encoders.vocabulary import UNKNOWN, Vocabulary, most_frequent
from paranmt_hf.errors import refuse
from paranmt_hf.hub.repository import Model, locate
from paranmt_hf.text.definitions import is_piece
from paranmt_hf.text.tokens import WordTokenizer
from paranmt_hf.text.word_vectors import WordVectors, read_vectors, write_vectors
from paranmt_hf.training.checkpoint import CheckpointFile
from paranmt_hf.training.inputs import sentences_of
from paranmt_hf.training.text import PairsAndText
from paranmt_hf.util.files import decode_line, listed, open_lines, result_file, shown_path
from paranmt_hf.util.records import FileRecord, as_json, made_with
from paranmt_hf.util.run import Result, run
from paranmt_hf.util.wording import counted

if TYPE_CHECKING:
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

# Minimum number of sentences, if the text has them, from whose averages principal components are computed
SAMPLE = 50_000


@dataclass(frozen=True)
class VectorsSettings:
    """Everything that determines distilled vectors.

    Attributes:
        models: Commits or checksums of the encoders.
        words: Checksum of the words, in order.
        text: The identity of the sentences that words are read in, with checksums; None if they are read alone.
        config: How they are distilled.
    """

    models: list[str]
    words: str
    text: dict[str, Any] | None
    config: VectorsConfig


@dataclass(frozen=True, kw_only=True)
class VectorsRecord(FileRecord):
    """The record of a file of distilled vectors.

    Attributes:
        models: Names of the encoders.
        words: Number of words.
        dimension: Dimensions of a vector.
    """

    KIND: ClassVar[str] = "word vectors (`paranmt encoder vectors`)"

    settings: VectorsSettings
    models: list[str]
    words: int
    dimension: int


class DistilledVectors(Result[VectorsRecord]):
    """A file of word vectors distilled from encoders."""

    @cached_property
    def vectors(self) -> WordVectors:
        """The vectors, read from the file."""
        return read_vectors(self.folder)

    def summary(self) -> str:
        """Return the path of the file, and its numbers of words and dimensions."""
        words, dimensions = counted(self.record.words, "word"), counted(self.record.dimension, "dimension")
        return f"{shown_path(self.folder)}: {words}, {dimensions}"


def distill_vectors(
    models: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    data: Sequence[str | Path] | None = None,
    text: Sequence[str | Path] | None = None,
    vocabulary: str | Path | None = None,
    exclude: str | Path | None = None,
    config: VectorsConfig | None = None,
) -> DistilledVectors:
    """Distill word vectors from SentenceTransformers, which encode words alone or in sentences.

    What the encoders gave is kept in `<out>.work`; after an interruption the same command continues with it, and the
    result has the same bytes.

    Args:
        models: Folders or Hub ids; the vectors of several are concatenated and reduced together.
        out: The file, in the text format of GloVe; `.gz` compresses it.
        data: Pairs whose most frequent words are taken first, as `paranmt train` takes them.
        text: Sentences whose words are counted with them: text files with one on a line, Parquet, corpora.
        vocabulary: File with a word at the start of each line, most frequent first, plain or `.gz`; its words follow.
        exclude: Folder with STS sets: leave out pairs with their sentences, and text that shares eight words in a row
            with one.
        config: The settings.
    """
    config = config or VectorsConfig()
    names = listed(models)
    out = result_file(out, sources=names)
    refuse(
        data is None and text is None and vocabulary is None,
        "give training data, text or a vocabulary file (or several of these), from which the words are taken",
    )
    unwanted = sentences_of(exclude) if exclude is not None else set()
    pairs = Pairs(list(data), PairSelection(), unwanted) if data is not None else None
    sources = None if text is None else SentenceSources(text, option=None)
    sentences = PairsAndText(pairs, sources, unwanted)
    counts = count_units(sentences.columns(), ["word"])["word"]
    without = config.contexts is not None and not counts
    refuse(without, "`contexts` reads words in sentences, and there is no word in `data` or `text`; give others")
    words = _choose(counts, vocabulary, config)
    located = [locate(name) for name in names]
    settings = VectorsSettings(
        models=[model.revision for model in located],
        words=hashlib.sha256("\n".join(words).encode("utf8", "surrogatepass")).hexdigest(),
        text=sentences.identity if config.contexts is not None else None,
        config=config,
    )

    # The states of words are expensive and do not depend on `dimension`, so runs with another one continue from them.
    of_states = {**as_json(settings), "config": {"contexts": config.contexts, "precision": config.precision}}

    def make(work: Path, file: Path) -> VectorsRecord:
        encoders = _encoders(located, words, config)
        stores = [CheckpointFile(work / f"states-{index}.safetensors") for index in range(len(encoders))]
        if config.contexts is None:
            encoded = []
            for encoder, store in zip(encoders, stores, strict=True):
                encoded.append(encode_words(words, WithoutProgressBar(encoder, 256).encode, store))
            vectors = reduce_alone(words, encoded, config.dimension)
        else:
            vectors = _in_context(words, counts, encoders, sentences, config, stores)
        write_vectors(file, vectors)
        return VectorsRecord(
            settings=settings,
            models=[model.name for model in located],
            words=len(vectors.words),
            dimension=vectors.matrix.shape[1],
            **made_with("numpy", "torch", "sentence-transformers"),
        )

    return run(
        out,
        settings,
        VectorsRecord,
        make,
        result=DistilledVectors,
        command="encoder vectors",
        holds=lambda work: any(work.glob("states-*.safetensors")),
        work_identity=of_states,
    )


def _encoders(models: Sequence[Model], words: list[str], config: VectorsConfig) -> list[SentenceEncoder]:
    """Load the encoders, and reject those that cannot give such vectors before hours of work.

    Args:
        models: The encoders.
        words: The words.
        config: How the vectors are distilled.
    """
    from paranmt_hf.distillation.contexts import fast_tokenizer_of
    from paranmt_hf.encoders.loading import load

    encoders = [load(model) for model in models]
    if config.contexts is not None:
        for model, encoder in zip(models, encoders, strict=True):
            fast_tokenizer_of(encoder, model.name)
    width = sum(encoder.get_embedding_dimension() or 0 for encoder in encoders)
    check_reduction(len(words) if config.contexts is None else width, width, config.dimension)
    return encoders


def _choose(counts: Counter[str], vocabulary: str | Path | None, config: VectorsConfig) -> list[str]:
    """Choose the words that get a vector: the most frequent ones of the data, then those of a file.

    Args:
        counts: How often each word occurs in the data.
        vocabulary: File with words; None for none.
        config: How the vectors are distilled.
    """
    words: dict[str, None] = {}
    if counts:
        words |= dict.fromkeys(most_frequent("word", counts, config.words, min_count=config.min_count).units[1:])
    if vocabulary is not None:
        path, given = Path(vocabulary), dict[str, None]()
        with open_lines(path, "the vocabulary") as lines:
            for number, line in enumerate(lines, 1):
                fields = decode_line(line, path, number).split()
                # Skip words such as `##ing`, which vocabularies read as pieces.
                if fields and not is_piece(fields[0]):
                    given.setdefault(fields[0])
                if len(given) >= config.words:
                    break
        refuse(not given, f"the vocabulary {path} is empty; expected a word in front of each line", path=path)
        words |= given
    if config.contexts is not None:
        # Vocabularies give this name to unknown words, so a word of this name has no row.
        words.pop(UNKNOWN, None)
    refuse(not words, "there is no word to make a vector of; give other data")
    return list(words)[: config.words]


def _in_context(
    words: list[str],
    counts: Counter[str],
    encoders: Sequence[SentenceEncoder],
    sentences: PairsAndText,
    config: VectorsConfig,
    stores: Sequence[CheckpointFile],
) -> WordVectors:
    """Make word vectors from the states of words in sentences.

    Args:
        words: The words.
        counts: How often each word occurs in the data.
        encoders: The encoders.
        sentences: The sentences.
        config: How the vectors are distilled.
        stores: Checkpoint of the states of each encoder.
    """
    import torch
    from torch.nn.functional import embedding_bag

    from paranmt_hf.distillation.contexts import mean_states

    assert config.contexts is not None
    known = lookup(Vocabulary("word", [UNKNOWN, *words]))
    total = sum(len(column) for column in sentences.columns())
    states = []
    for encoder, store in zip(encoders, stores, strict=True):
        found = mean_states(
            encoder, known, sentences.columns(), total, config.contexts, store, in_bf16=config.precision == "bf16"
        )
        states.append(found[1:])
    (table,) = WordTokenizer().tables(_every(sentences.columns(), max(1, total // SAMPLE)))
    bags = known.bags(table)

    def average(matrix: np.ndarray) -> np.ndarray:
        weight = torch.from_numpy(np.vstack([np.zeros((1, matrix.shape[1]), np.float32), matrix]))
        rows, offsets = torch.from_numpy(bags.rows), torch.from_numpy(bags.offsets.astype(np.int32))
        return embedding_bag(rows, weight, offsets, mode="mean", include_last_offset=True).numpy()

    frequencies = np.array([counts[word] for word in words], np.float64)
    return reduce_in_context(words, states, frequencies, average, config.dimension)


def _every(columns: Iterator[pa.Array], step: int) -> pa.ChunkedArray:
    """Take every `step`-th sentence of columns, counting across their bounds."""
    taken, start = [], 0
    for column in columns:
        taken.append(column.take(pa.array(np.arange(start, len(column), step))))
        # Position in the next column of the next sentence to take.
        start += step * len(taken[-1]) - len(column)
    return pa.chunked_array(taken, pa.string())
