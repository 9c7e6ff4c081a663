"""Chooses the engine of a translation, transformers or CTranslate2, by settings, machine and model."""

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
    """Load a translation model into its engine.

    Args:
        config: The model and the settings of the search.
        threads: Number of CPU threads; None for as many as torch uses.
    """
    checkpoint = Checkpoint(config)
    if _takes_ctranslate2(config, checkpoint):
        return CTranslate2Translator(config, checkpoint, threads)
    return TransformersTranslator(config, checkpoint, threads)


def translator_identity(config: TranslatorConfig) -> dict[str, Any]:
    """Return the `identity` of `load_translator(config)` without loading weights; all its files are hashed."""
    checkpoint = Checkpoint(config)
    return checkpoint.identity("ctranslate2" if _takes_ctranslate2(config, checkpoint) else "transformers")


def follow_record(config: TranslatorConfig, recorded: Mapping[str, Any] | None) -> TranslatorConfig:
    """Return settings with the engine and dtype of earlier work, where the user leaves these to the machine.

    Otherwise the same command would refuse to continue that work after a package or a GPU was added.

    Args:
        config: Settings of the translation.
        recorded: Identity of the translator of the earlier work; None if there is none. It is followed only if it
            agrees with the settings in everything else.
    """
    if recorded is None or (config.backend != "auto" and config.dtype != "auto"):
        return config
    identity = translator_identity(config)
    if any(recorded.get(name) != value for name, value in identity.items() if name not in ("backend", "dtype")):
        return config
    if config.backend == "auto" and recorded.get("backend") in get_args(Engine):
        config = replace(config, backend=recorded["backend"])
    if config.dtype == "auto" and recorded.get("dtype") in get_args(Dtype):
        config = replace(config, dtype=recorded["dtype"])
    return config


def _takes_ctranslate2(config: TranslatorConfig, checkpoint: Checkpoint) -> bool:
    """Whether CTranslate2 translates: if the settings ask for it, or by default on a CPU if it supports the model."""
    engine, certain = config.preferred_engine()
    if certain:
        return engine == "ctranslate2"
    reason = unsuitable(config, checkpoint)
    if reason is not None:
        logger.info("%s; using transformers", reason)
    return reason is None
