"""Encoders that average word vectors, weighted or with a component removed, and the word counts they need."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.reading.pairs import SIDES, Pairs, PairSelection
from paranmt_hf.corpus.reading.readers import Report
from paranmt_hf.corpus.reading.sentences import open_sentences
from paranmt_hf.corpus.release.record import RELEASE_RECORD
from paranmt_hf.encoders.modules.paranmt_tables import NgramTable
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.encoders.static_average import StaticAverage
from paranmt_hf.encoders.units import UnitCounter
from paranmt_hf.encoders.vocabulary import UNKNOWN, AverageTable, Vocabulary
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.word_weights import (
    RANK,
    WEIGHTINGS,
    WordCounts,
    WordWeighting,
    counts_by_rank,
    is_count_list,
    read_counts,
    weighting_notes,
    word_weights,
)
from paranmt_hf.hub.client import is_id, split_revision
from paranmt_hf.text.definitions import is_piece
from paranmt_hf.text.tokens import WordTokenizer
from paranmt_hf.text.word_vectors import WordVectors, read_known, read_vectors, read_words
from paranmt_hf.util.files import checksum
from paranmt_hf.util.parquet import read_schema
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.wording import counted


class WordAverage:
    """An encoder that averages word vectors: a sentence is the mean of the weighted vectors of its known words.

    Words are the tokens of `paranmt_hf.text.definitions`, in lower case. Words of weight 0 do not count. A sentence
    without a word that counts gets zeros. SentEval's example of an encoder is such an average too, without weights.

    Args:
        vectors: Words and their vectors.
        weights: Weight of each word [word], at least 0; 1 for each if None.
        remove_component: Whether `fitted` removes the first principal component, as SIF does.
        checksum: Checksum of the file of word vectors; None if they are not from a file.
        notes: Sentences that a reader of the encoder's results must know.
    """

    def __init__(
        self,
        vectors: WordVectors,
        weights: np.ndarray | None = None,
        *,
        remove_component: bool = False,
        checksum: str | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        weights = np.ones(len(vectors.words)) if weights is None else weights
        if not np.isfinite(vectors.matrix).all():
            word = vectors.words[int(np.argmin(np.isfinite(vectors.matrix).all(axis=1)))]
            raise InputError(f"the vector of {word!r} has a number that is not finite")
        used = [row for row in np.flatnonzero(weights).tolist() if vectors.words[row] != UNKNOWN]
        self.checksum, self.notes = checksum, tuple(notes)
        matrix = np.zeros((len(used) + 1, vectors.matrix.shape[1]), np.float32)
        matrix[1:] = vectors.matrix[used] * weights[used, None]
        # A vocabulary of this kind leaves unknown words out of the mean. With an empty table of n-grams it has only
        # words.
        units = [UNKNOWN, *(vectors.words[row] for row in used)]
        ngrams = NgramTable(1, 0, np.empty(0, np.int64), len(units))
        self._average = StaticAverage([AverageTable(Vocabulary("ngram", units, ngrams), matrix)])
        self._units, self._matrix, self._removes = units, matrix, remove_component
        self._component: np.ndarray | None = None

    @property
    def revision(self) -> str:
        """SHA-256 of the words, their weighted vectors and whether a component is removed, in hexadecimal."""
        digest = hashlib.sha256(json.dumps([self._units, self._removes]).encode())
        digest.update(self._matrix.tobytes())
        return digest.hexdigest()

    def encode(self, sentences: list[str]) -> np.ndarray:
        """Encode sentences into vectors [sentence, dimension], float32."""
        means = self._average.encode(sentences)
        if self._component is not None:
            means -= (means @ self._component)[:, None] * self._component
        return means

    def known_tokens(self, sentences: list[str]) -> np.ndarray:
        """Count the tokens of each sentence that have a vector and a weight above 0 [sentence]."""
        return self._average.known_tokens(sentences)

    def fitted(self, sentences: list[str]) -> WordAverage:
        """Return the encoder for the sentences of a dataset.

        If `remove_component` is set, this encoder subtracts the first principal component of the dataset's vectors
        (Arora et al. 2017, algorithm 1): the first right singular vector of the matrix of sentence vectors, which is
        not centred. The program of Arora et al. makes a matrix of the first sentences of pairs, and another one of the
        second sentences; here all sentences that are given are one matrix.
        """
        if not self._removes:
            return self
        other = copy.copy(self)
        other._component = None
        vectors = other.encode(sentences).astype(np.float64)
        # Eigenvalues ascend, so the last eigenvector belongs to the largest one.
        other._component = np.linalg.eigh(vectors.T @ vectors)[1][:, -1].astype(np.float32)
        return other


def read_averages(
    spaces: Sequence[str | Path], sentences: Sequence[str], config: WordWeighting
) -> list[tuple[str, WordAverage]]:
    """Create an encoder that averages word vectors for each file of word vectors and each weighting.

    Args:
        spaces: Files of word vectors, or encoders with word vectors, see `word_vectors`.
        sentences: Sentences that will be encoded; only the vectors of their words are read.
        config: The weightings, and what they need.

    Returns:
        Names of the encoders, such as `SIF of glove.txt`, and the encoders: all weightings of the first space, then
        those of the second, and so on.
    """
    if not spaces:
        return []
    paths = [Path(space) for space in spaces]
    vocabulary = set(WordTokenizer().tables(list(sentences))[0].vocabulary)
    norms = None
    if config.norms_of is not None:
        weighing = word_vectors(config.norms_of, vocabulary)
        norms = dict(zip(weighing.words, np.abs(weighing.matrix.astype(np.float64)).sum(axis=1).tolist(), strict=True))
    counts = count_words(config.frequencies) if config.needs_counts and config.frequencies != RANK else None
    short = [path.name for path in paths]
    averages = []
    for path in paths:
        vectors = word_vectors(path, vocabulary)
        # An average of an encoder's words gets no checksum, so that its results are not taken for the encoder's own,
        # such as in a card.
        source = f"sha256:{checksum(path)}" if path.is_file() else None
        if config.needs_counts and config.frequencies == RANK:
            counts = counts_by_rank(words_in_order(path), path.name)
        for weighting in config.weighting:
            weights = word_weights(weighting, vectors.words, config, counts=counts, norms=norms)
            average = WordAverage(
                vectors,
                weights,
                remove_component=weighting == "sif",
                checksum=source,
                notes=weighting_notes(weighting, config, counts),
            )
            name = path.name if short.count(path.name) == 1 else str(path)
            averages.append((f"{WEIGHTINGS[weighting]} of {name}", average))
    return averages


def words_in_order(name: str | Path) -> list[str]:
    """Return the words of an encoder or of a file of word vectors, in order; raises what `word_vectors` raises."""
    return read_words(name) if Path(name).is_file() else word_vectors(name).words


def word_vectors(name: str | Path, wanted: set[str] | None = None, *, limit: int | None = None) -> WordVectors:
    """Read the word vectors of an encoder or of a file.

    Args:
        name: Folder or Hub id of an encoder, or a file of word vectors. The vectors of an encoder with several parts
            are those of the first part that reads words.
        wanted: Words whose vectors are read; all words if None.
        limit: Maximum number of words that are read of a file, if `wanted` is None.

    Raises:
        InputError: The encoder reads no words, or has none of the wanted words.
    """
    named = NamedEncoder(str(name))
    if named.vectors:
        return read_vectors(named.vectors, limit=limit) if wanted is None else read_known(named.vectors, wanted)
    from paranmt_hf.encoders.composition import take_apart
    from paranmt_hf.encoders.loading import load

    composition = take_apart(list(load(named.model)))
    part = next((part for part in composition.parts if part.vocabulary.kind in ("word", "ngram")), None)
    if part is None:
        raise InputError(
            f"{name} is {composition.title}, which reads no words; expected an encoder with word vectors (WORD, "
            "Sent2Vec, LSTM, a combination with one of them) or a file of word vectors"
        )
    # Row 0 is the vector of unknown words, and word pieces are not words.
    units = part.vocabulary.units
    rows = [row for row, unit in enumerate(units) if row and not (part.vocabulary.has_pieces and is_piece(unit))]
    if wanted is not None:
        rows = [row for row in rows if units[row] in wanted]
    words, matrix = [units[row] for row in rows], part.table.weight.detach().float().cpu().numpy()[rows]
    if not words:
        raise InputError(f"{name} has no vector of any of the {len(wanted or ()):,} words that are asked for")
    return WordVectors(words, matrix)


def count_words(corpus: str | Path) -> WordCounts:
    """Count the words of a corpus, or read a list of word counts (see `read_counts`).

    Args:
        corpus: A list of word counts; or sentence pairs, of which both sides are counted: a corpus of `paranmt build`,
            Parquet files with the columns `reference` and `translation`, or a dataset on the Hub; or sentences: a file
            with a sentence on each line, or a Parquet file with one column of text.
    """
    path = Path(corpus).expanduser()
    if path.is_file() and path.suffix != ".parquet" and is_count_list(path):
        return read_counts(path)
    tokenizer, counter, rows = WordTokenizer(), UnitCounter(["word"]), 0
    with Progress(f"counting words of {path.name}", None, least=5.0) as progress:
        for column in _columns(path, str(corpus)):
            counter.add(tokenizer.tables(column)[0])
            rows += len(column)
            progress.advance_to(rows)
    return WordCounts(counter.result()["word"], f"{counted(rows, 'sentence')} of {corpus}")


def _columns(path: Path, name: str) -> Iterator[pa.Array | pa.ChunkedArray]:
    """Yield the columns of text of a corpus: both sides of sentence pairs, or sentences.

    `name` is the path as it was given, or the id of a dataset on the Hub.
    """
    if path.is_dir():
        pairs = (path / RELEASE_RECORD).is_file() or any(path.glob("*.parquet"))
    elif path.suffix == ".parquet" and path.is_file():
        pairs = set(SIDES) <= set(read_schema(path).names)
    else:
        pairs = not path.exists() and is_id(split_revision(str(path))[0])
    if pairs:
        for table in Pairs([name], PairSelection()).batches():
            yield from (table[side] for side in SIDES)
    else:
        for batch in open_sentences(path).batches(Report()):
            yield batch["sentence"]
