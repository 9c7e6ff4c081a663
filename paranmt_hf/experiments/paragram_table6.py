"""Table 6 of PARAGRAM-PHRASE (arXiv:1511.08198): vectors learned from phrases, fixed, as features for tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from paranmt_hf.corpus.reading.pairs import PairSelection
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.results import Evaluation, Results, Row, compare
from paranmt_hf.supervised.config import Optimizer, SuperviseConfig, TaskName
from paranmt_hf.supervised.data import read_task
from paranmt_hf.supervised.supervise import Supervised, supervise
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.train import Trained, train
from paranmt_hf.util.markers import Count, PythonOnly
from paranmt_hf.util.run import result_folder
from paranmt_hf.util.settings import values_for

# What the paper tunes for each task (section 4.4.2), next to the optimizers at their usual rates.
LAMBDAS = (1e-3, 1e-4, 1e-5, 1e-6)
OPTIMIZERS: tuple[Optimizer, ...] = ("adam", "adagrad")


def paragram_table6(
    pairs: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    data: str | Path,
    tasks: Sequence[TaskName] = ("SICK-R", "SICK-E", "SST2"),
    training: Mapping[str, Any] | None = None,
    dimensions: Annotated[tuple[Count, ...], PythonOnly] = (1200, 2400),
    lambdas: Annotated[tuple[float, ...], PythonOnly] = LAMBDAS,
) -> Evaluation:
    """Train classifiers on fixed vectors of PARAGRAM-PHRASE and its projections (section 4.4.2, table 6).

    WORD and projections of it to 1200 and 2400 dimensions learn from pairs, and then do not change. For each task the
    development items choose `lambda_s` and the optimizer. After an interruption the same command continues.

    Args:
        pairs: Pairs that the encoders learn from, as in `paranmt train`, such as PPDB XL.
        out: Folder of the encoders and of the models for the tasks.
        data: Folder with the files of the tasks in SentEval's layout (SICK, SST).
        tasks: Names of the tasks.
        training: Options of `paranmt train`, such as `vectors=paragram.txt,epochs=10`.
        dimensions: Dimensions of the projections.
        lambdas: Values of `lambda_s`.
    """
    # Before anything is trained.
    for task in tasks:
        read_task(data, task)
    given = values_for([EncoderConfig, TrainConfig, PairSelection], training, "training", without=["model"])
    encoder, config, selection = EncoderConfig(**given[0]), TrainConfig(**given[1]), PairSelection(**given[2])
    folder = result_folder(out)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "encoders").is_dir():
        raise InputError(f"{folder} exists and holds no encoders of this experiment; choose another", option="out")
    (folder / "encoders").mkdir(parents=True, exist_ok=True)

    def trained(name: str, settings: EncoderConfig) -> Trained:
        return train(pairs, folder / "encoders" / name, encoder=settings, config=config, selection=selection)

    word = trained("word", encoder)
    encoders = {"PARAGRAM-PHRASE": word}
    for dimension in dimensions:
        projection = replace(encoder, model="projection", dimension=dimension, word_dimension=word.record.dimension)
        encoders[f"projection to {dimension}"] = trained(f"projection-{dimension}", projection)
    results = [_measured(name, each, folder, data, tasks, lambdas) for name, each in encoders.items()]
    return Evaluation(results, (compare,), each=False, folder=folder)


def _measured(
    name: str, encoder: Trained, folder: Path, data: str | Path, tasks: Sequence[TaskName], lambdas: Sequence[float]
) -> Results:
    """Figures of the test items, by the settings that are best on the development items."""
    rows = list[Row]()
    found = dict[str, str]()
    for task in tasks:
        models = []
        for optimizer, weight in product(OPTIMIZERS, lambdas):
            config = SuperviseConfig(task, way="fixed", optimizer=optimizer, lambda_s=weight)
            place = folder / f"{task}-{encoder.folder.name}-{optimizer}-{weight:g}"
            models.append(supervise(data, place, config=config, init_from=str(encoder.folder)))
        best = max(models, key=_development)
        record, chosen = best.record, best.record.settings.training
        found[task] = record.settings.data
        details = {"optimizer": chosen.optimizer, "lambda_s": chosen.lambda_s, "development": _development(best)}
        rows.append(Row(name=task, values=record.figures["test"], items=record.items["test"], details=details))
    return Results(
        kind="supervised",
        model=f"{name} ({encoder.record.dimension})",
        tables={"Task": rows},
        data=found,
        settings={"epochs": chosen.epochs, "pairs": encoder.record.pairs},
        notes=["Pearson's r or accuracy on the test items; vectors are fixed."],
    )


def _development(model: Supervised) -> float:
    return next(iter(model.record.figures["dev"].values()))
