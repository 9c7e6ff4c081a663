"""Metrics for the `evaluate` library, used directly: nothing is downloaded.

Importing this module imports `evaluate` and `datasets`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from datasets import Features, Value

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.correlation import pearson, spearman
from paranmt_hf.evaluation.similarities import PairSimilarity, pair_similarities
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.util.optional import require

evaluate: Any = require("evaluate", "evaluate")


class _InMemory(evaluate.Metric):
    """The base class of both metrics, which keeps examples in memory, so that instances never share a cache file."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401
        super().__init__(**{"keep_in_memory": settings.get("num_process", 1) == 1, **settings})


class StsCorrelation(_InMemory):
    """A metric of the `evaluate` library: Pearson's r and Spearman's rho of similarities and gold scores.

    >>> round(StsCorrelation().compute(predictions=[0.1, 0.4, 0.5], references=[1, 2, 4])["spearman"], 6)
    1.0
    """

    def _info(self) -> Any:  # noqa: ANN401
        return evaluate.MetricInfo(
            description="Pearson's r and Spearman's rho of similarities and gold scores, in [-1, 1].",
            citation="",
            inputs_description="predictions: the model's similarities; references: the gold scores.",
            features=Features({"predictions": Value("float64"), "references": Value("float64")}),
        )

    def _compute(self, predictions: list[float], references: list[float]) -> dict[str, float]:
        return {"pearson": pearson(predictions, references), "spearman": spearman(predictions, references)}


class ParaphraseScore(_InMemory):
    """A metric of the `evaluate` library: the cosines of generated sentences with their references, and their mean.

    With the same encoder, the cosine of a pair is its `para_score` in a corpus.

    Args:
        encoder: An encoder or a measure of pairs, see `evaluate_sts`.
        settings: Settings of `evaluate.Metric`.
    """

    def __init__(self, encoder: Encoder | PairSimilarity, **settings: Any) -> None:  # noqa: ANN401
        super().__init__(**settings)
        self.encoder = encoder

    def _info(self) -> Any:  # noqa: ANN401
        return evaluate.MetricInfo(
            description="Cosine of the embeddings of prediction and reference, in [-1, 1].",
            citation="",
            inputs_description="predictions: generated sentences; references: sentences they are to paraphrase.",
            features=Features({"predictions": Value("string"), "references": Value("string")}),
        )

    def _compute(self, predictions: list[str], references: list[str]) -> dict[str, Any]:
        if not len(predictions):
            raise InputError("there is no prediction to score")
        similarities = pair_similarities(self.encoder, list(predictions), list(references), "paraphrase score")
        return {"paraphrase_score": float(np.mean(similarities.values)), "scores": similarities.values.tolist()}
