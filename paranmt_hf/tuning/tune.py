"""Search for settings: combinations of a grid are trained on a sample, and evaluated on scored pairs of phrases.

arXiv:1511.08198, section 4.2: every model is trained for 5 epochs on 100,000 pairs; the settings of the highest
Spearman's rho on similarities of phrases are then trained on all pairs for 10 epochs. Section 4.4: of a supervised
task the settings that are best on its development items.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from paranmt_hf.corpus.reading.pairs import PairSelection
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.errors import InputError
from paranmt_hf.supervised.config import SuperviseConfig, SupervisedRecord, TaskName
from paranmt_hf.supervised.supervise import Supervised
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.record import TrainingRecord
from paranmt_hf.training.train import Trained
from paranmt_hf.tuning.grid import SUPERVISE, TRAIN, Order, TuneConfig, read_grid, written
from paranmt_hf.tuning.searches import OPTIONS, PairSearch, TaskSearch
from paranmt_hf.tuning.trials import Trials, TuneTrial, holds_trials
from paranmt_hf.util.files import listed, shown_path, write_bytes
from paranmt_hf.util.markers import AlsoWrites, PythonOnly
from paranmt_hf.util.records import Record, as_json, made_with
from paranmt_hf.util.run import Result, result_folder, run
from paranmt_hf.util.settings import is_given
from paranmt_hf.util.tables import percent, text_table
from paranmt_hf.util.wording import counted

TABLE = "trials.tsv"
# Rows that a terminal shows.
SHOWN_TRIALS = 20
NOTES = {
    "train": "{} x 100 on the development set",
    "supervise": "{} x 100 on the development items",
}


@dataclass(frozen=True, kw_only=True)
class TuneRecord(Record):
    """The content of `tune.json`.

    Attributes:
        command: The command that trains with the best settings.
        measure: Name of the trials' score.
        items: Number of pairs, or of items of a task, that each trial learned from.
        combinations: Size of the grid.
        refused: Number of skipped combinations, whose settings are incompatible.
        refusal: Why the last of these was skipped.
        trials: The trials, in their order.
    """

    FILE: ClassVar[str] = "tune.json"
    KIND: ClassVar[str] = "a search for settings (`paranmt tune`)"

    command: Literal["train", "supervise"]
    measure: str
    items: int
    combinations: int
    refused: int
    refusal: str | None
    trials: list[TuneTrial]

    @property
    def best(self) -> TuneTrial:
        """The trial with the highest score, the first of equals."""
        done = [trial for trial in self.trials if trial.score is not None]
        if not done:
            raise InputError(f"all {len(self.trials)} trials failed; the last one: {self.trials[-1].reason}")
        return max(done, key=lambda trial: trial.score or 0.0)

    @property
    def ranked(self) -> list[TuneTrial]:
        """The trials, the best first and those that failed last."""
        return sorted(self.trials, key=lambda trial: (trial.score is None, -(trial.score or 0.0), trial.number))


def table_of(record: TuneRecord) -> str:
    """Write the trials as a table, the best first."""
    names = list(record.trials[0].settings)
    header = ["trial", *(name.replace("_", "-") for name in names), record.measure, "loss"]

    def cells(trial: TuneTrial) -> list[str]:
        return [
            str(trial.number),
            *(written(trial.settings[name]) for name in names),
            "failed" if trial.score is None else percent(trial.score),
            "" if trial.loss is None else f"{trial.loss:.4f}",
        ]

    return text_table(header, [cells(trial) for trial in record.ranked[:SHOWN_TRIALS]])


def as_tsv(record: TuneRecord) -> str:
    """Format the trials as tab-separated values, in the order of their runs."""
    names = list(record.trials[0].settings)
    figures = [entry.name for entry in fields(TuneTrial) if entry.name not in ("number", "settings", "seconds")]
    text = io.StringIO()
    writer = csv.writer(text, delimiter="\t", lineterminator="\n")
    writer.writerow(["trial", *names, *figures])
    for trial in record.trials:
        values = [getattr(trial, name) for name in figures]
        settings = [written(trial.settings[name]) for name in names]
        writer.writerow([trial.number, *settings, *("" if value is None else value for value in values)])
    return text.getvalue()


@dataclass(frozen=True, repr=False)
class TuneResult(Result[TuneRecord]):
    """The outcome of a search.

    Attributes:
        encoder: The best encoder settings.
        config: The best training settings, with the final number of epochs.
        final: What was trained with them, if that was asked for.
    """

    encoder: EncoderConfig = EncoderConfig()
    config: TrainConfig | SuperviseConfig = TrainConfig()
    final: Trained | Supervised | None = None

    def summary(self) -> str:
        """The best trials."""
        record, folder = self.record, shown_path(self.folder)
        lines = [table_of(record)]
        if len(record.trials) > SHOWN_TRIALS:
            lines.append(f"... and {len(record.trials) - SHOWN_TRIALS} more in {folder}/{TABLE}")
        lines.append(NOTES[record.command].format(record.measure))
        seconds = sum(trial.seconds for trial in record.trials)
        tried = f"{len(record.trials)} of {counted(record.combinations, 'combination')}"
        unit = "pair" if record.command == "train" else "item"
        lines.append(f"{tried}, {counted(record.items, unit)}, {seconds:,.0f} s")
        if record.refused:
            lines.append(f"{record.refused:,} more left out, which do not fit together, such as: {record.refusal}")
        best = f"paranmt {record.command} --config {folder}/{OPTIONS} --out FOLDER"
        lines.append(f"the best is trial {record.best.number}: {best}")
        if isinstance(self.final, Trained):
            pairs = self.final.record.history.pairs
            lines.append(f"{shown_path(self.final.folder)}: trained with it on {counted(pairs, 'pair')}")
        elif self.final is not None:
            lines.append(self.final.summary())
        return "\n".join(lines)


def tune(
    data: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    development: str | Path | None = None,
    grid: Mapping[str, Sequence[Any]] | Sequence[str],
    task: TaskName | None = None,
    training: Mapping[str, Any] | None = None,
    tuning: TuneConfig | None = None,
    selection: Annotated[PairSelection | None, PythonOnly] = None,
    exclude: str | Path | None = None,
    final: Annotated[str | Path | None, AlsoWrites] = None,
) -> TuneResult:
    """Search for the settings of an encoder: train each on a sample, keep the best (arXiv:1511.08198, section 4.2).

    With `task`, search for those of a supervised task (section 4.4). After an interruption the same command continues
    with the trial that was running.

    Args:
        data: Pairs, as in `paranmt train`; with `task` the folder of the task, as in `paranmt supervise`.
        out: Folder of the outcome: `tune.json`, a table, and `best.yaml` for `--config` of the command that trains.
        columns: Columns of `data` with other names: reference=sentence1,translation=sentence2,label=is_duplicate.
        development: Scored pairs of phrases whose similarities decide, by Spearman's rho: a TSV or Parquet file with
            sentence1, sentence2 and score, or a folder with STSBenchmark (its STS 2017 pairs). The development items
            of a `task` decide without it.
        grid: Settings and their values, lambda-w=0,1e-5 batch-size=25,50; YAML files with a setting and a list of its
            values on each line; grids of arXiv:1511.08198 for a kind of encoder: word, projection, dan, rnn, irnn,
            plstm; for a task these train from scratch, and regularised, regularised-word and fixed start from an
            encoder. Later values of a setting replace earlier ones.
        task: A supervised task, as in `paranmt supervise`.
        training: Other options of `paranmt train`, such as `model=lstm,dimension=100`; by default 5 `epochs`
            (section 4.2). With `task` those of `paranmt supervise`, such as `init-from=models/word`.
        tuning: Settings of the search.
        selection: Which pairs there are; trials get a sample of them.
        exclude: Folder with STS sets: leave out pairs with their sentences.
        final: Folder of an encoder that is trained with the best settings on all pairs, or of a model for the task.
    """
    tuning, out = tuning or TuneConfig(), result_folder(out, TuneRecord, sources=listed(data))
    kind = TrainingRecord if task is None else SupervisedRecord
    if final is not None and result_folder(final, kind, sources=listed(data), option="final") == out:
        raise InputError(f"{final} is the folder of the outcome; choose another path", option="final")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise InputError("a search runs as one process; start it without accelerate launch or torchrun")
    fixed, searched = read_grid(grid, TRAIN if task is None else SUPERVISE)
    search: PairSearch | TaskSearch
    if task is None:
        search = PairSearch(data, columns, fixed, training, tuning, selection or PairSelection(), development, exclude)
    else:
        search = TaskSearch(data, task, searched, fixed, training)
        options = {"columns": columns, "development": development, "selection": selection, "exclude": exclude}
        _refuse_options_of_pairs(tuning, options)
    order = Order(searched, tuning)
    identity = _identity(search.identity, order)

    def make(work: Path, folder: Path) -> TuneRecord:
        search.begin(work)
        trials = Trials(search, order, work)
        trials.run()
        record = TuneRecord(
            settings=identity,
            command=search.command,
            measure=search.measure,
            items=search.items,
            combinations=len(order.grid),
            refused=trials.refused,
            refusal=trials.refusal,
            trials=trials.done,
            **made_with("torch", *["optuna"] * (tuning.sampler == "tpe")),
        )
        write_bytes(folder / OPTIONS, search.options(record.best.settings).encode())
        write_bytes(folder / TABLE, as_tsv(record).encode())
        return record

    found = run(out, identity, TuneRecord, make, result=Result, command="tune", holds=holds_trials)
    chosen = found.record.best.settings
    trained = None if final is None else search.train(chosen, final)
    encoder, config = search.best(chosen)
    return TuneResult(found.folder, found.record, found.fresh, encoder, config, trained)


def _refuse_options_of_pairs(tuning: TuneConfig, given: Mapping[str, Any]) -> None:
    """Reject options that have no effect on the search for a task."""
    given = {**given, **{name: is_given(tuning, name) or None for name in ("tune_pairs", "final_epochs")}}
    if wrong := [name for name, value in given.items() if value is not None]:
        raise InputError(f"`{wrong[0]}` is for pairs; leave it out, or `task`", option=wrong[0])


def _identity(whole: Mapping[str, Any], order: Order) -> dict[str, Any]:
    searched = {name: list(values) for name, values in order.grid.values.items()}
    # In another order of the names other combinations come first.
    search = {**asdict(order.config), "names": order.grid.names}
    return as_json({**whole, "grid": searched, "search": search})
