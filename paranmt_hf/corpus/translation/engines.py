"""Choice of the translation engine: CTranslate2 or transformers, by the settings, the machine and the model."""

from __future__ import annotations

import logging
from typing import Any

from paranmt_hf.corpus.translation.ctranslate2 import CTranslate2Translator, UnsupportedError, check_suitable
from paranmt_hf.corpus.translation.transformers import Checkpoint, TransformersTranslator
from paranmt_hf.corpus.translation.translator import Translator, TranslatorConfig

logger = logging.getLogger(__name__)


def load_translator(config: TranslatorConfig, threads: int | None = None) -> Translator:
    """Load a translation model into its engine, which uses `threads` CPU threads (default: those of the process)."""
    checkpoint = Checkpoint(config)
    if _takes_ctranslate2(config, checkpoint):
        return CTranslate2Translator(config, checkpoint, threads)
    return TransformersTranslator(config, checkpoint, threads)


def translator_identity(config: TranslatorConfig) -> dict[str, Any]:
    """The `identity` of `load_translator(config)`, without loading weights; all files are hashed."""
    checkpoint = Checkpoint(config)
    return checkpoint.identity(config, "ctranslate2" if _takes_ctranslate2(config, checkpoint) else "transformers")


def _takes_ctranslate2(config: TranslatorConfig, checkpoint: Checkpoint) -> bool:
    """Whether CTranslate2 is the engine: if asked for, or by default on a CPU if it supports the model."""
    engine, certain = config.preferred_engine()
    if certain:
        return engine == "ctranslate2"
    try:
        check_suitable(config, checkpoint)
    except UnsupportedError as reason:
        logger.info("%s; using transformers", reason)
        return False
    return True
