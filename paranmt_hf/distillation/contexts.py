"""Word vectors in context: the mean of a large encoder's token states over sentences with the word.

The mean of a word's states in sentences is nearer to what the word adds to a sentence than the vector of the word
alone. Words that are in no sentence are encoded alone. This is not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import torch
from sentence_transformers import SentenceTransformer
from transformers import BatchEncoding, PreTrainedTokenizerFast

from paranmt_hf.encoders.units import Lookup
from paranmt_hf.errors import InputError, refuse
from paranmt_hf.text.definitions import word_normalizer, word_pre_tokenizer
from paranmt_hf.text.tokens import Bags, WordTokenizer
from paranmt_hf.training.checkpoint import CheckpointFile
from paranmt_hf.util.machine import torch_threads
from paranmt_hf.util.progress import Progress

Tensors = dict[str, torch.Tensor]


def first_holders(bags: Bags, seen: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Choose the sentences in which words are read: for each word the first ones with it, at most `limit`.

    Args:
        bags: Rows of the words of the next sentences.
        seen: Number of sentences so far with each word [row]; changed in place, the sentences of `bags` are added.
        limit: Maximum number of sentences for each word, those of earlier calls included.

    Returns:
        The sentence [pair] and the row [pair] of each pair of a chosen sentence and a word, once each, by sentence.
        Row 0, of unknown words, is left out.
    """
    sentences = np.repeat(np.arange(len(bags)), np.diff(bags.offsets))
    # Sentence and row are packed into one number, so that a word counts once for each sentence.
    sentences, rows = np.divmod(np.unique(sentences * len(seen) + bags.rows), len(seen))
    order = np.argsort(rows, kind="stable")
    counts = np.bincount(rows, minlength=len(seen))
    # Number the sentences of each word from 0: sorted by row, those of row r begin at the sum of the counts before it.
    rank = np.empty(len(rows), np.int64)
    rank[order] = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    wanted = (seen[rows] + rank < limit) & (rows > 0)
    seen += counts
    return sentences[wanted], rows[wanted]


def fast_tokenizer_of(encoder: SentenceTransformer, name: str) -> PreTrainedTokenizerFast:
    """Return the tokenizer of an encoder, which must be a fast one, because only these know the offsets of pieces.

    Args:
        encoder: The encoder.
        name: Its name, for the error.

    Raises:
        InputError: It has no fast tokenizer.
    """
    tokenizer = getattr(encoder, "tokenizer", None)
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise InputError(
            f"word vectors in context need a transformer with a fast tokenizer, and {name} has none; leave out "
            "`contexts`, or name another model"
        )
    return tokenizer


class StateMeans:
    """Sums of the states of words in sentences, under an encoder that begins with a transformer.

    The tokenizer of the encoder must be a fast one. Row 0 of the lookup is for unknown words and stays zeros.

    Args:
        encoder: The encoder; only its first module, the transformer, is used.
        lookup: Gives the rows of the words.
        in_bf16: Whether the encoder computes in bfloat16; the sums are float32 in any case.
        cpu_batch: Number of sentences of a batch on a processor, so few that their states stay in its cache.
    """

    def __init__(
        self, encoder: SentenceTransformer, lookup: Lookup, *, in_bf16: bool = False, cpu_batch: int = 32
    ) -> None:
        self._encoder, self._row_of, self._in_bf16 = encoder, lookup.row_of, in_bf16
        self._batch = cpu_batch if encoder.device.type == "cpu" else 256
        self._tokenizer = fast_tokenizer_of(encoder, "this model")
        length = encoder.max_seq_length
        # Tokenizers without a maximum length state a very large one.
        self._longest = length if length is not None and length < 2**31 else None
        self._normalizer, self._pre_tokenizer = word_normalizer(), word_pre_tokenizer()
        self._sums: torch.Tensor | None = None
        # Number of sentences in which each word was read [row].
        self.counts = np.zeros(len(lookup.vocabulary), np.int64)

    def add(self, sentences: Sequence[str], wanted: Sequence[np.ndarray], *, alone: bool = False) -> None:
        """Add the states of words in some sentences.

        Args:
            sentences: The sentences.
            wanted: Rows of the words whose states are added, for each sentence.
            alone: Whether each sentence is a single word, whose row `wanted` holds.
        """
        order = np.argsort([len(sentence) for sentence in sentences], kind="stable")
        parts = [order[start : start + self._batch].tolist() for start in range(0, len(order), self._batch)]
        features = []
        for part in parts:
            # Asking for offsets changes the settings of the tokenizer, so a single thread calls it.
            read = self._tokenizer(
                [sentences[index] for index in part],
                padding=True,
                truncation=True,
                max_length=self._longest,
                return_offsets_mapping=True,
                return_tensors="pt",
            )
            features.append(read)
        offsets = [each.pop("offset_mapping").numpy() for each in features]
        with torch_threads(self._encoder.device.type) as pool:
            for part, part_offsets, states in zip(parts, offsets, pool.map(self._states, features), strict=True):
                batch = [sentences[index] for index in part]
                self._sum(states, part_offsets, batch, [wanted[index] for index in part], alone)

    def _states(self, features: BatchEncoding) -> torch.Tensor:
        """Compute the states of the pieces of a batch [sentence, piece, dimension], float32."""
        device = self._encoder.device
        halved = torch.autocast(device.type, torch.bfloat16, enabled=self._in_bf16)
        with torch.no_grad(), halved:
            states = self._encoder[0]({name: value.to(device) for name, value in features.items()})["token_embeddings"]
            return states.float().cpu()

    def _sum(
        self, states: torch.Tensor, offsets: np.ndarray, sentences: list[str], wanted: list[np.ndarray], alone: bool
    ) -> None:
        """Add the states of the wanted words of one batch to the sums.

        Args:
            states: States of the pieces [sentence, piece, dimension].
            offsets: First and last character of each piece in its sentence [sentence, piece, 2].
            sentences: The sentences of the batch.
            wanted: Rows of the words whose states are added, for each sentence.
            alone: Whether each sentence is a single word.
        """
        # For each state that counts: its position in the flattened states, the row that it counts for, and its weight.
        flat, rows, shares = [], [], []
        for index, sentence in enumerate(sentences):
            # Special tokens and padding have empty offsets.
            pieces = np.flatnonzero(offsets[index, :, 1] > offsets[index, :, 0])
            if alone:
                owners = np.repeat(wanted[index], len(pieces))
            else:
                owners = self._word_rows(sentence, offsets[index, pieces])
            chosen = np.isin(owners, wanted[index])
            present, position, counts = np.unique(owners[chosen], return_inverse=True, return_counts=True)
            self.counts[present] += 1
            flat.append(index * states.shape[1] + pieces[chosen])
            rows.append(owners[chosen])
            # The pieces of a word in a sentence are averaged, so that they count as one state.
            shares.append(1 / counts[position])
        if self._sums is None:
            self._sums = torch.zeros(len(self.counts), states.shape[2])
        parts = states.flatten(0, 1)[torch.from_numpy(np.concatenate(flat))]
        weighed = parts * torch.from_numpy(np.concatenate(shares)).float()[:, None]
        self._sums.index_add_(0, torch.from_numpy(np.concatenate(rows)), weighed)

    def _word_rows(self, sentence: str, offsets: np.ndarray) -> np.ndarray:
        """Return the row of the word in which each piece begins [piece]; 0 for an unknown word.

        Args:
            sentence: The sentence.
            offsets: First and last character of each piece in it [piece, 2].
        """
        normal = self._normalizer.normalize_str(sentence)
        # Offsets refer to the sentence as written. They fit the normalised one only if no character was added or
        # removed; otherwise this sentence is not used.
        if len(normal) != len(sentence) or not len(offsets):
            return np.zeros(len(offsets), np.int64)
        words = self._pre_tokenizer.pre_tokenize_str(normal)
        rows = np.array([self._row_of.get(word, 0) for word, _ in words], np.int64)
        # Many tokenizers count the blank before a word as the first character of a piece, so move to the next
        # character that is none.
        written = np.flatnonzero([not character.isspace() for character in sentence])
        starts = np.append(written, len(sentence))[np.searchsorted(written, offsets[:, 0])]
        # The word of a piece is the last one that begins at or before it.
        word = np.searchsorted([start for _, (start, _) in words], starts, side="right") - 1
        return np.where((word >= 0) & (starts < offsets[:, 1]), rows[word.clip(min=0)], 0)

    def state(self) -> Tensors:
        """Return the sums and counts so far, for a checkpoint; at least one word must have a state."""
        assert self._sums is not None
        return {"sums": self._sums, "counts": torch.from_numpy(self.counts)}

    def restore(self, state: Tensors) -> None:
        """Continue from what `state` returned."""
        self._sums, self.counts = state["sums"], state["counts"].numpy()

    @property
    def is_empty(self) -> bool:
        """Whether no word has a state yet."""
        return self._sums is None

    def means(self) -> np.ndarray:
        """Return the mean state of each word [row, dimension], float32; zeros for words without one.

        Raises:
            InputError: No word has a state.
        """
        if self._sums is None:
            raise InputError("no sentence holds one of the words; give more text")
        return self._sums.numpy() / np.maximum(self.counts, 1)[:, None].astype(np.float32)


def mean_states(
    encoder: SentenceTransformer,
    lookup: Lookup,
    sentences: Iterable[pa.Array],
    total: int,
    limit: int,
    kept: CheckpointFile | None = None,
    *,
    in_bf16: bool = False,
    cpu_batch: int = 32,
    block_size: int = 5000,
) -> np.ndarray:
    """Read sentences, and average the states of words in them [row, dimension], float32; row 0 is zeros.

    Words that are in no sentence are encoded alone.

    Args:
        encoder: The encoder; see `StateMeans`.
        lookup: Gives the rows of words.
        sentences: The sentences, in columns.
        total: Number of sentences.
        limit: Maximum number of sentences in which a word is read.
        kept: Checkpoint of an earlier call with the same arguments, from which this call continues, and where it
            writes its own; it does not change the result.
        in_bf16: See `StateMeans`.
        cpu_batch: See `StateMeans`.
        block_size: Number of sentences that are split into words at once.
    """
    tokenizer, means = WordTokenizer(), StateMeans(encoder, lookup, in_bf16=in_bf16, cpu_batch=cpu_batch)
    # `seen`: sentences with each word so far; `resumed_at`: sentences that an earlier call read; `done`: those so far.
    seen, resumed_at, done = np.zeros(len(lookup.vocabulary), np.int64), 0, 0
    if kept is not None and (found := kept.read()) is not None:
        state = found[0]
        means.restore(state)
        seen, resumed_at = state["seen"].numpy(), int(state["sentences"])

    def keep() -> None:
        if kept is not None and kept.is_due and not means.is_empty:
            kept.write({**means.state(), "seen": torch.from_numpy(seen), "sentences": torch.tensor(done)}, {})

    with Progress("distill", total, done=resumed_at, unit="sentences") as progress:
        for column in sentences:
            for start in range(0, len(column), block_size):
                block = column[start : start + block_size]
                if done < resumed_at:
                    done += len(block)
                    continue
                (table,) = tokenizer.tables(block)
                holders, rows = first_holders(lookup.bags(table), seen, limit)
                chosen, bounds = np.unique(holders, return_index=True)
                means.add([block[index].as_py() for index in chosen.tolist()], np.split(rows, bounds[1:]))
                done += len(block)
                progress.advance_to(done)
                keep()
    units = lookup.vocabulary.units
    with Progress("distill, words alone", len(units), unit="words") as progress:
        # In fixed ranges of rows, so that a continued run has the same batches. Row 0 is that of unknown words.
        for start in range(1, len(units), block_size):
            end = min(start + block_size, len(units))
            alone = [row for row in range(start, end) if not means.counts[row]]
            if alone:
                means.add([units[row] for row in alone], [np.array([row]) for row in alone], alone=True)
            progress.advance_to(end)
            keep()
    average = means.means()
    refuse(not np.isfinite(average).all(), "the model gave a state that is not finite")
    return average
