"""Options of language models behind a server, and which kind of translator a name means."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from paranmt_hf.cli.options import add_options, from_options
from paranmt_hf.errors import InputError
from paranmt_hf.util.settings import is_given

if TYPE_CHECKING:
    from paranmt_hf.corpus.language_models.config import LanguageModelConfig
    from paranmt_hf.corpus.translation.translator import TranslatorConfig

ESTIMATE_HELP = "say what a language model will be asked, and what that costs at the prices given, and stop"
# Settings that both kinds of translator have.
COMMON = ("name", "source_language", "target_language")


def add_language_model_options(parser: argparse._ActionsContainer, leave_out: Sequence[str] = ()) -> None:
    """Add the options of a language model but for its name."""
    from paranmt_hf.corpus.language_models.config import LanguageModelConfig

    add_options(parser, LanguageModelConfig, leave_out=["name", *leave_out])


def language_model_of(arguments: argparse.Namespace, name: str) -> LanguageModelConfig:
    """Make the settings of a language model.

    Args:
        arguments: The parsed options.
        name: The model as `openai:MODEL`.

    Raises:
        InputError: It is no such name.
    """
    from paranmt_hf.corpus.language_models.config import PREFIX, LanguageModelConfig, is_language_model

    if not is_language_model(name):
        raise InputError(f"expected a language model behind a server, openai:MODEL, not {name!r}")
    config: LanguageModelConfig = from_options(LanguageModelConfig, arguments, name=name.removeprefix(PREFIX))
    return config


def translator_of(arguments: argparse.Namespace, name: str) -> TranslatorConfig | LanguageModelConfig:
    """Make the settings of a translator, and refuse options of the other kind.

    Args:
        arguments: What was given.
        name: A translation model, or `openai:MODEL`.

    Raises:
        InputError: An option would be ignored.
    """
    from paranmt_hf.corpus.language_models.config import LanguageModelConfig, is_language_model
    from paranmt_hf.corpus.translation.translator import TranslatorConfig

    if is_language_model(name):
        config = language_model_of(arguments, name)
        _refuse(from_options(TranslatorConfig, arguments, name="model"), "a translation model, not a language model")
        return config
    asked = from_options(LanguageModelConfig, arguments, name="model", source_language=None, target_language=None)
    _refuse(asked, "a language model, --translator openai:MODEL")
    if arguments.estimate:
        raise InputError("--estimate is for a language model, --translator openai:MODEL")
    translator: TranslatorConfig = from_options(TranslatorConfig, arguments, name=name)
    return translator


def _refuse(settings: TranslatorConfig | LanguageModelConfig, purpose: str) -> None:
    for entry in fields(settings):
        if entry.name not in COMMON and is_given(settings, entry.name):
            raise InputError(f"--{entry.name.replace('_', '-')} is for {purpose}; leave it out")
