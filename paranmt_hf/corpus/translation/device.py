"""On which device, in which number format and with which engine a translator works, before a model is opened."""

from __future__ import annotations

from typing import Literal

import torch

from paranmt_hf.corpus.translation.translator import TranslatorConfig
from paranmt_hf.errors import InputError
from paranmt_hf.util.optional import available

Engine = Literal["ctranslate2", "transformers"]


def resolve_device(device: str | None) -> str:
    """Name the device to use."""
    if device is not None and device.startswith("cuda"):
        index = int(device.partition(":")[2] or 0)
        if index >= torch.cuda.device_count():
            raise InputError(f"device {device!r} is not there: torch sees {torch.cuda.device_count()} GPUs; use cpu")
    return device or ("cuda" if torch.cuda.is_available() else "cpu")


def resolve_dtype(config: TranslatorConfig) -> str:
    """Name the number format to use."""
    if config.dtype != "auto":
        return config.dtype
    return "float32" if resolve_device(config.device) == "cpu" else "float16"


def default_batch_tokens(device: str) -> int:
    """Size of a batch where none is asked for: enough work for the device, moderate memory."""
    return 800 if device == "cpu" else 8192


def preferred_engine(config: TranslatorConfig) -> tuple[Engine, bool]:
    """Choose the engine by settings and machine.

    Returns:
        The engine, and whether it is certain; where it is not, transformers takes models that CTranslate2 cannot.
    """
    if config.backend != "auto":
        return config.backend, True
    if config.dtype == "int8":
        return "ctranslate2", True
    if resolve_device(config.device) != "cpu" or not available("ctranslate2"):
        return "transformers", True
    return "ctranslate2", False
