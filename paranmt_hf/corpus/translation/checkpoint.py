"""Reading a translation model in the transformers format: tokenizer, configuration, weights, device."""

from __future__ import annotations

import logging
import math
import re
from typing import Any

import torch
from transformers import AutoConfig, AutoTokenizer

from paranmt_hf.corpus.translation.device import resolve_dtype
from paranmt_hf.corpus.translation.translator import TranslatorConfig
from paranmt_hf.errors import InputError
from paranmt_hf.hub.pretrained import UNREADABLE, quiet, read_encoder_decoder
from paranmt_hf.hub.repository import Model, locate, readable

logger = logging.getLogger(__name__)


def read_weights(files: Model, dtype: torch.dtype) -> Any:  # noqa: ANN401 - transformers has no common type
    """Read the weights of an encoder-decoder in the given number format, whatever the folder's own."""
    return read_encoder_decoder(files, dtype, "translation model")


class Checkpoint:
    """Everything of a model but its weights: text to pieces and back, and the ids that steer the search.

    Args:
        config: Names the model, the languages and the limits.

    Attributes:
        files: Where the model is, and what names it for good.
        config: Configuration of the model as transformers reads it.
        tokenizer: Tokenizer of the model.
        start: Ids that every target begins with: the start token and, for a multilingual model, the target language.
        end: Id of the end token.
        pad: Id of the padding token.
        max_source_tokens: Longest source in pieces, end token included.
        max_target_tokens: Longest target in pieces, end token included, `start` not.
    """

    def __init__(self, config: TranslatorConfig) -> None:
        self.files = locate(config.name, config.revision, kind="translator")
        try:
            with quiet(), readable(self.files) as folder:
                self.config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
                self.tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        except UNREADABLE as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(
                f"{str(self.files.folder)!r} has no readable configuration and tokenizer: {reason}"
            ) from error
        if not getattr(self.config, "is_encoder_decoder", False):
            raise InputError(f"{config.name!r} is a {self.config.model_type} model, not an encoder-decoder")
        # A sentence that happens to contain "</s>" is text all the same.
        self.tokenizer.split_special_tokens = True
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
        return value

    def _set_languages(self, source: str | None, target: str | None) -> list[int]:
        """Set the languages; return the ids that a target begins with because of them."""
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
                    f"{', '.join(sorted(known)[:3])}; got {code!r}"
                )
        self.tokenizer.src_lang = source
        return [known[str(target)]]

    def _set_marian_target(self, source: str | None, target: str | None) -> None:
        if source:
            raise InputError(f"source_language has no use with a Marian model; got {source!r}")
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
        """Cut sentences into piece ids, language and end token included; nothing is cut off."""
        if self.config.model_type == "marian":
            # Without the blank the tokenizer takes text that begins with ">>...<<" for a language code.
            sentences = [self._prefix + (f" {text}" if text.startswith(">>") else text) for text in sentences]
        with quiet():
            return self.tokenizer(sentences, return_attention_mask=False)["input_ids"]

    def decode(self, hypotheses: list[list[int]]) -> list[str]:
        """Turn target ids into text, special tokens left out."""
        return [
            self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False).strip()
            for ids in hypotheses
        ]

    def identity(self, config: TranslatorConfig, backend: str) -> dict[str, object]:
        """Collect everything that determines the output, as JSON-able values."""
        return {
            "model": self.files.name,
            "revision": self.files.revision,
            "backend": backend,
            "dtype": resolve_dtype(config),
            **config.search_identity,
            "max_source_tokens": self.max_source_tokens,
            "max_target_tokens": self.max_target_tokens,
            "source_language": config.source_language,
            "target_language": config.target_language,
        }
