"""A translation model without its weights: OPUS-MT (Marian), NLLB, M2M100 and other encoder-decoders."""

from __future__ import annotations

import logging
import math
import re

from paranmt_hf.corpus.translation.translator import Engine, TranslatorConfig
from paranmt_hf.errors import InputError
from paranmt_hf.hub.pretrained import check_tokens, quiet, read_configuration
from paranmt_hf.hub.repository import locate
from paranmt_hf.util.wording import brief

logger = logging.getLogger(__name__)


class Checkpoint:
    """A translation model without its weights: tokenizer, language tokens and limits.

    Attributes:
        files: The files of the model.
        config: Its configuration.
        tokenizer: Its tokenizer.
        start: Ids with which every target begins: the start token and, for NLLB and M2M100, the target language.
        end: Id that ends a target.
        pad: Id of the padding.
        max_source_tokens: Largest number of pieces in a source, with the end token.
        max_target_tokens: Largest number of pieces in a target, with the end token and without `start`.
    """

    def __init__(self, config: TranslatorConfig) -> None:
        self.files = locate(config.name, config.revision, kind="translator")
        self.config, self.tokenizer = read_configuration(self.files, "expected a translation model")
        self.end = self._token("eos_token_id")
        self.pad = self._token("pad_token_id")
        self._settings = config
        self._prefix = ""  # Text with which each source of a multilingual Marian model begins
        language: list[int] = []
        if self.config.model_type == "marian":
            self._prefix = self._marian_prefix()
        elif hasattr(self.tokenizer, "src_lang"):
            language = [self._target_language()]
        elif given := config.source_language or config.target_language:
            raise InputError(f"{self.files.name!r} takes no language codes; got {given!r}")
        self.start = [self._token("decoder_start_token_id"), *language]
        positions = getattr(self.config, "max_position_embeddings", None) or math.inf
        self.max_source_tokens = int(min(config.max_source_tokens, positions))
        self.max_target_tokens = int(min(config.max_target_tokens, positions - len(language)))

    def _token(self, name: str) -> int:
        """Return the id of a special token in the configuration of the model, such as `eos_token_id`."""
        value = getattr(self.config, name, None)
        if not isinstance(value, int):
            raise InputError(f"the configuration of {self.files.name!r} must hold one {name}; it holds {value!r}")
        check_tokens(self.config, name, self.files.folder / "config.json")
        return value

    def _marian_prefix(self) -> str:
        """Return the code of the target language that sources of a multilingual Marian model begin with, else ""."""
        source, target = self._settings.source_language, self._settings.target_language
        if source:
            raise InputError(f"source_language is not used by a Marian model; got {source!r}")
        codes = self.tokenizer.supported_language_codes
        if not target:
            if codes:
                logger.warning("%s knows several target languages and target_language is not set", self.files.name)
            return ""
        if f">>{target}<<" not in codes:
            known = ", ".join(code.strip("<>") for code in codes[:5]) or "none"
            raise InputError(f"target_language must be a code that {self.files.name!r} has ({known}); got {target!r}")
        return f">>{target}<< "

    def _target_language(self) -> int:
        """Set the source language of a multilingual tokenizer, and return the id of the target language."""
        known = getattr(self.tokenizer, "lang_code_to_id", None)
        if not known:
            added = self.tokenizer.get_added_vocab().items()
            known = {token: index for token, index in added if re.fullmatch(r"[a-z]{2,3}_[A-Za-z]{2,4}", token)}
        for name in ("source_language", "target_language"):
            code = getattr(self._settings, name)
            if code not in known:
                raise InputError(
                    f"{self.files.name!r} needs {name} to be one of its {len(known)} codes, such as "
                    f"{', '.join(sorted(known)[:3])}; got {brief(code)}"
                )
        self.tokenizer.src_lang = self._settings.source_language
        language: int = known[self._settings.target_language]
        return language

    def encode(self, sentences: list[str]) -> list[list[int]]:
        """Split sentences into ids of pieces, with language and end tokens; nothing is truncated."""
        if self.config.model_type == "marian":
            # The tokenizer takes text that begins with ">>...<<" for a language code, unless a blank comes first.
            sentences = [self._prefix + (f" {text}" if text.startswith(">>") else text) for text in sentences]
        with quiet():
            return self.tokenizer(sentences, return_attention_mask=False)["input_ids"]

    def decode(self, hypotheses: list[list[int]]) -> list[str]:
        """Return the text of each hypothesis, given its target ids; special tokens are left out."""
        options = {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
        return [self.tokenizer.decode(ids, **options).strip() for ids in hypotheses]

    def identity(self, engine: Engine) -> dict[str, object]:
        """Return everything that determines the translations of an engine, as JSON values."""
        config = self._settings
        return {
            "model": self.files.name,
            "revision": self.files.revision,
            "backend": engine,
            "dtype": config.resolved_dtype,
            **config.search_identity,
            "capitals": "in the case of sentences",
            "max_source_tokens": self.max_source_tokens,
            "max_target_tokens": self.max_target_tokens,
            "source_language": config.source_language,
            "target_language": config.target_language,
        }
