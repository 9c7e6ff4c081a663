"""Tells transformers of the encoder-decoder, so that its automatic classes find it without code from a repository."""

from __future__ import annotations

from transformers import AutoConfig, AutoModelForSeq2SeqLM

from paranmt_hf.paraphrase.modeling_paranmt_lstm import ParaNMTLstmConfig, ParaNMTLstmForConditionalGeneration


def register() -> None:
    """Name the encoder-decoder to `AutoConfig` and `AutoModelForSeq2SeqLM`; doing so again changes nothing.

    What is saved from then on also names its own code, for those who load it with `trust_remote_code=True` where this
    package is not installed.
    """
    AutoConfig.register(ParaNMTLstmConfig.model_type, ParaNMTLstmConfig, exist_ok=True)
    AutoModelForSeq2SeqLM.register(ParaNMTLstmConfig, ParaNMTLstmForConditionalGeneration, exist_ok=True)
    ParaNMTLstmConfig.register_for_auto_class()
    ParaNMTLstmForConditionalGeneration.register_for_auto_class("AutoModelForSeq2SeqLM")


register()
