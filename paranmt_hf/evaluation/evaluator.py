"""An evaluator for sentence-transformers that runs STS during training and writes into the model card.

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
    """An evaluator of models on STS, for `SentenceTransformerTrainer(evaluator=...)` or to be called directly.

    Its metrics are:

    - for each year, the mean of Pearson's r over the datasets, as in the papers (`sts12_mean`), and Spearman's rho
      over all pairs, as in MTEB (`sts12_spearman`);
    - `mean`, the mean of the yearly means;
    - for each set that belongs to no year, Pearson's r and Spearman's rho (`stsb_test_pearson`).

    The primary metric, by which checkpoints are chosen, is Pearson's r on the development set. Without this set it is
    `mean`, and without years Pearson's r on the first set. To choose a checkpoint, use `development=True`: a test set
    must not take part in the choice.

    A model that gives a vector that is not finite, or the same vector to all sentences, stops the training with an
    `InputError`.

    Args:
        data: Location of the data, see `read_sts`; or the sets themselves.
        development: Evaluate only on the papers' development set, the 250 pairs of STS 2017 track 5. If `data` is a
            location, it must be the folder of the STS benchmark, whose dev and test files hold these pairs.
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
        """Evaluate a model, and store the metrics for its card.

        Args:
            model: The model.
            output_path: Folder in which a line is added to the file `sts_evaluation_<name>_results.csv`; None to write
                nothing.
            epoch: Epoch of the training, for the file and the card; -1 outside of training.
            steps: Step of the training, for the file and the card; -1 outside of training.

        Returns:
            The metrics, each in [-1, 1], with `name` before their names.
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
        """Return the settings of the evaluation, for the model card."""
        return {"similarity": "cosine", "pairs": sum(map(len, self.sets))}

    def _primary(self) -> str:
        """Return the name of the primary metric, without the prefix."""
        names = {sts_set.name for sts_set in self.sets if not sts_set.year}
        if DEVELOPMENT in names:
            return f"{_key(DEVELOPMENT)}_pearson"
        return "mean" if any(sts_set.year for sts_set in self.sets) else f"{_key(self.sets[0].name)}_pearson"


def metrics_of(results: Results) -> dict[str, float]:
    """Convert results on STS to the metrics of `StsEvaluator`, by their names without the prefix; each in [-1, 1]."""
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
    """Return the name of a set or year as a part of a metric's name, such as `stsb_test` for `STSB-test`."""
    return re.sub(r"\W+", "_", name.lower()).strip("_")
