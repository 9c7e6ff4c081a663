"""Which engine translates: CTranslate2 or transformers, chosen by the settings, the machine and the model."""

from __future__ import annotations

import logging
from typing import Any

from paranmt_hf.corpus.translation.checkpoint import Checkpoint
from paranmt_hf.corpus.translation.ctranslate2 import CTranslate2Translator, UnsupportedError, check_suitable
from paranmt_hf.corpus.translation.device import preferred_engine
from paranmt_hf.corpus.translation.transformers import TransformersTranslator
from paranmt_hf.corpus.translation.translator import Translator, TranslatorConfig

logger = logging.getLogger(__name__)


def load_translator(config: TranslatorConfig, threads: int | None = None) -> Translator:
    """Load a translation model into its engine.

    Args:
        config: Names the model and says how it searches.
        threads: CPU threads; None takes all that the process may use.
    """
    checkpoint = Checkpoint(config)
    if _takes_ctranslate2(config, checkpoint):
        return CTranslate2Translator(config, checkpoint, threads)
    return TransformersTranslator(config, checkpoint, threads)


def translator_identity(config: TranslatorConfig) -> dict[str, Any]:
    """Say what `load_translator(config).identity` would be; every file is hashed, the weights are not loaded."""
    checkpoint = Checkpoint(config)
    return checkpoint.identity(config, "ctranslate2" if _takes_ctranslate2(config, checkpoint) else "transformers")


def _takes_ctranslate2(config: TranslatorConfig, checkpoint: Checkpoint) -> bool:
    """Tell whether CTranslate2 is the engine: when asked for, or by itself on a CPU where it can."""
    engine, certain = preferred_engine(config)
    if certain:
        return engine == "ctranslate2"
    try:
        check_suitable(config, checkpoint)
    except UnsupportedError as reason:
        logger.info("%s; taking transformers", reason)
        return False
    return True
