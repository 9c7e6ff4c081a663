"""Back-translation: turn the foreign side of a bitext into English.

Wieting & Gimpel 2018, "ParaNMT-50M", section 3: beam search with 12 beams, the best hypothesis is kept. This file
holds what does not depend on the engine: the settings, the batches, and the step from a table of sentence pairs to a
table of translations. The engines are in `marian.py` (transformers) and `ctranslate.py` (CTranslate2).
"""

from __future__ import annotations

import math
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, TypeVar, get_args

import numpy as np
import pyarrow as pa

from paranmt_hf.errors import InputError

Backend = Literal["auto", "transformers", "ctranslate2"]
Dtype = Literal["auto", "float32", "float16", "bfloat16", "int8"]
Result = TypeVar("Result")

LENGTH_PENALTY = 1.0


@dataclass(frozen=True)
class TranslatorConfig:
    """Which model translates, and how it searches.

    Every field carries its help text, so that a command line can be made from this class.

    Raises:
        InputError: A value is outside its range.
    """

    name: str = field(metadata={"help": "translation model: a folder or an id on the Hugging Face Hub"})
    revision: str | None = field(default=None, metadata={"help": "branch, tag or commit of a model on the Hub"})
    backend: Backend = field(
        default="auto",
        metadata={"help": "engine; auto takes ctranslate2 on a CPU where it is installed and fits the model"},
    )
    beam: int = field(default=12, metadata={"help": "number of beams; the paper uses 12 (section 3)"})
    batch_tokens: int | None = field(
        default=None,
        metadata={"help": "batch size: sentences times pieces of the longest; by default 800 on a CPU, 8192 on a GPU"},
    )
    max_source_tokens: int = field(
        default=256, metadata={"help": "longest source in pieces, end token included; longer ones are dropped"}
    )
    max_target_tokens: int = field(default=256, metadata={"help": "longest translation in pieces, end token included"})
    device: str | None = field(default=None, metadata={"help": "cpu, cuda or cuda:N; by default cuda if there is one"})
    dtype: Dtype = field(
        default="auto",
        metadata={"help": "number format; auto is float32 on a CPU, float16 on a GPU; int8 only with ctranslate2"},
    )
    source_language: str | None = field(
        default=None, metadata={"help": "code of the source language, for NLLB and M2M100"}
    )
    target_language: str | None = field(
        default=None, metadata={"help": "code of the target language, for NLLB, M2M100 and multi-target OPUS-MT"}
    )
    threads: int | None = field(
        default=None, metadata={"help": "CPU threads; by default all that the process may use"}
    )

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise InputError(f"the translation model must be a folder or a Hub id; got {self.name!r}")
        for name, allowed in (("backend", Backend), ("dtype", Dtype)):
            if getattr(self, name) not in get_args(allowed):
                choices = ", ".join(get_args(allowed))
                raise InputError(f"{name} must be one of {choices}; got {getattr(self, name)!r}")
        self._check_numbers()
        if self.device is not None and not re.fullmatch(r"cpu|cuda(:\d+)?", self.device):
            raise InputError(f"device must be cpu, cuda or cuda:N; got {self.device!r}")
        if self.dtype == "int8" and self.backend == "transformers":
            raise InputError("dtype 'int8' needs backend ctranslate2; got backend 'transformers'")

    def _check_numbers(self) -> None:
        least = {"beam": 1, "batch_tokens": 1, "max_source_tokens": 2, "max_target_tokens": 2, "threads": 1}
        for name, lowest in least.items():
            value = getattr(self, name)
            if value is None and name in ("batch_tokens", "threads"):
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < lowest:
                raise InputError(f"{name} must be a whole number of at least {lowest}; got {value!r}")

    @cached_property
    def identity(self) -> dict[str, Any]:
        """The identity of the translator that `load` gives, see `Translator`; the weights are not loaded."""
        from paranmt_hf.corpus.translation import ctranslate2 as ctranslate
        from paranmt_hf.corpus.translation import transformers as marian

        checkpoint = marian.Checkpoint(self)
        return checkpoint.identity(self, "ctranslate2" if ctranslate.chosen(self, checkpoint) else "transformers")

    def load(self) -> Translator:
        """Load the model and the engine.

        Raises:
            InputError: The model cannot be found, read or used with these settings.
        """
        # The engines import torch, which takes seconds; the settings must not.
        from paranmt_hf.corpus.translation import ctranslate2 as ctranslate
        from paranmt_hf.corpus.translation import transformers as marian

        checkpoint = marian.Checkpoint(self)
        if ctranslate.chosen(self, checkpoint):
            return ctranslate.CTranslate2Translator(self, checkpoint)
        return marian.MarianTranslator(self, checkpoint)


@dataclass(frozen=True)
class Translations:
    """Translations in the order of the input.

    Attributes:
        texts: Best hypothesis of each sentence; None where the source has too many pieces.
        scores: Shape [sentence], float32: the sum of the natural logarithms of the probabilities of the target tokens,
            end token included, divided by their number (<= 0); NaN where there is no hypothesis. A forced language
            token is a prefix and counts in neither. A hypothesis cut at the limit has no end token.
    """

    texts: list[str | None]
    scores: np.ndarray


class Translator(Protocol):
    """Anything that translates.

    Attributes:
        identity: Everything that determines the output, as JSON-able values, `max_source_tokens` among them; no batch
            size, device or threads.
    """

    identity: dict[str, object]

    def translate(self, sentences: Sequence[str]) -> Translations:
        """Translate sentences; the order is kept."""
        ...


def token_batches(lengths: np.ndarray | Sequence[int], budget: int) -> list[np.ndarray]:
    """Cut sentences into batches of similar length.

    Args:
        lengths: Shape [sentence], pieces of each.
        budget: Most that sentences times pieces of the longest may come to; a longer sentence is a batch alone.

    Returns:
        Indices of the sentences of each batch. The longest come first, so that a lack of memory shows at once; equal
        lengths keep their order.
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
    """Halves a batch that does not fit into memory, and remembers the size that did not fit."""

    def __init__(self) -> None:
        self._ceiling = math.inf

    def run(
        self, batch: np.ndarray, lengths: np.ndarray, work: Callable[[np.ndarray], Result]
    ) -> list[tuple[np.ndarray, Result]]:
        """Run `work` on a batch, in as many parts as memory asks for.

        Args:
            batch: Shape [sentence], indices into `lengths`.
            lengths: Pieces of every sentence.
            work: Called with the indices of a part.

        Returns:
            Each part with its result, in the order of the batch.

        Raises:
            InputError: A single sentence does not fit.
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
                    if not _out_of_memory(error):
                        raise
                # Out of the handler: the traceback would keep the tensors of the failed attempt.
                _free_device_memory()
                if len(part) == 1:
                    raise InputError(
                        f"out of memory on one sentence of {longest} pieces: lower beam, max_source_tokens or "
                        "max_target_tokens, or take a smaller dtype or model"
                    )
            half = -(-len(part) // 2)
            self._ceiling = min(self._ceiling, longest * half)
            waiting += [part[half:], part[:half]]
        return done


def _out_of_memory(error: Exception) -> bool:
    """Tell a lack of memory from any other failure; torch and CTranslate2 differ in class and wording."""
    wordings = ("out of memory", "can't allocate memory", "not enough memory")
    return isinstance(error, MemoryError) or any(words in str(error).lower() for words in wordings)


def _free_device_memory() -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


class Codec(Protocol):
    """Text to pieces and back.

    Attributes:
        max_source_tokens: Longest source in pieces, special tokens included.
    """

    max_source_tokens: int

    def encode(self, sentences: list[str]) -> list[list[int]]:
        """Cut sentences into piece ids, special tokens included; nothing is cut off."""
        ...

    def decode(self, hypotheses: list[list[int]]) -> list[str]:
        """Turn target ids into text, special tokens left out."""
        ...


class BatchTranslator(ABC):
    """What both engines share: limits, batches and order.

    Args:
        codec: Text to pieces and back.
        batch_tokens: Budget of a batch, see `token_batches`.
        workers: Batches that are translated at the same time.
    """

    identity: dict[str, object]

    def __init__(self, codec: Codec, *, batch_tokens: int, workers: int = 1) -> None:
        self._codec = codec
        self._batch_tokens = batch_tokens
        self._workers = workers
        self._guard = MemoryGuard()

    @abstractmethod
    def search(self, sources: list[list[int]]) -> tuple[list[list[int]], list[float]]:
        """Find the best hypothesis, without prefix, and its score, for each source of one batch."""

    def translate(self, sentences: Sequence[str]) -> Translations:
        """Translate sentences.

        A blank sentence has the empty translation and no score; a sentence with more pieces than the limit has
        neither. A sentence that occurs several times is translated once.

        Args:
            sentences: Source sentences; white space is normalised.

        Returns:
            Translations in the order of `sentences`.
        """
        texts = [" ".join(sentence.split()) for sentence in sentences]
        found: dict[str, tuple[str | None, float]] = {"": ("", math.nan)}
        distinct = [text for text in dict.fromkeys(texts) if text]
        pieces = self._codec.encode(distinct) if distinct else []
        kept = [index for index, ids in enumerate(pieces) if len(ids) <= self._codec.max_source_tokens]
        hypotheses, scores = self._search_all([pieces[index] for index in kept])
        for index, text, score in zip(kept, self._codec.decode(hypotheses), scores, strict=True):
            found[distinct[index]] = (text, score)
        results = [found.get(text, (None, math.nan)) for text in texts]
        return Translations([text for text, _ in results], np.array([score for _, score in results], dtype=np.float32))

    def _search_all(self, sources: list[list[int]]) -> tuple[list[list[int]], list[float]]:
        lengths = np.array([len(ids) for ids in sources], dtype=np.int64)
        hypotheses: list[list[int]] = [[] for _ in sources]
        scores = [math.nan] * len(sources)

        def work(part: np.ndarray) -> tuple[list[list[int]], list[float]]:
            return self.search([sources[index] for index in part])

        def guarded(batch: np.ndarray) -> list[tuple[np.ndarray, tuple[list[list[int]], list[float]]]]:
            return self._guard.run(batch, lengths, work)

        batches = token_batches(lengths, self._batch_tokens)
        with ThreadPoolExecutor(self._workers) as pool:
            # One worker needs no pool, and without one an interrupt stops the work at once.
            for parts in map(guarded, batches) if self._workers == 1 else pool.map(guarded, batches):
                for part, (ids, values) in parts:
                    for index, hypothesis, value in zip(part, ids, values, strict=True):
                        hypotheses[index], scores[index] = hypothesis, value
        return hypotheses, scores


def translate_table(batch: pa.Table | pa.RecordBatch, translator: Translator) -> tuple[pa.Table, dict[str, int]]:
    """Translate the sources of aligned sentence pairs.

    The sentences are sorted by length over the whole table, so a larger table makes fuller batches.

    Args:
        batch: Columns `id` (int64), `source` and `reference` (string).
        translator: Translates `source`.

    Returns:
        A table with `id`, `reference`, `translation`, `source` and `translation_score` (float32), in the order of the
        input, white space normalised, and any other columns as they came; and the number of rows left out, by reason.
    """
    sources = [" ".join(text.split()) for text in batch.column("source").to_pylist()]
    references = [" ".join(text.split()) for text in batch.column("reference").to_pylist()]
    result = translator.translate(sources)
    translations = [None if text is None else " ".join(text.split()) for text in result.texts]
    limit = translator.identity.get("max_source_tokens", "the permitted number of")
    reasons = {
        f"source over {limit} pieces": sum(text is None for text in translations),
        "empty translation": sum(text == "" for text in translations),
    }
    table = pa.table(
        {
            "id": batch.column("id"),
            "reference": pa.array(references, pa.string()),
            "translation": pa.array(translations, pa.string()),
            "source": pa.array(sources, pa.string()),
            "translation_score": pa.array(result.scores, pa.float32()),
            **{name: batch.column(name) for name in batch.schema.names if name not in ("id", "reference", "source")},
        }
    )
    kept = table.filter(pa.array([bool(text) for text in translations], pa.bool_()))
    return kept, {reason: count for reason, count in reasons.items() if count}
