"""Settings of the evaluation of paraphrasers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from paranmt_hf.util.settings import check, seed_setting, setting

# Pairs of all samples that are in memory together, about a gigabyte of text.
MAX_PAIRS = 3_000_000


@dataclass(frozen=True)
class ItemsConfig:
    """Which sentences of pairs paraphrasers are measured on."""

    direction: Literal["to-reference", "to-translation"] = setting(
        "to-reference",
        "translations are paraphrased and references are what they should be, or the reverse; a sentence with several "
        "is one item with several references",
    )
    held_out: bool = setting(
        False, "only pairs whose reference the training of each model held out, as its training.json says"
    )
    items: int = setting(500, "most sentences, drawn by chance; 0 for all", at_least=0, at_most=MAX_PAIRS)
    seed: int = seed_setting(1, "decides which sentences are drawn, their noise, and what samples draw")

    def __post_init__(self) -> None:
        check(self)
