"""Translation with transformers and torch: OPUS-MT (Marian), NLLB, M2M100 and other encoder-decoders."""

from __future__ import annotations

import logging
import math
import re

import torch

from paranmt_hf.corpus.translation.batching import BatchTranslator
from paranmt_hf.corpus.translation.beam import (
    beam_search,
    best_first,
    diverse_beam_search,
    encode,
    sample,
    score,
    uniforms,
)
from paranmt_hf.corpus.translation.translator import TranslatorConfig, default_batch_tokens, resolve_device
from paranmt_hf.errors import InputError
from paranmt_hf.hub.pretrained import check_tokens, quiet, read_configuration, read_encoder_decoder
from paranmt_hf.hub.repository import locate
from paranmt_hf.util.wording import brief

logger = logging.getLogger(__name__)


class Checkpoint:
    """Everything of a model except its weights: tokenizer, languages and limits.

    Args:
        config: Names the model, the languages and the limits.

    Attributes:
        files: Folder of the model, its name and revision.
        config: Configuration of the model in transformers.
        tokenizer: Tokenizer of the model.
        start: Ids that every target begins with: the start token and, for a multilingual model, the target language.
        end: Id of the end token.
        pad: Id of the padding token.
        max_source_tokens: Longest source in pieces, end token included.
        max_target_tokens: Longest target in pieces, end token included, `start` not.
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
        """Everything that determines the output, as JSON values."""
        return {
            "model": self.files.name,
            "revision": self.files.revision,
            "backend": backend,
            "dtype": config.resolved_dtype,
            **config.search_identity,
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
        self._checkpoint = checkpoint = checkpoint or Checkpoint(config)
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
