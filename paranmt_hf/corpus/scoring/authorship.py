"""Whether a sentence was written by a person or by a translation model, learned from the two sides of a corpus.

Wieting, Mallinson and Gimpel (2017, arXiv:1706.01847), section 3, and ParaNMT-50M (preprint), section 3, filter
back-translations by a classifier that separates them from references. Theirs are neural; this one is a logistic
regression over hashed words and pairs of neighbouring words, which learns on a CPU about as fast as it reads.

Cross-fitting: references are dealt into folds by their words, so that all pairs of one reference are in one fold, and
each fold is scored by the model that learned from the others. No model saw the reference of a pair that it scores, so
every score and the accuracy are those of held-out pairs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.reading.columns import rebatch
from paranmt_hf.corpus.release.record import HeldOut
from paranmt_hf.corpus.release.schema import SIDES
from paranmt_hf.corpus.statistics.draws import lottery
from paranmt_hf.errors import InputError
from paranmt_hf.text.identity import TokenHashes, sentence_keys
from paranmt_hf.text.tokens import TokenTable
from paranmt_hf.text.word_rules import ENGLISH, word_tokenizer_for
from paranmt_hf.util.files import replacing
from paranmt_hf.util.markers import Count, Range, Seed
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.settings import Settings

BATCH_ROWS = 10_000
# Steps of stochastic gradient descent: strength of the L2 penalty, which also sets their size (Bottou's schedule).
PENALTY = 1e-5
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
BOUNDARY = np.uint64(0x5851F42D4C957F2D)
METADATA = "authorship"
MOST_WEIGHTS = 1 << 26  # Weights of all models together; each takes 24 bytes while they learn


@dataclass(frozen=True)
class AuthorshipConfig(Settings):
    """How the classifier behind `human_score` learns."""

    # Number of models; each scores the part of the references that it did not learn from
    folds: Annotated[int, Range(at_least=2, at_most=100)] = 5
    learn_pairs: Count = 2_000_000  # Maximum number of pairs to learn from, sampled at random
    epochs: Count = 3  # Passes over them
    bits: Annotated[int, Range(at_least=8, at_most=25)] = 22  # A model has 2 to the power of this weights
    seed: Seed = 0  # Decides the folds, the sample and the order of learning

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.folds << self.bits > MOST_WEIGHTS:
            raise InputError(
                f"{self.folds} models of 2 to the power of {self.bits} weights do not fit into memory: expected at "
                f"most {MOST_WEIGHTS:,} weights in all; lower `folds` or `bits`"
            )


@dataclass(frozen=True)
class Authorship:
    """The classifiers of all folds."""

    weights: np.ndarray  # [fold, bucket], float32
    intercepts: np.ndarray  # [fold], float32
    config: AuthorshipConfig  # How they learned
    held_out: HeldOut  # How well they do
    language: str = ENGLISH  # ISO 639-1 code, which determines the word tokens

    def save(self, path: Path) -> None:
        """Write everything into one safetensors file."""
        from safetensors.numpy import save_file

        about = {"config": vars(self.config), "held_out": vars(self.held_out), "language": self.language}
        metadata = {METADATA: json.dumps(about)}
        with replacing(path) as aside:
            save_file({"weights": self.weights, "intercepts": self.intercepts}, aside, metadata)

    @classmethod
    def load(cls, path: Path) -> Authorship:
        from safetensors import safe_open

        with safe_open(path, "np") as file:
            about = json.loads(file.metadata()[METADATA])
            weights, intercepts = file.get_tensor("weights"), file.get_tensor("intercepts")
        config, held_out = AuthorshipConfig(**about["config"]), HeldOut(**about["held_out"])
        return cls(weights, intercepts, config, held_out, about.get("language", ENGLISH))


class Features:
    """Turns sentences into rows of hashed words and pairs of neighbouring words."""

    def __init__(self, config: AuthorshipConfig, language: str = ENGLISH) -> None:
        self._config = config
        self._tokenizer, self._hashes = word_tokenizer_for(language), TokenHashes()

    def of(self, references: pa.Array, translations: pa.Array) -> tuple[list[Any], np.ndarray]:
        """Return a sparse matrix [pair, bucket] of each side, rows of length 1, and the fold of each pair [pair]."""
        tables = self._tokenizer.tables(references, translations)
        hashes = self._hashes.of(tables[0])
        folds = lottery(sentence_keys(tables[0], self._hashes), self._config.seed) % np.uint64(self._config.folds)
        return [self._matrix(table, hashes) for table in tables], folds.astype(np.int64)

    def _matrix(self, table: TokenTable, hashes: np.ndarray) -> Any:  # noqa: ANN401 - scipy has no types
        """Words and word bigrams; sentence boundaries count as words."""
        from scipy.sparse import csr_matrix

        sentences, lengths = len(table), np.diff(table.offsets)
        # A sentence of n tokens has n words and n + 1 pairs of neighbours.
        starts = np.concatenate([[0], np.cumsum(2 * lengths + 1)])
        sentence = np.repeat(np.arange(sentences), lengths)
        position = starts[sentence] + np.arange(len(table.ids)) - table.offsets[sentence]
        words = hashes[table.ids]
        left = np.full(len(words) + sentences, BOUNDARY, np.uint64)
        right = left.copy()
        # Before each sentence one more: its first neighbour on the left is the boundary.
        place = np.arange(len(words)) + sentence
        right[place] = words
        left[place + 1] = words
        keys = np.empty(starts[-1], np.uint64)
        keys[position] = words
        owner = np.repeat(np.arange(sentences), lengths + 1)
        keys[np.arange(len(left)) + np.cumsum(lengths)[owner]] = left * MULTIPLIER + right
        buckets = (keys * MULTIPLIER >> np.uint64(64 - self._config.bits)).astype(np.int32)
        values = np.repeat(1 / np.sqrt(np.diff(starts)), np.diff(starts))
        return csr_matrix((values, buckets, starts), (sentences, 1 << self._config.bits))


def learn(paths: Sequence[Path], rows: int, config: AuthorshipConfig, language: str = ENGLISH) -> Authorship:
    """Train the classifiers on a sample of the `rows` pairs (`id`, `reference`, `translation`) of Parquet files."""
    from sklearn.linear_model import SGDClassifier

    models = [
        SGDClassifier(loss="log_loss", penalty="l2", alpha=PENALTY, random_state=config.seed + fold, average=True)
        for fold in range(config.folds)
    ]
    learned, features, blocks = [0] * config.folds, Features(config, language), _drawn(paths, rows, config)
    with Progress("learn", config.epochs * min(rows, config.learn_pairs), unit="pairs") as progress:
        for epoch in range(config.epochs):
            order = np.random.default_rng([config.seed, epoch]).permutation(len(blocks)).tolist()
            for block in progress.over(blocks[index] for index in order):
                _learn_table(models, learned, block, features)
    if min(learned) == 0 or min(map(len, (model.classes_ for model in models))) < 2:
        raise InputError(
            f"human_score needs different references, at least one in each of {config.folds} folds; the "
            f"{min(rows, config.learn_pairs):,} pairs to learn from are too few"
        )
    weights = np.concatenate([model.coef_ for model in models]).astype(np.float32)
    intercepts = np.concatenate([model.intercept_ for model in models]).astype(np.float32)
    return Authorship(weights, intercepts, config, _held_out(weights, intercepts, blocks, features), language)


def _learn_table(models: list[Any], learned: list[int], table: pa.Table, features: Features) -> None:
    from scipy.sparse import vstack

    matrices, folds = features.of(*sides_of(table))
    both, pairs = vstack(matrices, "csr"), np.tile(folds, 2)
    human = np.repeat([1, 0], len(folds))
    for fold, model in enumerate(models):
        others = np.flatnonzero(pairs != fold)
        if len(others):
            model.partial_fit(both[others], human[others], classes=[0, 1])
            learned[fold] += len(others)


def _held_out(weights: np.ndarray, intercepts: np.ndarray, blocks: Sequence[pa.Table], features: Features) -> HeldOut:
    """Measure each model on the pairs that it did not learn from."""
    pairs, right, ordered = 0, 0, 0.0
    for table in blocks:
        matrices, folds = features.of(*sides_of(table))
        human, machine = (_decide(matrix, folds, weights, intercepts) for matrix in matrices)
        pairs += len(folds)
        right += int((human > 0).sum() + (machine <= 0).sum())
        ordered += float((human > machine).sum() + (human == machine).sum() / 2)
    return HeldOut(pairs, round(right / (2 * pairs), 4), round(ordered / pairs, 4))


def _decide(matrix: Any, folds: np.ndarray, weights: np.ndarray, intercepts: np.ndarray) -> np.ndarray:  # noqa: ANN401
    """Log-odds [sentence] that a person wrote it, by the model of its fold."""
    decisions = np.empty(len(folds))
    for fold in range(len(weights)):
        own = np.flatnonzero(folds == fold)
        decisions[own] = matrix[own] @ weights[fold] + intercepts[fold]
    return decisions


def _drawn(paths: Sequence[Path], rows: int, config: AuthorshipConfig) -> list[pa.Table]:
    """Read the training pairs, in blocks that do not depend on how the rows are split into files."""
    share = min(1.0, config.learn_pairs / max(1, rows))
    bound = np.uint64(min(int(share * 2**64), 2**64 - 1))
    blocks = map(pa.table, rebatch(_batches(paths), BATCH_ROWS))
    return [block.filter(lottery(block["id"].to_numpy(), config.seed) <= bound) for block in blocks]


def _batches(paths: Sequence[Path]) -> Iterator[pa.RecordBatch]:
    for path in paths:
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(BATCH_ROWS, columns=["id", *SIDES])


def sides_of(table: pa.Table) -> tuple[pa.Array, pa.Array]:
    """Both sides of pairs as arrays."""
    return table[SIDES[0]].combine_chunks(), table[SIDES[1]].combine_chunks()


class HumanScorer:
    """Computes the column `human_score`."""

    def __init__(self, classifier: Authorship) -> None:
        self._classifier, self._features = classifier, Features(classifier.config, classifier.language)

    def scores(self, references: pa.Array, translations: pa.Array) -> pa.Array:
        """Probability [pair] that a person wrote the translation, float32 from 0 to 1.

        The reference decides which classifier is used: one that did not learn from it.
        """
        (_, matrix), folds = self._features.of(references, translations)
        decisions = _decide(matrix, folds, self._classifier.weights, self._classifier.intercepts)
        return pa.array(1 / (1 + np.exp(-decisions)), pa.float32())
