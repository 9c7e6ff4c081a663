"""Word vectors in context: the mean of a large encoder's token states over sentences with the word.

What a word adds to a sentence is nearer to the mean of its states in sentences than to the vector of the word alone.
Words that are in no sentence are encoded alone. Not in the papers.
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
    """Find the first sentences with each word, at most `limit` of each.

    Given the rows of the words of the next sentences and the number of sentences so far with each word [row], to which
    those of `bags` are added; returns the sentence [pair] and the row [pair], each pair once, by sentence.
    """
    sentences = np.repeat(np.arange(len(bags)), np.diff(bags.offsets))
    # Sentence and row as one number, so that a word counts once for each sentence; divmod takes them apart again.
    sentences, rows = np.divmod(np.unique(sentences * len(seen) + bags.rows), len(seen))
    order = np.argsort(rows, kind="stable")
    counts = np.bincount(rows, minlength=len(seen))
    # In the order of the rows those of row r begin at the sum of the counts before it.
    rank = np.empty(len(rows), np.int64)
    rank[order] = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    wanted = (seen[rows] + rank < limit) & (rows > 0)
    seen += counts
    return sentences[wanted], rows[wanted]


def check_reads_words(encoder: SentenceTransformer, name: str) -> PreTrainedTokenizerFast:
    """Return the tokenizer, which must know the position of each piece in a sentence."""
    tokenizer = getattr(encoder, "tokenizer", None)
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise InputError(
            f"word vectors in context need a transformer with a fast tokenizer, and {name} has none; leave out "
            "`contexts`, or name another model"
        )
    return tokenizer


class StateMeans:
    """Sums of the states of words in sentences, under an encoder that begins with a transformer.

    Its tokenizer must be a fast one. Row 0 of the lookup is for unknown words and gets nothing. If `in_bf16`, the
    encoder computes in bfloat16; the sums do not. On a processor a batch has `cpu_batch` sentences, whose states stay
    in its cache.
    """

    def __init__(
        self, encoder: SentenceTransformer, lookup: Lookup, *, in_bf16: bool = False, cpu_batch: int = 32
    ) -> None:
        self._encoder, self._row_of, self._in_bf16 = encoder, lookup.row_of, in_bf16
        self._batch = cpu_batch if encoder.device.type == "cpu" else 256
        self._tokenizer = check_reads_words(encoder, "this model")
        length = encoder.max_seq_length
        # Tokenizers without a maximum length state a very large one.
        self._longest = length if length is not None and length < 2**31 else None
        self._normalizer, self._pre_tokenizer = word_normalizer(), word_pre_tokenizer()
        self._sums: torch.Tensor | None = None
        # Sentences of which each word has a state [row].
        self.counts = np.zeros(len(lookup.vocabulary), np.int64)

    def add(self, sentences: Sequence[str], wanted: Sequence[np.ndarray], *, alone: bool = False) -> None:
        """Add the states of the `wanted` rows in each sentence; `alone`: each sentence is one word."""
        order = np.argsort([len(sentence) for sentence in sentences], kind="stable")
        parts = [order[start : start + self._batch].tolist() for start in range(0, len(order), self._batch)]
        features = []
        for part in parts:
            # Offsets change the settings of a tokenizer, so one thread uses it.
            read = self._tokenizer(
                [sentences[index] for index in part],
                padding=True,
                truncation=True,
                max_length=self._longest,
                return_offsets_mapping=True,
                return_tensors="pt",
            )
            features.append(read)
        bounds = [each.pop("offset_mapping").numpy() for each in features]
        with torch_threads(self._encoder.device.type) as pool:
            for part, places, states in zip(parts, bounds, pool.map(self._states, features), strict=True):
                own = [sentences[index] for index in part]
                self._sum(states, places, own, [wanted[index] for index in part], alone)

    def _states(self, features: BatchEncoding) -> torch.Tensor:
        """States of pieces [sentence, piece, dimension], float32."""
        device = self._encoder.device
        halved = torch.autocast(device.type, torch.bfloat16, enabled=self._in_bf16)
        with torch.no_grad(), halved:
            states = self._encoder[0]({name: value.to(device) for name, value in features.items()})["token_embeddings"]
            return states.float().cpu()

    def _sum(
        self, states: torch.Tensor, bounds: np.ndarray, sentences: list[str], wanted: list[np.ndarray], alone: bool
    ) -> None:
        # Which states [sentence, piece] count for which row, and how much.
        flat, rows, shares = [], [], []
        for index, sentence in enumerate(sentences):
            pieces = np.flatnonzero(bounds[index, :, 1] > bounds[index, :, 0])
            if alone:
                owners = np.repeat(wanted[index], len(pieces))
            else:
                owners = self._owners(sentence, bounds[index, pieces])
            chosen = np.isin(owners, wanted[index])
            present, position, counts = np.unique(owners[chosen], return_inverse=True, return_counts=True)
            self.counts[present] += 1
            flat.append(index * states.shape[1] + pieces[chosen])
            rows.append(owners[chosen])
            # All pieces of a word in a sentence together count as one state.
            shares.append(1 / counts[position])
        if self._sums is None:
            self._sums = torch.zeros(len(self.counts), states.shape[2])
        parts = states.flatten(0, 1)[torch.from_numpy(np.concatenate(flat))]
        weighed = parts * torch.from_numpy(np.concatenate(shares)).float()[:, None]
        self._sums.index_add_(0, torch.from_numpy(np.concatenate(rows)), weighed)

    def _owners(self, sentence: str, bounds: np.ndarray) -> np.ndarray:
        """Row of the word in which each piece [piece, 2] begins; 0 if unknown."""
        normal = self._normalizer.normalize_str(sentence)
        # Positions are those of the sentence as written, unless a character became two.
        if len(normal) != len(sentence) or not len(bounds):
            return np.zeros(len(bounds), np.int64)
        words = self._pre_tokenizer.pre_tokenize_str(normal)
        rows = np.array([self._row_of.get(word, 0) for word, _ in words], np.int64)
        # Many tokenizers count the blank before a word as its first character.
        written = np.flatnonzero([not character.isspace() for character in sentence])
        starts = np.append(written, len(sentence))[np.searchsorted(written, bounds[:, 0])]
        # The last word that begins at or before a piece holds it.
        found = np.searchsorted([start for _, (start, _) in words], starts, side="right") - 1
        return np.where((found >= 0) & (starts < bounds[:, 1]), rows[found.clip(min=0)], 0)

    def state(self) -> Tensors:
        """Sums and counts so far; needs at least one word with a state."""
        assert self._sums is not None
        return {"sums": self._sums, "counts": torch.from_numpy(self.counts)}

    def restore(self, state: Tensors) -> None:
        """Continue from a state."""
        self._sums, self.counts = state["sums"], state["counts"].numpy()

    @property
    def is_empty(self) -> bool:
        """Whether no word has a state yet."""
        return self._sums is None

    def means(self) -> np.ndarray:
        """Mean state of each word [row, dimension], float32; zeros for words without one."""
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
    """Read `total` sentences in columns, and average the states of words [row, dimension], float32; zeros in row 0.

    The lookup gives the rows of words; `limit` is the number of sentences of each word. `kept` keeps the state of a
    call of the same arguments and does not change the result. `block_size` is the number of sentences that are split
    and chosen from at once. See `StateMeans` for the others.
    """
    tokenizer, means = WordTokenizer(), StateMeans(encoder, lookup, in_bf16=in_bf16, cpu_batch=cpu_batch)
    seen, known, done = np.zeros(len(lookup.vocabulary), np.int64), 0, 0
    if kept is not None and (found := kept.read()) is not None:
        state = found[0]
        means.restore(state)
        seen, known = state["seen"].numpy(), int(state["sentences"])

    def keep() -> None:
        if kept is not None and kept.is_due and not means.is_empty:
            kept.write({**means.state(), "seen": torch.from_numpy(seen), "sentences": torch.tensor(done)}, {})

    with Progress("distill", total, done=known, unit="sentences") as progress:
        for column in sentences:
            for start in range(0, len(column), block_size):
                block = column[start : start + block_size]
                if done < known:
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
        # By ranges of rows, so that a continued run has the same batches. Row 0 is that of unknown words.
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
