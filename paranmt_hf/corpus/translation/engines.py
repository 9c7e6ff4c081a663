"""The choice of the engine by settings, machine and model."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

from paranmt_hf.corpus.translation.checkpoint import Checkpoint
from paranmt_hf.corpus.translation.ctranslate2 import CTranslate2Translator, unsuitable
from paranmt_hf.corpus.translation.transformers import TransformersTranslator
from paranmt_hf.corpus.translation.translator import Dtype, Engine, Translator, TranslatorConfig

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
    return checkpoint.identity("ctranslate2" if _takes_ctranslate2(config, checkpoint) else "transformers")


def follow_record(config: TranslatorConfig, recorded: Mapping[str, Any] | None) -> TranslatorConfig:
    """Fill in backend and number format, if nobody chose them, from the identity of earlier work that is equal else.

    A package that was installed since, or a GPU, must not make the same command refuse that work.
    """
    if recorded is None or (config.backend != "auto" and config.dtype != "auto"):
        return config
    own = translator_identity(config)
    if any(recorded.get(name) != value for name, value in own.items() if name not in ("backend", "dtype")):
        return config
    if config.backend == "auto" and recorded.get("backend") in get_args(Engine):
        config = replace(config, backend=recorded["backend"])
    if config.dtype == "auto" and recorded.get("dtype") in get_args(Dtype):
        config = replace(config, dtype=recorded["dtype"])
    return config


def _takes_ctranslate2(config: TranslatorConfig, checkpoint: Checkpoint) -> bool:
    """Whether CTranslate2 is the engine: if asked for, or by default on a CPU if it supports the model."""
    engine, certain = config.preferred_engine()
    if certain:
        return engine == "ctranslate2"
    reason = unsuitable(config, checkpoint)
    if reason is not None:
        logger.info("%s; using transformers", reason)
    return reason is None
