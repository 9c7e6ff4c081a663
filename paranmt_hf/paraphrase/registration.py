"""Tells transformers of the encoder-decoders: its automatic classes find them without code from a repository."""

from __future__ import annotations

from transformers import AutoConfig, AutoModelForSeq2SeqLM

from paranmt_hf.paraphrase.modeling_paranmt_controlled import (
    ParaNMTControlledConfig,
    ParaNMTControlledForConditionalGeneration,
)
from paranmt_hf.paraphrase.modeling_paranmt_lstm import ParaNMTLstmConfig, ParaNMTLstmForConditionalGeneration

MODELS: tuple[tuple[type[ParaNMTLstmConfig], type[ParaNMTLstmForConditionalGeneration]], ...] = (
    (ParaNMTLstmConfig, ParaNMTLstmForConditionalGeneration),
    (ParaNMTControlledConfig, ParaNMTControlledForConditionalGeneration),
)


def register() -> None:
    """Name the encoder-decoders to `AutoConfig` and `AutoModelForSeq2SeqLM`; doing so again changes nothing.

    What is saved from then on also names its own code, for those who load it with `trust_remote_code=True` where this
    package is not installed.
    """
    for config, model in MODELS:
        AutoConfig.register(config.model_type, config, exist_ok=True)
        AutoModelForSeq2SeqLM.register(config, model, exist_ok=True)
        config.register_for_auto_class()
        model.register_for_auto_class("AutoModelForSeq2SeqLM")


register()
