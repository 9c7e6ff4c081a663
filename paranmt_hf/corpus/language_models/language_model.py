"""What a language model would be asked for a corpus, without asking."""

from __future__ import annotations

from paranmt_hf.corpus.bitext.readers import AlignedText, Report
from paranmt_hf.corpus.language_models.config import LanguageModelConfig
from paranmt_hf.corpus.language_models.cost import estimate
from paranmt_hf.corpus.language_models.prompts import Task


def describe_cost(text: AlignedText, config: LanguageModelConfig, task: Task) -> str:
    """Read a corpus and estimate what its requests cost; no server is asked.

    Args:
        text: Aligned text with `reference`, and `source` for translations.
        config: The language model and its prices.
        task: What it is to do.

    Returns:
        One line.
    """
    return f"{config.name}: {estimate(config, task, text.batches(Report())).describe()}"
