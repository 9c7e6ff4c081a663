"""Search for settings: combinations of a grid are trained on a sample, and evaluated on scored pairs of phrases.

arXiv:1511.08198, section 4.2: every model is trained for 5 epochs on 100,000 pairs; the settings of the highest
Spearman's rho on similarities of phrases are then trained on all pairs for 10 epochs.
"""

from __future__ import annotations

import csv
import io
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

from paranmt_hf.corpus.pairs import PairSelection
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.errors import InputError
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.inputs import TrainingRun, resolve_inputs
from paranmt_hf.training.record import TrainingRecord
from paranmt_hf.training.train import Trained, train
from paranmt_hf.training.tuning.grid import Order, TuneConfig, TuneTrial, apply, read_grid, written
from paranmt_hf.util.files import shown_path, write_bytes
from paranmt_hf.util.records import Record, as_json, made_with
from paranmt_hf.util.run import Result, result_folder, run
from paranmt_hf.util.settings import PythonOnly, is_given, values_for
from paranmt_hf.util.tables import percent, text_table
from paranmt_hf.util.wording import counted
from paranmt_hf.util.yaml_files import as_yaml

logger = logging.getLogger(__name__)
TABLE, OPTIONS = "trials.tsv", "best.yaml"
# Rows that a terminal shows.
SHOWN_TRIALS = 20
# Passes over the pairs of a trial (section 4.2).
TRIAL_EPOCHS = 5


@dataclass(frozen=True, kw_only=True)
class TuneRecord(Record):
    """The content of `tune.json`.

    Attributes:
        pairs: Pairs that each trial learned from.
        combinations: Size of the grid.
        refused: Number of skipped combinations, whose settings are incompatible.
        refusal: Why the last of these was skipped.
        trials: The trials, in their order.
    """

    FILE: ClassVar[str] = "tune.json"
    KIND: ClassVar[str] = "a search for settings (`paranmt tune`)"

    pairs: int
    combinations: int
    refused: int
    refusal: str | None
    trials: list[TuneTrial]

    @property
    def best(self) -> TuneTrial:
        """The trial with the highest Spearman's rho, the first of equals."""
        done = [trial for trial in self.trials if trial.spearman is not None]
        if not done:
            raise InputError(f"all {len(self.trials)} trials failed; the last one: {self.trials[-1].reason}")
        return max(done, key=lambda trial: trial.spearman or 0.0)

    @property
    def ranked(self) -> list[TuneTrial]:
        """The trials, the best first and those that failed last."""
        return sorted(self.trials, key=lambda trial: (trial.spearman is None, -(trial.spearman or 0.0), trial.number))


def _cells(trial: TuneTrial, names: Sequence[str]) -> list[str]:
    margins = [trial.train_margin, trial.development_margin]
    return [
        str(trial.number),
        *(written(trial.settings[name]) for name in names),
        "failed" if trial.spearman is None else percent(trial.spearman),
        *("" if margin is None else f"{margin:.3f}" for margin in margins),
        "" if trial.loss is None else f"{trial.loss:.4f}",
    ]


def table_of(record: TuneRecord) -> str:
    """Write the trials as a table, the best first."""
    names = list(record.trials[0].settings)
    header = ["trial", *(name.replace("_", "-") for name in names), "Spearman", "train", "dev", "loss"]
    return text_table(header, [_cells(trial, names) for trial in record.ranked[:SHOWN_TRIALS]])


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


def as_options(encoder: EncoderConfig, config: TrainConfig, others: Mapping[str, Any]) -> str:
    """Write settings, and other options by name, as a file for `paranmt train --config`."""
    values: dict[str, Any] = {}
    for settings in (encoder, config):
        for entry in fields(settings):
            if entry.name == "model" or is_given(settings, entry.name):
                values[entry.name] = getattr(settings, entry.name)
    options = {name.replace("_", "-"): value for name, value in {**others, **values}.items()}
    return f"# paranmt train --config {OPTIONS} --out FOLDER\n{as_yaml(options)}"


@dataclass(frozen=True, repr=False)
class TuneResult(Result[TuneRecord]):
    """The outcome of a search.

    Attributes:
        encoder: The best encoder settings.
        config: The best training settings, with the final number of epochs.
        final: The encoder that was trained with them, if that was asked for.
    """

    encoder: EncoderConfig = EncoderConfig()
    config: TrainConfig = TrainConfig()
    final: Trained | None = None

    def summary(self) -> str:
        """The best trials."""
        record, folder = self.record, shown_path(self.folder)
        lines = [table_of(record)]
        if len(record.trials) > SHOWN_TRIALS:
            lines.append(f"... and {len(record.trials) - SHOWN_TRIALS} more in {folder}/{TABLE}")
        lines.append(
            "Spearman x 100 on the development set; train, dev: mean of 2cos(g1,g2) - cos(n1,g1) - cos(n2,g2)"
        )
        seconds = sum(trial.seconds for trial in record.trials)
        tried = f"{len(record.trials)} of {counted(record.combinations, 'combination')}"
        lines.append(f"{tried}, {counted(record.pairs, 'pair')}, {seconds:,.0f} s")
        if record.refused:
            lines.append(f"{record.refused:,} more left out, which do not fit together, such as: {record.refusal}")
        best = f"paranmt train --config {folder}/{OPTIONS} --out FOLDER"
        lines.append(f"the best is trial {record.best.number}: {best}")
        if self.final is not None:
            pairs = self.final.record.history.pairs
            lines.append(f"{shown_path(self.final.folder)}: trained with it on {counted(pairs, 'pair')}")
        return "\n".join(lines)


def tune(
    data: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    development: str | Path,
    grid: Mapping[str, Sequence[Any]] | Sequence[str],
    training: Mapping[str, Any] | None = None,
    tuning: TuneConfig | None = None,
    selection: Annotated[PairSelection | None, PythonOnly] = None,
    exclude: str | Path | None = None,
    final: str | Path | None = None,
) -> TuneResult:
    """Search for the settings of an encoder: train each on a sample, keep the best (arXiv:1511.08198, section 4.2).

    After an interruption the same command continues with the trial that was running.

    Args:
        data: Pairs, as in `paranmt train`.
        out: Folder of the outcome: `tune.json`, a table, and `best.yaml` for `paranmt train --config`.
        development: Scored pairs of phrases whose similarities decide, by Spearman's rho: a TSV or Parquet file with
            sentence1, sentence2 and score, or a folder with STSBenchmark (its STS 2017 pairs).
        grid: Settings and their values, lambda-w=0,1e-5 batch-size=25,50; YAML files with a setting and a list of its
            values on each line; grids of arXiv:1511.08198 for a kind of encoder: word, projection, dan, rnn, irnn,
            plstm. Later values of a setting replace earlier ones.
        training: Other options of `paranmt train`, such as `model=lstm,dimension=100`; by default 5 `epochs`
            (section 4.2).
        tuning: Settings of the search.
        selection: Which pairs there are; trials get a sample of them.
        exclude: Folder with STS sets: leave out pairs with their sentences.
        final: Folder of an encoder that is trained with the best settings on all pairs.
    """
    fixed, searched = read_grid(grid)
    kinds = (EncoderConfig, TrainConfig)
    given = values_for(kinds, {"epochs": TRIAL_EPOCHS, **fixed, **(training or {})}, "training")
    encoder, config = EncoderConfig(**given[0]), TrainConfig(**given[1])
    selection, tuning, out = selection or PairSelection(), tuning or TuneConfig(), result_folder(out, TuneRecord)
    if final is not None and result_folder(final, TrainingRecord, option="final") == out:
        raise InputError(f"{final} is the folder of the outcome; choose another path", option="final")
    if config.patience is not None:
        raise InputError("patience counts evaluations on a development set, and a search makes none; leave it out")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise InputError("a search runs as one process; start it without accelerate launch or torchrun")
    order = Order(searched, tuning)
    sources = [data] if isinstance(data, str | Path) else list(data)
    whole = resolve_inputs(
        sources, encoder, config, _sample_of(selection, tuning), development=development, exclude=exclude
    )
    identity = _identity(whole, order)
    # Imports torch.
    from paranmt_hf.training.tuning.trials import Trials, holds_trials

    def make(work: Path, folder: Path) -> TuneRecord:
        trials = Trials(whole, encoder, order, work)
        trials.run()
        record = TuneRecord(
            settings=identity,
            pairs=trials.pairs,
            combinations=len(order.grid),
            refused=trials.refused,
            refusal=trials.refusal,
            trials=trials.done,
            **made_with("torch"),
        )
        chosen = {entry.name: getattr(selection, entry.name) for entry in fields(selection)}
        others: dict[str, Any] = {"data": [os.fspath(source) for source in sources]}
        others |= {name: value for name, value in chosen.items() if is_given(selection, name)}
        others |= {"exclude": os.fspath(exclude)} if exclude is not None else {}
        best = as_options(*_best(record, encoder, config, tuning), others)
        write_bytes(folder / OPTIONS, best.encode())
        write_bytes(folder / TABLE, as_tsv(record).encode())
        return record

    found = run(out, identity, TuneRecord, make, result=Result, command="tune", holds=holds_trials)
    best_encoder, best_config = _best(found.record, encoder, config, tuning)
    trained = None
    if final is not None:
        logger.info(f"training on all pairs for {counted(best_config.epochs, 'epoch')}")
        trained = train(sources, final, encoder=best_encoder, config=best_config, selection=selection, exclude=exclude)
    return TuneResult(found.folder, found.record, found.fresh, best_encoder, best_config, trained)


def _sample_of(selection: PairSelection, tuning: TuneConfig) -> PairSelection:
    """Select a sample of the chosen pairs: the first ones if `first_pairs` is given, otherwise random ones."""
    most = tuning.tune_pairs
    if selection.first_pairs is not None:
        return replace(selection, first_pairs=min(most, selection.first_pairs))
    return replace(selection, max_pairs=min(most, selection.max_pairs or most))


def _best(
    record: TuneRecord, encoder: EncoderConfig, config: TrainConfig, tuning: TuneConfig
) -> tuple[EncoderConfig, TrainConfig]:
    """The best settings, with the final number of epochs."""
    best_encoder, best_config = apply(record.best.settings, encoder, config)
    return best_encoder, replace(best_config, epochs=tuning.final_epochs)


def _identity(whole: TrainingRun, order: Order) -> dict[str, Any]:
    searched = {name: list(values) for name, values in order.grid.values.items()}
    # In another order of the names other combinations come first.
    search = {**asdict(order.config), "names": order.grid.names}
    return as_json({**whole.identity, "grid": searched, "search": search})
