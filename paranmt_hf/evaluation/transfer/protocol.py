"""SentEval's protocol (Conneau & Kiela 2018, arXiv:1803.05449): constants, and what a person may choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paranmt_hf.util.settings import check, seed_setting, setting

# Inverse strengths C of the L2 penalty that SentEval tries with scikit-learn's logistic regression.
NESTED_GRID = tuple(2.0**power for power in range(-2, 4))
TRAIN_GRID = tuple(2.0**power for power in range(-1, 6))
DEV_GRID = tuple(2.0**power for power in range(-2, 4))

TASKS = ("MR", "CR", "SUBJ", "MPQA", "SST2", "SST5", "TREC", "MRPC", "SICK-R", "SICK-E")
# The averages that papers print, over accuracies.
AVERAGES: Mapping[str, tuple[str, ...]] = {
    # Sent2Vec (arXiv:1703.02507), table 1.
    "Mean of 6": ("MR", "CR", "SUBJ", "MPQA", "TREC", "MRPC"),
    # Sentence-BERT, SimCSE and others.
    "Mean of 7": ("MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC"),
}


@dataclass(frozen=True)
class TransferConfig:
    """What may be chosen of the protocol; the defaults are those of published figures."""

    folds: int = setting(
        10, "folds of cross-validation; published figures have 10, and 5 are quicker", at_least=2, at_most=100
    )
    seed: int = seed_setting(1111, "decides the folds, and the start and order of training of SICK-R")

    def __post_init__(self) -> None:
        check(self)

    def describe(self) -> dict[str, Any]:
        """Say how the heads are trained, as JSON values."""
        return {
            "folds": self.folds,
            "seed": self.seed,
            "head": "scikit-learn LogisticRegression, its defaults but for C",
            "grid": {"MR CR SUBJ MPQA": NESTED_GRID, "TREC MRPC": TRAIN_GRID, "SST SICK-E": DEV_GRID},
            "relatedness": "softmax over 5 classes, squared error, Adam",
        }
