"""What both engines of translation share: batches of sentences of similar length, and a guard of memory."""

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
Hypotheses = tuple[list[list[int]], list[float]]  # Target ids and score of each hypothesis


def token_batches(lengths: np.ndarray | Sequence[int], budget: int) -> list[np.ndarray]:
    """Split sentences into batches of similar length, the longest first, and return the indices in each batch.

    The longest come first so that a lack of memory shows at once; sentences of equal length keep their order.

    Args:
        lengths: Number of pieces [sentence] in each sentence.
        budget: Largest product of the number of sentences in a batch and the length of its longest; a sentence that is
            longer than this is a batch by itself.
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
    """Runs work in smaller batches if memory runs out, and remembers the size that fits.

    Args:
        advice: What the user can do if even one sentence does not fit.
    """

    def __init__(self, advice: str) -> None:
        self._ceiling, self._advice = math.inf, advice

    def run(
        self, batch: np.ndarray, lengths: np.ndarray, work: Callable[[np.ndarray], Found]
    ) -> list[tuple[np.ndarray, Found]]:
        """Run `work` on a batch, in as many parts as memory requires.

        Args:
            batch: Indices [sentence] into `lengths`.
            lengths: Number of pieces in each sentence.
            work: Function of some of these indices.

        Returns:
            The indices in each part and the result for it, in the order of the batch.

        Raises:
            InputError: If one sentence alone does not fit into memory.
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
                    # These are the messages of torch and CTranslate2.
                    lacking = r"out of memory|can't allocate memory|not enough memory"
                    if not isinstance(error, MemoryError) and not re.search(lacking, str(error), re.I):
                        raise
                # This is outside the handler, because the traceback keeps the tensors of the failed attempt.
                if torch.cuda.is_available():
                    torch.cuda.empty_cache()
                if len(part) == 1:
                    raise InputError(f"out of memory on one sentence of {longest} pieces: {self._advice}")
            half = -(-len(part) // 2)
            self._ceiling = min(self._ceiling, longest * half)
            waiting += [part[half:], part[:half]]
        return done


class BatchTranslator(ABC):
    """Base class of translators, which search batches of sentences of similar length; a subclass is an engine.

    Args:
        checkpoint: The model without its weights.
        batch_tokens: Size of a batch; see `token_batches`.
        workers: Number of batches that are translated at the same time.
        count: Number of hypotheses of each sentence.
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
        """Find `count` hypotheses of each source in one batch, the best first; if there are fewer, some repeat."""

    def translate(self, sentences: Sequence[str]) -> Translations:
        """Translate sentences; white space of sentences and translations is normalised.

        The translation of a blank sentence is empty and has no score; a sentence with more pieces than the limit has
        no translation. A sentence that occurs several times is translated once. Among several hypotheses with the same
        text only the best is kept, and an empty one only if all are empty.
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
        owners = np.repeat(np.arange(len(texts)), [len(several) for several in ordered]) if self._count > 1 else None
        flat = [hypothesis for several in ordered for hypothesis in several]
        scored = np.array([score for _, score in flat], dtype=np.float32)
        return Translations([text for text, _ in flat], scored, owners)

    def _search_all(self, sources: list[list[int]]) -> Iterator[tuple[int, Hypotheses]]:
        """Search batch after batch, `workers` of them at the same time.

        Args:
            sources: Ids of the pieces of each source.

        Yields:
            Index of a source, and its hypotheses.
        """
        lengths = np.array([len(ids) for ids in sources], dtype=np.int64)

        def search(batch: np.ndarray) -> list[tuple[np.ndarray, Hypotheses]]:
            return self._guard.run(batch, lengths, lambda part: self.search([sources[index] for index in part]))

        batches = token_batches(lengths, self._batch_tokens)
        with ThreadPoolExecutor(self._workers) as pool:
            # If there is one worker, no thread is used, so that an interrupt stops the work at once.
            for parts in map(search, batches) if self._workers == 1 else pool.map(search, batches):
                for part, (ids, scores) in parts:
                    for position, index in enumerate(part.tolist()):
                        rows = slice(position * self._count, (position + 1) * self._count)
                        yield index, (ids[rows], scores[rows])


def _tidy(text: str) -> str:
    """Replace runs of white space by single blanks, and remove it at both ends."""
    return " ".join(text.split())
