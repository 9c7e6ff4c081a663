"""What all engines of translation share: batches of sentences of similar length, a memory guard, and order."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import torch

from paranmt_hf.corpus.translation.checkpoint import Checkpoint
from paranmt_hf.corpus.translation.translator import Translations
from paranmt_hf.errors import InputError

Found = TypeVar("Found")
Hypotheses = tuple[list[list[int]], list[float]]  # Ids and scores


def token_batches(lengths: np.ndarray | Sequence[int], budget: int) -> list[np.ndarray]:
    """Split sentences of some lengths [sentence] into batches of similar length: the indices of each.

    Sentences times pieces of the longest come to at most `budget`; a longer sentence is a batch alone. The longest
    come first, so that a lack of memory shows at once; equal lengths keep their order.
    """
    counts = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(-counts, kind="stable")
    batches, first = [], 0
    while first < len(order):
        size = max(1, budget // max(1, int(counts[order[first]])))
        batches.append(order[first : first + size])
        first += size
    return batches


class MemoryGuard:
    """Halves a batch that does not fit into memory, and remembers the size; `advice` is for one sentence."""

    def __init__(self, advice: str) -> None:
        self._ceiling, self._advice = math.inf, advice

    def run(
        self, batch: np.ndarray, lengths: np.ndarray, work: Callable[[np.ndarray], Found]
    ) -> list[tuple[np.ndarray, Found]]:
        """Run `work` on a batch of indices into `lengths`, in as many parts as memory requires.

        Returns each part with its result, in the order of the batch.
        """
        waiting, done = [batch], []
        while waiting:
            part = waiting.pop()
            longest = int(lengths[part].max())
            if len(part) == 1 or len(part) * longest <= self._ceiling:
                try:
                    done.append((part, work(part)))
                    continue
                except (MemoryError, RuntimeError) as error:
                    # As torch and CTranslate2 say it.
                    lacking = r"out of memory|can't allocate memory|not enough memory"
                    if not isinstance(error, MemoryError) and not re.search(lacking, str(error), re.I):
                        raise
                # Out of the handler: the traceback would keep the tensors of the failed attempt.
                if torch.cuda.is_available():
                    torch.cuda.empty_cache()
                if len(part) == 1:
                    raise InputError(f"out of memory on one sentence of {longest} pieces: {self._advice}")
            half = -(-len(part) // 2)
            self._ceiling = min(self._ceiling, longest * half)
            waiting += [part[half:], part[:half]]
        return done


class BatchTranslator(ABC):
    """A translator that searches batches of sentences of similar length (`token_batches`); a subclass is an engine.

    Up to `workers` batches are translated at the same time; each sentence has `count` hypotheses.
    """

    identity: dict[str, object]

    def __init__(self, checkpoint: Checkpoint, *, batch_tokens: int, workers: int = 1, count: int = 1) -> None:
        self._checkpoint = checkpoint
        self._batch_tokens = batch_tokens
        self._workers = workers
        self._count = count
        self._guard = MemoryGuard(
            "lower beam, max_source_tokens or max_target_tokens, or take a smaller dtype or model"
        )

    @abstractmethod
    def search(self, sources: list[list[int]]) -> Hypotheses:
        """Find `count` hypotheses for each source of one batch, the best first; if fewer, some repeat."""

    def translate(self, sentences: Sequence[str]) -> Translations:
        """Translate sentences.

        A blank sentence has the empty translation and no score; a sentence with more pieces than the limit has
        neither. A sentence that occurs several times is translated once. Of several hypotheses with the same text the
        first counts, and an empty one only if all are empty. White space is normalised.
        """
        texts = [_tidy(sentence) for sentence in sentences]
        distinct = [text for text in dict.fromkeys(texts) if text]
        pieces = self._checkpoint.encode(distinct) if distinct else []
        kept = [index for index, ids in enumerate(pieces) if len(ids) <= self._checkpoint.max_source_tokens]
        results: dict[str, list[tuple[str | None, float]]] = {"": [("", math.nan)]}
        for row, (ids, scores) in self._search_all([pieces[index] for index in kept]):
            best: dict[str | None, float] = {}
            for text, score in zip(self._checkpoint.decode(ids), scores, strict=True):
                best.setdefault(_tidy(text), score)
            results[distinct[kept[row]]] = [each for each in best.items() if each[0] or len(best) == 1]
        ordered = [results.get(text, [(None, math.nan)]) for text in texts]
        owners = np.repeat(np.arange(len(texts)), [len(own) for own in ordered]) if self._count > 1 else None
        flat = [hypothesis for own in ordered for hypothesis in own]
        scored = np.array([score for _, score in flat], dtype=np.float32)
        return Translations([text for text, _ in flat], scored, owners)

    def _search_all(self, sources: list[list[int]]) -> Iterator[tuple[int, Hypotheses]]:
        """Search batch after batch, `workers` at the same time; yields the index of each source and its hypotheses."""
        lengths = np.array([len(ids) for ids in sources], dtype=np.int64)

        def search(batch: np.ndarray) -> list[tuple[np.ndarray, Hypotheses]]:
            return self._guard.run(batch, lengths, lambda part: self.search([sources[index] for index in part]))

        batches = token_batches(lengths, self._batch_tokens)
        with ThreadPoolExecutor(self._workers) as pool:
            # Without a thread an interrupt stops the work at once.
            for parts in map(search, batches) if self._workers == 1 else pool.map(search, batches):
                for part, (ids, scores) in parts:
                    for place, index in enumerate(part.tolist()):
                        own = slice(place * self._count, (place + 1) * self._count)
                        yield index, (ids[own], scores[own])


def _tidy(text: str) -> str:
    """Collapse white space to single blanks, and strip the ends."""
    return " ".join(text.split())
