"""STS as an evaluator of sentence-transformers: during training, and in the model card.

Importing this module imports sentence-transformers.
"""

from __future__ import annotations

import csv
import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentence_transformers.base.evaluation import BaseEvaluator

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.results import Results
from paranmt_hf.evaluation.sts import evaluate_sts
from paranmt_hf.evaluation.sts_data import DEVELOPMENT, StsSet, development_set, read_sts

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)


class StsEvaluator(BaseEvaluator):
    """Evaluates a model on STS; for `SentenceTransformerTrainer(evaluator=...)` and by itself.

    The metrics are, of each year, the papers' mean of Pearson's r over the datasets (`sts12_mean`) and MTEB's
    Spearman over all pairs (`sts12_spearman`), and `mean`, the mean of the yearly means; of a set that stands alone,
    Pearson and Spearman (`stsb_test_pearson`). The primary metric, by which checkpoints are chosen, is Pearson on the
    development set; where that is absent the mean; where there are no years the first set's Pearson. Choose a
    checkpoint with `development=True`: a test set must not take part in it.

    A model that gives a vector that is not finite, or the same vector to all, stops the training with an `InputError`.

    Args:
        data: Location of the data, see `read_sts`; or the sets themselves.
        development: Evaluate on the papers' development set alone, the 250 pairs of STS 2017 track 5, which are in the
            STS benchmark's dev and test files; `data` is then a folder with these.
        name: Prefix of the metrics and of the CSV file; the model card shows it as the dataset.
    """

    def __init__(
        self,
        data: Path | str | Sequence[StsSet],
        *,
        development: bool = False,
        name: str = "sts",
    ) -> None:
        super().__init__()
        if isinstance(data, str | Path):
            self.sets = [development_set(data)] if development else read_sts(data)
        else:
            self.sets = [each for each in data if each.name == DEVELOPMENT or not development]
        if not self.sets:
            raise InputError("there is nothing to evaluate: expected at least one set of pairs")
        self.name = name
        self.primary_metric = f"{name}_{self._primary()}" if name else self._primary()
        self.csv_file = f"sts_evaluation_{name}_results.csv" if name else "sts_evaluation_results.csv"

    def __call__(
        self, model: SentenceTransformer, output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        """Evaluate a model; returns the metrics, each in [-1, 1], prefixed by the name.

        With an output folder a line is added to its file `sts_evaluation_<name>_results.csv`.
        """
        plain = metrics_of(evaluate_sts(model, self.sets, bootstrap=0))
        if output_path is not None:
            path = Path(output_path, self.csv_file)
            path.parent.mkdir(parents=True, exist_ok=True)
            new = not path.exists()
            with path.open("a", newline="", encoding="utf8") as file:
                heading = [["epoch", "steps", *plain]] if new else []
                csv.writer(file).writerows([*heading, [epoch, steps, *plain.values()]])
        metrics = self.prefix_name_to_metrics(plain, self.name)
        logger.info(f"STS: {self.primary_metric} {metrics[self.primary_metric]:.4f}")
        self.store_metrics_in_model_card_data(model, metrics, epoch, steps)
        return metrics

    @property
    def description(self) -> str:
        """Name of the task in the model card."""
        return "Semantic Textual Similarity"

    def get_config_dict(self) -> dict[str, Any]:
        """Settings for the model card."""
        return {"similarity": "cosine", "pairs": sum(map(len, self.sets))}

    def _primary(self) -> str:
        names = {sts_set.name for sts_set in self.sets if not sts_set.year}
        if DEVELOPMENT in names:
            return f"{_key(DEVELOPMENT)}_pearson"
        return "mean" if any(sts_set.year for sts_set in self.sets) else f"{_key(self.sets[0].name)}_pearson"


def metrics_of(results: Results) -> dict[str, float]:
    """Flatten results to metrics, named as in `StsEvaluator`; each in [-1, 1]."""
    metrics: dict[str, float] = {}
    years = {row.name for row in results.tables["Year"]}
    for row in results.tables["Set"]:
        if row.group not in years:
            metrics |= {f"{_key(row.name)}_{measure}": row[measure] for measure in ("pearson", "spearman")}
    for row in results.tables["Year"]:
        if row.name != "Mean":
            metrics |= {f"{_key(row.name)}_mean": row.main, f"{_key(row.name)}_spearman": row["all_spearman"]}
    if results.mean is not None:
        metrics["mean"] = results.mean
    return metrics


def _key(name: str) -> str:
    return re.sub(r"\W+", "_", name.lower()).strip("_")
