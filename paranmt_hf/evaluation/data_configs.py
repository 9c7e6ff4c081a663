"""What experiments take of a corpus: settings of `paranmt folds`, `sources` and `sizes`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from paranmt_hf.errors import InputError
from paranmt_hf.util.settings import check, seed_setting, setting

# Pairs of all samples that are in memory together, about a gigabyte of text.
MAX_PAIRS = 3_000_000


@dataclass(frozen=True)
class FoldsConfig:
    """How a corpus is cut into folds (ParaNMT-50M, section 5.4 and table 5)."""

    scores: tuple[str, ...] = setting(
        ("translation_score", "trigram_overlap", "para_score"),
        "columns by which the rows are ranked, one after the other",
    )
    folds: int = setting(10, "parts that all rows are cut into", at_least=2, at_most=100)
    sample: int = setting(100_000, "pairs of each fold, drawn by chance", at_least=2)
    max_length: int | None = setting(30, "most word tokens on either side; rows are ranked before", at_least=1)
    draw_seed: int = seed_setting(0, "decides which pairs are drawn")

    def __post_init__(self) -> None:
        check(self)
        if self.folds * self.sample > MAX_PAIRS:
            raise InputError(
                f"{self.folds} folds of {self.sample:,} pairs are more than the {MAX_PAIRS:,} that are kept in "
                "memory; take smaller samples"
            )
        if len(set(self.scores)) != len(self.scores):
            raise InputError(f"each score is taken once, but --scores is {' '.join(self.scores)}")


@dataclass(frozen=True)
class SourcesConfig:
    """How sources are compared (ParaNMT-50M, table 4)."""

    sample: int = setting(100_000, "pairs of each source, drawn by chance", at_least=2, at_most=MAX_PAIRS)
    by: Literal["release", "origin"] = setting(
        "release", "what is a source: each release, or each origin that the column `origin` names"
    )
    max_length: int | None = setting(None, "most word tokens on either side", at_least=1)
    draw_seed: int = seed_setting(0, "decides which pairs are drawn")

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class SizesConfig:
    """How much of a corpus is learned from (PARAGRAM-PHRASE, arXiv:1511.08198, figure 1)."""

    sizes: tuple[int, ...] = setting(
        (1_000, 10_000, 100_000),
        "numbers of pairs; one that is larger than the corpus is all of it",
        at_least=2,
        at_most=MAX_PAIRS,
    )
    order: Literal["random", "given", "both"] = setting(
        "random", "which pairs: drawn by chance, the first ones in the order of the corpus, or one after the other"
    )
    max_length: int | None = setting(None, "most word tokens on either side", at_least=1)
    draw_seed: int = seed_setting(0, "decides which pairs are drawn; a smaller draw is a part of a larger one")

    def __post_init__(self) -> None:
        check(self)
        if len(set(self.sizes)) != len(self.sizes):
            raise InputError(f"each size is trained on once, but --sizes is {' '.join(map(str, self.sizes))}")

    @property
    def orders(self) -> tuple[str, ...]:
        """The orders that are compared."""
        return ("given", "random") if self.order == "both" else (self.order,)


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
