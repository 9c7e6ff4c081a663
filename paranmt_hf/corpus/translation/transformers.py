"""Translation with transformers and torch: OPUS-MT (Marian), NLLB, M2M100 and other encoder-decoders.

Also what all engines share: batches of sentences of similar length, a memory guard, and order.
"""

from __future__ import annotations

import logging
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import torch

from paranmt_hf.corpus.translation.beam import (
    beam_search,
    best_first,
    diverse_beam_search,
    encode,
    sample,
    score,
    uniforms,
)
from paranmt_hf.corpus.translation.translator import (
    Translations,
    TranslatorConfig,
    default_batch_tokens,
    resolve_device,
)
from paranmt_hf.errors import InputError
from paranmt_hf.hub.pretrained import check_tokens, quiet, read_configuration, read_encoder_decoder
from paranmt_hf.hub.repository import locate
from paranmt_hf.util.wording import brief

Result = TypeVar("Result")


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
        self, batch: np.ndarray, lengths: np.ndarray, work: Callable[[np.ndarray], Result]
    ) -> list[tuple[np.ndarray, Result]]:
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
                    if not _out_of_memory(error):
                        raise
                # Out of the handler: the traceback would keep the tensors of the failed attempt.
                _free_device_memory()
                if len(part) == 1:
                    raise InputError(f"out of memory on one sentence of {longest} pieces: {self._advice}")
            half = -(-len(part) // 2)
            self._ceiling = min(self._ceiling, longest * half)
            waiting += [part[half:], part[:half]]
        return done


def _out_of_memory(error: Exception) -> bool:
    """Whether an error is a lack of memory; torch and CTranslate2 differ in class and wording."""
    wordings = ("out of memory", "can't allocate memory", "not enough memory")
    return isinstance(error, MemoryError) or any(words in str(error).lower() for words in wordings)


def _free_device_memory() -> None:
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


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
    def search(self, sources: list[list[int]]) -> tuple[list[list[int]], list[float]]:
        """Find ids and scores of `count` hypotheses for each source, the best first; if fewer, some repeat."""

    def translate(self, sentences: Sequence[str]) -> Translations:
        """Translate sentences.

        A blank sentence has the empty translation and no score; a sentence with more pieces than the limit has
        neither. A sentence that occurs several times is translated once. Of several hypotheses with the same text the
        first counts, and an empty one only if all are empty. White space is normalised.
        """
        texts = [_tidy(sentence) for sentence in sentences]
        results: dict[str, list[tuple[str | None, float]]] = {"": [("", math.nan)]}
        distinct = [text for text in dict.fromkeys(texts) if text]
        pieces = self._checkpoint.encode(distinct) if distinct else []
        kept = [index for index, ids in enumerate(pieces) if len(ids) <= self._checkpoint.max_source_tokens]
        hypotheses, scores = self._search_all([pieces[index] for index in kept])
        found = [_tidy(text) for text in self._checkpoint.decode(hypotheses)]
        for place, index in enumerate(kept):
            own = slice(place * self._count, (place + 1) * self._count)
            results[distinct[index]] = _distinct(found[own], scores[own])
        ordered = [results.get(text, [(None, math.nan)]) for text in texts]
        owners = np.repeat(np.arange(len(texts)), [len(own) for own in ordered]) if self._count > 1 else None
        flat = [hypothesis for own in ordered for hypothesis in own]
        scored = np.array([score for _, score in flat], dtype=np.float32)
        return Translations([text for text, _ in flat], scored, owners)

    def _search_all(self, sources: list[list[int]]) -> tuple[list[list[int]], list[float]]:
        lengths = np.array([len(ids) for ids in sources], dtype=np.int64)
        count = self._count
        hypotheses: list[list[int]] = [[] for _ in range(count * len(sources))]
        scores = [math.nan] * len(hypotheses)

        def work(part: np.ndarray) -> tuple[list[list[int]], list[float]]:
            return self.search([sources[index] for index in part])

        def guarded(batch: np.ndarray) -> list[tuple[np.ndarray, tuple[list[list[int]], list[float]]]]:
            return self._guard.run(batch, lengths, work)

        batches = token_batches(lengths, self._batch_tokens)
        with ThreadPoolExecutor(self._workers) as pool:
            # Without a pool an interrupt stops the work at once.
            for parts in map(guarded, batches) if self._workers == 1 else pool.map(guarded, batches):
                for part, (ids, values) in parts:
                    places = (part[:, None] * count + np.arange(count)).ravel()
                    for index, hypothesis, value in zip(places, ids, values, strict=True):
                        hypotheses[index], scores[index] = hypothesis, value
        return hypotheses, scores


def _distinct(texts: Sequence[str], scores: Sequence[float]) -> list[tuple[str | None, float]]:
    """Keep the first hypothesis of each text; an empty one only if all are empty."""
    best: dict[str | None, float] = {}
    for text, value in zip(texts, scores, strict=True):
        best.setdefault(text, value)
    return [(text, value) for text, value in best.items() if text or len(best) == 1]


def _tidy(text: str) -> str:
    """Collapse white space to single blanks, and strip the ends."""
    return " ".join(text.split())


logger = logging.getLogger(__name__)


class Checkpoint:
    """Everything of a model except its weights: tokenizer, languages and limits.

    Every target begins with the ids `start`: the start token and, for a multilingual model, the target language. The
    longest source and target, in pieces, count the end token, and not `start`.
    """

    def __init__(self, config: TranslatorConfig) -> None:
        self.files = locate(config.name, config.revision, kind="translator")
        self.config, self.tokenizer = read_configuration(self.files, "expected a translation model")
        self.end = self._token("eos_token_id")
        self.pad = self._token("pad_token_id")
        self._prefix = ""
        language = self._set_languages(config.source_language, config.target_language)
        self.start = [self._token("decoder_start_token_id"), *language]
        positions = getattr(self.config, "max_position_embeddings", None) or math.inf
        self.max_source_tokens = int(min(config.max_source_tokens, positions))
        self.max_target_tokens = int(min(config.max_target_tokens, positions - len(language)))

    def _token(self, name: str) -> int:
        value = getattr(self.config, name, None)
        if not isinstance(value, int):
            raise InputError(f"the configuration of {self.files.name!r} must hold one {name}; it holds {value!r}")
        check_tokens(self.config, name, self.files.folder / "config.json")
        return value

    def _set_languages(self, source: str | None, target: str | None) -> list[int]:
        """Set the languages; return the ids that start each target because of them."""
        if self.config.model_type == "marian":
            self._set_marian_target(source, target)
            return []
        if not hasattr(self.tokenizer, "src_lang"):
            if source or target:
                raise InputError(f"{self.files.name!r} takes no language codes; got {source or target!r}")
            return []
        known = getattr(self.tokenizer, "lang_code_to_id", None) or {
            token: index
            for token, index in self.tokenizer.get_added_vocab().items()
            if re.fullmatch(r"[a-z]{2,3}_[A-Za-z]{2,4}", token)
        }
        for name, code in (("source_language", source), ("target_language", target)):
            if code not in known:
                raise InputError(
                    f"{self.files.name!r} needs {name} to be one of its {len(known)} codes, such as "
                    f"{', '.join(sorted(known)[:3])}; got {brief(code)}"
                )
        self.tokenizer.src_lang = source
        return [known[str(target)]]

    def _set_marian_target(self, source: str | None, target: str | None) -> None:
        if source:
            raise InputError(f"source_language is not used by a Marian model; got {source!r}")
        codes = self.tokenizer.supported_language_codes
        if codes and not target:
            logger.warning("%s knows several target languages and target_language is not set", self.files.name)
        if target:
            if f">>{target}<<" not in codes:
                known = ", ".join(code.strip("<>") for code in codes[:5]) or "none"
                raise InputError(
                    f"target_language must be a code that {self.files.name!r} has ({known}); got {target!r}"
                )
            self._prefix = f">>{target}<< "

    def encode(self, sentences: list[str]) -> list[list[int]]:
        """Split sentences into piece ids with language and end tokens; nothing is truncated."""
        if self.config.model_type == "marian":
            # Without the blank the tokenizer takes text that begins with ">>...<<" for a language code.
            sentences = [self._prefix + (f" {text}" if text.startswith(">>") else text) for text in sentences]
        with quiet():
            return self.tokenizer(sentences, return_attention_mask=False)["input_ids"]

    def decode(self, hypotheses: list[list[int]]) -> list[str]:
        """Decode target ids without special tokens."""
        return [
            self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False).strip()
            for ids in hypotheses
        ]

    def identity(self, config: TranslatorConfig, backend: str) -> dict[str, object]:
        return {
            "model": self.files.name,
            "revision": self.files.revision,
            "backend": backend,
            "dtype": config.resolved_dtype,
            **config.search_identity,
            "capitals": "in the case of sentences",
            "max_source_tokens": self.max_source_tokens,
            "max_target_tokens": self.max_target_tokens,
            "source_language": config.source_language,
            "target_language": config.target_language,
        }


class TransformersTranslator(BatchTranslator):
    """Translates with transformers and torch (ParaNMT-50M, section 3), on `threads` threads of the whole process.

    Deviations from `generate`: the checkpoint's `generation_config.json` is ignored, and Marian's padding symbol,
    which only represents an empty start, has no probability.
    """

    def __init__(
        self, config: TranslatorConfig, checkpoint: Checkpoint | None = None, threads: int | None = None
    ) -> None:
        if config.dtype == "int8":
            raise InputError("dtype int8 needs `backend` ctranslate2, was transformers", option="backend")
        device = resolve_device(config.device)
        checkpoint = checkpoint or Checkpoint(config)
        batch_tokens = config.batch_tokens or default_batch_tokens(device)
        super().__init__(checkpoint, batch_tokens=batch_tokens, count=config.hypotheses)
        if threads is not None:
            torch.set_num_threads(threads)
        self._config = config
        dtype = getattr(torch, config.resolved_dtype)
        self._model = read_encoder_decoder(checkpoint.files, dtype, "translation model").to(device)
        if checkpoint.config.model_type == "marian":
            self._model.final_logits_bias[:, checkpoint.pad] = -1e4
        self.identity = checkpoint.identity(config, "transformers")

    def search(self, sources: list[list[int]]) -> tuple[list[list[int]], list[float]]:
        """Find hypotheses and their scores for each source of one batch."""
        config, count, point = self._config, self._count, self._checkpoint
        longest = point.max_target_tokens
        batch = encode(self._model, sources, pad=point.pad, start=point.start, ends=[point.end], longest=longest)
        if config.sample:
            numbers = uniforms(sources, config.draw_seed, count, longest)
            return best_first(*sample(batch, numbers, temperature=config.temperature, top_p=config.top_p), count)
        if config.beam_groups == 1:
            return beam_search(batch, beams=config.beam, count=count)
        found = diverse_beam_search(batch, beams=config.beam, groups=config.beam_groups, diversity=config.diversity)
        ids = [one for place, one in enumerate(found) if place % config.beam < count]
        rows = torch.arange(len(sources), device=self._model.device).repeat_interleave(count)
        return best_first(ids, score(batch.take(rows), ids), count)
